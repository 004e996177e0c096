// The entry of an act says `OUTCOME: VERDICT (PATTERN), events A to B`. A is the verdict's number,
// and a dry run or a held-out verdict has its own OUTCOME. The entry of an end is complete in
// itself, because the act's may be too old to be kept. Rules are compared by Newcombe's interval of
// the difference of two shares, made of two Wilson intervals.
#include "core/recovery_trial.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>

#include "core/recovery_act.h"
#include "core/recovery_rule.h"
#include "facts/digest.h"

namespace watchdog::monitor {
namespace {

constexpr std::string_view rule_prefix = "rule:";
constexpr std::string_view recovered_word = "recovered";
constexpr std::string_view not_recovered_word = "not recovered";
constexpr int pace_min = 3;
constexpr int pace_max = 10;
constexpr std::int64_t arm_min = 20;
/// Of an interval of 99 %. Each side is wrong once in 200 looks, and a rule is looked at a few
/// times.
constexpr double z_of_99_percent = 2.5758293035489;

bool is_act(AuditAction action) {
  return action == AuditAction::nudge || action == AuditAction::refuse ||
         action == AuditAction::end_call || action == AuditAction::command ||
         action == AuditAction::cancel;
}

/// The name in `recovered (NAME): …`.
std::string agent_in(std::string_view outcome) {
  const auto from = outcome.find(" (");
  const auto to = outcome.find("): ");
  if (from == std::string_view::npos || to == std::string_view::npos || to < from) return {};
  return std::string(outcome.substr(from + 2, to - from - 2));
}

/// A reporter may choose any name.
std::string plain_name(std::string_view agent) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  const bool is_name = !agent.empty() && agent.size() <= 64 && std::ranges::all_of(agent, is_plain);
  return is_name ? std::string(agent) : "other";
}

int steps_after(const Repetition& repetition, Seq seq) {
  return static_cast<int>(
      std::ranges::count_if(repetition.steps, [&](const Step& step) { return step.seq > seq; }));
}

std::string arm_text(const TrialArm& arm) {
  return std::to_string(arm.recovered) + " of " + std::to_string(arm.all);
}

TrialArm& arm_of(TrialCounts& counts, bool is_held_out) {
  return is_held_out ? counts.held_out : counts.acted;
}

void count(TrialArm& arm, bool recovered) {
  ++arm.all;
  if (recovered) ++arm.recovered;
}

/// True at arm_min, and whenever that has doubled.
bool is_look(std::int64_t all) {
  return all % arm_min == 0 && std::has_single_bit(static_cast<std::uint64_t>(all / arm_min));
}

}  // namespace

double draw_of(std::string_view session, Seq verdict) noexcept {
  constexpr int kept_bits = 53;  // of a double
  const auto mixed =
      digest_of(session) ^ (static_cast<std::uint64_t>(verdict) * 0x9e3779b97f4a7c15);
  const auto bytes = std::bit_cast<std::array<char, sizeof mixed>>(mixed);
  const auto digest = digest_of({bytes.data(), bytes.size()});
  return std::ldexp(static_cast<double>(digest >> (64 - kept_bits)), -kept_bits);
}

TrialStart TrialStart::of(const Case& judged) {
  const auto& repetition = *judged.history.repetition;
  const auto before = judged.health.evidence[0];
  return {.at = judged.history.seq,
          .pace = std::clamp(steps_after(repetition, before == 0 ? 0 : before - 1), pace_min,
                             pace_max)};
}

std::optional<bool> has_recovered(const TrialStart& start, const Case& judged) {
  const auto& history = judged.history;
  if (is_end(history.lifecycle)) return history.lifecycle == Lifecycle::completed;
  if (history.notes->cancel) return false;
  if (!has_verdict(judged)) return true;
  if (steps_after(*history.repetition, start.at) >= start.pace) return false;
  return std::nullopt;
}

bool is_harmful(const TrialCounts& counts) noexcept {
  const auto& acted = counts.acted;
  const auto& held_out = counts.held_out;
  const auto share = [](const TrialArm& arm) {
    return static_cast<double>(arm.recovered) / static_cast<double>(arm.all);
  };
  const auto of_acted = wilson(acted.recovered, acted.all, z_of_99_percent);
  const auto of_held_out = wilson(held_out.recovered, held_out.all, z_of_99_percent);
  const double difference = share(acted) - share(held_out);
  const double highest =
      difference + std::hypot(of_acted.high - share(acted), share(held_out) - of_held_out.low);
  return highest < 0;
}

void TrialBook::add(const AuditEntry& entry) {
  if (entry.action == AuditAction::resume_recovery) {
    if (entry.outcome != "ok") return;
    for (const auto& rule : off_) {
      since_resumed_.erase(rule);
      harmful_.erase(rule);
    }
    return off_.clear();
  }
  if (!entry.actor.starts_with(rule_prefix)) return;
  const auto rule = entry.actor.substr(rule_prefix.size());
  if (entry.action == AuditAction::rule_off) {
    off_.insert(rule);
    return;
  }
  if (entry.action == AuditAction::trial) return end(entry, rule);
  if (!is_act(entry.action) || entry.outcome.starts_with(would_words)) return;
  const auto parts = proven(entry.outcome).value_or(ProvenOutcome{});
  Key key{rule, entry.target, parts.first};
  if (ended_.contains(key)) return;
  open_.try_emplace(std::move(key),
                    OpenTrial{.rule = rule,
                              .session = entry.target,
                              .verdict = parts.first,
                              .is_held_out = entry.outcome.starts_with(held_out_words),
                              .proof = parts.proof});
}

void TrialBook::end(const AuditEntry& entry, const std::string& rule) {
  const std::string_view outcome = entry.outcome;
  const Key key{rule, entry.target, proven(outcome).value_or(ProvenOutcome{}).first};
  open_.erase(key);
  if (!ended_.insert(key).second) return;
  const bool is_held_out = outcome.starts_with(held_out_words);
  const auto said = is_held_out ? outcome.substr(held_out_words.size() + 2) : outcome;
  const bool recovered = said.starts_with(recovered_word);
  count(arm_of(counts_[{rule, agent_in(outcome)}], is_held_out), recovered);
  auto& arm = arm_of(since_resumed_[rule], is_held_out);
  count(arm, recovered);
  judge(rule, arm);
}

void TrialBook::judge(const std::string& rule, const TrialArm& counted) {
  const auto& counts = since_resumed_[rule];
  const bool is_smaller = counted.all <= std::min(counts.acted.all, counts.held_out.all);
  if (is_smaller && is_look(counted.all) && is_harmful(counts)) harmful_[rule] = counts;
}

std::vector<OpenTrial> TrialBook::open() const {
  std::vector<OpenTrial> trials;
  trials.reserve(open_.size());
  for (const auto& [key, trial] : open_) trials.push_back(trial);
  return trials;
}

std::map<std::string, TrialCounts> TrialBook::harmful() const {
  auto rules = harmful_;
  std::erase_if(rules, [&](const auto& one) { return off_.contains(one.first); });
  return rules;
}

AuditEntry end_of(const OpenTrial& trial, bool recovered, std::string_view agent) {
  auto outcome = trial.is_held_out ? std::string(held_out_words) + ", " : std::string();
  outcome += recovered ? recovered_word : not_recovered_word;
  return {.at = system_clock().wall(),
          .actor = std::string(rule_prefix) + trial.rule,
          .action = AuditAction::trial,
          .target = trial.session,
          .outcome = outcome + " (" + plain_name(agent) + "): " + trial.proof};
}

AuditEntry switch_off(const std::string& rule, const TrialCounts& counts) {
  return {.at = system_clock().wall(),
          .actor = std::string(rule_prefix) + rule,
          .action = AuditAction::rule_off,
          .outcome = "does harm: " + arm_text(counts.acted) + " recovered after an act, and " +
                     arm_text(counts.held_out) + " without one"};
}

}  // namespace watchdog::monitor
