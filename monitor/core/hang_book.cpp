#include "core/hang_book.h"

namespace watchdog::monitor {
namespace {

/// True for states that only a server has whose work goes on.
bool has_moved(ServerState state) {
  return state == ServerState::reading || state == ServerState::writing ||
         state == ServerState::working;
}

}  // namespace

void HangBook::found(const std::string& server, const std::string& request, ServerState state) {
  auto& known = servers_[server];
  if (has_moved(state)) known.seen.reset();
  if (state != ServerState::hung) {
    known.hangs.erase(request);
    return;
  }
  // Of requests that ended while they hung nothing more is said.
  if (known.hangs.size() >= requests_max && !known.hangs.contains(request))
    std::erase_if(known.hangs, [](const auto& one) { return one.second.is_handled; });
  if (known.hangs.size() < requests_max) known.hangs.try_emplace(request);
}

std::map<std::string, std::set<std::string>> HangBook::waiting() const {
  std::map<std::string, std::set<std::string>> all;
  for (const auto& [server, known] : servers_)
    for (const auto& [request, hang] : known.hangs)
      if (!hang.is_handled) all[server].insert(request);
  return all;
}

void HangBook::wait_for(const std::string& server, const std::set<std::string>& requests) {
  for (const auto& request : requests) {
    const auto hang = servers_[server].hangs.find(request);
    if (hang != servers_[server].hangs.end() && ++hang->second.rounds >= rounds_max)
      hang->second.is_handled = true;
  }
}

void HangBook::handled(const std::string& server, const std::set<std::string>& requests) {
  for (const auto& request : requests) {
    const auto hang = servers_[server].hangs.find(request);
    if (hang != servers_[server].hangs.end()) hang->second.is_handled = true;
  }
}

bool HangBook::was_looked_at(const std::string& server, ProcessId process) const {
  const auto known = servers_.find(server);
  return known != servers_.end() && known->second.seen == process;
}

void HangBook::looks_at(const std::string& server, ProcessId process) {
  servers_[server].seen = process;
}

}  // namespace watchdog::monitor
