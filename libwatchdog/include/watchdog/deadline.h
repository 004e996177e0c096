/// \file
/// What may end a tool call: a tree of scopes in which a cancel goes down, and deadlines.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

struct Wakeup;
class WriteFence;

/// The party that cancelled.
enum class CancelOrigin : std::uint8_t {
  user,
  api,
  client_disconnect,
  parent,
  watchdog,
  deadline,
  budget,
  shutdown
};

template <>
struct Names<CancelOrigin> {
  static constexpr std::string_view all[] = {
      "user", "api", "client_disconnect", "parent", "watchdog", "deadline", "budget", "shutdown"};
};

/// The part of a run that a scope stands for.
enum class CancelScopeKind : std::uint8_t { call, wave, turn, run, process };

template <>
struct Names<CancelScopeKind> {
  static constexpr std::string_view all[] = {"call", "wave", "turn", "run", "process"};
};

/// Why a scope was cancelled. A plain value.
struct CancelReason {
  CancelOrigin origin = CancelOrigin::user;  ///< The party that cancelled.
  /// The scope of the cancel: this one, or one above it.
  CancelScopeKind scope = CancelScopeKind::run;
  std::string text{};  ///< The party and the cause, for people.
  /// If `origin` is `parent`: the party that cancelled above.
  std::optional<CancelOrigin> above{};
};

/// Returns the party that first cancelled, here or above.
[[nodiscard]] inline CancelOrigin first_origin(const CancelReason& why) noexcept {
  return why.above.value_or(why.origin);
}

/// A node of the tree. It is cancelled once and for good; the first reason stays. A cancel sets
/// flags and wakes waiting threads. Stop callbacks and `on_cancel` run on threads of their own, so
/// the caller of `cancel` may hold any lock and never waits. Thread-safe, except moving.
class CancelScope {
 public:
  /// Makes a scope without a parent.
  [[nodiscard]] static CancelScope root(CancelScopeKind kind = CancelScopeKind::run);
  /// A root that is cancelled with that token.
  [[nodiscard]] static CancelScope bound_to(const std::stop_token& stop, CancelReason reason,
                                            CancelScopeKind kind = CancelScopeKind::run);
  /// The same; `why` is called when it is cancelled, on the thread that requests the stop.
  [[nodiscard]] static CancelScope bound_to(const std::stop_token& stop,
                                            std::function<CancelReason()> why,
                                            CancelScopeKind kind = CancelScopeKind::run);
  /// Cancelled from the start if this one is.
  [[nodiscard]] CancelScope child(CancelScopeKind kind) const;
  CancelScope(CancelScope&&) noexcept;
  CancelScope& operator=(CancelScope&&) noexcept;
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;
  /// Cancels nothing. Scopes below it stay in the tree and follow their ancestors.
  ~CancelScope();

  /// Returns true if this call cancelled it; false if it was cancelled before.
  bool cancel(CancelReason reason) noexcept;
  /// Returns true once this scope or one above it was cancelled.
  [[nodiscard]] bool cancelled() const noexcept;
  /// Returns the reason. Below the cancelled scope, `origin` is `parent` and the text has the rest.
  [[nodiscard]] std::optional<CancelReason> reason() const;

  /// Requested some microseconds after `cancelled()` turned true.
  [[nodiscard]] std::stop_token token() const;
  /// A descriptor (eventfd) that becomes readable with the cancel and stays so; -1 if none is
  /// available. The scope owns it.
  [[nodiscard]] int wait_fd() const;

  /// A callback that runs once, with the cancel, or at once if that was before. Destroying the
  /// guard removes it, without waiting for a running one. Exceptions are dropped.
  class Guard {
   public:
    Guard() = default;
    ~Guard();
    Guard(Guard&&) noexcept;
    Guard& operator=(Guard&&) noexcept;

   private:
    friend class CancelScope;
    struct Entry;
    explicit Guard(std::shared_ptr<Entry> entry);
    std::shared_ptr<Entry> entry_;
  };
  /// Calls `call` once when the scope is cancelled; at once if it already is. The guard ends that.
  [[nodiscard]] Guard on_cancel(std::function<void(const CancelReason&)> call) const;

  /// Runs a clean-up that continues although the scope is cancelled. After `at_most` its token is
  /// requested and the wait ends. It runs on its own thread and must own what it uses. Returns true
  /// if it completed.
  static bool shielded(Millis at_most, std::function<void(std::stop_token)> cleanup);

 private:
  friend class CallBatch;
  struct Node;
  explicit CancelScope(std::shared_ptr<Node> node);
  void wake(std::weak_ptr<Wakeup> wakeup) const;
  /// Closes the fence with the cancel, before `cancel` returns, unless a deadline is the origin.
  void shuts(const WriteFence& fence) const;
  /// Returns pointers to this scope and its ancestors, usable as identities while the scopes live.
  [[nodiscard]] std::vector<const void*> lineage() const;
  struct Binding;
  std::shared_ptr<Node> node_;
  std::shared_ptr<Binding> binding_;
};

/// The limit that was reached. `idle`: no accepted progress for this time. `hard`: the whole time.
/// `queue`: the call never began. `budget`: the run's enforced time. `ceiling`: the limit above a
/// tool that manages its own time.
enum class TimeoutKind : std::uint8_t { idle, hard, queue, budget, ceiling };

template <>
struct Names<TimeoutKind> {
  static constexpr std::string_view all[] = {"idle", "hard", "queue", "budget", "ceiling"};
};

/// A deadline stands still while one of these holds.
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

/// The source of progress. `trusted`: this process counts it (bytes of a subprocess, a tool's own
/// code). `declared`: a remote party reports it; then there always is a hard limit.
enum class ProgressTrust : std::uint8_t { trusted, declared };

/// Longer values are refused: most likely a mistake in units.
inline constexpr Millis deadline_max{24LL * 3'600'000};
/// The hard limit of a call with declared progress if no other is set.
inline constexpr Millis declared_hard_max{3'600'000};

/// The deadlines that a tool's author declares. Empty: not declared; 0: none. A plain value.
struct DeadlinePolicy {
  std::optional<Millis> idle{};  ///< Longest time without accepted progress.
  std::optional<Millis> hard{};  ///< Longest time in all; progress does not move it.
  std::optional<Millis>
      soft{};  ///< After this time the call is reported as slow; nothing else happens.
  bool extend_on_progress = true;                ///< False: `idle` is a plain timeout.
  ProgressTrust trust = ProgressTrust::trusted;  ///< How far the tool's reports of progress count.
  /// The tool has its own timeout. Then only `ceiling` limits it. Set it longer than the tool's own
  /// timeout plus the time for its clean-up.
  bool tool_managed = false;
  std::optional<Millis> ceiling{};  ///< The longest time for a tool that manages its own.
};

/// Default limits. `interactive` allows 30 s without progress and 45 s in all, because a person
/// waits for the tool. Without progress `autonomous` allows 120 s, and `batch` allows 600 s.
enum class DeadlineProfile : std::uint8_t { autonomous, interactive, batch };

template <>
struct Names<DeadlineProfile> {
  static constexpr std::string_view all[] = {"autonomous", "interactive", "batch"};
};

/// The owner's configuration. A plain value.
struct DeadlineSettings {
  DeadlineProfile profile =
      DeadlineProfile::autonomous;  ///< The profile for tools without a policy.
  /// Replaces the profile's `idle` for tools that declare none; 0: none.
  std::optional<Millis> timeout{};
  std::string timeout_origin = "configuration";  ///< The source of `timeout`, for the provenance.
  /// For single tools, before their own declaration; 0: none.
  std::map<std::string, Millis, std::less<>> per_tool{
      {"browser", Millis{180'000}}, {"web_fetch", Millis{60'000}}, {"web_search", Millis{60'000}}};
  Millis hint_max{3'600'000};  ///< The longest time that a model may ask for.
};

/// Errors: `invalid`, naming the value: negative, or above `deadline_max`.
[[nodiscard]] Result<void> check(const DeadlineSettings& settings);
/// Checks a tool's policy. Errors: `invalid`, naming the field.
[[nodiscard]] Result<void> check(const DeadlinePolicy& policy);

/// The timeout that a model requests among a call's arguments. A plain value.
struct TimeoutHint {
  std::optional<Millis> timeout{};  ///< The timeout that the arguments name; empty: none.
  std::string note{};  ///< Why a hint was ignored, or how it was understood; empty: neither.
};

/// Reads `_meta.timeout`, else `_timeout` (ms), and removes those that the tool does not declare.
/// `takes_timeout`: see ToolSpec; then it also reads and removes `timeout_ms`, and the spellings of
/// other shells: `timeout`, `timeout_s`, `timeout_seconds`, … The note says how one was understood.
/// Otherwise a `timeout` among the arguments is the tool's own. `arguments`: a JSON object as text;
/// other text is not changed. `declares`: names of the tool's own arguments.
[[nodiscard]] TimeoutHint extract_hint(std::string& arguments,
                                       const std::vector<std::string>& declares,
                                       bool takes_timeout = false);
/// Its name before 0.2; goes with 0.3.
[[nodiscard]] inline TimeoutHint take_hint(std::string& arguments,
                                           const std::vector<std::string>& declares) {
  return extract_hint(arguments, declares);
}

/// The deadline of one call. A plain value.
struct ResolvedDeadline {
  std::optional<Millis> idle{};  ///< Without progress; empty: not limited.
  std::optional<Millis> hard{};  ///< Of the whole running time; empty: not limited.
  std::optional<Millis> soft{};  ///< After this time the call is reported as slow; empty: never.
  TimeoutKind hard_kind = TimeoutKind::hard;  ///< The kind to report when `hard` is reached.
  bool extend_on_progress = true;             ///< Accepted progress extends the hard limit.
  std::string
      provenance{};    ///< The sources of the deadline in order: `default < tool < hint < cap`.
  std::string note{};  ///< For the model: how its hint was changed; empty: it was not.
};

/// Limits of a call besides its tool's. Empty: none. A plain value.
struct DeadlineBounds {
  std::optional<Millis> cap{};     ///< The caller's.
  std::optional<Millis> budget{};  ///< The time that the run's budget enforces.
  std::optional<Millis> scope{};   ///< The rest of the turn's own deadline.
};

/// Computes a call's deadline: default < profile < configured timeout < tool < configured for this
/// tool < the model's hint (from 1 s to `hint_max`), and at most the bounds. Pure.
[[nodiscard]] ResolvedDeadline resolve(const DeadlineSettings& settings, std::string_view tool,
                                       const DeadlinePolicy& policy, const TimeoutHint& hint,
                                       const DeadlineBounds& bounds);

/// One call's deadline at run time. Limits count active time, without pauses and stalls of the
/// machine. A plain value; use from one thread at a time.
class ActivityDeadline {
 public:
  /// Starts counting at `start`.
  ActivityDeadline(ResolvedDeadline limits, Instant start);

  /// Returns true if the value was accepted: finite, and above every earlier value. `idle` then
  /// starts again.
  bool progress(double value, Instant now) noexcept;
  /// Returns true if the total rose. `is_new` false: it only counts.
  bool progress_bytes(std::uint64_t total, Instant now, bool is_new = true) noexcept;
  /// Progress of another kind, as the caller decides: `idle` starts again.
  void accept(Instant now) noexcept;

  /// The call's processes work, although it says nothing: `idle` starts again, and nothing is
  /// accepted. Without progress a call may take `put_off_max` times its `idle` in this way.
  void put_off(Instant now) noexcept;
  /// See put_off.
  static constexpr int put_off_max = 10;
  /// Returns true if processes put the deadline off since the newest accepted progress.
  [[nodiscard]] bool was_put_off() const noexcept { return put_off_at_ > progress_at_; }
  /// A report that says nothing new: it is counted as rejected.
  void reject() noexcept { ++rejected_; }

  /// Each reason counts its pauses; time continues when all have been resumed. Extra `resume` calls
  /// are ignored.
  void pause(PauseReason reason, Instant now) noexcept;
  /// Ends a pause for this reason.
  void resume(PauseReason reason, Instant now) noexcept;
  /// Moves the deadline by a stall of the machine. No effect while paused.
  void compensate(Millis stall) noexcept;

  /// Returns when it expires without another event; `never` while paused or without limits.
  [[nodiscard]] Instant next_expiry() const noexcept;
  /// Returns the limit that has passed; nothing if none has.
  [[nodiscard]] std::optional<TimeoutKind> expired(Instant now) const noexcept;
  /// Returns true during a pause.
  [[nodiscard]] bool paused() const noexcept { return holds_ > 0; }
  /// Returns the reason of the present pause; nothing outside of one.
  [[nodiscard]] std::optional<PauseReason> paused_for() const noexcept;
  /// Returns the running time without pauses.
  [[nodiscard]] Millis active(Instant now) const noexcept;
  /// Returns the running time since the newest accepted progress, without pauses.
  [[nodiscard]] Millis since_progress(Instant now) const noexcept;
  /// Returns the sum of the pauses.
  [[nodiscard]] Millis in_pauses(Instant now) const noexcept;
  /// Returns the number of accepted reports of progress.
  [[nodiscard]] std::int64_t accepted() const noexcept { return accepted_; }
  /// Returns that number, and how often processes put the deadline off: all signs of work.
  [[nodiscard]] std::int64_t signs() const noexcept { return accepted_ + put_offs_; }
  /// Returns the number of rejected reports of progress.
  [[nodiscard]] std::int64_t rejected() const noexcept { return rejected_; }
  /// Returns the newest accepted value.
  [[nodiscard]] std::optional<double> value() const noexcept { return value_; }
  /// Returns the bytes of output so far.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Returns the limits.
  [[nodiscard]] const ResolvedDeadline& limits() const noexcept { return limits_; }

 private:
  [[nodiscard]] Millis idle_end() const noexcept;

  ResolvedDeadline limits_;
  Instant start_;
  Millis left_out_{};  ///< Of pauses that are over, and stalls.
  Instant paused_since_{};
  Millis progress_at_{};  ///< In active time.
  Millis put_off_at_{};   ///< Likewise; 0: never.
  std::array<std::int32_t, 4> holds_by_reason_{};
  std::int32_t holds_ = 0;
  Millis pauses_{};
  std::optional<double> value_;
  std::uint64_t bytes_ = 0;
  std::int64_t accepted_ = 0;
  std::int64_t rejected_ = 0;
  std::int64_t put_offs_ = 0;
};

}  // namespace watchdog
