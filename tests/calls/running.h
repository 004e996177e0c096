/// \file
/// Programs run by run_process, and whether anything of them is left.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "watchdog/subprocess.h"

namespace watchdog::test {

/// Processes in whose environment the call is named, this one not.
inline std::vector<pid_t> marked(const std::string& mark) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    std::from_chars(name.data(), name.data() + name.size(), pid);
    if (pid == 0 || pid == getpid()) continue;
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    if (text.find("WATCHDOG_CALL=" + mark) != std::string::npos) found.push_back(pid);
  }
  return found;
}

inline std::size_t open_files() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

/// Each test has a mark of its own, and leaves nothing that carries it.
class Subprocess : public testing::Test {
 protected:
  Subprocess() { setenv("WATCHDOG_EXEC", WATCHDOG_EXEC_BUILT, 1); }
  ~Subprocess() override {
    EXPECT_TRUE(marked(mark).empty()) << "processes are left";
    EXPECT_EQ(open_files(), files_before_) << "files are left";
  }

  /// Its specification: `sh -c` with this script. A busy machine may take long to verify an end.
  [[nodiscard]] SpawnSpec shell(const std::string& script) const {
    return {.argv = {"sh", "-c", script}, .mark = mark, .ladder = {.kill_verify = Millis{60'000}}};
  }
  /// Asks it to stop as soon as it has said `ready`.
  static Result<ProcessEnd> stopped_when_ready(const SpawnSpec& spec) {
    std::stop_source source;
    std::string said;
    return run_process(spec, {.stop = source.get_token(),
                              .output = [&](std::string_view bytes, OutputStream /*from*/) {
                                said += bytes;
                                if (said.find("ready") != std::string::npos) source.request_stop();
                              }});
  }
  /// Waits for it, as long as the test may last.
  static void wait_until(const auto& holds) {
    while (!holds()) usleep(1'000);
  }

  static std::string fresh_mark() {
    static std::atomic<int> count{0};
    return "test-" + std::to_string(getpid()) + "-" + std::to_string(++count) + "-end";
  }

  const std::string mark = fresh_mark();

 private:
  const std::size_t files_before_ = open_files();
};

}  // namespace watchdog::test
