/// \file
/// A whole monitor: store thread, API and server, composed.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "alerts/alert_sender.h"
#include "core/held_questions.h"
#include "watchdog/settings.h"

namespace boost::asio {
class io_context;
}

namespace watchdog::monitor {

class StoreThread;

/// Returns what the agent of a session asks at this moment, if it can be answered here.
using OpenQuestion = std::function<std::optional<HeldQuestion>(const std::string& session)>;

/// One of the settings' channels, ready to be used; `url`: where the monitor listens; `links`: of
/// its messages, null: none; `asks`: empty: no message answers an agent. REQUIRES: it is in the
/// settings.
[[nodiscard]] AlertSender alert_sender(const Settings& settings, const std::string& channel,
                                       ChannelSecrets secrets, const std::string& url,
                                       std::shared_ptr<const AlertLinks> links = nullptr,
                                       OpenQuestion asks = {});

/// Runs on the thread that runs the io_context. Stop order: no new requests, answer what is under
/// way, commit what came in, write histories down.
class Monitor {
 public:
  /// Errors: `invalid`, `conflict`, `corrupt`, `unavailable`.
  [[nodiscard]] static Result<std::unique_ptr<Monitor>> start(boost::asio::io_context& context,
                                                              const Settings& settings);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// Uses the rules and channels of these settings instead. A channel that is new gets the troubles
  /// that are open. May take some seconds. From one thread at a time. Errors: `invalid`: a secret
  /// cannot be used; then nothing changes.
  [[nodiscard]] Result<void> renew_alerts(const Settings& settings);

  /// Reports the transcripts of these agents, all known ones for none, until the end. Their
  /// positions are kept beside the database. `caught_up` is called once on another thread, when
  /// what was there before is reported. Errors: `invalid`, `conflict`, `unavailable`.
  [[nodiscard]] Result<void> follow(std::span<const std::string> agents,
                                    const std::filesystem::path& database,
                                    std::function<void()> caught_up = {});

  /// Reports the transcripts that hooks name from then on.
  void follow_named(const std::filesystem::path& database);

  [[nodiscard]] std::string url() const;
  /// Where people reach the page, without a token.
  [[nodiscard]] std::string page_url() const;
  /// The same with the token that the page logs in with, where it is for this machine alone.
  [[nodiscard]] std::string login_url() const;
  /// Returns the agents' base URL of their model; empty: no model server is set.
  [[nodiscard]] std::string proxy_url() const;
  /// Says on standard output where it listens and what to open; on a terminal with the token.
  void announce() const;
  [[nodiscard]] const StoreThread& store_thread() const noexcept;
  /// Ends the io_context's run once everything under way is answered. A second signal ends the
  /// process at once.
  void stop();
  /// After that: returns when what passes through to a model server is answered.
  void wait_for_answers();
  /// Stops on SIGINT and SIGTERM, after `before`.
  void stop_on_signal(std::function<void()> before = {});

 private:
  struct State;
  explicit Monitor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
