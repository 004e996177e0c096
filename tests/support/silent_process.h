/// \file
/// A model's server that accepts connections and never answers.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "net/url.h"

namespace watchdog::test {

/// A process with a port that never answers anybody: the kernel accepts the connections.
class SilentProcess {
 public:
  SilentProcess() {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener, any, size), 0);
    EXPECT_EQ(listen(listener, 64), 0);
    EXPECT_EQ(getsockname(listener, any, &size), 0);
    url_ = {.host = "127.0.0.1", .port = std::to_string(ntohs(address.sin_port))};
    pid_ = fork();
    while (pid_ == 0) pause();
    close(listener);
  }
  ~SilentProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  SilentProcess(const SilentProcess&) = delete;
  SilentProcess& operator=(const SilentProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const Url& url() const { return url_; }

 private:
  pid_t pid_ = 0;
  Url url_;
};

}  // namespace watchdog::test
