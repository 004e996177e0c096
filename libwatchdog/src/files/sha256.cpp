#include "files/sha256.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace watchdog {
namespace {

constexpr std::size_t block_bytes = 256U << 10U;

/// A digest that is wrong would be worse than none.
void require(int done) noexcept {
  if (done != 1) std::abort();
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const noexcept {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (!context_) throw std::bad_alloc();
  require(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::add(std::string_view bytes) noexcept {
  require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Sha256::digits() {
  std::array<unsigned char, 32> digest{};
  require(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr));
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned byte : digest) {
    text += digits[byte >> 4U];
    text += digits[byte & 0x0FU];
  }
  return text;
}

std::string sha256_of(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.digits();
}

std::optional<std::string> sha256_of_file(const OpenFile& file, std::uint64_t end) {
  Sha256 digest;
  std::string block(block_bytes, '\0');
  for (std::uint64_t offset = 0; offset < end;) {
    const auto wanted = std::min<std::uint64_t>(block.size(), end - offset);
    const auto count = file.read_at(block.data(), wanted, offset);
    if (count < 0) return std::nullopt;
    digest.add(std::string_view(block).substr(0, static_cast<std::size_t>(count)));
    offset += static_cast<std::uint64_t>(count);
    if (static_cast<std::uint64_t>(count) < wanted) break;
  }
  return digest.digits();
}

Result<std::optional<std::string>> digest_in(const OpenFile& directory, const std::string& name) {
  const auto file = open_at(directory, name, O_RDONLY);
  struct stat facts {};
  if (!file && errno == ENOENT) return std::optional<std::string>();
  const bool is_other = !file ? errno == ELOOP || errno == ENXIO
                              : fstat(file.fd(), &facts) == 0 && !S_ISREG(facts.st_mode);
  if (is_other) return Error{ErrorCode::invalid, name + " is not a regular file"};
  if (!file) return file_error(name, errno);
  if (static_cast<std::uint64_t>(facts.st_size) > digest_bytes_max) {
    return Error{ErrorCode::exhausted, name + " has " + std::to_string(facts.st_size) +
                                           " bytes; files above " +
                                           std::to_string(digest_bytes_max) + " are not compared"};
  }
  auto digest = sha256_of_file(file, digest_bytes_max);
  if (!digest) return file_error(name, errno);
  return digest;
}

Result<std::optional<std::string>> digest_of(const std::filesystem::path& path) {
  const auto directory = directory_of(path);
  if (directory) return digest_in(directory, path.filename().string());
  if (errno == ENOENT || errno == ENOTDIR) return std::optional<std::string>();
  return file_error(path.string(), errno);
}

bool is_sha256(std::string_view text) noexcept {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace watchdog
