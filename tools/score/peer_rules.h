/// \file
/// Rules that other watchdogs use, as comparators of our own detector.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// The scored rules: our detector first, then the peers'. None of them uses time. The page
/// *Measurements of the detection* says which peer has which.
enum class Rule : std::uint8_t {
  detector,
  openhands,            ///< Any of the next four.
  identical_exchange4,  ///< Call and result the same four times in a row.
  failing_call3,        ///< The same call three times in a row, all with an error.
  alternating6,         ///< Two exchanges in turn, three times each: A B A B A B.
  monologue3,           ///< Three messages of the agent with nothing between them.
  identical_call3,      ///< Name and arguments the same three times in a row.
  identical_call4,      ///< Likewise, four times.
  identical_call5,      ///< Likewise, five times.
  repeated_call6,       ///< The same call six times, whatever lies between.
  alternating_call6,    ///< Two calls in turn, three times each, whatever comes back.
  repeated_call10,      ///< The same call ten times among the latest 30.
  exchange6_of_10,      ///< One call with its result six times among the latest ten.
  same_error3           ///< One tool fails three times in a row with the same text.
};
inline constexpr std::size_t rule_count = 14;

}  // namespace watchdog::monitor

namespace watchdog {

template <>
struct Names<monitor::Rule> {
  static constexpr std::string_view all[] = {
      "detector",         "openhands",       "identical_exchange_4", "failing_call_3",
      "alternating_6",    "monologue_3",     "identical_call_3",     "identical_call_4",
      "identical_call_5", "repeated_call_6", "alternating_call_6",   "repeated_call_10",
      "exchange_6_of_10", "same_error_3"};
};

}  // namespace watchdog

namespace watchdog::monitor {

inline constexpr std::array<Rule, rule_count> rules = {
    Rule::detector,        Rule::openhands,      Rule::identical_exchange4, Rule::failing_call3,
    Rule::alternating6,    Rule::monologue3,     Rule::identical_call3,     Rule::identical_call4,
    Rule::identical_call5, Rule::repeated_call6, Rule::alternating_call6,   Rule::repeated_call10,
    Rule::exchange6_of_10, Rule::same_error3};

/// A set of rules.
using RuleSet = std::bitset<rule_count>;
[[nodiscard]] constexpr std::size_t place_of(Rule rule) noexcept {
  return static_cast<std::size_t>(rule);
}

/// A finished call, identified with its result.
struct Exchange {
  std::string tool;
  std::string call;
  std::string result;
  bool failed = false;
};

/// The peers' rules over one run. Messages between the calls count for `monologue3` alone. Use from
/// one thread at a time.
class PeerRules {
 public:
  /// A call begins: the rules that hold at it.
  [[nodiscard]] RuleSet started(const std::string& call);
  /// A call has its result: the rules that hold at it.
  [[nodiscard]] RuleSet finished(Exchange exchange);
  /// The agent, or somebody else, says something: the rules that hold at it.
  [[nodiscard]] RuleSet said(bool by_agent);

 private:
  int calls_in_row_ = 0;
  int messages_in_row_ = 0;
  int errors_in_row_ = 0;
  std::deque<std::string> calls_;  ///< Newest last.
  std::map<std::string, int> count_of_call_;
  std::deque<Exchange> latest_;  ///< Newest last.
};

}  // namespace watchdog::monitor
