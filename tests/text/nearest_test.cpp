#include "text/nearest.h"

#include <gtest/gtest.h>

#include <random>

#include "watchdog/health.h"

namespace watchdog {
namespace {

const std::vector<std::string> commands{"status", "sessions", "watch", "wait", "man", "check"};

TEST(Nearest, a_slip_is_known_for_what_was_meant) {
  for (const auto& [given, meant] : {std::pair{"stauts", "status"},
                                     {"satus", "status"},
                                     {"statuss", "status"},
                                     {"chekc", "check"},
                                     {"amn", "man"},
                                     {"wiat", "wait"},
                                     {"seshions", "sessions"},
                                     {"status", "status"}})
    EXPECT_EQ(nearest(given, commands), meant) << given;
  for (const auto* other : {"", "x", "serve", "dashboard", "stuck?!"})
    EXPECT_EQ(nearest(other, commands), "") << other;
  EXPECT_EQ(nearest(std::string(100'000, 's'), commands), "");
}

TEST(Nearest, one_slip_in_a_word_never_hides_it) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto words = all_names<HealthKind>();
  for (int round = 0; round < 2'000; ++round) {
    const auto& word = words[random() % words.size()];
    auto slip = word;
    const auto at = random() % word.size();
    switch (random() % 4) {
      case 0:
        slip[at] = static_cast<char>('a' + random() % 26);
        break;
      case 1:
        slip.erase(at, 1);
        break;
      case 2:
        slip.insert(at, 1, static_cast<char>('a' + random() % 26));
        break;
      default:
        if (at > 0) std::swap(slip[at], slip[at - 1]);
    }
    if (slip.size() < 3) continue;
    const auto found = nearest(slip, words);
    EXPECT_EQ(found, word) << slip;
  }
}

TEST(Nearest, an_unknown_word_is_named_with_all_that_there_are) {
  EXPECT_EQ(unknown_word("letter", "c", {"a", "b"}), "unknown letter \"c\"; use one of: a, b");
  EXPECT_EQ(unknown_word("health", "stuk", {"stuck", "slow"}),
            "unknown health \"stuk\"; did you mean stuck? Use one of: stuck, slow");
  EXPECT_LT(unknown_word("health", std::string(100'000, 'x'), {"a"}).size(), 200U);
}

}  // namespace
}  // namespace watchdog
