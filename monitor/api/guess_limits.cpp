#include "api/guess_limits.h"

#include <algorithm>

#include "api/token.h"

namespace watchdog::monitor {

ComparedWith GuessLimits::judge(const std::string& address,
                                const std::vector<std::string_view>& credentials, Millis now,
                                const std::function<std::size_t(ComparedWith)>& right_one) {
  const std::lock_guard guard(mutex_);
  // A random token that is right says nothing about the others.
  if (right_one(ComparedWith::random_only) < credentials.size()) return ComparedWith::random_only;
  std::vector<Digest> digests;
  for (const auto credential : credentials) digests.push_back(short_digest(credential));
  const auto known = guessers_.find(address);
  const auto guesser = known == guessers_.end() ? Guesser{} : known->second;
  const auto is_fresh = [&](Digest digest) {
    return std::ranges::find(guesser.wrong, digest) == guesser.wrong.end();
  };
  // One request may carry many cookies: all of them are compared, or none. Those that were wrong
  // before tell nothing new.
  const auto fresh = static_cast<double>(std::ranges::count_if(digests, is_fresh));
  if (fresh > 0 && guesser.limit.wait(now, fresh) > Millis{0}) return ComparedWith::random_only;
  digests.resize(std::min(right_one(ComparedWith::all), digests.size()));
  std::erase_if(digests, [&](Digest digest) { return !is_fresh(digest); });
  if (digests.empty()) return ComparedWith::all;
  auto& counted = of(address, now);
  for (const auto digest : digests) {
    (void)counted.limit.admit(now);
    if (counted.wrong.size() == remembered_max) counted.wrong.erase(counted.wrong.begin());
    counted.wrong.push_back(digest);
  }
  return ComparedWith::all;
}

Millis GuessLimits::wait(const std::string& address, Millis now) {
  const std::lock_guard guard(mutex_);
  const auto known = guessers_.find(address);
  return known == guessers_.end() ? Millis{0} : known->second.limit.wait(now);
}

GuessLimits::Guesser& GuessLimits::of(const std::string& address, Millis now) {
  if (const auto known = guessers_.find(address); known != guessers_.end()) return known->second;
  if (guessers_.size() >= peers_max)
    std::erase_if(guessers_, [now](const auto& each) { return each.second.limit.full(now); });
  if (guessers_.size() >= peers_max) guessers_.clear();
  return guessers_[address];
}

}  // namespace watchdog::monitor
