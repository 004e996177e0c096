// `guarded` is the way from C to the tracker: it refuses a null handle, catches every exception,
// and turns the result into a number. The text of an error is kept per thread, and keeping it may
// fail for want of memory. Null texts count as empty. The outcomes of the C interface have the
// numbers of OutcomeKind, so `watchdog_end` only casts.
#include "watchdog.h"

#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "watchdog/reasons.h"
#include "watchdog/tracker.h"

struct watchdog_tracker {
  explicit watchdog_tracker(watchdog::ProgressTracker::Config config) : own(std::move(config)) {}
  watchdog::ProgressTracker own;
};

namespace {

using watchdog::Advice;
using watchdog::Error;
using watchdog::ErrorCode;
using watchdog::Result;

/// The beginning of the year 10000, as for `until_ms` over HTTP.
constexpr std::int64_t latest_until_ms = 253'402'300'800'000;

std::string& last_error() {
  thread_local std::string text;
  return text;
}

/// There may be no memory to say so.
void note(const char* text) noexcept {
  try {
    last_error() = text;
  } catch (...) {
    last_error().clear();
  }
}

int refused(const char* text) noexcept {
  note(text);
  return WATCHDOG_INVALID;
}

std::string_view text_of(const char* text) noexcept {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

int code_of(Advice advice) {
  return advice == Advice::cancel ? WATCHDOG_CANCEL : WATCHDOG_OK;
}
int code_of(const Result<void>& result) {
  if (result) return WATCHDOG_OK;
  note(result.error().message.c_str());
  return result.error().code == ErrorCode::conflict ? WATCHDOG_CONFLICT : WATCHDOG_UNAVAILABLE;
}

/// Nothing gets out of here but a number.
template <class Report>
int guarded(watchdog_tracker* handle, const Report& report) noexcept {
  if (handle == nullptr) return refused("there is no handle");
  try {
    return code_of(report(handle->own));
  } catch (const std::exception& thrown) {
    note(thrown.what());
  } catch (...) {
    note("it is not known why");
  }
  return WATCHDOG_UNAVAILABLE;
}

}  // namespace

extern "C" {

watchdog_tracker* watchdog_open(const char* database, const char* session, const char* agent,
                                const char* task) {
  try {
    watchdog::ProgressTracker::Config config;
    config.database = text_of(database);
    config.session = text_of(session);
    config.spec.agent = text_of(agent);
    config.spec.task = text_of(task);
    if (const auto allowed = watchdog::check(config); !allowed) {
      note(allowed.error().message.c_str());
      return nullptr;
    }
    return new watchdog_tracker(std::move(config));
  } catch (const std::exception& thrown) {
    note(thrown.what());
  } catch (...) {
    note("it is not known why");
  }
  return nullptr;
}

void watchdog_close(watchdog_tracker* handle) {
  try {
    delete handle;
  } catch (...) {
    note("it is not known why");
  }
}

const char* watchdog_session(const watchdog_tracker* handle) {
  return handle == nullptr ? "" : handle->own.session().c_str();
}

int watchdog_heartbeat(watchdog_tracker* handle, int64_t iteration, const char* phase) {
  return guarded(handle, [&](auto& tracker) {
    watchdog::Heartbeat beat{.phase = text_of(phase)};
    if (iteration != WATCHDOG_NO_ITERATION) beat.iteration = iteration;
    return tracker.heartbeat(beat);
  });
}

int watchdog_state_change(watchdog_tracker* handle, const char* type, const char* data) {
  if (text_of(type).empty()) return refused("type says what kind of state change it is");
  return guarded(handle, [&](auto& tracker) { return tracker.state_change(type, text_of(data)); });
}

int watchdog_tool_call(watchdog_tracker* handle, const char* tool, const char* arguments,
                       const char* call_id) {
  if (text_of(tool).empty()) return refused("tool says which tool is called");
  return guarded(handle, [&](auto& tracker) {
    return tracker.tool_call(tool, text_of(arguments), text_of(call_id));
  });
}

int watchdog_tool_result(watchdog_tracker* handle, const char* tool, const char* result,
                         const char* call_id, int failed) {
  if (text_of(tool).empty()) return refused("tool says which tool was called");
  return guarded(handle, [&](auto& tracker) {
    return failed != 0 ? tracker.tool_error(tool, text_of(result), text_of(call_id))
                       : tracker.tool_result(tool, text_of(result), text_of(call_id));
  });
}

int watchdog_wait_for(watchdog_tracker* handle, const char* what, const char* why,
                      int64_t until_ms) {
  if (text_of(what).empty()) return refused("what says what the agent waits for");
  if (until_ms < WATCHDOG_NO_END || until_ms > latest_until_ms)
    return refused("until_ms must be from 0 to 253402300800000, in milliseconds since 1970");
  return guarded(handle, [&](auto& tracker) {
    if (until_ms == WATCHDOG_NO_END) return tracker.wait_for(what, text_of(why));
    return tracker.wait_for(what, text_of(why), watchdog::WallTime{watchdog::Millis{until_ms}});
  });
}

int watchdog_cancel_requested(const watchdog_tracker* handle) {
  return handle != nullptr && handle->own.cancel_token().stop_requested() ? 1 : 0;
}

int watchdog_end(watchdog_tracker* handle, int outcome, const char* reason, const char* error) {
  namespace reasons = watchdog::reasons;
  using watchdog::OutcomeKind;
  if (outcome < WATCHDOG_COMPLETED || outcome > WATCHDOG_INCOMPLETE)
    return refused("outcome is WATCHDOG_COMPLETED, WATCHDOG_FAILED or WATCHDOG_INCOMPLETE");
  return guarded(handle, [&](auto& tracker) {
    constexpr std::string_view usual[] = {reasons::task_complete, reasons::error,
                                          reasons::unspecified};
    const auto word = text_of(reason).empty() ? usual[outcome] : text_of(reason);
    return tracker.end({.kind = static_cast<OutcomeKind>(outcome),
                        .reason = std::string(word),
                        .error = std::string(text_of(error))});
  });
}

int watchdog_cancelled(watchdog_tracker* handle, const char* by) {
  return guarded(handle, [&](auto& tracker) {
    return tracker.cancelled(text_of(by).empty() ? "user" : text_of(by));
  });
}

int watchdog_flush(watchdog_tracker* handle) {
  return guarded(handle, [](auto& tracker) { return tracker.flush(); });
}

const char* watchdog_last_error(void) {
  return last_error().c_str();
}

}  // extern "C"
