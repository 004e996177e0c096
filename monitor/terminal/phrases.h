/// \file
/// Answers of a monitor in words for people.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "watchdog/time.h"

namespace watchdog::monitor {

/// One line of what is known of a session, indented below its heading.
void print_fact(const char* name, const std::string& text);

/// A field's text, safe for the terminal; `–` where it is null or missing.
[[nodiscard]] std::string shown(const nlohmann::json& object, const char* name);
/// `0.3 s`, `12 min`.
[[nodiscard]] std::string lasting(std::int64_t ms);
/// `1 call`, `3 calls`.
[[nodiscard]] std::string counted_calls(std::int64_t count);
/// `12 min ago`; `–` for null.
[[nodiscard]] std::string ago(const nlohmann::json& milliseconds);
/// Date and time in the user's time zone.
[[nodiscard]] std::string local_time(std::int64_t ms);

/// An event in a line: number, time, kind, and the rest as it is.
[[nodiscard]] std::string event_line(const nlohmann::json& event);

/// A session as people know it, of a document or a row, and as messages name it: `parser: Fix the
/// tests`, its folder and its title; `–`: it has neither.
[[nodiscard]] std::string title_in(const nlohmann::json& document);
/// A call with the command that it runs: `Bash: make release`.
[[nodiscard]] std::string call_in(const nlohmann::json& tool);
/// The id of a session in a table: a short one on a terminal, where commands take it as well.
[[nodiscard]] std::string id_in(const nlohmann::json& row);

/// Prints title, folder, agent, task and parent of a progress document. A text that stands above
/// already, as the session's id or in another line, is left out.
void print_identity(const nlohmann::json& document);

// Of a progress document: its end, or its state.
[[nodiscard]] std::string condition_of(const nlohmann::json& document);
/// The reason of that state, also of a row or an alert. Of a wait that ends: when that is in the
/// user's time zone, and how long it is until then.
[[nodiscard]] std::string reason_in(const nlohmann::json& document);
/// `because its child …`; empty if none explains it.
[[nodiscard]] std::string explanation_in(const nlohmann::json& document);
/// Prints the notices of a document below its reason: what its turn left open, that everybody
/// in its group waits, a child that never spoke. They change nothing.
void print_notices(const nlohmann::json& document);
/// The reason of a row, and its notices.
[[nodiscard]] std::string reason_and_notices_in(const nlohmann::json& row);
/// Returns what similar sessions suggest, one text each; empty: nothing is worth showing.
[[nodiscard]] std::vector<std::string> estimate_in(const nlohmann::json& document);
/// Returns the state of its model server, also of a row: `reads the prompt: 41,216 of 61,440
/// tokens`; empty if unknown.
[[nodiscard]] std::string server_in(const nlohmann::json& document);
/// Likewise in brief: `reading 41,216 / 61,440`.
[[nodiscard]] std::string server_brief_in(const nlohmann::json& document);
/// "running, attempt 1"; of a dead session not that it runs.
[[nodiscard]] std::string lifecycle_in(const nlohmann::json& document);
/// Returns by which ways it was heard, and how long ago each: `hooks 12 s ago, proxy 3 min ago`;
/// empty: none but the monitor itself.
[[nodiscard]] std::string sources_in(const nlohmann::json& document, WallTime now);
/// Prints the state of its model server, its open turns and tool calls, its wait, and requests to
/// stop.
void print_pending(const nlohmann::json& document);

}  // namespace watchdog::monitor
