#include "llm/servers.h"

#include <nlohmann/json.hpp>

#include "llm/members.h"
#include "llm/slots.h"

namespace watchdog {

ServerKind server_of(std::string_view path, int status, std::string_view server_header,
                     std::string_view body) {
  if (server_header.starts_with("llama.cpp")) return ServerKind::llama_cpp;
  if (status != 200) return ServerKind::unknown;
  if (path == "/props") return props_from(body) ? ServerKind::llama_cpp : ServerKind::unknown;
  const auto value = json_from(body);
  if (!value || text_member(*value, "version").empty()) return ServerKind::unknown;
  return path == "/api/version" ? ServerKind::ollama : ServerKind::vllm;
}

}  // namespace watchdog
