#include "cli/listen_config.h"

#include <spdlog/spdlog.h>

#include <tuple>
#include <utility>
#include <vector>

#include "cli/endpoint.h"
#include "cli/token_file.h"
#include "files/regular_file.h"

namespace watchdog::monitor {
namespace {

Error refused(std::string message, std::string field) {
  return {ErrorCode::invalid, std::move(message), std::move(field)};
}

/// Of the environment, and of the file, which is made where there is neither.
Result<std::vector<Token>> tokens_for(const Settings& settings) {
  const auto path = token_file(settings);
  std::vector<Token> tokens;
  if (auto secret = environment("WATCHDOG_TOKEN"); !secret.empty()) {
    if (auto fit = check_secret(secret); !fit) {
      return refused("WATCHDOG_TOKEN: " + fit.error().message, "WATCHDOG_TOKEN");
    }
    tokens.push_back({.name = "environment", .scopes = Scopes::all(), .secret = std::move(secret)});
  } else if (auto made = make_token_file(path); !made) {
    return made.error();
  }
  auto in_file = read_all_tokens(path);
  if (!in_file && in_file.error().code == ErrorCode::not_found && !tokens.empty()) return tokens;
  if (!in_file) return in_file.error();
  tokens.insert(tokens.end(), in_file->begin(), in_file->end());
  return tokens;
}

}  // namespace

Result<std::optional<TlsFiles>> tls_files(const MonitorSettings& own) {
  constexpr std::size_t pem_bytes_max = 1024 * 1024;
  const auto loopback = is_loopback(own.bind);
  if (!loopback) return loopback.error();
  const bool wanted = !own.tls_cert.empty() || !own.tls_key.empty();
  if (!wanted && !*loopback && !own.behind_proxy) {
    return refused(own.bind +
                       " can be reached from other machines, and tokens must not go there in the "
                       "clear; give --tls-cert FILE and --tls-key FILE, or bind 127.0.0.1. Give "
                       "--behind-proxy only if nothing but a proxy with TLS can reach it",
                   "bind");
  }
  if (!wanted) return std::optional<TlsFiles>{};
  for (const auto& [key, path, readers] : {std::tuple{"tls_cert", own.tls_cert, Readers::anybody},
                                           {"tls_key", own.tls_key, Readers::owner}}) {
    const auto text = read_regular_file(path, pem_bytes_max, readers);
    if (!text) {
      return refused(
          std::string("monitor.") + key + ": " + path.string() + " " + text.error().message, key);
    }
  }
  return std::optional(TlsFiles{.certificate = own.tls_cert, .key = own.tls_key});
}

Result<AccessPolicy> access_policy_for(const Settings& settings) {
  const auto& own = settings.monitor;
  const auto loopback = is_loopback(own.bind);
  if (!loopback) return loopback.error();
  auto tokens = tokens_for(settings);
  if (!tokens) return tokens.error();
  AccessPolicy access_policy{.tokens = std::move(*tokens), .hosts = own.hosts};
  // Requests from a reverse proxy come from this machine as well.
  if (*loopback && !own.behind_proxy) {
    access_policy.without_token = {Scope::read, Scope::report};
    std::error_code ignored;
    const auto file = std::filesystem::absolute(token_file(settings), ignored);
    if (std::filesystem::exists(file, ignored)) access_policy.token_file = file.string();
  }
  access_policy.hosts.push_back(own.bind.find(':') == std::string::npos ? own.bind
                                                                        : "[" + own.bind + "]");
  // If all requests need a token, a page with its own host name has none.
  access_policy.any_host = access_policy.without_token.empty() && own.hosts.empty();
  access_policy.behind_proxy = own.behind_proxy;
  access_policy.secure = own.behind_proxy || !own.tls_cert.empty();
  return access_policy;
}

std::unique_ptr<TokenWatch> watch_tokens(const Settings& settings,
                                         const AccessPolicy& access_policy,
                                         std::function<void(std::vector<Token>)> changed) {
  return std::make_unique<TokenWatch>(
      TokenWatch::Options{.file = token_file(settings),
                          .known = access_policy.tokens,
                          .read = [settings] { return tokens_for(settings); },
                          .changed = std::move(changed),
                          .log = [](const std::string& sentence) { spdlog::warn(sentence); }});
}

}  // namespace watchdog::monitor
