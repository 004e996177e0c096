#include "api/unasked_check.h"

#include "net/url.h"

namespace watchdog::monitor {
namespace {

bool is_same_server(const Url& one, const Url& other) {
  return one.tls == other.tls && one.authority() == other.authority();
}

}  // namespace

bool may_ask_unasked(const Settings& settings, const SessionSpec& session) {
  const auto& checks = settings.checks;
  if (!checks.on_suspicion) return false;
  if (checks.share_server || !checks.base_url.empty()) return true;
  const auto server = url_from(settings.model.base_url);
  if (!server) return false;
  if (!server->tls) return true;
  const auto label = session.labels.find(std::string(server_label));
  const auto own = label == session.labels.end() ? url_from("") : url_from(label->second);
  return own.ok() && is_same_server(*own, *server);
}

}  // namespace watchdog::monitor
