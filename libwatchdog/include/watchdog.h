/**
 * \file
 * Reporting progress from C and whatever can call C: one session, kept in the shared file.
 *
 * The interface is stable: functions are added and never changed; everything is behind an opaque
 * handle. No function throws, exits or stops the caller: what goes wrong is told by the result, and
 * in words by watchdog_last_error(). Strings are UTF-8 and end with a zero; NULL counts as "". All
 * functions of a handle may be called from any thread, also at once; but for watchdog_close(),
 * after which the handle is gone. A NULL handle is refused and does no harm. A child made by fork()
 * does nothing through its parent's handle.
 */
#ifndef WATCHDOG_H
#define WATCHDOG_H

#include <stdint.h>

#if defined(__GNUC__)
#define WATCHDOG_API __attribute__((visibility("default")))
#else
#define WATCHDOG_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** One session. */
typedef struct watchdog_tracker watchdog_tracker;

/** What a report is answered with, and what the other functions return. */
enum {
  WATCHDOG_OK = 0,          /**< Taken. */
  WATCHDOG_CANCEL = 1,      /**< Taken; somebody asks the agent to stop: wind up, then
                                 watchdog_cancelled(). */
  WATCHDOG_INVALID = -1,    /**< An argument cannot be. */
  WATCHDOG_CONFLICT = -2,   /**< The session has ended already. */
  WATCHDOG_UNAVAILABLE = -3 /**< Not on disk yet; it stays queued while the process lives. */
};

/** How a session ended, for watchdog_end(). */
enum { WATCHDOG_COMPLETED = 0, WATCHDOG_FAILED = 1, WATCHDOG_INCOMPLETE = 2 };

/** "The loop has no number." */
#define WATCHDOG_NO_ITERATION INT64_MIN

/**
 * Begins a session, or takes up one that is there. `database`: NULL or "" for the usual place;
 * `session`: likewise for a fresh id; `agent` and `task` are for people. A file that cannot be
 * written is no error: reports wait in memory. NULL: an argument cannot be, or there is no memory;
 * then watchdog_last_error() says why.
 */
WATCHDOG_API watchdog_tracker* watchdog_open(const char* database, const char* session,
                                             const char* agent, const char* task);

/** Writes what is pending, for some seconds at most. Ends nothing: without watchdog_end() the
 *  session stays running. */
WATCHDOG_API void watchdog_close(watchdog_tracker* handle);

/** The session's id; valid until watchdog_close(). */
WATCHDOG_API const char* watchdog_session(const watchdog_tracker* handle);

/** "I am alive", from the agent's own loop. Never waits for the disk. `phase` may be NULL. */
WATCHDOG_API int watchdog_heartbeat(watchdog_tracker* handle, int64_t iteration, const char* phase);

/** "I got somewhere." `data`: JSON or any other text, or NULL. */
WATCHDOG_API int watchdog_state_change(watchdog_tracker* handle, const char* type,
                                       const char* data);

/** A tool is called. `arguments`: likewise. `call_id` pairs it with its result; it may be NULL. */
WATCHDOG_API int watchdog_tool_call(watchdog_tracker* handle, const char* tool,
                                    const char* arguments, const char* call_id);

/** It is over: with a result, or with an error if `failed` is not 0. */
WATCHDOG_API int watchdog_tool_result(watchdog_tracker* handle, const char* tool,
                                      const char* result, const char* call_id, int failed);

/** Whether somebody asks the agent to stop: 1 or 0. Never waits. */
WATCHDOG_API int watchdog_cancel_requested(const watchdog_tracker* handle);

/** Ends the session, and returns once that is on disk. `reason` is a word for programs, `error` a
 *  text for people; both may be NULL. */
WATCHDOG_API int watchdog_end(watchdog_tracker* handle, int outcome, const char* reason,
                              const char* error);

/** Ends it as cancelled, by whom. */
WATCHDOG_API int watchdog_cancelled(watchdog_tracker* handle, const char* by);

/** Returns once everything reported so far is on disk. */
WATCHDOG_API int watchdog_flush(watchdog_tracker* handle);

/** Why the newest call of this thread that failed did: in words, never NULL, valid until its next
 *  call that fails. "" if none did. */
WATCHDOG_API const char* watchdog_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
