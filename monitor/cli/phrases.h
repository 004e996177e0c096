/// \file
/// What is in the answers, in words for people.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace watchdog::monitor {

/// To standard output.
void print(const std::string& text);
void print_line(const std::string& text);
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
/// Date and time in the zone of whoever looks.
[[nodiscard]] std::string local_time(std::int64_t ms);

/// An event in a line: number, time, kind, and the rest as it is.
[[nodiscard]] std::string event_line(const nlohmann::json& event);

// Of a progress document:
/// How it ended, or how it is.
[[nodiscard]] std::string condition_of(const nlohmann::json& document);
/// Why it is so.
[[nodiscard]] std::string reason_in(const nlohmann::json& document);
/// `because its child …`; empty if none explains it.
[[nodiscard]] std::string explanation_in(const nlohmann::json& document);
/// What its model's server does, also of a row: `reads the prompt: 41,216 of 61,440 tokens`; empty
/// where nothing is known.
[[nodiscard]] std::string server_in(const nlohmann::json& document);
/// Likewise in brief: `reading 41,216 / 61,440`.
[[nodiscard]] std::string server_brief_in(const nlohmann::json& document);
/// Prints what its model's server does, its open turns and tool calls, what it waits for and who
/// asked it to stop.
void print_pending(const nlohmann::json& document);

}  // namespace watchdog::monitor
