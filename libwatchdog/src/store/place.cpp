// Checks the database and the files beside it before SQLite opens them: kind, owner, mount and
// mode, in this order. Readers check the kind only. All checks go by path, because closing a
// descriptor of a database drops the locks that SQLite holds in this process. `make_file` opens the
// file only if it does not exist.
#include "store/place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "files/durable_file.h"
#include "store/store.h"

namespace watchdog {

namespace {

/// Files of SQLite and the store beside a database.
constexpr const char* beside[] = {"-wal", "-shm", "-journal", "-writer", "-judge"};

Error refused(const std::filesystem::path& path, ErrorCode code, const std::string& why) {
  return {code, "database " + path.string() + ": " + why};
}
Error refused(const std::filesystem::path& path, const std::string& what, int cause) {
  return refused(path, ErrorCode::unavailable, what + ": " + std::strerror(cause));
}

const char* kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a named pipe";
    case S_IFSOCK:
      return "a socket";
    case S_IFLNK:
      return "a symbolic link";
    default:
      return "a device";
  }
}

/// Each name of a file has a log of its own, so what is written by one name is lost by the other.
Result<void> check_kind(const std::filesystem::path& path, const struct stat& info) {
  if (!S_ISREG(info.st_mode)) {
    return refused(path, ErrorCode::invalid,
                   std::string("it is ") + kind_of(info.st_mode) +
                       ", not a regular file; choose another path");
  }
  if (info.st_nlink > 1) {
    return refused(path, ErrorCode::invalid,
                   "the file has " + std::to_string(info.st_nlink) +
                       " hard links. Each name would get a log of its own (-wal), and events would "
                       "be lost; remove the other names, or use a copy");
  }
  return {};
}

/// The owner of a file can change it, and so what this process does.
Result<void> check_owner(const std::filesystem::path& path, const struct stat& info) {
  const auto own = geteuid();
  if (info.st_uid == own || info.st_uid == 0) return {};
  return refused(path, ErrorCode::invalid,
                 "the file belongs to user " + std::to_string(info.st_uid) +
                     ", and this process runs as user " + std::to_string(own) +
                     ". Only files of this user or of root are used; choose another file, or "
                     "change its owner");
}

/// True for an empty file, and for one that begins as SQLite's do.
bool may_be_database(int file) {
  constexpr std::string_view begin("SQLite format 3\0", 16);
  std::array<char, begin.size()> head{};
  const auto got = pread(file, head.data(), head.size(), 0);
  return got == 0 || (got == static_cast<ssize_t>(head.size()) &&
                      std::string_view(head.data(), head.size()) == begin);
}

/// Removes the access of all users except the owner. The path may lead to any file of this user, so
/// a descriptor is what is looked at and changed. `is_main`: it must be the database.
Result<void> make_private(const std::filesystem::path& path, const struct stat& info,
                          bool is_main) {
  constexpr mode_t others = S_IRWXG | S_IRWXO;
  if ((info.st_mode & others) == 0) return {};
  const int file =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | (is_main ? 0 : O_NOFOLLOW));
  struct stat now {};
  const bool is_same =
      file >= 0 && fstat(file, &now) == 0 && now.st_ino == info.st_ino && now.st_dev == info.st_dev;
  const bool is_ours = is_same && (!is_main || may_be_database(file));
  const bool is_private =
      is_ours && fchmod(file, (info.st_mode & ~others & 07777U) | S_IRUSR | S_IWUSR) == 0;
  const int cause = errno;
  if (file >= 0) close(file);
  if (is_private) return {};
  if (is_same && !is_ours)
    return refused(path, ErrorCode::corrupt, "the file is not a database of SQLite");
  errno = cause;
  // A group that root gave the file to was chosen by root.
  if ((info.st_mode & S_IRWXO) == 0) return {};
  return refused(path, ErrorCode::invalid,
                 "users other than its owner may read or write the file, and its mode cannot be "
                 "changed (" +
                     std::string(std::strerror(errno)) + "); make it 0600");
}

/// A file that is mounted by itself has its log elsewhere than under its other name.
bool is_mounted_alone(const std::filesystem::path& path) {
  struct statx info {};
  return statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS, &info) == 0 &&
         (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/// Of a database that is there. Descriptors of it are neither opened nor closed here: closing one
/// would drop the locks that SQLite holds for other connections of this process.
Result<void> check_own_file(const std::filesystem::path& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return refused(path, "cannot look at the file", errno);
  if (auto checked = check_kind(path, info); !checked) return checked;
  if (auto checked = check_owner(path, info); !checked) return checked;
  if (is_mounted_alone(path)) {
    return refused(path, ErrorCode::invalid,
                   "the file is mounted without its directory, so its log (-wal) would not be the "
                   "one that others use; mount its directory");
  }
  if (auto made = make_private(path, info, true); !made) return made;
  const auto real = real_file(path);
  for (const auto* suffix : beside) {
    const std::filesystem::path file = real.string() + suffix;
    if (lstat(file.c_str(), &info) != 0) continue;
    if (auto checked = check_kind(file, info); !checked) return checked;
    if (auto checked = check_owner(file, info); !checked) return checked;
    if (auto made = make_private(file, info, false); !made) return made;
  }
  if (faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) != 0)
    return refused(path, "cannot be opened for writing", errno);
  return {};
}

Error no_place() {
  return {ErrorCode::invalid,
          "the folder of the database is unknown: neither HOME nor XDG_STATE_HOME is set. Set "
          "one of them, or name a file with --db"};
}

}  // namespace

Result<void> make_file(const std::filesystem::path& path) {
  if (path.empty()) return no_place();
  const auto directory = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  // Parents get the usual mode; the directory that holds the data is private.
  if (const int number = make_folders(directory, 0700); number != 0)
    return refused(path, "cannot make its directory", number);
  // The owner of the folder can put other files into it under the names of ours.
  struct stat folder {};
  if (directory == state_folder() && stat(directory.c_str(), &folder) == 0 &&
      folder.st_uid != geteuid() && folder.st_uid != 0)
    return refused(path, ErrorCode::invalid,
                   "its folder belongs to user " + std::to_string(folder.st_uid) +
                       ", and this process runs as user " + std::to_string(geteuid()) +
                       ". Set HOME to a folder of this user, or name a file with --db");
  struct statfs info {};
  if (statfs(directory.c_str(), &info) != 0)
    return refused(path, "cannot look at its directory", errno);
  if (auto why = network_filesystem(info.f_type)) {
    return refused(path, ErrorCode::invalid,
                   "it would lie on " + *why +
                       ", where locks and shared memory between machines cannot be trusted; choose "
                       "a local file");
  }
  struct stat there {};
  if (stat(path.c_str(), &there) != 0) {
    // Also where a symbolic link leads to, so not O_EXCL.
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0) return refused(path, "cannot be opened for writing", errno);
    close(fd);
  }
  return check_own_file(path);
}

Result<void> check_file(const std::filesystem::path& path) {
  if (path.empty()) return no_place();
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return Error{ErrorCode::not_found, "there is no database " + path.string()};
    return refused(path, "cannot look at the file", errno);
  }
  return check_kind(path, info);
}

std::filesystem::path real_file(const std::filesystem::path& path) {
  std::error_code trouble;
  auto real = std::filesystem::canonical(path, trouble);
  return trouble ? path : real;
}

std::filesystem::path state_folder() {
  const auto env = [](const char* name) -> std::string {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
    return value != nullptr ? value : "";
  };
  if (const auto state = env("XDG_STATE_HOME"); !state.empty())
    return std::filesystem::path(state) / "watchdog";
  const auto home = env("HOME");
  return home.empty() ? std::filesystem::path()
                      : std::filesystem::path(home) / ".local/state/watchdog";
}

std::filesystem::path default_database() {
  const char* chosen = std::getenv("WATCHDOG_DB");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (chosen != nullptr && *chosen != 0) return chosen;
  const auto folder = state_folder();
  return folder.empty() ? folder : folder / "watchdog.db";
}

std::optional<std::string> network_filesystem(std::int64_t type) {
  // Magic numbers of statfs(2).
  switch (type) {
    case 0x6969:
      return "NFS";
    case 0x517B:
    case 0xFF534D42:
    case 0xFE534D42:
      return "SMB";
    case 0x5346414F:
      return "AFS";
    case 0x73757245:
      return "Coda";
    case 0x00C36400:
      return "Ceph";
    case 0x01021997:
      return "9P";
    case 0x47504653:
      return "GPFS";
    case 0x0BD00BD0:
      return "Lustre";
    case 0x786F4256:
      return "a shared folder of VirtualBox";
    case 0xBACBACBC:
      return "a shared folder of VMware";
    default:
      return std::nullopt;
  }
}

}  // namespace watchdog
