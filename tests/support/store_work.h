/// \file
/// A bit of everything that a store does with its files, for tests in which one system call fails.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>

namespace watchdog::test {

/// Work with a store, to test it while calls for its files fail.
struct StoreWork {
  std::filesystem::path directory;  ///< Of its own; the database is `w.db` in it.
  /// Called with `session event-id` when the store acknowledged the event.
  std::function<void(const std::string&)> acknowledged;

  /// Opens, appends, judges, trims, copies, erases, closes and opens again. A step that fails is
  /// tried once more: with one failing call, the second try must do. Returns what did not work even
  /// then; empty: all did.
  [[nodiscard]] std::string run() const;
  [[nodiscard]] std::filesystem::path database() const { return directory / "w.db"; }
};

/// Looks at what the work left behind, when nothing fails any more. Returns what is wrong; empty:
/// the file opens, is intact, and has each acknowledged event once and no event twice.
[[nodiscard]] std::string fault_in(const std::filesystem::path& database,
                                   const std::set<std::string>& acknowledged);

}  // namespace watchdog::test
