#include "mcp/api_event.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "codec/json.h"
#include "mcp/rpc.h"

namespace watchdog::monitor {

Event api_event(const nlohmann::json& object) {
  using mcp::number_in;
  Event event{.seq = number_in(object, "seq"),
              .at = WallTime{Millis{number_in(object, "at_ms")}},
              .late = mcp::member(object, "late") == true};
  const auto kind = named<ReportKind>(mcp::text_in(object, "kind"));
  if (auto report = report_from_json(object.dump()); report && *report) {
    event.report = std::move(**report);
  }
  event.report.kind = kind.value_or(ReportKind::compaction);
  if (event.report.kind != ReportKind::heartbeat) return event;
  auto* said = std::get_if<Heartbeats>(&event.report.detail);
  Heartbeats beats = said != nullptr ? std::move(*said) : Heartbeats{};
  beats.count = number_in(object, "count", 1);
  beats.fresh = number_in(object, "fresh");
  if (beats.iteration)
    beats.iteration_first = number_in(object, "iteration_first", *beats.iteration);
  event.report.detail = std::move(beats);
  return event;
}

}  // namespace watchdog::monitor
