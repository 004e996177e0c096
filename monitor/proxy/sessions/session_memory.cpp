#include "proxy/sessions/session_memory.h"

#include "privacy/content.h"

namespace watchdog::monitor {

SessionMemory& SessionMemories::of(const std::string& session, const Attribution& from,
                                   const std::string& model, const std::string& server,
                                   const std::string& origin) {
  if (auto* known = find(session)) {
    by_use_.splice(by_use_.begin(), by_use_, known->place);
    return *known;
  }
  for (auto at = by_use_.end(); memories_.size() >= count_max_ && at != by_use_.begin();) {
    --at;
    if (!memories_.at(*at).open.empty()) continue;
    memories_.erase(*at);
    at = by_use_.erase(at);
  }
  by_use_.push_front(session);
  auto& memory = memories_[session];
  memory.place = by_use_.begin();
  auto& spec = memory.spec;
  const auto label = [&](const char* name, const std::string& value) {
    if (!value.empty()) spec.labels[name] = redact(first_characters(value, label_bytes_max / 4));
  };
  spec.parent = from.parent;
  spec.agent = first_characters(from.agent, label_bytes_max / 4);
  spec.labels = {{"via", "proxy"}, {"attributed_by", std::string(name_of(from.by))}};
  if (!origin.empty()) spec.labels["process"] = "unknown: its requests come from " + origin;
  label("server", server);
  if (!from.client.empty()) spec.labels["client"] = from.client;
  label("model", model);
  return memory;
}

}  // namespace watchdog::monitor
