/// \file
/// The figures of a budget as JSON: of an event, and of the progress document.
#pragma once

#include "codec/fields.h"
#include "text/json_writer.h"
#include "watchdog/budget.h"

namespace watchdog {

/// Writes the fields of an event (and of a snapshot), named as in the trace format, without empty
/// ones. Reading them back gives the same values.
void write_figures(JsonWriter& out, const BudgetFigures& figures);

/// Reads fields of agents, and stored ones. Shares and remainders are computed from counts and
/// limits, if there are any; the stage is the sender's, or follows the usual thresholds.
[[nodiscard]] BudgetFigures read_figures(Fields& fields);

/// Writes the same as members of the progress document, `null` for empty ones.
void write_figures_shown(JsonWriter& out, const BudgetFigures& figures);

}  // namespace watchdog
