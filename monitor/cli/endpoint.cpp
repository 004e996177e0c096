#include "cli/endpoint.h"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/token_file.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {
namespace {

constexpr const char* local_server = "http://127.0.0.1:3000";

/// What is shown to the server; empty: nothing.
Result<std::string> secret_for(const std::string& server, const std::filesystem::path& file) {
  if (auto secret = environment("WATCHDOG_TOKEN"); !secret.empty()) return secret;
  // What is this machine's own is sent nowhere else.
  if (file.empty() && !is_loopback_url(server)) return std::string();
  if (!file.empty()) {
    const auto tokens = read_token_file(file);
    return tokens ? Result<std::string>(acting_secret(*tokens)) : tokens.error();
  }
  // Reading needs none; and what needs one will say so.
  const auto configuration = Configuration::load({});
  const auto tokens =
      read_token_file(token_file(configuration ? configuration->settings() : Settings{}));
  return tokens ? acting_secret(*tokens) : std::string();
}

}  // namespace

Error error_from(const Response& response) {
  Error error{ErrorCode::unavailable, "status " + std::to_string(response.status)};
  switch (response.status) {
    case 400:
      error.code = ErrorCode::malformed;
      break;
    case 404:
      error.code = ErrorCode::not_found;
      break;
    case 401:
    case 403:
    case 409:
      error.code = ErrorCode::conflict;
      break;
    case 413:
    case 422:
      error.code = ErrorCode::invalid;
      break;
    default:
      break;
  }
  const auto body = nlohmann::json::parse(response.body, nullptr, false);
  if (body.is_object() && body.contains("error") && body["error"].is_object()) {
    error.message = body["error"].value("message", error.message);
  }
  if (response.status == 401) {
    error.message +=
        ". Show the monitor's: the file that it names when it starts, by --token-file FILE, or "
        "$WATCHDOG_TOKEN";
  }
  return error;
}

int complain(const Error& error) {
  std::fprintf(stderr, "watchdog-monitor: %s\n", error.message.c_str());
  switch (error.code) {
    case ErrorCode::not_found:
      return exit_not_found;
    case ErrorCode::unavailable:
      return exit_unreachable;
    case ErrorCode::conflict:
    case ErrorCode::invalid:
    case ErrorCode::malformed:
      return exit_refused;
    default:
      return exit_failed;
  }
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value != nullptr ? value : "";
}

std::string url_encoded(const std::string& text) {
  std::string encoded;
  for (const unsigned char c : text) {
    const bool plain = std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      encoded += static_cast<char>(c);
    } else {
      std::array<char, 4> hex{};
      std::snprintf(hex.data(), hex.size(), "%%%02X", c);
      encoded += hex.data();
    }
  }
  return encoded;
}

Endpoint::Address Endpoint::address_of(const Options& options) {
  Address address{.server = options.server, .database = options.database};
  const auto none = [&] { return address.server.empty() && address.database.empty(); };
  if (none()) address.server = environment("WATCHDOG_SERVER");
  if (none()) address.database = environment("WATCHDOG_DB");
  if (none()) address.server = local_server;
  return address;
}

Result<MonitorClient> Endpoint::connect(const Options& options) {
  const auto server = address_of(options).server;
  auto secret = secret_for(server, options.token_file);
  if (!secret) return secret.error();
  return MonitorClient::to(server, {.token = std::move(*secret), .ca_file = options.ca_file});
}

Result<Endpoint> Endpoint::open(const Options& options) {
  const auto database = address_of(options).database;
  Endpoint endpoint;
  if (database.empty()) {
    auto client = connect(options);
    if (!client) return client.error();
    endpoint.client_.emplace(std::move(*client));
    return endpoint;
  }
  if (options.writes) {
    auto store = Store::open({.database = database, .create = false});
    if (!store) return store.error();
    endpoint.file_ = std::make_unique<FileBackend>(std::move(*store));
  } else {
    auto reader = StoreReader::open(database);
    if (!reader) return reader.error();
    const auto latest = reader->latest_tick();
    if (!latest) return latest.error();
    const auto offset = reader->tick_offset(system_clock().boot_id());
    if (!offset) return offset.error();
    // Nobody wrote since the machine started: time goes on from the latest of what is there.
    const auto since_boot = system_clock().since_boot();
    endpoint.file_ = std::make_unique<FileBackend>(
        std::move(*reader), *offset ? **offset : latest->time_since_epoch() - since_boot);
  }
  endpoint.desk_ = std::make_unique<CheckDesk>(*endpoint.file_, Model{}, CheckDesk::Options{});
  endpoint.api_ =
      std::make_unique<Api>(*endpoint.file_, *endpoint.desk_, Gate{.without_token = Scopes::all()});
  return endpoint;
}

Result<std::string> Endpoint::ask(Method method, const std::string& target,
                                  const std::string& body) {
  Response response;
  if (client_) {
    auto answer = client_->ask(method, target, body);
    if (!answer) {
      auto error = answer.error();
      error.message +=
          ". Is a monitor running? Start one with `watchdog-monitor serve`, name it with --server, "
          "or read a database with --db FILE";
      return error;
    }
    response = std::move(*answer);
  } else {
    // A file answers on this thread, before handle() returns.
    api_->handle({.method = method, .target = target, .host = "localhost", .body = body},
                 [&](Response answer) { response = std::move(answer); });
  }
  if (response.status < 300) return std::move(response.body);
  return error_from(response);
}

}  // namespace watchdog::monitor
