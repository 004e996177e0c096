// The reports of servers about themselves. Their bytes may be anything.

#include "llm/server_probe.h"

#include <gtest/gtest.h>

#include <random>

#include "support/model_replies.h"
#include "support/scenario.h"

namespace watchdog {
namespace {

constexpr std::string_view llama_page =
    "# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.\n"
    "# TYPE llamacpp:prompt_tokens_total counter\n"
    "llamacpp:prompt_tokens_total 4096\n"
    "llamacpp:tokens_predicted_total 1.2e+03\n"
    "llamacpp:n_decode_total 17\r\n"
    "llamacpp:requests_processing 2\n"
    "llamacpp:requests_deferred 1\n"
    "llamacpp:prompt_tokens_seconds nan\n";

TEST(ServerProbe, props_report_context_model_and_build) {
  const auto props = props_from(test::llama_props(4));
  ASSERT_TRUE(props);
  EXPECT_EQ(props->context, 4'096);
  EXPECT_EQ(props->model, "/models/a.gguf");
  EXPECT_EQ(props->build, "b10573-3f545be");
}

TEST(ServerProbe, a_slots_next_token_is_an_array_or_an_object_or_missing) {
  const auto slots = slot_samples_from(
      R"([{"id":0,"is_processing":true,"id_task":7,"n_prompt_tokens":900,)"
      R"("n_prompt_tokens_processed":512,"next_token":[{"n_decoded":3}]},)"
      R"({"id":1,"is_processing":true,"id_task":8,"next_token":{"n_decoded":4}},)"
      R"({"id":2,"is_processing":false,"id_task":-1,"next_token":[]},)"
      R"({"id":3,"is_processing":false,"next_token":"x","n_prompt_tokens_processed":-4}])");
  ASSERT_TRUE(slots);
  ASSERT_EQ(slots->size(), 4U);
  EXPECT_EQ((*slots)[0].prompt_read, 512) << "and not the tokens that are in the slot";
  EXPECT_EQ((*slots)[0].written, 3);
  EXPECT_EQ((*slots)[1].written, 4);
  EXPECT_EQ((*slots)[1].prompt_read, std::nullopt);
  EXPECT_EQ((*slots)[2].task, std::nullopt);
  EXPECT_EQ((*slots)[3].written, std::nullopt);
  EXPECT_EQ((*slots)[3].prompt_read, std::nullopt);
  for (const char* other : {"", "{}", "[1]", R"([{"id":0}])", R"({"error":{"code":501}})"})
    EXPECT_FALSE(slot_samples_from(other)) << other;
}

TEST(ServerProbe, a_slots_parameters_are_those_of_its_task) {
  const auto slots = slot_samples_from(
      R"([{"id":0,"is_processing":true,"id_task":7,"params":{"n_predict":-1,"seed":4294967295,)"
      R"("temperature":0.20000000298023224,"top_k":40,"top_p":0.949999988079071,"min_p":0.05,)"
      R"("stream":false}},{"id":1,"is_processing":true,"params":{"temperature":"x","stream":1}},)"
      R"({"id":2,"is_processing":true,"params":[]}])");
  ASSERT_TRUE(slots);
  const auto& shown = (*slots)[0].parameters;
  EXPECT_TRUE(may_be_of({.stream = false, .temperature = 0.2, .top_p = 0.95}, shown));
  EXPECT_FALSE(may_be_of({.stream = true}, shown));
  EXPECT_FALSE(may_be_of({.temperature = 0.3}, shown));
  EXPECT_EQ(shown.max_tokens, -1);
  EXPECT_EQ(shown.seed, 4'294'967'295);
  EXPECT_FALSE((*slots)[1].parameters.temperature || (*slots)[1].parameters.stream);
  EXPECT_FALSE((*slots)[2].parameters.stream);
}

TEST(ServerProbe, more_slots_than_anybody_has_are_left_out) {
  std::string list = "[";
  for (int id = 0; id < 3'000; ++id) list += (id > 0 ? "," : "") + test::llama_slot(id, false);
  const auto slots = slot_samples_from(list + "]");
  ASSERT_TRUE(slots);
  EXPECT_EQ(slots->size(), 1'024U);
}

TEST(ServerProbe, totals_have_each_servers_own_names) {
  const auto llama = totals_from(llama_page);
  ASSERT_TRUE(llama);
  EXPECT_EQ(llama->by, "llamacpp");
  EXPECT_EQ(llama->decodes, 17);
  EXPECT_EQ(llama->prompt_total, 4'096);
  EXPECT_EQ(llama->written_total, 1'200);
  EXPECT_EQ(llama->running, 2);
  EXPECT_EQ(llama->queued, 1);

  const auto vllm = totals_from(
      "process_start_time_seconds 1.78e+09\n"
      "vllm:num_requests_running{engine=\"0\",model_name=\"a}b 9\"} 2.0\n"
      "vllm:num_requests_running{engine=\"1\",model_name=\"a\"} 1.0\n"
      "vllm:num_requests_waiting{engine=\"0\"} 5.0\n"
      "vllm:generation_tokens_total{engine=\"0\"} 10.0\n"
      "vllm:generation_tokens_total_created{engine=\"0\"} 99.0");
  ASSERT_TRUE(vllm);
  EXPECT_EQ(vllm->by, "vllm");
  EXPECT_EQ(vllm->running, 3);
  EXPECT_EQ(vllm->queued, 5);
  EXPECT_EQ(vllm->written_total, 10);
  EXPECT_EQ(vllm->started, 1'780'000'000);

  const auto sglang = totals_from("sglang:num_running_reqs 1\nsglang:num_queue_reqs 0\n");
  ASSERT_TRUE(sglang);
  EXPECT_EQ(sglang->by, "sglang");
  EXPECT_EQ(sglang->queued, 0);

  for (const char* other : {"", "\n\n", "go_goroutines 7\n", "vllm:prompt_tokens_total -3\n",
                            "vllm:prompt_tokens_total\n", "<html>", "process_start_time_seconds 1"})
    EXPECT_FALSE(totals_from(other)) << other;
}

TEST(ServerProbe, loading_is_what_llama_cpp_calls_it) {
  EXPECT_TRUE(is_loading_answer(503, test::llama_loading));
  EXPECT_FALSE(is_loading_answer(200, test::llama_loading));
  EXPECT_FALSE(is_loading_answer(503, "<html>503 Service Unavailable</html>"));
}

TEST(ServerProbe, ollama_reports_its_models) {
  const auto models = running_models_from(
      R"({"models":[{"name":"llama3.3:70b","size":43000000000,"size_vram":12000000000,)"
      R"("context_length":65536},{"name":7},{}]})");
  ASSERT_TRUE(models);
  ASSERT_EQ(models->size(), 3U);
  EXPECT_EQ((*models)[0].name, "llama3.3:70b");
  EXPECT_EQ((*models)[0].context, 65'536);
  EXPECT_EQ((*models)[1].name, "");
  EXPECT_FALSE(running_models_from("{}"));
}

TEST(ServerProbe, models_and_versions_have_names) {
  EXPECT_EQ(model_names_from(R"({"data":[{"id":"a"},{"id":1},{"id":"b"}]})"),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(model_names_from("[]").empty());
  EXPECT_EQ(version_from(R"({"version":"0.30.1"})"), "0.30.1");
  EXPECT_EQ(version_from("{"), "");
}

TEST(ServerProbe, any_bytes_are_read_without_harm) {
  std::mt19937 random(test::random_seed());
  const std::string texts[] = {test::llama_props(2), "[" + test::llama_slot(0, true, 5) + "]",
                               std::string(llama_page), R"({"models":[{"name":"a","size":1}]})",
                               std::string(test::llama_loading)};
  for (int i = 0; i < test::repetitions(20'000); ++i) {
    std::string text = texts[random() % std::size(texts)];
    for (auto changes = random() % 4; changes > 0; --changes) {
      const auto at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 8);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 32));
      }
      if (text.empty()) text = "x";
    }
    (void)props_from(text);
    (void)slot_samples_from(text);
    (void)totals_from(text);
    (void)is_loading_answer(503, text);
    (void)running_models_from(text);
    (void)model_names_from(text);
    (void)version_from(text);
  }
}

}  // namespace
}  // namespace watchdog
