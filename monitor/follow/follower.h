/// \file
/// Reads the transcripts of coding agents as they grow, and hands their reports on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ingest/transcript.h"
#include "store/store.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// The transcripts of one agent. A plain value.
struct TranscriptSource {
  TranscriptAgent agent = TranscriptAgent::claude_code;
  std::filesystem::path root{};  ///< A directory; it need not exist yet.
  bool only_named = false;       ///< Nothing is read of it but the files that name() names.
};

/// The monitor's knowledge of a session. A plain value.
struct FollowedSession {
  bool exists = false;
  bool has_ended = false;
  WallTime newest{};  ///< The time of its newest event.
};

/// Counts since the start. A plain value.
struct FollowFigures {
  std::int64_t files = 0;     ///< Transcripts of which something was read.
  std::int64_t sessions = 0;  ///< Sessions that were reported.
  std::int64_t lines = 0;
  std::int64_t bytes = 0;
  std::int64_t reports = 0;     ///< Reports that were handed on.
  std::int64_t skipped = 0;     ///< Lines above the limit,
  std::int64_t unreadable = 0;  ///< lines that are no JSON object,
  std::int64_t refused = 0;     ///< and batches that were refused.
  std::int64_t behind = 0;      ///< Bytes that are still to be read.

  friend bool operator==(const FollowFigures&, const FollowFigures&) = default;
};

/// Thread-safe where it says so; the rest is used from one thread at a time.
class TranscriptFollower {
 public:
  struct Options {
    std::vector<TranscriptSource> sources{};
    std::filesystem::path positions{};  ///< File of the positions; empty: none is kept.
    /// Files that did not change for this long are not read, older lines are not reported. Of a
    /// changed file whose lines are all older, as of a recording that was copied, this much before
    /// its newest line is reported if nobody knows its session.
    Millis since{86'400'000};
    /// Share of a core that this process may need while it reads older files: a little less than a
    /// fifth, because the time to find them comes on top. 1: no limit.
    double share = 0.18;
    /// Returns what the monitor knows of a session. Errors: `unavailable`: asked again later.
    std::function<Result<FollowedSession>(const std::string& session)> look_up;
    /// Stores a batch, durably, and waits for it. Errors: `unavailable`: given again later; others:
    /// it is refused for good.
    std::function<Result<Receipt>(const Batch& batch)> keep;
    /// Gets what an operator should know.
    std::function<void(const std::string&)> log;
    /// Called once, when all that was there before is reported. By the thread of run().
    std::function<void()> caught_up{};
    /// Called after each piece with news.
    std::function<void(const FollowFigures&)> progress;
  };

  /// Errors: as of Positions::open.
  [[nodiscard]] static Result<std::unique_ptr<TranscriptFollower>> start(Options options);
  ~TranscriptFollower();
  TranscriptFollower(const TranscriptFollower&) = delete;
  TranscriptFollower& operator=(const TranscriptFollower&) = delete;

  /// Reads until stop().
  void run();
  /// Reads what is there, without a pause, until stop(). Errors: the latest of `keep`, if that was
  /// not available.
  [[nodiscard]] Result<void> run_once();
  /// Reads this file, too, if it is a transcript below the root of a source with `only_named`. A
  /// file that is not there yet may be named again. From any thread.
  void name(const std::string& path);
  /// Takes what is known of sessions out of the memory and the file of positions. It waits a moment
  /// for run(), and returns before if that waits for `keep` itself. From any thread.
  void forget(std::vector<std::string> sessions);
  /// Ends run() after the piece under way. From any thread; also from a handler of signals.
  void stop() noexcept;
  [[nodiscard]] const FollowFigures& figures() const noexcept;

 private:
  struct State;
  explicit TranscriptFollower(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
