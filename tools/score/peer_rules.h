/// \file
/// Rules that other watchdogs use, as comparators of our own detector.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// The scored rules: our detector first, then the peers'. None of them uses time.
enum class Rule : std::uint8_t {
  detector,
  openhands,            ///< Any of the next three.
  identical_exchange4,  ///< Call and result the same four times in a row.
  failing_call3,        ///< The same call three times in a row, all with an error.
  alternating6,         ///< Two exchanges in turn, three times each: A B A B A B.
  identical_call3,      ///< Name and arguments the same three times in a row.
  identical_call5
};
inline constexpr std::size_t rule_count = 7;

}  // namespace watchdog::monitor

namespace watchdog {

template <>
struct Names<monitor::Rule> {
  static constexpr std::string_view all[] = {
      "detector",      "openhands",        "identical_exchange_4", "failing_call_3",
      "alternating_6", "identical_call_3", "identical_call_5"};
};

}  // namespace watchdog

namespace watchdog::monitor {

inline constexpr std::array<Rule, rule_count> rules = {
    Rule::detector,     Rule::openhands,       Rule::identical_exchange4, Rule::failing_call3,
    Rule::alternating6, Rule::identical_call3, Rule::identical_call5};

/// A set of rules.
using RuleSet = std::bitset<rule_count>;
[[nodiscard]] constexpr std::size_t place_of(Rule rule) noexcept {
  return static_cast<std::size_t>(rule);
}

/// A finished call, identified with its result.
struct Exchange {
  std::string call;
  std::string result;
  bool failed = false;
};

/// The peers' rules over one run. Messages between the calls do not count. Use from one thread at a
/// time.
class PeerRules {
 public:
  /// A call begins: the rules that hold at it.
  [[nodiscard]] RuleSet started(const std::string& call);
  /// A call has its result: the rules that hold at it.
  [[nodiscard]] RuleSet finished(Exchange exchange);

 private:
  std::string call_;
  int calls_in_row_ = 0;
  std::deque<Exchange> latest_;  ///< Newest last.
};

}  // namespace watchdog::monitor
