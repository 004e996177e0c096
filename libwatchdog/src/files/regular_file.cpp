#include "files/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "files/secret_file.h"

namespace watchdog {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

Error failed() {
  const int number = errno;
  return {number == ENOENT || number == ENOTDIR ? ErrorCode::not_found : ErrorCode::unavailable,
          std::string("cannot be read: ") + std::strerror(number)};  // NOLINT: glibc's is safe
}

}  // namespace

Result<void> check_secret_file(mode_t mode, uid_t owner, uid_t user) {
  if (owner != user && owner != 0) {
    return Error{ErrorCode::invalid, "belongs to user " + std::to_string(owner) +
                                         ", who can read and replace the secret in it: it must "
                                         "belong to user " +
                                         std::to_string(user) +
                                         " or root. chown it, or remove it if you did not make it"};
  }
  if ((mode & (S_IRWXG | S_IRWXO)) != 0)
    return Error{ErrorCode::invalid, "can be read by others: it holds a secret, chmod 600 it"};
  return {};
}

Result<std::string> read_regular_file(const std::filesystem::path& path, std::size_t bytes_max,
                                      Readers readers) {
  // O_NONBLOCK: a named pipe without a writer must not hold us up.
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  struct stat facts {};
  if (file.fd < 0 || fstat(file.fd, &facts) != 0) return failed();
  if (!S_ISREG(facts.st_mode)) return Error{ErrorCode::invalid, "is not a regular file"};
  if (readers == Readers::owner) {
    if (auto secret = check_secret_file(facts.st_mode, facts.st_uid, geteuid()); !secret)
      return secret.error();
  }
  std::string text(bytes_max + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto count = read(file.fd, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed();
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > bytes_max)
    return Error{ErrorCode::exhausted,
                 "has more than the " + std::to_string(bytes_max) + " bytes that are allowed"};
  text.resize(size);
  return text;
}

}  // namespace watchdog
