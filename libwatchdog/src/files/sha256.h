/// \file
/// SHA-256 (FIPS 180-4) of what comes piece by piece.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "files/open_file.h"

struct evp_md_ctx_st;

namespace watchdog {

/// Use from one thread at a time.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes) noexcept;
  /// 64 hexadecimal digits of all that was added. Nothing may be added afterwards.
  [[nodiscard]] std::string digits();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

/// SHA-256 of a text as 64 hexadecimal digits (FIPS 180-4; computed by OpenSSL). Thread-safe.
[[nodiscard]] std::string sha256_of(std::string_view bytes);

/// Of the file's bytes from the first to `end`, or to its end. Empty: errno says why it cannot be
/// read.
[[nodiscard]] std::optional<std::string> sha256_of_file(const OpenFile& file,
                                                        std::uint64_t end = UINT64_MAX);

/// A file that is mostly a hole costs nothing to make and hours to read.
inline constexpr std::uint64_t digest_bytes_max = std::uint64_t{1} << 30U;

/// Returns the digest of the regular file of this name; empty: there is none. Follows no link and
/// never blocks. Errors: `invalid` (something else is there), `exhausted` (it is too long),
/// `unavailable`.
[[nodiscard]] Result<std::optional<std::string>> digest_in(const OpenFile& directory,
                                                           const std::string& name);
/// The same of a path, whose directory may be reached by links.
[[nodiscard]] Result<std::optional<std::string>> digest_of(const std::filesystem::path& path);

/// 64 of `0-9a-f`.
[[nodiscard]] bool is_sha256(std::string_view text) noexcept;

}  // namespace watchdog
