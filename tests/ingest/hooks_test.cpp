#include <filesystem>
#include <fstream>
#include <set>

#include "codec/json.h"
#include "facts/ids.h"
#include "ingest/hook_answer.h"
#include "ingest/long_texts.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// The events that an agent sent, each line with its meaning.
std::vector<json> recorded(HookAgent agent) {
  const auto path = std::filesystem::path(PROJECT_ROOT) / "tests/data/hooks" /
                    (std::string(name_of(agent)) + ".jsonl");
  std::ifstream file(path);
  std::vector<json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  EXPECT_FALSE(lines.empty()) << path;
  return lines;
}

json shown(const Report& report) {
  Event event;
  event.report = report;
  return json::parse(to_json(event));
}

TEST(Hooks, recorded_events_mean_what_stands_beside_them) {
  for (std::size_t at = 0; at < std::size(Names<HookAgent>::all); ++at) {
    const auto agent = static_cast<HookAgent>(at);
    for (const auto& line : recorded(agent)) {
      const auto text = line["hook"].dump();
      const auto event = hook_event(agent, text);
      ASSERT_TRUE(event.ok()) << text;
      EXPECT_EQ(event->session, line["session"].get<std::string>()) << text;
      ASSERT_EQ(event->reports.size(), line["reports"].size()) << text;
      for (std::size_t n = 0; n < event->reports.size(); ++n) {
        auto got = shown(event->reports[n]);
        for (const auto& [name, value] : line["reports"][n].items())
          EXPECT_EQ(got[name], value) << text;
        EXPECT_TRUE(report_from_json(got.dump()).ok()) << got;
      }
    }
  }
}

TEST(Hooks, any_text_may_be_long_in_characters_of_any_size) {
  for (std::size_t at = 0; at < std::size(Names<HookAgent>::all); ++at) {
    const auto agent = static_cast<HookAgent>(at);
    for (const auto& line : recorded(agent)) {
      test::for_each_long_text(line["hook"], [&](const json& hook) {
        const auto event = hook_event(agent, hook.dump());
        if (!event) return;
        for (const auto& report : event->reports)
          EXPECT_TRUE(report_from_json(shown(report).dump()).ok()) << hook;
      });
    }
  }
}

TEST(Hooks, an_error_that_says_nothing_is_none) {
  const std::pair<const char*, bool> answers[] = {{R"({"error":"","stdout":"built"})", false},
                                                  {R"({"error":false,"stdout":"built"})", false},
                                                  {R"({"error":null,"stdout":"built"})", false},
                                                  {R"({"error":{},"stdout":"built"})", false},
                                                  {R"({"error":[],"stdout":"built"})", false},
                                                  {R"({"result_type":"","stdout":"built"})", false},
                                                  {R"({"error":"no such file"})", true},
                                                  {R"({"error":true})", true},
                                                  {R"({"error":{"code":2}})", true},
                                                  {R"({"result_type":"failure"})", true}};
  for (const auto& [answer, failed] : answers) {
    json hook{{"session_id", "s"},
              {"hook_event_name", "PostToolUse"},
              {"tool_name", "Bash"},
              {"tool_use_id", "1"}};
    hook["tool_response"] = json::parse(answer);
    const auto event = hook_event(HookAgent::claude_code, hook.dump());
    ASSERT_TRUE(event) << answer;
    ASSERT_EQ(event->reports.size(), 1U) << answer;
    EXPECT_EQ(event->reports[0].kind, failed ? ReportKind::error : ReportKind::tool_result)
        << answer;
    const bool has_text = event->reports[0].content.find("built") != std::string::npos;
    EXPECT_EQ(has_text, !failed) << answer;
  }
}

TEST(Hooks, a_session_is_described_by_what_its_agent_says) {
  const auto line = recorded(HookAgent::codex).front();
  const auto event = hook_event(HookAgent::codex, line["hook"].dump());
  EXPECT_EQ(event->spec.agent, "codex");
  EXPECT_EQ(event->spec.labels.at("cwd"), "/src/app");
  EXPECT_EQ(event->spec.labels.at("model"), "gpt-5.2-codex");
}

TEST(Hooks, a_session_of_opencode_has_the_folder_that_it_or_its_plugin_says) {
  const auto folder = [](const json& event) {
    const auto read = hook_event(HookAgent::opencode, event.dump());
    return read ? read->spec.labels.at("cwd") : std::string();
  };
  const json begins = {{"type", "session.created"},
                       {"properties", {{"info", {{"id", "s"}, {"directory", "/srv/shop"}}}}}};
  EXPECT_EQ(folder(begins), "/srv/shop");
  const json asks = {{"type", "permission.asked"},
                     {"properties", {{"sessionID", "s"}, {"id", "p"}}},
                     {"cwd", "/srv/shop"}};
  EXPECT_EQ(folder(asks), "/srv/shop");
}

TEST(Hooks, a_subagent_is_a_child_session_of_its_kind) {
  const auto event = hook_event(
      HookAgent::claude_code,
      R"({"session_id":"s","hook_event_name":"Stop","agent_id":"a1","agent_type":"Explore"})");
  EXPECT_EQ(event->session, "s:a1");
  EXPECT_EQ(event->spec.parent, "s");
  EXPECT_EQ(event->spec.agent, "Explore");
}

TEST(Hooks, a_teammate_that_rests_is_named_and_its_lead_goes_on) {
  json hook{{"session_id", "s"}, {"hook_event_name", "TeammateIdle"}};
  hook["teammate_name"] = "researcher";
  const auto of_lead = hook_event(HookAgent::claude_code, hook.dump());
  ASSERT_TRUE(of_lead.ok());
  EXPECT_EQ(of_lead->session, "s");
  EXPECT_EQ(of_lead->reports.at(0).kind, ReportKind::message) << "nothing says that the lead rests";
  EXPECT_EQ(of_lead->reports.at(0).content, "TeammateIdle: researcher");
  hook["agent_id"] = "a1";
  const auto of_teammate = hook_event(HookAgent::claude_code, hook.dump());
  ASSERT_TRUE(of_teammate.ok());
  EXPECT_EQ(of_teammate->session, "s:a1");
  EXPECT_EQ(of_teammate->reports.at(0).kind, ReportKind::idle);
}

TEST(Hooks, a_wait_names_the_call_that_it_is_for) {
  struct Row {
    HookAgent agent;
    const char* event;
    const char* call;  // its id
    const char* asks;  // the tool of a call without one; empty: none
  };
  const Row rows[] = {
      {HookAgent::claude_code,
       R"({"session_id":"s","hook_event_name":"PermissionRequest","tool_name":"Bash",)"
       R"("tool_input":{"command":"ls"}})",
       "", "Bash"},
      {HookAgent::claude_code,
       R"({"session_id":"s","hook_event_name":"PermissionRequest","tool_name":"Bash",)"
       R"("tool_input":{"command":"ls"},"tool_use_id":"t1"})",
       "t1", ""},
      {HookAgent::claude_code,
       R"({"session_id":"s","hook_event_name":"PreToolUse","tool_name":"AskUserQuestion",)"
       R"("tool_input":{"questions":[{"question":"Why?"}]},"tool_use_id":"t2"})",
       "t2", ""},
      {HookAgent::claude_code,
       R"({"session_id":"s","hook_event_name":"Notification",)"
       R"("notification_type":"permission_prompt"})",
       "", ""},
      {HookAgent::opencode,
       R"({"type":"permission.asked","properties":{"sessionID":"s","permission":"bash",)"
       R"("tool":{"messageID":"m","callID":"call_3"}}})",
       "call_3", ""},
  };
  for (const auto& row : rows) {
    const auto event = hook_event(row.agent, row.event);
    ASSERT_TRUE(event.ok()) << row.event;
    EXPECT_EQ(event->reports.back().kind, ReportKind::wait) << row.event;
    EXPECT_EQ(event->reports.back().call_id, row.call) << row.event;
    EXPECT_EQ(event->asks_for ? event->asks_for->name : "", row.asks) << row.event;
  }
}

TEST(Hooks, an_event_reported_for_another_session_neither_begins_nor_ends_it) {
  for (const auto* name : {"SessionStart", "SessionEnd"}) {
    const auto body =
        json{{"session_id", "own"}, {"hook_event_name", name}, {"source", "startup"}}.dump();
    const auto event = hook_event(HookAgent::claude_code, body, "wrapped");
    EXPECT_EQ(event->session, "wrapped");
    EXPECT_EQ(event->reports.at(0).kind, ReportKind::message);
  }
}

TEST(Hooks, event_ids_within_a_session_differ) {
  for (std::size_t at = 0; at < std::size(Names<HookAgent>::all); ++at) {
    const auto agent = static_cast<HookAgent>(at);
    std::set<std::string> seen;
    for (const auto& line : recorded(agent)) {
      const auto read = hook_event(agent, line["hook"].dump());
      ASSERT_TRUE(read.ok());
      for (const auto& report : read->reports) {
        if (report.event_id.empty()) continue;
        EXPECT_TRUE(seen.insert(report.event_id).second) << report.event_id;
      }
    }
    EXPECT_FALSE(seen.empty());
  }
}

TEST(Hooks, an_invalid_event_is_refused) {
  for (const auto* body : {"", "{", "[]", "5", "{}", R"({"hook_event_name":"Stop"})",
                           R"({"session_id":"s"})", R"({"type":"","session_id":"s"})"}) {
    const auto event = hook_event(HookAgent::claude_code, body);
    ASSERT_FALSE(event.ok()) << body;
    EXPECT_EQ(event.error().code, ErrorCode::malformed) << body;
  }
  EXPECT_FALSE(hook_event(HookAgent::codex, "{\"type\":\"\xff\"}").ok());
  EXPECT_FALSE(hook_event(HookAgent::codex, std::string(100, '[') + std::string(100, ']')).ok());
}

TEST(Hooks, no_value_of_any_member_breaks_them) {
  const std::vector<json> values{nullptr,
                                 5,
                                 true,
                                 "",
                                 "x y/\n",
                                 std::string(300, 'x'),
                                 json::array({1}),
                                 json{{"error", json{{"a", 1}}}}};
  for (std::size_t at = 0; at < std::size(Names<HookAgent>::all); ++at) {
    const auto agent = static_cast<HookAgent>(at);
    for (const auto& line : recorded(agent)) {
      for (const auto& [name, ignored] : line["hook"].items()) {
        for (const auto& value : values) {
          auto hook = line["hook"];
          hook[name] = value;
          const auto event = hook_event(agent, hook.dump());
          if (!event) continue;
          if (!event->reports.empty()) {
            EXPECT_TRUE(is_session_id(event->session)) << event->session;
          }
          EXPECT_TRUE(check(event->spec).ok()) << name;
          for (const auto& report : event->reports) {
            EXPECT_LE(report.name.size(), 256U);
          }
        }
      }
    }
  }
}

const CancelRequest by_ann{.by = "ann", .reason = "enough"};

json answered(HookAgent agent, std::string_view event) {
  return json::parse(hook_answer(agent, event, by_ann).body);
}

TEST(HookAnswers, nothing_is_said_while_nobody_cancels) {
  for (const auto agent : {HookAgent::claude_code, HookAgent::codex, HookAgent::gemini_cli})
    for (const auto* event : {"PreToolUse", "BeforeTool", "Stop", "UserPromptSubmit"})
      EXPECT_EQ(hook_answer(agent, event, std::nullopt).body, "{}");
}

TEST(HookAnswers, each_agent_is_asked_to_stop_in_the_form_that_it_obeys) {
  const std::string sentence = "cancelled by ann: enough";
  const std::string advice = sentence + ". Every further call of this session is denied: stop.";
  const json stops{{"continue", false}, {"stopReason", sentence}};
  const json denied{{"hookEventName", "PreToolUse"},
                    {"permissionDecision", "deny"},
                    {"permissionDecisionReason", advice}};
  const json refused{{"hookEventName", "PermissionRequest"},
                     {"decision", {{"behavior", "deny"}, {"message", advice}}}};
  // Codex takes an answer for invalid, and goes on, if it holds anything else at these two.
  EXPECT_EQ(answered(HookAgent::codex, "PreToolUse"), (json{{"hookSpecificOutput", denied}}));
  EXPECT_EQ(answered(HookAgent::codex, "PermissionRequest"),
            (json{{"hookSpecificOutput", refused}}));
  for (const auto* event : {"UserPromptSubmit", "PostToolUse", "Stop"})
    EXPECT_EQ(answered(HookAgent::codex, event), stops) << event;
  for (const auto* event : {"SessionStart", "SessionEnd", "Interrupt", "PreCompact"})
    EXPECT_EQ(answered(HookAgent::codex, event), json::object()) << event;

  auto both = stops;
  both["hookSpecificOutput"] = denied;
  EXPECT_EQ(answered(HookAgent::claude_code, "PreToolUse"), both);
  both["hookSpecificOutput"] = refused;
  EXPECT_EQ(answered(HookAgent::claude_code, "PermissionRequest"), both);
  auto blocked = stops;
  blocked["decision"] = "block";
  blocked["reason"] = sentence;
  EXPECT_EQ(answered(HookAgent::claude_code, "UserPromptSubmit"), blocked);
  EXPECT_EQ(answered(HookAgent::claude_code, "Stop"), stops);

  for (const auto* event : {"BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent"})
    EXPECT_EQ(answered(HookAgent::gemini_cli, event), stops) << event;
  EXPECT_EQ(answered(HookAgent::cursor, "beforeSubmitPrompt"), stops);
  const json forbidden{
      {"permission", "deny"}, {"user_message", sentence}, {"agent_message", advice}};
  for (const auto* event : {"preToolUse", "beforeShellExecution", "beforeMCPExecution"})
    EXPECT_EQ(answered(HookAgent::cursor, event), forbidden) << event;
  EXPECT_EQ(answered(HookAgent::cursor, "postToolUse"), json::object());
  // Its plugin aborts the session, whatever it reported.
  for (const auto* event : {"tool.execute.before", "chat.message", "message.part.updated"})
    EXPECT_EQ(answered(HookAgent::opencode, event), stops) << event;
}

/// The reports that follow the answer, each as `KIND` or `KIND OUTCOME by SUBJECT`.
std::vector<std::string> after(HookAgent agent, const json& hook) {
  const auto event = hook_event(agent, hook.dump());
  EXPECT_TRUE(event.ok()) << hook;
  std::vector<std::string> kinds;
  const auto answer = hook_answer(agent, event->name, by_ann);
  for (const auto& report : reports_after(answer, *event, by_ann)) {
    kinds.emplace_back(name_of(report.kind));
    if (const auto* outcome = std::get_if<Outcome>(&report.detail))
      kinds.back() += " " + std::string(name_of(outcome->kind)) + " by " + outcome->subject;
  }
  return kinds;
}

TEST(HookAnswers, a_denied_call_is_over_and_an_agent_that_stopped_is_cancelled) {
  using Kinds = std::vector<std::string>;
  const auto event = [](const char* name) {
    return json{{"session_id", "s"},
                {"hook_event_name", name},
                {"tool_name", "Bash"},
                {"tool_use_id", "t1"}};
  };
  const std::string end = "end cancelled by ann";
  // Codex's model reads the denial, and the turn goes on until it stops.
  EXPECT_EQ(after(HookAgent::codex, event("PreToolUse")), Kinds{"error"});
  EXPECT_EQ(after(HookAgent::codex, event("Stop")), Kinds{end});
  EXPECT_EQ(after(HookAgent::codex, event("UserPromptSubmit")), Kinds{end});
  EXPECT_EQ(after(HookAgent::codex, event("SessionStart")), Kinds{});
  EXPECT_EQ(after(HookAgent::claude_code, event("PreToolUse")), (Kinds{"error", end}));
  EXPECT_EQ(after(HookAgent::gemini_cli, event("BeforeTool")), (Kinds{"error", end}));
  EXPECT_EQ(after(HookAgent::gemini_cli, event("AfterTool")), Kinds{end});
  // opencode is over once it says that it is.
  const json before{{"type", "tool.execute.before"},
                    {"properties", {{"sessionID", "s"}, {"tool", "bash"}, {"callID", "c"}}}};
  EXPECT_EQ(after(HookAgent::opencode, before), Kinds{"error"});
  EXPECT_EQ(
      after(HookAgent::opencode, {{"type", "session.idle"}, {"properties", {{"sessionID", "s"}}}}),
      Kinds{end});
}

TEST(Hooks, a_command_has_the_limit_that_its_call_declares) {
  const auto limit_ms = [](HookAgent agent, const char* tool, const json& input) {
    json event{{"session_id", "s"}, {"hook_event_name", "PreToolUse"}};
    event.update({{"tool_name", tool}, {"tool_use_id", "t1"}, {"tool_input", input}});
    if (agent == HookAgent::opencode)
      event = {{"type", "tool.execute.before"},
               {"properties", {{"sessionID", "s"}, {"tool", tool}, {"callID", "c"}}}};
    if (agent == HookAgent::opencode) event["properties"]["args"] = input;
    const auto read = hook_event(agent, event.dump());
    return read && read->reports.at(0).deadline ? read->reports[0].deadline->count() : 0;
  };
  const json limited{{"command", "make"}, {"timeout", 300'000}};
  EXPECT_EQ(limit_ms(HookAgent::claude_code, "Bash", limited), 300'000);
  EXPECT_EQ(limit_ms(HookAgent::opencode, "bash", limited), 300'000);
  EXPECT_EQ(limit_ms(HookAgent::copilot_cli, "bash", limited), 0) << "it counts seconds";
  EXPECT_EQ(limit_ms(HookAgent::claude_code, "TaskOutput", limited), 0) << "a wait, no command";
  EXPECT_EQ(limit_ms(HookAgent::claude_code, "Bash", {{"command", "make"}}), 0);
  const json apart{{"command", "make"}, {"timeout", 300'000}, {"run_in_background", true}};
  EXPECT_EQ(limit_ms(HookAgent::claude_code, "Bash", apart), 0);
  for (const json& odd : {json(0), json(-1), json(1e5), json("300000"), json(UINT64_MAX), json()})
    EXPECT_EQ(limit_ms(HookAgent::claude_code, "Bash", {{"command", "make"}, {"timeout", odd}}), 0)
        << odd;
  EXPECT_EQ(limit_ms(HookAgent::claude_code, "Bash", "make"), 0);
}

TEST(Hooks, an_answer_that_is_too_long_for_an_event_is_cut) {
  const json hook{{"session_id", "s"},
                  {"hook_event_name", "PostToolUse"},
                  {"tool_name", "Read"},
                  {"tool_response", std::string(3'000'000, 'x')}};
  const auto event = hook_event(HookAgent::claude_code, hook.dump());
  ASSERT_TRUE(event.ok());
  EXPECT_LE(event->reports.at(0).content.size(), event_bytes_max);
  EXPECT_EQ(event->reports.at(0).kind, ReportKind::tool_result);
}

}  // namespace
}  // namespace watchdog::monitor
