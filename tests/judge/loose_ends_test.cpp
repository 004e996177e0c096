// What a turn leaves open, as a notice: it moves no health and no attention.
#include "judge/loose_ends.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codec/facts.h"
#include "judge/attention.h"
#include "judge/plan_items.h"
#include "judge/promise.h"
#include "support/agent.h"

namespace watchdog {
namespace {

using test::Agent;

/// `statuses`: one letter for each item: done, pending, in progress, cancelled.
std::string todos(std::string_view statuses) {
  std::string list;
  for (const char status : statuses) {
    const std::string word = status == 'd'   ? "completed"
                             : status == 'p' ? "pending"
                             : status == 'i' ? "in_progress"
                                             : "cancelled";
    list += (list.empty() ? "" : ",") +
            (R"({"content":"Change the part of the program that reads settings","status":")" +
             word + "\"}");
  }
  return R"({"todos":[)" + list + "]}";
}

Agent& prompt(Agent& agent) {
  return agent.say({.kind = ReportKind::user_input, .content = "Fix the tests"});
}

Report idle(std::string_view why = {}, std::string text = {}) {
  return {.kind = ReportKind::idle, .name = std::string(why), .content = std::move(text)};
}

std::string note_of(const Agent& agent) {
  return unfinished_note(agent.judged.history);
}

/// A turn with one plan, and its note.
std::string note_after(const std::string& tool, const std::string& arguments) {
  Agent agent;
  prompt(agent).call(tool, arguments, "ok").message("All is done.").say(idle());
  EXPECT_EQ(agent.health(), HealthKind::idle);
  return note_of(agent);
}

TEST(LooseEnds, a_plan_that_is_sent_again_with_each_step_does_not_repeat) {
  for (const auto* tool : {"TodoWrite", "update_plan", "set_plan", "write_todos"}) {
    Agent agent;
    prompt(agent);
    std::string plan = "pppppppp";
    for (char& item : plan) {
      item = 'i';
      agent.call(tool, todos(plan), "The list is kept.");
      item = 'd';
      agent.call("Edit", R"({"file":"a"})", std::string("edited ") + plan);
    }
    for (const auto& change : agent.changes)
      EXPECT_NE(change.health.kind, HealthKind::suspect) << tool << agent.story();
  }
}

TEST(LooseEnds, open_items_of_the_plan_are_named) {
  EXPECT_EQ(note_after("TodoWrite", todos("ddppp")), "The turn ended with 3 of 5 plan items open");
  EXPECT_EQ(note_after("todowrite", todos("p")), "The turn ended with 1 of 1 plan item open");
  EXPECT_EQ(note_after("mcp__tasks__write_todos", todos("ipp")),
            "The turn ended with 3 of 3 plan items open");
  EXPECT_EQ(
      note_after("update_plan", R"({"explanation":"x","plan":[{"step":"a","status":"completed"},)"
                                R"({"step":"b","status":"pending"}]})"),
      "The turn ended with 1 of 2 plan items open");
  EXPECT_EQ(note_after("SetTodoList", R"({"todos":[{"title":"a","status":"Done"},)"
                                      R"({"title":"b","status":"Pending"}]})"),
            "The turn ended with 1 of 2 plan items open");
}

TEST(LooseEnds, finished_unknown_or_forgotten_items_are_not) {
  EXPECT_EQ(note_after("TodoWrite", todos("ddd")), "");
  EXPECT_EQ(note_after("TodoWrite", todos("ddc")), "") << "given up is not open";
  EXPECT_EQ(note_after("TodoWrite", todos("ddi")), "") << "often only the last update is missing";
  EXPECT_EQ(note_after("TodoWrite", todos("")), "");
  EXPECT_EQ(note_after("TodoWrite", R"({"todos":"a, b"})"), "");
  EXPECT_EQ(note_after("TodoWrite", R"({"todos":[{"content":"a"}]})"), "");
  EXPECT_EQ(note_after("TodoWrite", todos("pp").substr(0, 60)), "") << "it was cut";
  EXPECT_EQ(note_after("todo_write", R"({"merge":true,"todos":[{"id":"1","status":"pending"}]})"),
            "");
  EXPECT_EQ(note_after("Write", todos("pp")), "") << "a file with a list is not a plan";
}

TEST(LooseEnds, tasks_that_are_added_and_changed_one_by_one_are_counted) {
  Agent agent;
  prompt(agent);
  const auto change = [&](int id, const std::string& status) {
    agent.call("TaskUpdate",
               R"({"taskId":")" + std::to_string(id) + R"(","status":")" + status + "\"}",
               "Updated task");
  };
  for (int id = 1; id <= 4; ++id)
    agent.call("TaskCreate", R"({"subject":"Part )" + std::to_string(id) + "\"}", "Task created");
  change(1, "completed");
  change(1, "completed");
  agent.say(idle());
  EXPECT_EQ(note_of(agent), "The turn ended with 3 of 4 plan items open");
  change(2, "completed");
  change(3, "deleted");
  change(4, "in_progress");
  agent.say(idle());
  EXPECT_EQ(note_of(agent), "") << "as of lists, the last update may be missing";
  change(3, "pending");
  agent.say(idle());
  EXPECT_EQ(note_of(agent), "The turn ended with 2 of 4 plan items open");
}

TEST(LooseEnds, the_newest_plan_of_the_turn_counts) {
  Agent agent;
  prompt(agent).call("TodoWrite", todos("ppp"), "ok").call("TodoWrite", todos("ddd"), "ok");
  agent.say(idle());
  EXPECT_EQ(note_of(agent), "");
  agent.call("TodoWrite", todos("dpp"), "ok").say(idle());
  EXPECT_EQ(note_of(agent), "The turn ended with 2 of 3 plan items open");
  prompt(agent).message("Port 8080.").say(idle());
  EXPECT_EQ(note_of(agent), "") << "that turn was about something else";
}

TEST(LooseEnds, a_promise_without_a_call_is_named) {
  Agent agent;
  prompt(agent).call("read", "a", "text").message("The cause is clear. Now I will run the tests.");
  EXPECT_EQ(note_of(agent), "") << "the turn is not over";
  agent.say(idle());
  EXPECT_EQ(note_of(agent), "The last message announces an act, and no call followed");
  EXPECT_EQ(agent.health(), HealthKind::idle);
  agent.call("bash", "make test", "ok").say(idle());
  EXPECT_EQ(note_of(agent), "") << "the call followed";
  agent.message("Let me look at the log:").message("All tests pass.").say(idle());
  EXPECT_EQ(note_of(agent), "");
}

TEST(LooseEnds, an_answer_that_was_cut_is_named) {
  Agent agent;
  const auto end = [&](std::string_view how) {
    prompt(agent)
        .message("The first part of")
        .say(idle(idle_reports::relayed, std::string(how)), ReportOrigin::proxy);
    EXPECT_EQ(agent.health(), HealthKind::idle);
    EXPECT_EQ(agent.judged.history.notes->idle_why, "") << "the cut is not the reason of the rest";
    return note_of(agent);
  };
  EXPECT_EQ(end(early_ends::length), "The model's last answer was cut at its limit of length");
  EXPECT_EQ(end(early_ends::calls),
            "The model's last answer ended for a tool call that it does not have");
  EXPECT_EQ(end(""), "");
  EXPECT_EQ(end(early_ends::length), "The model's last answer was cut at its limit of length");
  agent.call("bash", "make", "ok").say(idle());
  EXPECT_EQ(note_of(agent), "") << "the agent went on by itself";
}

TEST(LooseEnds, several_are_one_sentence) {
  Agent agent;
  prompt(agent)
      .call("TodoWrite", todos("dpp"), "ok")
      .message("Next, I'll fix the parser.")
      .say(idle());
  EXPECT_EQ(note_of(agent),
            "The turn ended with 2 of 3 plan items open; "
            "the last message announces an act, and no call followed");
}

TEST(LooseEnds, a_turn_that_ended_for_another_reason_has_no_note) {
  for (const auto why : {idle_reports::interrupted, idle_reports::failed, idle_reports::goes_on}) {
    Agent agent;
    prompt(agent).call("TodoWrite", todos("ppp"), "ok").say(idle(why, "1 command runs: `make`"));
    EXPECT_EQ(agent.judged.history.lifecycle, Lifecycle::idle);
    EXPECT_EQ(note_of(agent), "") << why;
  }
  Agent agent;
  prompt(agent).call("TodoWrite", todos("ppp"), "ok");
  EXPECT_EQ(note_of(agent), "") << "it runs";
  Report end{.kind = ReportKind::end};
  end.detail = Outcome{};
  agent.say(idle()).say(std::move(end));
  EXPECT_EQ(note_of(agent), "") << "it ended";
}

TEST(LooseEnds, moves_no_health_no_attention_and_no_reason) {
  Agent with;
  Agent without;
  prompt(with)
      .call("TodoWrite", todos("ppp"), "ok")
      .message("Now I will run the tests.")
      .say(idle());
  prompt(without).call("TodoWrite", todos("ddd"), "ok").message("I ran all the tests.").say(idle());
  const auto standing = [](const Agent& agent) {
    return standing_of(agent.judged, WallTime{agent.now.time_since_epoch()});
  };
  EXPECT_EQ(standing(with), standing(without));
  EXPECT_EQ(with.story(), without.story());
  EXPECT_NE(note_of(with), note_of(without));
}

TEST(LooseEnds, survive_a_snapshot_that_older_programs_can_read) {
  Agent agent;
  prompt(agent).call("TodoWrite", todos("dpp"), "ok").message("Now I will run the tests.");
  agent.say(idle(idle_reports::relayed, std::string(early_ends::length)), ReportOrigin::proxy);
  Case read;
  const auto snapshot = snapshot_of(agent.judged);
  ASSERT_TRUE(read_snapshot(read, snapshot));
  EXPECT_EQ(snapshot_of(read), snapshot);
  EXPECT_EQ(unfinished_note(read.history), note_of(agent));
  // One of an older program has no such member.
  auto older = snapshot;
  const auto at = older.find(R"(,"loose_ends":)");
  ASSERT_NE(at, std::string::npos);
  // [[open, all], tasks, promises, end]
  const auto close = older.find(']', older.find(']', at) + 1);
  older.erase(at, close + 1 - at);
  ASSERT_TRUE(read_snapshot(read, older)) << older;
  EXPECT_EQ(unfinished_note(read.history), "");
}

TEST(LooseEnds, of_contents_that_are_not_kept_are_known_from_their_marks) {
  Agent agent;
  agent.content = ContentLevel::digest;
  prompt(agent)
      .call("TodoWrite", todos("dpppp"), "ok")
      .message("Let me run the tests now.")
      .say(idle());
  EXPECT_EQ(note_of(agent),
            "The turn ended with 4 of 5 plan items open; "
            "the last message announces an act, and no call followed");
  for (const auto& event : agent.events) {
    const auto* marks = std::get_if<Marks>(&event.report.detail);
    if (marks == nullptr) continue;
    EXPECT_EQ(decoded_marks(encoded(*marks)), *marks);
  }
}

TEST(Promise, is_an_act_that_the_last_sentence_announces) {
  for (const auto* text : {
           "Now I will run the tests.",
           "Found it. Let me fix the import:",
           "I'll now check the remaining files.",
           "I\u2019ll start by reading the configuration.",
           "**Next, let me update the changelog.**",
           "Okay, let's try the search again for 'Echo State Network'.",
           "I am going to implement the parser\u2026",
           "First line.\n\nI will now fetch the summaries of the two papers.",
       })
    EXPECT_TRUE(ends_with_promise(text)) << text;
}

TEST(Promise, is_no_question_offer_condition_or_report) {
  for (const auto* text : {
           "",
           "Done.",
           "All tests pass.",
           "Should I run the tests?",
           "Would you like me to proceed?",
           "Let me know if you want any changes.",
           "Let me know which option you prefer.",
           "If you approve, I'll write the file.",
           "Once the build is over, I will run the tests.",
           "I will wait for the build.",
           "I'll be here.",
           "I will remember that.",
           "I'll continue when the server is back.",
           "Let's assume a price of $150.",
           "I will not change main.",
           "I ran the tests. I will run them again after your review.",
           "Now I will run the tests. They passed.",
           "I will now run the tests",  // cut
           "```\nlet me run\n```",
           "We will update the documentation.",
       })
    EXPECT_FALSE(ends_with_promise(text)) << text;
}

TEST(Promise, reads_any_bytes) {
  for (const auto* text : {"\xff\xfe.", "...", ":", "\xe2\x80.", "\xe2\x80\xa6", "I will .",
                           "let me", " \n\t.", "now now now now."})
    EXPECT_FALSE(ends_with_promise(text)) << text;
  EXPECT_FALSE(ends_with_promise(std::string(100'000, 'a') + "."));
  EXPECT_TRUE(ends_with_promise(std::string(100'000, 'a') + ". Let me run it."));
}

TEST(PlanItems, reads_any_bytes) {
  for (const auto* text : {"", "null", "[]", "{}", "\xff", R"({"todos":{}})", R"({"todos":[[[]]]})",
                           R"({"todos":[1]})", R"({"todos":[{"status":1}]})", R"({"merge":"x"})"})
    EXPECT_EQ(plan_items("TodoWrite", text), PlanItems{}) << text;
  for (const auto* text :
       {"{}", R"({"taskId":"1e9","status":"pending"})", R"({"taskId":-1,"status":"done"})",
        R"({"taskId":"99999999999999999999","status":"done"})", R"({"taskId":{},"status":"x"})"})
    EXPECT_EQ(plan_items("TaskUpdate", text).all, 0) << text;
  EXPECT_EQ(plan_items("TodoWrite", todos(std::string(255, 'p'))), (PlanItems{255, 255}));
  EXPECT_EQ(plan_items("TodoWrite", todos(std::string(256, 'p'))), PlanItems{});
}

}  // namespace
}  // namespace watchdog
