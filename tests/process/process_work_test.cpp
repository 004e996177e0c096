// Processes below another one: which of them count, and whether they work.
#include "process/process_work.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <vector>

#include "facts/call_process.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;

/// Children of this process, which end with the test together with what they start.
class Children {
 public:
  ~Children() {
    for (const auto pid : pids_) {
      kill(-pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  void start(const char* script) {
    const auto pid = fork();
    if (pid == 0) {
      setpgid(0, 0);
      execl("/bin/sh", "sh", "-c", script, nullptr);
      _exit(127);
    }
    setpgid(pid, pid);  // whichever of the two is first
    pids_.push_back(pid);
  }

 private:
  std::vector<pid_t> pids_;
};

constexpr const char* sleeps = "sleep 600; true";
constexpr const char* works = "sh -c 'sh -c \"while :; do :; done\"; true'; true";

/// Time is what is tested.
void pause_for(int ms) {
  poll(nullptr, 0, ms);
}

/// True if they are seen to work within some looks: a busy machine may not let them.
bool are_seen_to_work(ProcessWork& work) {
  for (int look = 1; look <= 60; ++look) {
    pause_for(200);
    if (work.look(look * 200ms)) return true;
  }
  return false;
}

TEST(ProcessWork, counts_what_was_started_since_on_every_level) {
  Children children;
  children.start(works);
  pause_for(1'100);
  const auto tick = tick_before(50ms);
  ProcessWork none(getpid(), 0ms, tick);
  EXPECT_TRUE(none.is_empty()) << "what was there before does not count";
  children.start(sleeps);
  pause_for(300);
  ProcessWork asleep(getpid(), 0ms, tick);
  EXPECT_FALSE(asleep.is_empty());
  pause_for(500);
  EXPECT_FALSE(asleep.look(500ms));
  children.start(works);
  EXPECT_TRUE(are_seen_to_work(asleep));
}

}  // namespace
}  // namespace watchdog
