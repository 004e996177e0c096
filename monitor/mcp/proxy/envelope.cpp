#include "mcp/proxy/envelope.h"

#include <utility>

#include "facts/ids.h"
#include "ingest/trace_parent.h"

namespace watchdog::monitor::mcp {
namespace {

constexpr int depth_max = 1'000;
constexpr std::size_t id_bytes_max = 256;

bool is_key(const json& id) {
  return id.is_number() ||
         (id.is_string() && id.get_ref<const std::string&>().size() <= id_bytes_max);
}

}  // namespace

std::string without_mark(std::string text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  if (text.starts_with(mark)) text.erase(0, mark.size());
  return text;
}

std::optional<Envelope> envelope_of(std::string_view text) {
  if (is_too_deep(text, depth_max)) return std::nullopt;
  auto read = json::parse(text, nullptr, false);
  if (!read.is_object()) return std::nullopt;
  Envelope seen{.method = text_in(read, "method")};
  const bool has_id = is_key(member(read, "id"));
  if (has_id) seen.id = member(read, "id");
  if (!seen.method.empty()) {
    seen.kind = has_id ? Message::Kind::request : Message::Kind::notification;
    if (const auto found = read.find("params"); found != read.end())
      seen.params = std::move(*found);
    return seen;
  }
  if (!has_id) return std::nullopt;
  seen.kind = Message::Kind::response;
  if (const auto found = read.find("result"); found != read.end()) seen.result = std::move(*found);
  if (const auto found = read.find("error"); found != read.end()) seen.error = std::move(*found);
  return seen;
}

CallOwner owner_in(const json& meta) {
  for (const char* name : {"ai.opencode/sessionID", "threadId"})
    if (auto session = text_in(meta, name); is_session_id(session))
      return {.session = std::move(session)};
  return {.trace = trace_in(text_in(meta, "traceparent"))};
}

std::string call_id_in(const json& meta) {
  for (const char* name : {"claudecode/toolUseId", "callId"})
    if (auto id = text_in(meta, name); !id.empty() && id.size() <= id_bytes_max) return id;
  return {};
}

}  // namespace watchdog::monitor::mcp
