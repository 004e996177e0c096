// Hooks and the proxy report the same run: the events that are stored, and the health that follows.
#include "ingest/joiner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "ingest/hooks.h"
#include "store/store_reader.h"
#include "support/agent.h"
#include "support/reports.h"
#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

/// A store behind the joiner, and what a judge makes of it.
class Joined {
 public:
  Joined() : store_(std::move(*Store::open({.database = dir_ / "watchdog.db"}))) {}

  void post(ReportOrigin by, std::vector<Report> reports) {
    Batch batch{.session = "run",
                .creation = Creation::attach,
                .spec = {},
                .reports = std::move(reports),
                .by = by};
    joiner_->join(batch);
    auto receipts = store_.append({&batch, 1});
    ASSERT_TRUE(receipts && receipts->front());
  }
  /// The monitor ends and starts again.
  void restart() { joiner_.emplace(Joiner::earlier_in(store_)); }
  void hook(HookAgent agent, const std::string& body) {
    auto event = hook_event(agent, body, "run");
    ASSERT_TRUE(event) << event.error().message;
    post(ReportOrigin::hooks, std::move(event->reports));
  }

  /// The stored events without the heartbeats.
  std::vector<Event> events() {
    auto reader = StoreReader::open(dir_ / "watchdog.db");
    EXPECT_TRUE(reader);
    auto all = test::all_events(*reader, "run");
    std::erase_if(all, [](const Event& e) { return e.report.kind == ReportKind::heartbeat; });
    return all;
  }
  int count(ReportKind kind) {
    const auto all = events();
    return static_cast<int>(
        std::ranges::count_if(all, [&](const Event& e) { return e.report.kind == kind; }));
  }
  /// The call at which it was found to loop; 0: never.
  int found_at() {
    Case judged;
    std::vector<Transition> changes;
    int calls = 0;
    for (const auto& event : events()) {
      calls += event.report.kind == ReportKind::tool_call ? 1 : 0;
      judged.fold(event, changes);
      if (judged.health.kind == HealthKind::looping) return calls;
    }
    return 0;
  }

 private:
  test::TempDir dir_;
  Store store_;
  std::optional<Joiner> joiner_{Joiner::earlier_in(store_)};
};

Report made(ReportKind kind, std::string name, std::string content, std::string id = {}) {
  Report report;
  report.kind = kind;
  report.name = std::move(name);
  report.content = std::move(content);
  report.call_id = std::move(id);
  return report;
}

const std::string failure = "make: *** No targets specified and no makefile found.  Stop.\n";

/// One agent's call, as its hooks report it, and as the proxy in front of its model reports it.
struct Manner {
  HookAgent agent;
  std::string (*call)(int);
  std::string (*result)(int);
  const char* tool;
  const char* arguments;
  std::string (*answer)(int);
};

const Manner manners[] = {
    {HookAgent::codex,
     [](int i) {
       return R"({"hook_event_name":"PreToolUse","session_id":"s","turn_id":"t","tool_name":"Bash",)"
              R"("tool_input":{"command":"make"},"tool_use_id":"call_)" +
              std::to_string(i) + "\"}";
     },
     [](int i) {
       return R"({"hook_event_name":"PostToolUse","session_id":"s","turn_id":"t",)"
              R"("tool_name":"Bash","tool_input":{"command":"make"},"tool_response":)"
              R"("make: *** No targets specified and no makefile found.  Stop.\n",)"
              R"("tool_use_id":"call_)" +
              std::to_string(i) + "\"}";
     },
     "exec_command", R"({"cmd":"make","yield_time_ms":60000})",
     [](int i) {
       return "Chunk ID: 01a5c" + std::to_string(i) + "\nWall time: 0.04" + std::to_string(i) +
              " seconds\nProcess exited with code 2\nOriginal token count: 19\nOutput:\n" + failure;
     }},
    {HookAgent::opencode,
     [](int i) {
       return R"({"type":"tool.execute.before","properties":{"tool":"bash","sessionID":"s",)"
              R"("callID":"call_)" +
              std::to_string(i) + R"(","args":{"command":"make","description":"d"}}})";
     },
     [](int i) {
       return R"({"type":"tool.execute.after","properties":{"tool":"bash","sessionID":"s",)"
              R"("callID":"call_)" +
              std::to_string(i) +
              R"(","args":{"command":"make","description":"d"},"metadata":{"exit":2},"output":)"
              R"("make: *** No targets specified and no makefile found.  Stop.\n"}})";
     },
     "bash", R"({"command":"make","description":"d"})", [](int) { return failure; }},
    // It gives its calls no ids in its hooks.
    {HookAgent::gemini_cli,
     [](int i) {
       return R"({"hook_event_name":"BeforeTool","session_id":"s","timestamp":"2026-11-22T10:27:1)" +
              std::to_string(i % 10) + "." + std::to_string(100 + i) +
              R"(Z","tool_name":"run_shell_command",)"
              R"("tool_input":{"command":"make","description":"Runs it"}})";
     },
     [](int i) {
       return R"({"hook_event_name":"AfterTool","session_id":"s","timestamp":"2026-11-22T10:27:1)" +
              std::to_string(i % 10) + "." + std::to_string(500 + i) +
              R"(Z","tool_name":"run_shell_command",)"
              R"("tool_input":{"command":"make","description":"Runs it"},"tool_response":)"
              R"({"llmContent":"<untrusted_context>\nOutput: make: *** No targets.  Stop.\n)"
              R"(Exit Code: 2\nProcess Group PGID: 217)" +
              std::to_string(i + 10) +
              R"(\n</untrusted_context>","returnDisplay":"make: *** No targets.  Stop."}})";
     },
     "run_shell_command", R"({"command":"make","description":"Runs it"})",
     [](int i) {
       return "<untrusted_context>\nOutput: make: *** No targets.  Stop.\nExit Code: 2\nProcess "
              "Group PGID: 217" +
              std::to_string(i + 10) + "\n</untrusted_context>";
     }},
};

enum class Way { hooks, proxy, both };

/// Twelve equal failing calls. Chance decides whether the hooks or the proxy report a call first.
void loop(Joined& joined, const Manner& manner, Way way, std::mt19937& random) {
  if (way != Way::proxy)
    joined.post(ReportOrigin::hooks, {made(ReportKind::user_input, "", "mend the build")});
  if (way != Way::hooks) {
    joined.post(ReportOrigin::proxy,
                {made(ReportKind::state_change, "input", "<context/>\n\nmend the build\n")});
  }
  const auto in_turn = [&](auto&& one, auto&& other) {
    const bool first = random() % 2 == 0;
    if (way != Way::proxy && first) one();
    if (way != Way::hooks) other();
    if (way != Way::proxy && !first) one();
  };
  for (int i = 0; i < 12; ++i) {
    const auto id = "call_" + std::to_string(i);
    in_turn([&] { joined.hook(manner.agent, manner.call(i)); },
            [&] {
              joined.post(ReportOrigin::proxy,
                          {made(ReportKind::tool_call, manner.tool, manner.arguments, id)});
            });
    if (way != Way::proxy) joined.hook(manner.agent, manner.result(i));
    if (way != Way::hooks)
      joined.post(ReportOrigin::proxy,
                  {made(ReportKind::tool_result, manner.tool, manner.answer(i), id)});
  }
}

TEST(Joiner, twelve_equal_failing_calls_are_found_by_the_sixth_call_from_any_source) {
  for (const auto& manner : manners) {
    for (const auto way : {Way::hooks, Way::proxy, Way::both}) {
      for (std::uint32_t seed = 1; seed <= 5; ++seed) {
        std::mt19937 random(seed);
        Joined joined;
        loop(joined, manner, way, random);
        const auto where = std::string(name_of(manner.agent)) + ", way " +
                           std::to_string(static_cast<int>(way)) + ", seed " + std::to_string(seed);
        EXPECT_EQ(joined.count(ReportKind::tool_call), 12) << where;
        EXPECT_EQ(joined.count(ReportKind::tool_result), 12) << where;
        EXPECT_EQ(joined.count(ReportKind::user_input), way == Way::proxy ? 0 : 1) << where;
        EXPECT_EQ(joined.count(ReportKind::state_change), way == Way::proxy ? 1 : 0) << where;
        EXPECT_GT(joined.found_at(), 0) << where;
        EXPECT_LE(joined.found_at(), 6) << where;
        if (way != Way::both) break;
      }
    }
  }
}

TEST(Joiner, call_is_kept_once_with_both_names_in_either_order) {
  for (const bool hooks_first : {true, false}) {
    Joined joined;
    const auto hook = [&] {
      joined.post(ReportOrigin::hooks,
                  {made(ReportKind::tool_call, "Bash", R"({"command":"ls"})", "c1")});
    };
    joined.post(ReportOrigin::hooks, {made(ReportKind::start, "", "")});
    if (hooks_first) hook();
    joined.post(ReportOrigin::proxy,
                {made(ReportKind::tool_call, "exec_command", R"({"cmd":"ls"})", "c1")});
    if (!hooks_first) hook();
    const auto all = joined.events();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[1].report.name, hooks_first ? "Bash" : "exec_command");
    EXPECT_EQ(all[1].report.also, hooks_first ? "exec_command" : "Bash");
    EXPECT_NE(to_json(all[1]).find(R"("also":")"), std::string::npos);
  }
}

TEST(Joiner, calls_that_the_proxy_of_tool_servers_sees_too_are_kept_once) {
  for (const bool proxy_knows_id : {false, true}) {
    Joined joined;
    const std::string id = proxy_knows_id ? "c1" : "";
    joined.post(ReportOrigin::hooks, {made(ReportKind::tool_call, "mcp__t__find", "{}", "c1")});
    joined.post(ReportOrigin::mcp, {made(ReportKind::tool_call, "find", "{}", id)});
    joined.post(ReportOrigin::mcp, {made(ReportKind::tool_result, "find", "x", id)});
    joined.post(ReportOrigin::hooks, {made(ReportKind::tool_result, "mcp__t__find", "x", "c1")});
    EXPECT_EQ(joined.count(ReportKind::tool_call), 1) << proxy_knows_id;
    EXPECT_EQ(joined.count(ReportKind::tool_result), 1) << proxy_knows_id;
    EXPECT_EQ(joined.events().back().report.call_id, "c1") << proxy_knows_id;
  }
}

TEST(Joiner, ids_that_come_again_are_other_calls) {
  // Some model servers begin to count their ids again with each answer.
  Joined joined;
  joined.post(ReportOrigin::hooks, {made(ReportKind::start, "", "")});
  for (int i = 0; i < 3; ++i) {
    const auto arguments = R"({"command":")" + std::to_string(i) + "\"}";
    for (const auto by : {ReportOrigin::proxy, ReportOrigin::hooks})
      joined.post(by, {made(ReportKind::tool_call, "bash", arguments, "call_0")});
    for (const auto by : {ReportOrigin::hooks, ReportOrigin::proxy})
      joined.post(by, {made(ReportKind::tool_result, "bash", std::to_string(i), "call_0")});
  }
  EXPECT_EQ(joined.count(ReportKind::tool_call), 3);
  EXPECT_EQ(joined.count(ReportKind::tool_result), 3);
}

TEST(Joiner, reports_from_a_single_source_stay_unchanged) {
  Joiner joiner;
  for (const auto by : {ReportOrigin::agent, ReportOrigin::proxy}) {
    Batch batch{.session = std::to_string(static_cast<int>(by)),
                .creation = Creation::attach,
                .spec = {},
                .reports = {made(ReportKind::tool_call, "bash", "{}", "c1"),
                            made(ReportKind::tool_call, "bash", "{}", "c1"),
                            made(ReportKind::idle, "", "")},
                .by = by};
    joiner.join(batch);
    for (const auto& report : batch.reports) EXPECT_EQ(report.event_id, "");
  }
  // Programs that name their own calls count as the agent beside each other.
  for (const auto by :
       {ReportOrigin::unknown, ReportOrigin::agent, ReportOrigin::run, ReportOrigin::monitor}) {
    Batch batch{.session = "own",
                .creation = Creation::attach,
                .spec = {},
                .reports = {made(ReportKind::tool_call, "bash", "{}", "c1")},
                .by = by};
    joiner.join(batch);
    EXPECT_EQ(batch.reports.front().event_id, "") << name_of(by);
  }
  // Twice by the same one is twice.
  Joined joined;
  for (int i = 0; i < 2; ++i) {
    joined.post(
        ReportOrigin::hooks,
        {made(ReportKind::tool_call, "bash", "{}"), made(ReportKind::tool_result, "bash", "x"),
         made(ReportKind::message, "assistant", "done"), made(ReportKind::idle, "", "")});
  }
  EXPECT_EQ(joined.count(ReportKind::tool_call), 2);
  EXPECT_EQ(joined.count(ReportKind::tool_result), 2);
  EXPECT_EQ(joined.count(ReportKind::message), 2);
  EXPECT_EQ(joined.count(ReportKind::idle), 2);
}

TEST(Joiner, ends_of_answers_are_one_and_the_next_turn_is_another) {
  Joined joined;
  const auto turn = [&](const std::string& prompt, const std::string& answer) {
    joined.post(ReportOrigin::hooks, {made(ReportKind::user_input, "", prompt)});
    joined.post(ReportOrigin::proxy, {made(ReportKind::state_change, "input", prompt)});
    joined.post(ReportOrigin::proxy,
                {made(ReportKind::message, "assistant", answer), made(ReportKind::idle, "", "")});
    joined.post(ReportOrigin::hooks, {made(ReportKind::message, "assistant", answer + "\n"),
                                      made(ReportKind::idle, "", "")});
  };
  turn("one", "the same answer");
  turn("two", "the same answer");
  EXPECT_EQ(joined.count(ReportKind::user_input), 2);
  EXPECT_EQ(joined.count(ReportKind::state_change), 0);
  EXPECT_EQ(joined.count(ReportKind::message), 2);
  EXPECT_EQ(joined.count(ReportKind::idle), 2);
  joined.post(ReportOrigin::proxy, {made(ReportKind::state_change, "input", "three")});
  EXPECT_EQ(joined.count(ReportKind::state_change), 1) << "what only one tells is kept";
}

TEST(Joiner, the_result_of_a_call_from_before_a_restart_is_kept_once) {
  Joined joined;  // knows nothing of the call
  joined.post(ReportOrigin::hooks, {made(ReportKind::tool_result, "Bash", "ok", "c1")});
  joined.post(ReportOrigin::proxy, {made(ReportKind::tool_result, "exec_command", "ok", "c1")});
  joined.post(ReportOrigin::proxy, {made(ReportKind::tool_result, "exec_command", "ok", "c2")});
  joined.post(ReportOrigin::hooks, {made(ReportKind::error, "Bash", "no", "c2")});
  EXPECT_EQ(joined.events().size(), 2U);
}

/// A prompt, a call and its result. Both sources report each of them, the hooks first.
void report_step(Joined& joined, int step, ReportOrigin by) {
  const auto id = "call_" + std::to_string(step);
  const auto arguments = R"({"command":")" + id + "\"}";
  if (by == ReportOrigin::hooks) {
    const auto body = [&](const char* event, const std::string& more) {
      return R"({"session_id":"s","hook_event_name":")" + std::string(event) +
             R"(","tool_name":"Bash","tool_use_id":")" + id + R"(","turn_id":")" + id + "\"," +
             more + "}";
    };
    joined.hook(HookAgent::codex, body("UserPromptSubmit", R"("prompt":"do )" + id + "\""));
    joined.hook(HookAgent::codex, body("PreToolUse", R"("tool_input":)" + arguments));
    joined.hook(HookAgent::codex, body("PostToolUse", R"("tool_response":"done")"));
  } else {
    joined.post(by, {made(ReportKind::state_change, "input", "do " + id)});
    joined.post(by, {made(ReportKind::tool_call, "bash", arguments, id)});
    joined.post(by, {made(ReportKind::tool_result, "bash", "done\n", id)});
  }
}

TEST(Joiner, reports_of_two_sources_before_and_after_a_restart_are_kept_once) {
  for (const bool hooks_first : {true, false}) {
    Joined joined;
    const auto first = hooks_first ? ReportOrigin::hooks : ReportOrigin::proxy;
    const auto second = hooks_first ? ReportOrigin::proxy : ReportOrigin::hooks;
    // An agent's hooks report its start before it asks its model.
    joined.post(ReportOrigin::hooks, {made(ReportKind::start, "", "")});
    report_step(joined, 1, first);
    report_step(joined, 1, second);
    report_step(joined, 2, first);
    joined.restart();
    joined.post(second, {made(ReportKind::tool_result, "bash", "done\n", "call_2")});
    EXPECT_EQ(joined.count(ReportKind::tool_result), 2) << hooks_first;
    joined.restart();
    // An id that comes again after the restart is another call, whichever source reports it first.
    for (const auto by : {second, first}) {
      joined.post(by, {made(ReportKind::tool_call, "bash", R"({"command":"x"})", "call_2")});
      joined.post(by, {made(ReportKind::tool_result, "bash", "new", "call_2")});
    }
    EXPECT_EQ(joined.count(ReportKind::tool_call), 3) << hooks_first;
    EXPECT_EQ(joined.count(ReportKind::tool_result), 3) << hooks_first;
    report_step(joined, 3, second);
    joined.restart();
    joined.post(first, {made(ReportKind::tool_result, "bash", "done", "call_3")});
    EXPECT_EQ(joined.count(ReportKind::tool_result), 4) << hooks_first;
  }
}

TEST(Joiner, sessions_are_forgotten_the_oldest_first) {
  Joiner joiner;
  const auto post = [&](const std::string& session, ReportOrigin by) {
    Batch batch{.session = session,
                .creation = Creation::attach,
                .spec = {},
                .reports = {made(ReportKind::tool_call, "bash", "{}", "c1")},
                .by = by};
    joiner.join(batch);
    return batch.reports.front().event_id;
  };
  const auto first = post("first", ReportOrigin::hooks);
  for (std::size_t i = 1; i < Joiner::sessions_max; ++i)
    post(std::to_string(i), ReportOrigin::hooks);
  EXPECT_EQ(post("first", ReportOrigin::proxy), first);
  post("another", ReportOrigin::hooks);
  EXPECT_EQ(post("1", ReportOrigin::proxy), "") << "it was forgotten";
}

}  // namespace
}  // namespace watchdog::monitor
