// Runs of real agents, as their hooks reported them, event by event: after each one the session is
// what a person would say that it is. Claude Code's are made from its documentation.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "codec/json.h"
#include "ingest/hooks.h"
#include "judge/attention.h"
#include "observer/observer.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::vector<std::filesystem::path> recordings() {
  std::vector<std::filesystem::path> files;
  const auto directory = std::filesystem::path(PROJECT_ROOT) / "tests/data/recordings";
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

/// A file's name begins with its agent's.
HookAgent agent_of(const std::string& name) {
  if (name.starts_with("claude-code")) return HookAgent::claude_code;
  if (name.starts_with("codex")) return HookAgent::codex;
  if (name.starts_with("copilot-cli")) return HookAgent::copilot_cli;
  return name.starts_with("gemini") ? HookAgent::gemini_cli : HookAgent::opencode;
}

/// A store that is watched, and what hooks put into it.
class Replayed {
 public:
  explicit Replayed(HookAgent agent) : agent_(agent) {
    auto opened = Store::open({.database = dir_ / "w.db", .clock = &clock_});
    if (!opened) throw std::runtime_error(opened.error().message);
    store_.emplace(std::move(*opened));
    auto started = Observer::start(*store_, {});
    if (!started) throw std::runtime_error(started.error().message);
    observer_ = std::move(*started);
  }

  /// `named`: the event, as the hook's address names it.
  void post(const json& body, const std::string& named = {}) {
    clock_.advance(1s);
    // Monday, 23 November 2026, 12:00 UTC.
    auto event = hook_event(agent_, body.dump(), {}, WallTime{1'795'435'200s}, named);
    ASSERT_TRUE(event.ok()) << body << event.error().message;
    if (session_.empty()) session_ = event->session;
    if (!event->reports.empty()) {
      Batch batch{.session = event->session,
                  .creation = Creation::attach,
                  .spec = event->spec,
                  .reports = event->reports};
      const auto receipts = store_->append({&batch, 1});
      ASSERT_TRUE(receipts.ok() && receipts->front().ok()) << body;
    }
    ASSERT_TRUE(observer_->look().ok());
  }

  /// Somebody asks the session to stop.
  void cancel() {
    Report cancel{.kind = ReportKind::cancel};
    cancel.detail = CancelRequest{.by = "user"};
    ASSERT_TRUE(test::say(*store_, session_, {cancel}).ok());
  }

  /// As the monitor does after a cancel.
  void deny(const std::string& tool) {
    Report denied{.kind = ReportKind::error};
    denied.name = tool;
    denied.content = "denied: cancelled by user";
    ASSERT_TRUE(test::say(*store_, session_, {denied}).ok());
    ASSERT_TRUE(observer_->look().ok());
  }

  [[nodiscard]] std::string state() {
    const auto row = store_->reader().session(session_);
    if (!row) return "none";
    const auto judged = store_->reader().fold(*row);
    return std::string(name_of(standing_of(judged.value(), clock_.wall()).state));
  }
  [[nodiscard]] Case judged() {
    return store_->reader().fold(store_->reader().session(session_).value()).value();
  }
  void pass(Millis time) {
    for (; time > 0ms; time -= 1s) {
      clock_.advance(1s);
      ASSERT_TRUE(observer_->look().ok());
    }
  }

 private:
  HookAgent agent_;
  test::TempDir dir_;
  test::ManualClock clock_;
  std::optional<Store> store_;
  std::unique_ptr<Observer> observer_;
  std::string session_;
};

TEST(HooksReplay, a_session_is_after_each_event_what_a_person_would_say) {
  const auto files = recordings();
  ASSERT_GE(files.size(), 14U);
  for (const auto& path : files) {
    const auto name = path.stem().string();
    Replayed replayed(agent_of(name));
    std::ifstream file(path);
    int number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      const auto row = json::parse(line);
      const auto& event = row["event"];
      replayed.post(event, row.value("named", ""));
      const auto kind = event.value("hook_event_name", event.value("type", row.value("named", "")));
      EXPECT_EQ(replayed.state(), row["state"].get<std::string>())
          << name << " line " << number << ", after " << kind << ": "
          << reason_of(replayed.judged().health, replayed.judged().history, {});
    }
    EXPECT_GT(number, 0);
  }
}

TEST(HooksReplay, an_end_says_how_it_was) {
  const std::pair<const char*, std::pair<const char*, const char*>> rows[] = {
      {"codex-tools", {"completed", ""}},
      {"codex-e401", {"incomplete", "the session ended before its answer was complete"}},
      {"codex-approval", {"cancelled", ""}},
      {"copilot-cli-e401", {"failed", "invalid_api_key: Incorrect API key provided."}},
      {"copilot-cli-tools", {"completed", ""}},
      {"gemini-e401", {"incomplete", "the session ended before its answer was complete"}},
      {"claude-code-failures", {"failed", "server_error: Overloaded"}},
      {"claude-code-questions-at-the-end",
       {"cancelled", "the session ended while it waited for input: Which database?"}},
  };
  for (const auto& [name, end] : rows) {
    Replayed replayed(agent_of(name));
    std::ifstream file(std::filesystem::path(PROJECT_ROOT) / "tests/data/recordings" /
                       (std::string(name) + ".jsonl"));
    for (std::string line; std::getline(file, line);) {
      const auto row = json::parse(line);
      replayed.post(row["event"], row.value("named", ""));
    }
    const auto judged = replayed.judged();
    ASSERT_TRUE(judged.history.notes->outcome) << name;
    EXPECT_EQ(name_of(judged.history.notes->outcome->kind), end.first) << name;
    EXPECT_EQ(judged.history.notes->outcome->error, end.second) << name;
  }
}

TEST(HooksReplay,
     a_command_of_copilot_cli_that_fails_alike_is_a_loop_whatever_number_its_shell_has) {
  Replayed replayed(HookAgent::copilot_cli);
  const auto post = [&](const char* name, const json& more) {
    json event{{"session_id", "s"}, {"hook_event_name", name}};
    event.update(more);
    replayed.post(event);
  };
  const json command{{"command", "make"}, {"mode", "sync"}, {"initial_wait", 120}};
  post("SessionStart", json::object());
  post("UserPromptSubmit", {{"prompt", "Build it"}});
  for (int call = 0; call < 5; ++call) {
    const auto text = "no rule\n<shellId: " + std::to_string(call) + " completed with exit code 2>";
    post("PreToolUse", {{"tool_name", "Bash"}, {"tool_input", command}});
    post("PostToolUse",
         {{"tool_name", "Bash"},
          {"tool_input", command},
          {"tool_result", {{"result_type", "success"}, {"text_result_for_llm", text}}}});
  }
  EXPECT_EQ(replayed.state(), "looping");
}

TEST(HooksReplay, calls_that_are_denied_after_a_cancel_are_no_loop) {
  Replayed replayed(HookAgent::copilot_cli);
  const auto post = [&](const char* name, const json& more) {
    json event{{"session_id", "s"}, {"hook_event_name", name}};
    event.update(more);
    replayed.post(event);
  };
  post("SessionStart", json::object());
  post("UserPromptSubmit", {{"prompt", "Build it"}});
  replayed.cancel();
  const json command{{"command", "make"}};
  for (int call = 0; call < 8; ++call) {
    post("PreToolUse", {{"tool_name", "Bash"}, {"tool_input", command}});
    replayed.deny("Bash");
    EXPECT_NE(replayed.state(), "looping") << call;
  }
  EXPECT_EQ(replayed.judged().history.notes->wasted_calls, 0);
  // An agent that cannot be denied goes on, and its loop is found.
  for (int call = 0; call < 6; ++call) {
    post("PreToolUse", {{"tool_name", "Bash"}, {"tool_input", command}});
    post("PostToolUseFailure",
         {{"tool_name", "Bash"}, {"tool_input", command}, {"error", "no rule"}});
  }
  EXPECT_EQ(replayed.state(), "looping");
}

json claude(const char* event, json more = json::object()) {
  more["session_id"] = "s";
  more["hook_event_name"] = event;
  return more;
}

TEST(HooksReplay, a_wait_says_for_what_and_until_when) {
  Replayed replayed(HookAgent::claude_code);
  replayed.post(claude("UserPromptSubmit", {{"prompt", "go"}}));
  replayed.post(claude(
      "StopFailure",
      {{"error_type", "rate_limit"}, {"error_message", "Claude usage limit reached|1795806400"}}));
  auto judged = replayed.judged();
  EXPECT_EQ(judged.history.notes->waiting_for, "quota");
  EXPECT_EQ(judged.history.notes->wait_until, WallTime{1'795'806'400s});
  EXPECT_EQ(judged.history.notes->wait_provider, "anthropic");
  replayed.post(claude("UserPromptSubmit", {{"prompt", "go"}}));
  replayed.post(
      claude("StopFailure",
             {{"error_type", "rate_limit"},
              {"error_message", "You've hit your limit · resets 10pm (America/New_York)"}}));
  EXPECT_EQ(replayed.judged().history.notes->wait_until, WallTime{1'795'489'200s});
  replayed.post(claude("UserPromptSubmit", {{"prompt", "go"}}));
  replayed.post(claude("StopFailure", {{"error_type", "authentication_failed"},
                                       {"error_message", "the token has expired"}}));
  judged = replayed.judged();
  EXPECT_EQ(reason_of(judged.health, judged.history, {}),
            "Waits for login: authentication_failed: the token has expired");
}

// The recordings contain the other faults that users of dashboards reported. Some dashboards showed
// a finished turn or a question as work. Others showed a stop while subagents ran, or a wait after
// its answer.
TEST(HooksReplay, time_makes_neither_an_approval_nor_a_delivered_result_trouble) {
  Replayed replayed(HookAgent::claude_code);
  const auto expect_for = [&](Millis time, const char* state) {
    for (; time > 0ms; time -= 1min) {
      replayed.pass(1min);
      ASSERT_EQ(replayed.state(), state)
          << reason_of(replayed.judged().health, replayed.judged().history, {});
    }
  };
  replayed.post(claude("UserPromptSubmit", {{"prompt", "go"}}));
  const json bash{{"tool_name", "Bash"}, {"tool_input", {{"command", "make"}}}};
  auto call = bash;
  call["tool_use_id"] = "a";
  replayed.post(claude("PreToolUse", call));
  replayed.post(claude("PermissionRequest", bash));
  expect_for(15min, "needs_input");
  replayed.post(claude("PostToolUse", call));
  EXPECT_EQ(replayed.state(), "progressing");
  replayed.post(claude("Stop", {{"last_assistant_message", "Done."}}));
  expect_for(2h, "your_turn");
}

TEST(HooksReplay, a_failure_closes_the_calls_that_it_leaves) {
  Replayed replayed(HookAgent::claude_code);
  replayed.post(claude("UserPromptSubmit", {{"prompt", "go"}}));
  replayed.post(claude("PreToolUse", {{"tool_name", "Bash"}, {"tool_use_id", "a"}}));
  EXPECT_EQ(replayed.judged().history.open_calls->size(), 1U);
  replayed.post(claude("StopFailure", {{"error_type", "authentication_failed"}}));
  EXPECT_TRUE(replayed.judged().history.open_calls->empty());
  EXPECT_EQ(replayed.state(), "needs_input");
}

json bus(const char* type, json properties) {
  properties["sessionID"] = "s";
  return {{"type", type}, {"properties", std::move(properties)}};
}

TEST(HooksReplay, opencode_that_tries_again_waits_until_then_and_goes_on) {
  Replayed replayed(HookAgent::opencode);
  replayed.post(bus("chat.message", {{"text", "go"}}));
  replayed.post(bus("session.status", {{"status", {{"type", "busy"}}}}));
  EXPECT_EQ(replayed.state(), "starting");
  replayed.post(bus("session.status", {{"status",
                                        {{"type", "retry"},
                                         {"attempt", 1},
                                         {"message", "Too Many Requests"},
                                         {"next", 1'795'343'680'000}}}}));
  EXPECT_EQ(replayed.state(), "waiting");
  EXPECT_EQ(replayed.judged().history.notes->wait_until, WallTime{1'795'343'680'000ms});
  replayed.post(bus("session.status", {{"status", {{"type", "busy"}}}}));
  EXPECT_EQ(replayed.state(), "starting");
  replayed.post(bus("session.status", {{"status", {{"type", "retry"}, {"message", "no"}}}}));
  replayed.post(bus("session.status", {{"status", {{"type", "idle"}}}}));
  EXPECT_EQ(replayed.state(), "your_turn") << "it gave up";
}

TEST(HooksReplay, opencode_errors_show_what_the_agent_waits_for) {
  const std::tuple<json, const char*, const char*> rows[] = {
      {{{"name", "ProviderAuthError"}, {"data", {{"message", "no key"}}}}, "needs_input", "login"},
      {{{"name", "APIError"}, {"data", {{"message", "Unauthorized"}, {"statusCode", 401}}}},
       "needs_input",
       "login"},
      {{{"name", "APIError"}, {"data", {{"message", "slow down"}, {"statusCode", 429}}}},
       "waiting",
       "quota"},
      {{{"name", "UnknownError"}, {"data", {{"message", "refused"}}}}, "needs_input", "input"},
      {{{"name", "MessageAbortedError"}, {"data", {{"message", "Aborted"}}}}, "your_turn", ""},
  };
  for (const auto& [error, state, waits_for] : rows) {
    Replayed replayed(HookAgent::opencode);
    replayed.post(bus("chat.message", {{"text", "go"}}));
    replayed.post(bus("session.error", {{"error", error}}));
    EXPECT_EQ(replayed.state(), state) << error;
    replayed.post(bus("session.idle", json::object()));
    EXPECT_EQ(replayed.state(), state) << error;
    if (*waits_for != 0) {
      EXPECT_EQ(replayed.judged().history.notes->waiting_for, waits_for);
    }
  }
}

TEST(HooksReplay, a_rejected_permission_ends_the_wait_and_the_call) {
  Replayed replayed(HookAgent::opencode);
  replayed.post(bus("chat.message", {{"text", "go"}}));
  replayed.post(bus("tool.execute.before", {{"tool", "bash"}, {"callID", "c1"}, {"args", {}}}));
  replayed.post(bus("permission.asked", {{"id", "p1"}, {"permission", "bash"}}));
  EXPECT_EQ(replayed.state(), "needs_input");
  replayed.post(bus("permission.replied", {{"requestID", "p1"}, {"reply", "reject"}}));
  EXPECT_EQ(replayed.state(), "starting");
  const json part{{"type", "tool"},
                  {"tool", "bash"},
                  {"callID", "c1"},
                  {"state", {{"status", "error"}, {"error", "rejected"}}}};
  replayed.post(bus("message.part.updated", {{"part", part}}));
  EXPECT_TRUE(replayed.judged().history.open_calls->empty());
}

/// In opencode several calls of one answer may ask at the same time.
TEST(HooksReplay, an_answer_ends_only_the_wait_for_its_own_question) {
  const auto ask = [](const std::string& id, const std::string& call) {
    return bus("permission.asked", {{"id", id}, {"permission", id}, {"tool", {{"callID", call}}}});
  };
  const auto reply = [](const std::string& id) {
    return bus("permission.replied", {{"requestID", id}, {"reply", "once"}});
  };
  for (const bool newest_first : {true, false}) {
    Replayed replayed(HookAgent::opencode);
    replayed.post(bus("chat.message", {{"text", "go"}}));
    for (const auto* call : {"c1", "c2", "c3"})
      replayed.post(
          bus("tool.execute.before", {{"tool", "bash"}, {"callID", call}, {"args", call}}));
    for (const auto* n : {"1", "2", "3"})
      replayed.post(ask(std::string("p") + n, std::string("c") + n));
    replayed.post(ask("p3", "c3"));
    const auto why = [&] { return replayed.judged().history.notes->wait_why; };
    EXPECT_EQ(why(), "p3");
    replayed.post(reply("p9"));
    EXPECT_EQ(replayed.state(), "needs_input") << "nobody asked that";
    replayed.post(reply(newest_first ? "p3" : "p1"));
    EXPECT_EQ(replayed.state(), "needs_input");
    EXPECT_EQ(why(), newest_first ? "p2" : "p3");
    // The allowed call ends meanwhile.
    replayed.post(
        bus("tool.execute.after",
            {{"tool", "bash"}, {"callID", newest_first ? "c3" : "c1"}, {"output", "ok"}}));
    EXPECT_EQ(replayed.state(), "needs_input");
    replayed.post(reply("p2"));
    EXPECT_EQ(why(), newest_first ? "p1" : "p3");
    EXPECT_EQ(replayed.state(), "needs_input");
    replayed.post(reply(newest_first ? "p1" : "p3"));
    EXPECT_NE(replayed.state(), "needs_input");
    EXPECT_TRUE(replayed.judged().history.notes->asks->empty());
  }
}

TEST(HooksReplay, gemini_compresses_only_where_the_conversation_shrank) {
  const auto request = [](const std::string& first) {
    return claude("BeforeModel",
                  {{"llm_request", {{"messages", {{{"role", "user"}, {"content", first}}}}}}});
  };
  const auto compactions = [](const HookEvent& event) { return event.reports.size(); };
  EXPECT_EQ(compactions(*hook_event(HookAgent::gemini_cli, claude("PreCompress").dump())), 0U);
  EXPECT_EQ(compactions(*hook_event(HookAgent::gemini_cli, request("hello").dump())), 0U);
  const auto short_one = request("<state_snapshot><overall_goal>x</overall_goal>").dump();
  const auto event = hook_event(HookAgent::gemini_cli, short_one);
  ASSERT_EQ(compactions(*event), 1U);
  EXPECT_EQ(event->reports.front().kind, ReportKind::compaction);
  EXPECT_EQ(event->reports.front().event_id,
            hook_event(HookAgent::gemini_cli, short_one)->reports.front().event_id)
      << "the next request shows the same one";
}

/// Thirty different calls with different results, and what agents' hooks report between them.
TEST(HooksReplay, thirty_different_calls_are_never_suspect) {
  for (const auto agent : {HookAgent::claude_code, HookAgent::codex, HookAgent::gemini_cli}) {
    const bool gemini = agent == HookAgent::gemini_cli;
    Replayed replayed(agent);
    replayed.post(claude("SessionStart", {{"source", "startup"}}));
    replayed.post(claude(gemini ? "BeforeAgent" : "UserPromptSubmit", {{"prompt", "go"}}));
    for (int call = 0; call < 30; ++call) {
      const auto n = std::to_string(call);
      const std::string tool = call % 3 == 0 ? "read_file" : call % 3 == 1 ? "grep" : "shell";
      if (gemini) replayed.post(claude("PreCompress", {{"trigger", "auto"}}));
      for (int times = 0; times < 5; ++times) replayed.post(claude("SomethingOfNextYear"));
      replayed.post(claude(gemini ? "BeforeTool" : "PreToolUse",
                           {{"tool_name", tool}, {"tool_input", {{"path", "src/" + n}}}}));
      replayed.post(claude(gemini ? "AfterTool" : "PostToolUse",
                           {{"tool_name", tool}, {"tool_response", "what is in file " + n}}));
      ASSERT_EQ(replayed.state(), "progressing") << name_of(agent) << call;
    }
  }
  Replayed replayed(HookAgent::opencode);
  replayed.post(bus("session.created", {{"info", {{"id", "s"}}}}));
  replayed.post(bus("chat.message", {{"text", "go"}}));
  for (int call = 0; call < 30; ++call) {
    const auto n = std::to_string(call);
    const json what{{"tool", "read"}, {"callID", "c" + n}, {"args", {{"path", n}}}};
    auto done = what;
    done["output"] = "what is in file " + n;
    replayed.post(bus("session.status", {{"status", {{"type", "busy"}}}}));
    replayed.post(bus("tool.execute.before", what));
    for (const auto* noise : {"session.updated", "session.diff", "message.updated", "lsp.updated",
                              "message.part.delta", "todo.updated"})
      replayed.post(bus(noise, json::object()));
    replayed.post(bus("tool.execute.after", done));
    ASSERT_EQ(replayed.state(), "progressing") << call;
  }
}

/// One fault that users reported of another dashboard: what happened, and what is right after it.
struct PeerFault {
  const char* name;
  HookAgent agent;
  std::vector<json> events;
  const char* state;
  std::size_t open_calls;
};

std::vector<PeerFault> faults_with_claude_code() {
  constexpr auto claude_code = HookAgent::claude_code;
  const auto prompt = claude("UserPromptSubmit", {{"prompt", "go"}});
  const auto stop = claude("Stop", {{"last_assistant_message", "Done."}});
  const json bash{
      {"tool_name", "Bash"}, {"tool_use_id", "a"}, {"tool_input", {{"command", "make"}}}};
  const auto call = claude("PreToolUse", bash);
  const auto reminder = claude("Notification", {{"notification_type", "idle_prompt"},
                                                {"message", "Claude is waiting for your input"}});
  const auto permission = claude("Notification", {{"notification_type", "permission_prompt"},
                                                  {"message", "Claude needs your permission"}});
  const auto question = [](const char* tool) {
    return claude("PreToolUse",
                  {{"tool_name", tool},
                   {"tool_use_id", "q"},
                   {"tool_input", {{"questions", {{{"question", "Which database?"}}}}}}});
  };
  const auto answer = [](const char* tool) {
    return claude("PostToolUse", {{"tool_name", tool}, {"tool_use_id", "q"}});
  };
  const auto subagent = [](const char* event) {
    return claude(event, {{"agent_id", "k"}, {"agent_type", "Explore"}});
  };
  return {
      {"a finished turn shown as working",
       claude_code,
       {prompt, call, claude("PostToolUse", bash), stop},
       "your_turn",
       0},
      {"idle_prompt taken for a permission", claude_code, {prompt, stop, reminder}, "your_turn", 0},
      {"permission_prompt taken for idleness",
       claude_code,
       {prompt, call, permission},
       "needs_input",
       1},
      {"a stop while subagents run",
       claude_code,
       {prompt, subagent("SubagentStart"), stop},
       "waiting",
       0},
      {"the last subagent ends after the stop",
       claude_code,
       {prompt, subagent("SubagentStart"), stop, subagent("SubagentStop")},
       "your_turn",
       0},
      {"AskUserQuestion shown as work",
       claude_code,
       {prompt, question("AskUserQuestion")},
       "needs_input",
       1},
      {"ExitPlanMode shown as work",
       claude_code,
       {prompt, question("ExitPlanMode")},
       "needs_input",
       1},
      {"an answered question",
       claude_code,
       {prompt, question("AskUserQuestion"), answer("AskUserQuestion")},
       "progressing",
       0},
      {"authentication_failed leaves calls open",
       claude_code,
       {prompt, call, claude("StopFailure", {{"error_type", "authentication_failed"}})},
       "needs_input",
       0},
  };
}

std::vector<PeerFault> faults_with_other_agents() {
  const auto go = bus("chat.message", {{"text", "go"}});
  const auto shell =
      bus("tool.execute.before", {{"tool", "bash"}, {"callID", "c1"}, {"args", json::object()}});
  const auto asked = bus("permission.asked", {{"id", "p1"}, {"permission", "bash"}});
  const auto once = bus("permission.replied", {{"requestID", "p1"}, {"reply", "once"}});
  const auto broken = bus("session.error", {{"error", {{"name", "UnknownError"}}}});
  const auto prompt = claude("UserPromptSubmit", {{"prompt", "go"}});
  const auto call = claude("PreToolUse", {{"tool_name", "Bash"}, {"tool_use_id", "a"}});
  return {
      {"an answered wait that stays until the tool ends",
       HookAgent::opencode,
       {go, shell, asked, once},
       "starting",
       1},
      {"session.error leaves calls open",
       HookAgent::opencode,
       {go, shell, broken},
       "needs_input",
       0},
      {"Interrupt leaves calls open",
       HookAgent::codex,
       {prompt, call, claude("Interrupt")},
       "your_turn",
       0},
  };
}

TEST(HooksReplay, faults_of_other_dashboards_are_not_ours) {
  auto faults = faults_with_claude_code();
  for (auto& fault : faults_with_other_agents()) faults.push_back(std::move(fault));
  for (const auto& fault : faults) {
    Replayed replayed(fault.agent);
    for (const auto& event : fault.events) replayed.post(event);
    EXPECT_EQ(replayed.state(), fault.state) << fault.name;
    EXPECT_EQ(replayed.judged().history.open_calls->size(), fault.open_calls) << fault.name;
  }
}

}  // namespace
}  // namespace watchdog::monitor
