#include "store/place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "watchdog/store.h"

namespace watchdog {

Result<void> make_file(const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& what, int cause) {
    return Error{ErrorCode::unavailable,
                 "database " + path.string() + ": " + what +
                     (cause != 0 ? std::string(": ") + std::strerror(cause) : std::string())};
  };
  const auto directory = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::error_code trouble;
  // Parents get the usual mode; the directory that holds the data is private.
  std::filesystem::create_directories(directory.parent_path(), trouble);
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return refuse("cannot make its directory", errno);
  }
  struct statfs info {};
  if (statfs(directory.c_str(), &info) != 0) return refuse("cannot look at its directory", errno);
  if (auto why = network_filesystem(info.f_type)) {
    return Error{ErrorCode::invalid, "database " + path.string() + ": it would lie on " + *why +
                                         ", where locks and shared memory between machines cannot "
                                         "be trusted; choose a local file"};
  }
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return refuse("cannot be opened for writing", errno);
  close(fd);
  return {};
}

std::filesystem::path default_database() {
  const auto env = [](const char* name) -> std::string {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
    return value != nullptr ? value : "";
  };
  if (const auto chosen = env("WATCHDOG_DB"); !chosen.empty()) return chosen;
  if (const auto state = env("XDG_STATE_HOME"); !state.empty()) {
    return std::filesystem::path(state) / "watchdog" / "watchdog.db";
  }
  const auto home = env("HOME");
  return std::filesystem::path(home.empty() ? "/tmp" : home) / ".local/state/watchdog/watchdog.db";
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
    default:
      return std::nullopt;
  }
}

}  // namespace watchdog
