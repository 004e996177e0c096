/// \file
/// The recorded runs of real agents, which do not belong to the project.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "support/scenario.h"

namespace watchdog::test {

/// From WATCHDOG_CORPUS, else beside the project.
inline std::filesystem::path corpus() {
  const char* chosen = std::getenv("WATCHDOG_CORPUS");
  return chosen != nullptr ? std::filesystem::path(chosen)
                           : std::filesystem::path(PROJECT_ROOT).parent_path() / "shared/corpus";
}

/// Why a test is skipped without them. They belong to other people, so a clone does not have them.
inline constexpr const char* no_recorded_runs =
    "the recorded runs are not part of the project; set WATCHDOG_CORPUS to their folder";

/// Its traces, in order; says how many there are.
inline std::vector<std::string> recorded_runs() {
  std::vector<std::string> traces;
  std::error_code trouble;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus(), trouble)) {
    if (entry.path().extension() == ".jsonl" && entry.path().parent_path() != corpus())
      traces.push_back(entry.path());
  }
  std::sort(traces.begin(), traces.end());
  std::cout << (traces.empty() ? "recorded runs are absent"
                               : "recorded runs used: " + std::to_string(traces.size()))
            << std::endl;
  return traces;
}

/// All recorded runs, but under a sanitizer each fifth.
inline std::vector<std::string> some_recorded_runs() {
  const auto traces = recorded_runs();
  const auto stride = static_cast<std::size_t>(100 / repetitions(100, 1));
  std::vector<std::string> some;
  for (std::size_t at = 0; at < traces.size(); at += stride) some.push_back(traces[at]);
  return some;
}

}  // namespace watchdog::test
