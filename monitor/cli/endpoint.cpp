// Flags decide first, then WATCHDOG_SERVER, WATCHDOG_DB, and the local monitor. A file is served by
// an `Api` in this process, whose reply comes before `handle` returns. A named secret is sent with
// the first request. Without one, a local monitor's 401 starts one search for its token file, and
// the request is sent again. A stream is not sent twice, so it takes the token of the settings from
// the start. If no process of this boot wrote a file, its time continues from the latest tick.
#include "cli/endpoint.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/token_file.h"
#include "cli/token_search.h"
#include "core/estimator.h"
#include "terminal/output.h"
#include "watchdog/settings.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

/// Returns the secret that the caller named; empty: none.
Result<std::string> named_secret(const std::filesystem::path& file) {
  if (auto secret = environment("WATCHDOG_TOKEN"); !secret.empty()) return secret;
  if (file.empty()) return std::string();
  const auto tokens = read_token_file(file);
  return tokens ? Result<std::string>(acting_secret(*tokens)) : tokens.error();
}

/// A stream cannot be asked for twice as simply, so it shows what the settings know.
Result<std::string> secret_for(const std::string& server, const std::filesystem::path& file) {
  auto secret = named_secret(file);
  // This machine's own secret is sent nowhere else.
  if (!secret || !secret->empty() || !is_loopback_url(server)) return secret;
  return secret_after({}, server);
}

/// Names what the URL was given by.
Error about_url(Error error, const Endpoint::Options& options) {
  error.message = (options.server.empty() ? "WATCHDOG_SERVER: " : "--server: ") + error.message;
  return error;
}

Error about_database(Error error) {
  if (error.code == ErrorCode::not_found)
    error.message += ". Name it with --db FILE, or ask a monitor with --server URL";
  return error;
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
    error.message = terminal_line(body["error"].value("message", error.message));
  }
  if (response.status == 401) {
    const auto file = token_file_in(response);
    error.message += ". Use --token-file FILE (" +
                     (file.empty() ? "the monitor names its file when it starts"
                                   : "this monitor's is " + terminal_line(file)) +
                     ") or set WATCHDOG_TOKEN";
  }
  return error;
}

int complain(const Error& error) {
  warn(error.message);
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
    const auto server = address_of(options).server;
    auto secret = named_secret(options.token_file);
    if (!secret) return secret.error();
    endpoint.is_searched_ = secret->empty() && is_loopback_url(server);
    auto client =
        MonitorClient::to(server, {.token = std::move(*secret), .ca_file = options.ca_file});
    if (!client) return about_url(client.error(), options);
    endpoint.client_.emplace(std::move(*client));
    endpoint.options_ = options;
    return endpoint;
  }
  if (options.writes) {
    auto store = Store::open({.database = database, .create = false});
    if (!store) return about_database(store.error());
    endpoint.file_ = std::make_unique<FileBackend>(std::move(*store));
  } else {
    auto reader = StoreReader::open(database);
    if (!reader) return about_database(reader.error());
    const auto latest = reader->latest_tick();
    if (!latest) return latest.error();
    const auto offset = reader->tick_offset(system_clock().boot_id());
    if (!offset) return offset.error();
    // No process wrote since the machine started: time continues from the latest tick.
    const auto since_boot = system_clock().since_boot();
    endpoint.file_ = std::make_unique<FileBackend>(
        std::move(*reader), *offset ? **offset : latest->time_since_epoch() - since_boot);
  }
  endpoint.file_->set_estimator(std::make_shared<Estimator>(database));
  endpoint.check_service_ =
      std::make_unique<CheckService>(*endpoint.file_, Model{}, CheckService::Options{});
  endpoint.api_ = std::make_unique<Api>(*endpoint.file_, *endpoint.check_service_,
                                        AccessPolicy{.without_token = Scopes::all()});
  return endpoint;
}

Result<Response> Endpoint::ask_with_token(Method method, const std::string& target,
                                          const std::string& body, Response refusal) {
  const auto server = address_of(options_).server;
  auto secret = secret_after(refusal, server);
  if (secret.empty()) return refusal;
  auto client =
      MonitorClient::to(server, {.token = std::move(secret), .ca_file = options_.ca_file});
  if (!client) return client.error();
  client_.emplace(std::move(*client));
  return client_->ask(method, target, body);
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
    if (response.status == 401 && std::exchange(is_searched_, false)) {
      answer = ask_with_token(method, target, body, std::move(response));
      if (!answer) return answer.error();
      response = std::move(*answer);
    }
  } else {
    // A file answers on this thread, before handle() returns.
    api_->handle({.method = method, .target = target, .host = "localhost", .body = body},
                 [&](Response answer) { response = std::move(answer); });
  }
  if (response.status < 300) return std::move(response.body);
  return error_from(response);
}

}  // namespace watchdog::monitor
