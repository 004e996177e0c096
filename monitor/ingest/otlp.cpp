// Maps records to reports. `rows` gives the meaning of each log and span, whichever agent sent it;
// `otlp_names.h` has the names of the attributes. A function for each meaning makes the reports.
// Telemetry comes seconds after the events, and hooks may have reported later ones meanwhile. So a
// state (rest, wait, end of a wait) is left out if the session has a newer event. A call is only
// reported when it is over, so an open call is never known from telemetry.
#include "ingest/otlp.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "codec/json.h"
#include "facts/digest.h"
#include "facts/ids.h"
#include "ingest/otlp_names.h"
#include "privacy/content.h"

namespace watchdog::monitor {
namespace {

namespace names = otlp_names;

constexpr std::size_t word_bytes_max = 200;

/// The meaning of a record.
enum class Meaning : std::uint8_t {
  seen,     ///< the session exists
  prompt,   ///< a person asks
  answer,   ///< the text of an answer
  call,     ///< a tool call that is over
  decided,  ///< a call was allowed or denied
  request,  ///< a request to the model is answered; its tokens come in another record
  model,    ///< likewise, with its tokens
  failure,  ///< the model did not answer
  stream,   ///< an event of the model's stream
  retry,    ///< the model is asked again
  compact,  ///< the agent shortened its context
  trouble,  ///< an error that a person may want to know of
  turn,     ///< the turn is over; of a span: if no span is above it
  sub_begin,
  sub_end
};

struct Row {
  OtlpSignal signal;
  std::string_view name;
  Meaning meaning;
};

constexpr auto log = OtlpSignal::logs;
constexpr auto span = OtlpSignal::traces;

constexpr Row rows[] = {
    // Claude Code
    {log, "claude_code.user_prompt", Meaning::prompt},
    {log, "claude_code.assistant_response", Meaning::answer},
    {log, "claude_code.tool_result", Meaning::call},
    {log, "claude_code.tool_decision", Meaning::decided},
    {log, "claude_code.api_request", Meaning::model},
    {log, "claude_code.api_error", Meaning::failure},
    {log, "claude_code.api_refusal", Meaning::trouble},
    {log, "claude_code.internal_error", Meaning::trouble},
    {span, "claude_code.tool", Meaning::call},
    {span, "claude_code.interaction", Meaning::turn},
    // Codex
    {log, "codex.conversation_starts", Meaning::seen},
    {log, "codex.user_prompt", Meaning::prompt},
    {log, "codex.tool_result", Meaning::call},
    {log, "codex.tool_decision", Meaning::decided},
    {log, "codex.api_request", Meaning::request},
    {log, "codex.sse_event", Meaning::stream},
    // Gemini CLI
    {log, "gemini_cli.config", Meaning::seen},
    {log, "gemini_cli.user_prompt", Meaning::prompt},
    {log, "gemini_cli.tool_call", Meaning::call},
    {log, "gemini_cli.api_response", Meaning::model},
    {log, "gemini_cli.api_error", Meaning::failure},
    {log, "gemini_cli.chat.content_retry", Meaning::retry},
    {log, "gemini_cli.chat.content_retry_failure", Meaning::trouble},
    {log, "gemini_cli.chat_compression", Meaning::compact},
    {log, "gemini_cli.conversation_finished", Meaning::turn},
    {log, "gemini_cli.agent.start", Meaning::sub_begin},
    {log, "gemini_cli.agent.finish", Meaning::sub_end},
    // OpenTelemetry's GenAI conventions; Copilot follows them
    {span, "execute_tool", Meaning::call},
    {span, "chat", Meaning::model},
    {span, "text_completion", Meaning::model},
    {span, "generate_content", Meaning::model},
    {span, "invoke_agent", Meaning::turn},
    // Vercel AI SDK; opencode uses it
    {span, "ai.toolCall", Meaning::call},
    {span, "ai.streamText.doStream", Meaning::model},
    {span, "ai.generateText.doGenerate", Meaning::model},
    {span, "ai.streamText", Meaning::turn},
    {span, "ai.generateText", Meaning::turn},
    // OpenInference
    {span, "TOOL", Meaning::call},
    {span, "LLM", Meaning::model},
    {span, "AGENT", Meaning::turn},
    // OpenLLMetry
    {span, "tool", Meaning::call},
    {span, "completion", Meaning::model},
    {span, "agent", Meaning::turn},
    {span, "workflow", Meaning::turn},
};

/// An agent that is known by the beginning of its service's name, and the event ids that its hooks
/// give to calls. With the same ids a call is stored once, whichever source reports it first.
struct Sender {
  std::string_view service;
  std::string_view agent;
  std::string_view call;
  std::string_view result;
  std::string_view failure;
};
constexpr Sender senders[] = {
    {"claude-code", "claude-code",
     "hook:PreToolUse:", "hook:PostToolUse:", "hook:PostToolUseFailure:"},
    {"codex", "codex", "hook:PreToolUse:", "hook:PostToolUse:", "hook:PostToolUse:"},
    {"gemini-cli", "gemini-cli", "hook:BeforeTool:", "hook:AfterTool:", "hook:AfterTool:"},
    {"opencode", "opencode",
     "hook:tool.execute.before:", "hook:tool.execute.after:", "hook:message.part.updated:"},
    {"", "", "otlp:call:", "otlp:result:", "otlp:result:"},
};

const Sender& sender_of(std::string_view service) {
  return *std::ranges::find_if(
      senders, [service](const Sender& sender) { return service.starts_with(sender.service); });
}

std::string_view value(const OtlpRecord& record, names::Aliases aliases) {
  for (const auto name : aliases) {
    const auto found = record.attributes.find(name);
    if (found != record.attributes.end() && !found->second.empty()) return found->second;
  }
  return {};
}

std::string text_of(const OtlpRecord& record, names::Aliases aliases) {
  const auto text = value(record, aliases);
  return std::string(text.size() > event_bytes_max ? first_characters(text, event_bytes_max / 4)
                                                   : text);
}

std::string word_of(const OtlpRecord& record, names::Aliases aliases) {
  auto text = value(record, aliases);
  while (text.size() > word_bytes_max) text = first_characters(text, text.size() / 2);
  return std::string(text);
}

/// The number; 0: there is none, or it is below 0.
double number_of(const OtlpRecord& record, names::Aliases aliases) {
  constexpr double number_max = 1e15;
  const auto text = value(record, aliases);
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc{} && number > 0 ? std::min(number, number_max) : 0;
}

const Row* row_of(const OtlpRecord& record) {
  const auto found = [&](std::string_view name) -> const Row* {
    const auto row = std::ranges::find_if(rows, [&](const Row& known) {
      return known.signal == record.signal && known.name == name;
    });
    return name.empty() || row == std::end(rows) ? nullptr : &*row;
  };
  if (record.signal == log) {
    for (const auto name : {std::string_view(record.body), value(record, names::event),
                            std::string_view(record.name)})
      if (const auto* row = found(name)) return row;
    return nullptr;
  }
  for (const auto kind : names::kind) {
    const auto named = record.attributes.find(kind);
    if (named == record.attributes.end()) continue;
    if (const auto* row = found(named->second)) return row;
  }
  return found(record.name);
}

/// Equal records have equal digests.
std::uint64_t digest_of(const OtlpRecord& record) {
  std::uint64_t digest = watchdog::digest_of(record.name);
  const auto add = [&](std::string_view text) {
    digest = combined(digest, watchdog::digest_of(text));
  };
  for (const auto* text : {&record.trace, &record.span, &record.body}) add(*text);
  if (record.signal == span) return digest;  // a span is known by its ids
  digest = combined(digest, static_cast<std::uint64_t>(record.end));
  for (const auto& [name, text] : record.attributes) {
    add(name);
    add(text);
  }
  return digest;
}

std::string session_id_of(std::string text) {
  for (auto& letter : text)
    if (!is_session_id(std::string_view(&letter, 1))) letter = '-';
  text.resize(std::min(text.size(), session_id_bytes_max));
  return text;
}

Report make(ReportKind kind, std::string_view name = {}, std::string content = {}) {
  Report report;
  report.kind = kind;
  report.name = name;
  report.content = std::move(content);
  return report;
}

/// Returns the subject of the wait after a status of the model's server; empty: there is none.
std::string_view wait_after(int status) {
  if (status == 401 || status == 403) return wait_reports::login;
  if (status == 402) return wait_reports::billing;
  if (status == 429) return wait_reports::quota;
  return status >= 500 ? wait_reports::overload : std::string_view();
}

/// True if an answer of the model ends the wait.
bool waits_for_model(std::string_view subject) {
  return subject == wait_reports::login || subject == wait_reports::billing ||
         subject == wait_reports::quota || subject == wait_reports::overload;
}

bool is_state(ReportKind kind) {
  return kind == ReportKind::idle || kind == ReportKind::wait || kind == ReportKind::resume;
}

/// A session of one request.
struct Talk {
  Batch batch;
  OtlpKnown known;
  bool pulsed = false;  ///< A heartbeat for the model's stream is in the batch.
};

/// One request on its way to reports.
class Mapping {
 public:
  Mapping(WallTime received, OtlpMemory& memory, const OtlpLookUp& look_up)
      : received_(received), memory_(memory), look_up_(look_up) {}

  void find_sessions(const std::vector<OtlpRecord>& records);
  void take(const OtlpRecord& record);
  std::vector<Batch> batches();

 private:
  [[nodiscard]] std::string session_of(const OtlpRecord& record) const;
  [[nodiscard]] WallTime time_of(std::int64_t nanoseconds) const;
  Talk& talk_of(const OtlpRecord& record, std::string session, const std::string& parent);
  void say(Talk& talk, const OtlpRecord& record, Report report);
  void tell(Talk& talk, const OtlpRecord& record, Meaning meaning);
  void tell_call(Talk& talk, const OtlpRecord& record);
  void tell_model(Talk& talk, const OtlpRecord& record);
  void tell_answered(Talk& talk, const OtlpRecord& record);
  void tell_failure(Talk& talk, const OtlpRecord& record);
  void tell_stream(Talk& talk, const OtlpRecord& record);
  void tell_turn(Talk& talk, const OtlpRecord& record, std::string_view why);
  void tell_sub_end(Talk& talk, const OtlpRecord& record);

  WallTime received_;
  OtlpMemory& memory_;
  const OtlpLookUp& look_up_;
  std::vector<Talk> talks_;
  std::unordered_map<std::string, std::size_t> by_session_;
  std::unordered_map<std::string, std::string> by_trace_;  ///< Sessions that spans name.
  std::uint64_t digest_ = 0;                               ///< Of the present record,
  int said_ = 0;                                           ///< and how many reports it has.
};

void Mapping::find_sessions(const std::vector<OtlpRecord>& records) {
  for (const auto& record : records) {
    const auto session = value(record, names::session);
    if (!record.trace.empty() && !session.empty()) by_trace_.emplace(record.trace, session);
  }
}

std::string Mapping::session_of(const OtlpRecord& record) const {
  if (const auto own = value(record, names::session); !own.empty())
    return session_id_of(std::string(own));
  if (record.signal == log || record.trace.empty()) return {};
  const auto found = by_trace_.find(record.trace);
  return session_id_of(found == by_trace_.end() ? "trace-" + record.trace : found->second);
}

WallTime Mapping::time_of(std::int64_t nanoseconds) const {
  constexpr Millis day{86'400'000};
  const WallTime at{Millis{nanoseconds / 1'000'000}};
  return at > received_ || at < received_ - day ? received_ : at;
}

Talk& Mapping::talk_of(const OtlpRecord& record, std::string session, const std::string& parent) {
  if (const auto found = by_session_.find(session); found != by_session_.end())
    return talks_[found->second];
  by_session_.emplace(session, talks_.size());
  auto& talk = talks_.emplace_back();
  const auto service = word_of(record, names::service);
  const auto& sender = sender_of(service);
  const auto own = word_of(record, names::agent);
  auto& spec = talk.batch.spec;
  spec.parent = parent;
  spec.agent = !sender.agent.empty() && parent.empty() ? std::string(sender.agent)
                                                       : (own.empty() ? service : own);
  spec.labels["via"] = "otlp";
  if (auto model = word_of(record, names::model); !model.empty())
    spec.labels["model"] = std::move(model);
  talk.known = look_up_(session);
  talk.batch.creation = Creation::attach;
  talk.batch.by = ReportOrigin::otlp;
  talk.batch.session = std::move(session);
  return talk;
}

/// Adds a report. It gets an event id of the record, unless it has one, and the record's time,
/// unless it has another.
void Mapping::say(Talk& talk, const OtlpRecord& record, Report report) {
  if (!report.at) report.at = time_of(record.end);
  const auto number = said_++;
  if (report.event_id.empty())
    report.event_id = "otlp:" + std::to_string(digest_) +
                      (number == 0 ? std::string() : ":" + std::to_string(number));
  if (is_state(report.kind)) {
    if (*report.at < talk.known.newest) return;
    talk.known.waiting_for = report.kind == ReportKind::wait ? report.name : std::string();
  }
  talk.batch.reports.push_back(std::move(report));
}

void Mapping::take(const OtlpRecord& record) {
  const auto* row = row_of(record);
  if (row == nullptr) return;
  auto session = session_of(record);
  if (session.empty()) return;
  std::string parent;
  if (const auto subagent = value(record, names::subagent); !subagent.empty()) {
    parent = std::exchange(session, session_id_of(session + ":" + std::string(subagent)));
    if (parent == session) return;
  }
  digest_ = digest_of(record);
  said_ = 0;
  tell(talk_of(record, std::move(session), parent), record, row->meaning);
}

void Mapping::tell(Talk& talk, const OtlpRecord& record, Meaning meaning) {
  constexpr std::string_view hidden = "<REDACTED>";
  switch (meaning) {
    case Meaning::seen:
      break;
    case Meaning::prompt: {
      auto prompt = text_of(record, names::prompt);
      say(talk, record,
          make(ReportKind::user_input, {}, prompt == hidden ? std::string() : std::move(prompt)));
      break;
    }
    case Meaning::answer: {
      auto answer = text_of(record, names::answer);
      if (!answer.empty() && answer != hidden)
        say(talk, record, make(ReportKind::message, "assistant", std::move(answer)));
      break;
    }
    case Meaning::call:
      return tell_call(talk, record);
    case Meaning::decided: {
      // Only what a person decided ends a wait. `User` is Codex's word.
      const auto by = value(record, names::decided_by);
      const bool person = by.starts_with("user") || by.starts_with("User");
      if (person && talk.known.waiting_for == wait_reports::approval)
        say(talk, record,
            make(ReportKind::resume, wait_reports::approval, word_of(record, names::decision)));
      break;
    }
    case Meaning::request:
      if (number_of(record, names::status) >= 400) return tell_failure(talk, record);
      return tell_answered(talk, record);
    case Meaning::model:
      return tell_model(talk, record);
    case Meaning::failure:
      return tell_failure(talk, record);
    case Meaning::stream:
      return tell_stream(talk, record);
    case Meaning::retry:
      say(talk, record, make(ReportKind::retry));
      break;
    case Meaning::compact:
      say(talk, record, make(ReportKind::compaction));
      break;
    case Meaning::trouble:
      say(talk, record, make(ReportKind::message, "error", text_of(record, names::error)));
      break;
    case Meaning::turn:
      return tell_turn(talk, record, {});
    case Meaning::sub_begin: {
      auto start = make(ReportKind::start);
      start.detail = ProcessFacts{};
      say(talk, record, std::move(start));
      break;
    }
    case Meaning::sub_end:
      return tell_sub_end(talk, record);
  }
}

/// The call and its result. The call's time is the result's less its duration.
void Mapping::tell_call(Talk& talk, const OtlpRecord& record) {
  const auto& sender = sender_of(value(record, names::service));
  const bool rejected = value(record, names::decision) == "reject";
  const bool failed = record.failed || rejected || value(record, names::success) == "false" ||
                      (record.signal == span && !value(record, names::error).empty());
  auto call = make(ReportKind::tool_call, {}, text_of(record, names::arguments));
  call.name = word_of(record, names::tool);
  if (call.name.empty()) return;
  call.call_id = word_of(record, names::call);
  const auto lasted = static_cast<std::int64_t>(number_of(record, names::duration) * 1e6);
  call.at = time_of(record.begin != 0 ? record.begin : record.end - lasted);
  auto result = make(failed ? ReportKind::error : ReportKind::tool_result, call.name);
  if (failed) {
    result.content = text_of(record, names::error);
    if (result.content.empty()) result.content = record.status_text;
    if (result.content.empty() && rejected) result.content = "a person rejected the call";
  }
  if (result.content.empty()) result.content = text_of(record, names::result);
  result.call_id = call.call_id;
  if (!call.call_id.empty()) {
    call.event_id = std::string(sender.call) + call.call_id;
    result.event_id = std::string(failed ? sender.failure : sender.result) + call.call_id;
  }
  say(talk, record, std::move(call));
  say(talk, record, std::move(result));
}

/// A wait for the model's server is over.
void Mapping::tell_answered(Talk& talk, const OtlpRecord& record) {
  if (!waits_for_model(talk.known.waiting_for)) return;
  say(talk, record, make(ReportKind::resume, talk.known.waiting_for));
}

void Mapping::tell_model(Talk& talk, const OtlpRecord& record) {
  if (record.failed) return tell_failure(talk, record);
  tell_answered(talk, record);
  const auto role = value(record, names::role);
  if (role == "compact") say(talk, record, make(ReportKind::compaction));
  if (!talk.known.has_limits && memory_.is_new(digest_)) {
    auto& used = talk.known.used;
    ++used.steps;
    used.tokens += static_cast<std::int64_t>(number_of(record, names::input)) +
                   static_cast<std::int64_t>(number_of(record, names::output));
    used.cost += number_of(record, names::cost);
    auto report = make(ReportKind::budget);
    report.detail = used;
    say(talk, record, std::move(report));
  }
  // Gemini CLI has no event for the end of a turn. An answer without calls is one.
  const auto raw = value(record, names::raw_answer);
  if (!raw.empty() && role == "main" && raw.find("\"functionCall\"") == std::string_view::npos)
    tell_turn(talk, record, idle_reports::relayed);
}

void Mapping::tell_failure(Talk& talk, const OtlpRecord& record) {
  auto text = text_of(record, names::error);
  if (text.empty()) text = record.status_text;
  const auto waits_for =
      wait_after(static_cast<int>(std::min(number_of(record, names::status), 999.0)));
  if (waits_for.empty()) return say(talk, record, make(ReportKind::message, "error", text));
  // Clients try again and again; one wait stands for all.
  if (talk.known.waiting_for != waits_for)
    say(talk, record, make(ReportKind::wait, waits_for, std::move(text)));
}

/// Codex reports every event of the model's stream. One heartbeat a request stands for all of them.
void Mapping::tell_stream(Talk& talk, const OtlpRecord& record) {
  const auto kind = value(record, names::stream);
  const auto& session = talk.batch.session;
  if (!std::exchange(talk.pulsed, true)) {
    auto pulse = make(ReportKind::heartbeat);
    pulse.detail = Heartbeats{.phase = "model", .source = Source::relay};
    pulse.at = time_of(record.end);
    talk.batch.reports.push_back(std::move(pulse));
  }
  if (!value(record, names::error).empty())
    return say(talk, record, make(ReportKind::message, "error", text_of(record, names::error)));
  if (kind == "response.created") return memory_.begin_answer(session);
  if (kind.find("_call") != std::string_view::npos) return memory_.note_call(session);
  if (kind != "response.completed") return;
  // A second record of this name has the tokens.
  if (!value(record, names::input).empty()) return tell_model(talk, record);
  if (memory_.end_answer(session) == false) tell_turn(talk, record, idle_reports::relayed);
}

void Mapping::tell_turn(Talk& talk, const OtlpRecord& record, std::string_view why) {
  const bool is_nested =
      record.signal == span && !record.parent.empty() && record.name != "claude_code.interaction";
  if (is_nested) return;
  if (!record.failed) return say(talk, record, make(ReportKind::idle, why));
  auto text = text_of(record, names::error);
  say(talk, record,
      make(ReportKind::idle, idle_reports::failed, text.empty() ? record.status_text : text));
}

void Mapping::tell_sub_end(Talk& talk, const OtlpRecord& record) {
  const auto reason = word_of(record, names::finish);
  const bool done = reason.empty() || reason == "GOAL";
  auto end = make(ReportKind::end);
  end.detail = Outcome{.kind = done ? OutcomeKind::completed : OutcomeKind::incomplete,
                       .reason = done ? "task_complete" : reason,
                       .error = {},
                       .stated = false};
  say(talk, record, std::move(end));
}

std::vector<Batch> Mapping::batches() {
  std::vector<Batch> batches;
  batches.reserve(talks_.size());
  for (auto& talk : talks_) batches.push_back(std::move(talk.batch));
  return batches;
}

}  // namespace

bool OtlpMemory::is_new(std::uint64_t record) {
  const std::lock_guard guard(mutex_);
  if (!records_.insert(record).second) return false;
  by_age_.push_back(record);
  if (by_age_.size() > records_max) {
    records_.erase(by_age_.front());
    by_age_.pop_front();
  }
  return true;
}

void OtlpMemory::begin_answer(const std::string& session) {
  const std::lock_guard guard(mutex_);
  if (answers_.size() >= sessions_max) answers_.clear();
  answers_[session] = false;
}

void OtlpMemory::note_call(const std::string& session) {
  const std::lock_guard guard(mutex_);
  if (const auto found = answers_.find(session); found != answers_.end()) found->second = true;
}

std::optional<bool> OtlpMemory::end_answer(const std::string& session) {
  const std::lock_guard guard(mutex_);
  const auto found = answers_.find(session);
  if (found == answers_.end()) return std::nullopt;
  const bool called = found->second;
  answers_.erase(found);
  return called;
}

std::vector<Batch> otlp_batches(const std::vector<OtlpRecord>& records, WallTime received,
                                OtlpMemory& memory, const OtlpLookUp& look_up) {
  Mapping mapping(received, memory, look_up);
  mapping.find_sessions(records);
  for (const auto& record : records) mapping.take(record);
  return mapping.batches();
}

}  // namespace watchdog::monitor
