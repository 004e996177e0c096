/**
 * \file
 * Reports progress from C, and from languages that can call C: one session in the shared file.
 *
 * The interface is stable: functions are added and never changed, and the handle is opaque. No
 * function throws, exits or stops the caller. The result reports errors, and watchdog_last_error()
 * has their text. Strings are UTF-8 and end with a zero; NULL counts as "". All functions of a
 * handle may be called from any thread at the same time, except watchdog_close(), which destroys
 * the handle. A NULL handle is refused. In a forked child, the parent's handle has no effect.
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

/** Results of the functions. */
enum {
  WATCHDOG_OK = 0,          /**< Accepted. */
  WATCHDOG_CANCEL = 1,      /**< Accepted; the agent is to stop: clean up, then call
                                 watchdog_cancelled(). */
  WATCHDOG_INVALID = -1,    /**< An argument is not allowed. */
  WATCHDOG_CONFLICT = -2,   /**< The session has ended already. */
  WATCHDOG_UNAVAILABLE = -3 /**< Not on disk yet; it stays queued while the process lives. */
};

/** How a session ended, for watchdog_end(). */
enum { WATCHDOG_COMPLETED = 0, WATCHDOG_FAILED = 1, WATCHDOG_INCOMPLETE = 2 };

/** "The loop has no number." */
#define WATCHDOG_NO_ITERATION INT64_MIN

/**
 * Begins a session, or continues an existing one. `database`: NULL or "" for the default;
 * `session`: likewise for a new id; `agent` and `task` are for people. A file that cannot be
 * written is not an error: reports wait in memory. Returns NULL if an argument is not allowed, or
 * without memory; watchdog_last_error() then has the cause.
 */
WATCHDOG_API watchdog_tracker* watchdog_open(const char* database, const char* session,
                                             const char* agent, const char* task);

/** Writes pending reports for some seconds at most. Without watchdog_end() the session stays
 *  running. */
WATCHDOG_API void watchdog_close(watchdog_tracker* handle);

/** The session's id; valid until watchdog_close(). */
WATCHDOG_API const char* watchdog_session(const watchdog_tracker* handle);

/** Reports an iteration of the agent's loop. Never waits for the disk. `phase` may be NULL. */
WATCHDOG_API int watchdog_heartbeat(watchdog_tracker* handle, int64_t iteration, const char* phase);

/** Reports progress. `data`: JSON or any other text, or NULL. */
WATCHDOG_API int watchdog_state_change(watchdog_tracker* handle, const char* type,
                                       const char* data);

/** Reports a tool call. `arguments`: likewise. `call_id` pairs it with its result, or NULL. */
WATCHDOG_API int watchdog_tool_call(watchdog_tracker* handle, const char* tool,
                                    const char* arguments, const char* call_id);

/** Reports the end of a call: a result, or an error if `failed` is not 0. */
WATCHDOG_API int watchdog_tool_result(watchdog_tracker* handle, const char* tool,
                                      const char* result, const char* call_id, int failed);

/** "It is not known when the wait ends." */
#define WATCHDOG_NO_END 0

/** Declares a wait for "input", "approval", "quota", "backend" or another word. The next state
 *  change, tool call or iteration ends it. `why` is for people, or NULL. `until_ms`: when it is
 *  expected to end, in milliseconds since 1970 (UTC), or WATCHDOG_NO_END. */
WATCHDOG_API int watchdog_wait_for(watchdog_tracker* handle, const char* what, const char* why,
                                   int64_t until_ms);

/** Returns 1 if the agent is to stop, else 0. Never waits. */
WATCHDOG_API int watchdog_cancel_requested(const watchdog_tracker* handle);

/** Ends the session; returns when that is on disk. `reason` is a word for programs, `error` a text
 *  for people; both may be NULL. */
WATCHDOG_API int watchdog_end(watchdog_tracker* handle, int outcome, const char* reason,
                              const char* error);

/** Ends the session as cancelled by `by`. */
WATCHDOG_API int watchdog_cancelled(watchdog_tracker* handle, const char* by);

/** Returns when all earlier reports are on disk. */
WATCHDOG_API int watchdog_flush(watchdog_tracker* handle);

/** Returns the text of this thread's newest error, "" without one. Never NULL, valid until the
 *  thread's next error. */
WATCHDOG_API const char* watchdog_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
