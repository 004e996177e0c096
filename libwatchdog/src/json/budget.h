/// \file
/// The figures of a budget as JSON: of an event, and of the progress document.
#pragma once

#include "json/fields.h"
#include "watchdog/budget.h"
#include "watchdog/json_writer.h"

namespace watchdog {

/// The fields of an event (and of a snapshot), named as in the trace format; those without a value
/// are left out. What was written is read back as it was.
void write_figures(JsonWriter& out, const BudgetFigures& figures);

/// Of what agents send, and of what was stored. Shares and what is left are worked out from counts
/// and limits where there are any; the stage is the sender's, or by the usual thresholds.
[[nodiscard]] BudgetFigures read_figures(Fields& fields);

/// The same as members of the progress document, `null` where there is no value.
void write_figures_shown(JsonWriter& out, const BudgetFigures& figures);

}  // namespace watchdog
