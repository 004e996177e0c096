/// \file
/// Unpacks bodies that clients or servers compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace watchdog::monitor {

/// Unpacks a body piece by piece. Use from one thread at a time.
class Unpacker {
 public:
  enum class Fed : std::uint8_t {
    good,
    broken,  ///< the bytes are not understood, or content before them was not
    full     ///< the content is larger than it may be
  };
  Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  virtual ~Unpacker() = default;

  /// Appends the content of the next bytes to `text`, until that has `bytes_max` bytes. Of broken
  /// bytes it appends the content before the fault.
  Fed feed(std::string_view bytes, std::string& text, std::size_t bytes_max = std::string::npos);
  /// True if the content ends here, and false in the middle of it or before its first byte.
  [[nodiscard]] bool is_whole() const noexcept { return is_whole_; }

 protected:
  /// A step: takes bytes off `bytes`, puts content into `piece`, and returns its size.
  struct Step {
    std::size_t size = 0;
    bool is_broken = false;
    bool is_end = false;  ///< A part ended here. Another may follow.
  };
  virtual Step step(std::string_view& bytes, char* piece, std::size_t size_max) = 0;

 private:
  bool is_whole_ = false;
  Fed fed_ = Fed::good;
};

/// Returns an unpacker for a `Content-Encoding`, in any case: `gzip`, `deflate`, and `zstd`
/// and `br` where the program has them. Null: another coding, or none.
[[nodiscard]] std::unique_ptr<Unpacker> unpacker_for(std::string_view coding);

/// For `unpacker_for`. Null: the program was built without the library.
[[nodiscard]] std::unique_ptr<Unpacker> zstd_unpacker();
[[nodiscard]] std::unique_ptr<Unpacker> brotli_unpacker();

}  // namespace watchdog::monitor
