#include "store/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace watchdog {
namespace {

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/// True if this process has the file open. Within one process, connections share the index: one
/// that is opened later goes on with an index that was removed, as long as an older one lives.
bool is_open_here(const struct stat& file) {
  std::error_code trouble;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", trouble)) {
    struct stat info {};
    // By name: the descriptor may belong to another thread that closes it meanwhile.
    if (stat(entry.path().c_str(), &info) == 0 && is_same(info, file)) return true;
  }
  return static_cast<bool>(trouble);  // without /proc it is not known
}

/// True if all bytes of the one file are the first bytes of the other.
bool is_beginning_of(int shorter, int longer) {
  std::array<char, 65'536> a{};
  std::array<char, 65'536> b{};
  for (off_t at = 0;;) {
    const auto count = pread(shorter, a.data(), a.size(), at);
    if (count == 0) return true;
    if (count < 0) return false;
    const auto bytes = static_cast<std::size_t>(count);
    if (pread(longer, b.data(), bytes, at) != count) return false;
    if (!std::equal(a.begin(), a.begin() + count, b.begin())) return false;
    at += count;
  }
}

}  // namespace

Result<StoreFiles> StoreFiles::of(const std::filesystem::path& named, Database& connection) {
  const auto real = connection.real_path();
  StoreFiles all;
  all.files_[database].path = named.string();
  all.files_[log].path = real + "-wal";
  all.files_[index].path = real + "-shm";
  const auto refuse = [](const std::string& path) {
    return Error{ErrorCode::unavailable,
                 path + " was removed or replaced while it was being opened; try again"};
  };
  const bool has_log = connection.journal_mode() == "wal";
  for (auto& file : all.files_) {
    if (!has_log && &file != &all.files_[database]) continue;
    struct stat there {};
    if (stat(file.path.c_str(), &there) != 0 || !is_open_here(there)) return refuse(file.path);
    // Closing any other descriptor of the database would drop SQLite's locks on it.
    const int flags = &file == &all.files_[log] ? O_RDONLY : O_PATH;
    file.fd = open(file.path.c_str(), flags | O_CLOEXEC);
    struct stat opened {};
    if (file.fd < 0 || fstat(file.fd, &opened) != 0 || !is_same(opened, there))
      return refuse(file.path);
    file.device = opened.st_dev;
    file.inode = opened.st_ino;
  }
  return all;
}

StoreFiles::~StoreFiles() {
  for (const auto& file : files_) {
    if (file.fd >= 0) close(file.fd);
  }
}

StoreFiles::StoreFiles(StoreFiles&& other) noexcept : files_(std::exchange(other.files_, {})) {}
StoreFiles& StoreFiles::operator=(StoreFiles&& other) noexcept {
  std::swap(files_, other.files_);
  return *this;
}

bool StoreFiles::is_in_place(const File& file) {
  struct stat there {};
  return file.fd < 0 || (stat(file.path.c_str(), &there) == 0 && there.st_dev == file.device &&
                         there.st_ino == file.inode);
}

bool StoreFiles::in_place() const {
  return is_in_place(files_[database]) && is_in_place(files_[log]) && is_in_place(files_[index]);
}

bool StoreFiles::can_save_log() const {
  if (files_[database].fd < 0 || !is_in_place(files_[database])) return false;
  struct stat there {};
  const bool index_removed = stat(files_[index].path.c_str(), &there) != 0 && errno == ENOENT;
  if (!index_removed && !is_in_place(files_[index])) return false;
  if (is_in_place(files_[log])) return true;
  // A log that was put there and holds no more than ours was not written to.
  const int other = open(files_[log].path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (other < 0) return errno == ENOENT;
  const bool unused = is_beginning_of(other, files_[log].fd);
  close(other);
  return unused;
}

void StoreFiles::empty_new_log() const {
  if (is_in_place(files_[log])) return;
  // If this fails the file is empty already, or gone.
  [[maybe_unused]] const int result = truncate(files_[log].path.c_str(), 0);
}

}  // namespace watchdog
