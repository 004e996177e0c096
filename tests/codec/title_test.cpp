// The titles of sessions.
#include <gtest/gtest.h>

#include "codec/facts.h"
#include "codec/progress.h"
#include "privacy/content.h"

namespace watchdog {
namespace {

TEST(Title, a_session_is_called_what_its_owner_or_its_first_prompt_says) {
  struct Row {
    SessionSpec spec;
    Words words;
    const char* title;
  };
  const std::string uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
  const Row rows[] = {
      {{.task = "the task", .title = "Its title"}, {.prompt = "the prompt"}, "Its title"},
      {{.task = "\n  First line\nsecond"}, {.prompt = "the prompt"}, "First line"},
      {{.agent = "codex", .labels = {{"cwd", "/w/shop"}}}, {.prompt = "Mend it"}, "Mend it"},
      {{.agent = "codex", .labels = {{"cwd", "/w/shop/"}}}, {}, "codex in shop"},
      {{.agent = "codex"}, {}, "codex"},
      {{.labels = {{"cwd", "/"}}}, {}, "0f8fad5b"},
      {{.labels = {{"cwd", "shop"}}}, {}, "shop"},
      {{}, {}, "0f8fad5b"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(title_of(uuid, description_of(row.spec), row.words), row.title);
  const auto title = title_of("s", description_of({.task = std::string(500, 'x')}), {});
  EXPECT_EQ(title, std::string(120, 'x'));
  for (const char* id : {"build-17", "0f8fad5b-d9cb-469f-a165-7086772895", "s"})
    EXPECT_EQ(short_id(id), id);
}

TEST(Title, a_title_comes_from_the_first_prompt_as_far_as_it_is_kept) {
  const auto say = [](History& history, ReportKind kind, std::string name, std::string content,
                      ContentLevel level) {
    Event event{.seq = history.seq + 1, .session = 1, .tick = history.tick + Millis{1}};
    event.report.kind = kind;
    event.report.name = std::move(name);
    event.report.content = std::move(content);
    seal(event.report, level);
    apply(history, event, Policy{});
  };
  History history;
  say(history, ReportKind::user_input, "", "<env>\n\n# Mend the tests \nall of them",
      ContentLevel::preview);
  say(history, ReportKind::message, "assistant", "May I?", ContentLevel::preview);
  say(history, ReportKind::user_input, "", "yes", ContentLevel::preview);
  EXPECT_EQ(history.notes->words->prompt, "Mend the tests");
  EXPECT_EQ(history.notes->words->answer, "May I?");
  History greeted;
  for (const char* prompt : {"hi", "go", "Write the release notes", "yes, do that please"})
    say(greeted, ReportKind::user_input, "", prompt, ContentLevel::preview);
  EXPECT_EQ(greeted.notes->words->prompt, "Write the release notes") << "a greeting names no work";
  History brief;
  for (const char* prompt : {"/review", "go"})
    say(brief, ReportKind::user_input, "", prompt, ContentLevel::preview);
  EXPECT_EQ(brief.notes->words->prompt, "/review");
  History proxied;
  say(proxied, ReportKind::state_change, "planned", "the plan", ContentLevel::preview);
  say(proxied, ReportKind::state_change, "input", R"({"files": 3})", ContentLevel::preview);
  say(proxied, ReportKind::state_change, "input", "Mend it\nnow", ContentLevel::preview);
  EXPECT_EQ(proxied.notes->words->prompt, "Mend it");
  History secret;
  say(secret, ReportKind::message, "user", "use password=hunter2hunter2", ContentLevel::preview);
  EXPECT_EQ(secret.notes->words->prompt.find("hunter2"), std::string::npos);
  // As Claude Code, Gemini CLI and Copilot CLI begin.
  for (const char* begins :
       {"<system-reminder>\nYou can use the context:\n</system-reminder>\n\n",
        "<session_context>\nWe set up the context.\n</session_context>\n",
        "<current_datetime>x</current_datetime>\n<system-reminder></system-reminder>"}) {
    History agent;
    say(agent, ReportKind::user_input, "", std::string(begins) + "Mend it\nnow",
        ContentLevel::full);
    EXPECT_EQ(agent.notes->words->prompt, "Mend it") << begins;
  }
  History woken;
  say(woken, ReportKind::user_input, "",
      "<system_notification>\nIt is done.\n</system_notification>", ContentLevel::full);
  say(woken, ReportKind::user_input, "", "<system-reminder>\nNobody ends this bl",
      ContentLevel::full);
  EXPECT_EQ(woken.notes->words->prompt, "");
  say(woken, ReportKind::user_input, "", "<task>Mend it</task>", ContentLevel::full);
  EXPECT_EQ(woken.notes->words->prompt, "<task>Mend it</task>");
  // As Cline and others send a prompt.
  for (const char* below : {"<environment_details>\nx\n</environment_details>",
                            "<system-reminder>x</system-reminder>"}) {
    History cline;
    say(cline, ReportKind::user_input, "", std::string("<task>\nMend it\n</task>\n") + below,
        ContentLevel::full);
    EXPECT_EQ(cline.notes->words->prompt, "Mend it") << below;
  }
  for (const auto level : {ContentLevel::none, ContentLevel::digest}) {
    History silent;
    say(silent, ReportKind::user_input, "", "Mend the tests", level);
    EXPECT_EQ(silent.notes->words->prompt, "");
  }
  Case judged;
  judged.history = history;
  Case again;
  ASSERT_TRUE(read_snapshot(again, snapshot_of(judged)).ok());
  EXPECT_EQ(again.history.notes->words->prompt, "Mend the tests");
  EXPECT_EQ(again.history.notes->words->answer, "May I?");
}

}  // namespace
}  // namespace watchdog
