// A program that behaves badly, for tests.

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "process/exec_message.h"

namespace {

/// No test needs it longer, and one that fails must not leave it for good.
constexpr unsigned seconds_max = 60;

/// Lives on in its child, again and again, so that no process of it is alive for long.
[[noreturn]] void flee(bool out_of_session) {
  const auto until = std::time(nullptr) + seconds_max;
  while (std::time(nullptr) < until) {
    const pid_t child = fork();
    if (child > 0) _exit(0);
    if (child == 0 && out_of_session) setsid();
  }
  _exit(0);
}

/// As watchdog-exec without a free process, but the supervisor is slow to end.
int help_late() {
  std::signal(SIGTERM, SIG_IGN);
  const pid_t supervisor = fork();
  if (supervisor != 0) return waitpid(supervisor, nullptr, 0) == supervisor ? 0 : 3;
  const watchdog::ExecMessage refusal{.kind = watchdog::ExecMessage::Kind::no_process,
                                      .number = EAGAIN};
  send(watchdog::exec_channel, &refusal, sizeof refusal, MSG_NOSIGNAL);
  usleep(300'000);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
  if (count > 5 && std::strcmp(words[5], "late-helper") == 0) return help_late();
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  if (std::strncmp(words[1], "flee", 4) == 0) {
    // Several at once; the leader stays, and stays deaf.
    for (int each = 0; each < 4; ++each)
      if (fork() == 0) flee(std::strcmp(words[1], "flee-sessions") == 0);
  } else if (std::strcmp(words[1], "foreign") == 0) {
    // A set-user-ID file: becomes that user for good, whom its caller may not kill.
    if (setresuid(geteuid(), geteuid(), geteuid()) != 0) return 3;
    if (setresgid(getegid(), getegid(), getegid()) != 0) return 3;
  }
  std::puts("ready");
  std::fflush(stdout);
  alarm(seconds_max);
  while (true) pause();
}
