// The model as JSON. A file may come from anywhere, so its size, its lists and its numbers are
// bounded, and each mistake names its field. A model that is written and read again predicts the
// same.
#include <cmath>
#include <nlohmann/json.hpp>

#include "codec/fields.h"
#include "predict/model.h"
#include "text/json_writer.h"

namespace watchdog {
namespace {

constexpr double number_max = 1e6;
constexpr std::size_t name_bytes_max = 256;
using nlohmann::json;

Error wrong(std::string field, const std::string& what) {
  return {ErrorCode::invalid, field + " " + what, field};
}

Result<double> model_number(const json& object, const char* field, double min) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number()) return wrong(field, "must be a number");
  const auto value = found->get<double>();
  if (!(value >= min && value <= number_max)) return wrong(field, "is out of range");
  return value;
}

Result<std::int64_t> model_count(const json& object, const char* field) {
  const auto value = model_number(object, field, 0);
  if (!value) return value.error();
  if (*value != std::floor(*value)) return wrong(field, "must be a whole number");
  return static_cast<std::int64_t>(*value);
}

Result<Features> model_list(const json& object, const char* field, double min) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_array() || found->size() != feature_count)
    return wrong(field, "must have a number for each feature");
  Features features{};
  for (std::size_t at = 0; at < feature_count; ++at) {
    const auto& item = (*found)[at];
    if (!item.is_number()) return wrong(field, "must have numbers");
    features[at] = item.get<double>();
    if (!(features[at] >= min && features[at] <= number_max))
      return wrong(field, "is out of range");
  }
  return features;
}

Result<void> read_agents(const json& object, StageModel& stage) {
  const auto found = object.find("agents");
  if (found == object.end() || !found->is_object() || found->size() > model_agents_max)
    return wrong("agents", "must be an object with at most 64 members");
  for (const auto& [name, value] : found->items()) {
    if (name.size() > name_bytes_max) return wrong("agents", "has a name that is too long");
    if (!value.is_number() || !(std::abs(value.get<double>()) <= number_max))
      return wrong("agents", "must have numbers in range");
    stage.agents.emplace_back(name, value.get<double>());
  }
  return {};
}

Result<void> read_blocks(const json& object, StageModel& stage) {
  const auto found = object.find("blocks");
  if (found == object.end() || !found->is_array() || found->size() > model_blocks_max)
    return wrong("blocks", "must be a list of at most 1000 entries");
  for (const auto& item : *found) {
    if (!item.is_object()) return wrong("blocks", "must have objects");
    const auto from = model_number(item, "from", -number_max);
    if (!from) return from.error();
    const auto runs = model_count(item, "runs");
    if (!runs) return runs.error();
    const auto unfinished = model_count(item, "unfinished");
    if (!unfinished) return unfinished.error();
    if (*unfinished > *runs) return wrong("unfinished", "is above runs");
    if (!stage.blocks.empty() && *from <= stage.blocks.back().from)
      return wrong("blocks", "must ascend");
    stage.blocks.push_back({*from, *runs, *unfinished});
  }
  return {};
}

Result<StageModel> stage_from(const json& object) {
  StageModel stage;
  if (object.is_null()) return stage;
  if (!object.is_object()) return wrong("stages", "must have objects or null");
  const auto runs = model_count(object, "runs");
  if (!runs) return runs.error();
  const auto unfinished = model_count(object, "unfinished");
  if (!unfinished) return unfinished.error();
  if (*unfinished > *runs) return wrong("unfinished", "is above runs");
  const auto mean = model_list(object, "mean", -number_max);
  if (!mean) return mean.error();
  constexpr double scale_min = 1e-6;
  const auto scale = model_list(object, "scale", scale_min);
  if (!scale) return scale.error();
  const auto weights = model_list(object, "weights", -number_max);
  if (!weights) return weights.error();
  const auto intercept = model_number(object, "intercept", -number_max);
  if (!intercept) return intercept.error();
  stage.runs = *runs;
  stage.unfinished = *unfinished;
  stage.mean = *mean;
  stage.scale = *scale;
  stage.weights = *weights;
  stage.intercept = *intercept;
  if (auto read = read_agents(object, stage); !read) return read.error();
  if (auto read = read_blocks(object, stage); !read) return read.error();
  if (object.contains("unlikely_from") && !object["unlikely_from"].is_null()) {
    const auto from = model_number(object, "unlikely_from", -number_max);
    if (!from) return from.error();
    stage.unlikely_from = *from;
  }
  return stage;
}

void write_features(JsonWriter& out, std::string_view name, const Features& features) {
  out.key(name).open_array();
  for (const double value : features) out.value(value);
  out.close_array();
}

void write_stage(JsonWriter& out, const StageModel& stage) {
  out.open_object().field("runs", stage.runs).field("unfinished", stage.unfinished);
  write_features(out, "mean", stage.mean);
  write_features(out, "scale", stage.scale);
  write_features(out, "weights", stage.weights);
  out.field("intercept", stage.intercept).key("agents").open_object();
  for (const auto& [name, value] : stage.agents) out.field(name, value);
  out.close_object().key("blocks").open_array();
  for (const auto& block : stage.blocks) {
    out.open_object().field("from", block.from).field("runs", block.runs);
    out.field("unfinished", block.unfinished).close_object();
  }
  out.close_array().field("unlikely_from", stage.unlikely_from).close_object();
}

}  // namespace

std::string to_json(const PredictionModel& model) {
  JsonWriter out;
  out.open_object().field("version", model_version).field("trained_on", model.trained_on);
  out.key("features").open_array();
  for (const auto name : Names<Feature>::all) out.value(name);
  out.close_array().key("stages").open_array();
  for (const auto& stage : model.stages) {
    if (stage.runs == 0) {
      out.value(nullptr);
    } else {
      write_stage(out, stage);
    }
  }
  out.close_array().close_object();
  return out.finish();
}

Result<PredictionModel> model_from_json(std::string_view text) {
  if (text.size() > model_bytes_max)
    return Error{ErrorCode::exhausted, "the model is larger than 1 MiB"};
  const auto object = parse_object(text);
  if (!object) return object.error();
  const auto version = model_count(*object, "version");
  if (!version) return version.error();
  if (*version != model_version) {
    return Error{ErrorCode::conflict,
                 "version is " + std::to_string(*version) + "; this program reads version " +
                     std::to_string(model_version) + ". Train the model again",
                 "version"};
  }
  PredictionModel model;
  Fields fields(*object);
  fields.text("trained_on", model.trained_on, name_bytes_max);
  if (fields.error()) return *fields.error();
  const auto* features = fields.find("features");
  if (features == nullptr || *features != json(Names<Feature>::all)) {
    return Error{ErrorCode::conflict,
                 "features are not those of this program. Train the model again", "features"};
  }
  const auto* stages = fields.find("stages");
  if (stages == nullptr || !stages->is_array() || stages->size() != stage_count)
    return wrong("stages", "must have an entry for each stage");
  for (std::size_t at = 0; at < stage_count; ++at) {
    auto stage = stage_from((*stages)[at]);
    if (!stage) return stage.error();
    model.stages.at(at) = std::move(*stage);
  }
  return model;
}

}  // namespace watchdog
