/// \file
/// SQLite's calls of the operating system, of which one fails, or is the last one of the process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

struct sqlite3_vfs;

namespace watchdog::test {

enum class FileCall : std::uint8_t {
  open,
  read,
  write,
  truncate,
  sync,
  size,
  remove,
  lock,
  map_index,
  lock_index,
};
inline constexpr std::size_t file_calls = 10;
[[nodiscard]] const char* name_of(FileCall call);

/// SQLite accesses files through this object while it exists. A process has one at a time.
/// Connections must not outlive it. Thread-safe.
class FaultyFiles {
 public:
  enum class Failure : std::uint8_t {
    error,     ///< The call does nothing and returns an error.
    full,      ///< A write does nothing: the disk is full.
    half,      ///< A write writes half of its bytes and returns an error.
    end,       ///< The process ends instead, as if killed.
    half_end,  ///< A write writes half of its bytes, and the process ends.
  };
  FaultyFiles();
  ~FaultyFiles();
  FaultyFiles(const FaultyFiles&) = delete;
  FaultyFiles& operator=(const FaultyFiles&) = delete;

  /// Counts from here on; the call of this kind with the number `at`, from 1, fails, once.
  void fail(FileCall call, int at, Failure how = Failure::error);
  /// Counts from here on, and nothing fails.
  void count();
  [[nodiscard]] int calls(FileCall call) const;
  /// True if the failure that was asked for has happened.
  [[nodiscard]] bool failed() const { return failed_; }
  /// How a process ended by `Failure::end` exits.
  static constexpr int end_code = 77;

 private:
  friend struct FaultyHooks;
  /// Counts the call that is about to be made. True if it has to fail.
  [[nodiscard]] bool strikes(FileCall call);

  std::array<std::atomic<int>, file_calls> calls_{};
  std::atomic<FileCall> call_{FileCall::open};
  std::atomic<int> at_{0};  ///< 0: none.
  std::atomic<Failure> how_{Failure::error};
  std::atomic<bool> failed_{false};
};

}  // namespace watchdog::test
