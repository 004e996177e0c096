/// \file
/// A connection to PostgreSQL: commands one by one, or many in a pipeline; errors are thrown.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/server.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

struct ClearResult {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, ClearResult>;

/// The parameters of one command, as libpq takes them.
struct PgParameters {
  std::vector<const char*> values{};
  std::vector<int> lengths{};
  std::vector<int> formats{};  ///< 1: binary.
  void add(std::string_view bytes, bool is_binary);
  void add_null();
};

/// Use from one thread at a time. Functions throw SqlFailure.
class PgConnection {
 public:
  /// Checks the URL without connecting. Errors: `invalid`: it is none, or has a password.
  [[nodiscard]] static Result<void> check(const std::string& url);
  /// REQUIRES: a checked URL. `busy_max_ms`: the server ends a transaction that does nothing for
  /// that long.
  PgConnection(std::string url, int busy_max_ms);
  ~PgConnection();
  PgConnection(const PgConnection&) = delete;
  PgConnection& operator=(const PgConnection&) = delete;

  /// Connects, if it is not connected. Returns true if it did.
  bool connect();
  [[nodiscard]] bool is_lost() const noexcept;
  /// Rises whenever the server has forgotten the prepared statements.
  [[nodiscard]] std::int64_t generation() const noexcept { return generation_; }
  /// After an error in a pipeline, once it is over: frees what the server still has prepared.
  void forget_stale();

  /// Runs commands without parameters, outside of a pipeline.
  ResultPtr run(const std::string& sql);
  /// Runs a prepared statement, outside of a pipeline.
  ResultPtr run_prepared(const std::string& name, const PgParameters& parameters);
  void prepare(const std::string& name, const std::string& sql);

  // In a pipeline commands are sent at once and answered together.
  void begin_pipeline();
  /// Drops answers that were not read.
  void end_pipeline() noexcept;
  [[nodiscard]] bool in_pipeline() const noexcept { return in_pipeline_; }
  void send(const std::string& sql);
  void send_prepare(const std::string& name, const std::string& sql);
  void send_prepared(const std::string& name, const PgParameters& parameters);
  /// Reads all answers; returns the last one that has rows, or the last.
  ResultPtr receive();

  [[nodiscard]] const std::string& url() const noexcept { return url_; }

 private:
  [[noreturn]] void fail(const PGresult* result);
  [[nodiscard]] SqlFailure failure_of(const PGresult* result);
  ResultPtr checked(PGresult* result);
  void make_room();
  void sent(int code);

  std::string url_;
  int busy_max_ms_;
  PGconn* connection_ = nullptr;
  std::int64_t generation_ = 1;
  bool in_pipeline_ = false;
  bool stale_ = false;
  int unread_ = 0;  ///< Commands whose answers were not read.
};

}  // namespace watchdog::monitor
