/// \file
/// The typed reasons for which a session ends. One constant for each way; `Outcome::reason` holds
/// it, and `Outcome::subject` what it is about. Elapsed time is not among them: the two that name a
/// limit (`legacy_time_limit`, `budget_time`) exist only where the session's owner turned them on.
/// Agents may give reasons of their own; those of the library are all here.
#pragma once

#include <string_view>

namespace watchdog::reasons {

// completed
inline constexpr std::string_view task_complete =
    "task_complete";  ///< The agent states that its task is complete.
// failed
inline constexpr std::string_view connection_refused =
    "connection_refused";  ///< The model server accepts no connection.
inline constexpr std::string_view host_not_found =
    "host_not_found";  ///< The name of the model server is unknown.
inline constexpr std::string_view tls_failed = "tls_failed";  ///< no trust, or not the name's
inline constexpr std::string_view connection_lost = "connection_lost";  ///< half an answer
inline constexpr std::string_view authentication =
    "authentication";  ///< The model server refuses the key.
inline constexpr std::string_view context_exceeded =
    "context_exceeded";  ///< the prompt is too long
inline constexpr std::string_view model_client_error = "model_client_error";  ///< 4xx
inline constexpr std::string_view model_server_error = "model_server_error";  ///< 5xx
inline constexpr std::string_view rate_limited =
    "rate_limited";  ///< The model server refuses further requests for now.
inline constexpr std::string_view malformed_answer =
    "malformed_answer";                                       ///< The answer cannot be read.
inline constexpr std::string_view tool_error = "tool_error";  ///< A tool failed.
inline constexpr std::string_view task_failed =
    "task_failed";  ///< The agent states that its task has failed.
inline constexpr std::string_view low_confidence =
    "low_confidence";  ///< The agent had little confidence several times in a row.
inline constexpr std::string_view confirmed_stuck = "confirmed_stuck";  ///< opt-in
inline constexpr std::string_view process_exited =
    "process_exited";  ///< The process ended without ending its session.
inline constexpr std::string_view error = "error";  ///< a failure its agent did not classify
// incomplete
inline constexpr std::string_view max_iterations_reached =
    "max_iterations_reached";  ///< The failsafe of iterations was reached.
inline constexpr std::string_view budget_exhausted = "budget_exhausted";  ///< subject: the axis
inline constexpr std::string_view budget_time = "budget_time";            ///< opt-in
inline constexpr std::string_view abandoned =
    "abandoned";  ///< not ended by anybody and quiet for as long as ended sessions are kept
inline constexpr std::string_view no_answer =
    "no_answer";  ///< its agent went away before its answer was complete
inline constexpr std::string_view unspecified = "unspecified";  ///< its agent did not say
// cancelled
inline constexpr std::string_view cancelled = "cancelled";                  ///< subject: by whom
inline constexpr std::string_view legacy_time_limit = "legacy_time_limit";  ///< opt-in

/// All reasons of the library, without the parties that cancel.
inline constexpr std::string_view all[] = {task_complete,
                                           connection_refused,
                                           host_not_found,
                                           tls_failed,
                                           connection_lost,
                                           authentication,
                                           context_exceeded,
                                           model_client_error,
                                           model_server_error,
                                           rate_limited,
                                           malformed_answer,
                                           tool_error,
                                           task_failed,
                                           low_confidence,
                                           confirmed_stuck,
                                           process_exited,
                                           error,
                                           max_iterations_reached,
                                           budget_exhausted,
                                           budget_time,
                                           abandoned,
                                           no_answer,
                                           unspecified,
                                           cancelled,
                                           legacy_time_limit};

// Of failures that end nothing.
inline constexpr std::string_view not_asked = "not_asked";  ///< a check that would disturb

// Subjects of `cancelled` that the library gives itself.
inline constexpr std::string_view user = "user";      ///< A person.
inline constexpr std::string_view parent = "parent";  ///< The session that started it.

}  // namespace watchdog::reasons
