// Reads what servers say about themselves, and trusts none of it. Unknown members are skipped,
// impossible counts are absent, texts and lists are cut. A server is recognized by its header, then
// by what its paths answer. Metrics are read line by line: samples of one name with different
// labels are added up. A page that names no known server gives nothing.
#include "llm/server_probe.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "llm/error_body.h"
#include "llm/members.h"

namespace watchdog {

using nlohmann::json;

namespace {

constexpr std::int64_t slot_numbers_max = 100'000;
constexpr std::size_t shown_slots_max = 1'024;
constexpr std::size_t models_max = 64;
constexpr std::size_t name_bytes_max = 256;

bool is_true(const json& object, std::string_view name) {
  const json* found = member(object, name);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

std::string short_text_in(const json& object, std::string_view name) {
  return std::string(text_member(object, name).substr(0, name_bytes_max));
}

/// A number below 0 is not a count.
std::optional<std::int64_t> count_in(const json& object, std::string_view name) {
  const auto count = integer_member(object, name);
  return count && *count >= 0 ? count : std::nullopt;
}

/// An array of one object today, an object in builds of 2025.
const json* next_token_of(const json& slot) {
  if (const json* list = array_member(slot, "next_token"))
    return list->empty() ? nullptr : &list->front();
  return object_member(slot, "next_token");
}

std::optional<double> number_in(const json& object, std::string_view name) {
  const json* found = member(object, name);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

TaskParameters parameters_of(const json& slot) {
  const json* params = object_member(slot, "params");
  if (params == nullptr) return {};
  TaskParameters shown{.seed = integer_member(*params, "seed"),
                       .max_tokens = integer_member(*params, "n_predict"),
                       .top_k = integer_member(*params, "top_k"),
                       .temperature = number_in(*params, "temperature"),
                       .top_p = number_in(*params, "top_p"),
                       .min_p = number_in(*params, "min_p")};
  if (const json* stream = member(*params, "stream"); stream != nullptr && stream->is_boolean())
    shown.stream = stream->get<bool>();
  return shown;
}

/// A metric's name and the field that it is.
struct MetricName {
  std::string_view name;
  std::optional<std::int64_t> ServerTotals::*field;
};
constexpr MetricName metric_names[] = {
    {"llamacpp:n_decode_total", &ServerTotals::decodes},
    {"llamacpp:prompt_tokens_total", &ServerTotals::prompt_total},
    {"llamacpp:tokens_predicted_total", &ServerTotals::written_total},
    {"llamacpp:requests_processing", &ServerTotals::running},
    {"llamacpp:requests_deferred", &ServerTotals::queued},
    {"vllm:prompt_tokens_total", &ServerTotals::prompt_total},
    {"vllm:generation_tokens_total", &ServerTotals::written_total},
    {"vllm:num_requests_running", &ServerTotals::running},
    {"vllm:num_requests_waiting", &ServerTotals::queued},
    {"sglang:prompt_tokens_total", &ServerTotals::prompt_total},
    {"sglang:generation_tokens_total", &ServerTotals::written_total},
    {"sglang:num_running_reqs", &ServerTotals::running},
    {"sglang:num_queue_reqs", &ServerTotals::queued},
    {"process_start_time_seconds", &ServerTotals::started},
};

/// The whole part of a sample's value: what stands after its name and labels.
std::optional<std::int64_t> value_in(std::string_view sample) {
  const std::string text(sample.substr(0, 64));
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(value >= 0 && value < 1e18)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

/// `name{labels} value` or `name value`.
void read_sample(std::string_view line, ServerTotals& totals) {
  const auto name = line.substr(0, line.find_first_of("{ \t"));
  const auto* known = std::ranges::find(metric_names, name, &MetricName::name);
  if (known == std::end(metric_names)) return;
  line.remove_prefix(name.size());
  // A label's text may hold a brace as well, a number cannot.
  if (const auto brace = line.rfind('}'); brace != std::string_view::npos)
    line.remove_prefix(brace + 1);
  const auto value = value_in(line);
  if (!value) return;
  auto& field = totals.*(known->field);
  field = std::min<std::int64_t>(field.value_or(0) + *value, INT64_MAX / 2);
  if (const auto colon = name.find(':'); colon != std::string_view::npos)
    totals.by = known->name.substr(0, colon);
}

}  // namespace

ServerKind server_of(std::string_view path, int status, std::string_view server_header,
                     std::string_view body) {
  if (server_header.starts_with("llama.cpp")) return ServerKind::llama_cpp;
  if (status != 200) return ServerKind::unknown;
  if (path == "/props") return props_from(body) ? ServerKind::llama_cpp : ServerKind::unknown;
  if (version_from(body).empty()) return ServerKind::unknown;
  return path == "/api/version" ? ServerKind::ollama : ServerKind::vllm;
}

std::optional<ServerProps> props_from(std::string_view body) {
  const auto value = json_from(body);
  if (!value) return std::nullopt;
  const auto slots = integer_member(*value, "total_slots");
  const json* generation = object_member(*value, "default_generation_settings");
  if (!slots && generation == nullptr) return std::nullopt;
  ServerProps props{.is_sleeping = is_true(*value, "is_sleeping"),
                    .model = short_text_in(*value, "model_path"),
                    .build = short_text_in(*value, "build_info")};
  if (slots && *slots >= 0 && *slots < slot_numbers_max)
    props.total_slots = static_cast<int>(*slots);
  if (generation != nullptr) props.context = count_in(*generation, "n_ctx");
  return props;
}

std::optional<std::vector<SlotSample>> slot_samples_from(std::string_view body) {
  const auto value = json_from(body);
  if (!value || !value->is_array()) return std::nullopt;
  std::vector<SlotSample> slots;
  for (const json& entry : *value) {
    const auto id = integer_member(entry, "id");
    const json* processing = member(entry, "is_processing");
    if (!id || *id < 0 || *id >= slot_numbers_max || processing == nullptr ||
        !processing->is_boolean())
      return std::nullopt;
    if (slots.size() == shown_slots_max) break;
    const json* next = next_token_of(entry);
    slots.push_back({.id = static_cast<int>(*id),
                     .is_processing = processing->get<bool>(),
                     .task = count_in(entry, "id_task"),
                     .prompt_read = count_in(entry, "n_prompt_tokens_processed"),
                     .written = next != nullptr ? count_in(*next, "n_decoded") : std::nullopt,
                     .parameters = parameters_of(entry)});
  }
  return slots;
}

std::optional<ServerTotals> totals_from(std::string_view page) {
  ServerTotals totals;
  while (!page.empty()) {
    const auto line = page.substr(0, page.find('\n'));
    page.remove_prefix(std::min(line.size() + 1, page.size()));
    if (!line.starts_with('#')) read_sample(line, totals);
  }
  return totals.by.empty() ? std::nullopt : std::optional(totals);
}

bool is_loading_answer(int status, std::string_view body) {
  return status == 503 && error_body_from(body.substr(0, 4'096)).message.starts_with("Loading");
}

std::optional<std::vector<RunningModel>> running_models_from(std::string_view body) {
  const auto value = json_from(body);
  const json* list = value ? array_member(*value, "models") : nullptr;
  if (list == nullptr) return std::nullopt;
  std::vector<RunningModel> models;
  for (const json& entry : *list) {
    if (models.size() == models_max) break;
    models.push_back({.name = short_text_in(entry, "name"),
                      .bytes = count_in(entry, "size").value_or(0),
                      .gpu_bytes = count_in(entry, "size_vram").value_or(0),
                      .context = count_in(entry, "context_length").value_or(0)});
  }
  return models;
}

std::vector<std::string> model_names_from(std::string_view body) {
  std::vector<std::string> names;
  const auto value = json_from(body);
  const json* list = value ? array_member(*value, "data") : nullptr;
  if (list == nullptr) return names;
  for (const json& entry : *list) {
    if (names.size() == models_max) break;
    if (auto name = short_text_in(entry, "id"); !name.empty()) names.push_back(std::move(name));
  }
  return names;
}

std::string version_from(std::string_view body) {
  const auto value = json_from(body);
  return value ? short_text_in(*value, "version") : std::string();
}

}  // namespace watchdog
