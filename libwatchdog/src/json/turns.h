/// \file
/// What reports of turns, of calls that run or were given up, and of a model's server say beside
/// their content; named as in the trace format. What was written is read back as it was.
#pragma once

#include "json/fields.h"
#include "watchdog/json_writer.h"
#include "watchdog/report.h"

namespace watchdog {

[[nodiscard]] TurnFacts read_turn(Fields& fields, std::size_t bytes_max);
void write_turn(JsonWriter& out, const TurnFacts& turn);

[[nodiscard]] ToolProgress read_progress(Fields& fields);
void write_progress(JsonWriter& out, const ToolProgress& progress);

[[nodiscard]] ToolTimeoutFacts read_timeout(Fields& fields);
void write_timeout(JsonWriter& out, const ToolTimeoutFacts& timeout);

/// Numbers are brought within bounds, by either.
[[nodiscard]] Evidence read_evidence(Fields& fields);
void write_evidence(JsonWriter& out, const Evidence& evidence);

}  // namespace watchdog
