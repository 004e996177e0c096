#include <utility>

#include "watchdog/tool_runner.h"

namespace watchdog {
namespace {

constexpr std::size_t tools_listed_max = 100;

Report report_of(ReportKind kind, const ToolEvent& event) {
  Report report;
  report.kind = kind;
  report.name = event.tool;
  report.call_id = event.call;
  return report;
}

/// The same words in two places: what a deadline is called must not depend on who says it.
ToolTimeoutFacts::Kind kind_of(TimeoutKind kind) {
  return named<ToolTimeoutFacts::Kind>(name_of(kind)).value();
}

CancelReason reason_of(const CancelRequest& request) {
  // That it was a person is said already.
  if (request.by.empty() || request.by == name_of(CancelOrigin::user)) {
    return {.origin = CancelOrigin::user, .text = request.reason};
  }
  return {.origin = CancelOrigin::user,
          .text = request.by + (request.reason.empty() ? "" : ": " + request.reason)};
}

}  // namespace

ToolReporter::~ToolReporter() {
  if (obeys_) tracker_.on_abort(nullptr);
}

void ToolReporter::obey(TurnRegistry& turns) {
  obeys_ = true;
  tracker_.on_abort([&turns](const CancelRequest& request) {
    if (request.call.empty()) {
      (void)turns.abort(request.turn, reason_of(request));
    } else {
      (void)turns.abort_call(request.turn, request.call, reason_of(request));
    }
  });
}

void ToolReporter::on_event(const TurnEvent& event) {
  constexpr std::string_view names[] = {turn_reports::turn_start, turn_reports::turn_abort,
                                        turn_reports::turn_end};
  Report report;
  report.kind = ReportKind::turn;
  report.name = names[static_cast<std::size_t>(event.kind)];
  report.call_id = event.turn;
  report.detail = TurnFacts{
      .parent = event.parent, .depth = event.depth, .reason = event.reason, .calls = event.calls};
  tracker_.report(std::move(report));
}

void ToolReporter::on_event(const ToolEvent& event) {
  switch (event.kind) {
    case ToolEvent::Kind::start: {
      auto report = report_of(ReportKind::tool_call, event);
      report.content = event.arguments;
      report.turn = event.turn;
      report.deadline = event.deadline;
      tracker_.report(std::move(report));
      break;
    }
    case ToolEvent::Kind::progress: {
      auto report = report_of(ReportKind::tool_progress, event);
      report.content = event.detail;
      report.detail = ToolProgress{.elapsed = event.elapsed,
                                   .value = event.value,
                                   .total = event.total,
                                   .bytes = static_cast<std::int64_t>(event.bytes),
                                   .accepted = event.accepted};
      tracker_.report(std::move(report));
      break;
    }
    case ToolEvent::Kind::result:
      report_result(event, *event.report);
      break;
    case ToolEvent::Kind::late: {
      auto report = report_of(ReportKind::tool_progress, event);
      report.content = "came back after its outcome was decided; what it brought is dropped";
      report.detail = ToolProgress{.bytes = static_cast<std::int64_t>(event.bytes)};
      tracker_.report(std::move(report));
      break;
    }
    case ToolEvent::Kind::queued:
    case ToolEvent::Kind::slow:
    case ToolEvent::Kind::cancel_requested:
    case ToolEvent::Kind::abandoned:  // its timeout says that it still runs
    case ToolEvent::Kind::reclaimed:
    case ToolEvent::Kind::host_stall:
      break;
  }
}

void ToolReporter::report_result(const ToolEvent& event, const CallReport& report) {
  const auto* timeout = std::get_if<ToolTimeout>(&report.outcome);
  const auto* cancelled = std::get_if<ToolCancelled>(&report.outcome);
  const bool denied = std::holds_alternative<ToolDenied>(report.outcome);
  {
    const std::lock_guard guard(mutex_);
    ++tally_.calls;
    if (is_error(report.outcome)) ++tally_.errors;
    if (denied) ++tally_.denied;
    if (timeout != nullptr) {
      ++tally_.timeouts;
      if (tally_.timed_out.size() < tools_listed_max || tally_.timed_out.contains(event.tool)) {
        ++tally_.timed_out[event.tool];
      }
    }
  }
  // Cancelled before it was reported: nothing happened.
  if (cancelled != nullptr && !report.began) return;
  // A refused call is reported with an answer: repeated requests for it are a loop.
  if (!report.began) {
    auto call = report_of(ReportKind::tool_call, event);
    // As of calls that begin: none is known to be none.
    call.content = report.call.arguments.empty() ? "{}" : report.call.arguments;
    call.turn = event.turn;
    tracker_.report(std::move(call));
  }
  auto reported = report_of(ReportKind::tool_result, event);
  reported.content = render_for_model(report);
  if (timeout != nullptr) {
    reported.kind = ReportKind::tool_timeout;
    reported.timeout = ToolTimeoutFacts{.kind = kind_of(timeout->kind),
                                        .limit = timeout->limit,
                                        .elapsed = timeout->elapsed,
                                        .still_running = timeout->still_running};
  } else if (is_error(report.outcome)) {
    reported.kind = ReportKind::error;
  }
  tracker_.report(std::move(reported));
}

ToolTally ToolReporter::tally() const {
  const std::lock_guard guard(mutex_);
  return tally_;
}

}  // namespace watchdog
