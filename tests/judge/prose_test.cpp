// Prose and the output of programs, told apart line by line and message by message.
#include "judge/prose.h"

#include <gtest/gtest.h>

#include <string>

#include "facts/role.h"
#include "judge/text_loop.h"

namespace watchdog {
namespace {

bool is_printed(std::string_view text, int lines_min) {
  return shape_of(text).is_printed(lines_min);
}

TEST(Prose, sentences_are_prose) {
  for (const char* line :
       {"I will read the file src/main.cpp first, and then change `run_all`.",
        "THOUGHT: The PR description mentions `astropy.modeling.separable`.",
        "Jonny Craig has been a member of four bands. I need to search Pete Doherty next.",
        "Now the tests pass, so the change is complete.",
        "Ich lese zuerst die Datei und ändere danach die Funktion darin."}) {
    EXPECT_EQ(kind_of_line(line), LineKind::prose) << line;
  }
}

TEST(Prose, lines_of_logs_compilers_and_shells_are_printed) {
  for (const char* line :
       {"$ make all", "2026-01-02 12:00:01 INFO Starting the server on port 8080",
        "[ 12%] Building CXX object src/foo.o", "warning: this function is deprecated and removed",
        "src/foo.c:12:5: error: expected ';' before '}'", "ERROR: the file does not exist",
        "drwxr-xr-x 2 root root 4096 Nov 26 10:38 .ci", "tests/a.py::test_one PASSED",
        "+ cp -r build/out dist/", ">>> print(1)", "  1234 5678 0.25"}) {
    EXPECT_EQ(kind_of_line(line), LineKind::printed) << line;
  }
}

TEST(Prose, markdown_data_and_single_words_decide_nothing) {
  for (const char* line : {"", "   ", "Done", "- src/a.cpp", "| a | b |", "# Plan", "1. a/b.c",
                           R"({"path": "a.cpp", "line": 12})", "> quoted 12/3"}) {
    EXPECT_EQ(kind_of_line(line), LineKind::neutral) << line;
  }
}

TEST(Prose, fences_are_not_looked_into) {
  EXPECT_FALSE(is_printed("```\n$ make\nsrc/a.c:1: error: x_1\n```\n", 1));
  EXPECT_TRUE(is_printed("$ make\nsrc/a.c:1: error: x_1\n", 2));
  EXPECT_FALSE(is_printed("$ make\nI ran the command, and it failed with one error.\n", 1));
}

TEST(Prose, one_line_is_enough_where_the_speaker_is_not_known) {
  EXPECT_TRUE(is_printed("src/a.c:1: error: x_1", 1));
  EXPECT_FALSE(is_printed("src/a.c:1: error: x_1", 2));
  EXPECT_TRUE(is_model("assistant"));
  EXPECT_FALSE(is_model("session"));
  EXPECT_EQ(speaker_of("Computer_terminal"), Speaker::program);
  EXPECT_EQ(speaker_of("Orchestrator (thought)"), Speaker::agent);
}

TEST(Prose, only_prose_repeats_itself) {
  std::string log;
  std::string chant;
  for (int i = 0; i < 60; ++i) {
    log += "src/lib/module.c:12:5: warning: unused variable 'n' [-Wunused]\n";
    chant += "I will try this again with the same file, and then look at it.\n";
  }
  EXPECT_GT(hits_in(log), 0) << "else this test shows nothing";
  EXPECT_EQ(hits_in_prose(log, false), 0);
  EXPECT_GT(hits_in_prose(chant, false), 0);
  EXPECT_GT(hits_in_prose(log + chant, false), 0);
}

TEST(Prose, equal_lines_of_an_unknown_speaker_count_once) {
  std::string output = "$ ./runtests.py queries\n";
  for (int i = 0; i < 40; ++i) output += "Cloning test database for alias 'default'...\n";
  EXPECT_GT(hits_in_prose(output, false), 0);
  EXPECT_EQ(hits_in_prose(output, true), 0);
  EXPECT_TRUE(shape_of(output).opens_printed);
  std::string chant;
  for (int i = 0; i < 40; ++i) chant += "I will try this again, and then look at the same file. ";
  EXPECT_GT(hits_in_prose(chant, true), 0) << "within a line";
}

TEST(Prose, requests_in_words_are_no_paths_and_no_code) {
  EXPECT_TRUE(asks_in_words(words_in("population of Berlin in words")));
  EXPECT_TRUE(asks_in_words(words_in("Please find out when Apple stock first went above $50.")));
  EXPECT_FALSE(asks_in_words(words_in("src/main.cpp")));
  EXPECT_FALSE(asks_in_words(words_in("python -m pytest tests/test_1.py -q")));
  EXPECT_FALSE(asks_in_words(words_in("Berlin")));
}

}  // namespace
}  // namespace watchdog
