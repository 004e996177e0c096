// The library's answers are the expected ones.
#include "codec/json_tree.h"

#include <gtest/gtest.h>

#include <random>

#include "codec/json.h"
#include "support/scenario.h"
#include "text/json_writer.h"

namespace watchdog {
namespace {

using nlohmann::json;

constexpr std::size_t values_max = 100;

const std::vector<std::string> ordinary{
    "{}",
    "[]",
    " [ ] ",
    "null",
    "\t[true,\r\nfalse , null]\n",
    R"({"kind":"state_change","type":"step","data":{"iteration":3,"b":[{}],"a":""}})",
    R"({"b":1,"a":2,"b":{"c":[]},"":0})",
    R"([0,-0,7,-12,18446744073709551615,-9223372036854775808])",
    R"([0.0,-0.0,1.5,-2.25e3,1E+2,1e-7,123456789.123456789,5e-324,1.7976931348623157e308])",
    R"("\"\\\/\b\f\n\r\t\u0000\u001f\u007f\u00e9\u20ac\ud83d\ude00")",
    "\"A long text whose bytes stand for themselves: ä, €, 😀 and \x7f, until\\nits end\"",
    "{\"\\u0061\\n\\f\": \"\\b\"}",
};

/// What the library has to decide: no JSON, or beyond a bound.
const std::vector<std::string> others{"",
                                      " ",
                                      "[",
                                      "[1,]",
                                      "[,1]",
                                      "[1 2]",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{a:1}",
                                      "[1]]",
                                      "01",
                                      "-",
                                      "+1",
                                      "1.",
                                      ".5",
                                      "1e",
                                      "1e+",
                                      "0x10",
                                      "nul",
                                      "truefalse",
                                      "NaN",
                                      "1e999",
                                      "1e-999",
                                      "18446744073709551616",
                                      "-9223372036854775809",
                                      "\"",
                                      "\"\\\"",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\u-123\"",
                                      "\"\\ud800\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\\udc00\"",
                                      "\"\t\"",
                                      "\"\xff\"",
                                      "\"\xc0\x80\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xe2\x82\"",
                                      "\xEF\xBB\xBF[]",
                                      "[1]//",
                                      "'a'"};

void expect_the_librarys(const std::string& text) {
  const auto tree = tree_of(text, values_max);
  if (!tree) return;
  const auto expected = json::parse(text, nullptr, false);
  ASSERT_FALSE(expected.is_discarded()) << text;
  ASSERT_EQ(*tree, expected) << text;
  ASSERT_EQ(tree->dump(), expected.dump()) << text;
  ASSERT_EQ(compact(*tree), expected.dump()) << text;
}

TEST(JsonTree, of_ordinary_texts_is_the_librarys) {
  for (const auto& text : ordinary) {
    EXPECT_TRUE(tree_of(text, values_max)) << text;
    expect_the_librarys(text);
  }
}

TEST(JsonTree, of_other_texts_is_left_to_the_library) {
  for (const auto& text : others) EXPECT_FALSE(tree_of(text, values_max)) << text;
  EXPECT_FALSE(tree_of(std::string("[1]\0", 4), values_max));
  EXPECT_TRUE(tree_of("[[1],2]", 4));
  EXPECT_FALSE(tree_of("[[1],2]", 3));
  const auto nested = [](int levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_TRUE(tree_of(nested(json_depth_max), values_max));
  EXPECT_FALSE(tree_of(nested(json_depth_max + 1), values_max));
}

TEST(JsonTree, of_damaged_texts_is_the_librarys_or_none) {
  std::mt19937 random(test::random_seed());
  constexpr std::string_view bytes = "\"\\/{}[]:,.-+eEu01d8 \n\x80\xe2tnull";
  for (int round = 0; round < 20'000; ++round) {
    auto text = ordinary[random() % ordinary.size()];
    for (auto edits = 1 + random() % 3; edits > 0; --edits) {
      const auto at = random() % text.size();
      const char byte = bytes[random() % bytes.size()];
      if (random() % 2 == 0) {
        text[at] = byte;
      } else if (random() % 2 == 0 || text.size() == 1) {
        text.insert(at, 1, byte);
      } else {
        text.erase(at, 1);
      }
    }
    expect_the_librarys(text);
    if (HasFatalFailure()) return;
  }
}

TEST(JsonTree, plain_bytes_end_at_the_first_that_is_not) {
  for (std::size_t size = 0; size < 20; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string text(size, 'x');
        text[at] = static_cast<char>(byte);
        const bool is_plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
        ASSERT_EQ(plain_json_bytes(text), is_plain ? size : at) << byte;
      }
    }
  }
}

}  // namespace
}  // namespace watchdog
