/// \file
/// The summary of a session's events: bounded, additive, rebuilt from the events at any time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/budget.h"
#include "watchdog/policy.h"
#include "watchdog/repetition.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// The bounds from which an activity is slow, and suspect.
struct PaceBounds {
  Millis usual{};    ///< The expected median.
  Millis slow{};     ///< From then on it is slow.
  Millis suspect{};  ///< From then on it is suspect.
  /// The median of its own intervals alone; empty: there are fewer than `pace_history_min`.
  std::optional<Millis> own{};
};
inline constexpr int pace_history_min =
    3;  ///< Intervals of its own from which a session has a pace of its own.

/// Intervals between changes, for each activity: a phase or a tool. Their logarithms are treated as
/// normally distributed, because intervals of agents spread over magnitudes. Eight pseudo-samples
/// of the policy's usual interval represent an unknown session; beyond 200 samples old ones fade. A
/// plain value of at most 1 KiB.
class Pace {
 public:
  static constexpr std::size_t kinds_max = 32;  ///< Separate activities, at most.

  /// Returns the key of a phase or a tool.
  [[nodiscard]] static std::uint32_t kind_of_phase(std::string_view phase) noexcept;
  /// Returns the key of a tool.
  [[nodiscard]] static std::uint32_t kind_of_tool(std::string_view tool) noexcept;

  /// Adds an interval of an activity.
  void add(std::uint32_t kind, Millis interval);
  /// Returns the bounds of an activity.
  [[nodiscard]] PaceBounds bounds(std::uint32_t kind, const Policy& policy) const noexcept;
  /// Returns how surprising the duration of an activity is by the same bounds: −log10 of the share
  /// of longer intervals. 0 … `phi_max`, always finite.
  [[nodiscard]] double phi(std::uint32_t kind, Millis elapsed, const Policy& policy) const noexcept;
  static constexpr double phi_max = 99;  ///< The largest value of `phi`.

  /// Mean and sum of squared deviations of ln(seconds), in Welford's form.
  struct Samples {
    std::uint32_t kind = 0;  ///< The activity.
    float count = 0;         ///< The number of samples, old ones faded.
    float mean = 0;          ///< Their mean.
    float deviations = 0;    ///< The sum of squared deviations.
  };
  /// The last one is for all kinds beyond the limit.
  std::vector<Samples> samples;

 private:
  /// The expected ln(seconds).
  struct Expectation {
    double centre = 0;
    double spread = 0;
    double usual = 0;      ///< The policy's own.
    bool quicker = false;  ///< Than that, by its samples alone.
  };
  [[nodiscard]] Expectation expected(std::uint32_t kind, const Policy& policy) const noexcept;
};

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

/// Returns true for a lifecycle that is an end.
[[nodiscard]] constexpr bool is_end(Lifecycle lifecycle) noexcept {
  return lifecycle >= Lifecycle::completed;
}
/// Returns the lifecycle of a session that ended so.
[[nodiscard]] constexpr Lifecycle lifecycle_of(OutcomeKind outcome) noexcept {
  return static_cast<Lifecycle>(static_cast<int>(Lifecycle::completed) + static_cast<int>(outcome));
}

/// A value on the heap that exists only once it was edited. Copies deeply. A plain value.
template <class T>
class Boxed {
 public:
  Boxed() = default;
  /// Copies the value.
  Boxed(const Boxed& other) : box_(other.box_ ? std::make_unique<T>(*other.box_) : nullptr) {}
  /// Copies the value.
  Boxed& operator=(const Boxed& other) {
    if (this != &other) box_ = other.box_ ? std::make_unique<T>(*other.box_) : nullptr;
    return *this;
  }
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(Boxed&&) noexcept = default;
  ~Boxed() = default;

  /// Returns the value, or a default one if none was edited.
  [[nodiscard]] const T& operator*() const noexcept {
    static const T untouched{};
    return box_ ? *box_ : untouched;
  }
  /// Accesses the value, or a default one.
  [[nodiscard]] const T* operator->() const noexcept { return &**this; }
  /// Returns whether it was ever edited.
  [[nodiscard]] bool has() const noexcept { return box_ != nullptr; }
  /// Returns the value for changes; makes a default one if there is none.
  [[nodiscard]] T& edit() {
    if (!box_) box_ = std::make_unique<T>();
    return *box_;
  }
  /// A default value takes no memory.
  void set(T value) { box_ = value == T{} ? nullptr : std::make_unique<T>(std::move(value)); }

 private:
  std::unique_ptr<T> box_;
};

/// Facts that few calls have; kept apart so that the others stay small.
struct CallNotes {
  Millis deadline{};          ///< Without progress; 0: the policy's `call_idle_max`.
  std::string turn{};         ///< The turn of the call; empty: unknown.
  std::int64_t accepted = 0;  ///< The number of accepted progress reports.
  std::string said{};         ///< The first 64 characters of its newest progress message.
  Millis waited{};            ///< How long a person or a limit held it up.
  std::string seen{};         ///< What the monitor sees of it, see call_reports; its first 200
                              ///< characters. Empty: nothing, or that it works.
  std::string command{};      ///< Of a shell: the command's first 60 bytes.
};

/// A number of an iteration, or none. Half the size of an `optional`: a session may have many.
struct CallIteration {
  static constexpr std::int64_t none = INT64_MIN;  ///< No agent counts so far down.
  std::int64_t number = none;                      ///< The number.

  CallIteration() = default;
  /// The number, if there is one.
  CallIteration(const std::optional<std::int64_t>& from) noexcept : number(from.value_or(none)) {}
  /// The reverse.
  [[nodiscard]] operator std::optional<std::int64_t>() const noexcept {
    return number == none ? std::nullopt : std::optional(number);
  }
};

/// A tool call without its result.
struct OpenCall {
  PackedText name{};          ///< Its first 64 bytes, as of the next one.
  PackedText call_id{};       ///< Pairs it with its result.
  Seq seq = 0;                ///< The event of its start.
  Instant since{};            ///< When it began.
  CallIteration iteration{};  ///< The session's iteration when it began.
  CallMark mark{};            ///< How it counts.
  /// Later calls that finished before it. At `passed_max` its result counts as lost.
  std::uint8_t passed = 0;
  static constexpr std::uint8_t passed_max = 8;  ///< See `passed`.
  Boxed<CallNotes> notes{};                      ///< Facts that few calls have.

  /// Returns when it would have begun if nothing had held it up.
  [[nodiscard]] Instant worked_from() const noexcept { return since + notes->waited; }
};

/// An open turn.
struct OpenTurn {
  std::string id{};        ///< The turn's id.
  std::string parent{};    ///< Empty: none.
  std::int32_t depth = 0;  ///< The number of turns above it.
  Instant since{};         ///< When it began.
  WallTime at{};           ///< The same by the wall.
  std::int64_t calls = 0;  ///< Tool calls begun in it.
  bool aborting = false;   ///< It is being stopped.
};
inline constexpr std::size_t open_turns_max = 16;  ///< Open turns of a session, at most.

/// Longest gap between heartbeats among the last 50 to 59: six buckets of ten.
class GapWindow {
 public:
  static constexpr std::size_t bucket_count = 6;  ///< The number of buckets.
  static constexpr std::int64_t per_bucket = 10;  ///< Gaps of a bucket.
  /// Adds a row of `count` gaps, the longest of which is `gap`.
  void add(Millis gap, std::int64_t count);
  /// Returns the longest gap; 0: there is none.
  [[nodiscard]] Millis longest() const noexcept;

  std::array<std::int32_t, bucket_count> buckets{};  ///< ms
  std::uint8_t at = 0;                               ///< Index of the bucket in use.
  std::uint8_t filled = 0;                           ///< Gaps in that bucket.
};

/// The newest gap between heartbeats of a helper, or the newest row with its gaps. It counts at
/// once, but it joins the others only with the next heartbeat: an absence may be reported after it.
struct NewestGap {
  Instant from{};          ///< The heartbeat before.
  Instant to{};            ///< The newest one.
  Millis longest{};        ///< The longest gap between the two.
  std::int64_t count = 0;  ///< The number of gaps between the two; 0: no gap yet.
};

/// Judgements of the session's progress since something was last new. One vote for each source: the
/// agent itself, and models.
struct Opinions {
  Verdict newest = Verdict::none;  ///< The newest answer.
  std::int32_t looping = 0;        ///< The number of models' answers "looping",
  std::int32_t blocked = 0;  ///< and "blocked"; with a confidence of at least 0.9 one counts twice.
  bool self = false;         ///< The agent reports that it makes no progress.
  Seq seq = 0;               ///< The newest.
};

/// The state of a suspicion.
struct Suspicion {
  Seq seq = 0;               ///< The event where it began; 0: there is none.
  std::int64_t further = 0;  ///< Heartbeats of the loop and rounds since, with nothing new.
};

/// The subject of a wait for a model server. Unlike other waits it also ends when a counter rises,
/// and when the server accepts a request again.
inline constexpr std::string_view backend = "backend";

/// The newest budget figures of the session.
struct BudgetNote {
  BudgetFigures figures{};  ///< The figures.
  WallTime at{};            ///< When they were reported.
};

/// The newest report about the model server and one open request.
struct ServerNote {
  std::string request{};  ///< The reports' call id, its first 64 characters; empty: not named.
  Evidence evidence{};    ///< The newest report.
  std::string why{};      ///< The proof for people, its first 200 characters.
  Seq seq = 0;            ///< The event.
  Instant since{};        ///< When this state began.
};
inline constexpr std::size_t server_notes_max = 8;  ///< Open requests of a session, at most.

/// A finished call, as a sentence about calls names it.
struct RecentCall {
  PackedText name{};    ///< Its first 32 characters.
  bool failed = false;  ///< It returned an error.
};
inline constexpr std::size_t recent_calls_max = 8;  ///< Finished calls that are kept, at most.

/// Texts of a session's conversation, as its content level keeps them.
struct Words {
  std::string prompt{};  ///< The first line of its first prompt, its first 120 characters.
  std::string answer{};  ///< The newest message of the assistant, its first 200 characters.
  std::vector<RecentCall> recent{};  ///< The newest finished calls, the oldest first.
  std::string failure{};  ///< Of the newest one that failed: its error's first line, cut.
};

/// How the newest answer of the model ended, as the proxy saw it.
enum class AnswerEnd : std::uint8_t {
  usual,   ///< As answers end; or it is not known.
  length,  ///< At a limit of its length.
  calls    ///< For a call of a tool that the answer does not have.
};

template <>
struct Names<AnswerEnd> {
  static constexpr std::string_view all[] = {"usual", "length", "calls"};
};

/// The parts of the present turn that are open. A plain value.
struct LooseEnds {
  PlanItems plan{};                         ///< The plan, as this turn wrote it last.
  std::uint64_t tasks_over = 0;             ///< A bit for each task of it that is over: 1 to 64.
  bool promises = false;                    ///< Its newest message announces an act; none followed.
  AnswerEnd answer_end = AnswerEnd::usual;  ///< How the model's newest answer ended.

  friend bool operator==(const LooseEnds&, const LooseEnds&) = default;
};

/// A question to a person that is not answered yet.
struct OpenAsk {
  std::uint64_t id = 0;     ///< Digest of its wait's event id; 0: it has none.
  std::uint64_t call = 0;   ///< Digest of the call that it is about; 0: not named.
  Seq open_call = 0;        ///< As `Notes::wait_call`.
  Seq seq = 0;              ///< Its wait.
  Instant since{};          ///< When it was asked.
  std::string waits_for{};  ///< As `Notes::waiting_for`.
  std::string why{};        ///< As `Notes::wait_why`.
};
/// Open questions of a session, at most.
inline constexpr std::size_t open_asks_max = 8;

/// Facts that few sessions have; kept apart so that the others stay small.
struct Notes {
  std::string waiting_for{};  ///< The subject of its wait; empty: it does not wait.
  std::string wait_why{};     ///< The question or cause; of a model server its name and error; the
                              ///< first 200 characters. Empty: unknown.
  std::optional<WallTime> wait_until{};  ///< When it ends, if that is known.
  std::string wait_provider{};           ///< Whose limit it waits for, the first 64 characters.
  Seq wait_seq = 0;                      ///< The event that declared the wait.
  Instant wait_since{};                  ///< When it began.
  Instant paused_at{};  ///< Since then it does not work but waits, for one thing after another.
  std::optional<std::int64_t> wait_iteration{};  ///< The iteration then.
  Seq wait_call = 0;  ///< The open call that a person must allow or answer; 0: not named.
  Boxed<std::vector<OpenAsk>> asks{};  ///< Of this wait, oldest first, at most `open_asks_max`.
  /// Why the session is idle, one of idle_reports, and of a failure its cause: `error: HTTP 400`;
  /// the first 200 characters. Empty: its answer is complete.
  std::string idle_why{};
  std::optional<Outcome> outcome{};  ///< How it ended; empty: it runs.
  WallTime outcome_at{};             ///< When it ended.
  /// A person acknowledged the end, or the present trouble. The store knows, and no event.
  bool acknowledged = false;
  std::optional<CancelRequest> cancel{};  ///< The newest request to stop.
  Seq exited_seq = 0;                     ///< Its process is known to be gone.
  Instant quiet_until{};                  ///< Until then the session announced to be quiet.
  Opinions opinions{};                   ///< Answers of models and of the agent about its progress.
  Suspicion suspicion{};                 ///< The present suspicion.
  Boxed<BudgetNote> budget{};            ///< The newest figures.
  Boxed<std::vector<OpenTurn>> turns{};  ///< Oldest first, at most `open_turns_max`.
  /// One for each request, the oldest first, at most `server_notes_max`.
  Boxed<std::vector<ServerNote>> server{};
  Instant process_lost{};  ///< Since then its process is a different one, which is not known yet.
  bool process_found = false;  ///< Hooks or the proxy found its process, see found_process.
  Instant relay_at{};          ///< The newest report of its relay; zero: no relay sends heartbeats.
  std::int32_t wasted_calls = 0;  ///< Of the loop it was in when it ended; 0: it was in none.
  Boxed<Words> words{};           ///< Texts of its conversation.
  LooseEnds loose_ends{};         ///< The parts of the present turn that are open.
};

/// A time in which the observer was away.
struct Absence {
  Instant back{};  ///< When the observer was back.
  Millis gap{};    ///< How long it was away.
};

/// A kind of fact that a source may have told: calls while they run, tokens, questions to a person,
/// the end, or what the model server does. Its number is stored: append only.
enum class Told : std::uint8_t { calls, tokens, questions, end, server };

template <>
struct Names<Told> {
  static constexpr std::string_view all[] = {"calls", "tokens", "questions", "end", "server"};
};

/// The reports of one origin.
struct SourceNote {
  ReportOrigin origin = ReportOrigin::unknown;  ///< The origin.
  std::int64_t reports = 0;                     ///< The number of reports, each heartbeat counted.
  WallTime first{};                             ///< When the first one came.
  WallTime last{};                              ///< When the newest one came.
  std::uint8_t told = 0;                        ///< A bit for each `Told` that it reported.
};

/// The reports of each origin, in the order of their first ones. One origin needs no block, because
/// most sessions have one. A plain value.
class SourceNotes {
 public:
  /// Returns the note of an origin; a new one has no reports yet.
  SourceNote& note(ReportOrigin origin);
  /// Replaces all. Notes without reports are left out.
  void set(const std::vector<SourceNote>& notes);

  /// Returns the number of origins.
  [[nodiscard]] std::size_t size() const noexcept {
    return more_.empty() ? (only_.reports > 0 ? 1U : 0U) : more_.size();
  }
  /// Returns whether nothing was reported.
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  /// Returns the first note.
  [[nodiscard]] const SourceNote* begin() const noexcept {
    return more_.empty() ? &only_ : more_.begin();
  }
  /// Returns the place behind the last note.
  [[nodiscard]] const SourceNote* end() const noexcept { return begin() + size(); }
  /// Returns a note. REQUIRES: `at` is less than `size()`.
  [[nodiscard]] const SourceNote& operator[](std::size_t at) const noexcept { return begin()[at]; }

 private:
  SourceNote only_{};
  Packed<SourceNote> more_{};  ///< All notes, once there are two.
};

/// A digest of the machine and boot that a process belongs to.
[[nodiscard]] std::uint64_t machine_of(const ProcessFacts& process);

/// The bounded summary of one session's events that the judge uses. A plain value. Its size does
/// not depend on the session's length.
struct History {
  Seq seq = 0;                               ///< The newest event in it.
  Instant tick{};                            ///< That event's tick.
  WallTime at{};                             ///< That event's wall time.
  Lifecycle lifecycle = Lifecycle::running;  ///< As the agent reported it.
  std::uint8_t periodic_beats = 0;           ///< Heartbeats of a helper; counted up to 2.
  bool gives_position = false;               ///< Some heartbeat had an iteration or a phase.
  bool said_something = false;               ///< The agent reported more than its start.
  GapWindow gaps{};                          ///< Between a helper's heartbeats, but the newest.
  NewestGap newest_gap{};                    ///< The newest of them.

  std::int64_t heartbeats = 0;     ///< All heartbeats.
  std::int64_t state_changes = 0;  ///< Finished tool calls among them.

  std::int32_t loop_beats_since_change = 0;  ///< Loop heartbeats since the newest state change.
  std::int32_t loop_beats_since_rise = 0;    ///< Since a counter rose.
  Seq streak_seq = 0;  ///< First loop heartbeat since the newest state change.
  Seq change_seq = 0;  ///< The newest state change.

  Instant last_sign{};      ///< The newest report of the agent itself.
  Seq sign_seq = 0;         ///< That event.
  Instant last_beat{};      ///< The newest heartbeat.
  Instant last_change{};    ///< The newest state change.
  Instant last_rise{};      ///< When a counter rose last.
  Instant last_periodic{};  ///< Newest heartbeat of a helper.
  Instant pace_from{};      ///< When its present activity began.

  std::string last_change_type{};             ///< Its type.
  std::string phase{};                        ///< The newest phase.
  std::optional<std::int64_t> iteration{};    ///< The newest iteration.
  Boxed<Counters> counters{};                 ///< The newest values.
  Boxed<std::vector<OpenCall>> open_calls{};  ///< Oldest first, at most `open_calls_max`.

  std::int32_t attempt = 1;      ///< The number of its attempt, from 1.
  std::int32_t pid = 0;          ///< 0: unknown. With the next two: its process.
  std::int64_t start_ticks = 0;  ///< See ProcessFacts.
  std::uint64_t machine = 0;     ///< See machine_of().

  Boxed<Notes> notes{};  ///< Facts that few sessions have.
  Boxed<std::vector<Absence>>
      absences{};                  ///< Of the observer. Oldest first, at most `absences_max`.
  Boxed<Repetition> repetition{};  ///< See Repetition.
  Boxed<Pace> pace{};              ///< How long its activities take.
  /// Each origin that reported, in the order of their first reports; of all attempts.
  SourceNotes sources{};
};

inline constexpr std::size_t open_calls_max = 32;  ///< Open calls of a session, at most.
/// Of more absences the two oldest count as one.
inline constexpr std::size_t absences_max = 4;

/// Folds one event of the session, or one of the observer, into its history. Late events change
/// nothing but `seq`. Ticks never run backwards, because the store's do not.
void apply(History& history, const Event& event, const Policy& policy);

/// Returns the open turn of that id, or null.
[[nodiscard]] const OpenTurn* find_turn(const History& history, std::string_view id) noexcept;
/// Returns the newest running call of a turn; null: none runs.
[[nodiscard]] const OpenCall* newest_call(const History& history, std::string_view turn) noexcept;

/// Returns the newest report about the model server. Of several requests the one in the best state
/// counts: a session is stuck only if none of them moves. Null: none is open.
[[nodiscard]] const ServerNote* server_note(const History& history) noexcept;
/// Returns the evidence within bounds: 10^12 tokens, a week.
[[nodiscard]] Evidence bounded(const Evidence& evidence) noexcept;

/// Returns true if something new happened after that event: judgements from before it are then out
/// of date.
[[nodiscard]] bool is_outdated(const History& history, Seq seen) noexcept;

/// Returns how many of these heartbeats count for the base rule, given the earlier history.
[[nodiscard]] std::int64_t loop_beats_in(const History& before, const Heartbeats& beats) noexcept;

}  // namespace watchdog
