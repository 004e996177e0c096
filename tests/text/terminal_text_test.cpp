#include "watchdog/terminal_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace watchdog {
namespace {

using nlohmann::json;

std::string utf8(char32_t point) {
  const auto tail = [&](unsigned shift) {
    return static_cast<char>(0x80U | ((point >> shift) & 0x3FU));
  };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0U | (point >> 6U)), tail(0)};
  if (point < 0x10000) return {static_cast<char>(0xE0U | (point >> 12U)), tail(6), tail(0)};
  return {static_cast<char>(0xF0U | (point >> 18U)), tail(12), tail(6), tail(0)};
}

/// As Unicode lists them: Cc, bidirectional controls, separators, zero width, tags.
std::vector<char32_t> steering() {
  std::vector<char32_t> points{0x7F,   0xAD,   0x61C,  0x180E,  0x2028,  0x2029,  0x3164, 0x115F,
                               0xFEFF, 0xFFF9, 0xFFFB, 0xE0001, 0xE0020, 0xE007F, 0x1D173};
  const auto add = [&](char32_t first, char32_t last) {
    for (auto point = first; point <= last; ++point) points.push_back(point);
  };
  add(0x00, 0x08);
  add(0x0B, 0x1F);
  add(0x80, 0x9F);
  add(0x200B, 0x200F);
  add(0x202A, 0x202E);
  add(0x2060, 0x206F);
  return points;
}

TEST(TerminalText, a_character_that_controls_or_deceives_is_shown_by_its_number) {
  EXPECT_EQ(terminal_text("a\x1b[2Jb"), "a<U+001B>[2Jb");
  EXPECT_EQ(terminal_text("a\u009b2Jb\u202Ec\u2028"), "a<U+009B>2Jb<U+202E>c<U+2028>");
  EXPECT_EQ(terminal_text("\x9b\xff\xc2"), "<9B><FF><C2>") << "bytes that are not UTF-8";
  EXPECT_EQ(terminal_text(std::string("\0", 1) + utf8(0xE0041)), "<U+0000><U+E0041>");
  for (const auto point : steering()) {
    const auto raw = utf8(point);
    const auto text = terminal_text("x" + raw + "y");
    EXPECT_EQ(text.find(raw), std::string::npos) << std::hex << static_cast<unsigned>(point);
    EXPECT_TRUE(text.starts_with("x<U+") && text.ends_with(">y")) << text;
  }
}

TEST(TerminalText, ordinary_text_is_not_changed) {
  for (const std::string text : {"Grüße, 41 % – “fine” …", "日本語", "Привет", "שלום", "مرحبا",
                                 "\u2714\uFE0F \U0001F600", "a\nb\tc", ""}) {
    EXPECT_EQ(terminal_text(text), text);
    EXPECT_EQ(terminal_json(text), text);
  }
  EXPECT_EQ(terminal_line("a\nb\tc\r"), "a b c<U+000D>") << "no text forges a line";
}

TEST(TerminalText, json_means_the_same_and_holds_nothing_that_steers) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  auto points = steering();
  for (const char32_t plain : {U'a', U'"', U'\\', U'\n', U'\t', U'ü', U'日', U'\U0001F600'})
    points.push_back(plain);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int count = 0; count < 20; ++count) text += utf8(points[random() % points.size()]);
    const json value{{"text", text}, {text, 1}};
    const auto safe = terminal_json(value.dump(round % 2 == 0 ? -1 : 2));
    EXPECT_EQ(json::parse(safe), value);
    EXPECT_EQ(terminal_text(safe), safe) << "there was nothing left to replace";
  }
  EXPECT_EQ(terminal_json("{\r\n\"a\":\"\x9b\"}"), "{ \n\"a\":\"\\ufffd\"}");
}

}  // namespace
}  // namespace watchdog
