#include "text/sentence.h"

#include <gtest/gtest.h>

namespace watchdog {
namespace {

TEST(Sentence, a_plain_word_gets_a_capital) {
  EXPECT_EQ(sentence("waits for approval"), "Waits for approval");
  EXPECT_EQ(sentence("timeout: 30 s", "Error: "), "Timeout: 30 s");
  EXPECT_EQ(sentence("a person interrupted the turn"), "A person interrupted the turn");
  EXPECT_EQ(sentence("completed"), "Completed");
}

TEST(Sentence, a_name_or_a_code_keeps_its_letters) {
  EXPECT_EQ(sentence("read_file failed", "Error: "), "Error: read_file failed");
  EXPECT_EQ(sentence("src/a.cpp:3: no type", "Error: "), "Error: src/a.cpp:3: no type");
  EXPECT_EQ(sentence("apiKey is missing", "Error: "), "Error: apiKey is missing");
  EXPECT_EQ(sentence("read_file"), "read_file");
}

TEST(Sentence, other_beginnings_stay) {
  for (const auto* text :
       {"", "8 iterations", "Overloaded", "HTTP 429", "/tmp is full", "هل", "→ x"})
    EXPECT_EQ(sentence(text, "Error: "), text);
}

}  // namespace
}  // namespace watchdog
