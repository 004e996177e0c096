/// \file
/// Recorded runs as examples of predictions: features and outcome, no content.
#pragma once

#include <filesystem>
#include <optional>

#include "predict/example.h"
#include "score/labels.h"

namespace watchdog::monitor {

/// Nothing if the outcome is unknown, or the run is in `whowhen` as well. Errors: as of `Trace`.
[[nodiscard]] Result<std::optional<Example>> example_of(const std::filesystem::path& file,
                                                        const Label& label);

}  // namespace watchdog::monitor
