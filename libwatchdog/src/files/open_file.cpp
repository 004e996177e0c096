// Another process may change what a name refers to. So `open_at` follows no link and does not block
// on a pipe, and the owner of a directory is read from its descriptor. Reads and writes go on after
// a signal or a short transfer. A PendingFile removes its file as long as it has a directory;
// `publish` syncs and renames the file, and then `keep` forgets the directory.
#include "files/open_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

#include "files/durable_file.h"
#include "files/write_all.h"

namespace watchdog {
namespace {

Result<OpenFile> owned_directory(OpenFile directory, const std::string& shown) {
  if (!directory) {
    const int number = errno;
    if (number == ENOTDIR || number == ELOOP)
      return Error{ErrorCode::invalid, shown + ": is not a directory"};
    return file_error(shown, number);
  }
  struct stat facts {};
  if (fstat(directory.fd(), &facts) != 0) return file_error(shown, errno);
  if (facts.st_uid != geteuid())
    return Error{ErrorCode::invalid, shown + ": belongs to user " + std::to_string(facts.st_uid) +
                                         ", not to " + std::to_string(geteuid())};
  return directory;
}

}  // namespace

OpenFile::~OpenFile() {
  if (fd_ >= 0) close(fd_);
}

int OpenFile::write_at(std::string_view bytes, std::uint64_t offset) const noexcept {
  while (!bytes.empty()) {
    const auto count = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return EIO;
    bytes.remove_prefix(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return 0;
}

int OpenFile::write(std::string_view bytes) const noexcept {
  return write_all(fd_, bytes);
}

ssize_t OpenFile::read_at(char* into, std::size_t size, std::uint64_t offset) const noexcept {
  std::size_t done = 0;
  while (done < size) {
    const auto count = pread(fd_, into + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<ssize_t>(done);
}

int OpenFile::sync() const noexcept {
  return fsync(fd_) == 0 ? 0 : errno;
}

OpenFile open_at(const OpenFile& directory, const std::string& name, int flags,
                 mode_t mode) noexcept {
  int fd = -1;
  do {
    fd = openat(directory.fd(), name.c_str(),
                flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
  } while (fd < 0 && errno == EINTR);
  return OpenFile(fd);
}

OpenFile directory_of(const std::filesystem::path& path) noexcept {
  const auto end = path.native().rfind('/');
  const auto name = end == std::string::npos ? "." : path.native().substr(0, end + 1);
  return OpenFile(open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Result<OpenFile> open_private_directory(const OpenFile& parent, const std::string& name,
                                        const std::string& shown) {
  if (mkdirat(parent.fd(), name.c_str(), 0700) == 0) {
    if (const int number = parent.sync(); number != 0) return file_error(shown, number);
  } else if (errno != EEXIST) {
    return file_error(shown, errno);
  }
  return owned_directory(open_at(parent, name, O_RDONLY | O_DIRECTORY), shown);
}

Result<OpenFile> open_chosen_directory(const std::filesystem::path& path) {
  if (const int number = make_folders(path, 0700); number != 0) {
    if (number == ENOTDIR)
      return Error{ErrorCode::invalid, path.string() + ": lies in no directory"};
    return file_error(path.string(), number);
  }
  return owned_directory(OpenFile(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
                         path.string());
}

std::vector<std::string> names_in(const OpenFile& directory) {
  std::vector<std::string> names;
  // A description of its own: positions of readers are not shared.
  const int fd = openat(directory.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fd < 0 ? nullptr : fdopendir(fd), closedir);
  if (!stream) return names;
  while (const dirent* entry = readdir(stream.get())) {  // NOLINT: nobody shares the stream
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

Result<std::string> read_whole(const OpenFile& file, std::size_t bytes_max,
                               const std::string& shown) {
  struct stat facts {};
  if (fstat(file.fd(), &facts) != 0) return file_error(shown, errno);
  if (!S_ISREG(facts.st_mode) || static_cast<std::uint64_t>(facts.st_size) > bytes_max)
    return Error{ErrorCode::corrupt, shown + ": is not a regular file of at most " +
                                         std::to_string(bytes_max) + " bytes"};
  std::string text(static_cast<std::size_t>(facts.st_size), '\0');
  const auto count = file.read_at(text.data(), text.size(), 0);
  if (count < 0) return file_error(shown, errno);
  text.resize(static_cast<std::size_t>(count));
  return text;
}

Error file_error(const std::string& shown, int number) {
  const bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
  return {full ? ErrorCode::exhausted : ErrorCode::unavailable,
          shown + ": " + std::generic_category().message(number)};
}

int lock_file(const OpenFile& file) noexcept {
  while (flock(file.fd(), LOCK_EX) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

PendingFile::PendingFile(const OpenFile& directory, std::string name, mode_t mode) noexcept
    : name_(std::move(name)), file_(open_at(directory, name_, O_RDWR | O_CREAT | O_EXCL, mode)) {
  if (file_) directory_ = &directory;
}

PendingFile::~PendingFile() {
  if (directory_ != nullptr) unlinkat(directory_->fd(), name_.c_str(), 0);
}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : directory_(std::exchange(other.directory_, nullptr)),
      name_(std::move(other.name_)),
      file_(std::move(other.file_)) {}

PendingFile& PendingFile::operator=(PendingFile&& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(name_, other.name_);
  std::swap(file_, other.file_);
  return *this;
}

int PendingFile::publish(const OpenFile& directory, const std::string& name) noexcept {
  if (const int number = file_.sync()) return number;
  if (renameat(directory_->fd(), name_.c_str(), directory.fd(), name.c_str()) != 0) return errno;
  keep();
  return 0;
}

int set_time(const OpenFile& file, WallTime at) noexcept {
  const auto ms = at.time_since_epoch().count();
  const timespec time{.tv_sec = ms / 1'000, .tv_nsec = ms % 1'000 * 1'000'000};
  const std::array<timespec, 2> both{time, time};
  return futimens(file.fd(), both.data()) == 0 ? 0 : errno;
}

WallTime time_of(const struct stat& facts) noexcept {
  return WallTime{Millis{facts.st_mtim.tv_sec * 1'000 + facts.st_mtim.tv_nsec / 1'000'000}};
}

}  // namespace watchdog
