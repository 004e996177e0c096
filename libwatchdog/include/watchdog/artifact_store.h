/// \file
/// Output too long to be shown, kept whole under its digest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// A stored output. A plain value.
struct ArtifactRef {
  std::string sha256;       ///< 64 hexadecimal digits, of all that was given without its secrets.
  std::uint64_t bytes = 0;  ///< Of that, cut or not.
  std::uint64_t kept = 0;   ///< Of them; fewer where it was above `artifact_bytes_max`.
  std::string media_type;   ///< text/plain, application/json, application/octet-stream
  std::string handle;       ///< What the model calls it: `art_` and the first digits.

  friend bool operator==(const ArtifactRef&, const ArtifactRef&) = default;
};

/// A piece of one. A plain value.
struct ArtifactPage {
  std::string bytes;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;  ///< Bytes that can be read.
};

/// A plain value.
struct ArtifactLimits {
  /// Above it the first and the last half of so much are kept.
  std::uint64_t artifact_bytes_max = 64U << 20U;
  std::uint64_t total_bytes_max = std::uint64_t{2} << 30U;
  Millis keep_for{7LL * 24 * 3'600'000};
};

/// A directory of outputs, content-addressed by SHA-256, shared by processes and runs. What is in
/// it is owned by its run until that is over, and dropped by age or when the quota is reached.
/// Thread-safe.
class ArtifactStore {
 public:
  static constexpr std::size_t page_bytes_max = 64U << 10U;

  /// Makes the directory (0700) if it is missing. `run` owns what is put: letters, digits, `.`,
  /// `_`, `-`, `@` and `:`. Errors: `invalid` (not a directory of this user, a bad run),
  /// `unavailable`.
  [[nodiscard]] static Result<ArtifactStore> open(const std::filesystem::path& directory,
                                                  std::string_view run, ArtifactLimits limits = {},
                                                  const Clock& clock = system_clock());
  ~ArtifactStore();
  ArtifactStore(ArtifactStore&&) noexcept;
  ArtifactStore& operator=(ArtifactStore&&) noexcept;

  /// Stores it durably, without its secrets (see redact); what is there already is not written
  /// again. Errors: `exhausted` (quota or disk), `unavailable`.
  [[nodiscard]] Result<ArtifactRef> put(std::string_view bytes, std::string_view media_type);

  /// Takes an output as it comes and stores it at the end, so that memory does not grow with it.
  /// After an error of the disk it goes on counting, and `finish` says what was wrong. Use from one
  /// thread at a time; it must not outlive the store.
  class Sink {
   public:
    ~Sink();
    Sink(Sink&&) noexcept;
    Sink& operator=(Sink&&) noexcept;
    void write(std::string_view bytes) noexcept;
    [[nodiscard]] Result<ArtifactRef> finish(std::string_view media_type);

   private:
    friend class ArtifactStore;
    struct State;
    explicit Sink(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  [[nodiscard]] Sink sink();

  /// At most `page_bytes_max` from `offset` on. `handle` is as the model wrote it; nothing of it is
  /// used as a path. Errors: `invalid` (not a handle, offset beyond the end), `not_found`,
  /// `conflict` (several begin so: more digits), `corrupt` (what is there is not what was put).
  [[nodiscard]] Result<ArtifactPage> read(std::string_view handle, std::uint64_t offset,
                                          std::size_t bytes_max = page_bytes_max) const;

  /// Keeps it until this store is closed, whatever its age. What this store put is pinned already.
  [[nodiscard]] Result<void> pin(const ArtifactRef& artifact);

  /// Drops what the run put and no other run owns. Gives how many. Errors: `conflict` (it still has
  /// the store open), `unavailable`.
  Result<std::size_t> forget(std::string_view run);

  /// Drops what no run owns and is older than `keep_for`; then, while the quota is exceeded, the
  /// oldest that no living run owns; and what a crash left half written. Gives how many. Also done
  /// by `open` and when the quota is reached.
  Result<std::size_t> collect_garbage();

 private:
  struct State;
  explicit ArtifactStore(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// SHA-256 of a text as 64 hexadecimal digits (FIPS 180-4; computed by OpenSSL). Thread-safe.
[[nodiscard]] std::string sha256_of(std::string_view bytes);

}  // namespace watchdog
