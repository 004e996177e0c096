// Chats of Gemini CLI and the database of opencode, as the programs wrote them, and how they grow.
// Each read() is a process that starts, reads what is there, and ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "follow/follow_home.h"
#include "follow/transcript_root.h"
#include "ingest/hooks.h"
#include "store/sqlite.h"
#include "support/scenario.h"

namespace watchdog::monitor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test_follow::append;
using test_follow::FollowHome;
using test_follow::replace;

constexpr const char* gemini_session = "e397ffbe-b8d3-4c1b-a504-1d5097f4fbb8";
constexpr const char* opencode_session = "ses_dd53b2533ffe3N6XZMI7KrJwmY";

std::vector<std::string> recorded_lines(const std::string& file) {
  std::ifstream stream(fs::path(PROJECT_ROOT) / "tests/data/transcripts" / file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  EXPECT_FALSE(lines.empty()) << file;
  return lines;
}

/// The lines of the files have the times of their recording.
TranscriptFollower::Options of_any_age(FollowHome& home) {
  auto options = home.options();
  options.since = Millis{std::int64_t{100} * 365 * 86'400'000};
  return options;
}

std::vector<std::string> names_in(const FollowHome& home, const std::string& session) {
  std::vector<std::string> names;
  for (const auto& event : home.events(session))
    names.push_back(std::string(name_of(event.report.kind)) + " " + event.report.event_id);
  std::ranges::sort(names);
  return names;
}

BudgetFigures used_in(const FollowHome& home, const std::string& session) {
  BudgetFigures used;
  for (const auto& event : home.events(session))
    if (const auto* figures = std::get_if<BudgetFigures>(&event.report.detail)) used = *figures;
  return used;
}

SessionSpec spec_in(const FollowHome& home, const std::string& session) {
  auto reader = StoreReader::open(home.dir() / "w.db");
  const auto row = reader->session(session);
  return row ? row->spec : SessionSpec{};
}

// Gemini CLI

fs::path chat_in(const FollowHome& home, const std::string& name) {
  return home.root() / "project" / "chats" / name;
}

void expect_gemini_run(const FollowHome& home) {
  auto kinds = home.kinds(gemini_session);
  EXPECT_EQ(kinds["user_input"], 1);
  EXPECT_EQ(kinds["tool_call"], 3);
  EXPECT_EQ(kinds["tool_result"] + kinds["error"], 3);
  EXPECT_EQ(kinds["message"], 1);
  EXPECT_EQ(kinds["idle"], 1);
  EXPECT_EQ(used_in(home, gemini_session).tokens, 1'020 + 1'070 + 1'120 + 1'170);
  EXPECT_EQ(used_in(home, gemini_session).steps, 4);
  const auto spec = spec_in(home, gemini_session);
  EXPECT_EQ(spec.agent, "gemini-cli");
  EXPECT_EQ(spec.labels.at("cwd"), "/home/u/project");
}

TEST(FollowGemini, reads_a_chat_that_grows_at_random_cuts) {
  const auto seed = test::random_seed();
  SCOPED_TRACE("WATCHDOG_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::string text;
  for (const auto& line : recorded_lines("gemini-cli.jsonl")) text += line + "\n";
  FollowHome whole;
  whole.agent = TranscriptAgent::gemini_cli;
  append(chat_in(whole, "session-1.jsonl"), text);
  whole.read(of_any_age(whole));
  expect_gemini_run(whole);
  for (int round = 0; round < test::repetitions(5); ++round) {
    FollowHome cut;
    cut.agent = TranscriptAgent::gemini_cli;
    for (std::size_t at = 0; at < text.size();) {
      const auto length = std::min<std::size_t>(1 + random() % 900, text.size() - at);
      append(chat_in(cut, "session-1.jsonl"), std::string_view(text).substr(at, length));
      at += length;
      if (random() % 2 == 0) cut.read(of_any_age(cut));
      if (random() % 8 == 0) fs::remove(cut.dir() / "positions");  // all is read again
    }
    cut.read(of_any_age(cut));
    expect_gemini_run(cut);
    EXPECT_EQ(names_in(cut, gemini_session), names_in(whole, gemini_session));
  }
}

/// The messages of the recording in their newest form, as older versions write them.
json messages_of_recording() {
  json messages = json::array();
  for (const auto& line : recorded_lines("gemini-cli.jsonl")) {
    const auto value = json::parse(line);
    if (!value.contains("type")) continue;
    const auto found = std::ranges::find_if(
        messages, [&](const json& known) { return known["id"] == value["id"]; });
    if (found == messages.end()) {
      messages.push_back(value);
    } else {
      *found = value;
    }
  }
  return messages;
}

std::string whole_chat(const json& messages) {
  return json{{"sessionId", gemini_session},
              {"projectHash", "714aa5b6"},
              {"startTime", "2026-11-30T04:36:22.084Z"},
              {"directories", {"/home/u/project"}},
              {"messages", messages}}
      .dump(2);
}

TEST(FollowGemini, reads_a_chat_that_is_written_again_with_each_message) {
  const auto all = messages_of_recording();
  FollowHome home;
  home.agent = TranscriptAgent::gemini_cli;
  const auto chat = chat_in(home, "session-2026-11-30T04-36-e397ffbe.json");
  fs::create_directories(chat.parent_path());
  json messages = json::array();
  for (const auto& message : all) {
    // First without the outcome of its calls, then half written.
    auto early = message;
    early.erase("toolCalls");
    messages.push_back(early);
    replace(chat, whole_chat(messages));
    home.read(of_any_age(home));
    messages.back() = message;
    const auto text = whole_chat(messages);
    replace(chat, std::string_view(text).substr(0, text.size() / 2));
    EXPECT_EQ(home.read(of_any_age(home)).unreadable, 0);
    replace(chat, text);
    home.read(of_any_age(home));
  }
  expect_gemini_run(home);
  const auto kept = home.kept;
  home.read(of_any_age(home));
  EXPECT_EQ(home.kept, kept);

  // A rewound chat is shorter, and goes on with other messages.
  messages.erase(messages.size() - 1);
  replace(chat, whole_chat(messages));
  home.read(of_any_age(home));
  expect_gemini_run(home);
  messages.push_back({{"id", "another"},
                      {"type", "user"},
                      {"timestamp", "2026-11-30T04:40:00.000Z"},
                      {"content", "do it in another way"}});
  replace(chat, whole_chat(messages));
  home.read(of_any_age(home));
  EXPECT_EQ(home.kinds(gemini_session)["user_input"], 2);
  EXPECT_EQ(home.kinds(gemini_session)["tool_call"], 3);
}

TEST(FollowGemini, reads_the_same_of_lines_and_of_a_whole_chat) {
  FollowHome home;
  home.agent = TranscriptAgent::gemini_cli;
  append(chat_in(home, "session-1.json"), whole_chat(messages_of_recording()));
  home.read(of_any_age(home));
  expect_gemini_run(home);
  // A newer version goes on with the same session in lines.
  for (const auto& line : recorded_lines("gemini-cli.jsonl"))
    append(chat_in(home, "session-1.jsonl"), line + "\n");
  home.read(of_any_age(home));
  expect_gemini_run(home);
}

TEST(FollowGemini, counts_a_shortened_history_once) {
  FollowHome home;
  home.agent = TranscriptAgent::gemini_cli;
  const auto chat = chat_in(home, "session-1.jsonl");
  for (const auto& line : recorded_lines("gemini-cli.jsonl")) append(chat, line + "\n");
  home.read(of_any_age(home));
  auto history = messages_of_recording();
  const json summary = {{"id", "summary"},
                        {"type", "user"},
                        {"timestamp", "2026-11-30T04:41:00.000Z"},
                        {"content", "<state_snapshot>so far</state_snapshot>"}};
  history.insert(history.begin() + 1, summary);
  append(chat, json{{"$set", {{"messages", history}}}}.dump() + "\n");
  home.read(of_any_age(home));
  append(chat, json{{"$set", {{"messages", history}}}}.dump() + "\n");
  home.read(of_any_age(home));
  expect_gemini_run(home);
  EXPECT_EQ(home.kinds(gemini_session)["compaction"], 1);
}

TEST(FollowGemini, makes_a_subagent_a_child_and_passes_other_files_over) {
  FollowHome home;
  home.agent = TranscriptAgent::gemini_cli;
  const auto message = [](const char* id, const char* type, const char* text) {
    return json{{"id", id},
                {"type", type},
                {"timestamp", "2026-11-30T04:36:25.000Z"},
                {"content", text}}
               .dump() +
           "\n";
  };
  const auto facts = json{{"sessionId", "investigator-1"},
                          {"projectHash", "714aa5b6"},
                          {"kind", "subagent"},
                          {"directories", {"/home/u/project"}}}
                         .dump() +
                     "\n";
  append(chat_in(home, gemini_session) / "investigator-1.jsonl",
         facts + message("m1", "user", "look around") + message("m2", "gemini", "There is one."));
  append(home.root() / "project" / "logs.json", "[{\"sessionId\":\"other\"}]");
  append(chat_in(home, "notes.jsonl"), facts + message("m1", "user", "not this one"));
  home.read(of_any_age(home));
  const auto child = std::string(gemini_session) + ":investigator-1";
  EXPECT_EQ(home.kinds(child)["user_input"], 1);
  EXPECT_EQ(home.kinds(child)["idle"], 1);
  EXPECT_EQ(spec_in(home, child).parent, gemini_session);
  EXPECT_FALSE(home.exists("investigator-1"));
  EXPECT_FALSE(home.exists("other"));
}

// opencode

/// A database as opencode makes it, as far as it is read.
class CodeDatabase {
 public:
  explicit CodeDatabase(const fs::path& file) {
    fs::create_directories(file.parent_path());
    database_ = std::make_unique<Database>(file.string(), OpenMode::read_write_create);
    database_->exec(
        "PRAGMA journal_mode = WAL;"
        "CREATE TABLE IF NOT EXISTS session (id text PRIMARY KEY, time_updated integer NOT NULL);"
        "CREATE TABLE IF NOT EXISTS event_sequence (aggregate_id text PRIMARY KEY, seq integer NOT "
        "NULL, owner_id text);"
        "CREATE TABLE IF NOT EXISTS event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq "
        "integer NOT NULL, type text NOT NULL, data text NOT NULL);"
        "CREATE UNIQUE INDEX IF NOT EXISTS event_aggregate_seq_idx ON event (aggregate_id, seq)");
  }
  void add(const json& event) {
    const auto session = event["data"]["sessionID"].get<std::string>();
    auto& next = numbers_[session];
    const auto id = event["id"].get<std::string>();
    const auto type = event["type"].get<std::string>();
    const auto data = event["data"].dump();
    Transaction transaction(*database_);
    database_->prepare("INSERT OR REPLACE INTO session VALUES (?, ?)")
        .bind_all(std::string_view(session),
                  std::int64_t{system_clock().wall().time_since_epoch().count()})
        .run();
    database_->prepare("INSERT INTO event VALUES (?, ?, ?, ?, ?)")
        .bind_all(std::string_view(id), std::string_view(session), std::int64_t{next},
                  std::string_view(type), std::string_view(data))
        .run();
    database_->prepare("INSERT OR REPLACE INTO event_sequence VALUES (?, ?, NULL)")
        .bind_all(std::string_view(session), std::int64_t{next})
        .run();
    transaction.commit();
    ++next;
  }

 private:
  std::unique_ptr<Database> database_;
  std::map<std::string, std::int64_t> numbers_;
};

std::vector<json> recorded_events() {
  std::vector<json> events;
  for (const auto& line : recorded_lines("opencode.jsonl")) events.push_back(json::parse(line));
  return events;
}

void expect_opencode_run(const FollowHome& home) {
  auto kinds = home.kinds(opencode_session);
  EXPECT_EQ(kinds["user_input"], 1);
  EXPECT_EQ(kinds["tool_call"], 3);
  EXPECT_EQ(kinds["tool_result"], 2);
  EXPECT_EQ(kinds["error"], 1);
  EXPECT_EQ(kinds["message"], 1);
  EXPECT_EQ(kinds["idle"], 1);
  EXPECT_EQ(used_in(home, opencode_session).tokens, 1'020 + 1'070 + 1'120 + 1'170);
  EXPECT_EQ(used_in(home, opencode_session).steps, 4);
  const auto spec = spec_in(home, opencode_session);
  EXPECT_EQ(spec.agent, "opencode");
  EXPECT_EQ(spec.labels.at("cwd"), "/home/u/project");
  EXPECT_EQ(spec.labels.at("model"), "scripted");
}

TEST(FollowOpencode, reads_a_database_that_grows_and_repeats_nothing) {
  const auto seed = test::random_seed();
  SCOPED_TRACE("WATCHDOG_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto all = recorded_events();
  FollowHome home;
  home.agent = TranscriptAgent::opencode;
  CodeDatabase database(home.root() / "opencode.db");
  for (const auto& event : all) {
    database.add(event);
    if (random() % 4 == 0) home.read(of_any_age(home));
    if (random() % 16 == 0) fs::remove(home.dir() / "positions");  // all is read again
  }
  home.read(of_any_age(home));
  expect_opencode_run(home);
  const auto kept = home.kept;
  EXPECT_EQ(home.read(of_any_age(home)).lines, 0);
  EXPECT_EQ(home.kept, kept);
}

TEST(FollowOpencode, shows_a_call_while_it_runs) {
  FollowHome home;
  home.agent = TranscriptAgent::opencode;
  CodeDatabase database(home.root() / "opencode.db");
  for (const auto& event : recorded_events()) {
    database.add(event);
    if (event["data"].contains("part") && event["data"]["part"]["type"] == "tool" &&
        event["data"]["part"]["state"]["status"] == "running")
      break;
  }
  home.read(of_any_age(home));
  EXPECT_EQ(home.kinds(opencode_session)["tool_call"], 1);
  EXPECT_EQ(home.kinds(opencode_session)["tool_result"], 0);
}

TEST(FollowOpencode, reads_a_database_that_nobody_has_open_without_a_trace) {
  FollowHome home;
  home.agent = TranscriptAgent::opencode;
  {
    CodeDatabase database(home.root() / "opencode.db");
    for (const auto& event : recorded_events()) database.add(event);
  }
  ASSERT_FALSE(fs::exists(home.root() / "opencode.db-wal"));
  home.read(of_any_age(home));
  expect_opencode_run(home);
  EXPECT_FALSE(fs::exists(home.root() / "opencode.db-wal"));
  EXPECT_FALSE(fs::exists(home.root() / "opencode.db-shm"));
}

TEST(FollowOpencode, reads_another_database_of_the_same_name_from_its_beginning) {
  auto events = recorded_events();
  FollowHome home;
  home.agent = TranscriptAgent::opencode;
  const auto file = home.root() / "opencode.db";
  {
    CodeDatabase database(file);
    for (const auto& event : events) database.add(event);
  }
  home.read(of_any_age(home));
  fs::remove(file);
  {
    CodeDatabase database(file);
    for (auto event : events) {
      event["id"] = event["id"].get<std::string>() + "x";
      if (event["data"].contains("part")) event["data"]["part"]["callID"] = "other";
      database.add(event);
      if (event["data"].contains("part") && event["data"]["part"]["type"] == "tool") break;
    }
  }
  home.read(of_any_age(home));
  EXPECT_EQ(home.kinds(opencode_session)["tool_call"], 3);  // it is still pending
  {
    CodeDatabase database(home.root() / "opencode-dev.db");
    auto child = events.front();
    child["data"]["sessionID"] = child["data"]["info"]["id"] = "ses_child";
    child["data"]["info"]["parentID"] = opencode_session;
    database.add(child);
    for (auto event : {events[2], events[3]}) {
      event["data"]["sessionID"] = "ses_child";
      event["id"] = event["id"].get<std::string>() + "c";
      database.add(event);
    }
  }
  home.read(of_any_age(home));
  EXPECT_EQ(home.kinds("ses_child")["user_input"], 1);
  EXPECT_EQ(spec_in(home, "ses_child").parent, opencode_session);
}

TEST(FollowOpencode, says_once_what_it_cannot_read) {
  FollowHome home;
  home.agent = TranscriptAgent::opencode;
  fs::create_directories(home.root());
  { Database other((home.root() / "opencode.db").string(), OpenMode::read_write_create); }
  append(home.root() / "opencode-broken.db", "this is not a database");
  fs::create_symlink(home.root() / "opencode.db", home.root() / "opencode-link.db");
  home.read(of_any_age(home));
  ASSERT_EQ(home.log.size(), 2U);
  std::ranges::sort(home.log);
  EXPECT_NE(home.log[0].find("hooks install opencode"), std::string::npos) << home.log[0];
  EXPECT_NE(home.log[1].find("opencode-broken.db"), std::string::npos) << home.log[1];
}

// Beside hooks

void keep_hook(FollowHome& home, HookAgent agent, const json& body) {
  const auto event = hook_event(agent, body.dump());
  ASSERT_TRUE(event.ok()) << event.error().message;
  if (event->reports.empty()) return;
  Batch batch{.session = event->session, .creation = Creation::attach, .by = ReportOrigin::hooks};
  batch.spec = event->spec;
  batch.reports = event->reports;
  ASSERT_TRUE(home.keep(batch).ok());
}

TEST(FollowAgents, count_a_call_of_hooks_and_transcript_once) {
  FollowHome gemini;
  gemini.agent = TranscriptAgent::gemini_cli;
  const auto send = [&](const char* name, json more) {
    more.update({{"hook_event_name", name}, {"session_id", gemini_session}});
    keep_hook(gemini, HookAgent::gemini_cli, more);
  };
  send("BeforeAgent", {{"prompt", "Please do what is to be done."}});
  for (const auto& message : messages_of_recording()) {
    if (!message.contains("toolCalls")) continue;
    const auto& call = message["toolCalls"][0];
    send("BeforeTool", {{"tool_name", call["name"]}, {"tool_input", call["args"]}});
    send("AfterTool", {{"tool_name", call["name"]},
                       {"tool_input", call["args"]},
                       {"tool_response", {{"llmContent", call["resultDisplay"]}}}});
  }
  for (const auto& line : recorded_lines("gemini-cli.jsonl"))
    append(chat_in(gemini, "session-1.jsonl"), line + "\n");
  // Lines that are older than the hooks' reports would be left out.
  auto options = of_any_age(gemini);
  options.look_up = [](const std::string&) { return FollowedSession{}; };
  gemini.read(std::move(options));
  auto kinds = gemini.kinds(gemini_session);
  EXPECT_EQ(kinds["user_input"], 1);
  EXPECT_EQ(kinds["tool_call"], 3);
  EXPECT_EQ(kinds["tool_result"], 3);

  FollowHome opencode;
  opencode.agent = TranscriptAgent::opencode;
  for (const auto& [tool, id, input] :
       {std::tuple{"bash", "call_0", json{{"command", "echo one; touch a.txt"}}},
        std::tuple{"bash", "call_1", json{{"command", "ls /no/such/directory"}}}}) {
    keep_hook(
        opencode, HookAgent::opencode,
        {{"type", "tool.execute.before"},
         {"properties",
          {{"sessionID", opencode_session}, {"tool", tool}, {"callID", id}, {"args", input}}}});
    keep_hook(
        opencode, HookAgent::opencode,
        {{"type", "tool.execute.after"},
         {"properties",
          {{"sessionID", opencode_session}, {"tool", tool}, {"callID", id}, {"output", "x"}}}});
  }
  CodeDatabase database(opencode.root() / "opencode.db");
  for (const auto& event : recorded_events()) database.add(event);
  options = of_any_age(opencode);
  options.look_up = [](const std::string&) { return FollowedSession{}; };
  opencode.read(std::move(options));
  kinds = opencode.kinds(opencode_session);
  EXPECT_EQ(kinds["tool_call"], 3);
  EXPECT_EQ(kinds["tool_result"] + kinds["error"], 3);
}

TEST(FollowAgents, have_one_table_of_places_and_forms) {
  for (const auto& place : transcript_places())
    EXPECT_EQ(transcript_place(place.agent).variable, place.variable);
  const auto form = [](const char* file) {
    return transcript_form(TranscriptAgent::gemini_cli, file);
  };
  EXPECT_EQ(form("/t/p/chats/session-a.json"), TranscriptForm::whole);
  EXPECT_EQ(form("/t/p/chats/session-a.jsonl"), TranscriptForm::lines);
  EXPECT_EQ(form("/t/p/chats/parent/a.jsonl"), TranscriptForm::lines);
  EXPECT_EQ(form("/t/p/logs.json"), TranscriptForm::none);
  const auto code = [](const char* file) {
    return transcript_form(TranscriptAgent::opencode, file);
  };
  EXPECT_EQ(code("/d/opencode.db"), TranscriptForm::database);
  EXPECT_EQ(code("/d/opencode.db-wal"), TranscriptForm::none);
  EXPECT_EQ(code("/d/auth.json"), TranscriptForm::none);
}

}  // namespace
}  // namespace watchdog::monitor
