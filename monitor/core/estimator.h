/// \file
/// Estimates about running sessions, from the model beside the database.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "codec/progress.h"
#include "predict/example.h"
#include "predict/model.h"
#include "store/store_reader.h"

namespace watchdog::monitor {

/// Returns where `predict train` writes the model.
[[nodiscard]] std::filesystem::path model_beside(const std::filesystem::path& database);
/// Errors: `not_found`, `unavailable`, `invalid`, `malformed`, `exhausted`, `conflict`, naming the
/// file.
[[nodiscard]] Result<PredictionModel> read_model(const std::filesystem::path& file);

/// Reads the model again within 100 ms after its file changed. Without a file, or with one that
/// cannot be read, there are no estimates. Nothing that concludes or acts uses them. Thread-safe.
class Estimator {
 public:
  explicit Estimator(const std::filesystem::path& database);

  /// Returns true if there may be an estimate about sessions of this agent.
  [[nodiscard]] bool knows(std::string_view agent);
  /// Returns the estimate about a running session; nothing: none is worth showing, or the session
  /// has more new events than one request may read. The next request goes on.
  [[nodiscard]] Result<std::optional<Estimate>> of(StoreReader& reader, SessionKey session,
                                                   std::string_view agent);

 private:
  /// The memory of a session.
  struct Followed {
    std::unique_ptr<ExampleFold> fold;  ///< Null: it is past the last stage.
    Example reached;                    ///< Then its stages.
    std::int64_t calls = 0;             ///< Its finished calls.
    Seq seq = 0;                        ///< Its newest event.
    std::uint64_t used = 0;             ///< When it was asked for last.

    void take(const Event& event);
    void begin();
  };
  [[nodiscard]] std::shared_ptr<const PredictionModel> model();
  [[nodiscard]] Followed& followed(SessionKey session);

  /// Which file was read: time of its change in nanoseconds, inode, size.
  struct Stamp {
    std::int64_t changed = 0;
    std::uint64_t inode = 0;
    std::int64_t size = -1;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };

  const std::filesystem::path file_;
  std::mutex model_mutex_;
  Stamp stamp_{};
  std::chrono::steady_clock::time_point next_look_{};
  std::shared_ptr<const PredictionModel> model_;

  std::mutex sessions_mutex_;  ///< Held while a session is read.
  std::map<SessionKey, Followed> sessions_;
  std::uint64_t asked_ = 0;
};

}  // namespace watchdog::monitor
