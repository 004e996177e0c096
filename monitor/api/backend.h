/// \file
/// Where the API's answers come from: a running monitor, or a database file without one.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "api/alert_board.h"
#include "api/metrics.h"
#include "watchdog/observer.h"
#include "watchdog/store.h"

namespace watchdog::monitor {

/// Both implementations answer the same questions with the same meaning. Thread-safe.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Appends the batch; `done` is called once, from any thread, when it is durable or refused.
  virtual void append(Batch batch, std::function<void(Result<Receipt>)> done) = 0;
  /// Runs `work` with the store, where it may wait for the disk; `done` is called once, from any
  /// thread, with its result, or why it has not come to its turn yet.
  virtual void write(std::function<Result<void>(Store&)> work,
                     std::function<void(Result<void>)> done) = 0;
  /// Runs `work` with a reader, on a thread that may wait for the disk; or `failed`, if the
  /// database cannot be opened.
  virtual void read(std::function<void(StoreReader&)> work, std::function<void(Error)> failed) = 0;
  /// The session, if it is in memory.
  [[nodiscard]] virtual std::optional<Watched> watched(std::string_view session) const = 0;
  /// The running sessions that name this one as their parent, at most so many, those first whose
  /// health is the most severe. Asked often: where the session has none, it costs next to nothing.
  [[nodiscard]] virtual Result<std::vector<Child>> children(std::string_view session,
                                                            std::size_t count_max) = 0;
  /// The open turns of running sessions, those of the newest session first, at most so many; only
  /// those of this id, unless it is empty.
  [[nodiscard]] virtual Result<std::vector<ActiveTurn>> turns(std::size_t count_max,
                                                              std::string_view id) = 0;
  /// Takes sessions out of the file, see Store::erase, and what artifacts they have beside it;
  /// `done` is called once, from any thread.
  virtual void erase(Erasure erasure,
                     std::function<void(Result<std::vector<std::string>>)> done) = 0;
  /// The channels by which this process tells people.
  [[nodiscard]] virtual std::vector<ChannelStatus> channels() const = 0;
  /// The store's time line now.
  [[nodiscard]] virtual Instant now() const = 0;
  /// Nothing, or why reports cannot be kept at the moment.
  [[nodiscard]] virtual std::optional<Error> trouble() const = 0;
  /// Of a running monitor; null and nothing of a file.
  [[nodiscard]] virtual const Metrics* metrics() const { return nullptr; }
  [[nodiscard]] virtual std::optional<Vitals> vitals() const { return std::nullopt; }
};

/// The session as its events tell it, and the time up to `now`.
[[nodiscard]] Result<Case> judged_at(StoreReader& reader, const SessionRow& row, Instant now);

/// Takes the outputs out that these sessions put into the directory of artifacts. Errors: as of
/// ArtifactStore::forget.
[[nodiscard]] Result<void> forget_artifacts(const std::filesystem::path& directory,
                                            const std::vector<std::string>& sessions);
/// Where they are, unless somebody chose another place.
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
  [[nodiscard]] std::optional<Watched> watched(std::string_view session) const override;
  [[nodiscard]] Result<std::vector<Child>> children(std::string_view session,
                                                    std::size_t count_max) override;
  [[nodiscard]] Result<std::vector<ActiveTurn>> turns(std::size_t count_max,
                                                      std::string_view id) override;
  void erase(Erasure erasure, std::function<void(Result<std::vector<std::string>>)> done) override;
  [[nodiscard]] Instant now() const override;
  [[nodiscard]] std::optional<Error> trouble() const override { return std::nullopt; }

 private:
  std::optional<Store> store_;
  std::optional<StoreReader> reader_;
  Millis tick_offset_{};
};

}  // namespace watchdog::monitor
