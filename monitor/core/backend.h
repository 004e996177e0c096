/// \file
/// The source of the API's answers: a running monitor, or a database file without one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/channel_status.h"
#include "core/held_questions.h"
#include "core/metrics.h"
#include "observer/observer.h"
#include "store/store.h"

namespace watchdog::monitor {

class Estimator;

/// Both implementations answer the same questions with the same meaning. Thread-safe.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Appends the batch; `done` is called once, from any thread, when it is durable or refused.
  virtual void append(Batch batch, std::function<void(Result<Receipt>)> done) = 0;
  /// Runs `work` with the store, where it may wait for the disk. `done` is called once, from any
  /// thread, with the result of `work`, or with the reason why `work` has not run yet.
  virtual void write(std::function<Result<void>(Store&)> work,
                     std::function<void(Result<void>)> done) = 0;
  /// Runs `work` with a reader, on a thread that may wait for the disk; or `failed`, if the
  /// database cannot be opened.
  virtual void read(std::function<void(StoreReader&)> work, std::function<void(Error)> failed) = 0;
  /// The session, if it is in memory.
  [[nodiscard]] virtual std::optional<Watched> watched(std::string_view session) const = 0;
  /// True: other monitors on the same database judge some of the sessions. Then only `children` and
  /// `turns` that are called within `read` know those, too.
  [[nodiscard]] virtual bool is_shared() const { return false; }
  /// Returns the running children of a session, at most `count_max`, the most severe health first.
  /// Called often: without children it costs next to nothing.
  [[nodiscard]] virtual Result<std::vector<Child>> children(std::string_view session,
                                                            std::size_t count_max) = 0;
  /// Returns the open turns of running sessions, those of the newest session first, at most
  /// `count_max`; with `id` only those of that id.
  [[nodiscard]] virtual Result<std::vector<ActiveTurn>> turns(std::size_t count_max,
                                                              std::string_view id) = 0;
  /// True: the database is on a server. Other monitors may send alerts, so each message is claimed
  /// before, see Sharing::claim_message. And bytes of erased rows stay where its operator has them.
  [[nodiscard]] virtual bool is_on_server() const { return false; }
  /// How many sessions have not ended.
  [[nodiscard]] virtual Result<Tally> tally() = 0;
  /// Takes sessions out of the file, see Store::erase, and what artifacts they have beside it;
  /// `done` is called once, from any thread.
  virtual void erase(Erasure erasure,
                     std::function<void(Result<std::vector<std::string>>)> done) = 0;
  /// Returns the channels by which this process sends alerts.
  [[nodiscard]] virtual std::vector<ChannelStatus> channels() const = 0;
  /// Sends a test message through a channel; see ChannelStatusRegistry::test. Not possible for a
  /// file.
  [[nodiscard]] virtual bool test_channel(const std::string& /*name*/, ChannelTested /*done*/) {
    return false;
  }
  /// The store's time line now.
  [[nodiscard]] virtual Instant now() const = 0;
  /// Nothing, or why reports cannot be kept at the moment.
  [[nodiscard]] virtual std::optional<Error> trouble() const = 0;
  /// False: the file is far above its limit of size, and reports are refused until old ones are
  /// dropped. Then `trouble` says so, too.
  [[nodiscard]] virtual bool has_room() const { return true; }
  /// Estimates about running sessions. Null: this process makes none.
  [[nodiscard]] Estimator* estimator() const noexcept { return estimator_.get(); }
  /// REQUIRES: before any question.
  void set_estimator(std::shared_ptr<Estimator> estimator) { estimator_ = std::move(estimator); }
  /// The questions of agents that hooks of this process hold open.
  [[nodiscard]] HeldQuestions& questions() const noexcept { return *questions_; }
  /// Of a running monitor; null and empty for a file.
  [[nodiscard]] virtual const Metrics* metrics() const { return nullptr; }
  [[nodiscard]] virtual std::optional<Vitals> vitals() const { return std::nullopt; }

 private:
  std::shared_ptr<Estimator> estimator_;
  const std::shared_ptr<HeldQuestions> questions_ = std::make_shared<HeldQuestions>();
};

/// The error for reports while there is no room.
[[nodiscard]] Error no_room();

/// Returns the session by its events, and the time up to `now`.
[[nodiscard]] Result<Case> judged_at(StoreReader& reader, const SessionRow& row, Instant now);

/// The session as it is now, from memory or from its events.
[[nodiscard]] Result<Watched> look_up(const Backend& backend, StoreReader& reader,
                                      const SessionRow& row);

/// Backend::children and Backend::turns, of all sessions in the store.
[[nodiscard]] Result<std::vector<Child>> children_in(const Backend& backend, StoreReader& reader,
                                                     std::string_view session,
                                                     std::size_t count_max);
[[nodiscard]] Result<std::vector<ActiveTurn>> turns_in(const Backend& backend, StoreReader& reader,
                                                       std::size_t count_max, std::string_view id);

/// Takes the sessions out of the store, and their outputs out of the directory of artifacts. The
/// outputs go first: where that is interrupted, the sessions are still there and can be named
/// again. Gives the ids. Errors: as of Store::erase and ArtifactStore::forget.
[[nodiscard]] Result<std::vector<std::string>> erase_with_artifacts(
    Store& store, const Erasure& erasure, const std::filesystem::path& directory);
/// Returns the default directory of artifacts.
[[nodiscard]] std::filesystem::path artifacts_beside(const std::filesystem::path& database);

/// A database file, read and written on the caller's own thread.
class FileBackend final : public Backend {
 public:
  /// Takes an open store for writing, or only a reader. Use from one thread at a time.
  explicit FileBackend(Store store);
  FileBackend(StoreReader reader, Millis tick_offset);

  void append(Batch batch, std::function<void(Result<Receipt>)> done) override;
  void write(std::function<Result<void>(Store&)> work,
             std::function<void(Result<void>)> done) override;
  void read(std::function<void(StoreReader&)> work, std::function<void(Error)> failed) override;
  [[nodiscard]] std::vector<ChannelStatus> channels() const override { return {}; }
  [[nodiscard]] bool is_on_server() const override { return store_ && store_->is_on_server(); }
  [[nodiscard]] std::optional<Watched> watched(std::string_view session) const override;
  [[nodiscard]] Result<std::vector<Child>> children(std::string_view session,
                                                    std::size_t count_max) override;
  [[nodiscard]] Result<std::vector<ActiveTurn>> turns(std::size_t count_max,
                                                      std::string_view id) override;
  [[nodiscard]] Result<Tally> tally() override;
  void erase(Erasure erasure, std::function<void(Result<std::vector<std::string>>)> done) override;
  [[nodiscard]] Instant now() const override;
  [[nodiscard]] std::optional<Error> trouble() const override { return std::nullopt; }

 private:
  std::optional<Store> store_;
  std::optional<StoreReader> reader_;
  Millis tick_offset_{};
};

}  // namespace watchdog::monitor
