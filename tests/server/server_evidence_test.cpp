// The work of a model's server on its open requests, as looks at the server alone show it.

#include "server/server_evidence.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "support/scenario.h"

namespace watchdog {
namespace {

using S = ServerState;

constexpr Millis look_gap{2'000};

/// A server and its open requests, looked at again and again.
struct Bench {
  ServerWatch watch;
  ServerSample sample{.at = Instant{Millis{1'000'000}}};
  std::map<RequestId, RequestSample> open;
  std::vector<ServerFinding> found;

  explicit Bench(HangThresholds limits = {}) : watch(limits) { open[1] = {.since = sample.at}; }

  /// After `gap`; `with` says what is new.
  void look(const std::function<void()>& with = {}, Millis gap = look_gap) {
    sample.at += gap;
    if (with) with();
    found = watch.look(sample, open);
  }
  /// How many looks it takes until the first request is so; 0: it does not come to it.
  int looks_until(S state, const std::function<void()>& with = {}, int looks_max = 2'000) {
    for (int i = 1; i <= looks_max; ++i) {
      look(with);
      if (of(1).evidence.state == state) return i;
    }
    return 0;
  }
  [[nodiscard]] const ServerFinding& of(RequestId request) const {
    for (const auto& finding : found)
      if (finding.request == request) return finding;
    static const ServerFinding none;
    return none;
  }
  [[nodiscard]] S state(RequestId request = 1) const { return of(request).evidence.state; }
  [[nodiscard]] const std::string& why(RequestId request = 1) const { return of(request).why; }

  void uses_cpu(Millis time = look_gap) { sample.cpu = sample.cpu.value_or(Millis{}) + time; }
  void idles() { sample.cpu = sample.cpu.value_or(Millis{}); }
  void shows(std::vector<SlotSample> slots) {
    sample.slots = Asked::answered;
    sample.slot = std::move(slots);
  }
};

SlotSample idle_slot(int id, std::int64_t task, std::int64_t written) {
  return {.id = id, .is_processing = false, .task = task, .prompt_read = 500, .written = written};
}
SlotSample reading_slot(int id, std::int64_t task, std::int64_t read) {
  return {.id = id, .is_processing = true, .task = task, .prompt_read = read, .written = 0};
}
SlotSample writing_slot(int id, std::int64_t task, std::int64_t written) {
  return {.id = id, .is_processing = true, .task = task, .prompt_read = 500, .written = written};
}

bool says(const std::string& why, std::string_view what) {
  return why.find(what) != std::string::npos;
}

TEST(ServerEvidence, s1_a_stream_that_brings_something_is_written) {
  Bench bench;
  for (int i = 0; i < 50; ++i) {
    bench.look([&] { bench.open[1].pieces += 7; });
    EXPECT_EQ(bench.state(), S::writing);
  }
  EXPECT_EQ(bench.of(1).evidence.done, 350);
  EXPECT_EQ(bench.why(), "the answer is written: 350 tokens so far");
}

TEST(ServerEvidence, s2_a_prompts_progress_is_reading_with_an_estimate_after_two_movements) {
  Bench bench;
  bench.look([&] { bench.open[1].prompt_tokens = 61'440, bench.open[1].prompt_read = 20'480; });
  EXPECT_EQ(bench.state(), S::reading);
  EXPECT_FALSE(bench.of(1).evidence.left) << "20,480 were in the cache";
  bench.look([&] { bench.open[1].prompt_read += 2'048; }, Millis{20'000});
  EXPECT_FALSE(bench.of(1).evidence.left);
  for (int i = 0; i < 4; ++i) bench.look();
  bench.look([&] { bench.open[1].prompt_read += 2'048; }, Millis{2'000});
  ASSERT_TRUE(bench.of(1).evidence.left);
  EXPECT_EQ(bench.why(), "the prompt is read: 24,576 of 61,440 tokens");
  const auto estimate = *bench.of(1).evidence.left;
  EXPECT_EQ(estimate, Millis{270'000}) << "4,096 tokens in 30 s, and 36,864 to come";
  bench.look();
  EXPECT_EQ(bench.of(1).evidence.left, estimate) << "the tokens that are left need as long";
  EXPECT_EQ(bench.of(1).evidence.total, 61'440);
}

TEST(ServerEvidence, time_left_is_never_too_short_for_the_tokens_and_is_absent_in_a_long_silence) {
  for (int round = 0; round < test::repetitions(200); ++round) {
    std::mt19937 random(test::random_seed() + static_cast<unsigned>(round));
    const auto pick = [&](int from, int to) {
      return std::uniform_int_distribution<int>(from, to)(random);
    };
    Bench bench;
    bench.look([&] { bench.open[1].prompt_tokens = 1'000'000, bench.uses_cpu(); });
    const Instant began = bench.sample.at;
    Instant read_at = began;
    Millis longest{};
    std::int64_t read = 0;
    int moves = 0;
    std::optional<Millis> before;
    for (int i = 0; i < 300; ++i) {
      const bool moves_now = pick(0, 9) == 0;
      bench.look([&] {
        bench.uses_cpu();
        if (moves_now) bench.open[1].prompt_read = read += pick(1, 4'096);
      });
      if (moves_now) {
        if (moves++ > 0) longest = std::max(longest, bench.sample.at - read_at);
        read_at = bench.sample.at;
      }
      const auto left = bench.of(1).evidence.left;
      const auto silence = bench.sample.at - read_at;
      const Millis limits = moves > 1 ? longest : Millis{60'000};
      const bool is_short = silence <= limits;
      EXPECT_TRUE(is_short || !left) << "seed " << test::random_seed() << " + " << round;
      if (!left) continue;
      const double pace =
          static_cast<double>((read_at - began).count()) / static_cast<double>(read);
      EXPECT_GE(static_cast<double>(left->count()) + 1,
                pace * static_cast<double>(1'000'000 - read));
      EXPECT_TRUE(moves_now || !before || left == before) << "it counts down while nothing moves";
      before = left;
    }
  }
}

TEST(ServerEvidence, how_long_nothing_moved_grows_with_each_look) {
  Bench bench;
  for (int i = 0; i < 3; ++i) bench.look([&] { bench.uses_cpu(), bench.open[1].pieces += 1; });
  for (const char* state : {"writing", "quiet", "hung"}) {
    std::string before;
    for (int i = 0; i < 4; ++i) {
      bench.look([&] { bench.idles(); });
      EXPECT_NE(bench.why(), before) << state;
      before = bench.why();
    }
  }
}

TEST(ServerEvidence, s3_a_slot_that_moves_is_reading_and_then_writing) {
  Bench bench;
  std::int64_t read = 0;
  bench.look([&] { bench.shows({reading_slot(0, 7, read += 512)}); });
  EXPECT_EQ(bench.state(), S::reading);
  bench.look([&] { bench.shows({reading_slot(0, 7, read += 512)}); });
  EXPECT_EQ(bench.of(1).evidence, (Evidence{.state = S::reading, .done = 1'024}));
  bench.look([&] { bench.shows({writing_slot(0, 7, 3)}); });
  EXPECT_EQ(bench.of(1).evidence, (Evidence{.state = S::writing, .done = 3}));
}

TEST(ServerEvidence, an_idle_slots_old_values_are_not_believed) {
  Bench bench;
  std::int64_t old = 0;
  for (int i = 0; i < 5; ++i) {
    bench.look([&] { bench.shows({idle_slot(0, 7, old += 10)}); });
    EXPECT_NE(bench.state(), S::writing);
    EXPECT_NE(bench.state(), S::reading);
  }
}

TEST(ServerEvidence, s4_totals_say_that_it_works_for_somebody) {
  Bench bench;
  bench.sample.metrics = Asked::answered;
  bench.sample.prompt_total = 0;
  bench.look();
  EXPECT_NE(bench.state(), S::working) << "the first figures are no movement";
  for (int i = 0; i < 20; ++i) {
    bench.look([&] { *bench.sample.prompt_total += 100; });
    EXPECT_EQ(bench.state(), S::working);
  }
}

TEST(ServerEvidence, totals_count_even_when_they_are_reported_only_sometimes) {
  Bench bench;
  bench.shows({SlotSample{.id = 0, .is_processing = true, .task = 7}});  // as of an older build
  std::int64_t decodes = 5;
  for (int i = 0; i < 400; ++i) {
    bench.look([&] {
      bench.sample.decodes.reset();
      if (i % 7 == 0) bench.sample.decodes = decodes++;
    });
    EXPECT_EQ(bench.state(), S::reading) << i << " " << bench.why();
  }
}

TEST(ServerEvidence, s5_who_waits_for_others_that_move_is_queued) {
  Bench bench;
  std::int64_t read = 0;
  bench.look([&] { bench.shows({reading_slot(0, 7, read += 10)}); });
  bench.open[2] = {.since = bench.sample.at + Millis{1}};
  for (int i = 0; i < 300; ++i) {
    bench.look([&] {
      bench.shows({reading_slot(0, 7, read += 10)});
      bench.sample.queued = 1;
    });
    EXPECT_EQ(bench.state(1), S::reading);
    EXPECT_EQ(bench.state(2), S::queued) << "the newest is the one without a slot";
  }
  EXPECT_TRUE(says(bench.why(2), "1 request is queued")) << bench.why(2);
}

TEST(ServerEvidence, a_queue_that_is_not_reported_is_known_by_slots_that_all_work) {
  Bench bench;
  bench.open[2] = {.since = bench.sample.at + Millis{1}};
  for (int i = 0; i < 300; ++i) {
    bench.look([&] {
      bench.open[1].pieces += 1;
      bench.shows({writing_slot(0, 7, bench.open[1].pieces)});
    });
    EXPECT_EQ(bench.state(1), S::writing);
    EXPECT_EQ(bench.state(2), S::queued);
  }
}

/// Requests of one piece, and slots that are at work for some of them: whose each is, is not known.
TEST(ServerEvidence, a_count_that_may_belong_to_another_request_is_not_reported) {
  for (int slots = 1; slots <= 3; ++slots) {
    Bench bench;
    bench.open[2] = bench.open[3] = {.since = bench.sample.at + Millis{1}};
    for (int i = 1; i <= 30; ++i) {
      bench.look([&] {
        std::vector<SlotSample> shown;
        for (int id = 0; id < slots; ++id) shown.push_back(writing_slot(id, 7 + id, 37 + 10 * i));
        bench.shows(shown);
      });
      for (const RequestId request : {1, 2, 3}) {
        EXPECT_EQ(bench.of(request).evidence,
                  (Evidence{.state = slots == 3 ? S::writing : S::working}))
            << slots << " slots: " << bench.why(request);
        EXPECT_EQ(says(bench.why(request), "and does not tell on which"), slots < 3)
            << bench.why(request);
      }
    }
    // Two of them are answered. The slot that goes on may still be that of one of them.
    bench.open.erase(2), bench.open.erase(3);
    bench.look([&] { bench.shows({writing_slot(0, 7, 900)}); });
    EXPECT_EQ(bench.of(1).evidence, (Evidence{.state = S::writing}));
    bench.look([&] { bench.shows({writing_slot(0, 12, 1)}); });
    EXPECT_EQ(bench.of(1).evidence.done, 1) << "a new task can only be its own";
  }
}

TEST(ServerEvidence, parameters_report_whose_a_slot_is) {
  Bench bench;
  bench.open[1].parameters = {.stream = false, .temperature = 0.8};
  bench.open[2] = {.since = bench.sample.at, .parameters = {.stream = false}};
  bench.open[3] = {.since = bench.sample.at, .parameters = {.stream = true, .max_tokens = 100}};
  for (int i = 1; i <= 10; ++i) {
    bench.look([&] {
      auto first = writing_slot(0, 7, 100 + i), second = reading_slot(1, 8, 200 + i),
           third = writing_slot(2, 9, 300 + i);
      first.parameters = {.stream = false, .temperature = 0.1};
      second.parameters = {.stream = true, .max_tokens = 100, .temperature = 0.8};
      third.parameters = {.stream = false, .temperature = 0.800000011920929};
      bench.shows({first, second, third});
    });
    EXPECT_EQ(bench.of(1).evidence, (Evidence{.state = S::writing, .done = 300 + i}));
    EXPECT_EQ(bench.of(2).evidence, (Evidence{.state = S::writing, .done = 100 + i}));
    EXPECT_EQ(bench.of(3).evidence, (Evidence{.state = S::reading, .done = 200 + i}));
  }
}

TEST(ServerEvidence, a_slot_of_somebody_who_asks_the_server_directly_is_nobodys_of_ours) {
  Bench bench;
  for (int i = 1; i <= 10; ++i) {
    bench.look([&] { bench.shows({writing_slot(0, 7, i), writing_slot(1, 8, 90 + i)}); });
    EXPECT_EQ(bench.of(1).evidence.done, 0) << bench.why();
    EXPECT_TRUE(is_busy(bench.state()));
  }
}

TEST(ServerEvidence, parameters_fit_unless_both_report_and_differ) {
  EXPECT_TRUE(may_be_of({}, {.stream = true, .seed = 1, .max_tokens = 5, .top_k = 40}));
  EXPECT_TRUE(may_be_of({.stream = true, .seed = 1, .temperature = 0.3}, {}));
  EXPECT_FALSE(may_be_of({.stream = true}, {.stream = false}));
  EXPECT_FALSE(may_be_of({.seed = 1}, {.seed = 2}));
  EXPECT_FALSE(may_be_of({.top_p = 0.9}, {.top_p = 0.95}));
  EXPECT_TRUE(may_be_of({.max_tokens = 100}, {.max_tokens = 50})) << "the server's own limit";
  EXPECT_FALSE(may_be_of({.max_tokens = 50}, {.max_tokens = 100}));
  EXPECT_FALSE(may_be_of({.max_tokens = 50}, {.max_tokens = -1}));
}

TEST(ServerEvidence, how_long_nothing_moved_begins_with_the_request) {
  Bench bench;
  bench.look([&] { bench.idles(); });
  bench.look([&] { bench.idles(); });
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(says(bench.why(), "for 0 s")) << bench.why();
    bench.look([&] { bench.idles(); });
  }
  bench.open[2] = {.since = bench.sample.at};
  bench.look([&] { bench.idles(); });
  EXPECT_TRUE(says(bench.why(2), "no movement for 2 s")) << bench.why(2);
}

TEST(ServerEvidence, s5_of_vllm_the_newest_ones_wait) {
  Bench bench;
  bench.open[2] = {.since = bench.sample.at + Millis{1}};
  bench.open[3] = {.since = bench.sample.at + Millis{2}};
  bench.sample.metrics = Asked::answered;
  bench.sample.written_total = 0;
  bench.sample.running = 2;
  bench.sample.queued = 1;
  bench.look();
  bench.look([&] { *bench.sample.written_total += 9; });
  EXPECT_EQ(bench.state(1), S::working);
  EXPECT_EQ(bench.state(2), S::working);
  EXPECT_EQ(bench.state(3), S::queued);
}

TEST(ServerEvidence, s6_loading_is_said_or_seen) {
  Bench bench;
  bench.sample.is_loading = true;
  bench.sample.reachable = Asked::answered;
  EXPECT_EQ(bench.looks_until(S::hung), 0) << "where no process can be seen, its word is taken";
  EXPECT_EQ(bench.state(), S::loading);

  Bench reads;  // a prompt, without slots: that takes some memory, and now and then a lot at once
  reads.sample.memory_bytes = std::int64_t{5} << 30;
  for (int i = 0; i < 300; ++i) {
    const std::int64_t mib = i % 50 == 7 ? 800 : 1 + i % 6;
    reads.look([&] { reads.uses_cpu(), *reads.sample.memory_bytes += mib << 20; });
    EXPECT_NE(reads.state(), S::loading) << reads.why();
  }
  Bench slow;  // 30 MiB a second
  slow.sample.memory_bytes = 300 << 20;
  for (int i = 0; i < 20; ++i) {
    slow.look([&] { slow.uses_cpu(), *slow.sample.memory_bytes += 60 << 20; });
    EXPECT_TRUE(i < 4 || slow.state() == S::loading) << slow.why();
  }
  EXPECT_TRUE(says(slow.why(), "1,140 MiB so far")) << slow.why();

  Bench seen;
  seen.sample.memory_bytes = 0;
  seen.look([&] { seen.idles(); });
  seen.look([&] { seen.idles(), *seen.sample.memory_bytes += 1 << 28; });
  EXPECT_EQ(seen.state(), S::loading) << seen.why();
  EXPECT_TRUE(says(seen.why(), "256 MiB")) << seen.why();
}

TEST(ServerEvidence, a_load_that_does_nothing_is_hung) {
  Bench bench;
  bench.sample.is_loading = true;
  bench.idles();
  EXPECT_GT(bench.looks_until(S::hung), 100);
  EXPECT_TRUE(says(bench.why(), "loads its model")) << bench.why();
}

TEST(ServerEvidence, a_sleeping_server_has_to_wake_up) {
  Bench bench;
  bench.sample.is_sleeping = true;
  bench.look();
  EXPECT_EQ(bench.state(), S::loading);
  EXPECT_TRUE(says(bench.why(), "wake")) << bench.why();
}

TEST(ServerEvidence, s7_a_busy_process_alone_is_working_however_long) {
  Bench bench;
  bench.shows({SlotSample{.id = 0, .is_processing = true, .task = 7}});
  bench.uses_cpu();
  bench.look();
  bench.look([&] { bench.uses_cpu(); });
  EXPECT_EQ(bench.looks_until(S::hung, [&] { bench.uses_cpu(); }), 0);
  EXPECT_EQ(bench.state(), S::working);
  EXPECT_TRUE(says(bench.why(), "1.0 cores")) << bench.why();
}

TEST(ServerEvidence, s7_a_process_with_a_busy_gpu_or_disk_reads_is_not_idle) {
  for (const bool gpu : {true, false}) {
    Bench bench;
    bench.idles();
    bench.sample.io_bytes = 0;
    EXPECT_EQ(bench.looks_until(S::hung,
                                [&] {
                                  if (gpu) bench.sample.gpu_percent = 60;
                                  if (!gpu) *bench.sample.io_bytes += 1 << 22;
                                }),
              0);
  }
}

TEST(ServerEvidence, s7_silence_and_an_idle_process_are_hung) {
  Bench bench;
  bench.idles();
  bench.look([&] { bench.open[1].pieces = 40; });
  const int looks = bench.looks_until(S::hung);
  EXPECT_GE(looks, 8);
  EXPECT_TRUE(says(bench.why(), "no token for ")) << bench.why();
  EXPECT_TRUE(says(bench.why(), "its process has done nothing for ")) << bench.why();
  bench.look([&] { bench.open[1].pieces = 41; });
  EXPECT_EQ(bench.state(), S::writing) << "a movement takes it back at once";
}

TEST(ServerEvidence, a_process_that_is_stopped_is_hung_at_once_whatever_was_held) {
  Bench bench;
  bench.look([&] { bench.idles(), bench.open[1].pieces = 40; });
  bench.look([&] { bench.sample.stopped = 4'711; });
  EXPECT_EQ(bench.state(), S::hung);
  EXPECT_TRUE(says(bench.why(), "kill -CONT 4711")) << bench.why();
  bench.look([&] { bench.open[1].pieces = 41; });
  EXPECT_EQ(bench.state(), S::writing) << "what came before it was stopped counts";
  bench.look();
  EXPECT_EQ(bench.state(), S::hung);
  bench.look([&] { bench.sample.stopped = 0; });
  EXPECT_NE(bench.state(), S::hung);
}

TEST(ServerEvidence, held_evidence_ends_when_the_server_is_silent_for_its_longest_gap) {
  for (const bool remote : {false, true}) {
    Bench bench;
    for (int i = 0; i < 5; ++i)
      bench.look([&] {
        bench.open[1].pieces += 1;
        if (!remote) bench.uses_cpu();
      });
    bench.sample.reachable = Asked::waiting;
    bench.look();
    EXPECT_EQ(bench.state(), S::writing) << "2 s, like the gaps before";
    bench.look();
    EXPECT_EQ(bench.state(), S::quiet) << bench.why();
    EXPECT_TRUE(says(bench.why(), "the server has not answered for 4 s")) << bench.why();
    bench.look([&] { bench.open[1].pieces += 1; });
    EXPECT_EQ(bench.state(), S::writing) << "it is alive after all";
  }
  Bench busy;
  for (int i = 0; i < 5; ++i) busy.look([&] { busy.uses_cpu(), busy.open[1].pieces += 1; });
  busy.sample.reachable = busy.sample.slots = Asked::waiting;
  for (int i = 0; i < 300; ++i) {
    busy.look([&] { busy.uses_cpu(); });
    EXPECT_TRUE(is_busy(busy.state())) << "an old build that reads comes to no question";
  }
}

TEST(ServerEvidence, only_answers_earn_a_pause) {
  ProbeRhythm rhythm(Millis{2'000});
  Instant now{Millis{1'000'000}};
  const auto look = [&](ProbeRhythm::Look went) {
    went.ended = now += rhythm.wait() + went.took;
    went.asked = rhythm.may_ask(now);
    rhythm.looked(went);
  };
  EXPECT_EQ(rhythm.wait(), Millis{2'000});
  look({.took = Millis{300}});
  EXPECT_EQ(rhythm.wait(), Millis{3'000}) << "rarer while nothing changes";
  look({.took = Millis{1'000}});
  EXPECT_EQ(rhythm.wait(), Millis{10'000}) << "a tenth of the time";
  look({.took = Millis{1}, .changed = true});
  EXPECT_EQ(rhythm.wait(), Millis{2'000});

  int questions = 0;
  const auto began = now;
  while (now - began < Millis{600'000}) {
    const bool asks = rhythm.may_ask(now + rhythm.wait());
    questions += asks ? 1 : 0;
    const Millis took{asks ? 2'000 : 0};
    look({.took = took, .in_vain = took, .unanswered = true});
    EXPECT_EQ(rhythm.wait(), Millis{2'000});
  }
  EXPECT_GE(questions, 30);
  EXPECT_LE(questions, 42) << "every 15 s";
  look({.took = Millis{1}});
  EXPECT_TRUE(rhythm.may_ask(now));
}

TEST(ServerEvidence, s8_that_it_can_be_reached_never_counts) {
  Bench bench;
  bench.idles();
  bench.sample.reachable = Asked::answered;
  EXPECT_GT(bench.looks_until(S::hung), 0);

  Bench remote;
  remote.sample.reachable = Asked::answered;
  EXPECT_EQ(remote.looks_until(S::hung), 0) << "neither a process nor slots nor totals";
  EXPECT_EQ(remote.state(), S::unknown);
  remote.look([&] { remote.open[1].pieces = 1; });
  EXPECT_EQ(remote.looks_until(S::hung), 0);
  EXPECT_EQ(remote.state(), S::quiet) << remote.why();
}

TEST(ServerEvidence, s9_refused_or_a_process_that_is_gone_is_gone_and_then_restarted) {
  for (const bool refused : {true, false}) {
    Bench bench;
    bench.sample.reachable = Asked::answered;
    bench.look();
    bench.sample.reachable = refused ? Asked::refused : Asked::waiting;
    bench.sample.process_gone = !refused;
    bench.look();
    EXPECT_EQ(bench.state(), S::gone);
    bench.sample.process_gone = false;
    bench.sample.reachable = Asked::unasked;
    bench.look();
    EXPECT_EQ(bench.state(), S::gone);
    bench.open[2] = {.since = bench.sample.at};
    bench.sample.reachable = Asked::answered;
    bench.look();
    EXPECT_EQ(bench.state(1), S::restarted);
    EXPECT_NE(bench.state(2), S::restarted) << "it came after";
    bench.look();
    EXPECT_EQ(bench.state(1), S::restarted);
  }
}

TEST(ServerEvidence, s9_a_later_start_or_totals_that_fall_are_a_restart) {
  for (const bool reported : {true, false}) {
    Bench bench;
    bench.sample.metrics = Asked::answered;
    bench.sample.decodes = 1'000;
    if (reported) bench.sample.started = 100;
    bench.look();
    bench.look([&] {
      bench.sample.decodes = 3;
      if (reported) bench.sample.started = 200;
    });
    EXPECT_EQ(bench.state(), S::restarted);
    bench.look([&] { bench.open[1].pieces = 1; });
    EXPECT_EQ(bench.state(), S::writing) << "it is not lost after all";
  }
  Bench turns;
  turns.sample.started = 200;
  turns.look();
  turns.look([&] { turns.sample.started = 100; });
  turns.look([&] { turns.sample.started = 200; });
  EXPECT_NE(turns.state(), S::restarted) << "two servers behind one address";
}

TEST(ServerEvidence, a_request_that_no_slot_works_on_is_swallowed) {
  for (const bool remote : {false, true}) {
    Bench bench;
    if (!remote) bench.idles();
    const int looks = bench.looks_until(S::hung, [&] { bench.shows({idle_slot(0, 7, 40)}); });
    EXPECT_GE(looks, remote ? 32 : 8);
    EXPECT_LE(looks, remote ? 130 : 40);
    EXPECT_TRUE(says(bench.why(), "no slot works on it and nothing is queued")) << bench.why();
  }
}

TEST(ServerEvidence, slots_unanswered_are_working_while_the_process_is_busy) {
  Bench bench;
  bench.sample.slots = Asked::waiting;
  bench.uses_cpu();
  EXPECT_EQ(bench.looks_until(S::hung,
                              [&] {
                                bench.uses_cpu(12 * look_gap);
                                bench.sample.slots_waiting += look_gap;
                              }),
            0);
  EXPECT_EQ(bench.state(), S::working);
  EXPECT_TRUE(says(bench.why(), "/slots is unanswered for 66 min")) << bench.why();
}

TEST(ServerEvidence, slots_unanswered_and_an_idle_process_are_hung) {
  Bench bench;
  bench.sample.slots = Asked::waiting;
  bench.idles();
  EXPECT_GT(bench.looks_until(S::hung, [&] { bench.sample.slots_waiting += look_gap; }), 0);
  EXPECT_TRUE(says(bench.why(), "/slots is unanswered")) << bench.why();

  Bench remote;
  remote.sample.slots = Asked::waiting;
  EXPECT_EQ(remote.looks_until(S::hung), 0) << "an old build that reads says as little";
}

TEST(ServerEvidence, a_remote_slot_that_stands_still_takes_longer) {
  std::vector<int> took;
  for (const bool remote : {false, true}) {
    Bench bench;
    if (!remote) bench.idles();
    bench.look([&] { bench.shows({writing_slot(0, 7, 40)}); });
    took.push_back(bench.looks_until(S::hung));
    EXPECT_EQ(says(bench.why(), "slot 0 says that it works"), remote) << bench.why();
  }
  EXPECT_GT(took[0], 8);
  EXPECT_GE(took[1], 3 * took[0]);

  Bench unreported;
  unreported.look(
      [&] { unreported.shows({SlotSample{.id = 0, .is_processing = true, .task = 7}}); });
  EXPECT_EQ(unreported.looks_until(S::hung), 0) << "what older builds do not tell stands not still";
}

TEST(ServerEvidence, one_slot_that_stands_still_among_others_is_found) {
  Bench bench;
  bench.open[2] = {.since = bench.sample.at + Millis{1}};
  bench.sample.cpu = Millis{};
  bench.open[1].pieces = 1;
  bench.look([&] { bench.shows({writing_slot(0, 7, 40), writing_slot(1, 8, 3)}); });
  const int looks = bench.looks_until(S::hung, [&] {
    bench.uses_cpu();
    bench.open[2].pieces += 5;
    bench.shows({writing_slot(0, 7, 40), writing_slot(1, 8, bench.open[2].pieces)});
  });
  EXPECT_GE(looks, 8);
  EXPECT_TRUE(says(bench.why(), "slot 0 stands still while others move")) << bench.why();
  EXPECT_EQ(bench.state(2), S::writing);
}

TEST(ServerEvidence, slots_that_move_are_of_those_whose_streams_are_silent) {
  Bench bench;
  bench.open[2] = {.since = bench.sample.at + Millis{1}};  // not streamed
  std::int64_t read = 0;
  for (int i = 0; i < 400; ++i) {
    bench.look([&] {
      bench.open[1].pieces += 2;
      bench.shows({writing_slot(0, 7, bench.open[1].pieces), reading_slot(1, 8, read += 64)});
    });
    EXPECT_EQ(bench.state(1), S::writing);
    EXPECT_EQ(bench.of(2).evidence, (Evidence{.state = S::reading, .done = read}));
  }
}

TEST(ServerEvidence, a_look_that_came_late_does_not_count) {
  Bench bench;
  bench.idles();
  bench.look([&] { bench.open[1].pieces = 1; });
  for (int i = 0; i < 7; ++i) bench.look();
  bench.look({}, Millis{24 * 3'600'000});
  EXPECT_EQ(bench.state(), S::writing) << bench.why();
  EXPECT_GT(bench.looks_until(S::hung), 0);
}

TEST(ServerEvidence, the_limit_is_learnt_from_the_longest_gap) {
  const auto looks_after_gaps_of = [](int gap) {
    Bench bench;
    for (int i = 1; i < 30; ++i) {
      bench.look([&] {
        bench.open[1].pieces += i % gap == 0 ? 1 : 0;
        bench.uses_cpu(i % gap == 0 ? look_gap : Millis{});
      });
      EXPECT_NE(bench.state(), S::hung);
    }
    return bench.looks_until(S::hung);
  };
  const int quick = looks_after_gaps_of(1);
  const int slow = looks_after_gaps_of(14);
  EXPECT_LE(quick, 8) << "no movement in eight looks";
  EXPECT_GE(slow, 4 * 14 - 2);
}

TEST(ServerEvidence, an_idle_process_that_passes_on_the_work_of_others_is_not_a_sign) {
  Bench bench;  // of a tunnel to another machine
  for (int i = 0; i < 5; ++i) {
    bench.look([&] { bench.idles(), bench.open[1].pieces += 10; });
  }
  EXPECT_EQ(bench.looks_until(S::hung), 0);
  EXPECT_EQ(bench.state(), S::quiet) << bench.why();
}

TEST(ServerEvidence, a_request_that_is_over_is_forgotten) {
  Bench bench;
  bench.look([&] { bench.open[1].pieces = 5; });
  bench.open.clear();
  bench.look();
  EXPECT_TRUE(bench.found.empty());
  bench.open[1] = {.since = bench.sample.at, .pieces = 0};
  bench.look();
  EXPECT_EQ(bench.state(), S::unknown);
}

}  // namespace
}  // namespace watchdog
