/// \file
/// The state of an `ArtifactStore`. Its functions are in artifact_store.cpp and artifact_sweep.cpp.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "files/objects.h"
#include "files/open_file.h"
#include "outputs/artifact_file.h"
#include "outputs/time_line.h"
#include "watchdog/artifact_store.h"

// The directory:
//   objects/ab/cdef…   an output; with `.cut` its first and last half
//   runs/<run>~<id>    digests, a line each, of what one open store owns; locked while it lives
//   tmp/<id>~<n>       what that store is writing
//   lock               held for every change of objects and runs; says how many bytes there are
//   time               the time line (time_line.h) that gives each output its age

namespace watchdog {

inline constexpr std::size_t manifest_bytes_max = 64U << 20U;  ///< Of one run's list of outputs.

[[nodiscard]] inline ObjectName whole_object(const std::string& digest) {
  return {.digest = digest};
}
[[nodiscard]] inline ObjectName cut_object(const std::string& digest) {
  return {.digest = digest, .suffix = ".cut"};
}

/// Part of a name in `runs` or `tmp`: before or after the mark that no run's name has.
[[nodiscard]] inline std::string run_in(const std::string& name) {
  return name.substr(0, name.find('~'));
}
[[nodiscard]] inline std::string holder_in(const std::string& name) {
  const auto at = name.find('~');
  return at == std::string::npos ? "" : name.substr(at + 1);
}

/// The outputs that runs own.
struct ArtifactOwners {
  std::set<std::string> holders;         ///< Ids of stores that are open.
  std::set<std::string> living;          ///< Digests that living runs own.
  std::map<std::string, WallTime> past;  ///< Digests of others, and when they last did.
  std::vector<std::pair<std::string, WallTime>> ended;  ///< Names of the manifests of those.
};

/// Stores the number of bytes of all objects. If it cannot be written, the next sweep counts again.
void write_total(const OpenFile& lock, std::uint64_t total);

struct ArtifactStore::State {
  State(const std::filesystem::path& path, ArtifactLimits bounds, const Clock& time)
      : directory(path), limits(bounds), clock(time) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const std::filesystem::path directory;
  const ArtifactLimits limits;
  const Clock& clock;
  TimeLine line;  ///< Constant after `prepare`.
  std::string manifest_name;
  std::string holder;
  OpenFile top;
  OpenFile runs;
  OpenFile temporary;
  Objects objects;
  OpenFile manifest;
  std::atomic<std::uint64_t> temporaries{0};

  std::mutex mutex;
  std::set<std::string> owned;  ///< The contents of the manifest.
  /// Objects that were read whole and found right: inode and time of the last change.
  std::map<std::string, std::pair<ino_t, std::int64_t>> verified;

  /// Secrets that this process took out of outputs, by digest. They are on no disk.
  std::map<std::string, std::vector<TakenSecret>> taken;
  std::size_t taken_bytes = 0;
  /// An output of the same digest with other secrets makes both ambiguous: then none is known.
  void remember(const std::string& digest, std::vector<TakenSecret> secrets);

  [[nodiscard]] Error failed(int number) const { return file_error(directory.string(), number); }
  Result<void> prepare(std::string_view run);

  [[nodiscard]] Result<OpenFile> locked() const;
  [[nodiscard]] PendingFile new_file();
  [[nodiscard]] Result<void> own(const std::string& digest);
  [[nodiscard]] std::string handle_of(const std::string& digest) const;

  [[nodiscard]] Result<void> require_intact(const OpenFile& file, const ArtifactLayout& layout,
                                            const std::string& digest);
  [[nodiscard]] std::optional<ArtifactRef> existing(const std::string& digest, std::uint64_t given);
  [[nodiscard]] Result<ArtifactRef> add(PendingFile& pending, const ArtifactWriter& writer,
                                        const std::string& digest);

  [[nodiscard]] WallTime now() const noexcept { return line.now(clock); }
  void continue_line();
  void keep_line() const;
  [[nodiscard]] ArtifactOwners ownership() const;
  std::size_t sweep(const OpenFile& lock, std::uint64_t needed);
};

}  // namespace watchdog
