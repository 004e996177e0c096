// The files of a bundle, and their archive. Pure functions, but for `tar`.

#include "bundle/bundle.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/secret_samples.h"
#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr const char* conversation = "5e551011-1111-4222-8333-444444444444";

json document() {
  return {{"sessionId", conversation},
          {"title", "Mend the gate"},
          {"agent", "claude-code"},
          {"parentSessionId", nullptr},
          {"state", "looping"},
          {"stateSince", 1'764'460'800'000},
          {"reason", "shell repeated 6 times"},
          {"health", "looping"},
          {"lifecycle", "running"},
          {"labels", {{"cwd", "/srv/orchard"}, {"via", "hooks"}}},
          {"evidence", json::array({{{"seq", 12}, {"note", "first call"}}})},
          {"tools", json::array({{{"name", "shell"},
                                  {"elapsedMs", 12'000},
                                  {"command", "pytest tests/a"},
                                  {"message", "3 of 9 done"}}})},
          {"sources", json::array({{{"source", "hooks"}}, {{"source", "transcript"}}})}};
}

BundleFacts facts() {
  BundleFacts made{
      .session = conversation, .version = "0.9", .at = WallTime{Millis{1'764'460'900'000}}};
  made.document = document().dump();
  made.explanation = R"({"session":"x","timeline":[]})";
  made.events = {R"({"seq":1,"kind":"start"})", R"({"seq":2,"kind":"tool_call"})"};
  made.processes = ProcessTree{
      .root = {.pid = 10, .parent = 1, .threads = 2, .state = 'S', .command = "claude"},
      .children = {{.pid = 11, .parent = 10, .threads = 1, .state = 'S', .command = "bash"},
                   {.pid = 12, .parent = 11, .threads = 1, .state = 'R', .command = "pytest"}}};
  made.git = {.commit = std::string(40, 'a'),
              .branch = "main",
              .status = " M gate.py\n",
              .stat = " gate.py | 2 +-\n"};
  return made;
}

std::string file_of(const BundleFacts& given, std::string_view name) {
  for (const auto& file : bundle_files(given))
    if (file.name == name) return file.content;
  ADD_FAILURE() << name << " is missing";
  return {};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Bundle, has_what_was_seen_when_the_session_got_into_trouble) {
  auto given = facts();
  const auto seen = present_facts_text(given, "looping-12");
  EXPECT_TRUE(seen.starts_with("looping-12, 2025-11-30 00:01:40 UTC\n")) << seen;
  EXPECT_TRUE(has(seen, "12  pytest  state R")) << seen;
  EXPECT_TRUE(has(seen, " gate.py | 2 +-\n")) << seen;
  given.kept = {.moment = "looping-12", .text = seen};
  EXPECT_EQ(file_of(given, "at-looping-12.txt"), seen);
  EXPECT_TRUE(has(file_of(given, "README.md"), "- `at-looping-12.txt`: both as they were"));
  given.processes.reset();
  given.git = {.missing = "the agent's process has ended."};
  EXPECT_EQ(present_facts_text(given, "dead-4"), "") << "there is nothing to keep";
}

TEST(Bundle, has_what_a_program_printed_of_a_model_server_that_hung) {
  const ServerLook look{
      .server = "http://127.0.0.1:8080",
      .pid = 4711,
      .process = "llama-server",
      .command = {"py-spy", "dump", "--pid", "4711"},
      .end = "ended with 0",
      .printed = "Thread 4711 (idle): \"main\"\npassword=hunter2-hunter2\n\x1b[31m",
      .at = facts().at};
  auto given = facts();
  given.server = {.moment = "hung-4711", .text = server_look_text(look)};
  const auto text = file_of(given, "server.txt");
  EXPECT_EQ(text, given.server.text) << "it was clean when it was kept";
  EXPECT_TRUE(
      text.starts_with("The model server http://127.0.0.1:8080 hung, 2025-11-30 00:01:40 "
                       "UTC\nprocess 4711 (llama-server)\ncommand py-spy dump --pid "
                       "4711\nThe command ended with 0. It printed:\n\nThread 4711 "))
      << text;
  EXPECT_FALSE(has(text, "hunter2")) << text;
  EXPECT_FALSE(has(text, "\x1b")) << text;
  EXPECT_TRUE(has(file_of(given, "README.md"), "- `server.txt`: what the program"));
  EXPECT_TRUE(has(server_look_text({.end = "ended with 0"}), "It printed:\n\nnothing\n"));
}

TEST(Bundle, has_its_files_in_order_and_the_first_is_for_people) {
  std::vector<std::string> names;
  for (const auto& file : bundle_files(facts())) names.push_back(file.name);
  EXPECT_EQ(names, (std::vector<std::string>{"README.md", "session.json", "explain.json",
                                             "events.jsonl", "processes.txt", "git.txt"}));
  const auto page = file_of(facts(), "README.md");
  for (const auto* part :
       {"- state: looping, since 2025-11-30 00:00:00 UTC\n", "- reason: shell repeated 6 times\n",
        "- proof: event 12, first call\n", "- call: shell for 12 s, runs pytest tests/a\n",
        "- its newest output: 3 of 9 done\n", "watchdog-monitor 0.9, 2025-11-30 00:01:40 UTC",
        "In the folder /srv/orchard, run:\n\n    claude --resume 5e551011-1111-4222-8333-4444"})
    EXPECT_TRUE(has(page, part)) << part << "\n" << page;
  EXPECT_EQ(json::parse(file_of(facts(), "session.json")), document());
  EXPECT_EQ(file_of(facts(), "events.jsonl"),
            "{\"kind\":\"start\",\"seq\":1}\n{\"kind\":\"tool_call\",\"seq\":2}\n");
  EXPECT_TRUE(has(file_of(facts(), "processes.txt"),
                  "\n10  claude  state S, 2 threads, CPU time 0 s\n"
                  "  11  bash  state S, 1 thread, CPU time 0 s\n"
                  "    12  pytest  state R, 1 thread, CPU time 0 s\n"))
      << file_of(facts(), "processes.txt");
  EXPECT_EQ(file_of(facts(), "git.txt"),
            "commit " + std::string(40, 'a') +
                "\nbranch main\n\ngit status --porcelain\n M gate.py\n\ngit diff --stat HEAD\n"
                " gate.py | 2 +-\n");
}

TEST(Bundle, says_why_a_part_is_missing) {
  auto given = facts();
  given.processes.reset();
  given.processes_missing = "it has ended.";
  given.git = {.missing = "the folder is not known."};
  EXPECT_EQ(file_of(given, "processes.txt"), "No process is shown: it has ended.\n");
  EXPECT_EQ(file_of(given, "git.txt"), "Git was not asked: the folder is not known.\n");
  given.document = "not JSON";
  EXPECT_EQ(file_of(given, "session.json"), "null\n");
  EXPECT_TRUE(has(file_of(given, "README.md"), "No call of a tool is open."));
}

/// Puts the text into each part that an agent, a repository or a process can choose.
BundleFacts facts_with(const std::string& text) {
  auto given = facts();
  auto shown = document();
  for (const auto* name : {"title", "reason", "lastMessage", "currentPhase", "waitingFor", "task"})
    shown[name] = text;
  shown["labels"]["note"] = text;
  shown["labels"]["cwd"] = "/srv/" + text;
  shown["tools"][0]["command"] = text;
  shown["tools"][0]["message"] = text;
  shown["evidence"][0]["note"] = text;
  shown["outcome"] = {{"kind", "failed"}, {"reason", "error"}, {"error", text}};
  shown["cancel"] = {{"by", text}, {"reason", text}};
  shown["explainedBy"] = {{"sessionId", "child"}, {"reason", text}};
  given.document = shown.dump();
  given.explanation =
      json{{"timeline", {{{"reason", text}, {"evidence", {{{"event", {{"args", text}}}}}}}}}}
          .dump();
  given.events = {json{{"seq", 1}, {"kind", "tool_call"}, {"args", text}, {"text", text}}.dump()};
  given.processes->root.command = text;
  given.processes->children[0].wchan = text;
  given.git.branch = text;
  given.git.status = "?? " + text + "\n";
  given.git.stat = text + " | 2 +-\n";
  given.version = text;
  return given;
}

TEST(Bundle, holds_no_secret_of_any_part) {
  for (const auto& [text, core] : test::secret_samples())
    for (const auto& file : bundle_files(facts_with(text)))
      EXPECT_FALSE(has(file.content, core)) << file.name << " has " << text;
}

TEST(Bundle, holds_no_value_of_a_member_that_names_a_secret) {
  auto given = facts();
  given.events = {R"({"seq":1,"kind":"tool_call","args":{"password":"Wq7kZ2mX9pLr"}})"};
  const auto lines = file_of(given, "events.jsonl");
  EXPECT_FALSE(has(lines, "Wq7kZ2mX9pLr")) << lines;
  EXPECT_TRUE(json::accept(lines));
}

TEST(Bundle, stays_readable_with_any_text) {
  for (const std::string text : {"\x1b[2Jgone", "two\n## Verdict\nlines", "\xff\xfe", "a\u202Eb"}) {
    auto given = facts_with("x");
    auto shown = json::parse(given.document);
    for (const auto* name : {"title", "reason", "lastMessage"}) shown[name] = text;
    given.document = shown.dump(-1, ' ', false, json::error_handler_t::replace);
    given.processes->root.command = text;
    given.git.status = text;
    for (const auto& file : bundle_files(given))
      EXPECT_FALSE(has(file.content, "\x1b") || has(file.content, "\u202E") ||
                   has(file.content, "\xff"))
          << file.name << "\n"
          << file.content;
    const auto page = file_of(given, "README.md");
    EXPECT_EQ(page.find("\n## Verdict"), page.rfind("\n## Verdict"));
    EXPECT_TRUE(json::accept(file_of(given, "session.json")));
  }
}

TEST(Bundle, keeps_the_newest_events_within_its_bounds) {
  auto given = facts();
  given.events.clear();
  for (std::size_t seq = 1; seq <= bundle_events_max + 5; ++seq)
    given.events.push_back(json{{"seq", seq}}.dump());
  auto lines = file_of(given, "events.jsonl");
  EXPECT_TRUE(lines.starts_with("{\"seq\":6}\n")) << lines.substr(0, 20);
  EXPECT_TRUE(has(file_of(given, "README.md"), ": 1000, and earlier ones exist\n"));
  given.events.assign(10, json{{"text", std::string(500'000, 'x')}}.dump());
  lines = file_of(given, "events.jsonl");
  EXPECT_LE(lines.size(), bundle_events_bytes_max);
  EXPECT_EQ(std::ranges::count(lines, '\n'), 4);
}

TEST(Bundle, offers_to_resume_only_what_the_agents_own_files_named) {
  const auto offered = [](const char* name, const json& value) {
    auto shown = document();
    shown[name] = value;
    return resume_command(shown.dump());
  };
  EXPECT_EQ(offered("agent", "codex"), std::string("codex resume ") + conversation);
  EXPECT_EQ(offered("agent", "claude-code"), std::string("claude --resume ") + conversation);
  EXPECT_EQ(offered("agent", "aider"), std::nullopt);
  EXPECT_EQ(offered("sources", json::array({{{"source", "hooks"}}})), std::nullopt);
  EXPECT_EQ(offered("parentSessionId", conversation), std::nullopt);
  EXPECT_EQ(offered("sessionId", "job-1; reboot"), std::nullopt);
  auto given = facts();
  auto shown = document();
  shown["sources"] = json::array();
  given.document = shown.dump();
  EXPECT_TRUE(has(file_of(given, "README.md"), "No command is offered: the monitor has not read"));
}

TEST(BundleName, takes_only_plain_letters) {
  EXPECT_EQ(bundle_file_name("orchard", conversation), "watchdog-orchard-5e551011.tar");
  EXPECT_EQ(bundle_file_name("", "job-1"), "watchdog-job-1.tar");
  EXPECT_EQ(bundle_file_name("../my shop; rm\n", "a:b@c"), "watchdog-my-shop-rm-a-b-c.tar");
  EXPECT_EQ(bundle_file_name("\xc3\xa9t\xc3\xa9", "x"), "watchdog-t-x.tar");
  EXPECT_EQ(file_name_of("...", 8), "session");
  EXPECT_EQ(file_name_of(std::string(300, 'n'), folder_name_max).size(), folder_name_max);
}

TEST(Tar, is_read_by_tar) {
  const test::TempDir dir;
  const auto file = dir / "bundle.tar";
  auto given = facts();
  given.session = "odd:" + std::string(120, '@') + "name";
  std::ofstream(file, std::ios::binary) << bundle_archive(given);
  const auto list = dir / "list";
  ASSERT_EQ(std::system(("tar tvf " + file.string() + " > " + list.string()).c_str()),
            0);  // NOLINT(concurrency-mt-unsafe): one thread
  std::ifstream lines(list);
  std::string line, all;
  int count = 0;
  for (; std::getline(lines, line); ++count) {
    all += line + "\n";
    EXPECT_TRUE(line.starts_with("-rw-------")) << line;
  }
  EXPECT_EQ(count, 6) << all;
  EXPECT_TRUE(has(all, "watchdog-odd-name/README.md\n")) << all;
}

TEST(Tar, gives_back_what_was_put_in) {
  std::vector<NamedFile> files{{"README.md", "text"}, {"empty", ""}};
  files.push_back({std::string(file_name_max, 'n'), std::string(1'024, '\0')});
  const auto archive = tar_of(std::string(folder_name_max, 'f'), files, WallTime{});
  EXPECT_EQ(files_in_tar(archive), files);
  EXPECT_EQ(archive.size() % 512, 0U);
  EXPECT_EQ(files_in_tar("not an archive"), std::nullopt);
  EXPECT_EQ(files_in_tar(archive.substr(0, archive.size() - 1'600)), std::nullopt);
  auto other = archive;
  other[130] = '7';  // a digit of the size
  EXPECT_EQ(files_in_tar(other), std::nullopt);
}

}  // namespace
}  // namespace watchdog::monitor
