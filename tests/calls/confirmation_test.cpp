// Somebody is asked before something is changed.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"
#include "support/text_file.h"
#include "support/tool_bench.h"
#include "watchdog/executor.h"

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

/// Writes "new" into a file of its directory.
class Writer final : public Tool {
 public:
  explicit Writer(fs::path target) : target_(std::move(target)) {}
  const ToolSpec& spec() const noexcept override { return spec_; }
  Result<Preview> preview(const ToolCall&) override {
    return Preview{.diff = "-old\n+new", .paths = {target_}};
  }
  ToolReply invoke(ToolContext& now) override {
    ++invoked;
    if (before_publishing) before_publishing();
    const auto staged = target_.parent_path() / ".staged";
    write_file(staged, "new");
    const auto result = now.writes().publish_file(staged, target_);
    if (after_publishing) after_publishing();
    return {.ok = result == CommitResult::committed, .text = std::string(name_of(result))};
  }

  std::atomic<int> invoked{0};
  std::function<void()> before_publishing;
  std::function<void()> after_publishing;

 private:
  const fs::path target_;
  const ToolSpec spec_{
      .name = "write", .effect = Effect::local_write, .gated = true, .needs_confirmation = true};
};

struct Scene {
  Scene() {
    write_file(dir / "f", "old");
    bench.add(writer);
    bench.add({.name = "other"}, [](ToolContext&) { return ToolReply{.text = "x"}; });
  }
  TempDir dir;
  std::shared_ptr<Writer> writer = std::make_shared<Writer>(dir / "f");
  ToolBench bench;
};

TEST(Confirmation, a_no_changes_nothing_and_concerns_nobody_else) {
  Scene scene;
  scene.bench.parts.confirm = [](const ToolCall&, const Tool::Preview& preview,
                                 const std::stop_token&) {
    EXPECT_EQ(preview.diff, "-old\n+new");
    return Confirmation::deny;
  };
  auto turn = scene.bench.turn();
  const auto reports = scene.bench.calls(turn, {"other", "write", "other"});
  EXPECT_EQ(as<ToolDenied>(reports[1]).reason, DenyReason::write_denied);
  EXPECT_EQ(render_for_model(reports[1]).rfind("[DENIED] Tool \"write\": write not approved", 0),
            0U);
  EXPECT_EQ(scene.writer->invoked, 0);
  EXPECT_EQ(content_of(scene.dir / "f"), "old");
  EXPECT_EQ(name_of(reports[2].outcome), "result");
}

TEST(Confirmation, a_yes_runs_it_once) {
  Scene scene;
  scene.bench.parts.confirm = [](const auto&...) { return Confirmation::approve; };
  EXPECT_EQ(name_of(scene.bench.call("write").outcome), "result");
  EXPECT_EQ(scene.writer->invoked, 1);
  EXPECT_EQ(content_of(scene.dir / "f"), "new");
}

TEST(Confirmation, with_nobody_to_ask_or_one_who_throws_it_is_a_no) {
  Scene silent;
  EXPECT_EQ(as<ToolDenied>(silent.bench.call("write")).reason, DenyReason::write_denied);
  Scene broken;
  broken.bench.parts.confirm = [](const auto&...) -> Confirmation { throw 1; };
  EXPECT_EQ(as<ToolDenied>(broken.bench.call("write")).reason, DenyReason::write_denied);
  EXPECT_EQ(broken.writer->invoked, 0);
}

TEST(Confirmation, a_file_changed_since_it_was_shown_is_left_alone) {
  Scene scene;
  scene.bench.parts.confirm = [&](const auto&...) {
    write_file(scene.dir / "f", "by somebody else");
    return Confirmation::approve;
  };
  const auto report = scene.bench.call("write");
  EXPECT_EQ(as<ToolDenied>(report).reason, DenyReason::stale_precondition);
  EXPECT_EQ(content_of(scene.dir / "f"), "by somebody else");
  EXPECT_NE(render_for_model(report).find("read it again, merge your change, and retry"),
            std::string::npos);
}

TEST(Confirmation, time_stands_still_while_somebody_thinks) {
  Scene scene;
  scene.bench.stop_the_clock();
  scene.bench.options.confirm_max.reset();
  const auto budget = std::make_shared<ExecutionBudget>(
      scene.bench.clock, BudgetLimits{.duration = 100s}, BudgetThresholds{.enforce_time = true});
  const Latch latch;
  scene.bench.parts.confirm = [&](const auto&...) {
    latch.wait();
    return Confirmation::approve;
  };
  auto turn = scene.bench.turn({.budget = budget});
  auto running = scene.bench.begin(turn, "write");
  latch.await();
  scene.bench.advance(24h);
  EXPECT_EQ(running.wait_for(20ms), std::future_status::timeout);
  EXPECT_TRUE(scene.bench.turns().active()[0].running[0].paused);
  latch.open();
  const auto report = running.get();
  EXPECT_EQ(name_of(report.outcome), "result");
  EXPECT_EQ(report.paused, 24h);
  EXPECT_EQ(budget->elapsed_seconds(), 0);
}

TEST(Confirmation, that_nobody_gives_expires_and_is_never_taken_for_a_yes) {
  Scene scene;
  scene.bench.stop_the_clock();
  const Latch latch;
  const Latch heard;
  scene.bench.parts.confirm = [=](const ToolCall&, const Tool::Preview&,
                                  const std::stop_token& stop) {
    (void)latch.wait(stop);  // the prompt is dismissed
    heard.wait();
    return Confirmation::approve;  // too late
  };
  auto turn = scene.bench.turn();
  auto running = scene.bench.begin(turn, "write");
  latch.await();
  scene.bench.advance(599'999ms);
  EXPECT_EQ(running.wait_for(20ms), std::future_status::timeout);
  scene.bench.advance(1ms);
  const auto report = running.get();
  EXPECT_EQ(as<ToolDenied>(report).reason, DenyReason::confirmation_expired);
  EXPECT_NE(render_for_model(report).find("within 600 s"), std::string::npos);
  heard.await();
  heard.open();
  EXPECT_TRUE(eventually([&] { return scene.bench.executor().leaks().abandoned == 0; }));
  EXPECT_EQ(scene.writer->invoked, 0);
  EXPECT_EQ(content_of(scene.dir / "f"), "old");
}

TEST(Confirmation, a_cancel_dismisses_the_question) {
  Scene scene;
  const Latch latch;
  scene.bench.parts.confirm = [=](const ToolCall&, const Tool::Preview&,
                                  const std::stop_token& stop) {
    (void)latch.wait(stop);
    return Confirmation::approve;  // pressed a moment too late
  };
  auto turn = scene.bench.turn();
  auto running = scene.bench.begin(turn, "write");
  latch.await();
  scene.bench.turns().abort(turn.id(), {.origin = CancelOrigin::user});
  EXPECT_TRUE(std::holds_alternative<ToolCancelled>(running.get().outcome));
  EXPECT_EQ(scene.writer->invoked, 0);
}

TEST(Confirmation, a_tool_that_asks_by_its_reply_cannot_write_before) {
  for (const bool approved : {true, false}) {
    ToolBench bench;
    std::vector<std::string> seen;
    bench.add({.name = "old", .effect = Effect::external_write, .confirms_by_reply = true},
              [&](ToolContext& now) {
                seen.push_back(now.call().arguments);
                const bool confirmed =
                    now.call().arguments.find("confirm_write") != std::string::npos;
                const auto result = now.writes().commit([] {});
                EXPECT_EQ(result, confirmed ? CommitResult::committed : CommitResult::fenced);
                return ToolReply{.text = confirmed ? "done" : "Write confirmation required: x"};
              });
    bench.parts.confirm = [&](const ToolCall&, const Tool::Preview& preview,
                              const std::stop_token&) {
      EXPECT_EQ(preview.diff, "Write confirmation required: x");
      return approved ? Confirmation::approve : Confirmation::deny;
    };
    const auto report = bench.call("old", R"({"a":1})");
    if (approved) {
      EXPECT_EQ(as<ToolExecutionResult>(report).output.text, "done");
      ASSERT_EQ(seen.size(), 2U);
      EXPECT_EQ(seen[1], R"({"a":1,"confirm_write":true})");
    } else {
      EXPECT_EQ(as<ToolDenied>(report).reason, DenyReason::write_denied);
      EXPECT_EQ(seen.size(), 1U);
    }
  }
}

TEST(Confirmation, a_question_called_off_has_changed_nothing) {
  ToolBench bench;
  const Latch latch;
  std::atomic<int> invoked{0};
  bench.add({.name = "raw", .effect = Effect::external_write, .needs_confirmation = true},
            [&](ToolContext&) {
              ++invoked;
              return ToolReply{};
            });
  bench.parts.confirm = [=](const ToolCall&, const Tool::Preview&, const std::stop_token& stop) {
    (void)latch.wait(stop);
    return Confirmation::approve;
  };
  auto turn = bench.turn();
  auto running = bench.begin(turn, "raw");
  latch.await();
  bench.turns().abort(turn.id(), {.origin = CancelOrigin::user});
  const auto report = running.get();
  EXPECT_EQ(as<ToolCancelled>(report).effects, EffectState::none);
  EXPECT_FALSE(as<ToolCancelled>(report).started);
  EXPECT_TRUE(report.began) << "its start was told, so its end has to be";
  EXPECT_EQ(invoked, 0);
}

TEST(Confirmation, that_nobody_gives_is_not_held_against_the_tool_nor_what_it_uses) {
  ToolBench bench({.confirm_max = 10ms});
  const Latch latch;
  bench.add({.name = "raw", .effect = Effect::external_write, .needs_confirmation = true},
            [](ToolContext&) { return ToolReply{}; });
  bench.add({.name = "w", .effect = Effect::local_write}, [](ToolContext&) { return ToolReply{}; });
  bench.parts.confirm = [=](const auto&...) {
    latch.wait();  // a prompt that does not listen
    return Confirmation::approve;
  };
  for (int at = 0; at < 3; ++at) {
    EXPECT_EQ(as<ToolDenied>(bench.call("raw")).reason, DenyReason::confirmation_expired) << at;
    EXPECT_EQ(name_of(bench.call("w").outcome), "result") << at;
  }
  EXPECT_TRUE(bench.executor().leaks().quarantined.empty());
  latch.open();
}

TEST(Confirmation, only_confirmed_files_are_written) {
  Scene scene;
  write_file(scene.dir / "g", "old");
  scene.bench.parts.confirm = [](const auto&...) { return Confirmation::approve; };
  class Liar final : public Tool {
   public:
    explicit Liar(const TempDir& dir) : dir_(dir) {}
    const ToolSpec& spec() const noexcept override { return spec_; }
    Result<Preview> preview(const ToolCall&) override {
      return Preview{.diff = "f", .paths = {dir_ / "f"}};
    }
    ToolReply invoke(ToolContext& now) override {
      write_file(dir_ / ".staged", "new");
      const auto result = now.writes().publish_file(dir_ / ".staged", dir_ / "g");
      return {.ok = result == CommitResult::committed};
    }

   private:
    const TempDir& dir_;
    const ToolSpec spec_{
        .name = "liar", .effect = Effect::local_write, .gated = true, .needs_confirmation = true};
  };
  scene.bench.add(std::make_shared<Liar>(scene.dir));
  EXPECT_EQ(as<ToolDenied>(scene.bench.call("liar")).reason, DenyReason::stale_precondition);
  EXPECT_EQ(content_of(scene.dir / "g"), "old");
}

TEST(Confirmation, a_partial_write_is_not_reported_as_undone) {
  Scene scene;
  write_file(scene.dir / "g", "old");
  scene.bench.add(
      {.name = "two", .effect = Effect::local_write, .gated = true}, [&](ToolContext& now) {
        write_file(scene.dir / ".a", "new");
        write_file(scene.dir / ".b", "new");
        (void)now.writes().publish_file(scene.dir / ".a", scene.dir / "f");
        const auto second =
            now.writes().publish_file(scene.dir / ".b", FilePrecondition{scene.dir / "g"});
        return ToolReply{.ok = second == CommitResult::committed, .text = "g differs"};
      });
  EXPECT_EQ(as<ToolFailure>(scene.bench.call("two")).message, "g differs");
}

TEST(Confirmation, a_tool_that_writes_without_asking_by_its_reply_has_not_written) {
  ToolBench bench;
  bench.add({.name = "old", .effect = Effect::external_write, .confirms_by_reply = true},
            [](ToolContext& now) {
              (void)now.writes().commit([] { ADD_FAILURE() << "nobody was asked"; });
              return ToolReply{.text = "done, it thinks"};
            });
  EXPECT_NE(as<ToolFailure>(bench.call("old")).message.find("without asking"), std::string::npos);
}

/// Takes a while to say what it would do.
class Ponderer final : public Tool {
 public:
  explicit Ponderer(Latch latch) : latch_(std::move(latch)) {}
  const ToolSpec& spec() const noexcept override { return spec_; }
  Result<Preview> preview(const ToolCall&) override {
    latch_.wait();
    return Preview{};
  }
  ToolReply invoke(ToolContext&) override {
    ++invoked;
    return {};
  }
  std::atomic<int> invoked{0};

 private:
  const Latch latch_;
  const ToolSpec spec_{.name = "ponder",
                       .effect = Effect::local_write,
                       .deadline = {.idle = 10ms},
                       .retry_on_timeout = true};
};

TEST(Confirmation, a_call_that_is_over_before_it_was_made_is_not_made) {
  const TempDir dir;
  ToolBench bench({.cancel_grace = 10ms});
  bench.parts.checkpoints =
      std::make_shared<CheckpointStore>(std::move(*CheckpointStore::open(dir / "checkpoints")));
  const Latch latch;
  const auto tool = std::make_shared<Ponderer>(latch);
  bench.add(tool);
  bench.add({.name = "w", .effect = Effect::external_write},
            [](ToolContext&) { return ToolReply{}; });
  EXPECT_EQ(as<ToolTimeout>(bench.call("ponder")).effects, EffectState::none);
  EXPECT_EQ(name_of(bench.call("w").outcome), "result") << "nothing of it can come late";
  latch.open();
  ASSERT_TRUE(eventually([&] { return bench.executor().leaks().abandoned == 0; }));
  EXPECT_EQ(tool->invoked, 0);
}

TEST(Confirmation, a_file_written_before_a_timeout_can_be_restored) {
  const TempDir dir;
  Scene scene;
  scene.bench.options.cancel_grace = 10ms;
  const auto store =
      std::make_shared<CheckpointStore>(std::move(*CheckpointStore::open(dir / "checkpoints")));
  scene.bench.parts.checkpoints = store;
  scene.bench.options.cap = 200ms;
  scene.bench.parts.confirm = [](const auto&...) { return Confirmation::approve; };
  const Latch latch;
  scene.writer->after_publishing = [latch] { latch.wait(); };
  const auto report = scene.bench.call("write");
  EXPECT_EQ(as<ToolTimeout>(report).effects, EffectState::complete);
  ASSERT_FALSE(report.checkpoint.empty());
  latch.open();
  ASSERT_TRUE(eventually([&] { return scene.bench.executor().leaks().abandoned == 0; }));
  EXPECT_EQ(store->restore(report.checkpoint, true)->restored.size(), 1U);
  EXPECT_EQ(content_of(scene.dir / "f"), "old");
}

}  // namespace
}  // namespace watchdog
