// The model as JSON. A file may come from anywhere, so its size, its lists and its numbers are
// bounded, and each mistake names its field. A model that is written and read again predicts the
// same.
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

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

/// Reads `runs` and `unfinished`.
Result<std::pair<std::int64_t, std::int64_t>> model_counts(const json& object) {
  const auto runs = model_count(object, "runs");
  if (!runs) return runs.error();
  const auto unfinished = model_count(object, "unfinished");
  if (!unfinished) return unfinished.error();
  if (*unfinished > *runs) return wrong("unfinished", "is above runs");
  return std::pair{*runs, *unfinished};
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

Result<void> read_blocks(const json& object, std::vector<ScoreBlock>& blocks) {
  const auto found = object.find("blocks");
  if (found == object.end() || !found->is_array() || found->size() > model_blocks_max)
    return wrong("blocks", "must be a list of at most 1000 entries");
  for (const auto& item : *found) {
    if (!item.is_object()) return wrong("blocks", "must have objects");
    const auto from = model_number(item, "from", -number_max);
    if (!from) return from.error();
    const auto counts = model_counts(item);
    if (!counts) return counts.error();
    if (!blocks.empty() && *from <= blocks.back().from) return wrong("blocks", "must ascend");
    blocks.push_back({*from, counts->first, counts->second});
  }
  return {};
}

Result<std::string> model_name(const json& object, std::string_view after) {
  const auto found = object.find("name");
  if (found == object.end() || !found->is_string()) return wrong("name", "must be a text");
  auto name = found->get<std::string>();
  if (name.empty() || name.size() > name_bytes_max)
    return wrong("name", "must have 1 to 256 bytes");
  if (name <= after) return wrong("name", "must be above the one before it");
  return name;
}

Result<void> read_agents(const json& object, StageModel& stage) {
  const auto found = object.find("agents");
  if (found == object.end() || !found->is_array() || found->size() > model_agents_max)
    return wrong("agents", "must be a list of at most 64 entries");
  for (const auto& item : *found) {
    if (!item.is_object()) return wrong("agents", "must have objects");
    StageAgent agent;
    auto name = model_name(item, stage.agents.empty() ? "" : stage.agents.back().name);
    if (!name) return name.error();
    agent.name = std::move(*name);
    const auto offset = model_number(item, "offset", -number_max);
    if (!offset) return offset.error();
    agent.offset = *offset;
    const auto counts = model_counts(item);
    if (!counts) return counts.error();
    std::tie(agent.runs, agent.unfinished) = *counts;
    const auto worth = item.find("worth");
    const auto known = worth != item.end() && worth->is_string()
                           ? named<Worth>(worth->get<std::string>())
                           : std::nullopt;
    if (!known) return wrong("worth", "is not known");
    agent.worth = *known;
    for (const auto& [field, value] : {std::pair{"auroc", &agent.auroc},
                                       {"auroc_low", &agent.auroc_low},
                                       {"auroc_high", &agent.auroc_high}}) {
      const auto number = model_number(item, field, 0);
      if (!number) return number.error();
      if (*number > 1) return wrong(field, "is above 1");
      *value = *number;
    }
    if (auto read = read_blocks(item, agent.blocks); !read) return read;
    stage.agents.push_back(std::move(agent));
  }
  return {};
}

Result<AgentLengths> lengths_from(const json& object, std::string_view after) {
  if (!object.is_object()) return wrong("lengths", "must have objects");
  AgentLengths lengths;
  auto name = model_name(object, after);
  if (!name) return name.error();
  lengths.name = std::move(*name);
  const auto steps = object.find("steps");
  if (steps == object.end() || !steps->is_array() || steps->size() > model_lengths_max)
    return wrong("steps", "must be a list of at most 100 entries");
  for (const auto& item : *steps) {
    if (!item.is_object()) return wrong("steps", "must have objects");
    const auto calls = model_count(item, "calls");
    if (!calls) return calls.error();
    const auto at_risk = model_count(item, "at_risk");
    if (!at_risk) return at_risk.error();
    const auto longer = model_number(item, "longer", 0);
    if (!longer) return longer.error();
    const bool descends = lengths.steps.empty() || (*calls > lengths.steps.back().calls &&
                                                    *longer <= lengths.steps.back().longer);
    if (*longer > 1 || !descends) return wrong("steps", "must ascend");
    lengths.steps.push_back({*calls, *at_risk, *longer});
  }
  const auto coverage = object.find("coverage");
  if (coverage == object.end() || !coverage->is_array() || coverage->size() != whole_run)
    return wrong("coverage", "must have an entry for each number of calls");
  for (std::size_t at = 0; at < whole_run; ++at) {
    const auto& item = (*coverage)[at];
    if (!item.is_object()) return wrong("coverage", "must have objects");
    const auto runs = model_count(item, "runs");
    if (!runs) return runs.error();
    const auto inside = model_count(item, "inside");
    if (!inside) return inside.error();
    if (*inside > *runs) return wrong("inside", "is above runs");
    lengths.coverage.at(at) = {*runs, *inside};
  }
  return lengths;
}

Result<StageModel> stage_from(const json& object) {
  StageModel stage;
  if (object.is_null()) return stage;
  if (!object.is_object()) return wrong("stages", "must have objects or null");
  const auto counts = model_counts(object);
  if (!counts) return counts.error();
  const auto all_features = object.find("all_features");
  if (all_features == object.end() || !all_features->is_boolean())
    return wrong("all_features", "must be true or false");
  const auto mean = model_list(object, "mean", -number_max);
  if (!mean) return mean.error();
  constexpr double scale_min = 1e-6;
  const auto scale = model_list(object, "scale", scale_min);
  if (!scale) return scale.error();
  const auto weights = model_list(object, "weights", -number_max);
  if (!weights) return weights.error();
  const auto intercept = model_number(object, "intercept", -number_max);
  if (!intercept) return intercept.error();
  std::tie(stage.runs, stage.unfinished) = *counts;
  stage.all_features = all_features->get<bool>();
  stage.mean = *mean;
  stage.scale = *scale;
  stage.weights = *weights;
  stage.intercept = *intercept;
  if (auto read = read_agents(object, stage); !read) return read.error();
  if (auto read = read_blocks(object, stage.blocks); !read) return read.error();
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

void write_blocks(JsonWriter& out, const std::vector<ScoreBlock>& blocks) {
  out.key("blocks").open_array();
  for (const auto& block : blocks) {
    out.open_object().field("from", block.from).field("runs", block.runs);
    out.field("unfinished", block.unfinished).close_object();
  }
  out.close_array();
}

void write_stage(JsonWriter& out, const StageModel& stage) {
  out.open_object().field("runs", stage.runs).field("unfinished", stage.unfinished);
  out.field("all_features", stage.all_features);
  write_features(out, "mean", stage.mean);
  write_features(out, "scale", stage.scale);
  write_features(out, "weights", stage.weights);
  out.field("intercept", stage.intercept).key("agents").open_array();
  for (const auto& agent : stage.agents) {
    out.open_object().field("name", agent.name).field("offset", agent.offset);
    out.field("runs", agent.runs).field("unfinished", agent.unfinished);
    out.field("worth", name_of(agent.worth)).field("auroc", agent.auroc);
    out.field("auroc_low", agent.auroc_low).field("auroc_high", agent.auroc_high);
    write_blocks(out, agent.blocks);
    out.close_object();
  }
  out.close_array();
  write_blocks(out, stage.blocks);
  out.field("unlikely_from", stage.unlikely_from).close_object();
}

void write_lengths(JsonWriter& out, const AgentLengths& lengths) {
  out.open_object().field("name", lengths.name).key("steps").open_array();
  for (const auto& step : lengths.steps) {
    out.open_object().field("calls", step.calls).field("at_risk", step.at_risk);
    out.field("longer", step.longer).close_object();
  }
  out.close_array().key("coverage").open_array();
  for (const auto& covered : lengths.coverage)
    out.open_object().field("runs", covered.runs).field("inside", covered.inside).close_object();
  out.close_array().close_object();
}

}  // namespace

std::string to_json(const PredictionModel& model) {
  JsonWriter out;
  out.open_object().field("version", model_version).field("trained_on", model.trained_on);
  out.field("runs", model.runs);
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
  out.close_array().key("lengths").open_array();
  for (const auto& lengths : model.lengths) write_lengths(out, lengths);
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
  const auto runs = model_count(*object, "runs");
  if (!runs) return runs.error();
  model.runs = *runs;
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
  const auto* lengths = fields.find("lengths");
  if (lengths == nullptr || !lengths->is_array() || lengths->size() > model_agents_max)
    return wrong("lengths", "must be a list of at most 64 entries");
  for (const auto& item : *lengths) {
    auto read = lengths_from(item, model.lengths.empty() ? "" : model.lengths.back().name);
    if (!read) return read.error();
    model.lengths.push_back(std::move(*read));
  }
  return model;
}

}  // namespace watchdog
