/// \file
/// What the machine showed when a session got into trouble: its agent's processes and its changed
/// files, and its model server when that hung. Later nobody can find that out. Bundles have it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "files/open_file.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// What a look shows: the session's own machine, or the model server.
enum class LookOf : std::uint8_t { agent, server };

/// One look of a session, or none. A plain value.
struct KeptLook {
  std::string moment{};  ///< `looping-17`, `hung-4711`; empty: the session has no look.
  std::string text{};
};

/// The newest look of each kind of each session, in a folder of this user. Thread-safe.
class KeptLooks {
 public:
  static constexpr std::size_t bytes_max = 256UL * 1024;  ///< Of a look; the rest is cut.
  static constexpr std::size_t looks_max = 1'000;         ///< The oldest ones beyond are deleted.

  /// Returns the folder of a database.
  [[nodiscard]] static std::filesystem::path folder_of(const std::filesystem::path& database);
  /// The folder is made with the first look.
  explicit KeptLooks(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Replaces the session's look. A crash leaves the earlier one. `moment` has letters, digits, `-`
  /// and `_`. Errors: those of file_error, `invalid`: the folder is not this user's.
  [[nodiscard]] Result<void> keep(const std::string& session, const std::string& moment,
                                  std::string_view text, LookOf of = LookOf::agent);
  [[nodiscard]] KeptLook look(const std::string& session, LookOf of = LookOf::agent) const;
  /// Returns the moment of each session that has a look at its agent.
  [[nodiscard]] std::map<std::string, std::string> moments() const;
  /// Deletes the looks of sessions that are not meant to have one any more, and the oldest ones
  /// beyond `looks_max`.
  void remove_unless(const std::function<bool(const std::string& session)>& stays);

 private:
  [[nodiscard]] OpenFile folder() const;
  [[nodiscard]] std::set<std::string> sessions() const;

  const std::filesystem::path folder_;
  mutable std::mutex mutex_;
};

}  // namespace watchdog::monitor
