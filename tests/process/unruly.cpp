// A program that behaves badly, for tests.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

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

}  // namespace

int main(int count, char** words) {
  if (count < 2) return 2;
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
