#include "service/service_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

namespace watchdog::monitor {
namespace {

constexpr int first_passed = 3;

std::optional<int> passed_number(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  const std::string_view text = value != nullptr ? value : "";
  int number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size()) return {};
  return number;
}

int option_of(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

}  // namespace

Result<std::optional<int>> service_socket() {
  const auto pid = passed_number("LISTEN_PID");
  const auto count = passed_number("LISTEN_FDS");
  if (!pid || !count || *pid != getpid() || *count < 1) return std::optional<int>();
  if (*count > 1) {
    return Error{ErrorCode::invalid,
                 "the service manager passed " + std::to_string(*count) +
                     " sockets; the monitor takes one. Remove the others from "
                     "the socket unit",
                 "LISTEN_FDS"};
  }
  const int domain = option_of(first_passed, SO_DOMAIN);
  if (option_of(first_passed, SO_ACCEPTCONN) != 1 || (domain != AF_INET && domain != AF_INET6)) {
    return Error{ErrorCode::invalid,
                 "the service manager passed a socket that does not listen on TCP. Use "
                 "ListenStream=ADDRESS:PORT in the socket unit",
                 "LISTEN_FDS"};
  }
  fcntl(first_passed, F_SETFD, FD_CLOEXEC);  // NOLINT: as POSIX has it
  return std::optional<int>(first_passed);
}

}  // namespace watchdog::monitor
