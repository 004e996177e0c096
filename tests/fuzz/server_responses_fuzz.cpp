// Whatever a model server says about itself, what is read from it is bounded.

#include <string_view>

#include "fuzz/fuzz.h"
#include "llm/server_probe.h"
#include "llm/slots.h"

using namespace watchdog;

std::vector<std::string> fuzz_seeds() {
  return {
      R"({"total_slots":4,"is_sleeping":false,"default_generation_settings":{"n_ctx":8192},"model_path":"m.gguf","build_info":"b1"})",
      R"([{"id":0,"id_task":7,"is_processing":true,"params":{"seed":5,"n_predict":9},"n_ctx":8192,)"
      R"("next_token":[{"n_decoded":37,"n_remain":-1}],"prompt_progress":{"total":9,"processed":4}}])",
      "# TYPE llamacpp:prompt_tokens_total counter\nllamacpp:prompt_tokens_total 12\n"
      "llamacpp:n_decode_total 5\nllamacpp:requests_processing 1\n",
      "vllm:num_requests_running{model_name=\"a\",engine=\"0\"} 1.0\nvllm:generation_tokens_total "
      "1e3\n"
      "process_start_time_seconds 1.7e9\n",
      "sglang:num_queue_reqs{x=\"\\\"}\"} +Inf\nsglang:num_running_reqs NaN\n",
      R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})",
      R"({"models":[{"name":"a","size":1,"size_vram":1,"context_length":4096}]})",
      R"({"data":[{"id":"gpt"}],"object":"list"})",
      R"({"version":"0.9.1"})"};
}

void try_input(std::string_view text) {
  for (const auto path : probe_paths)
    for (const int status : {200, 404, 503}) (void)server_of(path, status, text, text);
  (void)props_from(text);
  if (const auto slots = slot_samples_from(text)) FUZZ_REQUIRE(slots->size() <= 1'024);
  if (const auto slots = slots_from(text)) {
    const CheckSeeds own(1);
    const auto free = free_slot(*slots, own);
    FUZZ_REQUIRE(!free || !slots->empty());
  }
  (void)totals_from(text);
  (void)is_loading_answer(503, text);
  if (const auto models = running_models_from(text)) FUZZ_REQUIRE(models->size() <= 64);
  FUZZ_REQUIRE(model_names_from(text).size() <= 64);
  (void)version_from(text);
}
