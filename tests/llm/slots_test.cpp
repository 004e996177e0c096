// Which of a llama.cpp server's slots a check may use, and which server it is at all.

#include "llm/slots.h"

#include <gtest/gtest.h>

#include "support/model_replies.h"

namespace watchdog {
namespace {

using test::llama_props;
using test::llama_slot;

TEST(Slots, props_report_how_many_there_are) {
  const auto props = props_from(llama_props(4));
  ASSERT_TRUE(props);
  EXPECT_EQ(props->total_slots, 4);
  EXPECT_FALSE(props->is_sleeping);
  EXPECT_TRUE(props_from(llama_props(4, true))->is_sleeping);
  EXPECT_EQ(props_from(R"({"default_generation_settings":{}})")->total_slots, std::nullopt);
  EXPECT_EQ(props_from(R"({"total_slots":-1})")->total_slots, std::nullopt);
  for (const char* other : {"", "[]", "{}", R"({"version":"1"})", "<html>"})
    EXPECT_FALSE(props_from(other)) << other;
}

TEST(Slots, each_slot_reports_its_latest_task) {
  const auto slots =
      slots_from("[" + llama_slot(0, true, 17) + "," + llama_slot(1, false) + "," +
                 R"({"id":2,"is_processing":false,"id_task":-1,"next_token":{}})" + "]");
  ASSERT_TRUE(slots);
  ASSERT_EQ(slots->size(), 3U);
  EXPECT_TRUE((*slots)[0].is_processing);
  EXPECT_EQ((*slots)[0].task, 17);
  EXPECT_EQ((*slots)[0].seed, test::llama_no_seed);
  EXPECT_EQ((*slots)[1].seed, std::nullopt);
  EXPECT_EQ((*slots)[1].task, std::nullopt);
  EXPECT_EQ((*slots)[2].task, std::nullopt) << "as older servers have it";
  for (const char* other : {"", "{}", "[1]", R"([{"id":0}])", R"([{"id":-5,"is_processing":true}])",
                            R"({"error":{"code":501}})"})
    EXPECT_FALSE(slots_from(other)) << other;
}

TEST(Slots, a_clients_seeds_are_its_own_and_change) {
  CheckSeeds one(0xFFFF'FFFF);
  const CheckSeeds other(7);
  const auto first = one.next();
  EXPECT_NE(one.next(), first);
  for (int i = 0; i < 10'000; ++i) {
    const auto seed = one.next();
    ASSERT_TRUE(one.has(seed) && !other.has(seed));
    ASSERT_TRUE(seed > 0 && seed <= INT32_MAX) << "as every server can read it";
  }
  for (const std::int64_t theirs : {-1L, 0L, 42L, 123'456'789L, test::llama_no_seed})
    EXPECT_FALSE(one.has(theirs) || other.has(theirs)) << theirs;
}

TEST(Slots, only_what_holds_nobody_elses_prompt_is_free) {
  CheckSeeds own(1);
  const Slot unused{.id = 1};
  const Slot later_unused{.id = 2};
  const Slot agents{.id = 0, .task = 5, .seed = test::llama_no_seed};
  const Slot unreported{.id = 0, .task = 5};
  const Slot ours{.id = 4, .task = 7, .seed = own.next()};
  const Slot busy{.id = 3, .is_processing = true, .task = 9, .seed = own.next()};
  EXPECT_EQ(free_slot({}, own), std::nullopt);
  EXPECT_EQ(free_slot({agents, busy}, own), std::nullopt);
  EXPECT_EQ(free_slot({unreported}, own), std::nullopt);
  EXPECT_EQ(free_slot({agents, unused, later_unused}, own), 1) << "servers begin with the last";
  EXPECT_EQ(free_slot({agents, unused, ours}, own), 4) << "ours used it last";
  EXPECT_EQ(free_slot({ours}, CheckSeeds(2)), std::nullopt) << "somebody else's check";
  EXPECT_EQ(free_slot({busy}, own), std::nullopt);
  EXPECT_EQ(free_slot({Slot{.id = 0, .is_processing = true}}, own), std::nullopt);
}

TEST(Servers, each_is_known_by_what_it_answers) {
  const auto version = R"({"version":"0.30.1"})";
  EXPECT_EQ(server_of("/props", 200, "", llama_props(1)), ServerKind::llama_cpp);
  EXPECT_EQ(server_of("/props", 503, "llama.cpp", test::llama_loading), ServerKind::llama_cpp);
  EXPECT_EQ(server_of("/props", 401, "llama.cpp", "{}"), ServerKind::llama_cpp);
  EXPECT_EQ(server_of("/api/version", 200, "", version), ServerKind::ollama);
  EXPECT_EQ(server_of("/version", 200, "uvicorn", version), ServerKind::vllm);
  EXPECT_EQ(server_of("/version", 404, "uvicorn", version), ServerKind::unknown);
  EXPECT_EQ(server_of("/props", 200, "", version), ServerKind::unknown);
  EXPECT_EQ(server_of("/api/version", 200, "", R"({"error":"Unexpected endpoint"})"),
            ServerKind::unknown);
  EXPECT_EQ(server_of("/version", 200, "", "<html>"), ServerKind::unknown);
}

}  // namespace
}  // namespace watchdog
