/// \file
/// Reports of an agent about a session, and the events that they become.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "watchdog/budget.h"
#include "watchdog/policy.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// Position of an event in its store: rises with each event, never reused.
using Seq = std::int64_t;
/// A session's number inside one store. Key 0 is the observer itself.
using SessionKey = std::int64_t;
inline constexpr SessionKey observer_key = 0;  ///< The key of the observer's own events.

/// The kind of a report. Its number is stored: append only.
enum class ReportKind : std::uint8_t {
  start,         ///< a process takes the session up; after an end it opens the next attempt
  heartbeat,     ///< "I am alive"
  state_change,  ///< the agent made progress
  tool_call,
  tool_result,
  error,  ///< a tool's result that is a failure
  message,
  wait,  ///< a declared wait
  idle,  ///< the turn is done and no input is open; see idle_reports
  user_input,
  compaction,  ///< the agent shortened its own context
  policy,      ///< thresholds changed while it runs
  cancel,      ///< a request to stop the agent
  exited,      ///< the operating system says that the session's process is gone
  observer,    ///< the observer itself was away or late
  gap,         ///< reports that a full queue could not keep
  end,
  opinion,  ///< a judgement of a model, or of the agent itself, about the session's progress
  text_repetition,          ///< a stream of the model's text repeats itself
  chant = text_repetition,  ///< Its name before 0.2; goes with 0.3.
  retry,                    ///< the model's newest answer is requested again: it does not count
  budget,                   ///< the session's use of its budget
  limit,                    ///< an old time limit was passed; no effect
  turn,           ///< a turn begins, is being stopped, or is over; `name` is one of turn_reports
  tool_progress,  ///< the progress of a running call
  tool_timeout,   ///< a call was given up: an error instead of its result
  evidence,       ///< the state of the model server for one request
  resume          ///< a wait is over; `name` is its subject, empty: any wait; see call_id
};

template <>
struct Names<ReportKind> {
  static constexpr std::string_view all[] = {
      "start",    "heartbeat", "state_change",  "tool_call",    "tool_result", "error",  "message",
      "wait",     "idle",      "user_input",    "compaction",   "policy",      "cancel", "exited",
      "observer", "gap",       "end",           "opinion",      "chant",       "retry",  "budget",
      "limit",    "turn",      "tool_progress", "tool_timeout", "evidence",    "resume"};
};

/// True for the end of a call that did not succeed.
[[nodiscard]] constexpr bool is_failure(ReportKind kind) noexcept {
  return kind == ReportKind::error || kind == ReportKind::tool_timeout;
}

/// The sender of a heartbeat: the agent's own loop; a helper that proves only that the process
/// lives; or the relay of its requests, which proves that one is open. A relay's heartbeats stop
/// with the request, so their end is not a silence. `unsaid` counts as loop if its position is new
/// or the session never gives one.
enum class Source : std::uint8_t { unsaid, loop, sidecar, relay };

template <>
struct Names<Source> {
  static constexpr std::string_view all[] = {"unsaid", "loop", "sidecar", "relay"};
};

/// The way by which a report reached the store. Its number is stored: append only. One session may
/// have reports of several origins.
enum class ReportOrigin : std::uint8_t {
  unknown,     ///< not recorded: an older program stored it, or a newer one knows this origin
  agent,       ///< the agent itself, by the library or the HTTP API
  hooks,       ///< the agent's hooks
  proxy,       ///< the model proxy
  otlp,        ///< the agent's OpenTelemetry
  transcript,  ///< a reader of the file that the agent writes
  run,         ///< the wrapper of the agent's command
  mcp,         ///< the agent, by the tool `report` of the Model Context Protocol
  monitor      ///< the monitor: what it saw itself, and what people asked it for
};

template <>
struct Names<ReportOrigin> {
  static constexpr std::string_view all[] = {"unknown",    "agent", "hooks", "proxy",  "otlp",
                                             "transcript", "run",   "mcp",   "monitor"};
};

/// How a session ended.
enum class OutcomeKind : std::uint8_t { completed, failed, incomplete, cancelled };

template <>
struct Names<OutcomeKind> {
  static constexpr std::string_view all[] = {"completed", "failed", "incomplete", "cancelled"};
};

/// Progress inside an operation (tokens, bytes, items): name and running total. At most
/// `counters_max` of them; more are dropped.
using Counters = std::vector<std::pair<std::string, double>>;
inline constexpr std::size_t counters_max = 16;  ///< Counters of a heartbeat, at most.

/// One heartbeat, or several of one source and phase in one row. Additive: `absorb` of two
/// neighbours equals both. A plain value.
struct Heartbeats {
  std::int64_t count = 1;  ///< The number of heartbeats in the row.
  /// Ticks. In a report: since boot (the store adds its offset), or zero for "now".
  Instant first{};
  Instant last{};    ///< The newest one.
  Millis max_gap{};  ///< Longest distance between two neighbours inside the row.
  /// When the first part of a merged row was stored; readers did not know it before. Zero: with the
  /// row.
  Instant first_stored{};
  std::optional<std::int64_t> iteration_first{};  ///< The oldest one's iteration.
  std::optional<std::int64_t> iteration{};        ///< The newest.
  std::string phase{};                            ///< The newest phase.
  Source source = Source::unsaid;                 ///< The sender.
  Counters counters{};                            ///< Newest values.
  std::int64_t fresh = 0;  ///< Heartbeats after the first with a new iteration.
  std::int64_t quiet =
      0;  ///< How many came after the newest rise of a counter (or after the first).
};

using Beats = Heartbeats;  ///< Its name before 0.2; goes with 0.3.

/// Returns true if both may share one row.
[[nodiscard]] bool same_row(const Heartbeats& a, const Heartbeats& b) noexcept;
/// Appends `next`, which came after everything in `row`. REQUIRES: same_row(row, next).
void absorb(Heartbeats& row, const Heartbeats& next);
/// True if a counter of `newer` is above its value in `older`, or is new and above zero.
[[nodiscard]] bool rises(const Counters& older, const Counters& newer) noexcept;

/// How the process of a session is known. A reporter's word alone is never enough to end a process.
enum class KnownBy : std::uint8_t {
  report,      ///< A report names it, and nothing else proves it.
  connection,  ///< The monitor found it: it held the client's end of a connection.
  run          ///< It is the wrapper that `watchdog-monitor run` reports by.
};

template <>
struct Names<KnownBy> {
  static constexpr std::string_view all[] = {"report", "connection", "run"};
};

/// Facts about the process that runs a session; they let a monitor on the same machine see it die.
struct ProcessFacts {
  std::int64_t pid = 0;                ///< Its number; 0: unknown.
  std::int64_t start_ticks = 0;        ///< Field 22 of /proc/PID/stat: distinguishes a reused pid.
  std::string boot_id{};               ///< The machine's boot.
  std::string host{};                  ///< The machine's name.
  KnownBy known_by = KnownBy::report;  ///< Only a proven process can be ended.
  friend bool operator==(const ProcessFacts&, const ProcessFacts&) = default;
};

/// Why a turn is done, the `name` of a report of kind `idle`; empty: its answer is complete. All
/// but `relayed` also mean that open calls get no result.
namespace idle_reports {
/// The proxy saw an answer without calls. The agent may do more than the proxy sees.
inline constexpr std::string_view relayed = "relay";
inline constexpr std::string_view interrupted = "interrupted";  ///< A person stopped the turn.
inline constexpr std::string_view failed =
    "error";  ///< The turn failed. `content` holds the cause.
/// The agent repeats that it is at rest: a wait for a person or for quota continues.
inline constexpr std::string_view reminder = "reminder";
/// The monitor: the last of the awaited children ended.
inline constexpr std::string_view children = "children";
/// The answer is complete, and `content` says what goes on without the model, or what wakes it.
inline constexpr std::string_view goes_on = "goes_on";
}  // namespace idle_reports

/// How the model's answer ended, the `content` of the proxy's idle report `relayed`, where that is
/// not the usual end of an answer.
namespace early_ends {
inline constexpr std::string_view length = "length";  ///< At a limit of its length.
inline constexpr std::string_view calls = "calls";    ///< For a call that the answer does not have.
}  // namespace early_ends
/// Returns true for one of early_ends.
[[nodiscard]] constexpr bool is_early_end(std::string_view content) noexcept {
  return content == early_ends::length || content == early_ends::calls;
}

/// The subject of a wait, the `name` of a report of kind `wait`. Agents may use other words.
namespace wait_reports {
inline constexpr std::string_view approval = "approval";  ///< A person must allow or deny a call.
inline constexpr std::string_view input = "input";        ///< A person must answer a question.
inline constexpr std::string_view login = "login";        ///< A person must log in again.
inline constexpr std::string_view billing = "billing";    ///< A person must pay.
inline constexpr std::string_view quota = "quota";  ///< A limit of requests or money; see `until`.
inline constexpr std::string_view overload = "overload";  ///< The model server has no room.
inline constexpr std::string_view retry = "retry";        ///< The next try; see `until`.
inline constexpr std::string_view children = "children";  ///< The sessions that it started.
/// All of them. Any other word is the agent's own text.
inline constexpr std::string_view all[] = {approval, input,    login, billing,
                                           quota,    overload, retry, children};
}  // namespace wait_reports

/// The state of a running call's processes as the monitor sees it: the `content` of its own report
/// of kind `tool_progress`. Empty: its processes work. Any other text says what it waits for.
namespace call_reports {
inline constexpr std::string_view no_process = "no process runs for it";  ///< Of a command.
inline constexpr std::string_view sleeps = "its process sleeps";          ///< All of them do.
/// Begins the text about a session below that is not well; its id and reason follow.
inline constexpr std::string_view waits_for = "it waits for ";
}  // namespace call_reports

/// Why an agent works on without a person, the `name` of a report of kind `resume`.
namespace resume_reports {
inline constexpr std::string_view woken = "woken";  ///< A program that it left running woke it.
/// A hook of the user refused the end of the turn.
inline constexpr std::string_view stop_refused = "stop_refused";
}  // namespace resume_reports

/// The `name` of a report of kind `retry` for a request to the model that got its whole answer, or
/// that its client gave up, and that came again. Another retry follows an error.
inline constexpr std::string_view asked_again = "asked_again";

/// The `name` of a report of kind `start` that adds a process to a running session. The monitor
/// found the process by its connection, and looks every 2 s whether it still runs.
inline constexpr std::string_view found_process = "process";

/// How a session ended. `reason` is for programs (see reasons.h), `error` for people.
struct Outcome {
  OutcomeKind kind = OutcomeKind::completed;  ///< How it ended.
  std::string reason{};                       ///< A code for programs.
  std::string error{};                        ///< A text for people.
  bool stated = true;  ///< False if the agent ended without a statement: then `completed`.
  /// The subject of the reason: a budget's axis, or the party that cancelled. Empty: none.
  std::string subject{};
  /// The reporter knows only that the agent is gone. The store then decides: `completed` after a
  /// complete answer, else what the latest reports show. This flag is never stored.
  bool by_answer = false;
};

/// Splits a reason with its subject, as older programs wrote it: `budget_exhausted:tokens`,
/// `cancelled_by_user`.
[[nodiscard]] Outcome with_subject(Outcome outcome);
/// For people: `budget_exhausted: tokens`.
[[nodiscard]] std::string reason_and_subject(const Outcome& outcome);

/// A request to stop the session, one of its turns, or one call of a turn.
struct CancelRequest {
  std::string by{};      ///< The party that asked.
  std::string reason{};  ///< Why, for the agent and for people.
  WallTime at{};         ///< When the store accepted it.
  std::string turn{};    ///< Empty: the whole session.
  std::string call{};    ///< Only this call of the turn. Empty: all of it.
};

/// The requests to an agent. A plain value.
struct Directive {
  static constexpr std::size_t aborts_max = 16;  ///< Aborts that a session keeps, at most.

  std::optional<CancelRequest> cancel{};  ///< A request to stop.
  /// Turns and calls to stop, oldest first, at most `aborts_max`. Each stays until it is over.
  std::vector<CancelRequest> aborts{};
};

/// Names of reports of kind `turn`. Their `call_id` is the turn's id.
namespace turn_reports {
inline constexpr std::string_view turn_start = "turn_start";  ///< The turn began.
inline constexpr std::string_view turn_abort = "turn_abort";  ///< it is being stopped
inline constexpr std::string_view turn_end = "turn_end";      ///< The turn is over.
}  // namespace turn_reports

/// A turn: an answer of the agent with all its calls.
struct TurnFacts {
  std::string parent{};  ///< The turn that started it; empty: none.
  int depth = 0;         ///< The number of turns above it.
  /// Of an abort: user, timeout or error; of an end: completed or aborted.
  std::string reason{};
  std::int64_t calls = 0;  ///< Of an end: its number of calls.
};

/// The progress of a running call. `content` of its report is the tool's short message.
struct ToolProgress {
  Millis elapsed{};               ///< The running time of the call.
  std::optional<double> value{};  ///< How far it is, in the tool's own unit.
  std::optional<double> total{};  ///< The whole, if it is known.
  std::int64_t bytes = 0;         ///< Of output so far.
  /// The number of accepted progress reports. Only its rise counts as activity of the call.
  std::int64_t accepted = 0;
};

/// The limit that ended a call. `content` of its report is the text for the model.
struct ToolTimeoutFacts {
  /// A limit of a call.
  enum class Kind : std::uint8_t {
    idle,    ///< no progress for this time
    hard,    ///< the whole running time
    queue,   ///< the time in the queue
    budget,  ///< the rest of the budget's time
    ceiling  ///< the ceiling of a tool that manages its own time
  };
  Kind kind = Kind::idle;      ///< The limit that ended it.
  Millis limit{};              ///< Its value.
  Millis elapsed{};            ///< The running time of the call.
  bool still_running = false;  ///< Its work could not be stopped.
};

template <>
struct Names<ToolTimeoutFacts::Kind> {
  static constexpr std::string_view all[] = {"idle", "hard", "queue", "budget", "ceiling"};
};

/// The answer to "does it make progress?". `none`: the answer could not be read.
enum class Verdict : std::uint8_t {
  none,
  progressing,
  looping,
  blocked,
  failed,
  // The letters in the models' answers.
  A = progressing,
  B = looping,
  C = blocked,
  D = failed
};

template <>
struct Names<Verdict> {
  static constexpr std::string_view all[] = {"inconclusive", "A", "B", "C", "D"};
};

/// The state of a check by a model.
enum class CheckState : std::uint8_t {
  done,
  pending,
  inconclusive,  ///< answered, but without a letter
  failed,        ///< the model could not be asked, or gave no answer
  superseded     ///< something new happened before the answer came
};

template <>
struct Names<CheckState> {
  static constexpr std::string_view all[] = {"done", "pending", "inconclusive", "failed",
                                             "superseded"};
};

/// A judgement of a session. `name` of its report is `self` for the agent, else the model's name.
struct Opinion {
  Verdict verdict = Verdict::none;      ///< The answer.
  std::optional<double> confidence{};   ///< Probability of the verdict, 0 … 1, if it is known.
  Seq seen = 0;                         ///< The newest event it knew of; 0: all before it.
  CheckState state = CheckState::done;  ///< Only `done` counts.
};

/// The state of a model server's work on one request.
enum class ServerState : std::uint8_t {
  over,       ///< nothing: the request is answered or given up
  unknown,    ///< not known yet, or the server does not report it
  loading,    ///< it loads the model
  queued,     ///< the request waits for others that move
  reading,    ///< it reads the prompt
  writing,    ///< it generates tokens
  working,    ///< its process is busy; its progress is not known
  quiet,      ///< nothing moves, not long or surely enough to call it hung
  hung,       ///< nothing moves, as two independent signs show
  restarted,  ///< it restarted, so the request is lost
  gone        ///< it accepts no connections, or its process is gone
};

template <>
struct Names<ServerState> {
  static constexpr std::string_view all[] = {"over",    "unknown",   "loading", "queued",
                                             "reading", "writing",   "working", "quiet",
                                             "hung",    "restarted", "gone"};
};

/// True for states that make a request slow and nothing worse.
[[nodiscard]] constexpr bool is_busy(ServerState state) noexcept {
  return state >= ServerState::loading && state <= ServerState::working;
}

/// The state of a model server. `content` of its report is the proof, a sentence for people.
struct Evidence {
  ServerState state = ServerState::unknown;  ///< State of the work on the request.
  std::int64_t done = 0;         ///< Of reading: tokens of the prompt; of writing: of the answer.
  std::int64_t total = 0;        ///< Of reading: of the whole prompt; 0: not known.
  std::optional<Millis> left{};  ///< Until the first token of the answer, if it can be estimated.

  friend bool operator==(const Evidence&, const Evidence&) = default;
};

/// An old time limit that was passed. `name` of its report is the limit: planning, implementation,
/// deployment, tool, task, health_attempts; or `began`, once, if a run is compared with them.
struct LimitPassed {
  std::string name{};        ///< The limit.
  std::int64_t limit = 0;    ///< ms; of health_attempts: tries.
  std::int64_t reached = 0;  ///< Likewise.
  bool enforced = false;     ///< It ended the run.
};

/// The items of an agent's plan, both up to 255. A plain value. Of a call that changes one task:
/// `all` is the number of the task, and `open` is 0 if the task is over.
struct PlanItems {
  std::uint8_t open = 0;  ///< Items that are neither done nor given up.
  std::uint8_t all = 0;   ///< All of them; 0: not known.

  friend bool operator==(const PlanItems&, const PlanItems&) = default;
};

/// Digests by which contents are compared after they were cut. `mark` computes them from the whole
/// content, without what varies by itself (white space, order of members, times). A plain value.
struct Marks {
  /// A member of arguments that are an object.
  struct Field {
    std::uint32_t name = 0;   ///< Digest of its name,
    bool atomic = false;      ///< The value is a number or one short word: a path, an id, a choice.
    std::uint64_t value = 0;  ///< Digest of it.

    friend bool operator==(const Field&, const Field&) = default;
  };

  static constexpr std::size_t shingles_max = 64;      ///< Digests of words, at most.
  static constexpr std::size_t fields_max = 16;        ///< Members of arguments, at most.
  static constexpr std::size_t prose_sample_max = 24;  ///< Digests of a message's words, at most.

  std::uint64_t identity = 0;  ///< 0: there was nothing to compare.
  std::uint64_t exact = 0;     ///< Of a result: the source's own digest of the whole; 0: none.
  bool informative = false;    ///< A result of at least 200 characters, an error of 32, a state of
                               ///< 64; a message of prose.
  bool malformed = false;      ///< Of arguments: they look like JSON and are not.
  bool worded = false;         ///< Of arguments: they ask in words, as a search does.
  bool printed = false;        ///< Of a message: it looks like what a program printed.
  bool unreachable = false;    ///< Of an error: rate limits and gateways, nothing the agent did.
  std::uint8_t text_repeats =
      0;                        ///< Of a message: how often its text begins to repeat itself; to 2.
  std::uint8_t exit_code = 0;   ///< Of a failed command; 0: not known.
  bool waits = false;           ///< Of arguments: the call only waits for something that runs.
  bool reads_only = false;      ///< Of arguments: the call changes no file.
  bool promises = false;        ///< Of a message: it ends with an act that it announces.
  PlanItems plan{};             ///< Of arguments of a tool that keeps a plan.
  std::vector<Field> fields{};  ///< Of arguments that are an object.
  /// Of arguments: the smallest digests of their words and pairs of words, ascending. Of a message:
  /// a quarter of those of its prose, at most `prose_sample_max`.
  std::vector<std::uint32_t> shingles{};

  friend bool operator==(const Marks&, const Marks&) = default;
};

/// Encodes marks for the store, and decodes them. Unknown bytes give no marks.
[[nodiscard]] std::string encoded(const Marks& marks);
/// Decodes marks; nothing if the bytes are no marks.
[[nodiscard]] std::optional<Marks> decoded_marks(std::string_view bytes);

/// A time in which nobody judged. A plain value.
struct ObserverGap {
  Millis gap{};  ///< How long it was.
};
/// Reports that a tracker had to drop. A plain value.
struct LostReports {
  std::int64_t count = 0;  ///< The number of dropped reports.
};

/// The details of a report. Each type belongs to these kinds of report. Heartbeats: heartbeat.
/// ProcessFacts: start, exited. Outcome: end. CancelRequest: cancel. PolicyPatch: policy.
/// ObserverGap: observer. LostReports: gap. Opinion: opinion. BudgetFigures: budget. LimitPassed:
/// limit. TurnFacts: turn. ToolProgress: tool_progress. Evidence: evidence. Marks: state_change,
/// tool_call, tool_result, error, tool_timeout, message.
using Detail = std::variant<std::monostate, Heartbeats, ProcessFacts, Outcome, CancelRequest,
                            PolicyPatch, ObserverGap, LostReports, Opinion, Marks, BudgetFigures,
                            LimitPassed, TurnFacts, ToolProgress, Evidence>;

/// A statement about a session. A plain value.
struct Report {
  ReportKind kind = ReportKind::heartbeat;  ///< Its kind.
  std::string name{};      ///< Tool, role of a message, type of a state change, subject of a wait.
  std::string also{};      ///< Of a tool call: the tool's name in another source; set by the store.
  std::string content{};   ///< Arguments, data (both JSON where they parse), result or message.
  std::string call_id{};   ///< Pairs a call with its result; of a turn: its id; of a wait: the call
                           ///< that a person is to allow or to answer; of a resume: that call,
                           ///< or the event id of the wait, if only that wait is over.
  std::string turn{};      ///< Of a tool call: the id of the turn it belongs to; empty: of none.
  std::string hash{};      ///< The source's own digest of the uncut content, if it sends one.
  std::string event_id{};  ///< Makes ingestion idempotent; unique in the session.
  std::optional<std::int64_t>
      ts_ms{};  ///< The source's own clock; stored and shown, not used by the judge.
  std::optional<WallTime> at{};          ///< When it was reported; empty: the store's time.
  std::optional<Millis> deadline{};      ///< Of a tool call: its longest time without progress.
  std::optional<Millis> expect_quiet{};  ///< The next progress may take this long.
  std::optional<WallTime> until{};       ///< Of a wait: its end, if it is known.
  std::string provider{};    ///< Of a wait: whose limit or server it is for; empty: not known.
  std::uint64_t digest = 0;  ///< XXH3 of the whole content; set by `seal`.
  std::int64_t bytes = -1;   ///< Size of the whole content; set by `seal`.
  Detail detail{};           ///< The details of its kind.
  std::optional<ToolTimeoutFacts> timeout{};  ///< Of a tool_timeout: beside its marks.
};

/// An accepted report: numbered, stamped and stored. A plain value.
struct Event {
  Seq seq = 0;                        ///< Its number in the file.
  SessionKey session = observer_key;  ///< Its session's key.
  Seq prev = 0;                       ///< The session's event before this one.
  Instant tick{};                     ///< The time for the judge.
  WallTime at{};                      ///< The time for people.
  bool late = false;  ///< Arrived after the end of its attempt: stored without effect.
  ReportOrigin origin = ReportOrigin::unknown;  ///< The way by which the report came.
  Report report{};                              ///< The report.
};

}  // namespace watchdog
