#include "mcp/resource_watch.h"

#include <utility>

#include "facts/ids.h"

namespace watchdog::monitor::mcp {

std::optional<std::string> session_of_uri(const std::string& uri) {
  if (uri == sessions_uri) return std::string();
  if (!uri.starts_with(session_uri_begin)) return std::nullopt;
  auto session = uri.substr(session_uri_begin.size());
  return is_session_id(session) ? std::optional(std::move(session)) : std::nullopt;
}

bool ResourceWatch::add(const std::string& uri) {
  const auto session = session_of_uri(uri);
  if (!session || watched_.size() >= watched_max) return false;
  const auto [entry, is_new] = watched_.try_emplace(uri);
  if (!is_new) return true;
  const std::weak_ptr<ResourceWatch> weak = weak_from_this();
  entry->second.following = source_->follow(
      *session,
      {.on_record = [&loop = loop_, weak, uri](const std::string& event, const std::string&) {
        // The first record is the present state.
        if (event != "session") return;
        loop.post([weak, uri] {
          if (const auto self = weak.lock()) self->changed(uri);
        });
      }});
  return true;
}

void ResourceWatch::remove(const std::string& uri) {
  watched_.erase(uri);
}

void ResourceWatch::changed(const std::string& uri) {
  const auto found = watched_.find(uri);
  if (found == watched_.end() || std::exchange(found->second.is_due, true)) return;
  loop_.after(notify_every, [weak = weak_from_this(), uri] {
    const auto self = weak.lock();
    if (!self) return;
    const auto still = self->watched_.find(uri);
    if (still == self->watched_.end()) return;
    still->second.is_due = false;
    self->updated_(uri);
  });
}

}  // namespace watchdog::monitor::mcp
