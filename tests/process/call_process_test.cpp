// Which processes run the command of a call.
#include "facts/call_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "facts/process.h"
#include "watchdog/report.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;

/// A process of this moment below `parent`. All began when this test did.
ProcessSample process(std::int64_t pid, std::int64_t parent, std::string command) {
  auto sample = *process_at(getpid());
  sample.pid = pid;
  sample.parent = parent;
  sample.command = std::move(command);
  sample.state = 'S';
  sample.cpu = Millis{10};
  return sample;
}

ProcessTree tree_with(std::vector<ProcessSample> children) {
  return {.root = process(1, 0, "agent"), .children = std::move(children)};
}

constexpr Millis long_ago{86'400'000};

TEST(CallProcess, a_command_is_known_by_the_name_of_a_program) {
  for (const auto& [command, name] : {std::pair{"npm ci", "npm ci"},
                                      {"cd x && ./thresh --all", "thresh"},
                                      {"FOO=1 /usr/bin/sleep 600", "sleep"},
                                      {"./a-very-long-program-name", "a-very-long-pro"}}) {
    EXPECT_TRUE(is_named_in(command, name)) << command;
  }
  for (const auto& [command, name] : {std::pair{"bash run.sh", "bash"},
                                      {"make cider", "afplay"},
                                      {"sleepy 600", "sleep"},
                                      {"make", ""}}) {
    EXPECT_FALSE(is_named_in(command, name)) << command;
  }
}

TEST(CallProcess, the_child_of_the_agent_counts_with_all_below_it) {
  const auto tree = tree_with({process(2, 1, "node"), process(3, 1, "bash"), process(4, 3, "make"),
                               process(5, 4, "cc1plus"), process(6, 2, "tsserver")});
  const auto found = processes_of_call(tree, "make -j4", long_ago);
  ASSERT_TRUE(found);
  std::vector<std::int64_t> pids;
  for (const auto& one : *found) pids.push_back(one.pid);
  EXPECT_EQ(pids, (std::vector<std::int64_t>{3, 4, 5}));
}

TEST(CallProcess, processes_rest_if_they_are_the_same_and_used_no_time_of_a_core) {
  const CallProcesses before{process(3, 1, "bash"), process(4, 3, "make")};
  EXPECT_TRUE(have_rested(before, before, 5s));
  auto works = before;
  works[1].cpu += 200ms;
  EXPECT_FALSE(have_rested(before, works, 5s));
  works[1].cpu = before[1].cpu + 20ms;
  EXPECT_TRUE(have_rested(before, works, 5s)) << "timers take that much";
  EXPECT_FALSE(have_rested(before, {before[0]}, 5s)) << "one has ended";
  auto other = before;
  ++other[1].start_ticks;
  EXPECT_FALSE(have_rested(before, other, 5s)) << "another one has its number";
}

TEST(CallProcess, doubt_names_no_process) {
  EXPECT_FALSE(processes_of_call(
      tree_with({process(2, 1, "make"), process(3, 1, "bash"), process(4, 3, "make")}), "make",
      long_ago))
      << "two commands of that name run";
  EXPECT_FALSE(processes_of_call(tree_with({process(2, 1, "bash")}), "make", long_ago));
  EXPECT_FALSE(processes_of_call(tree_with({process(2, 1, "make")}), "make", Millis{-500}))
      << "it began before the call";
  auto ended = process(2, 1, "make");
  ended.state = 'Z';
  EXPECT_FALSE(processes_of_call(tree_with({ended}), "make", long_ago));
}

}  // namespace
}  // namespace watchdog
