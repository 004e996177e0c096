#include "ingest/bounded_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace watchdog::monitor {
namespace {

TEST(BoundedText, is_the_longest_beginning_that_splits_no_character) {
  for (const std::string character : {"a", "é", "€", "😀"}) {
    std::string text;
    for (int i = 0; i < 20; ++i) text += character;
    for (std::size_t limit = 0; limit <= text.size() + 4; ++limit) {
      const auto whole = std::min(limit, text.size()) / character.size() * character.size();
      EXPECT_EQ(first_bytes(text, limit), text.substr(0, whole)) << character << ' ' << limit;
    }
  }
}

TEST(BoundedText, of_bytes_that_are_no_characters_ends_as_well) {
  EXPECT_LE(first_bytes(std::string(1'000, '\x80'), 10).size(), 10U);
  EXPECT_LE(first_bytes(std::string(1'000, '\xF0'), 10).size(), 10U);
}

}  // namespace
}  // namespace watchdog::monitor
