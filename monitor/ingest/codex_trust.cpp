#include "ingest/codex_trust.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "codec/json.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// An event of Codex whose hook reports to the monitor.
struct CodexEvent {
  std::string_view name;
  std::string_view label;     ///< As its digests have it.
  bool has_matcher = true;    ///< Else Codex passes over the hook's matcher.
  std::int64_t usual = 600;   ///< Seconds that a hook may take.
  std::int64_t longest = -1;  ///< -1: any time.
};
constexpr std::array codex_events{
    CodexEvent{"SessionStart", "session_start"},
    CodexEvent{"UserPromptSubmit", "user_prompt_submit", false},
    CodexEvent{"PreToolUse", "pre_tool_use"},
    CodexEvent{"PermissionRequest", "permission_request"},
    CodexEvent{"PostToolUse", "post_tool_use"},
    CodexEvent{"SubagentStart", "subagent_start"},
    CodexEvent{"SubagentStop", "subagent_stop"},
    CodexEvent{"PreCompact", "pre_compact"},
    CodexEvent{"Interrupt", "interrupt", false, 1, 3},
    CodexEvent{"Stop", "stop", false},
    CodexEvent{"SessionEnd", "session_end", true, 1, 3},
};

constexpr std::string_view our_path = "/api/hooks/codex";

std::string sha256(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int count = 0;
  EVP_Digest(text.data(), text.size(), bytes.data(), &count, EVP_sha256(), nullptr);
  constexpr std::string_view digits = "0123456789abcdef";
  std::string shown;
  for (unsigned int at = 0; at < count; ++at) {
    shown += digits[bytes[at] >> 4U];
    shown += digits[bytes[at] & 15U];
  }
  return shown;
}

std::optional<std::string> text_in(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

/// Returns the text whose digest Codex takes: the hook as Codex reads it, with sorted keys.
std::string digest_of_hook(const CodexEvent& event, const json& group, const json& handler) {
  auto timeout = event.usual;
  if (const auto said = handler.find("timeout"); said != handler.end() && said->is_number_integer())
    timeout = std::max<std::int64_t>(said->get<std::int64_t>(), 1);
  if (event.longest > 0) timeout = std::min(timeout, event.longest);
  const auto async = handler.find("async");
  json hook{{"type", "command"},
            {"command", text_in(handler, "command").value_or("")},
            {"timeout", timeout},
            {"async", async != handler.end() && *async == true}};
  if (const auto message = text_in(handler, "statusMessage")) hook["statusMessage"] = *message;
  json identity{{"event_name", event.label}, {"hooks", json::array({hook})}};
  if (const auto matcher = text_in(group, "matcher"); matcher && event.has_matcher)
    identity["matcher"] = *matcher;
  return "sha256:" + sha256(identity.dump(-1, ' ', false, json::error_handler_t::replace));
}

/// True if a line of the text is `trusted_hash = "DIGEST"` and is not a comment.
bool is_trusted(std::string_view config, std::string_view digest) {
  for (auto at = config.find(digest); at != std::string_view::npos;
       at = config.find(digest, at + 1)) {
    const auto begin = config.rfind('\n', at) + 1;  // of the text, too
    const auto line = config.substr(begin, at - begin);
    if (line.find('#') == std::string_view::npos &&
        line.find("trusted_hash") != std::string_view::npos)
      return true;
  }
  return false;
}

const json* array_in(const json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? &*found : nullptr;
}

}  // namespace

CodexHooks codex_hooks(std::string_view hooks_json, std::string_view config_toml) {
  CodexHooks found;
  found.is_json = is_json(hooks_json);
  const auto parsed = found.is_json ? json::parse(hooks_json, nullptr, false) : json();
  const auto hooks = parsed.is_object() ? parsed.value("hooks", json()) : json();
  for (const auto& event : codex_events) {
    bool reports = false;
    bool trusted = true;
    const json* groups = array_in(hooks, event.name);
    for (const json& group : groups == nullptr ? json::array() : *groups) {
      const json* handlers = array_in(group, "hooks");
      for (const json& handler : handlers == nullptr ? json::array() : *handlers) {
        if (!handler.is_object()) continue;
        const auto command = text_in(handler, "command");
        if (!command || command->find(our_path) == std::string::npos) continue;
        reports = true;
        trusted = trusted && is_trusted(config_toml, digest_of_hook(event, group, handler));
      }
    }
    (reports ? found.reporting : found.missing).emplace_back(event.name);
    if (reports && !trusted) found.untrusted.emplace_back(event.name);
  }
  return found;
}

}  // namespace watchdog::monitor
