/// \file
/// What a session's events amount to: bounded, additive, rebuilt from the events at any time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/budget.h"
#include "watchdog/names.h"
#include "watchdog/pace.h"
#include "watchdog/policy.h"
#include "watchdog/repetition.h"
#include "watchdog/report.h"
#include "watchdog/time.h"

namespace watchdog {

/// Written by explicit reports only. An end is final for its attempt.
enum class Lifecycle : std::uint8_t {
  running,
  waiting,
  idle,
  completed,
  failed,
  incomplete,
  cancelled
};

template <>
struct Names<Lifecycle> {
  static constexpr std::string_view all[] = {"running", "waiting",    "idle",     "completed",
                                             "failed",  "incomplete", "cancelled"};
};

[[nodiscard]] constexpr bool is_end(Lifecycle lifecycle) noexcept {
  return lifecycle >= Lifecycle::completed;
}
[[nodiscard]] constexpr Lifecycle lifecycle_of(OutcomeKind outcome) noexcept {
  return static_cast<Lifecycle>(static_cast<int>(Lifecycle::completed) + static_cast<int>(outcome));
}

/// A value kept elsewhere until it is first edited. Copies deeply. A plain value.
template <class T>
class Boxed {
 public:
  Boxed() = default;
  Boxed(const Boxed& other) : box_(other.box_ ? std::make_unique<T>(*other.box_) : nullptr) {}
  Boxed& operator=(const Boxed& other) {
    if (this != &other) box_ = other.box_ ? std::make_unique<T>(*other.box_) : nullptr;
    return *this;
  }
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(Boxed&&) noexcept = default;
  ~Boxed() = default;

  /// The value, or a default one where none was ever edited.
  [[nodiscard]] const T& operator*() const noexcept {
    static const T untouched{};
    return box_ ? *box_ : untouched;
  }
  [[nodiscard]] const T* operator->() const noexcept { return &**this; }
  /// Whether it was ever edited.
  [[nodiscard]] bool has() const noexcept { return box_ != nullptr; }
  [[nodiscard]] T& edit() {
    if (!box_) box_ = std::make_unique<T>();
    return *box_;
  }
  /// A default value takes no room.
  void set(T value) { box_ = value == T{} ? nullptr : std::make_unique<T>(std::move(value)); }

 private:
  std::unique_ptr<T> box_;
};

/// What not every call has; kept apart so that the others stay small.
struct CallNotes {
  Millis deadline{};          ///< Without progress; 0: the policy's `call_idle_max`.
  std::string turn;           ///< The turn it belongs to; empty: none was named.
  std::int64_t accepted = 0;  ///< How often it got further so far.
  std::string said;           ///< What it said last of its progress; the first 64 characters.
};

/// A tool call without its result.
struct OpenCall {
  std::string name;  ///< Its first 64 bytes, as of the next one.
  std::string call_id;
  Seq seq = 0;
  Instant since{};
  std::optional<std::int64_t> iteration;  ///< The session's iteration when it began.
  CallMark mark;
  /// Later calls that finished before it. Then its result is not waited for: it was lost.
  std::uint8_t passed = 0;
  static constexpr std::uint8_t passed_max = 8;
  Boxed<CallNotes> notes;
};

/// A turn that has begun and is not over.
struct OpenTurn {
  std::string id;
  std::string parent;  ///< Empty: none.
  std::int32_t depth = 0;
  Instant since{};
  WallTime at{};           ///< The same by the wall.
  std::int64_t calls = 0;  ///< Tool calls begun in it.
  bool aborting = false;   ///< It is to stop.
};
inline constexpr std::size_t open_turns_max = 16;

/// Longest gap between heartbeats among the last 50 to 59: six buckets of ten.
class GapWindow {
 public:
  static constexpr std::size_t bucket_count = 6;
  static constexpr std::int64_t per_bucket = 10;
  void add(Millis gap, std::int64_t count);
  [[nodiscard]] Millis longest() const noexcept;

  std::array<std::int32_t, bucket_count> buckets{};  ///< ms
  std::uint8_t at = 0;
  std::uint8_t filled = 0;
};

/// What was said of the session's progress since something was last new. One vote a source: the
/// agent itself, and models.
struct Opinions {
  Verdict newest = Verdict::none;
  std::int32_t looping = 0;  ///< How often a model said so,
  std::int32_t blocked = 0;  ///< or so; with a confidence of at least 0.9 it counts twice.
  bool self = false;         ///< The agent says of itself that it gets nowhere.
  Seq seq = 0;               ///< The newest.
};

/// A suspicion as far as it went.
struct Suspicion {
  Seq seq = 0;               ///< Where it began; 0: there is none.
  std::int64_t further = 0;  ///< Heartbeats of the loop and rounds since, with nothing new.
};

/// What a session waits for while a model's server cannot be asked. Unlike other waits it also ends
/// when a counter rises.
inline constexpr std::string_view backend = "backend";

/// What the session said last of its budget.
struct BudgetNote {
  BudgetFigures figures;
  WallTime at{};
};

/// What was said last of the model's server and one open request.
struct ServerNote {
  std::string request;  ///< The reports' call id, its first 64 characters; empty: not named.
  Evidence evidence;
  std::string why;  ///< The proof for people, its first 200 characters.
  Seq seq = 0;
  Instant since{};  ///< When this state began.
};
inline constexpr std::size_t server_notes_max = 8;

/// Facts few sessions have; kept apart so that the others stay small.
struct Notes {
  std::string waiting_for;
  Seq wait_seq = 0;
  Instant wait_since{};
  std::optional<std::int64_t> wait_iteration;
  std::optional<Outcome> outcome;
  WallTime outcome_at{};
  std::optional<CancelRequest> cancel;
  Seq exited_seq = 0;     ///< Its process is known to be gone.
  Instant quiet_until{};  ///< It said that it may be quiet until then.
  Opinions opinions;
  Suspicion suspicion;
  Boxed<BudgetNote> budget;
  Boxed<std::vector<OpenTurn>> turns;  ///< Oldest first, at most `open_turns_max`.
  /// A request each, the oldest first, at most `server_notes_max`.
  Boxed<std::vector<ServerNote>> server;
  Instant relay_at{};  ///< Whoever relays its requests was heard; zero: nobody beats for that.
};

/// When the observer was away last.
struct Absence {
  Instant back{};
  Millis gap{};
};

/// A digest of the machine and boot that a process belongs to.
[[nodiscard]] std::uint64_t machine_of(const ProcessFacts& process);

/// The bounded summary of one session's events that judging goes by. A plain value. Its size does
/// not depend on how long the session runs.
struct History {
  Seq seq = 0;     ///< The newest event in it.
  Instant tick{};  ///< That event's tick.
  WallTime at{};   ///< That event's wall time.
  Lifecycle lifecycle = Lifecycle::running;
  std::uint8_t periodic_beats = 0;  ///< Heartbeats of a helper; counted to 2.
  bool gives_position = false;      ///< Some heartbeat had an iteration or a phase.
  bool said_something = false;      ///< The agent reported more than its start.
  GapWindow gaps;                   ///< Between a helper's heartbeats.

  std::int64_t heartbeats = 0;
  std::int64_t state_changes = 0;  ///< Finished tool calls among them.

  std::int32_t loop_beats_since_change = 0;
  std::int32_t loop_beats_since_rise = 0;  ///< Since a counter rose.
  Seq streak_seq = 0;                      ///< First loop heartbeat since the newest state change.
  Seq change_seq = 0;                      ///< The newest state change.

  Instant last_sign{};  ///< The newest of anything that the agent itself said.
  Seq sign_seq = 0;     ///< That event.
  Instant last_beat{};
  Instant last_change{};
  Instant last_rise{};
  Instant last_periodic{};  ///< Newest heartbeat of a helper.
  Instant pace_from{};      ///< When what it does now began.

  std::string last_change_type;
  std::string phase;
  std::optional<std::int64_t> iteration;
  Boxed<Counters> counters;
  Boxed<std::vector<OpenCall>> open_calls;  ///< Oldest first, at most `open_calls_max`.

  std::int32_t attempt = 1;
  std::int32_t pid = 0;  ///< 0: unknown. With the next two: who runs it.
  std::int64_t start_ticks = 0;
  std::uint64_t machine = 0;  ///< See machine_of().

  Boxed<Notes> notes;
  Boxed<Absence> absence;
  Boxed<Repetition> repetition;
  Boxed<Pace> pace;
};

inline constexpr std::size_t open_calls_max = 32;

/// Folds one event of the session, or one of the observer, into its history. Late events change
/// nothing but `seq`. Ticks never run backwards, because the store's do not.
void apply(History& history, const Event& event, const Policy& policy);

/// The open turn of that id; null: there is none.
[[nodiscard]] const OpenTurn* find_turn(const History& history, std::string_view id) noexcept;
/// The newest running call of a turn; null: none runs.
[[nodiscard]] const OpenCall* newest_call(const History& history, std::string_view turn) noexcept;

/// What is known of the model's server. Of several requests the one that is best off counts: a
/// session is only stuck where none of them moves. Null: none is open.
[[nodiscard]] const ServerNote* server_note(const History& history) noexcept;
/// The same within bounds: 10^12 tokens, a week.
[[nodiscard]] Evidence bounded(const Evidence& evidence) noexcept;

/// True if something new happened after that event: what was thought of the session up to it is out
/// of date.
[[nodiscard]] bool is_outdated(const History& history, Seq seen) noexcept;

/// True if these heartbeats count for the base rule, given what the session said before; how many.
[[nodiscard]] std::int64_t loop_beats_in(const History& before, const Beats& beats) noexcept;

}  // namespace watchdog
