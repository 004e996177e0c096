#include "support/server_responses.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace watchdog::test {
namespace {

using nlohmann::json;

constexpr bool is_llama(ServerBuild build) {
  return build <= ServerBuild::llama_cpp_2025;
}

ServerResponse refusal(int status, std::string_view message, std::string_view type) {
  return {.status = status,
          .body = json{{"error", {{"code", status}, {"message", message}, {"type", type}}}}.dump()};
}

ServerResponse props_of(const ServerView& view, const SimulatedModel& model,
                        const ServerManners& manners) {
  json body = {{"default_generation_settings",
                {{"n_ctx", model.context}, {"params", {{"temperature", 0.8}}}}},
               {"total_slots", model.slots},
               {"model_path", "/models/" + manners.model + ".gguf"},
               {"chat_template", "{{ messages }}"},
               {"build_info", "b10573-3f545be"}};
  if (model.build == ServerBuild::llama_cpp) body["is_sleeping"] = view.is_sleeping;
  return {.body = body.dump()};
}

ServerResponse slots_of(const ServerView& view, const SimulatedModel& model) {
  const bool is_new = model.build != ServerBuild::llama_cpp_2025;
  json all = json::array();
  for (const SlotView& slot : view.slots) {
    json entry = {{"id", all.size()},
                  {"n_ctx", model.context},
                  {"speculative", false},
                  {"is_processing", slot.is_processing}};
    if (!slot.task) {
      if (!is_new) entry["id_task"] = -1;
      all.push_back(std::move(entry));
      continue;
    }
    entry["id_task"] = *slot.task;
    entry["params"] = {{"seed", 4'294'967'295},
                       {"stream", slot.stream},
                       {"n_predict", -1},
                       {"timings_per_token", false}};
    const json next = {{"has_next_token", slot.is_processing},
                       {"has_new_line", false},
                       {"n_remain", -1},
                       {"n_decoded", slot.written}};
    entry["next_token"] = is_new ? json::array({next}) : next;
    if (is_new) {
      entry["n_prompt_tokens"] = slot.in_context;
      entry["n_prompt_tokens_processed"] = slot.read;
      entry["n_prompt_tokens_cache"] = slot.cached;
    }
    all.push_back(std::move(entry));
  }
  return {.body = all.dump()};
}

void metric(std::string& out, std::string_view name, std::string_view type, std::int64_t value) {
  out.append("# HELP ").append(name).append(" Of this server.\n# TYPE ").append(name);
  out.append(" ").append(type).append("\n").append(name).append(" ");
  out.append(std::to_string(value)).append("\n");
}

ServerResponse metrics_of(const ServerView& view, const ServerView& since,
                          const SimulatedModel& model) {
  ServerResponse response{.content_type = "text/plain; version=0.0.4"};
  if (model.build == ServerBuild::vllm) {
    metric(response.body, "vllm:num_requests_running", "gauge", view.running);
    metric(response.body, "vllm:num_requests_waiting", "gauge", view.queued);
    metric(response.body, "vllm:prompt_tokens_total", "counter", view.prompt_total);
    metric(response.body, "vllm:generation_tokens_total", "counter", view.written_total);
    metric(response.body, "process_start_time_seconds", "gauge", view.started);
    return response;
  }
  const auto reading = static_cast<std::int64_t>(model.read_rate);
  const auto writing = static_cast<std::int64_t>(model.write_rate);
  metric(response.body, "llamacpp:prompt_tokens_total", "counter", view.prompt_total);
  metric(response.body, "llamacpp:prompt_seconds_total", "counter",
         view.prompt_total / std::max<std::int64_t>(reading, 1));
  metric(response.body, "llamacpp:tokens_predicted_total", "counter", view.written_total);
  metric(response.body, "llamacpp:tokens_predicted_seconds_total", "counter",
         view.written_total / std::max<std::int64_t>(writing, 1));
  metric(response.body, "llamacpp:n_decode_total", "counter", view.decodes);
  metric(response.body, "llamacpp:prompt_tokens_seconds", "gauge",
         view.prompt_total > since.prompt_total ? reading : 0);
  metric(response.body, "llamacpp:predicted_tokens_seconds", "gauge",
         view.written_total > since.written_total ? writing : 0);
  metric(response.body, "llamacpp:requests_processing", "gauge", view.running);
  metric(response.body, "llamacpp:requests_deferred", "gauge", view.queued);
  response.headers = "Process-Start-Time-Unix: " + std::to_string(view.started) + "\r\n";
  return response;
}

ServerResponse models_of(const ServerManners& manners) {
  return {.body = json{{"object", "list"},
                       {"data", json::array({{{"id", manners.model},
                                              {"object", "model"},
                                              {"created", 1'786'700'000},
                                              {"owned_by", "somebody"}}})}}
                      .dump()};
}

json ollama_model(const ServerManners& manners) {
  return {{"name", manners.model},
          {"model", manners.model},
          {"size", 4'683'075'271},
          {"digest", "0a8c26691023dca0a0a3e0fa1e8b4d5f"},
          {"details", {{"format", "gguf"}, {"family", "llama"}, {"quantization_level", "Q4_K_M"}}}};
}

}  // namespace

std::string_view server_header(ServerBuild build) {
  return is_llama(build)              ? "Server: llama.cpp\r\n"
         : build == ServerBuild::vllm ? "server: uvicorn\r\n"
                                      : "";
}

std::optional<Question> question_at(std::string_view path, ServerBuild build) {
  struct Row {
    std::string_view path;
    Question question;
    bool llama, ollama, vllm;
  };
  static constexpr std::array<Row, 12> table = {{
      {"/", Question::health, false, true, false},
      {"/health", Question::health, true, false, true},
      {"/v1/health", Question::health, true, false, false},
      {"/props", Question::health, true, false, false},
      {"/slots", Question::slots, true, false, false},
      {"/metrics", Question::metrics, true, false, true},
      {"/v1/models", Question::health, true, true, true},
      {"/models", Question::health, true, false, false},
      {"/version", Question::health, false, false, true},
      {"/api/version", Question::health, false, true, false},
      {"/api/tags", Question::health, false, true, false},
      {"/api/ps", Question::health, false, true, false},
  }};
  for (const Row& row : table) {
    if (row.path != path) continue;
    const bool has = is_llama(build)              ? row.llama
                     : build == ServerBuild::vllm ? row.vllm
                                                  : row.ollama;
    if (has) return row.question;
  }
  return std::nullopt;
}

ServerResponse response_at(std::string_view path, const ServerView& view, const ServerView& since,
                           const SimulatedModel& model, const ServerManners& manners) {
  if (is_llama(model.build) && view.is_loading)
    return refusal(503, "Loading model", "unavailable_error");
  if (path == "/") return {.body = "Ollama is running", .content_type = "text/plain"};
  if (path.ends_with("/health")) {
    if (model.build == ServerBuild::vllm) return {};
    return {.body = R"({"status":"ok"})"};
  }
  if (path == "/props") return props_of(view, model, manners);
  if (path == "/slots") {
    return manners.has_slots ? slots_of(view, model)
                             : refusal(501, "This server does not support slots endpoint.",
                                       "not_supported_error");
  }
  if (path == "/metrics") {
    if (manners.has_metrics || model.build == ServerBuild::vllm)
      return metrics_of(view, since, model);
    return refusal(501, "This server does not support metrics endpoint.", "not_supported_error");
  }
  if (path.ends_with("/models")) return models_of(manners);
  if (path == "/version") return {.body = R"({"version":"0.16.0"})"};
  if (path == "/api/version") return {.body = R"({"version":"0.30.1"})"};
  json listed = ollama_model(manners);
  if (path == "/api/ps") {
    if (view.is_refused) return {.body = R"({"models":[]})"};
    listed["size_vram"] = 4'683'075'271;
    listed["context_length"] = model.context;
    listed["expires_at"] = "2026-08-14T10:05:00.123456789Z";
  }
  return {.body = json{{"models", json::array({listed})}}.dump()};
}

}  // namespace watchdog::test
