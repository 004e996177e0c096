#include "cli/place.h"

#include "cli/command_line.h"

namespace watchdog::monitor {
namespace {

/// Another host's name for "all addresses of this machine" is one that this machine can ask.
std::string host_to_ask(const std::string& bind) {
  if (bind == "0.0.0.0") return "127.0.0.1";
  if (bind == "::") return "[::1]";
  return bind.find(':') == std::string::npos ? bind : "[" + bind + "]";
}

}  // namespace

std::string server_of(const MonitorSettings& settings) {
  const bool is_encrypted = !settings.tls_cert.empty();
  // A certificate names the host of the public URL rather than an address.
  if (is_encrypted && !settings.public_url.empty()) return settings.public_url;
  const auto port = settings.port != 0 ? settings.port : MonitorSettings{}.port;
  return std::string(is_encrypted ? "https" : "http") + "://" + host_to_ask(settings.bind) + ":" +
         std::to_string(port);
}

Result<void, int> find_place(Endpoint::Options& options, Uses uses) {
  const auto is_found = [&] { return !options.server.empty() || !options.database.empty(); };
  if (is_found()) return {};
  if (options.server = environment("WATCHDOG_SERVER"); is_found()) {
    options.server_from = "WATCHDOG_SERVER";
    return {};
  }
  if (uses == Uses::either) options.database = environment("WATCHDOG_DB");
  if (is_found()) return {};
  // Flags of the command's own settings are not those of the monitor that it asks.
  const auto settings =
      read_settings({.file = options.sources.file, .environment = options.sources.environment});
  if (!settings) return settings.error();
  if (uses == Uses::file) {
    options.database = database_of(*settings);
  } else {
    options.server = server_of(settings->monitor);
    options.server_from = "the settings";
  }
  return {};
}

}  // namespace watchdog::monitor
