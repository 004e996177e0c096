/// \file
/// Where a command's answers come from: a monitor that runs, or a database file. Both give the
/// same.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "api/api.h"
#include "http/client.h"

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
  struct Options {
    std::string server;    ///< Empty: none was named.
    std::string database;  ///< Empty: none was named.
    /// Whose token is shown unless `$WATCHDOG_TOKEN` has one. Empty: to a monitor of this machine
    /// that of the settings, to others none.
    std::filesystem::path token_file;
    std::filesystem::path ca_file;  ///< Trusted besides the system's authorities. PEM.
    bool writes = false;            ///< Whether the command changes anything.
  };
  /// A server if one is named (or `$WATCHDOG_SERVER`), else the database if one is named (or
  /// `$WATCHDOG_DB`), else the monitor on this machine.
  [[nodiscard]] static Result<Endpoint> open(const Options& options);

  /// Which of the two is asked: one of them is empty. A plain value.
  struct Address {
    std::string server;
    std::string database;
  };
  [[nodiscard]] static Address address_of(const Options& options);
  /// A connection of its own to the server that is asked.
  [[nodiscard]] static Result<MonitorClient> connect(const Options& options);

  /// The body of a good response. Errors: as the server or the database says them.
  [[nodiscard]] Result<std::string> ask(Method method, const std::string& target,
                                        const std::string& body = {});

 private:
  Endpoint() = default;
  std::optional<MonitorClient> client_;
  std::unique_ptr<FileBackend> file_;
  std::unique_ptr<CheckDesk> desk_;
  std::unique_ptr<Api> api_;
};

/// What is wrong, as a response that is not good says it.
[[nodiscard]] Error error_from(const Response& response);

/// Text as one segment or value of a URL.
[[nodiscard]] std::string url_encoded(const std::string& text);

/// Environment variable, or empty.
[[nodiscard]] std::string environment(const char* name);

}  // namespace watchdog::monitor
