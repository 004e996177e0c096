#include "codec/turns.h"

#include <algorithm>

#include "codec/counts.h"
#include "watchdog/history.h"

namespace watchdog {
namespace {

constexpr std::int64_t turn_depth_max = 1'000;

/// A process may say anything of itself; what is stored can be read again.
std::int64_t counted(std::int64_t number) {
  return std::clamp<std::int64_t>(number, 0, budget_max);
}

void write_number(JsonWriter& out, std::string_view name, const std::optional<double>& number) {
  if (number && *number >= 0 && *number <= static_cast<double>(budget_max)) {
    out.field(name, *number);
  }
}

}  // namespace

TurnFacts read_turn(Fields& fields, std::size_t bytes_max) {
  Counts counts(fields);
  TurnFacts turn;
  fields.text("parent_turn_id", turn.parent, bytes_max);
  turn.depth = static_cast<int>(counts.integer("depth", turn_depth_max).value_or(0));
  fields.text("reason", turn.reason, bytes_max);
  turn.calls = counts.integer("tool_calls").value_or(0);
  return turn;
}

void write_turn(JsonWriter& out, const TurnFacts& turn) {
  if (!turn.parent.empty()) out.field("parent_turn_id", turn.parent);
  if (turn.depth > 0) out.field("depth", std::min<std::int64_t>(turn.depth, turn_depth_max));
  if (!turn.reason.empty()) out.field("reason", turn.reason);
  if (turn.calls > 0) out.field("tool_calls", counted(turn.calls));
}

ToolProgress read_progress(Fields& fields) {
  Counts counts(fields);
  ToolProgress progress;
  progress.elapsed = counts.ms("elapsed_ms").value_or(Millis{0});
  progress.value = counts.number("value");
  progress.total = counts.number("total");
  progress.bytes = counts.integer("output_bytes").value_or(0);
  progress.accepted = counts.integer("accepted").value_or(0);
  return progress;
}

void write_progress(JsonWriter& out, const ToolProgress& progress) {
  out.field("elapsed_ms", counted(progress.elapsed.count()));
  write_number(out, "value", progress.value);
  write_number(out, "total", progress.total);
  if (progress.bytes > 0) out.field("output_bytes", counted(progress.bytes));
  if (progress.accepted > 0) out.field("accepted", counted(progress.accepted));
}

ToolTimeoutFacts read_timeout(Fields& fields) {
  Counts counts(fields);
  ToolTimeoutFacts timeout;
  std::optional<ToolTimeoutFacts::Kind> kind;
  fields.choice("limit_kind", kind);
  timeout.kind = kind.value_or(ToolTimeoutFacts::Kind::idle);
  timeout.limit = counts.ms("limit_ms").value_or(Millis{0});
  timeout.elapsed = counts.ms("elapsed_ms").value_or(Millis{0});
  std::optional<bool> running;
  fields.flag("still_running", running);
  timeout.still_running = running.value_or(false);
  return timeout;
}

void write_timeout(JsonWriter& out, const ToolTimeoutFacts& timeout) {
  out.field("limit_kind", name_of(timeout.kind));
  out.field("limit_ms", counted(timeout.limit.count()));
  out.field("elapsed_ms", counted(timeout.elapsed.count()));
  out.field("still_running", timeout.still_running);
}

Evidence read_evidence(Fields& fields) {
  Counts counts(fields);
  std::optional<ServerState> state;
  fields.choice("state", state);
  return bounded({.state = state.value_or(ServerState::unknown),
                  .done = counts.integer("done").value_or(0),
                  .total = counts.integer("total").value_or(0),
                  .left = counts.ms("left_ms")});
}

void write_evidence(JsonWriter& out, const Evidence& evidence) {
  const auto said = bounded(evidence);
  out.field("state", name_of(said.state));
  if (said.done > 0) out.field("done", said.done);
  if (said.total > 0) out.field("total", said.total);
  if (said.left) out.field("left_ms", said.left->count());
}

}  // namespace watchdog
