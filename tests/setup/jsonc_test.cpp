#include "setup/jsonc.h"

#include <gtest/gtest.h>

namespace watchdog::monitor {
namespace {

int line_of_mistake(std::string_view text) {
  const auto root = parse_jsonc(text);
  return root ? 0 : root.error().line;
}

TEST(Jsonc, reads_comments_trailing_commas_and_a_byte_order_mark) {
  const auto root = parse_jsonc("\xef\xbb\xbf// a\r\n{ /* b */ \"k\\u0041\": [1, \"x\",], }\n");
  ASSERT_TRUE(root);
  ASSERT_NE(root->find("kA"), nullptr);
  EXPECT_EQ(root->find("kA")->items.at(1).text, "x");
  EXPECT_EQ(root->find("k"), nullptr);
}

TEST(Jsonc, reads_the_last_of_equal_keys) {
  EXPECT_EQ(parse_jsonc(R"({"a": "first", "a": "last"})")->find("a")->text, "last");
}

TEST(Jsonc, a_text_without_a_value_is_nothing) {
  for (const auto* text : {"", " \n", "// only this", "/* and that */\n"})
    EXPECT_EQ(parse_jsonc(text)->kind, JsoncNode::Kind::nothing) << text;
}

TEST(Jsonc, a_mistake_has_its_line) {
  EXPECT_EQ(line_of_mistake("{\n \"a\": 1\n \"b\": 2\n}"), 3);
  EXPECT_EQ(line_of_mistake("{\n \"a\": wrong\n}"), 2);
  EXPECT_EQ(line_of_mistake("{\n\n 'a': 1}"), 3);
  EXPECT_EQ(line_of_mistake("{\"a\": \"no end\n}"), 1);
  EXPECT_EQ(line_of_mistake("{\n\"a\" 1}"), 2);
  EXPECT_EQ(line_of_mistake("{} {}"), 1);
  for (const auto* text : {"{", "[", "{\"a\"", "{\"a\":", "{\"a\":1", "[1,", "/* open", "/", "[,]",
                           "\"\\", "]", "nul"})
    EXPECT_NE(line_of_mistake(text), 0) << text;
  EXPECT_NE(line_of_mistake(std::string(100'000, '[')), 0);
}

TEST(Jsonc, an_item_goes_behind_the_comment_of_the_last_one) {
  const std::string text = "{\n    \"a\": 1 // of a\n}\n";
  const auto root = parse_jsonc(text);
  const auto more = with_item(text, *root, "\"b\": 2");
  EXPECT_EQ(more, "{\n    \"a\": 1, // of a\n    \"b\": 2\n}\n");
  EXPECT_EQ(without_item(more, *parse_jsonc(more), {1}), text);
}

TEST(Jsonc, a_trailing_comma_stays_trailing) {
  const std::string text = "{\r\n\t\"a\": 1,\r\n}";
  const auto more = with_item(text, *parse_jsonc(text), "\"b\": 2");
  EXPECT_EQ(more, "{\r\n\t\"a\": 1,\r\n\t\"b\": 2,\r\n}");
  EXPECT_EQ(without_item(more, *parse_jsonc(more), {1}), text);
}

TEST(Jsonc, an_erasure_does_not_extend_a_comment) {
  const std::string text = "[\n 1, // one\n 2 ]";
  const auto rest = without_item(text, *parse_jsonc(text), {1});
  EXPECT_TRUE(parse_jsonc(rest)) << rest;
}

}  // namespace
}  // namespace watchdog::monitor
