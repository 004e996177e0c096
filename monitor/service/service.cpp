#include "service/service.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace watchdog::monitor {
namespace {

std::string_view variable(const char* name) noexcept {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value != nullptr ? value : "";
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size()) return {};
  return value;
}

}  // namespace

void notify_service_manager(std::string_view state) noexcept {
  const auto path = variable("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() < 2 || path.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path.front() == '@') address.sun_path[0] = '\0';  // an abstract name
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  // systemd acts if it receives nothing, so a failure is ignored here.
  [[maybe_unused]] const auto sent =
      sendto(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
             reinterpret_cast<const sockaddr*>(&address), length);  // NOLINT: sockets' own way
  close(fd);
}

std::optional<Millis> service_watchdog() {
  const auto microseconds = number(variable("WATCHDOG_USEC"));
  const auto pid = number(variable("WATCHDOG_PID"));
  if (!microseconds || *microseconds < 1'000 || (pid && *pid != getpid())) return {};
  return Millis{*microseconds / 1'000};
}

}  // namespace watchdog::monitor
