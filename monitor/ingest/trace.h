/// \file
/// Recorded runs of agents as files: one JSON object a line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "watchdog/report.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// One line that became a report. A plain value.
struct TraceLine {
  Report report;
  std::int64_t seq = 0;  ///< The trace's own number, or the line's place counted from 0.
  int line = 0;          ///< Counted from 1.
};

/// Reads a trace line by line. Use from one thread at a time.
class Trace {
 public:
  /// Errors: `not_found`.
  [[nodiscard]] static Result<Trace> open(const std::filesystem::path& file);

  /// The next line that is a report; empty at the end. Errors: `malformed`, `invalid`, `exhausted`,
  /// naming file and line.
  [[nodiscard]] Result<std::optional<TraceLine>> next();

  /// Returns the session id in the file's name.
  [[nodiscard]] std::string session() const;

 private:
  std::filesystem::path file_;
  std::ifstream stream_;
  int line_ = 0;
};

}  // namespace watchdog::monitor
