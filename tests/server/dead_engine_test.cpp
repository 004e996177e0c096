// A server whose engine is dead still takes requests, and counts them as queued.

#include <gtest/gtest.h>

#include <functional>

#include "server/server_evidence.h"

namespace watchdog {
namespace {

constexpr Millis look_gap{2'000};

struct Death {
  Millis found_after{};  ///< 0: it is never found.
  std::string first_words{};
};

/// The monitor's view of the process.
struct View {
  bool process = true;
  bool gpu = true;
};

/// The engine dies after a request whose longest gap was one look. `queued`: the server's count of
/// requests then. `then` changes each later sample.
Death death_of_engine(std::optional<std::int64_t> queued, View view,
                      const std::function<void(ServerSample&)>& then = {}) {
  ServerWatch watch;
  ServerSample sample{.at = Instant{Millis{1'000'000}}, .metrics = Asked::answered};
  std::map<RequestId, RequestSample> open{{1, {.since = sample.at}}};
  if (view.process) sample.cpu = Millis{};
  if (view.gpu) sample.gpu_percent = 0;
  for (int n = 0; n < 60; ++n) {
    sample.at += look_gap;
    sample.running = 1;
    if (view.process) *sample.cpu += look_gap;
    open[1].pieces += 1;
    (void)watch.look(sample, open);
  }
  Death death;
  open = {{2, {.since = sample.at}}};
  sample.running = queued ? std::optional<std::int64_t>(0) : std::nullopt;
  sample.queued = queued;
  for (int looks = 1; looks < 2'000; ++looks) {
    sample.at += look_gap;
    if (then) then(sample);
    const auto found = watch.look(sample, open).front();
    if (looks == 3) death.first_words = found.why;
    if (found.evidence.state != ServerState::hung) continue;
    death.found_after = looks * look_gap;
    break;
  }
  return death;
}

TEST(DeadEngine, is_found_as_fast_as_an_idle_server) {
  const auto idle = death_of_engine(std::nullopt, {});
  EXPECT_GE(idle.found_after, Millis{120'000});
  EXPECT_LE(idle.found_after, Millis{120'000} + 2 * look_gap);
  for (const bool process : {true, false}) {
    const auto dead = death_of_engine(3, {.process = process, .gpu = false});
    EXPECT_LE(dead.found_after, idle.found_after + 2 * look_gap) << process;
    EXPECT_GE(dead.found_after, Millis{120'000}) << process;
    EXPECT_EQ(dead.first_words,
              "it waits for its turn: 3 requests are queued, and the server works on none");
  }
}

TEST(DeadEngine, is_not_found_where_nothing_shows_it) {
  EXPECT_EQ(death_of_engine(std::nullopt, {.process = false, .gpu = false}).found_after, Millis{});
}

TEST(DeadEngine, may_read_a_prompt_on_a_gpu_that_is_not_seen) {
  EXPECT_GE(death_of_engine(std::nullopt, {.gpu = false}).found_after, Millis{240'000});
}

TEST(DeadEngine, is_none_that_prepares_to_serve_its_queue) {
  const auto loads = [](ServerSample& sample) { sample.is_loading = true; };
  EXPECT_EQ(death_of_engine(3, {.process = false, .gpu = false}, loads).found_after, Millis{});
  const auto wakes = [](ServerSample& sample) { sample.is_sleeping = true; };
  EXPECT_EQ(death_of_engine(3, {.process = false, .gpu = false}, wakes).found_after, Millis{});
  const auto works = [](ServerSample& sample) { *sample.cpu += look_gap; };
  EXPECT_EQ(death_of_engine(3, {}, works).found_after, Millis{}) << "a busy process is never hung";
}

}  // namespace
}  // namespace watchdog
