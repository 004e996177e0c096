#include "ingest/hooks.h"

#include <filesystem>
#include <fstream>
#include <set>

#include "watchdog/ids.h"
#include "watchdog/json.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// What agents sent, each line with what it means.
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
      EXPECT_EQ(event->session, line["session"]) << text;
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

TEST(Hooks, a_session_is_described_by_what_its_agent_says) {
  const auto line = recorded(HookAgent::codex).front();
  const auto event = hook_event(HookAgent::codex, line["hook"].dump());
  EXPECT_EQ(event->spec.agent, "codex");
  EXPECT_EQ(event->spec.labels.at("cwd"), "/src/app");
  EXPECT_EQ(event->spec.labels.at("model"), "gpt-5.2-codex");
}

TEST(Hooks, a_subagent_is_a_child_session_of_its_kind) {
  const auto event = hook_event(
      HookAgent::claude_code,
      R"({"session_id":"s","hook_event_name":"Stop","agent_id":"a1","agent_type":"Explore"})");
  EXPECT_EQ(event->session, "s:a1");
  EXPECT_EQ(event->spec.parent, "s");
  EXPECT_EQ(event->spec.agent, "Explore");
}

TEST(Hooks, an_event_told_of_another_session_neither_begins_nor_ends_it) {
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
      for (const auto& report : hook_event(agent, line["hook"].dump())->reports) {
        if (report.event_id.empty()) continue;
        EXPECT_TRUE(seen.insert(report.event_id).second) << report.event_id;
      }
    }
    EXPECT_FALSE(seen.empty());
  }
}

TEST(Hooks, what_is_no_event_is_refused) {
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
          EXPECT_TRUE(is_session_id(event->session)) << event->session;
          EXPECT_TRUE(check(event->spec).ok()) << name;
          for (const auto& report : event->reports) {
            EXPECT_LE(report.name.size(), 256U);
          }
        }
      }
    }
  }
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
