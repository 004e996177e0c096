// Maps records to reports. `otlp_table.h` gives the meaning of each record, whichever agent sent
// it; `otlp_names.h` has the names of the attributes. A function for each meaning makes the
// reports. An agent's span below another agent or a call is a child session, as far as one request
// shows it. Telemetry comes seconds after the events, and hooks may have reported later ones
// meanwhile. So a state (rest, wait, end of a wait) is left out if the session has a newer event. A
// call is only reported when it is over, so an open call is never known from telemetry.
#include "ingest/otlp.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "codec/json.h"
#include "facts/digest.h"
#include "facts/ids.h"
#include "ingest/otlp_names.h"
#include "ingest/otlp_table.h"
#include "ingest/otlp_value.h"
#include "llm/limit_end.h"
#include "llm/provider.h"
#include "privacy/content.h"

namespace watchdog::monitor {
namespace {

namespace names = otlp_names;
using namespace otlp_value;
using otlp_table::Meaning;
using otlp_table::span;

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

/// The words for an agent that helped itself.
std::string help_in_words(const OtlpRecord& record, Meaning meaning) {
  if (meaning == Meaning::fallback) return "the agent goes on with a fallback model";
  return value(record, names::success) == "false" ? "an attempt to recover from an error failed"
                                                  : "the agent recovered from an error";
}

/// True if an answer of the model ends the wait.
bool waits_for_model(std::string_view subject) {
  return subject == wait_reports::login || subject == wait_reports::billing ||
         subject == wait_reports::quota || subject == wait_reports::overload;
}

bool is_state(ReportKind kind) {
  return kind == ReportKind::idle || kind == ReportKind::wait || kind == ReportKind::resume;
}

/// A session, and the one that started it; empty: none did.
struct Place {
  std::string session;
  std::string parent;
};

/// A session of one request.
struct OtlpSession {
  Batch batch;
  OtlpKnown known;
  bool pulsed = false;   ///< A heartbeat for the model's stream is in the batch.
  bool had_use = false;  ///< Its use was known before this request.
};

/// One request on its way to reports.
class Mapping {
 public:
  Mapping(WallTime received, OtlpMemory& memory, const OtlpLookUp& look_up,
          std::string_view session, Millis age_max)
      : received_(received),
        memory_(memory),
        look_up_(look_up),
        session_(session),
        oldest_(received - age_max) {}

  void find_spans(const std::vector<OtlpRecord>& records);
  void add(const OtlpRecord& record);
  std::vector<Batch> batches();

 private:
  [[nodiscard]] std::string_view named(const OtlpRecord& record) const;
  [[nodiscard]] std::string session_of(const OtlpRecord& record) const;
  template <class Predicate>
  [[nodiscard]] const OtlpRecord* above(const OtlpRecord& record, Predicate wanted) const;
  [[nodiscard]] Place place_of(const OtlpRecord& record, int levels) const;
  [[nodiscard]] bool is_reported_above(const OtlpRecord& record, Meaning meaning) const;
  [[nodiscard]] WallTime time_of(std::int64_t nanoseconds) const;
  OtlpSession& mapped_of(const OtlpRecord& record, std::string session, const std::string& parent);
  void say(OtlpSession& mapped, const OtlpRecord& record, Report report);
  void report_record(OtlpSession& mapped, const OtlpRecord& record, Meaning meaning);
  void report_call(OtlpSession& mapped, const OtlpRecord& record);
  void report_model(OtlpSession& mapped, const OtlpRecord& record);
  void report_answered(OtlpSession& mapped, const OtlpRecord& record);
  void report_failure(OtlpSession& mapped, const OtlpRecord& record);
  void report_stream(OtlpSession& mapped, const OtlpRecord& record);
  void report_turn(OtlpSession& mapped, const OtlpRecord& record, std::string_view why);
  void report_agent(OtlpSession& mapped, const OtlpRecord& record);
  void report_total(OtlpSession& mapped, const OtlpRecord& record, Meaning meaning);
  void report_sub_end(OtlpSession& mapped, const OtlpRecord& record);

  WallTime received_;
  OtlpMemory& memory_;
  const OtlpLookUp& look_up_;
  std::string_view session_;  ///< Of the whole request; empty: none.
  WallTime oldest_;           ///< Earlier times are mistakes.
  std::unordered_map<std::string_view, const OtlpRecord*> spans_;
  std::vector<OtlpSession> mapped_;
  std::unordered_map<std::string, std::size_t> by_session_;
  std::unordered_map<std::string, std::string> by_trace_;  ///< Sessions that spans name.
  std::uint64_t digest_ = 0;                               ///< Of the present record,
  int said_ = 0;                                           ///< and how many reports it has.
};

void Mapping::find_spans(const std::vector<OtlpRecord>& records) {
  for (const auto& record : records) {
    if (record.trace.empty()) continue;
    if (record.signal == span) spans_.emplace(record.span, &record);
    const auto session = named(record);
    if (!session.empty() && by_trace_.emplace(record.trace, session).second)
      memory_.note_trace(record.trace, as_session_id(std::string(session)));
  }
}

std::string_view Mapping::named(const OtlpRecord& record) const {
  if (const auto by_user = value(record, names::named); !by_user.empty()) return by_user;
  return session_.empty() ? value(record, names::session) : session_;
}

std::string Mapping::session_of(const OtlpRecord& record) const {
  if (const auto own = named(record); !own.empty()) return as_session_id(std::string(own));
  if (record.trace.empty()) return {};
  const auto found = by_trace_.find(record.trace);
  auto session = found == by_trace_.end() ? memory_.session_of_trace(record.trace) : found->second;
  if (session.empty() && record.signal == span) session = "trace-" + record.trace;
  return as_session_id(std::move(session));
}

/// Returns the nearest span above the record that is wanted; null: the request has none.
template <class Predicate>
const OtlpRecord* Mapping::above(const OtlpRecord& record, Predicate wanted) const {
  constexpr int levels_max = 64;
  const auto* at = &record;
  for (int level = 0; level < levels_max && !at->parent.empty(); ++level) {
    const auto found = spans_.find(at->parent);
    if (found == spans_.end() || found->second == &record) return nullptr;
    at = found->second;
    if (at->trace != record.trace) return nullptr;
    if (wanted(*at)) return at;
  }
  return nullptr;
}

/// An agent below another agent or a call is a child, and so is what is below it.
Place Mapping::place_of(const OtlpRecord& record, int levels) const {
  const auto means = [](const OtlpRecord& one, Meaning meaning) {
    const auto* row = row_of(one);
    return row != nullptr && row->meaning == meaning;
  };
  const auto is_agent = [&](const OtlpRecord& one) { return means(one, Meaning::agent); };
  const auto holds = [&](const OtlpRecord& one) {
    return is_agent(one) || means(one, Meaning::call);
  };
  Place place{.session = session_of(record), .parent = {}};
  if (spans_.size() < 2 || levels == 0) return place;
  const auto* agent = is_agent(record) ? &record : above(record, is_agent);
  const auto* holder = agent == nullptr ? nullptr : above(*agent, holds);
  if (holder == nullptr) return place;
  auto outer = place_of(*holder, levels - 1);
  // A user's name for all hides the agents' own ids.
  auto own = named(*agent) == value(*agent, names::session)
                 ? as_session_id(std::string(named(*agent)))
                 : std::string();
  if (own.empty() || own == outer.session || own == session_of(*holder))
    own = as_session_id(outer.session + ":" + agent->span);
  return {.session = std::move(own), .parent = std::move(outer.session)};
}

/// True if a span above the record is about the same call or answer: instrumentations are nested.
bool Mapping::is_reported_above(const OtlpRecord& record, Meaning meaning) const {
  if (spans_.size() < 2 || (meaning != Meaning::model && meaning != Meaning::call)) return false;
  const auto* outer = above(record, [](const OtlpRecord& one) { return row_of(one) != nullptr; });
  if (outer == nullptr || row_of(*outer)->meaning != meaning) return false;
  if (meaning == Meaning::model) return true;
  return !value(record, names::server).empty() ||
         value(record, names::tool) == value(*outer, names::tool);
}

WallTime Mapping::time_of(std::int64_t nanoseconds) const {
  const WallTime at{Millis{nanoseconds / 1'000'000}};
  return at > received_ || at < oldest_ ? received_ : at;
}

OtlpSession& Mapping::mapped_of(const OtlpRecord& record, std::string session,
                                const std::string& parent) {
  if (const auto found = by_session_.find(session); found != by_session_.end())
    return mapped_[found->second];
  by_session_.emplace(session, mapped_.size());
  auto& mapped = mapped_.emplace_back();
  const auto service = word_of(record, names::service);
  const auto& sender = sender_of(service);
  const auto own = word_of(record, names::agent);
  auto& spec = mapped.batch.spec;
  spec.parent = parent;
  spec.agent = !sender.agent.empty() && parent.empty() ? std::string(sender.agent)
                                                       : (own.empty() ? service : own);
  spec.labels["via"] = "otlp";
  if (auto model = word_of(record, names::model); !model.empty())
    spec.labels["model"] = std::move(model);
  mapped.known = look_up_(session);
  mapped.had_use = mapped.known.used.tokens > 0 || mapped.known.used.cost > 0;
  mapped.batch.creation = Creation::attach;
  mapped.batch.by = ReportOrigin::otlp;
  mapped.batch.session = std::move(session);
  return mapped;
}

/// Adds a report. It gets an event id of the record, unless it has one, and the record's time,
/// unless it has another.
void Mapping::say(OtlpSession& mapped, const OtlpRecord& record, Report report) {
  if (!report.at) report.at = time_of(record.end);
  const auto number = said_++;
  if (report.event_id.empty())
    report.event_id = "otlp:" + std::to_string(digest_) +
                      (number == 0 ? std::string() : ":" + std::to_string(number));
  if (is_state(report.kind)) {
    if (*report.at < mapped.known.newest) return;
    mapped.known.waiting_for = report.kind == ReportKind::wait ? report.name : std::string();
  }
  mapped.batch.reports.push_back(std::move(report));
}

void Mapping::add(const OtlpRecord& record) {
  constexpr int levels_max = 8;
  const auto* row = row_of(record);
  if (row == nullptr || is_reported_above(record, row->meaning)) return;
  auto [session, parent] = record.signal == span
                               ? place_of(record, levels_max)
                               : Place{.session = session_of(record), .parent = {}};
  if (session.empty()) return;
  if (const auto subagent = value(record, names::subagent); !subagent.empty()) {
    const auto of = value(record, names::subagent_of);
    parent = of.empty() ? session : as_session_id(session + ":" + std::string(of));
    session = as_session_id(session + ":" + std::string(subagent));
    if (parent == session) return;
  }
  digest_ = digest_of(record);
  said_ = 0;
  report_record(mapped_of(record, std::move(session), parent), record, row->meaning);
}

void Mapping::report_record(OtlpSession& mapped, const OtlpRecord& record, Meaning meaning) {
  switch (meaning) {
    case Meaning::seen:
      break;
    case Meaning::prompt: {
      auto prompt = text_of(record, names::prompt);
      if (is_hidden(prompt)) prompt.clear();
      say(mapped, record, make(ReportKind::user_input, {}, std::move(prompt)));
      break;
    }
    case Meaning::answer: {
      auto answer = text_of(record, names::answer);
      if (!answer.empty() && !is_hidden(answer))
        say(mapped, record, make(ReportKind::message, "assistant", std::move(answer)));
      break;
    }
    case Meaning::call:
      return report_call(mapped, record);
    case Meaning::decided: {
      // Only what a person decided ends a wait. `User` is Codex's word.
      const auto by = value(record, names::decided_by);
      if (!by.starts_with("user") && !by.starts_with("User")) break;
      const auto decision = word_of(record, names::decision);
      if (mapped.known.waiting_for == wait_reports::approval)
        say(mapped, record, make(ReportKind::resume, wait_reports::approval, decision));
      if (const auto tool = word_of(record, names::tool); is_refusal(decision))
        say(mapped, record, make(ReportKind::message, "user", "rejected the call of " + tool));
      break;
    }
    case Meaning::request:
      if (number_of(record, names::status) >= 400 || value(record, names::success) == "false")
        return report_failure(mapped, record);
      return report_answered(mapped, record);
    case Meaning::model:
      return report_model(mapped, record);
    case Meaning::failure:
      return report_failure(mapped, record);
    case Meaning::stream:
      return report_stream(mapped, record);
    case Meaning::retry:
      say(mapped, record, make(ReportKind::retry));
      break;
    case Meaning::compact:
      say(mapped, record, make(ReportKind::compaction));
      break;
    case Meaning::trouble:
      say(mapped, record, make(ReportKind::message, "error", text_of(record, names::error)));
      break;
    case Meaning::agent:
      return report_agent(mapped, record);
    case Meaning::flow:
      return report_turn(mapped, record, {});
    case Meaning::joined:
      if (value(record, names::finish) == "failed")
        say(mapped, record,
            make(ReportKind::message, "error",
                 "MCP server " + word_of(record, names::server_name) + " is not connected"));
      break;
    case Meaning::fallback:
    case Meaning::recovery:
      say(mapped, record, make(ReportKind::message, "error", help_in_words(record, meaning)));
      break;
    case Meaning::tokens:
    case Meaning::cost:
      return report_total(mapped, record, meaning);
    case Meaning::sub_begin: {
      auto start = make(ReportKind::start);
      start.detail = ProcessFacts{};
      say(mapped, record, std::move(start));
      break;
    }
    case Meaning::sub_end:
      return report_sub_end(mapped, record);
  }
}

/// Older instrumentation says `error=false` of what went well.
bool says_error(std::string_view said) {
  return !said.empty() && said != "false" && said != "0";
}

/// The call and its result. The call's time is the result's less its duration.
void Mapping::report_call(OtlpSession& mapped, const OtlpRecord& record) {
  const auto& sender = sender_of(value(record, names::service));
  const bool rejected = value(record, names::decision) == "reject";
  const bool failed = record.failed || rejected || value(record, names::success) == "false" ||
                      (record.signal == span && says_error(value(record, names::error)));
  auto call = make(ReportKind::tool_call, {}, text_of(record, names::arguments));
  call.name = word_of(record, names::tool);
  if (call.name.empty()) return;
  call.call_id = word_of(record, names::call);
  const auto lasted = static_cast<std::int64_t>(number_of(record, names::duration) * 1e6);
  call.at = time_of(record.begin != 0 ? record.begin : record.end - lasted);
  auto result = make(failed ? ReportKind::error : ReportKind::tool_result, call.name);
  if (failed) {
    if (says_error(value(record, names::error))) result.content = text_of(record, names::error);
    if (result.content.empty()) result.content = record.status_text;
    if (result.content.empty() && rejected) result.content = "a person rejected the call";
  }
  if (result.content.empty()) result.content = text_of(record, names::result);
  result.call_id = call.call_id;
  if (!call.call_id.empty()) {
    call.event_id = std::string(sender.call) + call.call_id;
    result.event_id = std::string(failed ? sender.failure : sender.result) + call.call_id;
  }
  say(mapped, record, std::move(call));
  say(mapped, record, std::move(result));
}

/// A wait for the model's server is over.
void Mapping::report_answered(OtlpSession& mapped, const OtlpRecord& record) {
  if (!waits_for_model(mapped.known.waiting_for)) return;
  say(mapped, record, make(ReportKind::resume, mapped.known.waiting_for));
}

void Mapping::report_model(OtlpSession& mapped, const OtlpRecord& record) {
  if (record.failed) return report_failure(mapped, record);
  report_answered(mapped, record);
  const auto role = value(record, names::role);
  if (role == "compact") say(mapped, record, make(ReportKind::compaction));
  if (!mapped.known.has_limits && memory_.is_new(digest_)) {
    auto& used = mapped.known.used;
    // The totals of metrics are of the same answers.
    if (used.steps++ == 0) {
      used.tokens = 0;
      used.cost = 0;
    }
    used.tokens += static_cast<std::int64_t>(number_of(record, names::input)) +
                   static_cast<std::int64_t>(number_of(record, names::output));
    used.cost += number_of(record, names::cost);
    auto report = make(ReportKind::budget);
    report.detail = used;
    say(mapped, record, std::move(report));
  }
  // Gemini CLI has no event for the end of a turn. An answer without calls is one.
  const auto raw = value(record, names::raw_answer);
  if (!raw.empty() && role == "main" && raw.find("\"functionCall\"") == std::string_view::npos)
    report_turn(mapped, record, idle_reports::relayed);
}

void Mapping::report_failure(OtlpSession& mapped, const OtlpRecord& record) {
  auto text = text_of(record, names::error);
  if (text.empty()) text = record.status_text;
  const auto waits_for =
      wait_after(static_cast<int>(std::min(number_of(record, names::status), 999.0)));
  if (waits_for.empty()) return say(mapped, record, make(ReportKind::message, "error", text));
  // Clients try again and again; one wait stands for all.
  if (mapped.known.waiting_for == waits_for) return;
  auto wait = make(ReportKind::wait, waits_for);
  if (waits_for == wait_reports::quota) wait.until = limit_end_in_body(text, time_of(record.end));
  wait.provider = value(record, names::provider);
  if (wait.provider.empty()) wait.provider = provider_in_text(text);
  wait.content = std::move(text);
  say(mapped, record, std::move(wait));
}

/// Codex reports every event of the model's stream. One heartbeat a request stands for all of them.
void Mapping::report_stream(OtlpSession& mapped, const OtlpRecord& record) {
  const auto kind = value(record, names::stream);
  const auto& session = mapped.batch.session;
  if (!std::exchange(mapped.pulsed, true)) {
    auto pulse = make(ReportKind::heartbeat);
    pulse.detail = Heartbeats{.phase = "model", .source = Source::relay};
    pulse.at = time_of(record.end);
    mapped.batch.reports.push_back(std::move(pulse));
  }
  if (says_error(value(record, names::error)))
    return say(mapped, record, make(ReportKind::message, "error", text_of(record, names::error)));
  if (kind == "response.created") return memory_.begin_answer(session);
  if (kind.find("_call") != std::string_view::npos) return memory_.note_call(session);
  if (kind.find("output_text") != std::string_view::npos) return memory_.note_text(session);
  if (kind != "response.completed") return;
  // A second record of this name has the tokens.
  if (!value(record, names::input).empty()) return report_model(mapped, record);
  if (memory_.end_answer(session) == false) report_turn(mapped, record, idle_reports::relayed);
}

void Mapping::report_turn(OtlpSession& mapped, const OtlpRecord& record, std::string_view why) {
  const bool is_nested =
      record.signal == span && !record.parent.empty() && record.name != "claude_code.interaction";
  if (is_nested) return;
  if (!record.failed) return say(mapped, record, make(ReportKind::idle, why));
  auto text = text_of(record, names::error);
  say(mapped, record,
      make(ReportKind::idle, idle_reports::failed, text.empty() ? record.status_text : text));
}

/// An agent within another one is over. The outer one's turn goes on.
void Mapping::report_agent(OtlpSession& mapped, const OtlpRecord& record) {
  const bool is_child = !mapped.batch.spec.parent.empty();
  const bool is_known = !sender_of(value(record, names::service)).agent.empty();
  // Spans end from the inside out: the session may have begun with one that has no agent's name.
  if (auto name = word_of(record, names::agent); !name.empty() && (is_child || !is_known))
    mapped.batch.spec.agent = std::move(name);
  if (!is_child) return report_turn(mapped, record, {});
  auto end = make(ReportKind::end);
  end.detail = Outcome{.kind = record.failed ? OutcomeKind::failed : OutcomeKind::completed,
                       .reason = record.failed ? "error" : "task_complete",
                       .error = record.failed ? text_of(record, names::error) : std::string(),
                       .stated = false};
  say(mapped, record, std::move(end));
}

/// A metric's total counts only in a session whose answers no log and no span reports.
void Mapping::report_total(OtlpSession& mapped, const OtlpRecord& record, Meaning meaning) {
  constexpr double total_max = 1e15;
  auto& used = mapped.known.used;
  const bool is_others =
      record.name.starts_with("gen_ai.") && !sender_of(value(record, names::service)).agent.empty();
  if (used.steps > 0 || mapped.known.has_limits || is_others || !(record.total > 0)) return;
  if (const auto kind = value(record, names::tokens);
      meaning == Meaning::tokens && kind != "input" && kind != "output")
    return;
  auto more = std::min(record.total, total_max);
  if (record.is_part) {
    if (!memory_.is_new(digest_)) return;
  } else {
    auto series = watchdog::digest_of(mapped.batch.session + " " + record.name);
    for (const auto& [name, text] : record.attributes)
      series = combined(series, watchdog::digest_of(name + "=" + text));
    more = memory_.rise(mapped.batch.session, series, more, mapped.had_use);
  }
  if (more <= 0) return;
  if (meaning == Meaning::tokens) used.tokens += static_cast<std::int64_t>(more);
  if (meaning == Meaning::cost) used.cost += more;
  auto report = make(ReportKind::budget);
  report.detail = used;
  say(mapped, record, std::move(report));
}

void Mapping::report_sub_end(OtlpSession& mapped, const OtlpRecord& record) {
  const auto reason = word_of(record, names::finish);
  const bool done = reason.empty() || reason == "GOAL";
  auto end = make(ReportKind::end);
  end.detail = Outcome{.kind = done ? OutcomeKind::completed : OutcomeKind::incomplete,
                       .reason = done ? "task_complete" : reason,
                       .error = {},
                       .stated = false};
  say(mapped, record, std::move(end));
}

std::vector<Batch> Mapping::batches() {
  std::vector<Batch> batches;
  batches.reserve(mapped_.size());
  for (auto& mapped : mapped_) batches.push_back(std::move(mapped.batch));
  return batches;
}

}  // namespace

std::vector<Batch> otlp_batches(const std::vector<OtlpRecord>& records, WallTime received,
                                OtlpMemory& memory, const OtlpLookUp& look_up,
                                std::string_view session, Millis age_max) {
  Mapping mapping(received, memory, look_up, session, age_max);
  mapping.find_spans(records);
  for (const auto& record : records) mapping.add(record);
  return mapping.batches();
}

}  // namespace watchdog::monitor
