// A copy is made under another name, read back, and gets its name when it is whole. A program that
// is killed leaves only the other name, which the next copy takes over.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "store/reader_state.h"

namespace watchdog {
namespace {

namespace fs = std::filesystem;

Error failed(const fs::path& file, int number) {
  if (number == EEXIST) {
    return {ErrorCode::conflict, file.string() +
                                     " exists already, and a backup replaces no file; "
                                     "choose another name"};
  }
  return {ErrorCode::unavailable, file.string() + ": " + std::strerror(number)};
}

/// The copy while it is being made: empty at first, and locked. Goes away unless it is named.
class Unfinished {
 public:
  explicit Unfinished(fs::path path) : path_(std::move(path)) {}
  ~Unfinished() {
    if (fd_ < 0) return;
    if (!named_) unlink(path_.c_str());
    close(fd_);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  Result<void> begin() {
    // Created with this mode, so no other user can read it at any moment.
    const int fd =
        ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) return failed(path_, errno);
    struct stat opened {};
    struct stat there {};
    const bool own = fstat(fd, &opened) == 0 && S_ISREG(opened.st_mode) &&
                     opened.st_uid == geteuid() && opened.st_nlink == 1;
    if (!own || flock(fd, LOCK_EX | LOCK_NB) != 0 || stat(path_.c_str(), &there) != 0 ||
        there.st_ino != opened.st_ino) {
      close(fd);
      return Error{ErrorCode::conflict,
                   path_.string() + (own ? ": another copy is being written there"
                                         : ": this file is in the way; remove it first")};
    }
    fd_ = fd;
    if (ftruncate(fd_, 0) != 0 || fchmod(fd_, S_IRUSR | S_IWUSR) != 0) return failed(path_, errno);
    return {};
  }

  [[nodiscard]] const fs::path& path() const { return path_; }

  /// Never takes the place of another file.
  Result<void> name(const fs::path& file) {
    int number = renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, file.c_str(), RENAME_NOREPLACE) == 0
                     ? 0
                     : errno;
    if (number == EINVAL || number == ENOSYS) {  // the filesystem cannot
      struct stat there {};
      number = lstat(file.c_str(), &there) == 0                ? EEXIST
               : std::rename(path_.c_str(), file.c_str()) == 0 ? 0
                                                               : errno;
    }
    if (number != 0) return failed(file, number);
    named_ = true;
    return {};
  }

 private:
  fs::path path_;
  int fd_ = -1;
  bool named_ = false;
};

/// Makes what is there durable. 0 or errno.
int sync_path(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int number = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return number;
}

std::int64_t number_in(Database& database, std::string_view sql) {
  auto statement = database.prepare(sql);
  return statement.step() ? statement.integer(0) : 0;
}

/// Reads all of it.
StoreCopy checked(const fs::path& file) {
  Database database(file.string(), OpenMode::read_only);
  auto check = database.prepare("PRAGMA integrity_check(1)");
  if (!check.step() || check.text(0) != "ok") {
    throw SqlFailure{Error{ErrorCode::corrupt, "the copy is damaged: " + check.text(0)}};
  }
  std::error_code trouble;
  const auto bytes = fs::file_size(file, trouble);
  if (trouble) throw SqlFailure{failed(file, trouble.value())};
  return {.bytes = static_cast<std::int64_t>(bytes),
          .sessions = number_in(database, "SELECT count(*) FROM sessions"),
          .events = number_in(database, "SELECT count(*) FROM events")};
}

}  // namespace

Result<StoreCopy> StoreReader::copy_to(const fs::path& file) {
  struct stat there {};
  if (lstat(file.c_str(), &there) == 0) return failed(file, EEXIST);
  Unfinished copy(file.string() + ".partial");
  if (auto begun = copy.begin(); !begun) return begun.error();
  return state_->guarded<StoreCopy>([&]() -> Result<StoreCopy> {
    {
      // A connection that shows an older file as an up-to-date one cannot copy it.
      const auto& own = *state_->database;
      Database source(own.path(), own.mode() == OpenMode::unchanging ? OpenMode::unchanging
                                                                     : OpenMode::read_only);
      auto make = source.prepare("VACUUM INTO ?");
      const auto absolute = fs::absolute(copy.path());  // not a URI, whatever its name
      make.bind(1, absolute.native());
      make.run();
    }
    if (const int number = sync_path(copy.path())) return failed(copy.path(), number);
    const auto found = checked(copy.path());
    if (auto named = copy.name(file); !named) return named.error();
    const auto directory = file.has_parent_path() ? file.parent_path() : fs::path(".");
    if (const int number = sync_path(directory)) {
      unlink(file.c_str());
      return failed(file, number);
    }
    return found;
  });
}

}  // namespace watchdog
