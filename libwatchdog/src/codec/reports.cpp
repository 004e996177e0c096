// Reads reports from JSON: requests of agents, and traces. An unknown kind is not an error: it is
// counted as ignored. The reader ignores fields that a kind does not use. Its sibling
// stored_event.cpp reads and writes rows of the store.
#include <algorithm>
#include <cmath>

#include "codec/budget.h"
#include "codec/facts.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "codec/json_bounds.h"
#include "codec/json_tree.h"
#include "codec/report_fields.h"
#include "codec/turns.h"
#include "text/json_writer.h"
#include "text/nearest.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

using nlohmann::json;

constexpr std::size_t name_bytes_max = 256;
constexpr std::size_t id_bytes_max = 256;

/// Arguments, data: kept as the text they came as, or as their JSON text.
std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : compact(value);
}

Heartbeats read_beats(Fields& fields) {
  Heartbeats beats;
  fields.text("phase", beats.phase, name_bytes_max);
  fields.integer("iteration", beats.iteration);
  beats.iteration_first = beats.iteration;
  std::optional<Source> source;
  fields.choice("source", source);
  beats.source = source.value_or(Source::unsaid);
  if (const auto* counters = fields.find("counters")) {
    if (!counters->is_object()) {
      fields.fail(ErrorCode::malformed, "counters", "must be an object of numbers");
      return beats;
    }
    for (const auto& [name, value] : counters->items()) {
      if (!value.is_number() || !std::isfinite(value.get<double>())) {
        fields.fail(ErrorCode::malformed, "counters", "must hold numbers, " + name + " is none");
      } else if (name.size() > 64 || counters->size() > counters_max) {
        fields.fail(ErrorCode::invalid, "counters", "may be 16 at most, with names of 64 bytes");
      } else {
        beats.counters.emplace_back(name, value.get<double>());
      }
    }
  }
  return beats;
}

/// Checks the fields that a report of a turn requires.
void check_turn(Fields& fields, const Report& report) {
  if (fields.error()) return;
  if (report.name.empty()) {
    fields.fail(ErrorCode::malformed, "name", "is missing: turn_start, turn_abort or turn_end?");
  } else if (report.name != turn_reports::turn_start && report.name != turn_reports::turn_abort &&
             report.name != turn_reports::turn_end) {
    fields.fail(ErrorCode::invalid, "name",
                "is \"" + report.name + "\"; it must be one of turn_start turn_abort turn_end");
  } else if (report.call_id.empty()) {
    fields.fail(ErrorCode::malformed, "call_id", "is missing: which turn is it?");
  }
}

/// Kinds that only the store or the monitor write are unknown here.
bool comes_from_agents(ReportKind kind) {
  switch (kind) {
    case ReportKind::policy:
    case ReportKind::cancel:
    case ReportKind::exited:
    case ReportKind::observer:
    case ReportKind::gap:
      return false;
    default:
      return true;
  }
}

/// Returns a time of at most a week; empty if it is absent, 0 or wrong.
std::optional<Millis> read_week(Fields& fields, const char* name) {
  std::optional<std::int64_t> time;
  fields.integer(name, time);
  constexpr std::int64_t week = 604'800'000;
  if (time && (*time < 0 || *time > week)) {
    fields.fail(ErrorCode::invalid, name, "must be from 0 to 604800000");
    return {};
  }
  return time && *time > 0 ? std::optional(Millis{*time}) : std::nullopt;
}

/// Reads name, hash and content of an event that is not a heartbeat.
void read_content(Fields& fields, Report& report) {
  fields.text("name", report.name, name_bytes_max);
  fields.text(name_field(report.kind), report.name, name_bytes_max);
  fields.text(hash_field(report.kind), report.hash, id_bytes_max);
  const auto* content = fields.find(content_field(report.kind));
  if (content == nullptr && report.kind == ReportKind::state_change) content = fields.find("text");
  if (content != nullptr) report.content = text_of(*content);
}

/// Reads the fields that only events of this kind have.
void read_detail(Fields& fields, Report& report) {
  switch (report.kind) {
    case ReportKind::end:
      report.detail = read_outcome(fields, name_bytes_max);
      break;
    case ReportKind::start:
      report.detail = read_process(fields, "start_ticks", "boot_id");
      break;
    case ReportKind::tool_call:
      fields.text("turn_id", report.turn, id_bytes_max);
      report.deadline = read_week(fields, "deadline_ms");
      break;
    case ReportKind::wait:
      read_wait(fields, report, name_bytes_max);
      break;
    case ReportKind::state_change:
      if (report.name.empty() && !fields.error()) {
        fields.fail(ErrorCode::malformed, "type", "is missing: what kind of state change is it?");
      }
      break;
    case ReportKind::opinion:
      report.detail = read_opinion(fields);
      report.name = "self";  // models are asked by the monitor, which does not come this way
      break;
    case ReportKind::budget:
      report.detail = read_figures(fields);
      if (report.name.empty()) report.name = budget_reports::update;
      break;
    case ReportKind::limit:
      report.detail = read_limit(fields, report.name);
      if (report.name.empty() && !fields.error()) {
        fields.fail(ErrorCode::malformed, "limit", "is missing: which limit was passed?");
      }
      break;
    case ReportKind::turn:
      report.detail = read_turn(fields, name_bytes_max);
      check_turn(fields, report);
      break;
    case ReportKind::tool_progress:
      report.detail = read_progress(fields);
      break;
    case ReportKind::tool_timeout:
      report.timeout = read_timeout(fields);
      break;
    case ReportKind::evidence:
      report.detail = read_evidence(fields);
      if (fields.find("state") == nullptr && !fields.error()) {
        fields.fail(ErrorCode::malformed, "state", "is missing: what does the model's server do?");
      }
      break;
    default:
      break;
  }
}

/// About the first member that nothing reads: a misspelt one would be lost without a word. Events
/// that this program wrote have more members than are read.
std::optional<Error> unknown_member(const json& object, const Fields& fields) {
  if (fields.members_read() == object.size()) return std::nullopt;
  const auto asked = fields.asked();
  for (const auto& [name, value] : object.items()) {
    if (value.is_null() || std::ranges::find(asked, name) != asked.end() ||
        std::ranges::find(stored_members, name) != std::end(stored_members))
      continue;
    std::vector<std::string> known(asked.begin(), asked.end());
    std::ranges::sort(known);
    known.erase(std::unique(known.begin(), known.end()), known.end());
    return Error{ErrorCode::invalid,
                 unknown_word("member", name, known) + " (of an event of the kind " +
                     object.value("kind", "") + ")",
                 name};
  }
  return std::nullopt;
}

/// `unknown`, if given, gets what unknown_member() says.
Result<std::optional<Report>> report_from(const json& object,
                                          std::optional<Error>* unknown = nullptr) {
  if (!object.is_object()) {
    return Error{
        ErrorCode::malformed,
        std::string("an event must be a JSON object, this is of type ") + object.type_name()};
  }
  Fields fields(object);
  std::string word;
  fields.text("kind", word, name_bytes_max);
  if (!fields.error() && word.empty()) fields.fail(ErrorCode::malformed, "kind", "is missing");
  if (fields.error()) return *fields.error();
  const auto kind = named<ReportKind>(word);
  if (!kind || !comes_from_agents(*kind)) return std::optional<Report>{};

  Report report;
  report.kind = *kind;
  fields.text("event_id", report.event_id, id_bytes_max);
  fields.text("call_id", report.call_id, id_bytes_max);
  fields.integer("ts_ms", report.ts_ms);
  if (report.kind == ReportKind::heartbeat) {
    report.detail = read_beats(fields);
  } else {
    read_content(fields, report);
  }
  read_detail(fields, report);
  report.expect_quiet = read_week(fields, "expect_quiet_ms");
  if (fields.error()) return *fields.error();
  if (unknown != nullptr && !*unknown) *unknown = unknown_member(object, fields);
  return std::optional<Report>(std::move(report));
}

Error unknown_kind(const json& object, int line) {
  std::vector<std::string> kinds;
  for (const auto& name : all_names<ReportKind>()) {
    if (comes_from_agents(*named<ReportKind>(name))) kinds.push_back(name);
  }
  return {.code = ErrorCode::invalid,
          .message = unknown_word("kind", object.value("kind", ""), kinds),
          .field = "kind",
          .line = line};
}

/// Adds one object to the list. `line` counts from 1.
std::optional<Error> add(ReportList& list, const json& object, int line) {
  if (list.reports.size() == reports_at_once_max) {
    return Error{.code = ErrorCode::exhausted,
                 .message = "a body may have at most " + std::to_string(reports_at_once_max) +
                            " events; send the rest with another request",
                 .line = line};
  }
  const bool is_first = !list.unknown_member;
  auto report = report_from(object, &list.unknown_member);
  if (!report) {
    Error error = report.error();
    error.line = line;
    return error;
  }
  if (is_first && list.unknown_member) list.unknown_member->line = line;
  if (*report) {
    list.reports.push_back(std::move(**report));
  } else if (list.ignored++ == 0) {
    list.unknown = unknown_kind(object, line);
  }
  return std::nullopt;
}

Error too_large(int line) {
  return {.code = ErrorCode::exhausted,
          .message = "an event may have at most " + std::to_string(event_bytes_max) + " bytes",
          .line = line};
}

Result<ReportList> from_lines(std::string_view body) {
  ReportList list;
  // The shortest event has 16 bytes. A list that grows while it is read costs twice the memory.
  constexpr std::size_t report_bytes_min = 16;
  std::size_t lines = 1;
  for (auto at = body.find('\n'); at != std::string_view::npos; at = body.find('\n', at + 1))
    ++lines;
  list.reports.reserve(std::min({lines, body.size() / report_bytes_min, reports_at_once_max}));
  int line = 0;
  while (!body.empty()) {
    ++line;
    const auto end = std::min(body.find('\n'), body.size());
    const auto text = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (text.size() > event_bytes_max) return too_large(line);
    auto object = parse_json(text);
    if (!object) {
      Error error = object.error();
      error.line = line;
      return error;
    }
    if (auto error = add(list, *object, line)) return *error;
  }
  return list;
}

/// `measured`: whether some element may be above the limit of one event.
Result<ReportList> from_array(const json& array, bool measured) {
  ReportList list;
  int line = 0;
  for (const auto& object : array) {
    ++line;
    if (measured &&
        object.dump(-1, ' ', false, json::error_handler_t::replace).size() > event_bytes_max) {
      return too_large(line);
    }
    if (auto error = add(list, object, line)) return *error;
  }
  return list;
}

}  // namespace

Result<std::optional<Report>> report_from_json(std::string_view object) {
  auto parsed = parse_json(object);
  if (!parsed) return parsed.error();
  return report_from(*parsed);
}

Result<std::optional<Report>> strict_report_from_json(std::string_view object) {
  auto parsed = parse_json(object);
  if (!parsed) return parsed.error();
  std::optional<Error> unknown;
  auto report = report_from(*parsed, &unknown);
  if (report && unknown) return *unknown;
  return report;
}

Result<ReportList> reports_from_json(std::string_view body) {
  const auto first = body.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) {
    return Error{ErrorCode::malformed,
                 "the body is empty; send one event, an array of events, or one event per line"};
  }
  if (body[first] == '[') {
    auto parsed = parse_json(body);
    if (!parsed) return parsed.error();
    return from_array(*parsed, body.size() > event_bytes_max);
  }
  // A single object may span lines. Several objects have one line per object.
  const auto first_line = body.substr(first, body.find('\n', first) - first);
  if (first_line.size() + first < body.size() && nlohmann::json::accept(first_line)) {
    return from_lines(body);
  }
  if (body.size() > event_bytes_max) return too_large(1);
  auto parsed = parse_json(body);
  if (!parsed) {
    // Several lines of which the first is broken: name that line rather than the whole.
    return body.find("\n{", first) != std::string_view::npos ? from_lines(body)
                                                             : Result<ReportList>(parsed.error());
  }
  ReportList list;
  if (auto error = add(list, *parsed, 0)) return *error;
  return list;
}

}  // namespace watchdog
