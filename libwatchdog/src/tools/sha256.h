/// \file
/// SHA-256 (FIPS 180-4) of what comes piece by piece.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tools/open_file.h"

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

/// Of the file's bytes from the first to `end`, or to its end. Empty: errno says why it cannot be
/// read.
[[nodiscard]] std::optional<std::string> sha256_of_file(const OpenFile& file,
                                                        std::uint64_t end = UINT64_MAX);

/// 64 of `0-9a-f`.
[[nodiscard]] bool is_sha256(std::string_view text) noexcept;

}  // namespace watchdog
