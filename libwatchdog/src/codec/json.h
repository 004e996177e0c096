/// \file
/// Maps JSON of agents to the library's types and back. Text in, text out: no public header
/// includes a JSON library. All functions are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/policy.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/session.h"

namespace watchdog {

inline constexpr std::size_t event_bytes_max = 1'048'576;
/// Deeper JSON is refused before it is parsed.
inline constexpr int json_depth_max = 64;

/// The reports of a request body or a file: one object, an array, or one object per line (NDJSON).
struct ReportList {
  std::vector<Report> reports{};
  std::size_t ignored = 0;  ///< Objects of a kind this version does not know.
  /// Why the first of them was ignored: its kind, the nearest known kind, and its line.
  std::optional<Error> unknown{};
  /// About the first member of an event that nothing reads, with the nearest one that is read.
  std::optional<Error> unknown_member{};
};

/// Errors: `malformed` (not JSON, wrong type), `invalid` (out of range), `exhausted` (an event
/// above `event_bytes_max`), with `field` and, for lists, `line`.
[[nodiscard]] Result<ReportList> reports_from_json(std::string_view body);

/// Reads one object. Empty if its kind is unknown.
[[nodiscard]] Result<std::optional<Report>> report_from_json(std::string_view object);

/// The same. Also refuses a member that no event of its kind has, unless it is null.
[[nodiscard]] Result<std::optional<Report>> strict_report_from_json(std::string_view object);

/// The members that the store adds to an event, besides those of its kind.
inline constexpr std::string_view stored_members[] = {"seq",     "at_ms",      "origin", "late",
                                                      "digest",  "bytes",      "count",  "age_ms",
                                                      "span_ms", "max_gap_ms", "also",   "session"};

/// The event as the trace format's object, with `stored_members`.
[[nodiscard]] std::string to_json(const Event& event);

/// Reads the body of a session's creation; `session_id` gets the chosen id, empty without one.
[[nodiscard]] Result<SessionSpec> session_spec_from_json(std::string_view body,
                                                         std::string& session_id);
/// Members have a fixed order, so equal specs give equal texts.
[[nodiscard]] std::string to_json(const SessionSpec& spec);

[[nodiscard]] Result<PolicyPatch> policy_patch_from_json(std::string_view object);
/// Reads the patch in the member `policy` of an object.
[[nodiscard]] Result<PolicyPatch> policy_member_from_json(std::string_view body);
[[nodiscard]] std::string to_json(const PolicyPatch& patch);
[[nodiscard]] std::string to_json(const Policy& policy);

/// Returns one text field of a JSON object, empty if it is absent. Errors: `malformed`.
[[nodiscard]] Result<std::string> text_field_from_json(std::string_view body,
                                                       std::string_view field);

/// Returns one integer of a JSON object, nothing if it is absent. Errors: `malformed`.
[[nodiscard]] Result<std::optional<std::int64_t>> integer_field_from_json(std::string_view body,
                                                                          std::string_view field);

/// Returns true if the text is one JSON value with at most `json_depth_max` levels.
[[nodiscard]] bool is_json(std::string_view text);

}  // namespace watchdog
