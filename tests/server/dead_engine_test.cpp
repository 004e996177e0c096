// A server whose engine is dead still takes requests, and counts them as queued.

#include <gtest/gtest.h>

#include "server/server_evidence.h"

namespace watchdog {
namespace {

constexpr Millis look_gap{2'000};

struct Death {
  Millis found_after{};  ///< 0: it is never found.
  std::string first_words{};
};

/// The engine dies after a request whose longest gap was one look. `queued`: what the server counts
/// then. `is_seen`: its process is visible.
Death death_of_engine(std::optional<std::int64_t> queued, bool is_seen) {
  ServerWatch watch;
  ServerSample sample{.at = Instant{Millis{1'000'000}}, .metrics = Asked::answered};
  std::map<RequestId, RequestSample> open{{1, {.since = sample.at}}};
  if (is_seen) sample.cpu = Millis{};
  for (int n = 0; n < 60; ++n) {
    sample.at += look_gap;
    sample.running = 1;
    if (is_seen) *sample.cpu += look_gap;
    open[1].pieces += 1;
    (void)watch.look(sample, open);
  }
  Death death;
  open = {{2, {.since = sample.at}}};
  sample.running = queued ? std::optional<std::int64_t>(0) : std::nullopt;
  sample.queued = queued;
  for (int looks = 1; looks < 2'000; ++looks) {
    sample.at += look_gap;
    const auto found = watch.look(sample, open).front();
    if (looks == 3) death.first_words = found.why;
    if (found.evidence.state != ServerState::hung) continue;
    death.found_after = looks * look_gap;
    break;
  }
  return death;
}

TEST(DeadEngine, is_found_as_fast_as_an_idle_server) {
  const auto idle = death_of_engine(std::nullopt, true);
  EXPECT_GE(idle.found_after, Millis{120'000});
  EXPECT_LE(idle.found_after, Millis{120'000} + 2 * look_gap);
  for (const bool is_seen : {true, false}) {
    const auto dead = death_of_engine(3, is_seen);
    EXPECT_LE(dead.found_after, idle.found_after + 2 * look_gap) << is_seen;
    EXPECT_GE(dead.found_after, Millis{120'000}) << is_seen;
    EXPECT_EQ(dead.first_words,
              "it waits for its turn: 3 requests are queued, and the server works on none");
  }
}

TEST(DeadEngine, is_not_found_where_nothing_shows_it) {
  EXPECT_EQ(death_of_engine(std::nullopt, false).found_after, Millis{});
}

}  // namespace
}  // namespace watchdog
