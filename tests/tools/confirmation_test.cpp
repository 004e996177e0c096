// Somebody is asked before something is changed.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"
#include "support/tool_bench.h"
#include "watchdog/executor.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::Door;
using test::eventually;
using test::TempDir;
using test::ToolBench;
namespace fs = std::filesystem;

void write(const fs::path& path, std::string_view text) {
  std::ofstream(path) << text;
}

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
const T& as(const CallReport& report) {
  if (!std::holds_alternative<T>(report.outcome)) {
    throw std::runtime_error("another outcome: " + to_json(report));
  }
  return std::get<T>(report.outcome);
}

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
    write(staged, "new");
    const auto result = now.writes().publish_file(staged, target_);
    return {.ok = result == CommitResult::committed, .text = std::string(name_of(result))};
  }

  std::atomic<int> invoked{0};
  std::function<void()> before_publishing;

 private:
  const fs::path target_;
  const ToolSpec spec_{
      .name = "write", .effect = Effect::local_write, .gated = true, .needs_confirmation = true};
};

struct Scene {
  Scene() {
    write(dir / "f", "old");
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
  EXPECT_EQ(read(scene.dir / "f"), "old");
  EXPECT_EQ(name_of(reports[2].outcome), "result");
}

TEST(Confirmation, a_yes_runs_it_once) {
  Scene scene;
  scene.bench.parts.confirm = [](const auto&...) { return Confirmation::approve; };
  EXPECT_EQ(name_of(scene.bench.call("write").outcome), "result");
  EXPECT_EQ(scene.writer->invoked, 1);
  EXPECT_EQ(read(scene.dir / "f"), "new");
}

TEST(Confirmation, with_nobody_to_ask_or_one_who_throws_it_is_a_no) {
  Scene silent;
  EXPECT_EQ(as<ToolDenied>(silent.bench.call("write")).reason, DenyReason::write_denied);
  Scene broken;
  broken.bench.parts.confirm = [](const auto&...) -> Confirmation { throw 1; };
  EXPECT_EQ(as<ToolDenied>(broken.bench.call("write")).reason, DenyReason::write_denied);
  EXPECT_EQ(broken.writer->invoked, 0);
}

TEST(Confirmation, what_changed_since_it_was_shown_is_left_alone) {
  Scene scene;
  scene.bench.parts.confirm = [&](const auto&...) {
    write(scene.dir / "f", "by somebody else");
    return Confirmation::approve;
  };
  const auto report = scene.bench.call("write");
  EXPECT_EQ(as<ToolDenied>(report).reason, DenyReason::stale_precondition);
  EXPECT_EQ(read(scene.dir / "f"), "by somebody else");
  EXPECT_NE(render_for_model(report).find("read it again, merge your change, and retry"),
            std::string::npos);
}

TEST(Confirmation, time_stands_still_while_somebody_thinks) {
  Scene scene;
  scene.bench.stop_the_clock();
  scene.bench.options.confirm_max.reset();
  const auto budget = std::make_shared<ExecutionBudget>(
      scene.bench.clock, BudgetLimits{.duration = 100s}, BudgetThresholds{.enforce_time = true});
  const Door door;
  scene.bench.parts.confirm = [&](const auto&...) {
    door.wait();
    return Confirmation::approve;
  };
  auto turn = scene.bench.turn({.budget = budget});
  auto running = scene.bench.begin(turn, "write");
  door.await();
  scene.bench.advance(24h);
  EXPECT_EQ(running.wait_for(20ms), std::future_status::timeout);
  EXPECT_TRUE(scene.bench.turns().active()[0].running[0].paused);
  door.open();
  const auto report = running.get();
  EXPECT_EQ(name_of(report.outcome), "result");
  EXPECT_EQ(report.paused, 24h);
  EXPECT_EQ(budget->elapsed_seconds(), 0);
}

TEST(Confirmation, that_nobody_gives_expires_and_is_never_taken_for_a_yes) {
  Scene scene;
  scene.bench.stop_the_clock();
  const Door door;
  const Door heard;
  scene.bench.parts.confirm = [=](const ToolCall&, const Tool::Preview&,
                                  const std::stop_token& stop) {
    (void)door.wait(stop);  // the prompt is dismissed
    heard.wait();
    return Confirmation::approve;  // too late
  };
  auto turn = scene.bench.turn();
  auto running = scene.bench.begin(turn, "write");
  door.await();
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
  EXPECT_EQ(read(scene.dir / "f"), "old");
}

TEST(Confirmation, a_cancel_dismisses_the_question) {
  Scene scene;
  const Door door;
  scene.bench.parts.confirm = [=](const ToolCall&, const Tool::Preview&,
                                  const std::stop_token& stop) {
    (void)door.wait(stop);
    return Confirmation::approve;  // pressed a moment too late
  };
  auto turn = scene.bench.turn();
  auto running = scene.bench.begin(turn, "write");
  door.await();
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

}  // namespace
}  // namespace watchdog
