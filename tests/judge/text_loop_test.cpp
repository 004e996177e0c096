#include "judge/text_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "support/scenario.h"

namespace watchdog {
namespace {

std::string times(int count, std::string_view text) {
  std::string all;
  for (; count > 0; --count) all += text;
  return all;
}

/// "One word1 two", "One word2 two", ...: what `#` stands for is different every time.
std::string numbered(int count, std::string_view text) {
  std::string all;
  for (int i = 1; i <= count; ++i)
    for (const char c : text) all += c == '#' ? std::to_string(100 + i) : std::string(1, c);
  return all;
}

const std::string paragraph =
    "Let me think about this again, because the test still fails. The function gets a list, sorts "
    "it "
    "and gives back the first one. I should look at the place where it is called, then at what it "
    "does with an empty one. ";  // 40 words

struct Sample {
  const char* name;
  std::string text;
};
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest's name for it
void PrintTo(const Sample& sample, std::ostream* out) {
  *out << sample.name;
}
const auto name_of_sample = [](const auto& chosen) { return std::string(chosen.param.name); };

class RepeatedText : public testing::TestWithParam<Sample> {};
TEST_P(RepeatedText, hits) {
  EXPECT_TRUE(repeats_itself(GetParam().text));
}
TEST_P(RepeatedText, of_twice_the_length_hits_twice) {
  EXPECT_GE(hits_in(GetParam().text + "\nBut wait.\n" + GetParam().text), 2);
}

INSTANTIATE_TEST_SUITE_P(
    TextLoop, RepeatedText,
    testing::Values(
        Sample{"a_short_sentence", times(4, "I will now. ")},
        Sample{"in_any_case", "I will now. i WILL now. I will NOW. i will now. "},
        Sample{"with_other_blanks", "I will  now.\nI will now.\r\n\r\nI\twill now.   I will now."},
        Sample{"without_blanks_between", times(4, "I will now.")},
        Sample{"a_word", times(12, "wait ")}, Sample{"a_word_and_a_dot", times(12, "Wait. ")},
        Sample{"behind_prose", paragraph + times(4, "Let me check. ")},
        Sample{"sixteen_tokens",
               times(4,
                     "one two three four five six seven eight nine ten eleven twelve of the "
                     "sixteen . ")},
        Sample{"a_paragraph_of_40_words", times(10, paragraph)},
        Sample{"a_paragraph_with_two_endings",
               times(5, paragraph + "Yes. " + paragraph + "No, not yet. ")},
        Sample{"Chinese", times(4, "我将检查文件。")},
        Sample{"Japanese", times(4, "もう一度確認します。")},
        Sample{"Thai", times(4, "ฉันจะตรวจสอบ")}, Sample{"Russian", times(4, "Я проверю файл. ")},
        Sample{"a_Chinese_paragraph",
               times(10,
                     "我先看一下这个函数在哪里被调用，然后再决定怎么修改它的参数，最后运行测试。")},
        Sample{"a_syllable_without_end", times(700, "ha")},
        Sample{"an_exclamation_mark_without_end", times(401, "!")},
        Sample{"a_dash_without_end", times(2000, "-")},
        Sample{"a_box_line_without_end", times(401, "─")},
        Sample{"with_the_same_list_between", times(5, "Let me look:\n- a\n- b\n\n")},
        Sample{"with_the_same_code_between", times(5, "I will run this:\n```sh\nls\n```\n")},
        Sample{"behind_an_endless_list_item", "- " + paragraph + times(200, "Let me check. ")},
        Sample{"behind_a_fence", "```\nx\n```\n" + times(4, "I will now. ")},
        Sample{"behind_code_in_a_line", "```x``` is\n" + times(4, "I will now. ")},
        Sample{"behind_a_fence_in_a_list", "1. ```sh\n   ls\n   ```\n" + times(4, "I will now. ")},
        Sample{"behind_a_fence_in_a_quote", "> ```\n> ls\n> ```\n" + times(4, "I will now. ")},
        Sample{"behind_a_fence_in_a_fence", "````\n```\nx\n````\n" + times(4, "I will now. ")},
        Sample{"words_in_bold", times(4, "**I will now.**\n")},
        Sample{"lines_that_begin_with_a_number", times(4, "3 more to go\n")},
        Sample{"bytes_that_are_no_text", times(12, "\xff wait \xc3\n")}),
    name_of_sample);

class Prose : public testing::TestWithParam<Sample> {};
TEST_P(Prose, does_not_hit) {
  EXPECT_FALSE(repeats_itself(GetParam().text));
  TextLoop loop;
  loop.feed(GetParam().text);
  EXPECT_EQ(loop.repeated(), "");
}

INSTANTIATE_TEST_SUITE_P(
    TextLoop, Prose,
    testing::Values(
        Sample{"nothing", ""}, Sample{"white_space", times(10'000, " \n\t")},
        Sample{"zeros", std::string(10'000, '\0')}, Sample{"prose", paragraph},
        Sample{"three_sentences_alike", times(3, "I will now do it. ")},
        Sample{"eleven_words_alike", "It is " + times(11, "very ") + "good."},
        Sample{"a_chorus", times(3, paragraph + "And the river runs, oh the river runs.\n")},
        Sample{"other_numbers", numbered(50, "line # ")},
        Sample{
            "other_numbers_in_long_lines",
            numbered(50, "I looked at the next page of the results, which was number # of them. ")},
        Sample{"a_list_of_things_that_begin_alike",
               numbered(50, "projects/my-project/locations/europe-west/services/frontend-#, ")},
        Sample{"dots", "Contents " + times(100, ".") + " 5\n" + "Index " + times(100, ". ") + "9"},
        Sample{"laughter", "ha ha ha ha, hahahahahahahaha!!!!!!!!! 哈哈哈哈哈哈哈哈 "},
        Sample{"a_divider_of_boxes", times(80, "─") + "\n" + times(80, "═")},
        Sample{"dividers",
               times(20, times(80, "-") + "\n" + times(80, "=") + "\r\n" + times(80, "*") + "  \n" +
                             times(40, "_ ") + "\n" + times(40, "- ") + "\n===== =====\n" +
                             times(80, "#") + "\n")},
        Sample{"an_array_of_zeros", "[" + times(80, "0, ") + "0]"},
        Sample{"an_array_of_nulls", "{\"a\": [null, null, null, null, null, null, null]}"},
        Sample{"a_table_of_numbers", numbered(40, "1.0 0.0 0.0 #\n")},
        Sample{"JSON", numbered(40, R"({"id": #, "status": "active", "tags": [], "ok": true},)")},
        Sample{"minified_code", "var a=[0,0,0,0,0,0,0,0];for(;;){a.b();a.c();a.d();a.b()}}}})))"},
        Sample{"ASCII_art", times(4, "  /\\_/\\  \n ( o.o ) \n  > ^ <  \n")},
        Sample{"base64", "iVBORw0KGgoAAAANSUhEUgAA" + times(900, "A") + "BJRU5ErkJggg=="},
        Sample{"a_list", times(50, "- the same thing\n")},
        Sample{"an_indented_list", times(50, "   * the same thing\n")},
        Sample{"a_list_with_plus", times(50, "+ the same thing\n")},
        Sample{"a_numbered_list", times(50, "1. the same thing\n")},
        Sample{"a_list_with_brackets", times(50, "12) the same thing\n")},
        Sample{"a_table", times(50, "| a | b | c |\n|---|---|---|\n")},
        Sample{"headings", times(50, "### Result\n")}, Sample{"a_quote", times(50, "> so it is\n")},
        Sample{"headings_over_other_code",
               numbered(20, "Input:\n```\nx = #\n```\nOutput:\n```\n#\n```\n")},
        Sample{"a_fence", "```\n" + times(50, "x = 1\n") + "```\n"},
        Sample{"a_fence_with_tildes", "~~~ python\n" + times(50, "x = 1\n") + "~~~\n"},
        Sample{"a_fence_in_a_fence", "````\n```\n" + times(50, "x = 1\n```\n") + "````\n"},
        Sample{"a_fence_that_is_not_closed", "  ```cpp\n" + times(50, "x = 1;\n")},
        Sample{"a_fence_in_a_list", "- ```\n" + times(50, "x = 1\n") + "```\n"},
        Sample{"a_fence_in_a_quote", "> ```\n" + times(50, "> x = 1\n") + "> ```\n"}),
    name_of_sample);

TEST(TextLoop, the_hit_is_where_the_fourth_repeat_ends) {
  TextLoop loop;
  EXPECT_EQ(loop.feed("So, " + times(3, "I will now. ") + "I will now"), 0);
  EXPECT_EQ(loop.feed("."), 1);
  EXPECT_EQ(loop.repeated(), "I will now.");
  EXPECT_EQ(loop.feed(times(3, " I will now.")), 0) << "the second hit needs as much again";
  EXPECT_EQ(loop.feed(" I will now."), 1);
  EXPECT_EQ(loop.hits(), 2);
  loop.begin();
  EXPECT_EQ(loop.hits(), 0);
  EXPECT_EQ(loop.repeated(), "");
  EXPECT_EQ(loop.feed(times(3, "I will now. ")), 0);
}

TEST(TextLoop, repeated_text_is_shown_as_written_and_bounded) {
  const auto repeated = [](const std::string& text) {
    TextLoop loop;
    loop.feed(text + "\n");
    return std::string(loop.repeated());
  };
  EXPECT_EQ(repeated(times(4, "Let me\n  CHECK. ")), "Let me CHECK.");
  EXPECT_EQ(repeated(times(5, "I will run this:\n```\nls\n```\n")), "I will run this: …");
  EXPECT_EQ(repeated(times(4, "我将检查文件。")), "我将检查文件。");
  EXPECT_EQ(repeated(times(24, "€uro ")), "€uro");
  const std::string of_a_paragraph = repeated(times(10, paragraph));
  EXPECT_EQ(of_a_paragraph.size(), TokenRepetition::repeated_bytes_max);
  EXPECT_NE((paragraph + paragraph).find(of_a_paragraph), std::string::npos) << of_a_paragraph;
  const std::string of_characters =
      repeated(times(10, "一二三四五六七八九十，甲乙丙丁戊己庚辛壬癸。子丑寅卯"));
  EXPECT_EQ(of_characters.size(), 63U) << "no character is cut: " << of_characters;
}

using WordList = std::vector<std::string>;

template <class List>
const auto& any_of(std::mt19937& random, const List& list) {
  return list[random() % std::size(list)];
}

WordList random_words(std::mt19937& random, std::size_t count) {
  WordList words(count);
  for (auto& word : words)
    for (auto letters = 2 + random() % 9; letters > 0; --letters)
      word += static_cast<char>('a' + random() % 26);
  return words;
}

/// Sentences, with lists, code, tables, dividers and headings among them.
std::string random_prose(std::mt19937& random, const WordList& vocabulary, int lines) {
  const std::string marks[] = {"", "", "", "", ",", ".", "!", ": ", " -", "..."};
  const std::string blocks[] = {times(30, "- item\n"), "```\n" + times(30, "x = 1\n") + "```\n",
                                times(30, "| a |\n"), times(30, "-----\n"), "# Title\n\n"};
  std::string text;
  for (; lines > 0; --lines) {
    for (auto words = 1 + random() % 30; words > 0; --words)
      text += any_of(random, vocabulary) + any_of(random, marks) + " ";
    text += '\n';
    if (random() % 4 == 0) text += any_of(random, blocks);
  }
  return text;
}

TEST(TextLoop, random_prose_never_hits) {
  std::mt19937 random(test::random_seed());
  for (int i = 0; i < test::repetitions(3'000); ++i) {
    const auto text = random_prose(random, random_words(random, 100), 20);
    ASSERT_FALSE(repeats_itself(text)) << text;
  }
}

TEST(TextLoop, any_unit_of_1_to_16_tokens_hits_within_4_repeats_or_12_words) {
  std::mt19937 random(test::random_seed());
  const std::string marks[] = {"", "", "", ".", ",", "?"};
  for (int i = 0; i < test::repetitions(5'000); ++i) {
    const auto vocabulary = random_words(random, 100);
    std::string unit;
    int words = 0;
    for (int left = 1 + static_cast<int>(random() % TokenRepetition::period_max); left > 0;
         --left) {
      unit += any_of(random, vocabulary);
      ++words;
      const auto& mark = any_of(random, marks);
      if (left == 1 || mark.empty()) {
        unit += random() % 5 == 0 ? '\n' : ' ';
      } else {
        unit += mark + " ";
        --left;
      }
    }
    const int repeats =
        std::max(TokenRepetition::repeats_min, (TokenRepetition::words_min + words - 1) / words);
    TextLoop loop;
    loop.feed(random_prose(random, vocabulary, 2));
    ASSERT_EQ(loop.hits(), 0);
    loop.feed(times(repeats, unit));
    ASSERT_EQ(loop.hits(), 1) << repeats << " times " << unit;
    loop.feed(times(repeats - 2, unit));
    ASSERT_EQ(loop.hits(), 1);
    loop.feed(times(2, unit));
    ASSERT_EQ(loop.hits(), 2);
  }
}

TEST(TextLoop, any_longer_unit_of_up_to_250_bytes_hits_within_11_repeats) {
  std::mt19937 random(test::random_seed());
  for (int i = 0; i < test::repetitions(3'000); ++i) {
    const auto vocabulary = random_words(random, 100);
    std::string unit;
    const auto bytes = TokenRepetition::chunk_bytes + random() % 200;
    for (;;) {
      const auto& word = any_of(random, vocabulary);
      if (unit.size() + word.size() + 1 > bytes) break;
      unit += word + " ";
    }
    const auto before = random_prose(random, vocabulary, 5);
    ASSERT_TRUE(repeats_itself(before + times(11, unit))) << unit;
    ASSERT_GE(hits_in(before + times(22, unit)), 2) << unit;
  }
}

/// Offsets behind which hits were completed, read off byte by byte.
std::vector<std::size_t> hits_byte_by_byte(std::string_view text) {
  TextLoop loop;
  std::vector<std::size_t> offsets;
  for (std::size_t i = 0; i < text.size(); ++i)
    for (int hits = loop.feed(text.substr(i, 1)); hits > 0; --hits) offsets.push_back(i + 1);
  return offsets;
}

TEST(TextLoop, how_the_text_is_cut_changes_nothing) {
  std::mt19937 random(test::random_seed());
  const std::string pieces[] = {"I will now. ",
                                "我将检查。",
                                "é",
                                "ab ",
                                "- ",
                                "* * *\n",
                                "---\n",
                                "```",
                                "~~~\n",
                                "\n",
                                "`",
                                "# ",
                                "| a |\n",
                                "> ",
                                "12. ",
                                "1)",
                                "\r\n",
                                "=",
                                "\xff",
                                "\xe6\x88",
                                std::string(1, '\0'),
                                "─",
                                " ",
                                "!"};
  std::size_t hits = 0;
  for (int i = 0; i < test::repetitions(3'000); ++i) {
    std::string text;
    for (auto left = random() % 12; left > 0; --left)
      text += times(1 << random() % 8, any_of(random, pieces));
    const auto expected = hits_byte_by_byte(text);
    hits += expected.size();
    TextLoop loop;
    const auto longest = 1 + random() % 100;
    for (std::size_t at = 0; at < text.size();) {
      const auto bytes = random() % (longest + 1);
      loop.feed(std::string_view(text).substr(at, bytes));
      at = std::min(at + bytes, text.size());
      const auto until = std::ranges::upper_bound(expected, at) - expected.begin();
      ASSERT_EQ(loop.hits(), until) << "up to " << at << " of " << text;
    }
  }
  EXPECT_GT(hits, 0U);
}

/// WordList behind which a short unit was repeated often enough, by looking at all of them.
std::vector<std::size_t> hits_by_looking(const std::vector<char>& words) {
  std::vector<std::size_t> hits;
  std::size_t from = 0;
  for (std::size_t end = 1; end <= words.size(); ++end) {
    for (std::size_t period = 1; period <= TokenRepetition::period_max; ++period) {
      const std::size_t length = std::max<std::size_t>(4 * period, TokenRepetition::words_min);
      if (end - from < length) continue;
      const std::span tail(words.data() + end - length, length);
      if (!std::equal(tail.begin() + static_cast<std::ptrdiff_t>(period), tail.end(), tail.begin()))
        continue;
      hits.push_back(end);
      from = end;
      break;
    }
  }
  return hits;
}

TEST(TextLoop, short_units_are_found_where_looking_at_all_of_them_finds_them) {
  std::mt19937 random(test::random_seed());
  std::size_t hits = 0;
  for (int i = 0; i < test::repetitions(50'000); ++i) {
    std::vector<char> words;
    const auto period = 1 + random() % 8;
    while (words.size() < 33)  // more of them would be a long unit
      words.push_back(words.size() < period || random() % 20 == 0
                          ? static_cast<char>('a' + random() % 3)
                          : words[words.size() - period]);
    const auto expected = hits_by_looking(words);
    hits += expected.size();
    std::string text;
    for (const char word : words) (text += word) += ' ';
    std::vector<std::size_t> found;
    for (const auto offset : hits_byte_by_byte(text)) found.push_back(offset / 2);
    ASSERT_EQ(found, expected) << text;
  }
  EXPECT_GT(hits, 0U);
}

TEST(TextLoop, megabytes_of_anything_do_no_harm) {
  const std::string pieces[] = {"a", "\n", "-",  "`",  "```\n", "\x80", "\xe6",
                                "é", "我", ". ", "- ", "1",     "a b "};
  for (const auto& piece : pieces) {
    TextLoop loop;
    const std::string text = times(10'000, piece);
    for (int i = 0; i < 20; ++i) loop.feed(text);
    EXPECT_LE(loop.hits(), 20 * text.size() / 24) << "12 words of one letter";
  }
}

}  // namespace
}  // namespace watchdog
