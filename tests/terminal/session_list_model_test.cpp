#include "terminal/session_list_model.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "terminal/output.h"
#include "terminal/table.h"

namespace watchdog::monitor {
namespace {

using Act = SessionListModel::Act;

std::vector<SessionListRow> three() {
  return {{.id = "a", .agent = "zoe", .condition = "progressing", .iteration = 9},
          {.id = "b", .agent = "amy", .condition = "stuck", .iteration = 5, .changed_ago_ms = 50},
          {.id = "c", .agent = "bob", .condition = "failed", .ended = true, .changed_ago_ms = 9}};
}

/// The ids in the order of their lines.
std::string order_of(const SessionListModel& model) {
  std::string ids;
  for (const auto& line : model.lines(100, 20)) {
    // The id stands alone between blanks; the state before it is longer.
    std::istringstream words(line);
    for (std::string word; words >> word;)
      if (word == "a" || word == "b" || word == "c") ids += word;
  }
  return ids;
}

void press(SessionListModel& model, const std::string& keys) {
  for (const char key : keys) (void)model.press(Key(1, key));
}

TEST(SessionListModel, shows_first_what_somebody_should_look_at) {
  SessionListModel model;
  model.update(three());
  EXPECT_EQ(order_of(model), "bac") << "what ended is history";
  EXPECT_EQ(model.selected(), "b");
  for (const char* order : {"abc", "bca", "abc", "abc", "cba", "bac"}) {
    press(model, "s");
    EXPECT_EQ(order_of(model), order);
  }
  press(model, "r");
  EXPECT_EQ(order_of(model), "cab");
}

TEST(Output, leaves_the_colour_of_each_state_as_it_is) {
  for (const auto word : Names<SessionState>::all) {
    const auto text = std::string(style_of(word)) + std::string(word) + "\x1b[0m";
    EXPECT_EQ(safe_text(text), text);
  }
}

TEST(Output, has_plain_signs_in_a_locale_of_ascii) {
  const char* before = std::getenv("LC_ALL");
  const std::string kept = before == nullptr ? "" : before;
  setenv("LC_ALL", "C", 1);
  EXPECT_EQ(safe_text("phase –, unknown → dead · cut…"), "phase -, unknown > dead , cut.");
  setenv("LC_ALL", "C.UTF-8", 1);
  EXPECT_EQ(safe_text("phase – →"), "phase – →");
  kept.empty() ? unsetenv("LC_ALL") : setenv("LC_ALL", kept.c_str(), 1);
}

TEST(SessionListModel, gives_state_title_and_the_whole_reason_in_80_columns) {
  SessionListModel model;
  const std::string reason =
      "Waits for approval: the server of the staging cluster asks for a password again, which "
      "nobody but its owner may give";
  model.update({{.id = "0f8fad5b-d9cb-469f-a165-70867728950e",
                 .title = "Split the checkout module into payment and delivery",
                 .condition = "needs_input",
                 .attention = Attention::needs_you,
                 .for_ms = 125'000,
                 .reason = reason}});
  std::string seen;
  for (const auto& line : model.lines(80, 20)) {
    // Bytes: 80 columns, two ellipses of 3 bytes, and 8 of the escapes of the selected row.
    EXPECT_LE(clipped(line, 1'000).size(), 92U) << line;
    seen += line;
  }
  EXPECT_TRUE(seen.starts_with("1 needs you, of 1 session; by state")) << seen;
  EXPECT_NE(seen.find("needs_input  2 min"), std::string::npos) << seen;
  EXPECT_NE(seen.find("Split the checkout module"), std::string::npos) << seen;
  for (std::size_t at = 0; at < reason.size(); at = reason.find(' ', at) + 1) {
    const auto word = reason.substr(at, reason.find(' ', at) - at);
    EXPECT_NE(seen.find(word), std::string::npos) << word;
    if (reason.find(' ', at) == std::string::npos) break;
  }
}

TEST(SessionListModel, keeps_who_is_selected_while_the_rows_change) {
  SessionListModel model;
  model.update(three());
  EXPECT_EQ(model.press("down"), Act::none);
  EXPECT_EQ(model.selected(), "a");
  auto rows = three();
  rows[0].condition = "stuck";
  rows[1].condition = "progressing";
  model.update(rows);
  EXPECT_EQ(order_of(model), "abc");
  EXPECT_EQ(model.selected(), "a");
  for (const auto& [key, expected] :
       {std::pair{"end", "c"}, {"down", "c"}, {"home", "a"}, {"up", "a"}, {"page down", "c"}}) {
    EXPECT_EQ(model.press(key), Act::none);
    EXPECT_EQ(model.selected(), expected) << key;
  }
  rows.pop_back();
  model.update(rows);
  EXPECT_EQ(model.selected(), "a") << "the one that was selected is gone";
  model.update({});
  EXPECT_EQ(model.selected(), "");
  EXPECT_EQ(model.press("enter"), Act::none);
  EXPECT_EQ(model.press("c"), Act::none);
}

TEST(SessionListModel, filters_by_text_and_by_trouble) {
  SessionListModel model;
  model.update(three());
  press(model, "/amq");
  EXPECT_EQ(order_of(model), "");
  EXPECT_EQ(model.press("backspace"), Act::none);
  EXPECT_EQ(order_of(model), "b");
  EXPECT_EQ(model.press("enter"), Act::none);
  EXPECT_EQ(order_of(model), "b") << "it stays";
  press(model, "/");
  EXPECT_EQ(model.press("escape"), Act::none);
  EXPECT_EQ(order_of(model), "bac");
  press(model, "t");
  EXPECT_EQ(order_of(model), "b");
}

TEST(SessionListModel, asks_before_it_cancels) {
  SessionListModel model;
  model.update(three());
  EXPECT_EQ(model.press("c"), Act::none);
  EXPECT_EQ(model.lines(80, 10).back(), "Ask b to stop? y: yes, else no");
  EXPECT_EQ(model.press("n"), Act::none);
  EXPECT_EQ(model.press("y"), Act::none) << "nothing is asked any more";
  press(model, "c");
  EXPECT_EQ(model.press("y"), Act::cancel);
  EXPECT_EQ(model.press("enter"), Act::open);
  EXPECT_TRUE(model.is_open());
  model.show_details({"all about b"});
  model.update({});
  EXPECT_EQ(model.lines(80, 10).at(1), "all about b") << "also once the list has it no more";
  EXPECT_EQ(model.selected(), "b");
  EXPECT_EQ(model.press("escape"), Act::none);
  EXPECT_FALSE(model.is_open());
  EXPECT_EQ(model.press("q"), Act::quit);
  EXPECT_EQ(model.press("interrupt"), Act::quit);
}

TEST(SessionListModel, fits_any_terminal) {
  SessionListModel model;
  std::vector<SessionListRow> rows;
  for (int at = 0; at < 500; ++at)
    rows.push_back(
        {.id = "s" + std::to_string(at), .condition = "progressing", .reason = "because"});
  model.update(rows);
  for (const std::size_t height : {0, 1, 2, 3, 24, 1'000}) {
    for (const auto* key : {"end", "home", "page down", "page up"}) {
      EXPECT_EQ(model.press(key), Act::none);
      const auto lines = model.lines(80, height);
      EXPECT_EQ(lines.size(), height < 3 ? 0 : height);
    }
  }
}

TEST(SessionListModel, reads_what_the_monitor_answers_and_survives_what_it_does_not) {
  const auto rows = session_rows_from(
      R"({"now":9,"sessions":[{"sessionId":"a\u001b[2J","agent":null,"health":"slow","outcome":null,
      "reason":"r","currentPhase":"p","tool":{"name":"sh","startedAt":1},"iteration":3,
      "stateChanges":4,"lastChangeAt":1000,"endedAt":null,"now":3500},7,{}]})");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].id, "a<U+001B>[2J") << "nothing steers the terminal";
  EXPECT_EQ(rows[0].condition, "slow");
  EXPECT_EQ(rows[0].doing, "sh");
  EXPECT_EQ(rows[0].changed_ago_ms, 2'500);
  EXPECT_FALSE(rows[0].ended);
  const auto served = session_rows_from(
      R"({"sessions":[{"currentPhase":"p","server":{"state":"reading","done":41216,"total":61440,"leftMs":118000}},
      {"currentPhase":"p","server":{"state":"asleep","done":"x","total":-1,"leftMs":1e99}},
      {"currentPhase":"p","server":3}]})");
  ASSERT_EQ(served.size(), 3U);
  EXPECT_EQ(served[0].doing, "reading 41,216 / 61,440, ~2 min");
  EXPECT_EQ(served[1].doing, "p");
  EXPECT_EQ(served[2].doing, "p");
  for (const char* text : {"", "[]", "null", R"({"sessions":3})", R"({"sessions":null})", "{"})
    EXPECT_TRUE(session_rows_from(text).empty()) << text;
}

TEST(Clipped, counts_what_is_seen) {
  EXPECT_EQ(clipped("abc", 2), "ab");
  EXPECT_EQ(clipped("ä\x1b[1mbc\x1b[0m", 2), "ä\x1b[1mb\x1b[0m") << "colours end behind the edge";
  EXPECT_EQ(emphasized("a\x1b[1mb\x1b[0mc"), "\x1b[7ma\x1b[1mb\x1b[0m\x1b[7mc\x1b[0m");
}

}  // namespace
}  // namespace watchdog::monitor
