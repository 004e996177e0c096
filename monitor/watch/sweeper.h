/// \file
/// The monitor's store thread: the only one in this process that writes. It commits what comes in,
/// folds what anybody appended, lets time pass for sessions that are due, and keeps the file small.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/backend.h"
#include "api/feed.h"
#include "watchdog/observer.h"
#include "watchdog/store.h"

namespace watchdog::monitor {

/// Thread-safe.
class Sweeper final : public Backend {
 public:
  struct Options {
    std::filesystem::path database;
    Retention retention;
    AlertRules alerts;                        ///< When people are told of what.
    std::shared_ptr<const AlertBoard> board;  ///< How the channels are; null: there are none.
    /// Gets what an operator should know. Called from the store thread.
    std::function<void(const std::string&)> log;
    Feed* feed = nullptr;  ///< Is told what happens; null: nobody is.
    std::size_t pending_bytes_max = 64 * 1024 * 1024;  ///< Reports waiting for the disk.
    Millis refusal_max{5'000};        ///< How long a caller of `append` waits for the disk at most.
    std::filesystem::path artifacts;  ///< Empty: beside the database.
    Metrics* metrics = nullptr;       ///< Gets what is counted; must outlive the sweeper.
  };

  /// Opens the store, becomes its judge and begins. Errors: what Store::open and Observer::start
  /// say.
  [[nodiscard]] static Result<std::unique_ptr<Sweeper>> start(Options options);
  /// Gets each change of health once it is written down, from the store thread; null: nobody does.
  void listen(std::function<void(const Transition&)> listener);
  /// Called when there are messages to send, from the store thread; null: nobody is.
  void listen_for_messages(std::function<void()> listener);
  /// Commits what has come in, writes histories down and stops.
  ~Sweeper() override;

  void append(Batch batch, std::function<void(Result<Receipt>)> done) override;
  void write(std::function<Result<void>(Store&)> work,
             std::function<void(Result<void>)> done) override;
  void read(std::function<void(StoreReader&)> work, std::function<void(Error)> failed) override;
  [[nodiscard]] std::vector<ChannelStatus> channels() const override;
  [[nodiscard]] std::optional<Watched> watched(std::string_view session) const override;
  [[nodiscard]] Result<std::vector<Child>> children(std::string_view session,
                                                    std::size_t count_max) override;
  [[nodiscard]] Result<std::vector<ActiveTurn>> turns(std::size_t count_max,
                                                      std::string_view id) override;
  void erase(Erasure erasure, std::function<void(Result<std::vector<std::string>>)> done) override;
  [[nodiscard]] Instant now() const override;
  [[nodiscard]] std::optional<Error> trouble() const override;
  [[nodiscard]] const Metrics* metrics() const override;
  [[nodiscard]] std::optional<Vitals> vitals() const override;

 private:
  struct State;
  explicit Sweeper(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
