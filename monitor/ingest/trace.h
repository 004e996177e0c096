/// \file
/// Recorded runs of agents as files: one JSON object a line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ingest/bounded_lines.h"
#include "watchdog/report.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// One line that became a report. A plain value.
struct TraceLine {
  Report report;
  std::int64_t seq = 0;  ///< The trace's own number, or the line's place counted from 0.
  int line = 0;          ///< Counted from 1.
};

/// Returns the session id that a file gives: its name without folder and extension. Pure.
[[nodiscard]] std::string session_in_name(const std::filesystem::path& file);
/// The same for several files. Files of one name get as many folders before it (`folder:name`) as
/// tell them apart.
[[nodiscard]] std::vector<std::string> sessions_in_names(
    const std::vector<std::filesystem::path>& files);

/// Reads a trace line by line. Use from one thread at a time.
class Trace {
 public:
  /// Errors: `not_found`.
  [[nodiscard]] static Result<Trace> open(const std::filesystem::path& file);

  /// The next line that is a report; empty at the end. Errors: `malformed`, `invalid`, `exhausted`,
  /// naming file and line.
  [[nodiscard]] Result<std::optional<TraceLine>> next();

  /// Bytes read so far.
  [[nodiscard]] std::int64_t bytes() const noexcept { return lines_.bytes(); }
  /// Returns the session id in the file's name.
  [[nodiscard]] const std::string& session() const noexcept { return session_; }

 private:
  Trace(BoundedLines lines, std::string session)
      : lines_(std::move(lines)), session_(std::move(session)) {}

  BoundedLines lines_;
  std::string session_;
};

}  // namespace watchdog::monitor
