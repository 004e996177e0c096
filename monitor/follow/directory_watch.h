/// \file
/// Learns that files below some directories changed.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

namespace watchdog::monitor {

/// Changes as the system reports them. They may be incomplete: then a look at the directories is
/// due. Use from one thread at a time.
class DirectoryWatch {
 public:
  DirectoryWatch();
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

  /// Readable while there are changes; -1: the system has no room for this watch.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// Watches the files of a directory. A directory that is watched already stays so.
  void add(const std::filesystem::path& directory);
  /// The files and directories that changed since the last call, each at least once.
  [[nodiscard]] std::vector<std::filesystem::path> changed();
  /// False: some changes are not seen, because a directory could not be watched.
  [[nodiscard]] bool is_complete() const noexcept { return is_complete_; }
  /// True once after changes were lost.
  [[nodiscard]] bool drain_lost() noexcept;

 private:
  int descriptor_ = -1;
  bool is_complete_ = true;
  bool lost_ = false;
  std::unordered_map<int, std::filesystem::path> directories_;
};

}  // namespace watchdog::monitor
