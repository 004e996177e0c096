/// \file
/// What an agent says about a session, and the event it becomes once accepted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "watchdog/budget.h"
#include "watchdog/names.h"
#include "watchdog/policy.h"
#include "watchdog/time.h"

namespace watchdog {

/// Position of an event in its store: rises with each event, never reused.
using Seq = std::int64_t;
/// A session's number inside one store. Key 0 is the observer itself.
using SessionKey = std::int64_t;
inline constexpr SessionKey observer_key = 0;

enum class ReportKind : std::uint8_t {
  start,         ///< a process takes the session up; after an end it opens the next attempt
  heartbeat,     ///< "I am alive"
  state_change,  ///< "I got somewhere"
  tool_call,
  tool_result,
  error,  ///< a tool's result that is a failure
  message,
  wait,  ///< waits on purpose for somebody or something
  idle,  ///< the turn is done and nobody has asked for more
  user_input,
  compaction,  ///< the agent shortened its own context
  policy,      ///< thresholds changed while it runs
  cancel,      ///< somebody asks the agent to stop
  exited,      ///< the operating system says that the session's process is gone
  observer,    ///< the observer itself was away or late
  gap,         ///< reports that a full queue could not keep
  end,
  opinion,        ///< what a model, or the agent of itself, thinks of its progress
  chant,          ///< a stream of the model's text repeats itself
  retry,          ///< the model's newest answer is asked for again: it did not happen
  budget,         ///< what the session has used up of what it may use
  limit,          ///< an old time limit was passed; changes nothing
  turn,           ///< a turn begins, is to stop, or is over; `name` is one of turn_reports
  tool_progress,  ///< how far a running call is
  tool_timeout,   ///< nobody waits any longer for a call: an error instead of its result
  evidence        ///< what the model's server does with the session's request
};

template <>
struct Names<ReportKind> {
  static constexpr std::string_view all[] = {
      "start",    "heartbeat", "state_change",  "tool_call",    "tool_result", "error",  "message",
      "wait",     "idle",      "user_input",    "compaction",   "policy",      "cancel", "exited",
      "observer", "gap",       "end",           "opinion",      "chant",       "retry",  "budget",
      "limit",    "turn",      "tool_progress", "tool_timeout", "evidence"};
};

/// True for what ends a call that did not succeed.
[[nodiscard]] constexpr bool is_failure(ReportKind kind) noexcept {
  return kind == ReportKind::error || kind == ReportKind::tool_timeout;
}

/// Who sends a heartbeat: the agent's own loop; a helper that proves only that the process lives;
/// or who relays its requests, which proves that one is open. A relay's heartbeats stop with the
/// request, so that their end is no silence. `unsaid` counts as loop if its position is new or the
/// session never gives one.
enum class Source : std::uint8_t { unsaid, loop, sidecar, relay };

template <>
struct Names<Source> {
  static constexpr std::string_view all[] = {"unsaid", "loop", "sidecar", "relay"};
};

enum class OutcomeKind : std::uint8_t { completed, failed, incomplete, cancelled };

template <>
struct Names<OutcomeKind> {
  static constexpr std::string_view all[] = {"completed", "failed", "incomplete", "cancelled"};
};

/// Progress inside an operation (tokens, bytes, items): name and running total. At most
/// `counters_max` of them; more are dropped.
using Counters = std::vector<std::pair<std::string, double>>;
inline constexpr std::size_t counters_max = 16;

/// One heartbeat, or several of one source and phase folded into a row. Additive: `absorb` of two
/// neighbours says what the two said. A plain value.
struct Beats {
  std::int64_t count = 1;
  /// Ticks. In a report: since boot (the store adds its offset), or zero for "now".
  Instant first{};
  Instant last{};
  Millis max_gap{};  ///< Longest distance between two neighbours inside the row.
  /// When the first part of a merged row was stored: until then nobody knew of it. Zero: with the
  /// row.
  Instant told{};
  std::optional<std::int64_t> iteration_first;
  std::optional<std::int64_t> iteration;  ///< The newest.
  std::string phase;
  Source source = Source::unsaid;
  Counters counters;       ///< Newest values.
  std::int64_t fresh = 0;  ///< How many after the first came with a new iteration.
  std::int64_t quiet =
      0;  ///< How many came after the newest rise of a counter (or after the first).
};

/// True if both may stand in one row.
[[nodiscard]] bool same_row(const Beats& a, const Beats& b) noexcept;
/// Appends `next`, which came after everything in `row`. REQUIRES: same_row(row, next).
void absorb(Beats& row, const Beats& next);
/// True if a counter of `newer` is above its value in `older`, or is new and above zero.
[[nodiscard]] bool rises(const Counters& older, const Counters& newer) noexcept;

/// Facts about the process that runs a session; they let a monitor on the same machine see it die.
struct ProcessFacts {
  std::int64_t pid = 0;
  std::int64_t start_ticks = 0;  ///< Field 22 of /proc/PID/stat: tells a reused pid apart.
  std::string boot_id;
  std::string host;
  friend bool operator==(const ProcessFacts&, const ProcessFacts&) = default;
};

/// How a session ended. `reason` is a word for programs (see reasons.h), `error` a text for people.
struct Outcome {
  OutcomeKind kind = OutcomeKind::completed;
  std::string reason;
  std::string error;
  bool stated = true;  ///< False where the agent ended without saying how: then `completed`.
};

/// What somebody wants to stop: the session, one of its turns, or one call of a turn.
struct CancelRequest {
  std::string by;
  std::string reason;
  WallTime at{};     ///< When the store accepted it.
  std::string turn;  ///< Empty: the whole session.
  std::string call;  ///< Only this call of the turn. Empty: all of it.
};

/// What an agent is asked to do. A plain value.
struct Directive {
  static constexpr std::size_t aborts_max = 16;

  std::optional<CancelRequest> cancel;  ///< To stop.
  /// Turns and calls to stop, oldest first: until they are over, at most `aborts_max`.
  std::vector<CancelRequest> aborts;
};

/// What a report of kind `turn` says, by its name. Its `call_id` is the turn's id.
namespace turn_reports {
inline constexpr std::string_view turn_start = "turn_start";
inline constexpr std::string_view turn_abort = "turn_abort";  ///< it is being stopped
inline constexpr std::string_view turn_end = "turn_end";
}  // namespace turn_reports

/// Of a turn: an answer of the agent, with all calls and answers in between.
struct TurnFacts {
  std::string parent;  ///< The turn that began it; empty: none did.
  int depth = 0;       ///< How many turns are above it.
  /// Of an abort: user, timeout or error; of an end: completed or aborted.
  std::string reason;
  std::int64_t calls = 0;  ///< Of an end: how many it made.
};

/// How far a running call is. `content` of its report is its own short message.
struct ToolProgress {
  Millis elapsed{};
  std::optional<double> value{};
  std::optional<double> total{};
  std::int64_t bytes = 0;  ///< Of output so far.
  /// How often it got further so far. Only where this rises is the call quiet no longer.
  std::int64_t accepted = 0;
};

/// Which limit ended the waiting for a call. `content` of its report is what the model is told.
struct ToolTimeoutFacts {
  enum class Kind : std::uint8_t {
    idle,    ///< no progress for so long
    hard,    ///< it ran for so long
    queue,   ///< it could not begin for so long
    budget,  ///< what was left of the budget's time
    ceiling  ///< the net below a tool that keeps its own time
  };
  Kind kind = Kind::idle;
  Millis limit{};
  Millis elapsed{};
  bool still_running = false;  ///< Its work could not be stopped.
};

template <>
struct Names<ToolTimeoutFacts::Kind> {
  static constexpr std::string_view all[] = {"idle", "hard", "queue", "budget", "ceiling"};
};

/// One answer to "is it getting anywhere?". `none`: the answer could not be read.
enum class Verdict : std::uint8_t { none, A, B, C, D };

template <>
struct Names<Verdict> {
  static constexpr std::string_view all[] = {"inconclusive", "A", "B", "C", "D"};
};

/// How far a check has come: an opinion that a model was asked for.
enum class CheckState : std::uint8_t {
  done,
  pending,
  inconclusive,  ///< answered, but not with a letter
  failed,        ///< the model could not be asked, or gave no answer
  superseded     ///< something new happened before the answer came
};

template <>
struct Names<CheckState> {
  static constexpr std::string_view all[] = {"done", "pending", "inconclusive", "failed",
                                             "superseded"};
};

/// What somebody thinks of a session: A progressing, B looping, C blocked, D failed. `name` of its
/// report says who: `self` for the agent, else the model.
struct Opinion {
  Verdict verdict = Verdict::none;
  std::optional<double> confidence;     ///< Probability of the verdict, 0 … 1, where it is known.
  Seq seen = 0;                         ///< The newest event it knew of; 0: all before it.
  CheckState state = CheckState::done;  ///< Only what is done counts.
};

/// What a model's server does with one request.
enum class ServerState : std::uint8_t {
  over,       ///< nothing: the request is answered, or given up
  unknown,    ///< nothing is known of it yet, or the server tells nothing
  loading,    ///< it loads the model
  queued,     ///< the request waits for others that move
  reading,    ///< it reads the prompt
  writing,    ///< tokens come
  working,    ///< its process is busy, and tells nothing of how far it is
  quiet,      ///< nothing moves; not for long enough, or not surely enough, to call it hung
  hung,       ///< nothing moves, as two independent signs show
  restarted,  ///< it was started anew, and with that the request is lost
  gone        ///< it accepts no connections, or its process is gone
};

template <>
struct Names<ServerState> {
  static constexpr std::string_view all[] = {"over",    "unknown",   "loading", "queued",
                                             "reading", "writing",   "working", "quiet",
                                             "hung",    "restarted", "gone"};
};

/// True for what makes a request slow and nothing worse.
[[nodiscard]] constexpr bool is_busy(ServerState state) noexcept {
  return state >= ServerState::loading && state <= ServerState::working;
}

/// Evidence of a model's server. `content` of its report is the proof, a sentence for people.
struct Evidence {
  ServerState state = ServerState::unknown;
  std::int64_t done = 0;   ///< Of reading: tokens of the prompt; of writing: of the answer.
  std::int64_t total = 0;  ///< Of reading: of the whole prompt; 0: not known.
  std::optional<Millis>
      left{};  ///< Until the first token of the answer, where it can be estimated.

  friend bool operator==(const Evidence&, const Evidence&) = default;
};

/// An old time limit that was passed. `name` of its report says which: planning, implementation,
/// deployment, tool, task, health_attempts; or `began`, once, where a run is compared with them.
struct LimitPassed {
  std::string name;
  std::int64_t limit = 0;    ///< ms; of health_attempts: tries.
  std::int64_t reached = 0;  ///< Likewise.
  bool enforced = false;     ///< It ended the run.
};

/// What content is recognised by after it was cut. Made by `mark` from the whole content; what
/// changes by itself (white space, order of members, times) is left out. A plain value.
struct Marks {
  /// A member of arguments that are an object.
  struct Field {
    std::uint32_t name = 0;   ///< Digest of its name,
    bool atomic = false;      ///< The value is a number or one short word: a path, an id, a choice.
    std::uint64_t value = 0;  ///< Digest of it.

    friend bool operator==(const Field&, const Field&) = default;
  };

  static constexpr std::size_t shingles_max = 64;
  static constexpr std::size_t fields_max = 16;

  std::uint64_t identity = 0;  ///< 0: there was nothing to compare.
  std::uint64_t exact = 0;     ///< Of a result: the source's own digest of the whole; 0: none.
  bool informative =
      false;               ///< A result of at least 200 characters, an error of 32, a state of 64.
  bool malformed = false;  ///< Of arguments: they look like JSON and are not.
  bool unreachable = false;   ///< Of an error: rate limits and gateways, nothing the agent did.
  std::uint8_t chants = 0;    ///< Of a message: how often it begins to repeat itself; to 2.
  std::vector<Field> fields;  ///< Of arguments that are an object.
  /// Of arguments: the smallest digests of their words and pairs of words, ascending.
  std::vector<std::uint32_t> shingles;

  friend bool operator==(const Marks&, const Marks&) = default;
};

/// As bytes, to be stored; and back. Bytes of an unknown form give no marks.
[[nodiscard]] std::string encoded(const Marks& marks);
[[nodiscard]] std::optional<Marks> decoded_marks(std::string_view bytes);

struct ObserverGap {
  Millis gap{};
};
struct LostReports {
  std::int64_t count = 0;
};

/// What only some kinds carry: Beats with heartbeat, ProcessFacts with start and exited, Outcome
/// with end, CancelRequest with cancel, PolicyPatch with policy, ObserverGap with observer,
/// LostReports with gap, Opinion with opinion, BudgetFigures with budget, LimitPassed with limit,
/// TurnFacts with turn, ToolProgress with tool_progress, Evidence with evidence, Marks with
/// state_change, tool_call, tool_result, error, tool_timeout and message.
using Detail = std::variant<std::monostate, Beats, ProcessFacts, Outcome, CancelRequest,
                            PolicyPatch, ObserverGap, LostReports, Opinion, Marks, BudgetFigures,
                            LimitPassed, TurnFacts, ToolProgress, Evidence>;

/// What somebody says of a session. A plain value.
struct Report {
  ReportKind kind = ReportKind::heartbeat;
  std::string name;     ///< Tool, role of a message, type of a state change, what a wait waits for.
  std::string content;  ///< Arguments, data (both JSON where they parse), result or message.
  std::string call_id;  ///< Pairs a call with its result; of a turn: its id.
  std::string turn;     ///< Of a tool call: the id of the turn it belongs to; empty: of none.
  std::string hash;     ///< The source's own digest of the uncut content, where it sends one.
  std::string event_id;                ///< Makes ingestion idempotent; unique in the session.
  std::optional<std::int64_t> ts_ms;   ///< The source's own clock; kept and shown, never judged by.
  std::optional<WallTime> at;          ///< When it was said; the store's own time where empty.
  std::optional<Millis> deadline;      ///< Of a tool call: how long it may go without progress.
  std::optional<Millis> expect_quiet;  ///< It may well take so long until the next progress.
  std::uint64_t digest = 0;            ///< XXH3 of the whole content; set by `seal`.
  std::int64_t bytes = -1;             ///< Size of the whole content; set by `seal`.
  Detail detail;
  std::optional<ToolTimeoutFacts> timeout;  ///< Of a tool_timeout: beside its marks.
};

/// A report accepted: numbered, stamped, kept. A plain value.
struct Event {
  Seq seq = 0;
  SessionKey session = observer_key;
  Seq prev = 0;       ///< The session's event before this one.
  Instant tick{};     ///< What judging goes by.
  WallTime at{};      ///< What is shown.
  bool late = false;  ///< Arrived after the end of its attempt: kept, and changes nothing.
  Report report;
};

}  // namespace watchdog
