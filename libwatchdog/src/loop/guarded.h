/// \file
/// Calls of an agent's own code, which may throw.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "watchdog/model_client.h"
#include "watchdog/reasons.h"
#include "watchdog/session.h"

namespace watchdog {

/// Returns a callback's result, or its exception as a failure.
template <class T, class Call>
Result<T, Failure> guarded(const char* what, Call&& call) {
  const auto failed = [&](const std::string& why) {
    return Failure{.reason = std::string(reasons::error),
                   .message = std::string(what) + " threw: " + why};
  };
  try {
    return std::forward<Call>(call)();
  } catch (const std::exception& error) {
    return failed(error.what());
  } catch (...) {
    return failed("something that is not a std::exception");
  }
}

/// The end of a run because of a callback's failure.
inline Outcome outcome_of(const Failure& failure) {
  auto outcome =
      with_subject({.kind = OutcomeKind::failed,
                    .reason = failure.reason.empty() ? std::string(reasons::error) : failure.reason,
                    .error = failure.message});
  if (outcome.reason == reasons::cancelled) outcome.kind = OutcomeKind::cancelled;
  return outcome;
}

}  // namespace watchdog
