#include "tools/file_digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

namespace watchdog {
namespace {

Error failed(const std::filesystem::path& path, const std::string& why) {
  return {ErrorCode::unavailable, path.string() + " cannot be read: " + why};
}

}  // namespace

Result<std::optional<std::string>> file_digest(const std::filesystem::path& path) {
  using Digest = std::optional<std::string>;
  // Not blocking: the other end of a pipe may never come.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return Digest{};
    if (errno == ELOOP || errno == ENXIO) {
      return Error{ErrorCode::invalid, path.string() + " is no regular file"};
    }
    return failed(path, std::strerror(errno));
  }
  const std::unique_ptr<const int, void (*)(const int*)> closer(
      &fd, [](const int* open_fd) { close(*open_fd); });
  struct stat facts {};
  if (fstat(fd, &facts) != 0) return failed(path, std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) {
    return Error{ErrorCode::invalid, path.string() + " is no regular file"};
  }
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
    return failed(path, "no digest can be computed");
  }
  std::vector<char> piece(64U << 10U);
  while (true) {
    const auto got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(path, std::strerror(errno));
    if (got == 0) break;
    EVP_DigestUpdate(context.get(), piece.data(), static_cast<std::size_t>(got));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), bytes.data(), &size);
  std::string text;
  for (unsigned at = 0; at < size; ++at) {
    constexpr const char* digits = "0123456789abcdef";
    text += digits[bytes[at] >> 4U];
    text += digits[bytes[at] & 15U];
  }
  return Digest{std::move(text)};
}

}  // namespace watchdog
