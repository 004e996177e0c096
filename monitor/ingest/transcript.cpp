// A line is parsed, given to its agent's table, and comes back as batches. `TranscriptScribe` has
// the steps that both tables share: it keeps what later lines need in the session's
// `TranscriptTalk` and gives each report its event id and time. Nothing depends on where a file is
// cut: what is between two lines is in the state, which is saved as JSON.
#include "ingest/transcript.h"

#include <algorithm>

#include "codec/json.h"
#include "facts/digest.h"
#include "facts/ids.h"
#include "ingest/bounded_text.h"
#include "ingest/time_text.h"
#include "ingest/transcript_state.h"
#include "ingest/turn_failure.h"
#include "privacy/content.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr std::size_t transcript_id_max = 256;

std::string first_line_of(std::string_view text) {
  constexpr std::size_t shown = 120;
  const auto begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  text.remove_prefix(begin);
  return std::string(first_characters(text.substr(0, text.find_first_of("\r\n")), shown));
}

std::string hex_of(std::uint64_t number) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[(number >> shift) & 15U];
  return text;
}

SessionSpec spec_of(const TranscriptTalk& talk, TranscriptAgent agent) {
  SessionSpec spec;
  spec.parent = talk.parent;
  spec.agent = name_of(agent);
  spec.labels["via"] = "transcript";
  if (!talk.cwd.empty()) spec.labels["cwd"] = talk.cwd;
  if (!talk.model.empty()) spec.labels["model"] = talk.model;
  return spec;
}

json as_json(const TranscriptTalk& talk) {
  json calls = json::array();
  for (const auto& [id, tool] : talk.calls) calls.push_back({id, tool});
  return {{"session", talk.session},  {"parent", talk.parent},    {"cwd", talk.cwd},
          {"model", talk.model},      {"title", talk.title},      {"prompt", talk.prompt},
          {"turn", talk.turn},        {"answer", talk.answer},    {"used", talk.answer_tokens},
          {"steps", talk.steps},      {"tokens", talk.tokens},    {"waits", talk.waiting_for},
          {"works", talk.works},      {"mayRest", talk.may_rest}, {"compacted", talk.is_compacted},
          {"newest", talk.newest_ms}, {"line", talk.newest_line}, {"calls", std::move(calls)}};
}

TranscriptTalk talk_from(const json& from) {
  TranscriptTalk talk{.session = session_id_from(text_in(from, "session")),
                      .parent = session_id_from(text_in(from, "parent")),
                      .cwd = text_in(from, "cwd"),
                      .model = text_in(from, "model"),
                      .title = text_in(from, "title"),
                      .prompt = text_in(from, "prompt"),
                      .turn = text_in(from, "turn"),
                      .answer = text_in(from, "answer"),
                      .answer_tokens = number_in(from, "used"),
                      .steps = number_in(from, "steps"),
                      .tokens = number_in(from, "tokens"),
                      .waiting_for = text_in(from, "waits"),
                      .works = flag_in(from, "works"),
                      .may_rest = flag_in(from, "mayRest"),
                      .is_compacted = flag_in(from, "compacted"),
                      .newest_ms = number_in(from, "newest"),
                      .newest_line = static_cast<std::uint64_t>(number_in(from, "line"))};
  for (const auto& call : member(from, "calls")) {
    if (call.is_array() && call.size() == 2 && call[0].is_string() && call[1].is_string())
      talk.calls.emplace_back(call[0].get<std::string>(), call[1].get<std::string>());
  }
  return talk;
}

std::unique_ptr<TranscriptState> state_from(TranscriptAgent agent, std::string_view saved) {
  auto state = std::make_unique<TranscriptState>();
  state->agent = agent;
  if (!is_json(saved)) return state;
  const auto from = json::parse(saved, nullptr, false);
  if (!from.is_object()) return state;
  state->own = session_id_from(text_in(from, "own"));
  state->parent = session_id_from(text_in(from, "parent"));
  state->begins_ms = number_in(from, "begins");
  for (const auto& talk : member(from, "talks")) {
    if (talk.is_object() && state->talks.size() < TranscriptState::talks_max)
      state->talks.push_back(talk_from(talk));
  }
  return state;
}

}  // namespace

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

std::string session_id_from(std::string text) {
  for (auto& letter : text)
    if (!is_session_id(std::string_view(&letter, 1))) letter = '-';
  text.resize(std::min(text.size(), session_id_bytes_max));
  return text;
}

TranscriptTalk& TranscriptScribe::talk(const std::string& session, const std::string& parent) {
  auto& talks = state_.talks;
  const auto found = std::ranges::find(talks, session, &TranscriptTalk::session);
  if (found != talks.end()) {
    std::rotate(found, found + 1, talks.end());
  } else {
    if (talks.size() == TranscriptState::talks_max) talks.erase(talks.begin());
    talks.push_back({.session = session, .parent = parent == session ? std::string() : parent});
  }
  auto& talk = talks.back();
  // A report is never earlier than the one before: lines of parallel calls may be.
  talk.newest_ms = std::max(talk.newest_ms, std::int64_t{at_.time_since_epoch().count()});
  talk.newest_line = digest_;
  return talk;
}

void TranscriptScribe::say(const TranscriptTalk& talk, Report report) {
  const auto number = said_++;
  report.at = std::min(now_, WallTime{Millis{talk.newest_ms}});
  report.ts_ms = at_.time_since_epoch().count();
  if (report.event_id.empty() || report.event_id.size() > transcript_id_max)
    report.event_id =
        "transcript:" + hex_of(digest_) + (number == 0 ? "" : ":" + std::to_string(number));
  if (batches_.empty() || batches_.back().session != talk.session) {
    auto& batch = batches_.emplace_back();
    batch.session = talk.session;
    // Where nobody reported of a subagent, its end says nothing.
    batch.creation = report.kind == ReportKind::end ? Creation::refuse : Creation::attach;
    batch.by = ReportOrigin::transcript;
  }
  batches_.back().spec = spec_of(talk, state_.agent);
  batches_.back().reports.push_back(std::move(report));
}

void TranscriptScribe::say(const TranscriptTalk& talk, ReportKind kind, std::string_view name,
                           std::string content) {
  Report report;
  report.kind = kind;
  report.name = first_bytes(std::string(name), transcript_id_max);
  report.content = std::move(content);
  say(talk, std::move(report));
}

void TranscriptScribe::prompt(TranscriptTalk& talk, std::string text, std::string event_id) {
  if (talk.title.empty()) talk.title = first_line_of(text);
  talk.works = true;
  talk.may_rest = talk.is_compacted = false;
  talk.waiting_for.clear();
  talk.calls.clear();
  Report report;
  report.kind = ReportKind::user_input;
  report.content = std::move(text);
  report.event_id = std::move(event_id);
  say(talk, std::move(report));
}

void TranscriptScribe::call(TranscriptTalk& talk, const std::string& id, std::string tool,
                            std::string arguments) {
  /// Tools by which an agent asks a person, and what for.
  constexpr std::pair<std::string_view, std::string_view> asking[] = {
      {"AskUserQuestion", wait_reports::input},
      {"ExitPlanMode", wait_reports::approval},
      {"request_user_input", wait_reports::input}};
  talk.works = true;
  talk.may_rest = talk.is_compacted = false;
  tool = first_bytes(std::move(tool), transcript_id_max / 2);
  const bool has_id = !id.empty() && id.size() <= transcript_id_max / 2;
  if (has_id) {
    if (talk.calls.size() == TranscriptTalk::calls_max) talk.calls.erase(talk.calls.begin());
    talk.calls.emplace_back(id, tool);
  }
  Report report;
  report.kind = ReportKind::tool_call;
  report.name = tool;
  report.content = std::move(arguments);
  if (has_id) {
    report.call_id = id;
    report.event_id = "hook:PreToolUse:" + id;
  }
  say(talk, std::move(report));
  const auto* asks =
      std::ranges::find(asking, tool, &std::pair<std::string_view, std::string_view>::first);
  if (asks == std::end(asking) || !has_id) return;
  Report wait;
  wait.kind = ReportKind::wait;
  wait.name = asks->second;
  wait.call_id = id;
  wait.event_id = "hook:PreToolUse:" + id + ":1";
  say(talk, std::move(wait));
}

void TranscriptScribe::result(TranscriptTalk& talk, const std::string& id, bool failed,
                              std::string text, std::string_view failure) {
  Report report;
  report.kind = failed ? ReportKind::error : ReportKind::tool_result;
  report.content = std::move(text);
  if (!id.empty() && id.size() <= transcript_id_max / 2) {
    report.call_id = id;
    report.event_id = std::string(failed ? failure : "hook:PostToolUse:") + id;
    const auto call =
        std::ranges::find(talk.calls, id, &std::pair<std::string, std::string>::first);
    if (call != talk.calls.end()) {
      report.name = call->second;
      talk.calls.erase(call);
    }
  }
  say(talk, std::move(report));
}

void TranscriptScribe::answered(TranscriptTalk& talk) {
  talk.works = true;
  talk.may_rest = false;
  if (!talk.waiting_for.empty()) say(talk, ReportKind::resume, std::exchange(talk.waiting_for, {}));
}

void TranscriptScribe::use(TranscriptTalk& talk, const std::string& answer, std::int64_t tokens) {
  const bool same = !answer.empty() && answer == talk.answer;
  const auto added = same ? tokens - talk.answer_tokens : tokens;
  if (same && added <= 0) return;
  if (!same) ++talk.steps;
  talk.answer = first_bytes(answer, transcript_id_max);
  talk.answer_tokens = tokens;
  use_total(talk, std::min(talk.tokens + std::max<std::int64_t>(added, 0), budget_max));
}

void TranscriptScribe::use_total(TranscriptTalk& talk, std::int64_t tokens) {
  talk.tokens = std::clamp<std::int64_t>(tokens, 0, budget_max);
  Report report;
  report.kind = ReportKind::budget;
  BudgetFigures figures;
  figures.steps = talk.steps;
  figures.tokens = talk.tokens;
  report.detail = figures;
  say(talk, std::move(report));
}

void TranscriptScribe::compact(TranscriptTalk& talk, bool again) {
  if (!(again && talk.is_compacted)) say(talk, ReportKind::compaction);
  talk.is_compacted = true;
}

void TranscriptScribe::rest(TranscriptTalk& talk, std::string_view why, std::string event_id) {
  if (!talk.works && why.empty()) return;
  talk.works = talk.may_rest = false;
  talk.calls.clear();
  Report report;
  report.kind = ReportKind::idle;
  report.name = why;
  report.event_id = std::move(event_id);
  say(talk, std::move(report));
}

void TranscriptScribe::fail(TranscriptTalk& talk, const std::string& kind, const std::string& text,
                            std::int64_t status) {
  talk.works = talk.may_rest = false;
  talk.calls.clear();
  for (auto& report : failed_turn(
           {.kind = first_bytes(kind, transcript_id_max), .text = text, .status = status}, at_)) {
    if (report.kind == ReportKind::wait) talk.waiting_for = report.name;
    say(talk, std::move(report));
  }
}

void drop_old_states(Batch& batch, WallTime newest) {
  std::erase_if(batch.reports, [newest](const Report& report) {
    const bool is_state = report.kind == ReportKind::idle || report.kind == ReportKind::wait ||
                          report.kind == ReportKind::resume;
    return is_state && report.at && *report.at < newest;
  });
}

Transcript::Transcript(TranscriptAgent agent, std::string_view saved)
    : state_(state_from(agent, saved)) {}
Transcript::~Transcript() = default;
Transcript::Transcript(Transcript&&) noexcept = default;
Transcript& Transcript::operator=(Transcript&&) noexcept = default;

std::optional<std::vector<Batch>> Transcript::take(std::string_view line, WallTime now) {
  if (!is_json(line)) return std::nullopt;
  const auto parsed = json::parse(line, nullptr, false);
  if (!parsed.is_object()) return std::nullopt;
  const auto said = time_in_text(text_in(parsed, "timestamp"));
  const auto at = said ? std::min(*said, now) : now;
  TranscriptScribe scribe(*state_, digest_of(line), at, now);
  if (state_->agent == TranscriptAgent::claude_code) {
    take_claude_code(scribe, parsed);
  } else {
    take_codex(scribe, *state_, parsed);
  }
  return scribe.batches();
}

std::vector<Batch> Transcript::pause() {
  std::vector<Batch> batches;
  for (auto& talk : state_->talks) {
    if (!talk.may_rest || !talk.works) continue;
    const WallTime at{Millis{talk.newest_ms}};
    TranscriptScribe scribe(*state_, combined(talk.newest_line, 1), at, at);
    talk.works = talk.may_rest = false;
    scribe.say(talk, ReportKind::idle, idle_reports::relayed);
    for (auto& batch : scribe.batches()) batches.push_back(std::move(batch));
  }
  return batches;
}

std::vector<Batch> Transcript::leave() {
  std::vector<Batch> batches;
  for (auto& talk : state_->talks) {
    if (!talk.works) continue;
    const WallTime at{Millis{talk.newest_ms}};
    TranscriptScribe scribe(*state_, combined(talk.newest_line, 2), at, at);
    talk.works = talk.may_rest = false;
    talk.calls.clear();
    scribe.say(talk, ReportKind::idle, idle_reports::failed,
               "its transcript was quiet when the monitor first read it");
    for (auto& batch : scribe.batches()) batches.push_back(std::move(batch));
  }
  return batches;
}

std::string Transcript::title_of(const std::string& session) const {
  const auto found = std::ranges::find(state_->talks, session, &TranscriptTalk::session);
  return found == state_->talks.end() ? std::string() : first_bytes(found->title, label_bytes_max);
}

std::string Transcript::save() const {
  json talks = json::array();
  for (const auto& talk : state_->talks) talks.push_back(as_json(talk));
  return json{{"own", state_->own},
              {"parent", state_->parent},
              {"begins", state_->begins_ms},
              {"talks", std::move(talks)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace watchdog::monitor
