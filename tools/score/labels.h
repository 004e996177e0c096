/// \file
/// People's labels of recorded runs: an index of them, and labels of single steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "watchdog/result.h"

namespace watchdog::monitor {

enum class RunOutcome : std::uint8_t { unknown, success, failure };

/// One line of an index. A plain value.
struct Label {
  std::string id;  ///< Folder and file of its trace, without the extension.
  std::string source;
  std::optional<bool> loops;  ///< Empty: not labelled.
  RunOutcome outcome = RunOutcome::unknown;
  std::string task_key;
  std::string agent;              ///< Kind of agent; empty: not known.
  std::string split;              ///< Side of the split by task; empty: none is given.
  bool overlaps_whowhen = false;  ///< The source `whowhen` has the same run.
};

/// People's label of one tool call, compared with the previous call.
struct StepLabel {
  std::int64_t seq = 0;  ///< The trace's own number of the call.
  bool repetition = false;
};

using Labels = std::map<std::string, Label>;
using StepLabels = std::map<std::string, std::vector<StepLabel>>;

/// Errors: `not_found`, `malformed`, `conflict` (a run occurs twice), naming file and line.
[[nodiscard]] Result<Labels> read_labels(const std::filesystem::path& index);
/// Lines about anything but two actions in succession are left out. Errors: `not_found`,
/// `malformed`, naming file and line.
[[nodiscard]] Result<StepLabels> read_step_labels(const std::filesystem::path& steps);

/// Returns a trace's name in an index: its last two path components, without the extension.
[[nodiscard]] std::string label_id(const std::filesystem::path& trace);

}  // namespace watchdog::monitor

namespace watchdog {

template <>
struct Names<monitor::RunOutcome> {
  static constexpr std::string_view all[] = {"unknown", "success", "failure"};
};

}  // namespace watchdog
