// The program `watchdog-exec` starts another program and adopts all of its descendants. It ends
// them when the library orders it, or when the process that could order it is gone.
//
// The library cannot adopt the descendants itself. It must not change which processes its host
// adopts, nor reap the host's children. Also, the host may be killed.
//
// It is two processes. The supervisor does the work. A supervised process may kill the supervisor.
// Then the guard, which started the supervisor, adopts the descendants and kills them. Processes
// escape only if both are killed, whatever their environment or session is. Then nobody reports the
// end.

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <string_view>

#include "process/descendants.h"
#include "process/exec_message.h"

namespace watchdog {
namespace {

using Kind = ExecMessage::Kind;

constexpr int survivors_named = 16;
/// Between two looks at what does not want to end.
constexpr long look_ms_max = 20;

struct Options {
  long terminate_ms = 0;
  long verify_ms = 0;
  bool leave = false;
  const char* directory = "";
  char** words = nullptr;
};

void send_message(const ExecMessage& message) {
  send(exec_channel, &message, sizeof message, MSG_NOSIGNAL);
}

long now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000 + now.tv_nsec / 1'000'000;
}

/// As execvp(3), but it runs no script without `#!` by a shell: errno says that it is none.
void execute(char** words) {
  if (std::strchr(words[0], '/') != nullptr) {
    execv(words[0], words);
    return;
  }
  const char* path = getenv("PATH");  // NOLINT(concurrency-mt-unsafe): there is one thread
  if (path == nullptr) path = "/usr/bin:/bin";
  int cause = ENOENT;
  for (const char* end = path; end != nullptr; path = end + 1) {
    end = std::strchr(path, ':');
    const auto length =
        static_cast<int>(end == nullptr ? std::strlen(path) : static_cast<std::size_t>(end - path));
    std::array<char, PATH_MAX> file{};
    if (std::snprintf(file.data(), file.size(), "%.*s%s%s", length, path, length == 0 ? "" : "/",
                      words[0]) < PATH_MAX)
      execv(file.data(), words);
    else
      errno = ENOENT;
    if (errno == EACCES) cause = EACCES;
    if (errno != EACCES && errno != ENOENT && errno != ENOTDIR) return;
    if (end == nullptr) break;
  }
  errno = cause;
}

/// In the child: becomes the program, or says why not.
[[noreturn]] void become(const Options& options, pid_t helper) {
  setpgid(0, 0);
  // Follows the helper's only thread, so it is true of the helper. The next line
  // covers a parent that died before.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != helper) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (options.directory[0] != '\0' && chdir(options.directory) != 0) {
    send_message({.kind = Kind::no_directory, .number = errno});
  } else {
    execute(options.words);
    send_message({.kind = Kind::no_program, .number = errno});
  }
  _exit(127);
}

class Helper {
 public:
  explicit Helper(const Options& options) : options_(options) {}

  /// Starts the supervisor and stays behind as its guard; returns in the supervisor only, or if
  /// none can be started: then this process has no guard.
  void guard() {
    listen();
    void* const page =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || signals_ < 0) return;
    shared_ = new (page) Shared;
    const pid_t guard = getpid();
    const pid_t supervisor = fork();
    if (supervisor > 0) watch_over(supervisor);
    if (supervisor < 0) {
      shared_ = nullptr;
      return;
    }
    guard_ = guard;
    setpgid(0, 0);  // so that no signal to a group ends both
    close(signals_);
    listen();
    if (getppid() != guard_) _exit(0);
  }

  /// True: started.
  bool start() {
    auto order = Order::none;
    while (order == Order::none) order = wait(-1);
    if (order != Order::start) return false;
    const pid_t self = getpid();
    leader_ = signals_ < 0 ? -1 : fork();
    if (leader_ == 0) become(options_, self);
    if (shared_ != nullptr) shared_->leader = leader_;
    if (leader_ < 0) send_message({.kind = Kind::no_process, .number = errno});
    leave_output();
    return leader_ > 0;
  }

  void supervise() {
    auto order = Order::none;
    while (reap() && order == Order::none) {
      order = wait(-1);
      if (order == Order::settle && leader_ != 0) order = Order::none;
    }
    ExecMessage done{.kind = Kind::done};
    if (reap()) {
      if (order == Order::settle) done.number = name_survivors();
      if (order == Order::stop || !options_.leave) end_all(done);
    }
    conclude(done);
  }

 private:
  enum class Order { none, start, settle, stop };

  /// The guard's knowledge of the supervisor.
  struct Shared {
    ExecMessage last{};  ///< `done`, once it is.
    pid_t leader = 0;    ///< As long as it was not reaped.
  };

  /// From now on this process adopts, and hears of its children and of its parent's end.
  void listen() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    sigset_t heard;
    sigemptyset(&heard);
    for (const int signal : {SIGCHLD, SIGTERM, SIGCONT}) sigaddset(&heard, signal);
    signals_ = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    // A host that forked leaves the channel's other end open in its child. The thread that started
    // this waits for it as long as it runs, so the signal means just that the host is gone.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
  }

  /// The pipes end with those who write.
  static void leave_output() {
    dup2(STDIN_FILENO, STDOUT_FILENO);
    dup2(STDIN_FILENO, STDERR_FILENO);
  }

  /// The guard reports the end when nothing is left to reap.
  void conclude(const ExecMessage& done) {
    if (shared_ != nullptr && getppid() == guard_) {
      shared_->last = done;
    } else {
      send_message(done);
    }
  }

  [[noreturn]] void watch_over(pid_t supervisor) {
    prctl(PR_SET_NAME, "watchdog-guard");
    leave_output();
    int status = 0;
    while (!has_ended(supervisor, status)) {
      pollfd heard{signals_, POLLIN, 0};
      poll(&heard, 1, -1);
      signalfd_siginfo signal{};
      while (read(signals_, &signal, sizeof signal) == sizeof signal) {
        if (signal.ssi_signo != SIGCHLD) kill(supervisor, static_cast<int>(signal.ssi_signo));
      }
    }
    if (!WIFEXITED(status)) {
      adopt();
    } else if (shared_->last.kind == Kind::done) {
      send_message(shared_->last);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 0);
  }

  /// Nobody but the guard may halt it, and the guard does not.
  static bool has_ended(pid_t supervisor, int& status) {
    while (true) {
      const pid_t pid = waitpid(supervisor, &status, WNOHANG | WUNTRACED);
      if (pid < 0 && errno == EINTR) continue;
      if (pid != supervisor) return pid < 0;
      if (!WIFSTOPPED(status)) return true;
      kill(supervisor, SIGCONT);
    }
  }

  /// The supervisor was killed. Its descendants are now below this process, and its leader dies.
  void adopt() {
    leader_ = shared_->leader;
    ExecMessage done{.kind = Kind::done, .number = name_survivors()};
    kill_for_certain(done);
    done.killed = done.number - done.left;
    send_message(done);
  }

  static Order order_of(const ExecMessage& message) {
    if (message.kind == Kind::start) return Order::start;
    return message.kind == Kind::settle ? Order::settle : Order::stop;
  }

  /// True while there is any child. As a subreaper this has no descendants without a child.
  bool reap() {
    int status = 0;
    while (true) {
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid == 0) return true;
      if (pid < 0 && errno != EINTR) return false;
      if (pid != leader_) continue;
      leader_ = 0;
      send_message({.kind = Kind::exited, .number = status});
      if (shared_ != nullptr) shared_->leader = 0;
    }
  }

  /// Until an order comes, a child ends, or the time is over (-1: never).
  Order wait(long time_ms) {
    std::array<pollfd, 2> fds{{{channel_, POLLIN, 0}, {signals_, POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), static_cast<int>(std::min<long>(time_ms, INT_MAX))) <= 0)
      return Order::none;
    auto order = Order::none;
    signalfd_siginfo signal{};
    while (read(signals_, &signal, sizeof signal) == sizeof signal)
      if (signal.ssi_signo == SIGTERM) order = Order::stop;
    if (fds[0].revents == 0) return order;
    ExecMessage message;
    const auto bytes = recv(channel_, &message, sizeof message, MSG_DONTWAIT);
    if (bytes != sizeof message) {
      channel_ = -1;
      return Order::stop;
    }
    return order == Order::none ? order_of(message) : order;
  }

  int name_survivors() const {
    auto found = descendants();
    // A process that ends closes its output first. If it hangs then, kill_for_certain counts it.
    std::erase_if(found,
                  [this](const Descendant& one) { return one.pid == leader_ || one.is_ending; });
    int named = 0;
    for (const auto& one : found) {
      if (named++ == survivors_named) break;
      send_message({.kind = Kind::survivor, .number = one.pid, .name = one.name});
    }
    return static_cast<int>(found.size());
  }

  void end_all(ExecMessage& done) {
    for (const auto& one : descendants()) {
      send_signal(one, SIGTERM);
      send_signal(one, SIGCONT);  // what is stopped hears nothing else
    }
    const long kill_at = now_ms() + options_.terminate_ms;
    bool left = reap();
    for (long now = now_ms(); left && now < kill_at; now = now_ms(), left = reap())
      wait(kill_at - now);
    if (left) kill_for_certain(done);
    done.killed = done.number - done.left;
  }

  void kill_for_certain(ExecMessage& done) {
    if (leader_ == 0 && done.number == 0) done.number = name_survivors();
    const long give_up_at = now_ms() + options_.verify_ms;
    long pause = 1;
    for (kill_all(); reap() && now_ms() < give_up_at; kill_all()) {
      wait(pause);
      pause = std::min(2 * pause, look_ms_max);
    }
    if (!reap()) return;
    done.left = std::max(1, static_cast<int>(descendants().size()));  // it may not see them all
    done.number = std::max(done.number, done.left);
  }

  /// One round. Processes that are forked meanwhile are found in the next one.
  static void kill_all() {
    for (const auto& one : descendants()) {
      // A signal to a whole group leaves no time to fork. The group's number is not reused while an
      // unreaped child of ours is in it. (0 and 1 would mean all processes.)
      if (one.parent == getpid() && one.group != getpgrp() && one.group > 1)
        kill(-one.group, SIGKILL);
      send_signal(one, SIGKILL);
    }
  }

  const Options& options_;
  int channel_ = exec_channel;
  int signals_ = -1;
  pid_t leader_ = 0;
  pid_t guard_ = 0;
  Shared* shared_ = nullptr;  ///< Between guard and supervisor; null: there is no guard.
};

constexpr std::string_view usage =
    "Usage: watchdog-exec TERMINATE_MS VERIFY_MS kill|leave DIRECTORY PROGRAM [ARGUMENT...]\n"
    "libwatchdog starts it to run PROGRAM; its descriptor 3 is a socket to there.\n";

/// Writes a text and returns the exit code.
int say(int to, std::string_view text, int code) {
  return write(to, text.data(), text.size()) < 0 ? 3 : code;
}

}  // namespace
}  // namespace watchdog

int main(int count, char** words) {
  using namespace watchdog;
  int type = 0;
  socklen_t bytes = sizeof type;
  const std::string_view asked = count == 2 ? words[1] : "";
  if (asked == "--help") return say(STDOUT_FILENO, usage, 0);
  if (asked == "--version") return say(STDOUT_FILENO, "watchdog-exec " WATCHDOG_VERSION "\n", 0);
  if (count < 6 || getsockopt(exec_channel, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 ||
      type != SOCK_SEQPACKET)
    return say(STDERR_FILENO, usage, 2);
  fcntl(exec_channel, F_SETFD, FD_CLOEXEC);
  const Options options{.terminate_ms = std::atol(words[1]),
                        .verify_ms = std::atol(words[2]),
                        .leave = std::strcmp(words[3], "leave") == 0,
                        .directory = words[4],
                        .words = words + 5};
  Helper helper(options);
  helper.guard();
  if (helper.start()) helper.supervise();
  _exit(0);
}
