// A line is parsed, given to its agent's table, and comes back as batches. `TranscriptCollector`
// has the steps that both tables share: it keeps what later lines need in the session's
// `TranscriptSession` and gives each report its event id and time. Nothing depends on where a file
// is cut: what is between two lines is in the state, which is saved as JSON.
#include "ingest/transcript.h"

#include <algorithm>

#include "codec/fields.h"
#include "codec/json.h"
#include "facts/digest.h"
#include "facts/ids.h"
#include "ingest/bounded_text.h"
#include "ingest/hook_table.h"
#include "ingest/time_text.h"
#include "ingest/transcript_state.h"
#include "ingest/turn_failure.h"
#include "privacy/content.h"
#include "privacy/redaction.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr std::size_t transcript_id_max = 256;
/// An answer that may be the last one of its turn is the last one after this time without a line.
constexpr std::int64_t rests_after_ms = 600'000;

std::string first_line_of(std::string_view text) {
  constexpr std::size_t shown = 120;
  const auto begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  text.remove_prefix(begin);
  // It goes into a file of positions, too. A secret that is cut is not recognised any more.
  constexpr std::size_t look_ahead = 4'096;
  const auto line = text.substr(0, text.find_first_of("\r\n"));
  return std::string(first_characters(redact(first_characters(line, shown + look_ahead)), shown));
}

std::string hex_of(std::uint64_t number) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[(number >> shift) & 15U];
  return text;
}

SessionSpec spec_of(const TranscriptSession& conversation, TranscriptAgent agent) {
  SessionSpec spec;
  spec.parent = conversation.parent;
  spec.agent = name_of(agent);
  spec.labels["via"] = "transcript";
  if (!conversation.cwd.empty()) spec.labels["cwd"] = conversation.cwd;
  if (!conversation.model.empty()) spec.labels["model"] = conversation.model;
  return spec;
}

double cost_in(const json& from, const char* name) {
  const auto& value = member(from, name);
  return value.is_number() ? std::clamp(value.get<double>(), 0.0, 1e9) : 0;
}

json as_json(const TranscriptSession& conversation) {
  json calls = json::array();
  for (const auto& [id, tool] : conversation.calls)
    calls.push_back({redact_identifier(id), redact_identifier(tool)});
  return {{"session", conversation.session},
          {"parent", conversation.parent},
          {"cwd", redact_identifier(conversation.cwd)},
          {"model", redact_identifier(conversation.model)},
          {"title", conversation.title},
          {"prompt", conversation.prompt},
          {"turn", redact_identifier(conversation.turn)},
          {"answer", redact_identifier(conversation.answer)},
          {"used", conversation.answer_tokens},
          {"steps", conversation.steps},
          {"tokens", conversation.tokens},
          {"usedCost", conversation.answer_cost},
          {"cost", conversation.cost},
          {"message", conversation.message_ms},
          {"waits", conversation.waiting_for},
          {"works", conversation.works},
          {"mayRest", conversation.may_rest},
          {"hidden", conversation.is_hidden},
          {"compacted", conversation.is_compacted},
          {"newest", conversation.newest_ms},
          {"line", conversation.newest_line},
          {"calls", std::move(calls)}};
}

TranscriptSession conversation_from(const json& from) {
  TranscriptSession conversation{
      .session = as_session_id(text_in(from, "session")),
      .parent = as_session_id(text_in(from, "parent")),
      .cwd = text_in(from, "cwd"),
      .model = text_in(from, "model"),
      .title = text_in(from, "title"),
      .prompt = text_in(from, "prompt"),
      .turn = text_in(from, "turn"),
      .answer = text_in(from, "answer"),
      .answer_tokens = number_in(from, "used"),
      .steps = number_in(from, "steps"),
      .tokens = number_in(from, "tokens"),
      .answer_cost = cost_in(from, "usedCost"),
      .cost = cost_in(from, "cost"),
      .message_ms = number_in(from, "message"),
      .waiting_for = text_in(from, "waits"),
      .works = flag_in(from, "works"),
      .may_rest = flag_in(from, "mayRest"),
      .is_hidden = flag_in(from, "hidden"),
      .is_compacted = flag_in(from, "compacted"),
      .newest_ms = number_in(from, "newest"),
      .newest_line = static_cast<std::uint64_t>(number_in(from, "line"))};
  for (const auto& call : member(from, "calls")) {
    if (call.is_array() && call.size() == 2 && call[0].is_string() && call[1].is_string())
      conversation.calls.emplace_back(call[0].get<std::string>(), call[1].get<std::string>());
  }
  return conversation;
}

std::unique_ptr<TranscriptState> state_from(TranscriptAgent agent, std::string_view saved,
                                            std::string_view folder) {
  auto state = std::make_unique<TranscriptState>();
  state->agent = agent;
  state->folder = folder;
  const auto read = parse_object(saved);
  if (!read) return state;
  const auto& from = *read;
  state->own = as_session_id(text_in(from, "own"));
  state->parent = as_session_id(text_in(from, "parent"));
  state->begins_ms = number_in(from, "begins");
  state->is_plain = flag_in(from, "plain");
  for (const auto& conversation : member(from, "talks")) {
    if (conversation.is_object() &&
        state->conversations.size() < TranscriptState::sessions_kept_max)
      state->conversations.push_back(conversation_from(conversation));
  }
  state->is_resumed = !state->conversations.empty();
  return state;
}

void remember(TranscriptSession& conversation, std::uint64_t digest) {
  auto& lines = conversation.lines;
  if (lines.size() == TranscriptSession::lines_max)
    lines.erase(lines.begin(), lines.begin() + TranscriptSession::lines_max / 2);
  lines.push_back(digest);
}

}  // namespace

bool is_known(const TranscriptSession& conversation, std::uint64_t digest) {
  return std::ranges::find(conversation.lines, digest) != conversation.lines.end();
}

bool is_first(TranscriptSession& conversation, std::uint64_t digest) {
  if (is_known(conversation, digest)) return false;
  remember(conversation, digest);
  return true;
}

bool is_open(const TranscriptSession& conversation, const std::string& call) {
  return std::ranges::find(conversation.calls, call, &std::pair<std::string, std::string>::first) !=
         conversation.calls.end();
}

const json& member(const json& object, const char* name) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::string text_in(const json& object, const char* name) {
  const auto& value = member(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::int64_t number_in(const json& object, const char* name) {
  const auto& value = member(object, name);
  if (value.is_number_unsigned()) return static_cast<std::int64_t>(value.get<std::uint64_t>());
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

bool flag_in(const json& object, const char* name) {
  const auto& value = member(object, name);
  return value.is_boolean() && value.get<bool>();
}

std::string content_text(const json& content) {
  std::string text;
  if (content.is_string()) {
    text = content.get<std::string>();
  } else if (content.is_array()) {
    for (const auto& block : content) {
      auto part = block.is_string() ? block.get<std::string>() : text_in(block, "text");
      if (!part.empty()) text += (text.empty() ? "" : "\n") + part;
    }
  } else if (!content.is_null()) {
    text = content.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return text.size() > event_bytes_max ? std::string(first_characters(text, event_bytes_max / 4))
                                       : text;
}

TranscriptSession& TranscriptCollector::conversation(const std::string& session,
                                                     const std::string& parent) {
  auto& conversations = state_.conversations;
  const auto found = std::ranges::find(conversations, session, &TranscriptSession::session);
  if (found != conversations.end()) {
    std::rotate(found, found + 1, conversations.end());
  } else {
    if (conversations.size() == TranscriptState::sessions_kept_max)
      conversations.erase(conversations.begin());
    conversations.push_back(
        {.session = session, .parent = parent == session ? std::string() : parent});
  }
  auto& conversation = conversations.back();
  before_ms_ = conversation.newest_ms;
  before_line_ = conversation.newest_line;
  if (at_.time_since_epoch().count() - before_ms_ >= rests_after_ms) rest_before(conversation);
  is_news_ = at_.time_since_epoch().count() > conversation.newest_ms;
  conversation.is_timed = is_timed_;
  // A report is never earlier than the one before: lines of parallel calls may be.
  conversation.newest_ms =
      std::max(conversation.newest_ms, std::int64_t{at_.time_since_epoch().count()});
  conversation.newest_line = digest_;
  return conversation;
}

void TranscriptCollector::say(const TranscriptSession& conversation, Report report) {
  const auto number = said_++;
  report.at = std::min(now_, WallTime{Millis{conversation.newest_ms}});
  if (is_timed_) report.ts_ms = at_.time_since_epoch().count();
  if (report.event_id.empty() || report.event_id.size() > transcript_id_max)
    report.event_id =
        "transcript:" + hex_of(digest_) + (number == 0 ? "" : ":" + std::to_string(number));
  if (batches_.empty() || batches_.back().session != conversation.session) {
    auto& batch = batches_.emplace_back();
    batch.session = conversation.session;
    // Where nobody reported of a subagent, its end says nothing.
    batch.creation = report.kind == ReportKind::end || conversation.is_hidden ? Creation::refuse
                                                                              : Creation::attach;
    batch.by = ReportOrigin::transcript;
  }
  batches_.back().spec = spec_of(conversation, state_.agent);
  batches_.back().reports.push_back(std::move(report));
}

void TranscriptCollector::say(const TranscriptSession& conversation, ReportKind kind,
                              std::string_view name, std::string content) {
  Report report;
  report.kind = kind;
  report.name = first_bytes(std::string(name), transcript_id_max);
  report.content = std::move(content);
  say(conversation, std::move(report));
}

void TranscriptCollector::rest_before(TranscriptSession& conversation) {
  if (!conversation.may_rest || !conversation.works) return;
  conversation.works = conversation.may_rest = false;
  Report report;
  report.kind = ReportKind::idle;
  report.name = idle_reports::relayed;
  // As of a pause: it may have been reported already.
  report.event_id = "transcript:" + hex_of(combined(before_line_, 1));
  say(conversation, std::move(report));
  --said_;  // the line's own reports keep their ids
  auto& said = batches_.back().reports.back();
  said.at = std::min(now_, WallTime{Millis{before_ms_}});
  if (said.ts_ms) said.ts_ms = before_ms_;
}

bool TranscriptCollector::is_copy(TranscriptSession& conversation, const std::string& id) const {
  if (id.empty()) return false;
  const auto line = digest_of(id);
  if (!is_news_ && is_known(conversation, line)) return true;
  remember(conversation, line);
  return false;
}

void TranscriptCollector::prompt(TranscriptSession& conversation, std::string text) {
  rest_before(conversation);
  if (conversation.title.empty()) conversation.title = first_line_of(text);
  conversation.works = true;
  conversation.may_rest = conversation.is_compacted = false;
  conversation.waiting_for.clear();
  conversation.calls.clear();
  Report report;
  report.kind = ReportKind::user_input;
  report.content = std::move(text);
  say(conversation, std::move(report));
}

void TranscriptCollector::call(TranscriptSession& conversation, const std::string& id,
                               std::string tool, std::string arguments,
                               std::optional<Millis> limit) {
  conversation.works = true;
  conversation.may_rest = conversation.is_compacted = false;
  tool = first_bytes(std::move(tool), transcript_id_max / 2);
  const bool has_id = !id.empty() && id.size() <= transcript_id_max / 2;
  if (has_id) {
    if (conversation.calls.size() == TranscriptSession::calls_max)
      conversation.calls.erase(conversation.calls.begin());
    conversation.calls.emplace_back(id, tool);
  }
  Report report;
  report.kind = ReportKind::tool_call;
  report.name = tool;
  report.content = std::move(arguments);
  report.deadline = limit;
  if (has_id) {
    report.call_id = id;
    report.event_id = call_event_ + id;
  }
  say(conversation, std::move(report));
  const auto* asks = std::ranges::find(hook_table::asking_tools, tool, &hook_table::Asking::tool);
  if (asks == std::end(hook_table::asking_tools) || !has_id) return;
  Report wait;
  wait.kind = ReportKind::wait;
  wait.name = asks->waits_for;
  wait.call_id = id;
  wait.event_id = call_event_ + id + ":1";
  say(conversation, std::move(wait));
}

void TranscriptCollector::result(TranscriptSession& conversation, const std::string& id,
                                 bool failed, std::string text, std::string_view failure) {
  Report report;
  report.kind = failed ? ReportKind::error : ReportKind::tool_result;
  report.content = std::move(text);
  if (!id.empty() && id.size() <= transcript_id_max / 2) {
    report.call_id = id;
    report.event_id = std::string(failed ? failure : result_event_) + id;
    const auto call =
        std::ranges::find(conversation.calls, id, &std::pair<std::string, std::string>::first);
    if (call != conversation.calls.end()) {
      report.name = call->second;
      conversation.calls.erase(call);
    }
  }
  say(conversation, std::move(report));
}

void TranscriptCollector::answered(TranscriptSession& conversation) {
  conversation.works = true;
  conversation.may_rest = false;
  if (!conversation.waiting_for.empty())
    say(conversation, ReportKind::resume, std::exchange(conversation.waiting_for, {}));
}

void TranscriptCollector::name_calls(std::string call, std::string result) {
  call_event_ = std::move(call);
  result_event_ = std::move(result);
}

void TranscriptCollector::use(TranscriptSession& conversation, const std::string& answer,
                              std::int64_t tokens, double cost) {
  const bool same = !answer.empty() && answer == conversation.answer;
  // The first figure of an answer may be an estimate; the last one counts.
  const auto added = same ? tokens - conversation.answer_tokens : tokens;
  if (same && added == 0) return;
  if (!same) ++conversation.steps;
  conversation.answer = first_bytes(answer, transcript_id_max);
  conversation.answer_tokens = tokens;
  conversation.cost =
      std::clamp(conversation.cost + cost - (same ? conversation.answer_cost : 0.0), 0.0, 1e9);
  conversation.answer_cost = cost;
  use_total(conversation, conversation.tokens + added, conversation.cost);
}

void TranscriptCollector::use_total(TranscriptSession& conversation, std::int64_t tokens,
                                    double cost) {
  conversation.tokens = std::clamp<std::int64_t>(tokens, 0, budget_max);
  Report report;
  report.kind = ReportKind::budget;
  BudgetFigures figures;
  figures.steps = conversation.steps;
  figures.tokens = conversation.tokens;
  figures.cost = cost;
  report.detail = figures;
  say(conversation, std::move(report));
}

void TranscriptCollector::compact(TranscriptSession& conversation, bool again) {
  if (!(again && conversation.is_compacted)) say(conversation, ReportKind::compaction);
  conversation.is_compacted = true;
}

void TranscriptCollector::rest(TranscriptSession& conversation, std::string_view why,
                               std::string event_id, std::string what) {
  if (!conversation.works && why.empty()) return;
  conversation.works = conversation.may_rest = false;
  conversation.calls.clear();
  Report report;
  report.kind = ReportKind::idle;
  report.name = why;
  report.content = std::move(what);
  report.event_id = std::move(event_id);
  say(conversation, std::move(report));
}

void TranscriptCollector::fail(TranscriptSession& conversation, const std::string& kind,
                               const std::string& text, std::int64_t status) {
  const bool has_calls = !conversation.calls.empty();
  conversation.works = conversation.may_rest = false;
  conversation.calls.clear();
  for (auto& report : failed_turn(
           {.kind = first_bytes(kind, transcript_id_max), .text = text, .status = status}, at_)) {
    // There was no answer that is complete. Only open calls need the end of the turn.
    if (report.kind == ReportKind::idle && !has_calls) continue;
    if (report.kind == ReportKind::wait) conversation.waiting_for = report.name;
    say(conversation, std::move(report));
  }
}

void drop_old_states(Batch& batch, WallTime newest) {
  std::erase_if(batch.reports, [newest](const Report& report) {
    const bool is_state = report.kind == ReportKind::idle || report.kind == ReportKind::wait ||
                          report.kind == ReportKind::resume;
    return is_state && report.at && *report.at < newest;
  });
}

Transcript::Transcript(TranscriptAgent agent, std::string_view saved, std::string_view folder)
    : state_(state_from(agent, saved, folder)) {}
Transcript::~Transcript() = default;
Transcript::Transcript(Transcript&&) noexcept = default;
Transcript& Transcript::operator=(Transcript&&) noexcept = default;

std::optional<std::vector<Batch>> Transcript::read(std::string_view line, WallTime now) {
  const auto read = parse_object(line);
  if (!read) return std::nullopt;
  const auto& parsed = *read;
  if (state_->agent == TranscriptAgent::gemini_cli) return read_gemini_cli(*state_, parsed, now);
  const auto said = state_->agent == TranscriptAgent::opencode
                        ? opencode_time(parsed)
                        : time_in_text(text_in(parsed, "timestamp"));
  const auto at = said ? std::min(*said, now) : now;
  TranscriptCollector collector(*state_, digest_of(line), at, now, said.has_value());
  if (state_->agent == TranscriptAgent::claude_code) read_claude_code(collector, parsed);
  if (state_->agent == TranscriptAgent::codex) read_codex(collector, *state_, parsed);
  if (state_->agent == TranscriptAgent::opencode) read_opencode(collector, parsed);
  return collector.batches();
}

std::vector<Batch> Transcript::pause() {
  std::vector<Batch> batches;
  for (auto& conversation : state_->conversations) {
    const bool rests = conversation.may_rest && conversation.works;
    if (!rests && !conversation.outcome) continue;
    const WallTime at{Millis{conversation.newest_ms}};
    TranscriptCollector collector(*state_, combined(conversation.newest_line, 1), at, at,
                                  conversation.is_timed);
    if (rests) {
      conversation.works = conversation.may_rest = false;
      collector.say(conversation, ReportKind::idle, idle_reports::relayed);
    }
    if (auto outcome = std::exchange(conversation.outcome, {})) {
      Report end;
      end.kind = ReportKind::end;
      end.detail = std::move(*outcome);
      collector.say(conversation, std::move(end));
    }
    for (auto& batch : collector.batches()) batches.push_back(std::move(batch));
  }
  return batches;
}

std::vector<Batch> Transcript::leave(bool is_recording) {
  std::vector<Batch> batches;
  for (auto& conversation : state_->conversations) {
    const bool waits = is_recording && !conversation.waiting_for.empty();
    if (!conversation.works && !waits) continue;
    if (waits) conversation.waiting_for.clear();
    const WallTime at{Millis{conversation.newest_ms}};
    TranscriptCollector collector(*state_, combined(conversation.newest_line, 2), at, at);
    conversation.works = conversation.may_rest = false;
    conversation.calls.clear();
    collector.say(conversation, ReportKind::idle, idle_reports::failed,
                  "its transcript was quiet when the monitor first read it");
    for (auto& batch : collector.batches()) batches.push_back(std::move(batch));
  }
  return batches;
}

std::vector<std::string> Transcript::sessions() const {
  std::vector<std::string> ids;
  for (const auto& conversation : state_->conversations) ids.push_back(conversation.session);
  return ids;
}

std::string Transcript::title_of(const std::string& session) const {
  const auto found = std::ranges::find(state_->conversations, session, &TranscriptSession::session);
  return found == state_->conversations.end() ? std::string()
                                              : first_bytes(found->title, label_bytes_max);
}

std::string Transcript::save() const {
  json conversations = json::array();
  for (const auto& conversation : state_->conversations)
    conversations.push_back(as_json(conversation));
  return json{{"own", state_->own},
              {"parent", state_->parent},
              {"begins", state_->begins_ms},
              {"plain", state_->is_plain},
              {"talks", std::move(conversations)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace watchdog::monitor
