/// \file
/// The monitor's store thread: the only one in this process that writes. It commits what comes in,
/// folds what anybody appended, lets time pass for sessions that are due, and keeps the file small.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/backend.h"
#include "core/cancelled_sessions.h"
#include "core/feed.h"
#include "observer/observer.h"
#include "store/retention.h"
#include "store/store.h"

namespace watchdog::monitor {

/// Thread-safe.
class StoreThread final : public Backend {
 public:
  struct Options {
    std::filesystem::path database;
    PolicyPatch policy;  ///< Thresholds of sessions, as far as they state none of their own.
    Retention retention;
    AlertRules alerts;  ///< The rules of alerts.
    std::shared_ptr<const ChannelStatusRegistry>
        registry;  ///< The state of the channels; null: there are none.
    /// Gets what an operator should know. Called from the store thread.
    std::function<void(const std::string&)> log;
    Feed* feed = nullptr;                              ///< Receives events and changes; null: none.
    std::size_t pending_bytes_max = 64 * 1024 * 1024;  ///< Reports waiting for the disk.
    Millis refusal_max{5'000};        ///< The longest wait of a caller of `append` for the disk.
    std::filesystem::path artifacts;  ///< Empty: beside the database.
    /// Gets the ids of erased sessions, on the store thread. It takes them out of other files.
    std::function<void(const std::vector<std::string>&)> forgotten{};
    CancelledSessions* cancelled =
        nullptr;                 ///< Receives the cancelled sessions; must outlive this.
    Metrics* metrics = nullptr;  ///< Gets what is counted; must outlive this.
  };

  /// Opens the store, becomes its judge and begins. Errors: what Store::open and Observer::start
  /// say.
  [[nodiscard]] static Result<std::unique_ptr<StoreThread>> start(Options options);
  /// Sets the receiver of recorded changes of health, on the store thread; null: none.
  void listen(std::function<void(const Transition&)> listener);
  /// Called when there are messages to send, from the store thread; null: none.
  void listen_for_messages(std::function<void()> listener);
  /// Uses these rules of alerts as soon as the store thread comes to it, see
  /// Observer::set_alert_rules.
  void set_alert_rules(AlertRules rules);
  /// Commits what has come in, writes histories down and stops.
  ~StoreThread() override;

  void append(Batch batch, std::function<void(Result<Receipt>)> done) override;
  void write(std::function<Result<void>(Store&)> work,
             std::function<void(Result<void>)> done) override;
  void read(std::function<void(StoreReader&)> work, std::function<void(Error)> failed) override;
  [[nodiscard]] std::vector<ChannelStatus> channels() const override;
  [[nodiscard]] bool test_channel(const std::string& name, ChannelTested done) override;
  [[nodiscard]] std::optional<Watched> watched(std::string_view session) const override;
  [[nodiscard]] Result<Tally> tally() override;
  [[nodiscard]] bool is_shared() const override;
  [[nodiscard]] bool is_on_server() const override;
  [[nodiscard]] Result<std::vector<Child>> children(std::string_view session,
                                                    std::size_t count_max) override;
  [[nodiscard]] Result<std::vector<ActiveTurn>> turns(std::size_t count_max,
                                                      std::string_view id) override;
  void erase(Erasure erasure, std::function<void(Result<std::vector<std::string>>)> done) override;
  [[nodiscard]] Instant now() const override;
  [[nodiscard]] std::optional<Error> trouble() const override;
  [[nodiscard]] bool has_room() const override;
  /// Observer::sessions_where; empty while the database cannot be used.
  [[nodiscard]] std::vector<std::string> sessions_where(
      const std::function<bool(const Case&)>& is_meant) const;
  [[nodiscard]] const Metrics* metrics() const override;
  [[nodiscard]] std::optional<Vitals> vitals() const override;
  /// Returns whether this monitor judges a session, and not another one on the same database; a
  /// moment old. The function may outlive this, and is thread-safe.
  [[nodiscard]] std::function<bool(SessionKey)> judges() const;
  /// Returns the newest event of which this monitor judged all before and itself; the changes of
  /// health that follow are stored. The function may outlive this, and is thread-safe.
  [[nodiscard]] std::function<Seq()> judged() const;

 private:
  struct State;
  explicit StoreThread(std::unique_ptr<State> state);
  /// Null: the database cannot be used.
  [[nodiscard]] std::shared_ptr<const Observer> observer() const;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
