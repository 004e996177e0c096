/// \file
/// Programs as children: started, spoken to by pipe, killed, and never left behind.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace watchdog::test {

class Process {
 public:
  struct Options {
    std::vector<std::string> environment{};  ///< NAME=value, beside this process's others.
  };
  explicit Process(std::vector<std::string> words) : Process(std::move(words), Options{}) {}
  Process(std::vector<std::string> words, const Options& options);
  /// Kills it if it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// The next line of its standard output, without the newline; empty at its end.
  [[nodiscard]] std::string line();
  /// All that is left of its standard output.
  [[nodiscard]] std::string rest();
  void signal(int number) const;
  /// SIGSTOP; returns once all its threads have stopped.
  void stop() const;
  /// Waits for its end: the exit code, or 128 + the signal.
  int wait();

  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string buffer_;
};

/// Output and exit code of a program that ends by itself. Standard error is in the output.
struct Ran {
  int code = 0;
  std::string output;
};
[[nodiscard]] Ran run(std::vector<std::string> words, const Process::Options& options = {});

}  // namespace watchdog::test
