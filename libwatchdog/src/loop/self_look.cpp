#include "loop/self_look.h"

#include <algorithm>
#include <utility>

#include "facts/ids.h"
#include "loop/check_subject.h"
#include "loop/guarded.h"
#include "watchdog/reasons.h"
#include "watchdog/tracker.h"

namespace watchdog {
namespace {

bool is_doubtful(HealthKind kind) {
  return kind == HealthKind::suspect || kind == HealthKind::stuck || kind == HealthKind::looping;
}

/// Something other than a clock says so too. Pace alone never counts.
bool is_confirmed(const Case& judged) {
  const auto& health = judged.health;
  if (health.kind != HealthKind::stuck && health.kind != HealthKind::looping) return false;
  const int needed = is_repetition(health.pattern) ? 2 : 1;  // the repetition itself is one
  return (is_repetition(health.pattern) || health.pattern == Pattern::no_state_change) &&
         confirmations(judged.history, *judged.policy) >= needed;
}

std::string advice_for(const std::string& reason) {
  return "[PROGRESS CHECK]\nYou may be repeating yourself: " + reason +
         ".\nChange the approach: do something you have not done yet, or say what keeps you from "
         "it.";
}

}  // namespace

std::optional<Check> SelfLook::finished_check(Millis wait, const std::stop_token& stop) {
  if (checking_.empty() || parts_.checker == nullptr) return std::nullopt;
  auto check = parts_.checker->wait(checking_, wait, stop);
  if (!check) return std::nullopt;
  checking_.clear();
  return check;
}

void SelfLook::start_check(const std::stop_token& stop) {
  if (parts_.checker == nullptr || !checking_.empty()) return;
  const auto& session = parts_.tracker.session();
  if (!parts_.checker->may_start(session)) return;
  auto check = started_check(session, stop);
  if (check) {
    checking_ = check->id;
  } else if (std::exchange(is_refusal_said_, true)) {
    return;
  } else {
    const auto now = parts_.clock->wall();
    check = Check{.id = new_ulid(now),
                  .session = session,
                  .state = CheckState::failed,
                  .reason = "not asked: " + check.error().message,
                  .at = now};
  }
  parts_.tracker.report(report_of(*check, {}));
}

Result<Check> SelfLook::started_check(const std::string& session,
                                      const std::stop_token& stop) const {
  // From the file: its events have the numbers to which the answer refers. The newest reports may
  // not be there yet.
  if (auto kept = parts_.tracker.flush(stop); !kept) return kept.error();
  auto reader = StoreReader::open(parts_.tracker.database());
  if (!reader) return reader.error();
  const auto row = reader->session(session);
  if (!row) return row.error();
  auto subject = check_subject(*reader, *row);
  if (!subject) return subject.error();
  return parts_.checker->start(std::move(*subject));
}

std::optional<Outcome> SelfLook::look(int iteration, const std::stop_token& stop) {
  auto judged = parts_.tracker.judged();
  std::optional<Check> check;
  const bool due = iteration % std::max(options_.status_every, 1) == 0;
  if (due && is_doubtful(judged.health.kind) && judged.policy->concurrent_checks) start_check(stop);
  if (!checking_.empty()) {
    check = finished_check(due ? options_.check_wait : Millis{0}, stop);
    judged = parts_.tracker.judged();
  }
  if (!is_doubtful(judged.health.kind)) {
    is_advised_ = is_recovered_ = is_refusal_said_ = false;
    return std::nullopt;
  }
  const auto reason = reason_of(judged.health, judged.history, *judged.policy);
  if (!std::exchange(is_advised_, true)) advice_ = advice_for(reason);
  const bool loops = check && check->state == CheckState::done && check->status == Verdict::looping;
  const bool trouble = loops || judged.health.kind == HealthKind::looping || is_confirmed(judged);
  if (!trouble) return std::nullopt;
  const bool first = !std::exchange(is_recovered_, true);
  if (first && parts_.callbacks.recover) return recover(judged, reason, std::move(check));
  if (options_.on_confirmed_stuck != OnConfirmedStuck::fail || !is_confirmed(judged))
    return std::nullopt;
  auto evidence = reason + " (events";
  for (const auto seq : judged.health.evidence)
    if (seq != 0) evidence += " " + std::to_string(seq);
  return Outcome{OutcomeKind::failed, std::string(reasons::confirmed_stuck), evidence + ")"};
}

/// Calls for help, once a streak.
std::optional<Outcome> SelfLook::recover(const Case& judged, const std::string& reason,
                                         std::optional<Check> check) const {
  const Trouble found{.health = judged.health,
                      .reason = reason,
                      .check = std::move(check),
                      .advice = advice_for(reason)};
  const auto done = guarded<bool>("recover", [&]() -> Result<bool, Failure> {
    parts_.callbacks.recover(found);
    return true;
  });
  return done ? std::nullopt : std::optional(outcome_of(done.error()));
}

}  // namespace watchdog
