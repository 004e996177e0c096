/// \file
/// Names of the tools of coding agents, and the frames that they put around results.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace watchdog {

/// The monitor's report of a call that it denied begins so: its text and its event id.
inline constexpr std::string_view denied_call = "denied:";

/// One name for every name of a tool: hooks call `Bash` what the model's API calls `exec_command`.
/// A name that is not in the table is its own family.
[[nodiscard]] std::string_view tool_family(std::string_view tool) noexcept;

/// The purpose of a call, as far as its tool's name says it.
enum class ToolPurpose : std::uint8_t {
  unknown,   ///< anything
  command,   ///< the command in its arguments says it
  reads,     ///< it reads, searches or keeps a plan, and changes no file
  waits,     ///< it waits for something that runs, or looks how far that is
  may_wait,  ///< it waits if it sends no text
};
[[nodiscard]] ToolPurpose purpose_of_tool(std::string_view tool) noexcept;

/// True for tools whose call lasts as long as a subagent works, or that wait for one.
[[nodiscard]] bool waits_for_subagent(std::string_view tool) noexcept;

/// True for tools whose call is one text: a command or a patch.
[[nodiscard]] bool is_one_text(std::string_view tool) noexcept;
/// True for the argument that holds this text. `member` is in lower case.
[[nodiscard]] bool is_the_text(std::string_view member) noexcept;
/// True for the argument that holds what is typed into a program that runs. Likewise.
[[nodiscard]] bool is_typed_text(std::string_view member) noexcept;
/// True for an argument that only describes the call, such as a time limit or a purpose.
[[nodiscard]] bool is_beside_the_text(std::string_view member) noexcept;

/// Returns the result without the frame of the tool's agent: ids, times and process ids of the run,
/// and tags. The command's status stays.
[[nodiscard]] std::string undecorated(std::string_view tool, std::string_view result);

/// With what a command failed, by the first or the last lines of its result; 0: they do not say
/// so, or it did not fail. Codes beyond a byte are 255.
[[nodiscard]] std::uint8_t exit_code_in(std::string_view result) noexcept;

}  // namespace watchdog
