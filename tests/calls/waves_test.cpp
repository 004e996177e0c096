#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "calls/resource_locks.h"
#include "support/scenario.h"
#include "support/temp_dir.h"
#include "watchdog/executor.h"

namespace watchdog {
namespace {

namespace fs = std::filesystem;

ToolRegistry some_tools() {
  ToolRegistry tools;
  const auto nothing = [](ToolContext&) { return ToolReply{}; };
  for (auto& spec : std::vector<ToolSpec>{
           {.name = "r"},
           {.name = "w", .effect = Effect::local_write},
           {.name = "f", .concurrency = Concurrency::by_resource, .effect = Effect::local_write}}) {
    EXPECT_TRUE(tools.add(make_tool(spec, nothing)).ok());
  }
  return tools;
}

/// `rr|w|r`: waves of the calls of these tools, `!` begins one that waits for the one before.
std::string planned(const std::string& names) {
  std::vector<ToolCall> calls;
  bool waits = false;
  for (const char name : names) {
    if (name == '!') {
      waits = true;
      continue;
    }
    calls.push_back({std::to_string(calls.size()), std::string(1, name),
                     waits ? R"({"wait_for_previous":true})" : "{}"});
    waits = false;
  }
  std::string text;
  std::size_t next = 0;
  for (const auto& wave : plan_waves(calls, some_tools())) {
    if (!text.empty()) text += '|';
    for (const auto at : wave.calls) {
      EXPECT_EQ(at, next++) << "calls keep their order";
      text += calls[at].tool;
    }
    EXPECT_EQ(wave.exclusive, calls[wave.calls.front()].tool == "w");
  }
  EXPECT_EQ(next, calls.size()) << "each call is in one wave";
  return text;
}

TEST(Waves, a_call_that_changes_something_is_alone_and_keeps_its_place) {
  EXPECT_EQ(planned(""), "");
  EXPECT_EQ(planned("rrr"), "rrr");
  EXPECT_EQ(planned("rwr"), "r|w|r");
  EXPECT_EQ(planned("rrwwrr"), "rr|w|w|rr");
  EXPECT_EQ(planned("frf"), "frf") << "their resources tell them apart";
  EXPECT_EQ(planned("x"), "x") << "an unknown tool";
  EXPECT_EQ(planned("rr!rr"), "rr|rr");
}

TEST(Waves, a_tool_without_effects_is_parallel_unless_it_says_otherwise) {
  EXPECT_EQ(concurrency_of({}), Concurrency::parallel);
  for (const auto effect : {Effect::local_write, Effect::external_write, Effect::irreversible}) {
    EXPECT_EQ(concurrency_of({.effect = effect}), Concurrency::exclusive);
  }
  EXPECT_EQ(concurrency_of({.concurrency = Concurrency::exclusive}), Concurrency::exclusive);
}

struct Queue {
  ResourceLocks locks;
  std::shared_ptr<Wakeup> waiter = std::make_shared<Wakeup>();
  ResourceLocks::TicketPtr ask(std::vector<ResourceKey> keys) {
    return locks.request(std::move(keys), waiter);
  }
};

using Standing = ResourceLocks::Standing;

TEST(ResourceLocks, readers_go_together_and_a_writer_waits_its_turn) {
  Queue queue;
  const auto first = queue.ask({{"k", false}});
  const auto second = queue.ask({{"k", false}});
  const auto writer = queue.ask({{"k", true}});
  const auto late_reader = queue.ask({{"k", false}});
  EXPECT_EQ(queue.locks.standing(first), Standing::granted);
  EXPECT_EQ(queue.locks.standing(second), Standing::granted);
  EXPECT_EQ(queue.locks.standing(writer), Standing::waiting);
  EXPECT_EQ(queue.locks.standing(late_reader), Standing::waiting) << "nobody overtakes a writer";
  queue.locks.release(first);
  EXPECT_EQ(queue.locks.standing(writer), Standing::waiting);
  queue.locks.release(second);
  EXPECT_EQ(queue.locks.standing(writer), Standing::granted);
  queue.locks.release(writer);
  EXPECT_EQ(queue.locks.standing(late_reader), Standing::granted);
}

TEST(ResourceLocks, other_things_are_no_concern) {
  Queue queue;
  const auto a = queue.ask({{"a", true}, {"w", false}});
  const auto b = queue.ask({{"b", true}, {"w", false}});
  EXPECT_EQ(queue.locks.standing(a), Standing::granted);
  EXPECT_EQ(queue.locks.standing(b), Standing::granted);
  const auto all = queue.ask({{"w", true}});
  EXPECT_EQ(queue.locks.standing(all), Standing::waiting);
}

TEST(ResourceLocks, all_names_of_a_file_are_one) {
  const test::TempDir dir;
  fs::create_directory(dir.path() / "a");
  std::ofstream(dir.path() / "a" / "f") << "x";
  fs::create_symlink(dir.path() / "a" / "f", dir.path() / "alias");
  const auto name = (dir.path() / "a" / "f").string();
  EXPECT_EQ(canonical_key((dir.path() / "a" / ".." / "a" / "." / "f").string()),
            canonical_key(name));
  EXPECT_EQ(canonical_key((dir.path() / "alias").string()), canonical_key(name));
  EXPECT_EQ(canonical_key("no path/../x"), "no path/../x");
  Queue queue;
  (void)queue.ask({{name, true}});
  EXPECT_EQ(queue.locks.standing(queue.ask({{(dir.path() / "alias").string(), true}})),
            Standing::waiting);
}

TEST(ResourceLocks, behind_one_that_hangs_nobody_writes_and_everybody_reads) {
  Queue queue;
  const auto hangs = queue.ask({{"k", true}});
  ASSERT_EQ(queue.locks.standing(hangs), Standing::granted);
  queue.locks.taint(hangs);
  EXPECT_EQ(queue.locks.standing(queue.ask({{"k", false}})), Standing::granted);
  const auto writer = queue.ask({{"k", true}});
  EXPECT_EQ(queue.locks.standing(writer), Standing::tainted);
  queue.locks.release(hangs);
  EXPECT_EQ(queue.locks.standing(writer), Standing::waiting) << "for the reader";
}

TEST(ResourceLocks, many_threads_and_keys_never_meet_and_never_wait_in_a_circle) {
  const auto seed = test::random_seed();
  constexpr int keys = 6;
  ResourceLocks locks;
  std::atomic<int> writers[keys] = {};
  std::atomic<int> readers[keys] = {};
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 64; ++number) {
    threads.emplace_back([&, number] {
      std::mt19937 random(seed + number);
      for (int round = 0; round < 30; ++round) {
        std::vector<ResourceKey> wanted;
        for (int key = 0; key < keys; ++key) {
          if (random() % 3 == 0) wanted.push_back({std::to_string(key), random() % 2 == 0});
        }
        const auto waiter = std::make_shared<Wakeup>();
        const auto ticket = locks.request(wanted, waiter);
        while (locks.standing(ticket) != Standing::granted) waiter->wait(Millis{10'000});
        for (const auto& key : wanted) {
          const int at = std::stoi(key.key);
          if (key.write) {
            EXPECT_EQ(writers[at]++, 0);
            EXPECT_EQ(readers[at], 0);
          } else {
            ++readers[at];
            EXPECT_EQ(writers[at], 0);
          }
        }
        std::this_thread::yield();
        for (const auto& key : wanted) --(key.write ? writers : readers)[std::stoi(key.key)];
        locks.release(ticket);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(RetryAdvice, follows_what_a_tool_is_and_how_far_it_came) {
  const auto advice = [](Effect effect, Idempotency idempotency, bool gated, EffectState effects) {
    return retry_advice({.effect = effect, .idempotency = idempotency, .gated = gated}, effects);
  };
  using enum EffectState;
  EXPECT_EQ(advice(Effect::none, Idempotency::no, false, unknown), RetryAdvice::safe);
  EXPECT_EQ(advice(ToolSpec{}.effect, Idempotency::no, false, unknown), RetryAdvice::verify_first);
  EXPECT_EQ(advice(ToolSpec{}.effect, Idempotency::yes, false, unknown), RetryAdvice::safe);
  for (const auto effect : {Effect::local_write, Effect::external_write, Effect::irreversible}) {
    EXPECT_EQ(advice(effect, Idempotency::no, false, none), RetryAdvice::safe);
    EXPECT_EQ(advice(effect, Idempotency::yes, false, unknown), RetryAdvice::safe);
    EXPECT_EQ(advice(effect, Idempotency::keyed, false, unknown), RetryAdvice::safe);
  }
  EXPECT_EQ(advice(Effect::local_write, Idempotency::no, true, partial), RetryAdvice::safe);
  EXPECT_EQ(advice(Effect::local_write, Idempotency::no, true, complete),
            RetryAdvice::verify_first);
  EXPECT_EQ(advice(Effect::local_write, Idempotency::no, false, unknown),
            RetryAdvice::verify_first);
  EXPECT_EQ(advice(Effect::external_write, Idempotency::no, false, unknown),
            RetryAdvice::verify_first);
  EXPECT_EQ(advice(Effect::irreversible, Idempotency::no, false, unknown), RetryAdvice::do_not);
  EXPECT_EQ(advice(Effect::irreversible, Idempotency::no, false, complete), RetryAdvice::do_not);
}

}  // namespace
}  // namespace watchdog
