/* An agent in C: agent DATABASE SESSION [cancel]. With `cancel` it goes on until somebody asks it to
 * stop. Prints what is not as watchdog.h says; then it ends with 1. */
#include <watchdog.h>

#include <stdio.h>
#include <string.h>

static int failures = 0;

static void expect(int holds, const char* what) {
  if (holds) return;
  printf("not so: %s (%s)\n", what, watchdog_last_error());
  failures = 1;
}
/* 2026-11-27 21:00 UTC. */
#define NINE (INT64_C(1795813200) * 1000)
#define EXPECT(condition) expect((condition), #condition)

/* Nothing that a caller may get wrong does harm. */
static void misuse(const char* database) {
  EXPECT(watchdog_heartbeat(NULL, 1, NULL) == WATCHDOG_INVALID);
  EXPECT(strcmp(watchdog_last_error(), "there is no handle") == 0);
  EXPECT(watchdog_state_change(NULL, "x", NULL) == WATCHDOG_INVALID);
  EXPECT(watchdog_tool_call(NULL, "x", NULL, NULL) == WATCHDOG_INVALID);
  EXPECT(watchdog_tool_result(NULL, "x", NULL, NULL, 0) == WATCHDOG_INVALID);
  EXPECT(watchdog_wait_for(NULL, "quota", NULL, WATCHDOG_NO_END) == WATCHDOG_INVALID);
  EXPECT(watchdog_end(NULL, WATCHDOG_COMPLETED, NULL, NULL) == WATCHDOG_INVALID);
  EXPECT(watchdog_cancelled(NULL, NULL) == WATCHDOG_INVALID);
  EXPECT(watchdog_flush(NULL) == WATCHDOG_INVALID);
  EXPECT(watchdog_cancel_requested(NULL) == 0);
  EXPECT(strcmp(watchdog_session(NULL), "") == 0);
  watchdog_close(NULL);
  EXPECT(watchdog_open(database, "no id", NULL, NULL) == NULL);
  EXPECT(strlen(watchdog_last_error()) > 0);
}

int main(int argc, char** argv) {
  watchdog_tracker* tracker;
  int64_t iteration = 0;
  if (argc < 3) return 2;
  misuse(argv[1]);
  tracker = watchdog_open(argv[1], argv[2], "agent.c", "to be an example");
  if (tracker == NULL) return 2;
  EXPECT(strcmp(watchdog_session(tracker), argv[2]) == 0);
  EXPECT(watchdog_heartbeat(tracker, ++iteration, "work") == WATCHDOG_OK);
  EXPECT(watchdog_heartbeat(tracker, WATCHDOG_NO_ITERATION, NULL) == WATCHDOG_OK);
  EXPECT(watchdog_state_change(tracker, "plan", "{\"steps\":3}") == WATCHDOG_OK);
  EXPECT(watchdog_state_change(tracker, "", NULL) == WATCHDOG_INVALID);
  EXPECT(watchdog_tool_call(tracker, "read", "{\"path\":\"a.txt\"}", "1") == WATCHDOG_OK);
  EXPECT(watchdog_tool_result(tracker, "read", "the text", "1", 0) == WATCHDOG_OK);
  EXPECT(watchdog_tool_call(tracker, "write", NULL, NULL) == WATCHDOG_OK);
  EXPECT(watchdog_tool_result(tracker, "write", "it is read-only", NULL, 1) == WATCHDOG_OK);
  EXPECT(watchdog_wait_for(tracker, "quota", "resets at nine", NINE) == WATCHDOG_OK);
  EXPECT(watchdog_wait_for(tracker, "approval", NULL, WATCHDOG_NO_END) == WATCHDOG_OK);
  EXPECT(watchdog_wait_for(tracker, NULL, NULL, NINE) == WATCHDOG_INVALID);
  EXPECT(watchdog_wait_for(tracker, "quota", NULL, -1) == WATCHDOG_INVALID);
  EXPECT(watchdog_wait_for(tracker, "quota", NULL, INT64_MAX) == WATCHDOG_INVALID);
  EXPECT(watchdog_flush(tracker) == WATCHDOG_OK);
  EXPECT(watchdog_end(tracker, 7, NULL, NULL) == WATCHDOG_INVALID);
  if (argc > 3) {
    while (!watchdog_cancel_requested(tracker)) watchdog_flush(tracker);
    EXPECT(watchdog_heartbeat(tracker, ++iteration, "work") == WATCHDOG_CANCEL);
    EXPECT(watchdog_cancelled(tracker, "user") == WATCHDOG_OK);
  } else {
    EXPECT(watchdog_end(tracker, WATCHDOG_COMPLETED, NULL, NULL) == WATCHDOG_OK);
  }
  EXPECT(watchdog_end(tracker, WATCHDOG_FAILED, NULL, "twice") == WATCHDOG_CONFLICT);
  watchdog_close(tracker);
  if (!failures) printf("ok\n");
  return failures;
}
