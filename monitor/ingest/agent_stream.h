/// \file
/// Finds the events of an agent in the output of a command.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "watchdog/report.h"

namespace watchdog::monitor {

/// One output that may be that of `claude -p --output-format stream-json`. The command's session is
/// the agent's session. Only this agent's events are read, because its hooks give the same ids to
/// the same calls: a call that both report counts once. Use from one thread at a time.
class AgentStream {
 public:
  /// An agent's first event is looked for in this many lines.
  static constexpr int lines_before_max = 1'000;
  /// A longer line costs that line.
  static constexpr std::size_t line_bytes_max = 16UL * 1024 * 1024;

  AgentStream();
  ~AgentStream();
  AgentStream(const AgentStream&) = delete;
  AgentStream& operator=(const AgentStream&) = delete;

  /// True: the output is not one of an agent. No further line is looked at.
  [[nodiscard]] bool is_over() const noexcept;
  /// True: the output is one of an agent.
  [[nodiscard]] bool has_begun() const noexcept;
  /// Returns the reports of the agent in a line. Reports of its subagents are left out,
  /// because they are not the agent's own progress.
  [[nodiscard]] std::vector<Report> read(std::string_view line);
  /// Ends the output, and returns how the agent says that its run ended.
  [[nodiscard]] std::optional<Outcome> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
