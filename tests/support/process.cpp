#include "support/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace watchdog::test {

Process::Process(std::vector<std::string> words, const Options& options) {
  std::array<int, 2> pipe_fds{};
  if (pipe2(pipe_fds.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  auto added = options.environment;
  std::vector<char*> variables;
  for (auto& variable : added) variables.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view own(*variable);
    const auto name = own.substr(0, own.find('=') + 1);
    const auto is_same = [&](const std::string& other) { return other.starts_with(name); };
    if (std::none_of(added.begin(), added.end(), is_same)) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  const int failed =
      posix_spawn(&pid_, words[0].c_str(), &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_fds[1]);
  out_ = pipe_fds[0];
  if (failed != 0) throw std::runtime_error("cannot start " + words[0]);
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGCONT);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(out_);
}

std::string Process::line() {
  while (true) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      auto text = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return text;
    }
    std::array<char, 4096> bytes{};
    const auto count = read(out_, bytes.data(), bytes.size());
    if (count <= 0) return std::exchange(buffer_, {});
    buffer_.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

std::string Process::rest() {
  std::array<char, 65536> bytes{};
  for (ssize_t count = 0; (count = read(out_, bytes.data(), bytes.size())) > 0;) {
    buffer_.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return std::exchange(buffer_, {});
}

void Process::signal(int number) const {
  kill(pid_, number);
}

void Process::stop() const {
  kill(pid_, SIGSTOP);
  int status = 0;
  while (waitpid(pid_, &status, WUNTRACED) == pid_ && !WIFSTOPPED(status)) {
  }
}

int Process::wait() {
  int status = 0;
  if (waitpid(std::exchange(pid_, -1), &status, 0) < 0) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Ran run(std::vector<std::string> words, const Process::Options& options) {
  // A shell joins standard error to the output.
  std::vector<std::string> shelled{"/bin/sh", "-c", "exec \"$@\" 2>&1", "sh"};
  shelled.insert(shelled.end(), words.begin(), words.end());
  Process process(std::move(shelled), options);
  Ran ran;
  ran.output = process.rest();
  ran.code = process.wait();
  return ran;
}

}  // namespace watchdog::test
