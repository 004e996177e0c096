#include "proxy/connection/json_members.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <random>

#include "support/scenario.h"

namespace watchdog::monitor {
namespace {

TEST(JsonMembers, AreFoundWhereverTheyStand) {
  const std::string_view body =
      R"( { "a" : [1,{"model":"inner"}], "model" : "llama \"3\"", "stream":true,"n":-1.5e3 , "o":{"stream":false} } )";
  EXPECT_EQ(member_of(body, "model"), R"("llama \"3\"")");
  EXPECT_EQ(string_in(member_of(body, "model")), "llama \"3\"");
  EXPECT_EQ(flag_in(member_of(body, "stream")), true);
  EXPECT_EQ(member_of(body, "n"), "-1.5e3");
  EXPECT_EQ(member_of(body, "o"), R"({"stream":false})");
  EXPECT_EQ(member_of(body, "inner"), "");
}

TEST(JsonMembers, OfTwoOfOneNameTheLastCounts) {
  EXPECT_EQ(member_of(R"({"a":1,"a":2})", "a"), "2");
}

TEST(JsonMembers, AreNotFoundInWhatIsNoWholeObject) {
  for (const std::string_view text :
       {"", " ", "[]", "1", "\"model\"", "{", "{\"model\"", "{\"model\":", "{\"model\":\"x",
        "{\"model\":\"x\"", "{\"model\":\"x\",", "{\"model\":\"x\",}", "{\"model\" \"x\"}",
        "{model:1}", "{\"model\":}", "{\"model\":\"x\\\"}", "{\"model\":[1}",
        "{\"a\":{,\"model\":1"}) {
    EXPECT_EQ(member_of(text, "model"), "") << text;
  }
}

TEST(JsonMembers, OfABeginningTheCompleteOnesAreFound) {
  const std::string whole =
      R"({"messages":[{"model":"inner"}],"model":"m\"1","stream":true,"seed":12,"o":{"a":1} })";
  const std::array<std::string_view, 4> names{"model", "stream", "seed", "o"};
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const auto text = std::string_view(whole).substr(0, size);
    std::array<std::string_view, 4> found;
    EXPECT_EQ(find_first_members(text, names, found), size > 0);
    const auto came = [&](std::string_view value) {
      const auto at = whole.find(value);
      return at + value.size() < size ? value : std::string_view();
    };
    EXPECT_EQ(found[0], came(R"("m\"1")")) << text;
    EXPECT_EQ(found[1], came("true")) << text;
    EXPECT_EQ(found[2], came("12")) << text;
    EXPECT_EQ(found[3], came(R"({"a":1})")) << text;
  }
  std::array<std::string_view, 4> found;
  EXPECT_FALSE(find_first_members(R"(["model","m"])", names, found));
}

TEST(JsonMembers, AMemberIsAddedInFront) {
  EXPECT_EQ(with_member(R"( {"a":1})", R"("b":2)"), R"( {"b":2,"a":1})");
  EXPECT_EQ(with_member("{ }", R"("b":2)"), R"({"b":2 })");
}

TEST(JsonMembers, CountsAreWholeAndBounded) {
  EXPECT_EQ(count_in("41216"), 41'216);
  EXPECT_FALSE(count_in("-1"));
  EXPECT_FALSE(count_in("99999999999999999999"));
  EXPECT_FALSE(count_in("\"1\""));
  EXPECT_EQ(number_in("0.25"), 0.25);
  EXPECT_EQ(number_in("-1"), -1);
  EXPECT_FALSE(number_in("null"));
  EXPECT_FALSE(number_in("1e999"));
}

/// A value of any type, some of them with brackets and quotes in their texts.
nlohmann::json some_value(std::mt19937_64& random, int depth) {
  switch (std::uniform_int_distribution<int>(0, depth > 3 ? 4 : 6)(random)) {
    case 0:
      return nullptr;
    case 1:
      return true;
    case 2:
      return static_cast<std::int64_t>(random() % 100'000);
    case 3:
      return std::string(R"(a "quoted" \ {bracket] , : )") + static_cast<char>('a' + random() % 26);
    case 4:
      return 0.5;
    case 5: {
      auto list = nlohmann::json::array();
      for (auto left = random() % 4; left > 0; --left)
        list.push_back(some_value(random, depth + 1));
      return list;
    }
    default: {
      auto object = nlohmann::json::object();
      for (auto left = random() % 4; left > 0; --left)
        object[std::string(1, static_cast<char>('a' + random() % 6))] =
            some_value(random, depth + 1);
      return object;
    }
  }
}

TEST(JsonMembers, SayOfAnyObjectWhatAParserSays) {
  std::mt19937_64 random(test::random_seed());
  for (int run = test::repetitions(2'000); run > 0; --run) {
    auto object = nlohmann::json::object();
    for (auto left = random() % 6; left > 0; --left)
      object[std::string(1, static_cast<char>('a' + random() % 6))] = some_value(random, 0);
    const auto text = object.dump(run % 3 == 0 ? 2 : -1);
    for (const std::string name : {"a", "b", "c", "d", "e", "f"}) {
      const auto found = member_of(text, name);
      ASSERT_EQ(found.empty(), !object.contains(name)) << text;
      if (!found.empty()) {
        ASSERT_EQ(nlohmann::json::parse(found), object[name]) << text;
      }
    }
    // A text that is cut anywhere is not an object any more.
    const auto cut = text.substr(0, random() % text.size());
    ASSERT_EQ(member_of(cut, "a"), "") << cut;
    object["new"] = true;
    ASSERT_EQ(nlohmann::json::parse(with_member(text, "\"new\":true")), object) << text;
  }
}

}  // namespace
}  // namespace watchdog::monitor
