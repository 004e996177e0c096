// Reports and events to JSON and back. The same functions read requests of agents, traces and
// stored rows; the differences are limits of size and the fields that only the store sets. An
// unknown kind is not an error: it is counted as ignored.
#include <algorithm>
#include <cmath>

#include "codec/budget.h"
#include "codec/facts.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "codec/json_bounds.h"
#include "codec/turns.h"
#include "text/json_writer.h"
#include "text/nearest.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

using nlohmann::json;

constexpr std::size_t name_bytes_max = 256;
constexpr std::size_t id_bytes_max = 256;
constexpr std::size_t no_limit = SIZE_MAX;

/// Arguments, data: kept as the text they came as, or as their JSON text.
std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The field of the trace format that holds a report's content.
std::string_view content_field(ReportKind kind) {
  switch (kind) {
    case ReportKind::tool_call:
      return "args";
    case ReportKind::state_change:
      return "data";
    default:
      return "text";
  }
}

/// The field that holds its name.
std::string_view name_field(ReportKind kind) {
  switch (kind) {
    case ReportKind::state_change:
      return "type";
    case ReportKind::heartbeat:
      return "phase";
    case ReportKind::wait:
    case ReportKind::resume:
      return "waiting_for";
    case ReportKind::limit:
      return "limit";
    default:
      return "name";
  }
}

std::string_view hash_field(ReportKind kind) {
  return kind == ReportKind::tool_call ? "args_hash" : "result_hash";
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

/// Reads an agent's outcome or a stored one; `bytes_max` bounds the former.
Outcome read_outcome(Fields& fields, std::size_t bytes_max) {
  Outcome outcome;
  std::optional<OutcomeKind> kind;
  fields.choice("outcome", kind);
  outcome.stated = kind.has_value();
  outcome.kind = kind.value_or(OutcomeKind::completed);
  fields.text("reason", outcome.reason, bytes_max);
  fields.text("subject", outcome.subject, bytes_max);
  fields.text("error", outcome.error, no_limit);
  if (outcome.reason.empty()) {
    switch (outcome.kind) {
      case OutcomeKind::completed:
        outcome.reason = reasons::task_complete;
        break;
      case OutcomeKind::failed:
        outcome.reason = reasons::error;
        break;
      case OutcomeKind::cancelled:
        outcome.reason = reasons::cancelled;
        if (outcome.subject.empty()) outcome.subject = reasons::user;
        break;
      case OutcomeKind::incomplete:
        outcome.reason = reasons::unspecified;
        break;
    }
  }
  return with_subject(std::move(outcome));
}

/// Reads an agent's judgement or a stored one.
Opinion read_opinion(Fields& fields) {
  Opinion opinion;
  std::optional<Verdict> verdict;
  fields.choice("status", verdict);
  opinion.verdict = verdict.value_or(Verdict::none);
  fields.number("confidence", opinion.confidence);
  if (opinion.confidence && !(*opinion.confidence >= 0 && *opinion.confidence <= 1)) {
    fields.fail(ErrorCode::invalid, "confidence", "must be from 0 to 1");
  }
  std::optional<std::int64_t> seen;
  fields.integer("seen_seq", seen);
  opinion.seen = std::max<std::int64_t>(seen.value_or(0), 0);
  std::optional<CheckState> state;
  fields.choice("state", state);
  opinion.state = state.value_or(CheckState::done);
  return opinion;
}

LimitPassed read_limit(Fields& fields, const std::string& name) {
  LimitPassed passed{.name = name};
  std::optional<std::int64_t> limit, reached;
  std::optional<bool> enforced;
  fields.integer("limit_value", limit);
  fields.integer("reached", reached);
  fields.flag("enforced", enforced);
  passed.limit = limit.value_or(0);
  passed.reached = reached.value_or(0);
  passed.enforced = enforced.value_or(false);
  return passed;
}

void read_until(Fields& fields, Report& report) {
  std::optional<std::int64_t> until;
  fields.integer("until_ms", until);
  constexpr std::int64_t year_10000 = 253'402'300'800'000;
  if (until && (*until < 0 || *until > year_10000)) {
    fields.fail(ErrorCode::invalid, "until_ms", "must be from 0 to 253402300800000");
  } else if (until) {
    report.until = WallTime{Millis{*until}};
  }
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
      read_until(fields, report);
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

Result<std::optional<Report>> report_from(const json& object) {
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
  auto report = report_from(object);
  if (!report) {
    Error error = report.error();
    error.line = line;
    return error;
  }
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

namespace {

void write_beats(JsonWriter& out, const Heartbeats& beats, Instant tick) {
  out.field("count", beats.count);
  if (beats.source != Source::unsaid) out.field("source", name_of(beats.source));
  if (beats.iteration) out.field("iteration", *beats.iteration);
  if (beats.iteration_first && beats.iteration_first != beats.iteration) {
    out.field("iteration_first", *beats.iteration_first);
  }
  const auto ms = [&](std::string_view name, Millis value) {
    if (value.count() != 0) out.field(name, value.count());
  };
  ms("age_ms", tick - beats.last);
  ms("span_ms", beats.last - beats.first);
  ms("max_gap_ms", beats.max_gap);
  if (beats.first_stored != Instant{}) ms("told_ms", tick - beats.first_stored);
  if (beats.fresh != 0) out.field("fresh", beats.fresh);
  if (beats.quiet != 0) out.field("quiet", beats.quiet);
  if (beats.counters.empty()) return;
  out.key("counters").open_object();
  for (const auto& [name, value] : beats.counters) out.field(name, value);
  out.close_object();
}

void write_process(JsonWriter& out, const ProcessFacts& process) {
  if (process.pid == 0) return;
  out.field("pid", process.pid).field("start_ticks", process.start_ticks);
  out.field("boot_id", process.boot_id).field("host", process.host);
}

struct DetailWriter {
  JsonWriter& out;
  Instant tick;

  void operator()(std::monostate) const {}
  void operator()(const Heartbeats& beats) const { write_beats(out, beats, tick); }
  void operator()(const ProcessFacts& process) const { write_process(out, process); }
  void operator()(const Outcome& outcome) const {
    out.field("outcome", name_of(outcome.kind)).field("reason", outcome.reason);
    if (!outcome.subject.empty()) out.field("subject", outcome.subject);
    if (!outcome.error.empty()) out.field("error", outcome.error);
  }
  void operator()(const CancelRequest& request) const {
    out.field("by", request.by).field("reason", request.reason);
    if (!request.turn.empty()) out.field("turn_id", request.turn);
    if (!request.call.empty()) out.field("call_id", request.call);
  }
  void operator()(const PolicyPatch& patch) const { out.key("policy").raw(to_json(patch)); }
  void operator()(const ObserverGap& absence) const { out.field("gap_ms", absence.gap.count()); }
  void operator()(const LostReports& lost) const { out.field("count", lost.count); }
  void operator()(const Opinion& opinion) const {
    out.field("status", name_of(opinion.verdict)).field("confidence", opinion.confidence);
    if (opinion.seen != 0) out.field("seen_seq", opinion.seen);
    if (opinion.state != CheckState::done) out.field("state", name_of(opinion.state));
  }
  void operator()(const BudgetFigures& figures) const { write_figures(out, figures); }
  void operator()(const LimitPassed& passed) const {
    out.field("limit_value", passed.limit)
        .field("reached", passed.reached)
        .field("enforced", passed.enforced);
  }
  void operator()(const TurnFacts& turn) const { write_turn(out, turn); }
  void operator()(const ToolProgress& progress) const { write_progress(out, progress); }
  void operator()(const Evidence& evidence) const { write_evidence(out, evidence); }
  void operator()(const Marks&) const {}  // they have a column of their own and are not published
};

/// Everything without a column of its own.
void write_facts(JsonWriter& out, const Report& report, Instant tick) {
  // Of a cancel it is what is to stop.
  const bool pairs = !report.call_id.empty() && report.kind != ReportKind::cancel;
  if (pairs) out.field("call_id", report.call_id);
  if (!report.turn.empty() && report.kind == ReportKind::tool_call) {
    out.field("turn_id", report.turn);
  }
  if (!report.also.empty()) out.field("also", report.also);
  if (!report.hash.empty()) out.field(hash_field(report.kind), report.hash);
  if (report.ts_ms) out.field("ts_ms", *report.ts_ms);
  if (report.deadline) out.field("deadline_ms", report.deadline->count());
  if (report.expect_quiet) out.field("expect_quiet_ms", report.expect_quiet->count());
  if (report.until && report.kind == ReportKind::wait)
    out.field("until_ms", report.until->time_since_epoch().count());
  if (report.timeout && report.kind == ReportKind::tool_timeout)
    write_timeout(out, *report.timeout);
  std::visit(DetailWriter{out, tick}, report.detail);
}

bool has_facts(const Report& report) {
  return !report.call_id.empty() || !report.hash.empty() || report.ts_ms || report.deadline ||
         report.expect_quiet || report.until || !report.turn.empty() || report.timeout ||
         !report.also.empty() ||
         (report.detail.index() != 0 && !std::holds_alternative<Marks>(report.detail));
}

Source source_in(const json& facts) {
  const auto word = facts.find("source");
  if (word == facts.end() || !word->is_string()) return Source::unsaid;
  return named<Source>(word->get_ref<const std::string&>()).value_or(Source::unsaid);
}

/// Of a damaged row: times and counts with which no sum overflows.
std::int64_t within_reach(std::int64_t number) {
  return std::clamp(number, -budget_max, budget_max);
}

Heartbeats beats_from(const json& facts, Instant tick, std::string phase) {
  const auto any_number = [&](const char* name, std::int64_t absent) {
    const auto found = facts.find(name);
    return found != facts.end() && found->is_number_integer() ? found->get<std::int64_t>() : absent;
  };
  const auto number = [&](const char* name, std::int64_t absent) {
    return within_reach(any_number(name, absent));
  };
  Heartbeats beats;
  beats.phase = std::move(phase);
  beats.count = std::max<std::int64_t>(number("count", 1), 1);
  beats.source = source_in(facts);
  if (facts.contains("iteration")) {
    beats.iteration = any_number("iteration", 0);
    beats.iteration_first = any_number("iteration_first", *beats.iteration);
  }
  beats.last = tick - Millis{number("age_ms", 0)};
  beats.first = beats.last - Millis{number("span_ms", 0)};
  beats.max_gap = Millis{number("max_gap_ms", 0)};
  if (const auto first_stored = number("told_ms", 0); first_stored != 0)
    beats.first_stored = tick - Millis{first_stored};
  beats.fresh = number("fresh", 0);
  beats.quiet = number("quiet", 0);
  if (const auto counters = facts.find("counters");
      counters != facts.end() && counters->is_object()) {
    for (const auto& [name, value] : counters->items()) {
      if (value.is_number()) beats.counters.emplace_back(name, value.get<double>());
    }
  }
  return beats;
}

}  // namespace

std::string facts_of(const Report& report, Instant tick) {
  if (!has_facts(report)) return {};
  JsonWriter out;
  out.open_object();
  write_facts(out, report, tick);
  out.close_object();
  return out.finish();
}

namespace {

CancelRequest stored_cancel(Fields& fields, std::string call) {
  CancelRequest request;
  fields.text("by", request.by, no_limit);
  fields.text("reason", request.reason, no_limit);
  fields.text("turn_id", request.turn, no_limit);
  request.call = std::move(call);
  return request;
}

/// Reads the stored facts that only events of this kind have.
void read_stored_detail(Fields& fields, const json& object, Report& report, Instant tick) {
  std::optional<std::int64_t> number;
  switch (report.kind) {
    case ReportKind::heartbeat:
      report.detail = beats_from(object, tick, std::exchange(report.name, {}));
      break;
    case ReportKind::tool_call:
      fields.text("turn_id", report.turn, no_limit);
      fields.text("also", report.also, no_limit);
      fields.integer("deadline_ms", number);
      if (number) report.deadline = Millis{*number};
      break;
    case ReportKind::start:
    case ReportKind::exited:
      report.detail = read_process(fields, "start_ticks", "boot_id");
      break;
    case ReportKind::end:
      report.detail = read_outcome(fields, no_limit);
      break;
    case ReportKind::cancel:
      report.detail = stored_cancel(fields, std::exchange(report.call_id, {}));
      break;
    case ReportKind::policy:
      if (const auto* policy = fields.find("policy"); policy && policy->is_object()) {
        if (auto patch = policy_patch_from_json(policy->dump())) report.detail = *patch;
      }
      break;
    case ReportKind::opinion:
      report.detail = read_opinion(fields);
      break;
    case ReportKind::budget:
      report.detail = read_figures(fields);
      break;
    case ReportKind::limit:
      report.detail = read_limit(fields, report.name);
      break;
    case ReportKind::turn:
      report.detail = read_turn(fields, no_limit);
      break;
    case ReportKind::tool_progress:
      report.detail = read_progress(fields);
      break;
    case ReportKind::wait:
      read_until(fields, report);
      break;
    case ReportKind::tool_timeout:
      if (object.contains("limit_kind")) report.timeout = read_timeout(fields);
      break;
    case ReportKind::evidence:
      report.detail = read_evidence(fields);
      break;
    case ReportKind::observer:
      fields.integer("gap_ms", number);
      report.detail = ObserverGap{Millis{within_reach(number.value_or(0))}};
      break;
    case ReportKind::gap:
      fields.integer("count", number);
      report.detail = LostReports{number.value_or(0)};
      break;
    default:
      break;
  }
}

}  // namespace

Result<void> read_facts(Report& report, std::string_view text, Instant tick) {
  static const json none = json::object();
  auto parsed = text.empty() ? Result<json>(none) : parse_object(text);
  if (!parsed) return Error{ErrorCode::corrupt, "an event's facts: " + parsed.error().message};
  Fields fields(*parsed);
  fields.text("call_id", report.call_id, no_limit);
  fields.text(hash_field(report.kind), report.hash, no_limit);
  fields.integer("ts_ms", report.ts_ms);
  std::optional<std::int64_t> number;
  fields.integer("expect_quiet_ms", number);
  if (number) report.expect_quiet = Millis{*number};
  read_stored_detail(fields, *parsed, report, tick);
  if (fields.error())
    return Error{ErrorCode::corrupt, "an event's facts: " + fields.error()->message};
  return {};
}

std::string to_json(const Event& event) {
  const Report& report = event.report;
  JsonWriter out;
  out.open_object().field("seq", event.seq).field("at_ms", event.at.time_since_epoch().count());
  out.field("kind", name_of(report.kind));
  if (event.origin != ReportOrigin::unknown) out.field("origin", name_of(event.origin));
  const auto* row = std::get_if<Heartbeats>(&report.detail);
  const std::string& name = row != nullptr ? row->phase : report.name;
  if (!name.empty()) out.field(name_field(report.kind), name);
  if (!report.content.empty()) {
    out.key(content_field(report.kind));
    // Arguments and data may be any JSON; a cut one is shown as text.
    const bool structured =
        report.kind == ReportKind::tool_call || report.kind == ReportKind::state_change;
    if (structured && is_json(report.content)) {
      out.raw(report.content);
    } else {
      out.value(report.content);
    }
  }
  if (report.bytes > 0) out.field("bytes", report.bytes);
  if (report.digest != 0) out.field("digest", hexadecimal(report.digest));
  if (!report.event_id.empty()) out.field("event_id", report.event_id);
  if (event.late) out.field("late", true);
  write_facts(out, report, event.tick);
  out.close_object();
  return out.finish();
}

}  // namespace watchdog
