#include "cli/tool_server.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace watchdog::monitor {
namespace {

struct Pipe {
  FileDescriptor from;
  FileDescriptor to;
};

std::optional<Pipe> made_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void never_block(int file) {
  (void)fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK);
}

Error start_error(const std::string& program, int number) {
  const auto code = number == ENOENT                        ? ErrorCode::not_found
                    : number == EACCES || number == ENOEXEC ? ErrorCode::invalid
                                                            : ErrorCode::exhausted;
  return {code, "the tool server " + program + " cannot be started: " + std::strerror(number)};
}

}  // namespace

Result<ToolServer> ToolServer::start(const std::vector<std::string>& words) {
  auto input = made_pipe();
  auto output = made_pipe();
  if (!input || !output) return start_error(words.front(), errno);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&files, input->from.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output->to.get(), STDOUT_FILENO);
  sigset_t none;
  sigset_t usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
  std::vector<char*> arguments;
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  for (char** inherited = environ; *inherited != nullptr; ++inherited) {
    // A tool server needs no right in the monitor.
    if (!std::string_view(*inherited).starts_with("WATCHDOG_TOKEN="))
      variables.push_back(*inherited);
  }
  variables.push_back(nullptr);
  pid_t pid = -1;
  const int failed =
      posix_spawnp(&pid, arguments[0], &files, &attributes, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return start_error(words.front(), failed);
  ToolServer server;
  server.pid_ = pid;
  server.process_ = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (const auto named = process_now(pid)) server.named_ = *named;
  server.input_ = std::move(input->to);
  server.output_ = std::move(output->from);
  never_block(server.input());
  never_block(server.output());
  return server;
}

ToolServer::ToolServer(ToolServer&& other) noexcept
    : input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      process_(std::move(other.process_)),
      pid_(std::exchange(other.pid_, -1)),
      named_(std::move(other.named_)),
      wait_status_(other.wait_status_) {}

ToolServer::~ToolServer() {
  if (pid_ < 0 || wait_status_) return;
  signal(SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ToolServer::signal(int number) const {
  if (pid_ > 0 && !wait_status_) (void)killpg(pid_, number);
}

bool ToolServer::has_ended() {
  if (wait_status_) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) wait_status_ = status;
  return wait_status_.has_value();
}

int ToolServer::status() const {
  return WIFSIGNALED(*wait_status_) ? 128 + WTERMSIG(*wait_status_) : WEXITSTATUS(*wait_status_);
}

std::string ToolServer::end_words() const {
  return WIFSIGNALED(*wait_status_)
             ? "was ended by signal " + std::to_string(WTERMSIG(*wait_status_))
             : "exited with code " + std::to_string(WEXITSTATUS(*wait_status_));
}

std::optional<ProcessUse> ToolServer::use() const {
  return wait_status_ ? std::nullopt : use_of(named_);
}

}  // namespace watchdog::monitor
