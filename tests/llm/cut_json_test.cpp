#include "llm/cut_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "support/scenario.h"

namespace watchdog::test {
namespace {

using nlohmann::json;

TEST(CutJson, KeepsWhatIsCompleteAndTheBeginOfALastString) {
  struct Row {
    const char* beginning;
    const char* closed;
  };
  const Row rows[] = {
      {"", ""},
      {"  ", ""},
      {"\"a", ""},
      {"{", "{}"},
      {R"({"mod)", "{}"},
      {R"({"model")", "{}"},
      {R"({"model": )", "{}"},
      {R"({"model": "qw)", R"({"model": "qw"})"},
      {R"({"model": "qwen")", R"({"model": "qwen"})"},
      {R"({"model": "qwen", "str)", R"({"model": "qwen"})"},
      {R"({"n": 12)", "{}"},
      {R"({"n": 12,)", R"({"n": 12})"},
      {R"({"stream": tru)", "{}"},
      {R"({"a": [1, 2, {"b": [)", R"({"a": [1, 2, {"b": []}]})"},
      {R"({"a": {"b": "c\)", R"({"a": {"b": "c"}})"},
      {R"(["c\u12)", R"(["c"])"},
      {R"(["c\ud83d)", R"(["c"])"},
      {R"(["c\ud83d\ude)", R"(["c"])"},
      {R"(["c\ud83d\ude00)", R"(["c\ud83d\ude00"])"},
      {"[\"c\xC3", R"(["c"])"},
      {R"({"a": "\\", "b": "\"x)", R"({"a": "\\", "b": "\"x"})"},
      {R"({"a": 1} trailing)", R"({"a": 1})"},
  };
  for (const auto& row : rows) EXPECT_EQ(closed_json(row.beginning), row.closed) << row.beginning;
}

json some_value(std::mt19937_64& random, int depth) {
  switch (random() % (depth > 3 ? 5 : 7)) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return -static_cast<int>(random() % 1'000);
    case 3:
      return "text, \"quoted\" {[\\ \n é 😀";
    case 4:
      return 1.5e300;
    case 5: {
      json list = json::array();
      for (auto left = random() % 4; left > 0; --left)
        list.push_back(some_value(random, depth + 1));
      return list;
    }
    default: {
      json object = json::object();
      for (auto left = random() % 4; left > 0; --left)
        object["k\"" + std::to_string(random() % 9)] = some_value(random, depth + 1);
      return object;
    }
  }
}

TEST(CutJson, TheBeginningOfJsonIsJsonWhereverItBreaksOff) {
  std::mt19937_64 random(random_seed());
  for (int run = repetitions(100); run > 0; --run) {
    const json whole{{"a", some_value(random, 0)}, {"z", some_value(random, 0)}};
    const auto text = whole.dump(random() % 2 == 0 ? -1 : 2, ' ', random() % 2 == 0);
    for (std::size_t size = 1; size <= text.size(); ++size) {
      const auto parsed = json::parse(closed_json(text.substr(0, size)), nullptr, false);
      ASSERT_TRUE(parsed.is_object()) << text.substr(0, size);
      if (parsed.contains("z")) {
        ASSERT_EQ(parsed["a"], whole["a"]);
      }
    }
    EXPECT_EQ(json::parse(closed_json(text)), whole);
  }
}

}  // namespace
}  // namespace watchdog::test
