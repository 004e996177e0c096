#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "codec/json.h"
#include "support/scenario.h"
#include "support/temp_dir.h"
#include "text/utf8.h"
#include "watchdog/artifact_store.h"

namespace watchdog::test {
namespace {

using nlohmann::ordered_json;

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  while (times-- > 0) all += text;
  return all;
}

std::string list_of(std::size_t items, const std::string& item = "1") {
  std::string text = "[";
  for (std::size_t i = 0; i < items; ++i) text.append(i == 0 ? "" : ",").append(item);
  return text + "]";
}

std::string object_of(std::size_t keys) {
  std::string text = "{";
  for (std::size_t i = 0; i < keys; ++i)
    text.append(i == 0 ? "" : ",").append("\"k" + std::to_string(i) + "\":" + std::to_string(i));
  return text + "}";
}

ordered_json parsed(const Output& output) {
  EXPECT_TRUE(is_json(output.text)) << output.text.substr(0, 2'000);
  return ordered_json::parse(output.text, nullptr, false);
}

// --- readable ----------------------------------------------------------------------------------

TEST(Readable, readable_text_is_not_changed) {
  for (const std::string text :
       {"", "plain", "two\nlines\n", "\ttab", "h\u00e9llo \u4e16\u754c \U0001F600", "\u200d joiner",
        "trailing  "})
    EXPECT_EQ(readable(text), text);
}

TEST(Readable, bytes_that_are_no_utf8_become_replacement_characters) {
  EXPECT_EQ(readable("a\xff"
                     "b"),
            "a\uFFFD"
            "b");
  EXPECT_EQ(readable("\xc3"), "\uFFFD");
  EXPECT_EQ(readable("\xe4\xb8"), "\uFFFD\uFFFD");
  EXPECT_EQ(readable("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");       // a surrogate
  EXPECT_EQ(readable("\xc0\xaf"), "\uFFFD\uFFFD");                 // a slash, too long
  EXPECT_EQ(readable("\xf4\x90\x80\x80"), repeated("\uFFFD", 4));  // above U+10FFFF
}

TEST(Readable, halves_of_characters_do_not_come_together_around_a_sequence) {
  EXPECT_EQ(readable("\xc3\x1b[31m\xa9"), "\uFFFD\uFFFD");
  EXPECT_EQ(readable("\x1b\x1b[31m[32mx"), "[32mx");
}

TEST(Readable, sequences_of_terminals_go) {
  EXPECT_EQ(readable("\x1b[1;31mred\x1b[0m"), "red");
  EXPECT_EQ(readable("\x1b[2J\x1b[H\x1b[?25lx"), "x");
  EXPECT_EQ(readable("\x1b]0;title\x07x"), "x");
  EXPECT_EQ(readable("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\"), "link");
  EXPECT_EQ(readable("\x1bPdevice\x1b\\x"), "x");
  EXPECT_EQ(readable("\x1b(Bx\x1b=y\x1b"
                     "7z"),
            "xyz");
  EXPECT_EQ(readable("\u009b31mred"), "red");  // the same in eight bits
  EXPECT_EQ(readable("\u009d0;title\u009cx"), "x");
  EXPECT_EQ(readable("x\x1b"), "x");
  EXPECT_EQ(readable("x\x1b["), "x");
  EXPECT_EQ(readable("x\x1b[31"), "x");
}

TEST(Readable, a_command_string_that_does_not_end_hides_nothing) {
  EXPECT_EQ(readable("\x1b]0;title\nall the rest"), "0;title\nall the rest");
  EXPECT_EQ(readable("\x1b]0;a\x1b]0;b\x1b[1mc"), "0;a0;bc");
  EXPECT_EQ(readable("\x1bPnever ends"), "never ends");
}

TEST(Readable, controls_go_and_what_was_struck_out_too) {
  EXPECT_EQ(readable(std::string("a\0b\0", 4)), "ab");
  EXPECT_EQ(readable("ding\a"), "ding");
  EXPECT_EQ(readable("N\bNA\bA"), "NA");
  EXPECT_EQ(readable("|\b/\b-\b\\\b"), "");
  EXPECT_EQ(readable("\u00e9\bx\n\b\by"), "x\ny");
  EXPECT_EQ(readable("page\ftwo"), "page\ntwo");
  EXPECT_EQ(readable("\x7f"), "");
}

TEST(Readable, of_lines_that_were_written_over_the_last_state_stays) {
  EXPECT_EQ(readable("10 %\r50 %\r100 %\ndone"), "100 %\ndone");
  EXPECT_EQ(readable("10 %\r50 %\r"), "50 %");
  EXPECT_EQ(readable("dos\r\nlines\r\n"), "dos\nlines\n");
  EXPECT_EQ(readable("\r\r\n\r"), "\n");
  EXPECT_EQ(readable("old\r\x1b[2Knew\x1b[0m\r\n"), "new\n");
}

TEST(Readable, is_idempotent_and_gives_utf8_for_any_bytes) {
  std::mt19937 random(random_seed());
  const std::vector<std::string> pieces = {"\x1b",
                                           "[",
                                           "]",
                                           "\r",
                                           "\n",
                                           "\b",
                                           "\a",
                                           "m",
                                           ";",
                                           "\\",
                                           "\xc2",
                                           "\x9b",
                                           "\x9c",
                                           "\xe2\x80\xa6",
                                           "\xf0\x9f",
                                           "P",
                                           std::string(1, '\0'),
                                           "x",
                                           "31"};
  for (int round = repetitions(200'000); round > 0; --round) {
    std::string raw;
    for (auto count = random() % 20; count > 0; --count)
      raw += random() % 4 == 0 ? std::string(1, static_cast<char>(random()))
                               : pieces[random() % pieces.size()];
    const auto text = readable(raw);
    ASSERT_TRUE(is_utf8(text));
    ASSERT_EQ(readable(text), text);
    ASSERT_LE(text.size(), raw.size() * 3);
    ASSERT_EQ(text.find_first_of(std::string_view("\0\x1b\r\b\a", 5)), std::string::npos);
  }
}

TEST(Readable, hostile_bytes_cost_no_more_than_others) {
  // Squares would take minutes.
  for (const std::string piece : {"\x1b]", "\x1b[", "\r", "\b", "\xc2\x9d", "\x1bP", "\xe2"})
    EXPECT_LE(readable(repeated(piece, 2'000'000)).size(), 6'000'000U);
}

// --- compacted: text ---------------------------------------------------------------------------

TEST(Compacted, twelve_thousand_characters_are_shown_and_one_more_is_cut) {
  for (const std::string_view character : {"x", "\u00e9", "\U0001F600"}) {
    const auto fits = repeated(character, 12'000);
    const auto shown = compacted(fits, {});
    EXPECT_EQ(shown.text, fits);
    EXPECT_FALSE(shown.truncation);

    const auto cut = compacted(fits + "y", {});
    EXPECT_LE(characters_in(cut.text), 12'000U);
    EXPECT_GT(characters_in(cut.text), 11'990U);
    EXPECT_TRUE(is_utf8(cut.text));
    ASSERT_TRUE(cut.truncation);
    EXPECT_EQ(cut.truncation->total, 12'001U);
    EXPECT_GT(cut.truncation->shown, 11'800U);
    EXPECT_LT(cut.truncation->shown, 12'000U);
  }
}

TEST(Compacted, the_mark_says_what_is_missing_and_how_to_get_it) {
  const auto cut =
      compacted(std::string(500'000, 'x'), {}, OutputShape::text, "Full output: art_3f2a9c.");
  const auto begin = cut.text.find('[');
  const auto mark = cut.text.substr(begin, cut.text.find(']') + 1 - begin);
  EXPECT_EQ(mark, "[truncated: " + std::to_string(cut.truncation->shown) +
                      " of 500000 chars shown (2 %). Full output: art_3f2a9c. Repeating the call "
                      "unchanged gives the same cut.]");
  EXPECT_EQ(cut.truncation->shown,
            static_cast<std::size_t>(std::ranges::count(cut.text, 'x')) - 0U);
  EXPECT_NE(cut.truncation->how.find("art_3f2a9c"), std::string::npos);
}

TEST(Compacted, both_ends_of_a_text_are_shown_and_of_shell_output_more_of_the_end) {
  const auto text = std::string(50'000, 'a') + std::string(50'000, 'z');
  const auto ends = [&](OutputShape shape) {
    const auto output = compacted(text, {}, shape).text;
    return std::pair(output.find("\n[truncated"), output.size() - output.rfind("cut.]\n") - 6);
  };
  const auto [head, tail] = ends(OutputShape::text);
  EXPECT_NEAR(static_cast<double>(head), static_cast<double>(tail), 1);
  const auto [shell_head, shell_tail] = ends(OutputShape::shell);
  EXPECT_NEAR(static_cast<double>(shell_head) * 4, static_cast<double>(shell_tail), 4);
}

TEST(Compacted, small_bounds_hold_too) {
  for (std::size_t chars = 0; chars < 400; ++chars) {
    const OutputLimits limits{.inline_chars = chars};
    for (const std::string& text : {repeated("\u00e9x", 300), list_of(500)}) {
      const auto cut = compacted(text, limits, OutputShape::shell, "See the log.");
      EXPECT_LE(characters_in(cut.text), chars);
      EXPECT_EQ(compacted(cut.text, limits, OutputShape::shell, "See the log.").text, cut.text);
      ASSERT_TRUE(cut.truncation);
    }
  }
}

// --- compacted: JSON ---------------------------------------------------------------------------

TEST(Compacted, json_at_its_limits_stays_as_it_is) {
  for (const std::string& text :
       {list_of(200), object_of(80), "\"" + std::string(3'000, 'x') + "\"",
        "{ \"a\" : [ " + list_of(50) + " , " + object_of(20) + " ] }", std::string("[[[[1]]]]"),
        std::string("[[[[[],{}]]]]"), std::string("  [1, 2]\n"), std::string("17")}) {
    const auto output = compacted(text, {});
    EXPECT_EQ(output.text, text);
    EXPECT_FALSE(output.truncation);
  }
}

TEST(Compacted, a_list_with_an_item_too_many_is_cut_and_says_so) {
  const auto output = compacted(list_of(201), {});
  const auto list = parsed(output);
  ASSERT_EQ(list.size(), 200U);
  EXPECT_EQ(list[198], 1);
  const auto mark = list[199].get<std::string>();
  EXPECT_TRUE(mark.starts_with("[… 2 more items] [truncated: ")) << mark;
  ASSERT_TRUE(output.truncation);
  EXPECT_NE(output.truncation->how.find("1 list"), std::string::npos) << output.truncation->how;

  const auto nested = parsed(compacted("{\"a\":" + list_of(51) + "}", {}));
  ASSERT_EQ(nested["a"].size(), 50U);
  EXPECT_EQ(nested["a"][49], "[… 2 more items]");
}

TEST(Compacted, the_entries_that_a_document_is_about_get_the_whole_limit) {
  const auto whole = "{\"entries\":" + list_of(200) + "}";
  EXPECT_EQ(compacted(whole, {}).text, whole);
  const auto entries = parsed(compacted("{\"a\":1, \"entries\" : " + list_of(201) + "}", {}));
  ASSERT_EQ(entries["entries"].size(), 200U);
  EXPECT_EQ(entries["entries"][199], "[… 2 more items]");
  // No other list does: below the first level, of another name, or beside it.
  const auto others =
      parsed(compacted("{\"entries\":[" + list_of(51) + "],\"x\":{\"entries\":" + list_of(51) +
                           "},\"entries2\":" + list_of(51) + ",\"a\":" + list_of(51) + "}",
                       {}));
  EXPECT_EQ(others["entries"][0].size(), 50U);
  EXPECT_EQ(others["x"]["entries"].size(), 50U);
  EXPECT_EQ(others["entries2"].size(), 50U);
  EXPECT_EQ(others["a"].size(), 50U);
}

TEST(Compacted, an_object_with_a_key_too_many_is_cut_and_says_so) {
  const auto object = parsed(compacted(object_of(81), {}));
  ASSERT_EQ(object.size(), 80U);
  EXPECT_EQ(object["k78"], 78);
  EXPECT_TRUE(object["…"].get<std::string>().starts_with("[… 2 more keys] [truncated: "));
  EXPECT_EQ(object.begin().key(), "k0") << "in their order";

  const auto nested = parsed(compacted("[" + object_of(21) + "]", {}));
  ASSERT_EQ(nested[0].size(), 20U);
  EXPECT_EQ(nested[0]["…"], "[… 2 more keys]");

  auto text = object_of(30);
  text.replace(text.find("k1"), 2, "…");
  const auto compact = parsed(compacted("[" + text + "]", {}));
  EXPECT_EQ(compact[0]["…"], 1);
  EXPECT_EQ(compact[0]["……"], "[… 11 more keys]");
}

TEST(Compacted, a_string_with_a_character_too_many_is_cut_and_says_so) {
  for (const std::string character : {"x", "\u00e9", "\\u00e9", "\\ud83d\\ude00", "\\n", "\\\\"}) {
    const auto whole = "[\"" + repeated(character, 3'000) + "\"]";
    OutputLimits limits{.inline_chars = 100'000};
    EXPECT_EQ(compacted(whole, limits).text, whole);
    const auto output = compacted("[\"" + repeated(character, 3'488) + "\"]", limits);
    const auto text = parsed(output)[0].get<std::string>();
    EXPECT_EQ(characters_in(text), 3'000U);
    EXPECT_TRUE(text.ends_with("… [506 more chars]")) << text.substr(text.size() - 40);
    EXPECT_TRUE(output.text.starts_with("[\"" + repeated(character, 2'982) + "… [506"));
  }
  const auto root = compacted("\"" + std::string(5'000, 'x') + "\"", {}, OutputShape::text, "Ask.");
  EXPECT_EQ(characters_in(parsed(root).get<std::string>()), 3'000U);
  EXPECT_NE(root.text.find("of 5002 chars shown (5"), std::string::npos);
}

TEST(Compacted, a_value_that_is_nested_too_deep_becomes_a_string) {
  const auto output = compacted(R"([[[[[1,2],{"a":[1]},7,[],{}]]]])", {});
  const auto list = parsed(output);
  EXPECT_EQ(list[0][0][0].dump(), R"(["[… a list of 2 items]","[… an object of 1 key]",7,[],{}])");
  ASSERT_TRUE(output.truncation);
  EXPECT_NE(output.truncation->how.find("deeper than 4"), std::string::npos);
  const std::string deep = repeated("[", 64) + repeated("]", 64);
  EXPECT_TRUE(is_json(compacted(deep, {}).text));
  const std::string deeper = repeated("[", 65) + repeated("]", 65);
  EXPECT_EQ(compacted(deeper, {}).text, deeper) << "is a text";
}

TEST(Compacted, numbers_are_not_touched) {
  const std::string numbers =
      "12345678901234567890123,1.10,-0,1E5,-0.0,1e-300,0.1000000000000000055";
  const auto output = compacted("[" + list_of(300) + "," + numbers + "]", {});
  EXPECT_TRUE(output.truncation);
  EXPECT_NE(output.text.find(numbers), std::string::npos);
  EXPECT_EQ(compacted("[1e400,1]", {}).text, "[1e400,1]");
}

TEST(Compacted, a_document_that_is_still_too_long_is_cut_as_a_text) {
  const auto text = list_of(100, "\"" + std::string(1'000, 'x') + "\"");
  const auto output = compacted(text, {});
  EXPECT_LE(characters_in(output.text), 12'000U);
  EXPECT_FALSE(is_json(output.text));
  EXPECT_NE(output.text.find("[truncated: "), std::string::npos);
  EXPECT_EQ(output.truncation->total, text.size());
}

TEST(Compacted, white_space_is_given_up_first) {
  std::string text = "[";
  for (int i = 0; i < 150; ++i)
    text += std::string(i == 0 ? "" : ",") + std::string(200, ' ') + "1";
  const auto output = compacted(text + "]", {});
  EXPECT_EQ(output.text, list_of(150));
  EXPECT_FALSE(output.truncation);
}

/// A random document, written in a random manner.
void write_random(std::mt19937& random, std::string& out, int depth) {
  const auto space = [&] { out.append(random() % 8 == 0 ? random() % 3 : 0, ' '); };
  const auto string = [&] {
    static const std::vector<std::string> pieces = {
        "a", "\u00e9", "\U0001F600", "\\n", "\\\"", "\\\\", "\\ud83d\\ude00", "\\u00e9", "…", "]"};
    out += '"';
    for (auto count = random() % (random() % 6 == 0 ? 80 : 6); count > 0; --count)
      out += pieces[random() % pieces.size()];
    out += '"';
  };
  space();
  const auto kind = random() % (depth > 0 ? 9 : 5);
  if (kind < 2) {
    string();
  } else if (kind < 5) {
    static const std::vector<std::string> scalars = {
        "0", "-0", "1.10", "12345678901234567890123", "true", "null", "1E+2"};
    out += scalars[random() % scalars.size()];
  } else {
    const bool object = kind < 7;
    out += object ? '{' : '[';
    for (auto count = random() % 14; count > 0; --count) {
      space();
      if (object) {
        string();
        out += ':';
      }
      write_random(random, out, depth - 1);
      if (count > 1) out += ',';
    }
    out += object ? '}' : ']';
  }
  space();
}

TEST(Compacted, any_document_stays_one_within_limits_and_a_second_time_changes_nothing) {
  std::mt19937 random(random_seed());
  for (int round = repetitions(10'000); round > 0; --round) {
    std::string text;
    write_random(random, text, 5);
    const OutputLimits limits{.inline_chars = 1 + random() % 3'000,
                              .string_chars = 1 + random() % 60,
                              .list_items = 1 + random() % 12,
                              .object_keys = 1 + random() % 12,
                              .depth = 1 + random() % 6};
    const std::string rest = random() % 2 == 0 ? "" : "Ask again.";
    ASSERT_TRUE(is_json(text)) << text;
    const auto once = compacted(text, limits, OutputShape::text, rest);
    ASSERT_TRUE(is_utf8(once.text));
    ASSERT_LE(characters_in(once.text), limits.inline_chars) << text;
    const auto again = compacted(once.text, limits, OutputShape::text, rest);
    ASSERT_EQ(again.text, once.text) << text.substr(0, 2'000);
    ASSERT_FALSE(again.truncation) << once.text << again.truncation->how;
    if (!once.truncation) {
      ASSERT_EQ(ordered_json::parse(once.text), ordered_json::parse(text));
      continue;
    }
    EXPECT_LE(once.truncation->shown, once.truncation->total);
    OutputLimits roomy = limits;
    roomy.inline_chars = SIZE_MAX;
    const auto document = compacted(text, roomy, OutputShape::text, rest);
    ASSERT_TRUE(is_json(document.text)) << document.text;
    ASSERT_EQ(compacted(document.text, roomy, OutputShape::text, rest).text, document.text) << text;
  }
}

TEST(Compacted, any_text_is_within_limits_and_a_second_time_changes_nothing) {
  std::mt19937 random(random_seed());
  const std::vector<std::string> pieces = {"a", "\u00e9", "\U0001F600", "\n",        "[", "]", "\"",
                                           "…", "\x80",   "\xf0\x9f",   "{\"a\":1}", ",", "1"};
  for (int round = repetitions(40'000); round > 0; --round) {
    std::string text;
    for (auto count = random() % 200; count > 0; --count) text += pieces[random() % pieces.size()];
    const OutputLimits limits{.inline_chars = random() % 200,
                              .string_chars = random() % 20,
                              .list_items = random() % 6,
                              .object_keys = random() % 6,
                              .depth = random() % 4};
    const auto shape = random() % 2 == 0 ? OutputShape::text : OutputShape::shell;
    const auto once = compacted(text, limits, shape);
    ASSERT_TRUE(is_utf8(once.text));
    ASSERT_LE(characters_in(once.text), limits.inline_chars);
    ASSERT_EQ(compacted(once.text, limits, shape).text, once.text) << text;
  }
}

// --- presented ---------------------------------------------------------------------------------

class Presented : public testing::Test {
 protected:
  TempDir dir;
  ArtifactStore store = std::move(*ArtifactStore::open(dir / "artifacts", "run"));

  [[nodiscard]] std::string kept(const Output& output) const {
    return output.artifact ? store.read(output.artifact->handle, 0)->bytes : "nothing";
  }
};

TEST(PresentedText, both_ends_of_a_huge_output_are_shown_and_all_of_it_is_counted) {
  const std::string flood = "begin " + repeated("\xff", 40'000'000) + " end";
  const auto output = presented(flood, {}, nullptr, OutputShape::shell);
  EXPECT_TRUE(is_utf8(output.text));
  EXPECT_LE(characters_in(output.text), 12'000U);
  EXPECT_EQ(output.text.rfind("begin ", 0), 0U);
  EXPECT_TRUE(output.text.ends_with(" end"));
  ASSERT_TRUE(output.truncation);
  EXPECT_EQ(output.truncation->total, 40'000'010U);
  EXPECT_FALSE(output.artifact_error.empty());
  const auto nothing = presented(std::string(20'000'000, '\0'), {}, nullptr);
  ASSERT_TRUE(nothing.truncation);
  EXPECT_EQ(nothing.text, "\n");
}

TEST_F(Presented, a_text_that_fits_is_shown_and_not_stored) {
  const auto output = presented("\x1b[1mfine\x1b[0m\r\n", {}, &store);
  EXPECT_EQ(output.text, "fine\n");
  EXPECT_FALSE(output.artifact);
  EXPECT_FALSE(output.truncation);
  EXPECT_EQ(output.artifact_error, "");
  EXPECT_FALSE(presented(std::string(12'000, 'x'), {}, &store).artifact);
}

TEST_F(Presented, the_artifact_holds_all_of_it_as_it_came_but_its_secrets) {
  const auto with = [](const std::string& value) {
    return "\x1b[1mbegin\x1b[0m \xff password=" + value + " " + std::string(20'000, 'x') + "\n1\r2";
  };
  const auto output = presented(with("hunter2hunter2"), {}, &store);
  EXPECT_EQ(kept(output), with("[redacted]"));
  EXPECT_EQ(output.artifact->media_type, "application/octet-stream");
  EXPECT_NE(output.text.find("hunter2hunter2"), std::string::npos) << "the model reads it as it is";
  EXPECT_LE(characters_in(output.text), 12'000U);
  ASSERT_TRUE(output.truncation);
  EXPECT_NE(output.text.find("Full output: " + output.artifact->handle +
                             "; read it with artifact_read(id, offset, limit)."),
            std::string::npos);
}

TEST_F(Presented, a_cut_document_is_stored_whole_even_if_it_was_short) {
  const auto raw = list_of(201);
  const auto output = presented(raw, {}, &store);
  EXPECT_EQ(kept(output), raw);
  EXPECT_EQ(output.artifact->media_type, "application/json");
  EXPECT_NE(parsed(output)[199].get<std::string>().find(output.artifact->handle),
            std::string::npos);
}

TEST_F(Presented, a_text_that_becomes_short_when_made_readable_is_stored_and_not_cut) {
  const auto raw = repeated("\x1b[1mx\x1b[0m", 2'000);
  const auto output = presented(raw, {}, &store);
  EXPECT_EQ(output.text, std::string(2'000, 'x'));
  EXPECT_FALSE(output.truncation);
  EXPECT_EQ(kept(output), raw);
}

TEST_F(Presented, a_secret_is_not_cut_in_half) {
  const auto secret = "password=" + std::string(40, 's');
  for (std::size_t at = 5'800; at < 5'960; at += 7) {
    const auto raw = repeated("x", at) + " " + secret + " " + std::string(20'000, 'y');
    const auto text = presented(raw, {}, &store).text;
    EXPECT_TRUE(text.find("sss") == std::string::npos || text.find(secret) != std::string::npos)
        << at;
  }
}

TEST_F(Presented, where_it_cannot_be_kept_the_output_is_cut_all_the_same) {
  const std::string raw(20'000, 'x');
  auto output = presented(raw, {}, nullptr);
  EXPECT_LE(characters_in(output.text), 12'000U);
  EXPECT_FALSE(output.artifact);
  EXPECT_EQ(output.artifact_error, "there is no artifact store");
  EXPECT_NE(output.text.find("The rest was not kept: there is no artifact store."),
            std::string::npos);

  std::filesystem::remove_all(dir / "artifacts");
  output = presented(raw, {}, &store);
  EXPECT_LE(characters_in(output.text), 12'000U);
  EXPECT_FALSE(output.artifact);
  EXPECT_NE(output.artifact_error, "");
  EXPECT_NE(output.text.find("The rest was not kept: "), std::string::npos);
}

}  // namespace
}  // namespace watchdog::test
