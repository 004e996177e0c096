/// \file
/// The one mapping between what agents send and the library's types. Text in, text out: no JSON
/// library appears in any public header. All functions are thread-safe.
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

/// The reports of a request body or a file: one object, an array, or an object a line.
struct ReportList {
  std::vector<Report> reports;
  std::size_t ignored = 0;  ///< Objects of a kind this version does not know.
};

/// Errors: `malformed` (not JSON, wrong type), `invalid` (out of range), `exhausted` (an event
/// above `event_bytes_max`), with `field` and, for lists, `line`.
[[nodiscard]] Result<ReportList> reports_from_json(std::string_view body);

/// Adds to a report what its content is recognised by (`Marks`), as far as the content is there.
/// Without effect on other kinds of reports, and the second time. Linear in the content, without
/// recursion.
void mark(Report& report);
/// True if so much of the content is kept that it can be marked whenever it is read: then marks
/// need not be stored.
[[nodiscard]] bool is_kept_whole(const Report& report, ContentLevel level);

/// One object. Empty if its kind is not known here.
[[nodiscard]] Result<std::optional<Report>> report_from_json(std::string_view object);

/// The event as the trace format's object, with what the store added: `seq`, `at_ms`, `late`,
/// `digest`, `bytes`, and for heartbeats `count`, `age_ms`, `span_ms`, `max_gap_ms`.
[[nodiscard]] std::string to_json(const Event& event);

/// The body of a session's creation; `session_id` gets the chosen id, empty if none was given.
[[nodiscard]] Result<SessionSpec> session_spec_from_json(std::string_view body,
                                                         std::string& session_id);
/// In a fixed order, so that equal specs give equal texts.
[[nodiscard]] std::string to_json(const SessionSpec& spec);

[[nodiscard]] Result<PolicyPatch> policy_patch_from_json(std::string_view object);
/// The patch in the member `policy` of an object.
[[nodiscard]] Result<PolicyPatch> policy_member_from_json(std::string_view body);
[[nodiscard]] std::string to_json(const PolicyPatch& patch);
[[nodiscard]] std::string to_json(const Policy& policy);

/// One text field of a JSON object, empty where it is absent. Errors: `malformed`.
[[nodiscard]] Result<std::string> text_field_from_json(std::string_view body,
                                                       std::string_view field);

/// One integer of a JSON object, nothing where it is absent. Errors: `malformed`.
[[nodiscard]] Result<std::optional<std::int64_t>> integer_field_from_json(std::string_view body,
                                                                          std::string_view field);

/// True if the text is one JSON value, not nested deeper than `json_depth_max`.
[[nodiscard]] bool is_json(std::string_view text);

}  // namespace watchdog
