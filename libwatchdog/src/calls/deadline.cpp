// `resolve` goes from the general to the particular: profile, setting, tool, setting for the tool,
// hint of the model. Each may replace the idle limit. Caps, budget and turn come last and can only
// shorten the whole time. `ActivityDeadline` compares limits with the active time: the time since
// the start, less `left_out_`. Pauses and stalls add to `left_out_`. A stall within a pause is not
// added twice.
#include "watchdog/deadline.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace watchdog {
namespace {

constexpr Millis hint_min{1'000};

struct ProfileLimits {
  Millis idle;
  std::optional<Millis> cap;
};

constexpr ProfileLimits limits_of(DeadlineProfile profile) noexcept {
  switch (profile) {
    case DeadlineProfile::interactive:
      return {Millis{30'000}, Millis{45'000}};
    case DeadlineProfile::batch:
      return {Millis{600'000}, {}};
    case DeadlineProfile::autonomous:
      break;
  }
  return {Millis{120'000}, {}};
}

/// 0 is how people write "none".
std::optional<Millis> limit(std::optional<Millis> written) {
  return written && written->count() == 0 ? std::nullopt : written;
}

std::string seconds(Millis time) {
  const auto ms = time.count();
  auto text = std::to_string(ms / 1'000);
  if (ms % 1'000 != 0) text += "." + std::to_string(1'000 + ms % 1'000).substr(1);
  return text + "s";
}

Result<void> check_one(const char* what, const std::optional<Millis>& value) {
  if (!value || (value->count() >= 0 && *value <= deadline_max)) return {};
  return Error{ErrorCode::invalid,
               std::string(what) + " is " + std::to_string(value->count()) +
                   " ms; it must be from 0 (none) to " + std::to_string(deadline_max.count()) +
                   " ms (24 h)",
               what};
}

/// Takes the smaller limit, and its name with it.
void bound(ResolvedDeadline& resolved, std::optional<Millis> by, TimeoutKind kind,
           const char* name) {
  if (!by) return;
  if (resolved.hard && *resolved.hard <= *by) return;
  resolved.hard = std::max(*by, Millis{0});
  resolved.hard_kind = kind;
  resolved.provenance.append(" < ").append(name);
}

}  // namespace

Result<void> check(const DeadlineSettings& settings) {
  if (auto ok = check_one("timeout", settings.timeout); !ok) return ok;
  for (const auto& [tool, value] : settings.per_tool) {
    if (auto ok = check_one(("timeout of " + tool).c_str(), value); !ok) return ok;
  }
  if (settings.hint_max < hint_min || settings.hint_max > deadline_max) {
    return Error{ErrorCode::invalid,
                 "hint_max is " + std::to_string(settings.hint_max.count()) +
                     " ms; it must be from 1000 to " + std::to_string(deadline_max.count()) + " ms",
                 "hint_max"};
  }
  return {};
}

Result<void> check(const DeadlinePolicy& policy) {
  for (const auto& [name, value] :
       {std::pair{"idle", policy.idle}, std::pair{"hard", policy.hard},
        std::pair{"soft", policy.soft}, std::pair{"ceiling", policy.ceiling}}) {
    if (auto ok = check_one(name, value); !ok) return ok;
  }
  return {};
}

ResolvedDeadline resolve(const DeadlineSettings& settings, std::string_view tool,
                         const DeadlinePolicy& policy, const TimeoutHint& hint,
                         const DeadlineBounds& bounds) {
  ResolvedDeadline resolved;
  resolved.provenance = "default";
  resolved.note = hint.note;
  resolved.extend_on_progress = policy.extend_on_progress;
  const auto add = [&](std::string_view who) { resolved.provenance.append(" < ").append(who); };

  const auto limits = limits_of(settings.profile);
  resolved.idle = limits.idle;
  if (settings.profile != DeadlineProfile::autonomous) add(name_of(settings.profile));
  if (settings.timeout) {
    resolved.idle = limit(settings.timeout);
    add(settings.timeout_origin);
  }
  if (policy.idle || policy.hard || policy.tool_managed) add("tool");
  if (policy.idle) resolved.idle = limit(policy.idle);
  resolved.hard = limit(policy.hard);
  resolved.soft = limit(policy.soft);
  if (policy.tool_managed) {
    resolved.idle.reset();
    resolved.hard = limit(policy.ceiling);
    resolved.hard_kind = TimeoutKind::ceiling;
  }
  if (const auto own = settings.per_tool.find(tool); own != settings.per_tool.end()) {
    // A configured timeout is the tool's whole limit: 0 is none at all.
    resolved.idle = limit(own->second);
    if (own->second.count() == 0 || policy.tool_managed) resolved.hard.reset();
    resolved.hard_kind = TimeoutKind::hard;
    add("configured for the tool");
  }
  const bool is_declared = policy.trust == ProgressTrust::declared;
  if (is_declared && !resolved.hard && resolved.idle) resolved.hard = declared_hard_max;

  std::optional<Millis> asked;
  if (hint.timeout) {
    asked = std::clamp(*hint.timeout, hint_min, settings.hint_max);
    resolved.idle = asked;
    if (resolved.hard) resolved.hard = std::max(*resolved.hard, *asked);
    add("hint");
  }
  bound(resolved, limits.cap, TimeoutKind::hard, "cap of the profile");
  bound(resolved, bounds.cap, TimeoutKind::hard, "cap");
  bound(resolved, bounds.budget, TimeoutKind::budget, "budget");
  bound(resolved, bounds.scope, TimeoutKind::hard, "turn");
  if (asked) {
    const auto got = resolved.hard ? std::min(*resolved.hard, *asked) : *asked;
    if (got != *hint.timeout) {
      resolved.note += resolved.note.empty() ? "" : "; ";
      resolved.note += "requested " + seconds(*hint.timeout) + ", " +
                       (got < *hint.timeout ? "clamped to " : "raised to ") + seconds(got);
    }
  }
  return resolved;
}

ActivityDeadline::ActivityDeadline(ResolvedDeadline limits, Instant start)
    : limits_(std::move(limits)), start_(start) {}

void ActivityDeadline::accept(Instant now) noexcept {
  ++accepted_;
  if (limits_.extend_on_progress) progress_at_ = active(now);
}

bool ActivityDeadline::progress(double value, Instant now) noexcept {
  if (!std::isfinite(value) || (value_ && value <= *value_)) {
    ++rejected_;
    return false;
  }
  value_ = value;
  accept(now);
  return true;
}

bool ActivityDeadline::progress_bytes(std::uint64_t total, Instant now, bool is_new) noexcept {
  const bool rises = total > bytes_;
  bytes_ = std::max(bytes_, total);
  if (!rises || !is_new) {
    ++rejected_;
    return false;
  }
  accept(now);
  return true;
}

void ActivityDeadline::put_off(Instant now) noexcept {
  if (!limits_.idle || !limits_.extend_on_progress) return;
  const auto time = active(now);
  if (time - progress_at_ > put_off_max * *limits_.idle) return;
  put_off_at_ = time;
  ++put_offs_;
}

/// In active time. REQUIRES: `idle` is limited.
Millis ActivityDeadline::idle_end() const noexcept {
  return std::max(progress_at_, put_off_at_) + *limits_.idle;
}

void ActivityDeadline::pause(PauseReason reason, Instant now) noexcept {
  ++holds_by_reason_[static_cast<std::size_t>(reason)];
  if (holds_++ == 0) paused_since_ = now;
}

void ActivityDeadline::resume(PauseReason reason, Instant now) noexcept {
  auto& holds = holds_by_reason_[static_cast<std::size_t>(reason)];
  if (holds == 0) return;
  --holds;
  if (--holds_ > 0) return;
  const auto lasted = std::max(now - paused_since_, Millis{0});
  left_out_ += lasted;
  pauses_ += lasted;
}

void ActivityDeadline::compensate(Millis stall) noexcept {
  if (!paused()) left_out_ += std::max(stall, Millis{0});
}

Instant ActivityDeadline::next_expiry() const noexcept {
  if (paused()) return never;
  auto left = Millis::max();
  if (limits_.idle) left = idle_end();
  if (limits_.hard) left = std::min(left, *limits_.hard);
  return left == Millis::max() ? never : start_ + left_out_ + left;
}

std::optional<TimeoutKind> ActivityDeadline::expired(Instant now) const noexcept {
  if (paused()) return std::nullopt;
  const auto time = active(now);
  if (limits_.hard && time >= *limits_.hard) return limits_.hard_kind;
  if (limits_.idle && time >= idle_end()) return TimeoutKind::idle;
  return std::nullopt;
}

std::optional<PauseReason> ActivityDeadline::paused_for() const noexcept {
  for (std::size_t at = 0; at < holds_by_reason_.size(); ++at) {
    if (holds_by_reason_[at] > 0) return static_cast<PauseReason>(at);
  }
  return std::nullopt;
}

Millis ActivityDeadline::active(Instant now) const noexcept {
  const auto until = paused() ? std::min(now, paused_since_) : now;
  return std::max(until - start_ - left_out_, Millis{0});
}

Millis ActivityDeadline::since_progress(Instant now) const noexcept {
  return std::max(active(now) - progress_at_, Millis{0});
}

Millis ActivityDeadline::in_pauses(Instant now) const noexcept {
  return pauses_ + (paused() ? std::max(now - paused_since_, Millis{0}) : Millis{0});
}

}  // namespace watchdog
