#include "codec/report_fields.h"

#include <algorithm>
#include <utility>

#include "watchdog/reasons.h"

namespace watchdog {

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

void read_wait(Fields& fields, Report& report, std::size_t bytes_max) {
  fields.text("provider", report.provider, bytes_max);
  std::optional<std::int64_t> until;
  fields.integer("until_ms", until);
  constexpr std::int64_t year_10000 = 253'402'300'800'000;
  if (until && (*until < 0 || *until > year_10000)) {
    fields.fail(ErrorCode::invalid, "until_ms", "must be from 0 to 253402300800000");
  } else if (until) {
    report.until = WallTime{Millis{*until}};
  }
}

}  // namespace watchdog
