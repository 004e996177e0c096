#include "terminal/columns.h"

#include <gtest/gtest.h>

#include <random>

#include "terminal/table.h"

namespace watchdog::monitor {
namespace {

TEST(Columns, are_those_that_a_terminal_uses) {
  const std::pair<const char*, std::size_t> rows[] = {
      {"", 0},     {"plain", 5}, {"\x1b[1;31mstuck\x1b[0m", 5},
      {"修复", 4}, {"أصلح", 4},  {"e\u0301", 1},
      {"🧪", 2}, {"–…→", 3},   {"\xff", 1}};
  for (const auto& [text, columns] : rows) EXPECT_EQ(columns_of(text), columns) << text;
}

TEST(Columns, a_beginning_never_ends_within_a_character) {
  EXPECT_EQ(first_columns("修复结账", 5), "修复");
  EXPECT_EQ(first_columns("ab🧪c", 3), "ab");
  EXPECT_EQ(first_columns("\x1b[32mab\x1b[0m", 2), "\x1b[32mab\x1b[0m");
}

TEST(Columns, a_line_is_broken_at_blanks_and_indented) {
  EXPECT_EQ(broken_line("  reason  one two three", 15), "  reason  one\n      two three");
  EXPECT_EQ(broken_line("short", 15), "short");
  EXPECT_EQ(broken_line("open http://127.0.0.1:3001/sessions/abc now", 20),
            "open\n    http://127.0.0.1:3001/sessions/abc\n    now");
}

TEST(Columns, no_part_is_wider_and_no_word_is_lost) {
  const unsigned seed = 7;
  std::mt19937 random(seed);
  const std::string words[] = {"a",    "reason",    "修复结账", "🧪",
                               "أصلح", "read_file", "→",        "limit"};
  for (int run = 0; run < 500; ++run) {
    std::string line(random() % 5, ' ');
    for (auto count = 1 + random() % 30; count > 0; --count) line += words[random() % 8] + " ";
    line.pop_back();
    const std::size_t width = 20 + random() % 80;
    const auto text = broken_line(line, width);
    std::string kept;
    for (std::size_t from = 0; from <= text.size();) {
      const auto to = std::min(text.find('\n', from), text.size());
      const auto part = text.substr(from, to - from);
      ASSERT_LE(columns_of(part), width) << "seed " << seed << ", run " << run;
      kept += (from == 0 ? part : " " + part.substr(part.find_first_not_of(' ')));
      from = to + 1;
    }
    ASSERT_EQ(kept, line) << "seed " << seed << ", run " << run;
  }
}

TEST(Columns, a_table_of_wide_characters_keeps_its_shape) {
  Table table({"STATE", "TITLE", "SESSION", "WHY"}, {1, 2}, Table::Last::wrapped);
  table.add({"idle", "修复结账模块并写测试并写测试并写测试", "831a82f5-4c1e-4b02-9d3a-5f0e1c2b3a4d",
             "The answer is complete"});
  table.add({"progressing", "أصلح الاختبارات 🧪 ثم اكتب تقريرا",
             std::string(128, 'l'), "Last progress: step"});
  for (const auto& row : table.lines(80))
    for (const auto& line : row) EXPECT_LE(columns_of(line), 80U) << line;
}

}  // namespace
}  // namespace watchdog::monitor
