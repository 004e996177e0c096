#include "cli/session_names.h"

#include <utility>

#include "terminal/phrases.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {

using nlohmann::json;

Result<json> newest_sessions(Endpoint& endpoint) {
  const auto body = endpoint.ask(Method::get, "/api/autonomous/sessions?limit=1000");
  if (!body) return body.error();
  return json::parse(*body)["sessions"];
}

Result<SessionNames> SessionNames::read(Endpoint& endpoint) {
  auto rows = newest_sessions(endpoint);
  if (!rows) return rows.error();
  SessionNames names;
  for (auto& row : *rows) {
    auto id = row.value("sessionId", std::string());
    names.rows_.emplace(std::move(id), std::move(row));
  }
  return names;
}

std::string SessionNames::title_of(const std::string& session) const {
  const auto found = rows_.find(session);
  return found == rows_.end() ? "–" : title_in(found->second);
}

std::string SessionNames::id_of(const std::string& session) const {
  const auto found = rows_.find(session);
  return found == rows_.end() ? terminal_line(session) : id_in(found->second);
}

}  // namespace watchdog::monitor
