/// \file
/// The typed reasons for which a session ends. One constant for each way; `Outcome::reason` holds
/// it. Elapsed time is not among them: the two that name a limit (`legacy_time_limit`,
/// `budget_time`) exist only where the session's owner turned them on.
#pragma once

#include <string_view>

namespace watchdog::reasons {

// completed
inline constexpr std::string_view task_complete = "task_complete";
// failed
inline constexpr std::string_view connection_refused = "connection_refused";
inline constexpr std::string_view host_not_found = "host_not_found";
inline constexpr std::string_view tls_failed = "tls_failed";  ///< no trust, or not the name's
inline constexpr std::string_view connection_lost = "connection_lost";  ///< half an answer
inline constexpr std::string_view authentication = "authentication";
inline constexpr std::string_view context_exceeded =
    "context_exceeded";  ///< the prompt is too long
inline constexpr std::string_view model_client_error = "model_client_error";  ///< 4xx
inline constexpr std::string_view model_server_error = "model_server_error";  ///< 5xx
inline constexpr std::string_view rate_limited = "rate_limited";
inline constexpr std::string_view malformed_answer = "malformed_answer";
inline constexpr std::string_view tool_error = "tool_error";
inline constexpr std::string_view task_failed = "task_failed";
inline constexpr std::string_view low_confidence = "low_confidence";
inline constexpr std::string_view confirmed_stuck = "confirmed_stuck";  ///< opt-in
inline constexpr std::string_view process_exited = "process_exited";
inline constexpr std::string_view error = "error";  ///< a failure its agent did not classify
// incomplete
inline constexpr std::string_view max_iterations_reached = "max_iterations_reached";
inline constexpr std::string_view budget_exhausted = "budget_exhausted";
inline constexpr std::string_view budget_time = "budget_time";  ///< opt-in
// cancelled
inline constexpr std::string_view cancelled_by_user = "cancelled_by_user";
inline constexpr std::string_view cancelled_by_parent = "cancelled_by_parent";
inline constexpr std::string_view legacy_time_limit = "legacy_time_limit";  ///< opt-in

}  // namespace watchdog::reasons
