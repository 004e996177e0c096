#include "score/peer_rules.h"

#include <algorithm>

namespace watchdog::monitor {
namespace {

constexpr std::size_t exchanges_max = 10;
constexpr std::size_t calls_max = 30;
/// The part of an error that is compared: 100 characters, behind the word `text`.
constexpr std::size_t error_bytes = 105;

bool same(const Exchange& a, const Exchange& b) {
  return a.call == b.call && a.result == b.result;
}

/// The latest `count` exchanges each equal the one `period` before. The peers do not ask that the
/// exchanges in turn differ.
bool repeats(const std::deque<Exchange>& latest, std::size_t count, std::size_t period) {
  if (latest.size() < count) return false;
  const auto first = latest.end() - static_cast<std::ptrdiff_t>(count);
  return std::equal(first + static_cast<std::ptrdiff_t>(period), latest.end(), first, same);
}

/// The latest three are the same call and errors, whatever their texts.
bool keeps_failing(const std::deque<Exchange>& latest) {
  return latest.size() >= 3 && std::all_of(latest.end() - 3, latest.end(), [&](const auto& item) {
           return item.failed && item.call == latest.back().call;
         });
}

}  // namespace

RuleSet PeerRules::started(const std::string& call) {
  messages_in_row_ = 0;
  calls_in_row_ = !calls_.empty() && calls_.back() == call ? calls_in_row_ + 1 : 1;
  calls_.push_back(call);
  if (calls_.size() > calls_max) calls_.pop_front();
  const auto newest_differ = calls_in_row_ == 1;
  constexpr std::ptrdiff_t turns = 6;
  const bool alternate = newest_differ && calls_.size() >= turns &&
                         std::equal(calls_.end() - turns + 2, calls_.end(), calls_.end() - turns);
  RuleSet holding;
  holding[place_of(Rule::identical_call3)] = calls_in_row_ >= 3;
  holding[place_of(Rule::identical_call4)] = calls_in_row_ >= 4;
  holding[place_of(Rule::identical_call5)] = calls_in_row_ >= 5;
  holding[place_of(Rule::repeated_call6)] = ++count_of_call_[call] >= 6;
  holding[place_of(Rule::alternating_call6)] = alternate;
  holding[place_of(Rule::repeated_call10)] = std::count(calls_.begin(), calls_.end(), call) >= 10;
  return holding;
}

RuleSet PeerRules::finished(Exchange exchange) {
  messages_in_row_ = 0;
  const bool same_error =
      !latest_.empty() && latest_.back().failed && exchange.failed &&
      latest_.back().tool == exchange.tool &&
      latest_.back().result.substr(0, error_bytes) == exchange.result.substr(0, error_bytes);
  errors_in_row_ = !exchange.failed ? 0 : same_error ? errors_in_row_ + 1 : 1;
  latest_.push_back(std::move(exchange));
  if (latest_.size() > exchanges_max) latest_.pop_front();
  const auto& newest = latest_.back();
  const auto repeated = std::count_if(latest_.begin(), latest_.end(),
                                      [&](const auto& item) { return same(item, newest); });
  RuleSet holding;
  holding[place_of(Rule::identical_exchange4)] = repeats(latest_, 4, 1);
  holding[place_of(Rule::failing_call3)] = keeps_failing(latest_);
  holding[place_of(Rule::alternating6)] = repeats(latest_, 6, 2);
  holding[place_of(Rule::openhands)] = holding.any();
  holding[place_of(Rule::exchange6_of_10)] = latest_.size() == exchanges_max && repeated >= 6;
  holding[place_of(Rule::same_error3)] = errors_in_row_ >= 3;
  return holding;
}

RuleSet PeerRules::said(bool by_agent) {
  messages_in_row_ = by_agent ? messages_in_row_ + 1 : 0;
  RuleSet holding;
  holding[place_of(Rule::monologue3)] = messages_in_row_ >= 3;
  holding[place_of(Rule::openhands)] = holding.any();
  return holding;
}

}  // namespace watchdog::monitor
