/// \file
/// Stores tool outputs that are too long to be shown, and prepares outputs for a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// A stored output. A plain value.
struct ArtifactRef {
  std::string sha256{};      ///< 64 hexadecimal digits, of the whole output without its secrets.
  std::uint64_t bytes = 0;   ///< The size of that.
  std::uint64_t kept = 0;    ///< Stored bytes; fewer if it exceeded `artifact_bytes_max`.
  std::string media_type{};  ///< text/plain, application/json, application/octet-stream
  std::string handle{};      ///< Its name for the model: `art_` and the first digits.

  friend bool operator==(const ArtifactRef&, const ArtifactRef&) = default;
};

/// A secret that is not in a stored output. A plain value.
struct TakenSecret {
  std::uint64_t at = 0;  ///< Offset of the mask in its place.
  std::string text{};    ///< The secret.

  friend bool operator==(const TakenSecret&, const TakenSecret&) = default;
};

/// A part of an artifact. A plain value.
struct ArtifactPage {
  std::string bytes{};           ///< The requested part.
  std::uint64_t offset = 0;      ///< Where it begins.
  std::uint64_t total = 0;       ///< Bytes that can be read.
  std::uint64_t dropped = 0;     ///< Bytes that were not stored, and
  std::uint64_t dropped_at = 0;  ///< the offset at which they are missing.
  /// Secrets of this part that this process took out when it stored the output. Only for the
  /// agent's own model.
  std::vector<TakenSecret> taken{};
};

/// A plain value.
struct ArtifactLimits {
  /// Of a longer output the first and the last half of this size are stored.
  std::uint64_t artifact_bytes_max = 64U << 20U;
  std::uint64_t total_bytes_max = std::uint64_t{2} << 30U;  ///< Of all stored outputs together.
  Millis keep_for{7LL * 24 * 3'600'000};                    ///< How long outputs are stored.
};

/// A directory of outputs, addressed by SHA-256, shared by processes and runs. An output belongs to
/// its run until that is over. Then it is dropped by age, or when the quota is reached. Nothing is
/// dropped by age while the wall clock differs by more than an hour from the directory's time line.
/// Where that line begins, or leaps ahead at a start of the machine, dropping by age waits an hour.
/// Thread-safe.
class ArtifactStore {
 public:
  static constexpr std::size_t page_bytes_max = 64U << 10U;  ///< The size of a page, at most.

  /// Makes the directory (0700) if it is missing. `run` owns what is put: letters, digits, `.`,
  /// `_`, `-`, `@` and `:`. Errors: `invalid` (not a directory of this user, a bad run),
  /// `unavailable`.
  [[nodiscard]] static Result<ArtifactStore> open(const std::filesystem::path& directory,
                                                  std::string_view run, ArtifactLimits limits = {},
                                                  const Clock& clock = system_clock());
  ~ArtifactStore();
  ArtifactStore(ArtifactStore&&) noexcept;
  ArtifactStore& operator=(ArtifactStore&&) noexcept;

  /// Stores it durably, without its secrets (see redact). Up to some MB of them are remembered in
  /// memory, for `read`. An output that is already stored is not
  /// written again. Errors: `exhausted` (quota or disk), `unavailable`.
  [[nodiscard]] Result<ArtifactRef> put(std::string_view bytes, std::string_view media_type);

  /// Receives an output piece by piece and stores it at the end, so memory does not grow with it.
  /// After a disk error it only counts, and `finish` returns the error. Use from one thread at a
  /// time; it must not outlive the store.
  class Sink {
   public:
    ~Sink();
    Sink(Sink&&) noexcept;
    Sink& operator=(Sink&&) noexcept;
    /// Adds a piece of the output. Errors are reported by `finish`.
    void write(std::string_view bytes) noexcept;
    /// Stores the output. Errors: `unavailable`, `exhausted`.
    [[nodiscard]] Result<ArtifactRef> finish(std::string_view media_type);

   private:
    friend class ArtifactStore;
    struct State;
    explicit Sink(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  /// Returns a sink for one output.
  [[nodiscard]] Sink sink();

  /// At most `page_bytes_max` from `offset` on, and not beyond the place where bytes were dropped.
  /// `handle` is as the model wrote it; nothing of it is used as a path. Errors: `invalid` (not a
  /// handle, offset beyond the end), `not_found`, `conflict` (several begin so: more digits),
  /// `corrupt` (what is there is not what was put).
  [[nodiscard]] Result<ArtifactPage> read(std::string_view handle, std::uint64_t offset,
                                          std::size_t bytes_max = page_bytes_max) const;

  /// Keeps it until this store is closed, whatever its age. Outputs that this store put are pinned.
  [[nodiscard]] Result<void> pin(const ArtifactRef& artifact);

  /// Drops the run's outputs that no other run owns. Returns their number. Errors: `conflict` (the
  /// run still has the store open), `unavailable`.
  Result<std::size_t> forget(std::string_view run);

  /// Drops outputs that no run owns and that are older than `keep_for`. While the quota is exceeded
  /// it drops the oldest ones that no living run owns. It also removes incomplete files of a crash.
  /// Returns the number. `open` also calls it, and `put` when the quota is reached.
  Result<std::size_t> collect_garbage();

 private:
  struct State;
  explicit ArtifactStore(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// The cut of an output that was too long. A plain value.
struct Truncation {
  std::uint64_t total = 0;  ///< Characters of the whole, and
  std::uint64_t shown = 0;  ///< of the shown part.
  /// The size of the whole in bytes, if only its ends were at hand; then `total` counts each byte
  /// that was not as a character. Else 0.
  std::uint64_t bytes = 0;
  std::string how{};  ///< In words: the removed parts, and how to get the rest.
};

/// A tool's output for the model. A plain value.
struct Output {
  std::string text{};                      ///< UTF-8. A mark shows each cut.
  std::optional<Truncation> truncation{};  ///< The cut; empty: the text is whole.
  std::optional<ArtifactRef> artifact{};   ///< The whole output without secrets.
  std::string artifact_error{};  ///< Why it could not be stored in full; empty: it was, or it fits.
};

/// Limits in characters (code points), items and levels. The depth counts from 1. Lists and objects
/// below the first level get a quarter, except the list `entries` of the first level. A plain
/// value.
struct OutputLimits {
  std::size_t inline_chars = 12'000;  ///< Of the whole output.
  std::size_t string_chars = 3'000;   ///< Of one string.
  std::size_t list_items = 200;       ///< Of one list.
  std::size_t object_keys = 80;       ///< Of one object.
  std::size_t depth = 4;              ///< Of nested values.
};

/// Which part of a long text is more important.
enum class OutputShape : std::uint8_t {
  text,   ///< evenly at both ends
  shell,  ///< a fifth of the beginning, the rest of the end, where errors are
};

/// Replaces invalid UTF-8 by U+FFFD, removes terminals' escape sequences and NUL, and keeps the
/// last state of lines that a program overwrote (CR). Idempotent. Linear.
[[nodiscard]] std::string readable(std::string_view raw);

/// Returns the text within the limits, marked at each cut. A JSON document stays one: its strings,
/// lists and objects are cut one by one; if that is not enough, it is cut as text. No character is
/// split. Idempotent. `rest` says how to get the whole.
[[nodiscard]] Output compacted(std::string_view text, const OutputLimits& limits,
                               OutputShape shape = OutputShape::text, std::string_view rest = {});

/// Prepares a whole output for the agent's own model: above `inline_chars` it is stored, then made
/// readable and compacted. The text keeps its secrets, because the model may write it back. Only
/// what is stored loses them. Do not log, store or send the text elsewhere without `redact`;
/// reports to a session are redacted when they are stored. Without a store, or if storing fails,
/// the output is cut and says so.
/// `whole_bytes`: the size of the whole output, if `raw` has only its ends; else 0.
[[nodiscard]] Output presented(std::string_view raw, const OutputLimits& limits,
                               ArtifactStore* store, OutputShape shape = OutputShape::text,
                               std::uint64_t whole_bytes = 0);

/// The same for an output that is already stored; `raw` may be a part of it.
[[nodiscard]] Output presented(std::string_view raw, const OutputLimits& limits, ArtifactRef kept,
                               OutputShape shape = OutputShape::text,
                               std::uint64_t whole_bytes = 0);

}  // namespace watchdog
