// Each listener binds a socket in a directory beside the database; the socket's name says what it
// listens to. A notifier reads that directory again only after it changed. The times of directories
// are coarse, so a directory that changed just now is read at the next notification too. A refused
// connection shows that the listener's process died, and its socket is removed.
#include "store/change_notifier.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "store/place.h"

namespace watchdog {
namespace {

std::filesystem::path directory_of(const std::filesystem::path& database) {
  return real_file(database).string() + ".bells";
}

/// Socket paths may have 107 bytes; through the directory's descriptor any depth will do.
sockaddr_un address_in(int directory_fd, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto path = "/proc/self/fd/" + std::to_string(directory_fd) + "/" + name;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);  // NOLINT: the sockets API wants it so
}

/// After this many names of dead processes there is another fault.
constexpr int names_tried_max = 100;

}  // namespace

Result<ChangeListener> ChangeListener::for_all(const std::filesystem::path& database) {
  return bind_socket(database, "all");
}

Result<ChangeListener> ChangeListener::for_session(const std::filesystem::path& database,
                                                   SessionKey session) {
  return bind_socket(database, "s" + std::to_string(session));
}

Result<ChangeListener> ChangeListener::bind_socket(const std::filesystem::path& database,
                                                   const std::string& prefix) {
  static std::atomic<int> counter{0};
  const auto directory = directory_of(database);
  const auto refuse = [&](const char* what) {
    return Error{ErrorCode::unavailable,
                 directory.string() + ": " + what + ": " + std::strerror(errno)};
  };
  mkdir(directory.c_str(), 0700);
  const int directory_fd = open(directory.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  if (directory_fd < 0) return refuse("open");
  ChangeListener listener;
  listener.fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // Before it has a name, so that no umask gives it to others.
  if (listener.fd_ >= 0) fchmod(listener.fd_, S_IRUSR | S_IWUSR);
  std::string name;
  bool bound = false;
  // In a container a killed process and its successor have the same pid, and the name is taken.
  for (int tries = 0; listener.fd_ >= 0 && !bound && tries < names_tried_max; ++tries) {
    name = prefix + "-" + std::to_string(getpid()) + "-" + std::to_string(++counter);
    const auto address = address_in(directory_fd, name);
    bound = bind(listener.fd_, generic(address), sizeof address) == 0;
    if (!bound && errno != EADDRINUSE) break;
  }
  const int cause = errno;
  close(directory_fd);
  errno = cause;
  if (!bound) return refuse("bind");
  listener.socket_ = directory / name;
  listener.pid_ = getpid();
  return listener;
}

ChangeListener::~ChangeListener() {
  if (fd_ < 0) return;
  close(fd_);
  if (pid_ != getpid()) return;
  std::error_code ignored;
  std::filesystem::remove(socket_, ignored);
}

ChangeListener::ChangeListener(ChangeListener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), socket_(std::move(other.socket_)), pid_(other.pid_) {}

ChangeListener& ChangeListener::operator=(ChangeListener&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(socket_, other.socket_);
  std::swap(pid_, other.pid_);
  return *this;
}

void ChangeListener::clear() const noexcept {
  std::array<char, 16> rings{};
  while (recv(fd_, rings.data(), rings.size(), 0) > 0) {
  }
}

ChangeNotifier::ChangeNotifier(std::filesystem::path database)
    : directory_(directory_of(database)) {
  fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

ChangeNotifier::~ChangeNotifier() {
  if (fd_ >= 0) close(fd_);
}

void ChangeNotifier::look_again() {
  struct stat info {};
  if (stat(directory_.c_str(), &info) != 0) {
    names_.clear();
    return;
  }
  const auto change = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (change == seen_change_ns_) return;
  names_.clear();
  const int directory_fd = open(directory_.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  if (directory_fd < 0) return;
  std::error_code trouble;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, trouble)) {
    const std::string name = entry.path().filename();
    const auto address = address_in(directory_fd, name);
    const int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool abandoned = probe >= 0 && connect(probe, generic(address), sizeof address) != 0 &&
                           errno == ECONNREFUSED;
    if (probe >= 0) close(probe);
    if (abandoned) {  // its process died
      unlinkat(directory_fd, name.c_str(), 0);
    } else {
      names_.push_back(name);
    }
  }
  close(directory_fd);
  // A listener hung within the clock's resolution of this look would be missed: look again next
  // time.
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const auto now_ns = now.tv_sec * 1'000'000'000 + now.tv_nsec;
  seen_change_ns_ = now_ns - change > 50'000'000 ? change : -1;
}

void ChangeNotifier::notify(const std::vector<SessionKey>& addressed) {
  look_again();
  if (names_.empty() || fd_ < 0) return;
  const int directory_fd = open(directory_.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  if (directory_fd < 0) return;
  for (const auto& name : names_) {
    if (!name.starts_with("all-")) {
      SessionKey session = -1;
      std::from_chars(name.data() + 1, name.data() + name.size(), session);
      if (std::find(addressed.begin(), addressed.end(), session) == addressed.end()) continue;
    }
    const auto address = address_in(directory_fd, name);
    // A full queue has rung already; a refused connection is a listener whose process died.
    if (sendto(fd_, "!", 1, 0, generic(address), sizeof address) < 0 && errno == ECONNREFUSED) {
      unlinkat(directory_fd, name.c_str(), 0);
    }
  }
  close(directory_fd);
}

}  // namespace watchdog
