#include "ingest/question.h"

#include <gtest/gtest.h>

namespace watchdog::monitor {
namespace {

TEST(QuestionInAnswer, is_its_last_line_or_stands_before_its_choices) {
  const struct {
    std::string answer;
    std::string question;
  } rows[] = {
      {"Shall I use Postgres or SQLite?", "Shall I use Postgres or SQLite?"},
      {"Done.\n\n**Which one do you want?**\n", "Which one do you want?"},
      {"Two ways.\nWhich one?\n\n- Postgres\n- SQLite\n", "Which one?"},
      {"Which one?\n1. Postgres\n2) SQLite", "Which one?"},
      {"Which one?\na) Postgres\nb) SQLite", "Which one?"},
      {"Delete the folder (y/N)", "Delete the folder (y/N)"},
      {"続けますか？", "続けますか？"},
      {"(Shall I go on?)", "(Shall I go on?)"},
      {"I can do it in two ways:\n1. Postgres\n2. SQLite\nTell me which one you prefer.",
       "Tell me which one you prefer."},
      {"It is ready.\nPlease confirm before I push.", "Please confirm before I push."},
      {"Which port shall it use? I recommend 8080.", "Which port shall it use? I recommend 8080."},
      {"Do you want me to:\n- commit\n- push", "Do you want me to:"},
      {"A) Postgres\nB) SQLite\nPick one and I go on.", "Pick one and I go on."},
      {"I need your approval before I delete the branch.",
       "I need your approval before I delete the branch."},
      {"Before I proceed, I need the key for staging.",
       "Before I proceed, I need the key for staging."},
      {"Let me know if you need anything else.", ""},
      {"Please confirm before I push.\nIt is pushed.", ""},
      {"All tests pass.", ""},
      {"Why did it fail? The handle was missing.", ""},
      {"Why did it fail?\nThe handle was missing.", ""},
      {"Changes:\n- one\n- two", ""},
      {"What I should have said:\n- one\n- two", ""},
      {"", ""},
      {"\n \n", ""},
      {"- ?", "- ?"},
  };
  for (const auto& row : rows) EXPECT_EQ(closing_question(row.answer), row.question) << row.answer;
  EXPECT_LE(closing_question(std::string(10'000, 'a') + "?").size(), 200U);
  EXPECT_EQ(closing_question("Which?" + std::string(3'000, '\n')), "")
      << "it looks at the end alone";
}

}  // namespace
}  // namespace watchdog::monitor
