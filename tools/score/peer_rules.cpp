#include "score/peer_rules.h"

#include <algorithm>

namespace watchdog::monitor {
namespace {

constexpr std::size_t exchanges_max = 6;

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
  calls_in_row_ = calls_in_row_ > 0 && call == call_ ? calls_in_row_ + 1 : 1;
  call_ = call;
  RuleSet holding;
  holding[place_of(Rule::identical_call3)] = calls_in_row_ >= 3;
  holding[place_of(Rule::identical_call5)] = calls_in_row_ >= 5;
  return holding;
}

RuleSet PeerRules::finished(Exchange exchange) {
  latest_.push_back(std::move(exchange));
  if (latest_.size() > exchanges_max) latest_.pop_front();
  RuleSet holding;
  holding[place_of(Rule::identical_exchange4)] = repeats(latest_, 4, 1);
  holding[place_of(Rule::failing_call3)] = keeps_failing(latest_);
  holding[place_of(Rule::alternating6)] = repeats(latest_, 6, 2);
  holding[place_of(Rule::openhands)] = holding.any();
  return holding;
}

}  // namespace watchdog::monitor
