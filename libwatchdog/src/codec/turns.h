/// \file
/// Fields of reports about turns, running or abandoned calls, and model servers, named as in the
/// trace format. Reading them back gives the same values.
#pragma once

#include "codec/fields.h"
#include "text/json_writer.h"
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
