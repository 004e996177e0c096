// A model or an example that is accepted is written as it can be read again, and predicts a number.

#include <cmath>
#include <string_view>

#include "fuzz/fuzz.h"
#include "predict/model.h"

using namespace watchdog;

namespace {

PredictionModel small_model() {
  PredictionModel model{.trained_on = "0"};
  auto& stage = model.stages[0];
  stage.runs = 2;
  stage.unfinished = 1;
  stage.scale.fill(1);
  stage.agents = {{.name = "a",
                   .offset = 0.5,
                   .runs = 2,
                   .unfinished = 1,
                   .worth = Worth::shown,
                   .blocks = {{.from = 0, .runs = 2, .unfinished = 1}}}};
  model.lengths = {{.name = "a",
                    .steps = {{.calls = 4, .at_risk = 60, .longer = 0.5},
                              {.calls = 9, .at_risk = 30, .longer = 0}}}};
  stage.blocks = {{.from = -1, .runs = 1, .unfinished = 0},
                  {.from = 1, .runs = 1, .unfinished = 1}};
  stage.unlikely_from = 2;
  return model;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  Example example{.agent = "a", .task = "t", .calls = 4};
  example.stages[0] = Features{};
  return {to_json(small_model()), to_json(PredictionModel{}), to_json_lines({example}), "{}"};
}

void try_input(std::string_view text) {
  if (const auto model = model_from_json(text)) {
    const auto written = to_json(*model);
    const auto again = model_from_json(written);
    FUZZ_REQUIRE(again.ok());
    FUZZ_REQUIRE(to_json(*again) == written);
    for (std::size_t at = 0; at < stage_count; ++at) {
      const auto found = predict(*model, at, Features{}, "a");
      FUZZ_REQUIRE(!found || std::isfinite(found->score));
      (void)shown_prediction(*model, at, Features{}, "a");
      const auto left = shown_calls_left(*model, stage_calls.at(at), "a");
      FUZZ_REQUIRE(!left || (left->low >= 0 && left->low <= left->high));
    }
  } else {
    FUZZ_REQUIRE(!model.error().message.empty());
  }
  if (const auto examples = examples_from_json_lines(text)) {
    const auto again = examples_from_json_lines(to_json_lines(*examples));
    FUZZ_REQUIRE(again.ok());
    FUZZ_REQUIRE(again->size() == examples->size());
  }
}
