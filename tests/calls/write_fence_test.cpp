#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "files/sha256.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "support/tool_bench.h"
#include "watchdog/tool_outcome.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::as;
using test::content_of;
using test::eventually;
using test::Latch;
using test::TempDir;
using test::ToolBench;
using test::write_file;
namespace fs = std::filesystem;

std::size_t files_in(const TempDir& dir) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator{}));
}

TEST(WriteFence, publishes_while_it_is_open_and_never_after) {
  const TempDir dir;
  WriteFence fence(1, "key");
  write_file(dir / "staged", "new");
  write_file(dir / "f", "old");
  EXPECT_EQ(fence.publish_file(dir / "staged", dir / "f"), CommitResult::committed);
  EXPECT_EQ(content_of(dir / "f"), "new");
  EXPECT_TRUE(fence.revoke(0ms));
  write_file(dir / "staged", "late");
  EXPECT_EQ(fence.publish_file(dir / "staged", dir / "f"), CommitResult::fenced);
  EXPECT_EQ(content_of(dir / "f"), "new");
  EXPECT_EQ(files_in(dir), 1U) << "what was staged is gone";
  EXPECT_EQ(fence.commit([] { FAIL() << "a late effect"; }), CommitResult::fenced);
  EXPECT_EQ(fence.account().committed, 1);
  EXPECT_EQ(fence.account().fenced, 2);
}

TEST(WriteFence, a_file_that_changed_is_left_as_it_is) {
  const TempDir dir;
  WriteFence fence(1, "key");
  write_file(dir / "f", "seen");
  const FilePrecondition as_seen{dir / "f", *digest_of(dir / "f")};
  write_file(dir / "f", "changed");
  write_file(dir / "staged", "mine");
  EXPECT_EQ(fence.publish_file(dir / "staged", as_seen), CommitResult::precondition_failed);
  EXPECT_EQ(content_of(dir / "f"), "changed");
  write_file(dir / "staged", "mine");
  EXPECT_EQ(fence.publish_file(dir / "staged", FilePrecondition{dir / "f"}),
            CommitResult::precondition_failed)
      << "it was not to exist";
  fence.expect({dir / "f", sha256_of("something else")});
  write_file(dir / "staged", "mine");
  EXPECT_EQ(fence.publish_file(dir / "staged", (dir.path() / "." / "f")),
            CommitResult::precondition_failed);
  EXPECT_EQ(fence.account().stale, 3);
  EXPECT_EQ(files_in(dir), 1U);
  WriteFence other(2, "key");
  write_file(dir / "staged", "mine");
  EXPECT_EQ(other.publish_file(dir / "staged", FilePrecondition{dir / "new"}),
            CommitResult::committed);
}

TEST(WriteFence, a_staged_file_does_not_leave_its_directory) {
  const TempDir dir;
  fs::create_directory(dir / "in");
  fs::create_directory(dir / "out");
  write_file(dir / "in" / ".staged", "new");
  WriteFence fence(1, "key");
  fs::rename(dir / "in", dir / "moved");
  fs::create_directory_symlink(dir / "out", dir / "in");
  EXPECT_EQ(fence.publish_file(dir / "in" / ".staged", dir / "in" / "f"), CommitResult::io_error);
  EXPECT_TRUE(fs::is_empty(dir / "out"));
}

TEST(WriteFence, a_file_system_error_is_reported) {
  const TempDir dir;
  WriteFence fence(1, "key");
  EXPECT_EQ(fence.publish_file(dir / "none", dir / "f"), CommitResult::io_error);
  write_file(dir / "staged", "x");
  EXPECT_EQ(fence.publish_file(dir / "staged", dir / "no" / "such" / "f"), CommitResult::io_error);
  EXPECT_EQ(fence.account().failed, 2);
}

TEST(WriteFence, an_effect_that_throws_is_thrown_on_and_counted) {
  WriteFence fence(1, "key");
  EXPECT_THROW((void)fence.commit([] { throw 1; }), int);
  EXPECT_EQ(fence.account().failed, 1);
  EXPECT_FALSE(fence.account().under_way);
}

TEST(WriteFence, shutting_waits_for_an_effect_under_way_but_not_for_ever) {
  WriteFence fence(1, "key");
  const Latch latch;
  std::thread effect(
      [&] { EXPECT_EQ(fence.commit([&] { latch.wait(); }), CommitResult::committed); });
  latch.await();
  EXPECT_FALSE(fence.revoke(1ms));
  EXPECT_TRUE(fence.account().under_way);
  EXPECT_FALSE(fence.is_open());
  latch.open();
  EXPECT_TRUE(fence.revoke(30s));
  effect.join();
}

TEST(WriteFence, numbers_rise_also_over_restarts_and_processes) {
  const TempDir dir;
  Epoch highest = 0;
  for (int start = 0; start < 3; ++start) {
    auto one = EpochSource::open(dir / "epoch");
    auto other = EpochSource::open(dir / "epoch");
    ASSERT_TRUE(one.ok() && other.ok());
    const auto first = *one->next();
    EXPECT_GT(first, highest);
    EXPECT_NE(*other->next(), first);
    highest = std::max(*one->next(), *other->next());
  }
  // A store that remembers the highest number refuses a writer from before the restart.
  const auto zombie = highest;
  const auto now = *EpochSource::open(dir / "epoch")->next();
  EXPECT_LT(zombie, now);
}

TEST(WriteFence, no_number_is_given_out_twice) {
  const TempDir dir;
  auto source = std::make_shared<EpochSource>(std::move(*EpochSource::open(dir / "epoch")));
  std::mutex mutex;
  std::set<Epoch> seen;
  std::vector<std::thread> threads;
  for (int at = 0; at < 4; ++at) {
    threads.emplace_back([&] {
      std::vector<Epoch> mine;
      for (int count = 0; count < 40'000; ++count) mine.push_back(*source->next());
      const std::lock_guard guard(mutex);
      seen.insert(mine.begin(), mine.end());
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(seen.size(), 160'000U) << "past the end of a range, too";
}

TEST(WriteFence, an_invalid_epoch_file_is_refused) {
  const TempDir dir;
  for (const auto* text : {"hello", "-1", "99999999999999999999", "1 2", "9007199254740993"}) {
    write_file(dir / "epoch", text);
    const auto opened = EpochSource::open(dir / "epoch");
    ASSERT_FALSE(opened.ok()) << text;
    EXPECT_EQ(opened.error().code, ErrorCode::invalid);
    EXPECT_EQ(content_of(dir / "epoch"), text) << "and left alone";
  }
  EXPECT_FALSE(EpochSource::open(dir / "no" / "such").ok());
  EXPECT_FALSE(EpochSource::open(dir.path()).ok());
}

TEST(FileDigest, is_of_regular_files_and_waits_for_nobody) {
  const TempDir dir;
  write_file(dir / "f", "abc");
  EXPECT_EQ(*digest_of(dir / "f"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(*digest_of(dir / "none"), std::nullopt);
  EXPECT_EQ(*digest_of(dir / "f" / "below a file"), std::nullopt);
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  fs::create_symlink(dir / "f", dir / "link");
  EXPECT_FALSE(digest_of(dir / "pipe").ok());
  EXPECT_FALSE(digest_of(dir / "link").ok());
  EXPECT_FALSE(digest_of(dir.path()).ok());
}

// -- with the executor

ToolSpec writer(Millis idle) {
  return {.name = "w", .effect = Effect::local_write, .gated = true, .deadline = {.idle = idle}};
}

TEST(Fencing, a_write_after_the_timeout_changes_nothing) {
  const TempDir dir;
  write_file(dir / "f", "before");
  ToolBench bench({.cancel_grace = 10ms});
  const Latch latch;
  const auto late = std::make_shared<std::promise<CommitResult>>();
  bench.add(writer(20ms), [&, latch, late](ToolContext& now) {
    auto mine = now;
    latch.wait();
    write_file(dir / "staged", "late");
    late->set_value(mine.writes().publish_file(dir / "staged", dir / "f"));
    return ToolReply{.text = "done"};
  });
  const auto report = bench.call("w");
  EXPECT_EQ(as<ToolTimeout>(report).effects, EffectState::none);
  EXPECT_EQ(as<ToolTimeout>(report).retry, RetryAdvice::safe);
  // Somebody else writes the file meanwhile.
  write_file(dir / "f", "of the next turn");
  latch.open();
  EXPECT_EQ(late->get_future().get(), CommitResult::fenced);
  EXPECT_EQ(content_of(dir / "f"), "of the next turn");
  EXPECT_TRUE(eventually([&] { return bench.count(ToolEvent::Kind::late) == 1; }));
  EXPECT_EQ(files_in(dir), 1U);
}

TEST(Fencing, a_write_before_the_timeout_is_reported_as_done) {
  ToolBench bench({.cancel_grace = 10ms});
  const Latch latch;
  bench.add(writer(20ms), [latch](ToolContext& now) {
    EXPECT_EQ(now.writes().commit([] {}), CommitResult::committed);
    latch.wait();
    return ToolReply{};
  });
  const auto report = bench.call("w");
  EXPECT_EQ(as<ToolTimeout>(report).effects, EffectState::complete);
  EXPECT_EQ(as<ToolTimeout>(report).retry, RetryAdvice::verify_first);
  latch.open();
}

TEST(Fencing, an_effect_that_hangs_is_unknown_and_holds_up_nobody) {
  ToolBench bench({.cancel_grace = 10ms, .commit_grace = 20ms});
  const Latch latch;
  bench.add(writer(20ms), [latch](ToolContext& now) {
    (void)now.writes().commit([&] { latch.wait(); });
    return ToolReply{};
  });
  const auto report = bench.call("w");
  EXPECT_EQ(as<ToolTimeout>(report).effects, EffectState::unknown);
  EXPECT_TRUE(as<ToolTimeout>(report).still_running);
  latch.open();
}

TEST(Fencing, a_cancel_shuts_the_fence_at_once_and_a_deadline_after_the_grace) {
  for (const bool by_user : {true, false}) {
    ToolBench bench;
    const Latch inside;
    bench.add(writer(by_user ? 0ms : 20ms), [inside](ToolContext& now) {
      const Latch latch;
      inside.open();
      (void)latch.wait(now.stop());
      return ToolReply{.text = std::string(name_of(now.writes().commit([] {})))};
    });
    auto turn = bench.turn();
    auto running = bench.begin(turn, "w", by_user ? "{}" : R"({"a":1})");
    if (by_user) {
      inside.wait();
      bench.turns().abort(turn.id(), {.origin = CancelOrigin::user});
      const auto report = running.get();
      EXPECT_EQ(as<ToolCancelled>(report).effects, EffectState::none);
      EXPECT_EQ(as<ToolCancelled>(report).partial.text, "fenced");
    } else {
      EXPECT_EQ(as<ToolExecutionResult>(running.get()).output.text, "committed")
          << "a result within the grace";
    }
  }
}

TEST(Fencing, a_result_whose_effect_was_fenced_is_none) {
  ToolBench bench({.cancel_grace = 10'000ms});
  bench.add(writer(20ms), [](ToolContext& now) {
    const Latch latch;
    (void)latch.wait(now.stop());
    now.writes().revoke(Millis{0});  // as if it had come a moment later
    EXPECT_EQ(now.writes().commit([] {}), CommitResult::fenced);
    return ToolReply{.text = "done, it thinks"};
  });
  const auto report = bench.call("w");
  EXPECT_FALSE(as<ToolTimeout>(report).still_running);
  EXPECT_EQ(as<ToolTimeout>(report).partial.text, "done, it thinks");
}

TEST(Fencing, keys_are_the_same_for_each_try_and_numbers_are_not) {
  ToolBench bench;
  std::set<std::string> keys;
  std::set<Epoch> epochs;
  bench.add({.name = "t"}, [&](ToolContext& now) {
    keys.insert(now.writes().idempotency_key());
    epochs.insert(now.epoch());
    return ToolReply{};
  });
  auto turn = bench.turn();
  (void)bench.calls(turn, {"t"});
  (void)bench.calls(turn, {"t"});
  EXPECT_EQ(keys, std::set<std::string>{"wd-" + turn.id() + "-0"});
  EXPECT_EQ(epochs.size(), 2U);
}

TEST(Fencing, a_cancel_shuts_the_fence_although_nobody_looks) {
  for (const bool after_a_deadline : {false, true}) {
    ToolBench bench;
    const Latch held;
    const Latch latch;
    const Latch reported;
    bench.add({.name = "bad"}, [=](ToolContext&) {
      reported.wait();
      return ToolReply{.ok = false};
    });
    const auto came = std::make_shared<std::promise<CommitResult>>();
    bench.add({.name = "w",
               .concurrency = Concurrency::parallel,
               .effect = Effect::local_write,
               .gated = true,
               .deadline = {.idle = after_a_deadline ? 10ms : 0ms}},
              [=](ToolContext& now) {
                latch.wait();
                came->set_value(now.writes().commit([] {}));
                return ToolReply{};
              });
    bench.options.cancel_grace = 60s;
    bench.parts.on_tool_error = [held](const CallReport&) { held.wait(); };
    auto turn = bench.turn();
    auto batch = std::async(std::launch::async, [&] { return bench.calls(turn, {"bad", "w"}); });
    latch.await();
    if (after_a_deadline) {
      ASSERT_TRUE(eventually([&] {
        const auto active = bench.turns().active();
        return active[0].running.size() == 2 && active[0].running[1].elapsed > 1s;
      }));
    }
    reported.open();
    held.await();  // the thread that decides is busy
    EXPECT_EQ(bench.turns().abort(turn.id(), {.origin = CancelOrigin::user}), AbortResult::aborted);
    latch.open();
    EXPECT_EQ(came->get_future().get(), CommitResult::fenced);
    held.open();
    (void)batch.get();
  }
}

TEST(Fencing, calls_without_an_id_have_keys_of_their_own) {
  ToolBench bench;
  std::set<std::string> keys;
  bench.add({.name = "t"}, [&](ToolContext& now) {
    keys.insert(now.writes().idempotency_key());
    return ToolReply{};
  });
  auto turn = bench.turn();
  (void)bench.executor().execute(turn, {"", "t", R"({"a":1})"});
  (void)bench.executor().execute(turn, {"", "t", R"({"a":2})"});
  EXPECT_EQ(keys.size(), 2U) << "they may be different calls";
}

}  // namespace
}  // namespace watchdog
