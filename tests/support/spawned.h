/// \file
/// A program that runs while the test does, from tests that have no monitor.
#pragma once

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "facts/process.h"
#include "watchdog/session.h"

namespace watchdog::test {

/// In a group of its own, which is killed with it.
class Spawned {
 public:
  explicit Spawned(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    if (posix_spawnp(&pid_, arguments[0], nullptr, &attributes, arguments.data(), environ) != 0)
      pid_ = -1;
    posix_spawnattr_destroy(&attributes);
  }
  ~Spawned() { end(); }
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;

  void end() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] ProcessFacts facts() const {
    auto facts = this_process();
    facts.pid = pid_;
    const auto found = process_at(pid_);
    facts.start_ticks = found ? found->start_ticks : 0;
    return facts;
  }

 private:
  pid_t pid_ = -1;
};

/// Looks until the program has `children` children or more, and the last one runs `last`. Gives up
/// only with the test's own time limit.
inline ProcessTree tree_with(const Spawned& program, std::size_t children,
                             const std::string& last) {
  while (true) {
    auto tree = process_tree(program.facts());
    if (!tree) return {};
    if (tree->children.size() >= children && tree->children.back().command == last)
      return std::move(*tree);
  }
}

}  // namespace watchdog::test
