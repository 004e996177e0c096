/// \file
/// Where the reports of followed transcripts go: into this process's store, or to a monitor.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cli/endpoint.h"
#include "core/store_thread.h"
#include "follow/follower.h"

namespace watchdog::monitor {

/// Returns the agents of these names, all of them for none. Errors: `invalid`.
[[nodiscard]] Result<std::vector<TranscriptAgent>> transcript_agents(
    std::span<const std::string> names);

/// A thread that follows transcripts for the monitor of this process.
class Following {
 public:
  /// Reads all transcripts of these agents, and of the others those that are named. The positions
  /// are beside the database. `caught_up`: see TranscriptFollower::Options. Errors: as of
  /// TranscriptFollower::start.
  [[nodiscard]] static Result<std::unique_ptr<Following>> start(
      StoreThread& store_thread, const std::vector<TranscriptAgent>& agents,
      const std::filesystem::path& database, std::function<void()> caught_up = {});
  /// Ends after the piece under way.
  ~Following();
  Following(const Following&) = delete;
  Following& operator=(const Following&) = delete;
  /// See TranscriptFollower::name.
  void name(const std::string& path) { follower_->name(path); }
  /// Forgets erased sessions, see TranscriptFollower::forget. From any thread.
  void forget(const std::vector<std::string>& sessions) { follower_->forget(sessions); }

 private:
  explicit Following(std::unique_ptr<TranscriptFollower> follower);
  std::unique_ptr<TranscriptFollower> follower_;
  std::thread thread_;
};

/// Takes erased sessions out of the files of positions beside the database that no process has
/// open. Errors: `unavailable`, `conflict`: a process that still follows has one of them.
[[nodiscard]] Result<void> forget_positions(const std::filesystem::path& database,
                                            const std::vector<std::string>& sessions);

/// Sets the members of the options that report to the monitor or file of an endpoint, which must
/// outlive them.
void report_to(Endpoint& endpoint, TranscriptFollower::Options& options);

}  // namespace watchdog::monitor
