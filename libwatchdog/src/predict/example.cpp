// An example is what a model learns from: the features of one run after some calls, its kind of
// agent, its task and how it ended. A file has one example a line. It has numbers and digests, and
// no text of a run.
#include "predict/example.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "codec/fields.h"
#include "text/json_writer.h"

namespace watchdog {
namespace {

constexpr std::size_t text_bytes_max = 256;
constexpr double digits = 10'000;

Error at_line(Error error, int line) {
  error.line = line;
  error.message = "line " + std::to_string(line) + ": " + error.message;
  return error;
}

/// Reads the features of one stage: numbers, or null where one is not known.
Result<Features> features_from(const nlohmann::json& list) {
  if (!list.is_array() || list.size() != feature_count) {
    return Error{ErrorCode::invalid,
                 "stages must have " + std::to_string(feature_count) + " numbers each", "stages"};
  }
  Features features{};
  for (std::size_t at = 0; at < feature_count; ++at) {
    const auto& item = list[at];
    if (!item.is_null() && !item.is_number())
      return Error{ErrorCode::malformed, "stages must have numbers or null", "stages"};
    const double value =
        item.is_null() ? std::numeric_limits<double>::quiet_NaN() : item.get<double>();
    constexpr double value_max = 1'000;
    if (std::abs(value) > value_max)
      return Error{ErrorCode::invalid, "stages must have numbers from -1000 to 1000", "stages"};
    features[at] = value;
  }
  return features;
}

Result<Example> example_from(std::string_view line) {
  const auto object = parse_object(line);
  if (!object) return object.error();
  Fields fields(*object);
  Example example;
  fields.text("agent", example.agent, text_bytes_max);
  fields.text("task", example.task, text_bytes_max);
  fields.text("split", example.split, text_bytes_max);
  std::optional<ExampleEnd> end;
  fields.choice("end", end);
  std::optional<std::int64_t> calls;
  fields.integer("calls", calls);
  if (fields.error()) return *fields.error();
  if (!end) return Error{ErrorCode::malformed, "end is missing", "end"};
  if (!calls || *calls < 0 || *calls > 1'000'000'000)
    return Error{ErrorCode::invalid, "calls must be 0 to 1000000000", "calls"};
  example.end = *end;
  example.calls = *calls;
  const auto* stages = fields.find("stages");
  if (stages == nullptr || !stages->is_array() || stages->size() != stage_count) {
    return Error{ErrorCode::invalid,
                 "stages must be a list of " + std::to_string(stage_count) + " entries", "stages"};
  }
  for (std::size_t stage = 0; stage < stage_count; ++stage) {
    const auto& given = (*stages)[stage];
    if (given.is_null()) continue;
    const auto features = features_from(given);
    if (!features) return features.error();
    example.stages[stage] = *features;
  }
  return example;
}

}  // namespace

double rounded(double value) noexcept {
  return std::round(value * digits) / digits;
}

std::optional<std::size_t> stage_of(std::int64_t calls) noexcept {
  std::optional<std::size_t> stage;
  for (std::size_t at = 0; at < whole_run; ++at) {
    if (calls >= stage_calls[at]) stage = at;
  }
  return stage;
}

void ExampleFold::fold(const Event& event) {
  const auto before = run_.calls();
  const auto attempt = run_.attempt();
  run_.fold(event);
  if (run_.attempt() != attempt) {
    run_ = {};
    reached_ = {};
    run_.fold(event);
  }
  if (run_.calls() == before) return;
  for (std::size_t at = 0; at < whole_run; ++at) {
    if (run_.calls() == stage_calls[at]) reached_.stages[at] = run_.features();
  }
}

Example ExampleFold::example() const {
  auto example = reached_;
  example.calls = run_.calls();
  if (example.calls > 0) example.stages[whole_run] = run_.features();
  for (auto& stage : example.stages) {
    if (!stage) continue;
    for (auto& value : *stage) value = rounded(value);
  }
  return example;
}

std::string to_json_lines(const std::vector<Example>& examples) {
  std::string lines;
  for (const auto& example : examples) {
    JsonWriter out;
    out.open_object().field("agent", example.agent).field("task", example.task);
    out.field("split", example.split).field("end", name_of(example.end));
    out.field("calls", example.calls).key("stages").open_array();
    for (const auto& stage : example.stages) {
      if (!stage) {
        out.value(nullptr);
        continue;
      }
      out.open_array();
      for (const double value : *stage) out.value(rounded(value));
      out.close_array();
    }
    out.close_array().close_object();
    lines += out.finish() + "\n";
  }
  return lines;
}

Result<std::vector<Example>> examples_from_json_lines(std::string_view text) {
  std::vector<Example> examples;
  int number = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto example = example_from(line);
    if (!example) return at_line(example.error(), number);
    if (examples.size() == examples_max) {
      return at_line({ErrorCode::exhausted,
                      "there are more than " + std::to_string(examples_max) + " examples"},
                     number);
    }
    examples.push_back(std::move(*example));
  }
  return examples;
}

}  // namespace watchdog
