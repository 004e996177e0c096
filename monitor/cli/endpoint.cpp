// A file is served by an `Api` in this process, whose reply comes before `handle` returns. A named
// secret is sent with the first request. Without one, a local monitor's 401 starts one search for
// its token file, and the request is sent again. A stream is not sent twice, so it takes the token
// of the settings from the start. If no process of this boot wrote a file, its time continues from
// the latest tick.
#include "cli/endpoint.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/recovery_trials.h"
#include "bundle/kept_looks.h"
#include "cli/token_file.h"
#include "cli/token_search.h"
#include "core/estimator.h"
#include "net/url.h"
#include "terminal/output.h"
#include "watchdog/settings.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

/// Returns the token that the caller named; an empty secret: none.
Result<FoundToken> named_token(const std::filesystem::path& file) {
  if (auto secret = environment("WATCHDOG_TOKEN"); !secret.empty())
    return FoundToken{.secret = std::move(secret)};
  if (file.empty()) return FoundToken{};
  if (const auto tokens = read_token_file(file); !tokens) return tokens.error();
  return token_in(file);
}

/// Returns whether the monitor at a URL of loopback may get a token whose file `owner` owns.
bool may_get_token(const Url& server, std::optional<uid_t> owner) {
  const auto port = static_cast<std::uint16_t>(std::stoi(server.port));
  const auto is_allowed = [&](const char* address) {
    return listener_fault(address, port, owner).empty();
  };
  if (server.host == "localhost") return is_allowed("127.0.0.1") || is_allowed("::1");
  return is_allowed(server.host.c_str());
}

/// A stream cannot be asked for twice as simply, so it shows what the settings know. A monitor of
/// somebody else may need none.
Result<FoundToken> token_for(const Endpoint::Options& options) {
  auto token = named_token(options.token_file);
  // This machine's own token is sent nowhere else.
  if (!token || !token->secret.empty() || !is_loopback_url(options.server)) return token;
  auto found = token_after({}, options.sources);
  const auto server = url_from(options.server);
  return server && may_get_token(*server, found.owner) ? std::move(found) : FoundToken{};
}

MonitorClient::Options client_options(const Endpoint::Options& options, FoundToken token) {
  MonitorClient::Options made{.token = std::move(token.secret), .ca_file = options.ca_file};
  if (!made.token.empty()) {
    made.fault_of_local = [owner = token.owner](const std::string& address, std::uint16_t port) {
      return listener_fault(address, port, owner);
    };
  }
  return made;
}

/// Names what the URL was given by.
Error about_url(Error error, const Endpoint::Options& options) {
  error.message = options.server_from + ": " + error.message;
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

Result<MonitorClient> Endpoint::connect(const Options& options) {
  auto token = token_for(options);
  if (!token) return token.error();
  return MonitorClient::to(options.server, client_options(options, std::move(*token)));
}

Result<Endpoint> Endpoint::open(const Options& options) {
  const auto& database = options.database;
  Endpoint endpoint;
  if (database.empty()) {
    auto token = named_token(options.token_file);
    if (!token) return token.error();
    endpoint.is_searched_ = token->secret.empty() && is_loopback_url(options.server);
    auto client = MonitorClient::to(options.server, client_options(options, std::move(*token)));
    if (!client) return about_url(client.error(), options);
    endpoint.client_.emplace(std::move(*client));
    endpoint.options_ = options;
    return endpoint;
  }
  if (options.writes) {
    auto store = Store::open({.database = database, .create = options.creates});
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
  const auto configuration = Configuration::load(options.sources);
  const auto recovery = std::make_shared<Recovery>(
      configuration ? configuration->settings().recovery.rules : RecoveryRules{},
      Recovery::pause_file_of(database));
  if (!recovery->rules().empty()) RecoveryTrials(*endpoint.file_, recovery, {}).read();
  endpoint.api_->act_by(recovery);
  endpoint.api_->show_looks(std::make_shared<KeptLooks>(KeptLooks::folder_of(database)));
  return endpoint;
}

Result<bool> Endpoint::find_token(const Response& refusal) {
  auto token = token_after(refusal, options_.sources);
  if (token.secret.empty()) return false;
  auto client = MonitorClient::to(options_.server, client_options(options_, std::move(token)));
  if (!client) return client.error();
  client_.emplace(std::move(*client));
  return true;
}

Result<std::string> Endpoint::act(Method method, const std::string& target,
                                  const std::string& body) {
  if (client_ && is_searched_) {
    const auto looked = client_->ask(Method::get, "/api/audit?limit=1");
    if (looked && looked->status == 401 && std::exchange(is_searched_, false)) {
      if (const auto found = find_token(*looked); !found) return found.error();
    }
  }
  return ask(method, target, body);
}

Result<std::string> Endpoint::ask(Method method, const std::string& target,
                                  const std::string& body) {
  Response response;
  if (client_) {
    auto answer = client_->ask(method, target, body);
    if (!answer) {
      auto error = answer.error();
      error.message +=
          ". Is a monitor running? Start one with `watchdog-monitor serve`. If it runs elsewhere, "
          "add --server URL. To read a database without a monitor, add --db FILE";
      return error;
    }
    response = std::move(*answer);
    if (response.status == 401 && std::exchange(is_searched_, false)) {
      const auto found = find_token(response);
      if (!found) return found.error();
      if (*found) {
        answer = client_->ask(method, target, body);
        if (!answer) return answer.error();
        response = std::move(*answer);
      }
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
