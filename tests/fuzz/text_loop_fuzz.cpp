// However a text is cut, the same hits are found at the same places, and no more than it has room
// for.

#include <algorithm>
#include <random>
#include <string_view>

#include "fuzz/fuzz.h"
#include "judge/text_loop.h"

using watchdog::TextLoop;
using watchdog::TokenRepetition;

std::vector<std::string> fuzz_seeds() {
  return {"I will now. I will now. I will now. I will now. ",
          "我将检查文件。我将检查文件。我将检查文件。我将检查文件。",
          "Text:\n- one\n* two\n1. three\n> four\n# five\n| six |\n---\n\n",
          "```cpp\nint x;\n```\n",
          "~~~~\n```\n~~~~\n",
          "1) ```\n   x\n   ```\n",
          "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!",
          "the quick brown fox jumps over the lazy dog and runs away ",
          "\xff\xc3\xe6\x88\x80 \r\n"};
}

void try_input(std::string_view text) {
  TextLoop loop;
  std::vector<std::size_t> hits;  // offsets, byte by byte
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int before = loop.hits();
    const int found = loop.feed(text.substr(i, 1));
    FUZZ_REQUIRE(found >= 0 && loop.hits() == before + found);
    FUZZ_REQUIRE(loop.repeated().size() <= TokenRepetition::repeated_bytes_max);
    FUZZ_REQUIRE(loop.repeated().empty() == (loop.hits() == 0));
    hits.insert(hits.end(), static_cast<std::size_t>(found), i);
  }
  FUZZ_REQUIRE(hits.size() * TokenRepetition::words_min <= text.size());
  const std::string repeated(loop.repeated());

  std::mt19937 random(static_cast<unsigned>(text.size()));
  loop.feed("```\n");  // must be forgotten
  loop.begin();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = random() % 64;
    loop.feed(text.substr(at, bytes));
    at = std::min(at + bytes, text.size());
    FUZZ_REQUIRE(loop.hits() == std::lower_bound(hits.begin(), hits.end(), at) - hits.begin());
  }
  FUZZ_REQUIRE(loop.repeated() == repeated);
  FUZZ_REQUIRE(watchdog::hits_in(text) - loop.hits() <= 1);  // the end completes one word
}
