// Files keep these enumerators as numbers: one that moves would change what old files mean.

#include <gtest/gtest.h>

#include "server/server_evidence.h"
#include "watchdog/health.h"
#include "watchdog/history.h"
#include "watchdog/policy.h"
#include "watchdog/report.h"

namespace watchdog {
namespace {

using WordList = std::vector<std::string_view>;

/// All names by number. A new enumerator goes to the end, here as there.
template <class Enum>
WordList in_order() {
  return {std::begin(Names<Enum>::all), std::end(Names<Enum>::all)};
}

TEST(StoredNumbers, stay_as_they_are) {
  EXPECT_EQ(in_order<ReportKind>(),
            (WordList{"start",      "heartbeat", "state_change", "tool_call",     "tool_result",
                      "error",      "message",   "wait",         "idle",          "user_input",
                      "compaction", "policy",    "cancel",       "exited",        "observer",
                      "gap",        "end",       "opinion",      "chant",         "retry",
                      "budget",     "limit",     "turn",         "tool_progress", "tool_timeout",
                      "evidence",   "resume"}));
  EXPECT_EQ(in_order<Pattern>(),
            (WordList{"none", "F1",  "F2",  "F3",  "F4",  "F5",  "F6",  "F7", "R1",
                      "R2",   "R3",  "R4",  "R5",  "R6",  "R7",  "R7b", "R8", "R9",
                      "R10",  "R11", "R12", "R13", "R14", "R15", "F8"}));
  EXPECT_EQ(in_order<ToolUse>(), (WordList{"ordinary", "paging", "poll", "exempt"}));
  EXPECT_EQ(in_order<ServerState>(),
            (WordList{"over", "unknown", "loading", "queued", "reading", "writing", "working",
                      "quiet", "hung", "restarted", "gone"}));
  EXPECT_EQ(in_order<HealthKind>(),
            (WordList{"unknown", "starting", "progressing", "slow", "suspect", "stuck", "looping",
                      "blocked", "silent", "dead", "idle"}));
  EXPECT_EQ(in_order<Lifecycle>(), (WordList{"running", "waiting", "idle", "completed", "failed",
                                             "incomplete", "cancelled"}));
  EXPECT_EQ(in_order<OutcomeKind>(), (WordList{"completed", "failed", "incomplete", "cancelled"}));
  EXPECT_EQ(in_order<Verdict>(), (WordList{"inconclusive", "A", "B", "C", "D"}));
  EXPECT_EQ(in_order<AnswerEnd>(), (WordList{"usual", "length", "calls"}));
  EXPECT_EQ(in_order<Source>(), (WordList{"unsaid", "loop", "sidecar", "relay"}));
  EXPECT_EQ(in_order<ReportOrigin>(), (WordList{"unknown", "agent", "hooks", "proxy", "otlp",
                                                "transcript", "run", "mcp", "monitor"}));
}

enum class Three : std::uint8_t { a, b, c };
enum class Four : std::uint8_t { a, b, c, d };

TEST(StoredNumbers, names_are_as_many_as_enumerators) {
  static_assert(is_enumerator<Three, Three::c>());
  static_assert(!is_enumerator<Three, static_cast<Three>(3)>());
  static_assert(is_enumerator<Four, static_cast<Four>(3)>());
}

}  // namespace
}  // namespace watchdog
