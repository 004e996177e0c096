/// \file
/// How long a tool call may go without progress before its caller gets control back. A deadline
/// ends the waiting for one call, and never a run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/names.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// What ran out. `idle`: no accepted progress for so long. `hard`: the whole time. `queue`: it
/// never began. `budget`: the run's own enforced time. `ceiling`: the net below a tool that manages
/// its own time.
enum class TimeoutKind : std::uint8_t { idle, hard, queue, budget, ceiling };

template <>
struct Names<TimeoutKind> {
  static constexpr std::string_view all[] = {"idle", "hard", "queue", "budget", "ceiling"};
};

/// While one of them holds, no deadline runs.
enum class PauseReason : std::uint8_t {
  awaiting_confirmation,
  awaiting_input,
  rate_limited,
  host_stall
};

template <>
struct Names<PauseReason> {
  static constexpr std::string_view all[] = {"awaiting_confirmation", "awaiting_input",
                                             "rate_limited", "host_stall"};
};

/// Whose word progress is. `trusted`: this process counts it (bytes of a subprocess, a tool's own
/// code). `declared`: somebody remote says so; then there always is a hard limit.
enum class ProgressTrust : std::uint8_t { trusted, declared };

/// Longer is refused: a mistake in units, most likely.
inline constexpr Millis deadline_max{24LL * 3'600'000};
/// Of a call whose progress is only declared, where nobody set another hard limit.
inline constexpr Millis declared_hard_max{3'600'000};

/// What a tool's author says of its deadlines. Empty: no word on it; 0: none. A plain value.
struct DeadlinePolicy {
  std::optional<Millis> idle{};    ///< Longest time without accepted progress.
  std::optional<Millis> hard{};    ///< Longest time in all; progress does not move it.
  std::optional<Millis> soft{};    ///< After so long it is called slow; nothing else happens.
  bool extend_on_progress = true;  ///< False: `idle` is a plain timeout.
  ProgressTrust trust = ProgressTrust::trusted;
  /// The tool has its own timeout. Then only `ceiling` is a net below it; it should be longer than
  /// the tool's own by what it needs to clean up.
  bool tool_managed = false;
  std::optional<Millis> ceiling{};
};

/// Ready-made patience. `interactive`: 30 s idle and 45 s in all, for somebody who waits in front
/// of it. `autonomous`: 120 s idle. `batch`: 600 s idle.
enum class DeadlineProfile : std::uint8_t { autonomous, interactive, batch };

template <>
struct Names<DeadlineProfile> {
  static constexpr std::string_view all[] = {"autonomous", "interactive", "batch"};
};

/// What an owner configured. A plain value.
struct DeadlineSettings {
  DeadlineProfile profile = DeadlineProfile::autonomous;
  /// Instead of the profile's `idle`, for tools that say nothing themselves; 0: none.
  std::optional<Millis> timeout{};
  std::string timeout_origin = "configuration";  ///< Who set it, for the provenance.
  /// Of single tools, whatever they say themselves; 0: none.
  std::map<std::string, Millis, std::less<>> per_tool{
      {"browser", Millis{180'000}}, {"web_fetch", Millis{60'000}}, {"web_search", Millis{60'000}}};
  Millis hint_max{3'600'000};  ///< A model may ask for so much at most.
};

/// Errors: `invalid`, naming the value: negative, or above `deadline_max`.
[[nodiscard]] Result<void> check(const DeadlineSettings& settings);
[[nodiscard]] Result<void> check(const DeadlinePolicy& policy);

/// What a model asked for among a call's arguments. A plain value.
struct TimeoutHint {
  std::optional<Millis> timeout{};
  std::string note{};  ///< Why something that looked like a hint was ignored; empty: nothing was.
};

/// Reads `_meta.timeout`, else `_timeout` (ms), else `timeout` (ms) where the tool declares an
/// argument of that name, and takes out of the arguments what the tool does not declare.
/// `arguments`: a JSON object as text; left alone where it is none. `declares`: names of the tool's
/// own arguments.
[[nodiscard]] TimeoutHint take_hint(std::string& arguments,
                                    const std::vector<std::string>& declares);

/// What holds for one call. A plain value.
struct ResolvedDeadline {
  std::optional<Millis> idle{};
  std::optional<Millis> hard{};
  std::optional<Millis> soft{};
  TimeoutKind hard_kind = TimeoutKind::hard;  ///< What it is called when `hard` runs out.
  bool extend_on_progress = true;
  std::string provenance;  ///< Who had a say, in order: `default < tool < hint < cap`.
  std::string note;        ///< For the model: what of its hint was changed; empty: nothing.
};

/// Who else bounds a call besides its tool. Empty: nobody. A plain value.
struct DeadlineBounds {
  std::optional<Millis> cap{};     ///< The caller's.
  std::optional<Millis> budget{};  ///< What the run's enforced time allows.
  std::optional<Millis> scope{};   ///< What is left of the turn's own deadline.
};

/// The one place where it is decided: default < profile < configured timeout < tool < configured
/// for this tool < the model's hint (from 1 s to `hint_max`), and no more than the bounds. Pure.
[[nodiscard]] ResolvedDeadline resolve(const DeadlineSettings& settings, std::string_view tool,
                                       const DeadlinePolicy& policy, const TimeoutHint& hint,
                                       const DeadlineBounds& bounds);

/// One call's deadline as time goes by. Limits count active time: pauses and stalls of the machine
/// are left out. A plain value; use from one thread at a time.
class ActivityDeadline {
 public:
  ActivityDeadline(ResolvedDeadline limits, Instant start);

  /// True if it was accepted: finite, and above every value before it. `idle` then begins anew.
  bool progress(double value, Instant now) noexcept;
  /// True if the total rose.
  bool progress_bytes(std::uint64_t total, Instant now) noexcept;

  /// Each reason counts its pauses; time goes on when all have been resumed. A `resume` too many is
  /// ignored.
  void pause(PauseReason reason, Instant now) noexcept;
  void resume(PauseReason reason, Instant now) noexcept;
  /// The machine stood still for so long; that counts for nobody. Without effect while paused.
  void compensate(Millis stall) noexcept;

  /// When it expires if nothing else happens; `never` while paused or without limits.
  [[nodiscard]] Instant next_expiry() const noexcept;
  [[nodiscard]] std::optional<TimeoutKind> expired(Instant now) const noexcept;
  [[nodiscard]] bool paused() const noexcept { return holds_ > 0; }
  [[nodiscard]] std::optional<PauseReason> paused_for() const noexcept;
  [[nodiscard]] Millis active(Instant now) const noexcept;
  [[nodiscard]] Millis since_progress(Instant now) const noexcept;
  [[nodiscard]] Millis in_pauses(Instant now) const noexcept;
  [[nodiscard]] std::int64_t accepted() const noexcept { return accepted_; }
  [[nodiscard]] std::int64_t rejected() const noexcept { return rejected_; }
  [[nodiscard]] std::optional<double> value() const noexcept { return value_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const ResolvedDeadline& limits() const noexcept { return limits_; }

 private:
  void accept(Instant now) noexcept;

  ResolvedDeadline limits_;
  Instant start_;
  Millis left_out_{};  ///< Of pauses that are over, and stalls.
  Instant paused_since_{};
  Millis progress_at_{};  ///< In active time.
  std::array<std::int32_t, 4> holds_by_reason_{};
  std::int32_t holds_ = 0;
  Millis pauses_{};
  std::optional<double> value_;
  std::uint64_t bytes_ = 0;
  std::int64_t accepted_ = 0;
  std::int64_t rejected_ = 0;
};

}  // namespace watchdog
