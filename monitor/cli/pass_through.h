/// \file
/// A proxy and its observation writer, made from the settings.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "api/access_policy.h"
#include "core/cancelled_sessions.h"
#include "proxy/connection/proxy.h"
#include "proxy/sessions/observation_writer.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// Gets what a model server does with a request, which reports name so. From any thread.
using HangListener =
    std::function<void(const Url& server, const std::string& request, ServerState state)>;

/// Thread-safe.
class PassThrough {
 public:
  /// `access_policy` is the access policy; requests of sessions in `cancelled` (which must outlive
  /// this) are denied. `spending_file`: of the budgets' counts. `guesses`: see Access. `hangs` gets
  /// what the servers do. Errors: `invalid` (settings, files), `unavailable` (the port).
  [[nodiscard]] static Result<std::unique_ptr<PassThrough>> start(
      const Settings& settings, AccessPolicy access_policy, const CancelledSessions& cancelled,
      ObservationWriter::Options observation_writer, const std::filesystem::path& spending_file,
      std::shared_ptr<GuessLimits> guesses = nullptr, HangListener hangs = {});
  ~PassThrough();
  PassThrough(const PassThrough&) = delete;
  PassThrough& operator=(const PassThrough&) = delete;

  /// From now on these tokens count. Requests that were let in go on.
  void renew(std::vector<Token> tokens);
  [[nodiscard]] const Proxy& proxy() const noexcept { return *proxy_; }
  /// Accepts nothing new; requests that are open go on.
  void stop();
  /// Returns, after stop(), when their answers are through. Says what it waits for.
  void wait_until_done();

 private:
  PassThrough() = default;
  std::unique_ptr<ObservationWriter> observation_writer_;
  std::unique_ptr<class Access> access_;
  std::unique_ptr<Proxy> proxy_;
};

/// Returns the base URL for agents, in a sentence.
[[nodiscard]] std::string base_url_advice(const Proxy& proxy);

}  // namespace watchdog::monitor
