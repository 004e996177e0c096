/// \file
/// A real PostgreSQL in a temporary directory, for tests.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace watchdog::test {

/// Runs as an unprivileged user if the test runs as root, and listens on a socket in its directory
/// only. Its tables are gone with it.
class Postgres {
 public:
  /// Makes the cluster and starts. A failure ends the program: no test could run.
  Postgres();
  ~Postgres();
  Postgres(const Postgres&) = delete;
  Postgres& operator=(const Postgres&) = delete;

  /// The one of this process, started when it is first asked for.
  static Postgres& shared();
  /// False: there is no PostgreSQL on this machine.
  [[nodiscard]] static bool is_installed();

  /// Of its one database. `isolation` is for all transactions that do not say otherwise.
  [[nodiscard]] std::string url(const std::string& isolation = {}) const;
  /// Drops all that stores made.
  void clear() const;
  /// Runs SQL on a connection of its own; returns the first value, or the error.
  [[nodiscard]] std::string run(const std::string& sql) const;
  /// Ends at once without writing anything, as if the machine had failed, and starts again.
  void crash();

 private:
  void start();
  [[nodiscard]] pid_t spawn(std::vector<std::string> words) const;

  TempDir directory_;
  pid_t pid_ = -1;
};

}  // namespace watchdog::test
