/// \file
/// The source of a command's answers: a running monitor, or a database file. Both give the same.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "api/api.h"
#include "api/target.h"
#include "http/client.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// Exit codes of every command.
enum ExitCode : int {
  exit_done = 0,
  exit_failed = 1,
  exit_usage = 2,
  exit_refused = 3,
  exit_unreachable = 4,
  exit_not_found = 5,
  exit_interrupted = 130
};

/// Says on standard error what went wrong, and returns the exit code for it.
int complain(const Error& error);

/// Use from one thread at a time.
class Endpoint {
 public:
  /// One of `server` and `database` is empty once find_place() looked.
  struct Options {
    std::string server;                    ///< Empty: the database is used.
    std::string server_from = "--server";  ///< The option, variable or setting that named it.
    std::string database;                  ///< Empty: the server is asked.
    /// The file of the token, unless `$WATCHDOG_TOKEN` has one. Empty: a monitor of this machine
    /// that requires one gets that of its own file; others get none.
    std::filesystem::path token_file;
    std::filesystem::path ca_file;  ///< Trusted besides the system's authorities. PEM.
    bool writes = false;            ///< The command changes something.
    bool creates = false;           ///< It makes a database that is not there.
    Sources sources;                ///< The settings, with `--config`.
  };
  [[nodiscard]] static Result<Endpoint> open(const Options& options);

  /// A connection of its own to the server that is asked.
  [[nodiscard]] static Result<MonitorClient> connect(const Options& options);

  /// The body of a good response. Errors: as the server or the database says them.
  [[nodiscard]] Result<std::string> ask(Method method, const std::string& target,
                                        const std::string& body = {});
  /// The same for an act, which needs more rights than a report. A monitor notes an act without
  /// them as refused, so a token that has to be looked for is found before.
  [[nodiscard]] Result<std::string> act(Method method, const std::string& target,
                                        const std::string& body = {});

 private:
  Endpoint() = default;
  /// Shows a token from now on, if this user has one; false: none was found. REQUIRES: a 401.
  [[nodiscard]] Result<bool> find_token(const Response& refusal);

  std::optional<MonitorClient> client_;
  Options options_;
  bool is_searched_ = false;  ///< No token was named, so one is looked for.
  std::unique_ptr<FileBackend> file_;
  std::unique_ptr<CheckService> check_service_;
  std::unique_ptr<Api> api_;
};

/// Returns the error in a failed response.
[[nodiscard]] Error error_from(const Response& response);

/// Environment variable, or empty.
[[nodiscard]] std::string environment(const char* name);

}  // namespace watchdog::monitor
