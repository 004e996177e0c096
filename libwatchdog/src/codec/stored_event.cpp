// Events of the store to JSON and back. What an event has beside its columns is its facts: one JSON
// object. Times in it are ages, because a tick means nothing to another machine. Facts of a damaged
// row are an error, or numbers with which no sum overflows.
#include <algorithm>
#include <utility>

#include "codec/budget.h"
#include "codec/facts.h"
#include "codec/json.h"
#include "codec/report_fields.h"
#include "codec/turns.h"
#include "text/json_writer.h"

namespace watchdog {
namespace {

using nlohmann::json;

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
  if (process.known_by != KnownBy::report) out.field("known_by", name_of(process.known_by));
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
  if (!report.provider.empty() && report.kind == ReportKind::wait)
    out.field("provider", report.provider);
  if (report.timeout && report.kind == ReportKind::tool_timeout)
    write_timeout(out, *report.timeout);
  std::visit(DetailWriter{out, tick}, report.detail);
}

bool has_facts(const Report& report) {
  return !report.call_id.empty() || !report.hash.empty() || report.ts_ms || report.deadline ||
         report.expect_quiet || report.until || !report.turn.empty() || report.timeout ||
         !report.also.empty() || !report.provider.empty() ||
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

/// Only what the store wrote says how a process is known; a report that says it is not believed.
ProcessFacts stored_process(Fields& fields) {
  auto process = read_process(fields, "start_ticks", "boot_id");
  std::string word;
  fields.text("known_by", word, no_limit);
  process.known_by = named<KnownBy>(word).value_or(KnownBy::report);
  return process;
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
      report.detail = stored_process(fields);
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
      read_wait(fields, report, no_limit);
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
