#include "process/process_family.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace watchdog::monitor {
namespace {

using Pids = std::vector<std::int64_t>;

ProcessSample sample(std::int64_t pid, std::int64_t parent, std::int64_t group,
                     std::int64_t start = 100) {
  return {.pid = pid,
          .parent = parent,
          .group = group,
          .session = 1,
          .start_ticks = start,
          .state = 'S'};
}

Pids pids_of(const std::vector<ProcessSample>& processes) {
  Pids pids;
  for (const auto& one : processes) pids.push_back(one.pid);
  return pids;
}

TEST(ProcessFamily, has_descendants_of_each_level_and_no_neighbour) {
  // A script started three agents in one group. Numbers began again, so a child's may be lower.
  const std::vector<ProcessSample> all{sample(5, 30, 10),  sample(10, 1, 10),  sample(20, 10, 10),
                                       sample(30, 10, 10), sample(31, 30, 31), sample(40, 10, 10),
                                       sample(41, 40, 10)};
  ProcessFamily family(30, 100);
  auto found = pids_of(family.fold(all));
  EXPECT_EQ(found.front(), 30);
  std::ranges::sort(found);
  EXPECT_EQ(found, (Pids{5, 30, 31}));
  EXPECT_TRUE(family.fold(all).empty());
}

TEST(ProcessFamily, is_empty_for_a_later_process_of_the_same_number) {
  ProcessFamily family(30, 99);
  EXPECT_TRUE(family.fold({sample(30, 1, 30), sample(31, 30, 30)}).empty());
}

TEST(ProcessFamily, keeps_a_member_whose_parent_ended) {
  ProcessFamily family(30, 100);
  family.fold({sample(30, 1, 30), sample(31, 30, 31)});
  const std::vector<ProcessSample> later{sample(31, 1, 31), sample(32, 31, 31)};
  EXPECT_EQ(pids_of(family.fold(later)), Pids{32});
  EXPECT_EQ(pids_of(family.running(later)), (Pids{31, 32}));
  // Another process got the number.
  EXPECT_TRUE(family.running({sample(31, 1, 31, 200)}).empty());
}

TEST(ProcessFamily, finds_an_orphan_by_a_group_that_had_no_stranger) {
  ProcessFamily own(30, 100);
  own.fold({sample(1, 0, 1), sample(30, 1, 30)});
  EXPECT_EQ(pids_of(own.fold({sample(1, 0, 1), sample(33, 1, 30)})), Pids{33});

  ProcessFamily shared(30, 100);
  shared.fold({sample(1, 0, 1), sample(29, 1, 30), sample(30, 1, 30)});
  EXPECT_TRUE(shared.fold({sample(1, 0, 1), sample(29, 1, 30), sample(33, 1, 30)}).empty());
}

TEST(ProcessFamily, finds_an_orphan_in_the_session_of_a_member) {
  const auto in_session = [](std::int64_t pid, std::int64_t parent, std::int64_t session) {
    auto made = sample(pid, parent, 77);  // in a group with a stranger
    made.session = session;
    return made;
  };
  const std::vector<ProcessSample> all{sample(5, 1, 77),      in_session(30, 1, 30),
                                       in_session(33, 1, 30), in_session(34, 30, 34),
                                       in_session(35, 1, 34), in_session(36, 1, 1)};
  ProcessFamily leader(30, 100);
  auto found = pids_of(leader.fold(all));
  std::ranges::sort(found);
  EXPECT_EQ(found, (Pids{30, 33, 34, 35}));
  ProcessFamily member(33, 100);
  EXPECT_EQ(pids_of(member.fold(all)), Pids{33}) << "it leads no session";
}

TEST(LoginShell, leads_a_terminal_and_reads_its_commands) {
  const ProcessSample leader{.pid = 7, .session = 7, .terminal = 34816};
  const std::vector<std::vector<std::string>> shells{
      {"-bash"}, {"bash"}, {"/bin/bash", "-i"}, {"zsh", "-l"}, {"bash", "--rcfile", "/x", "-i"}};
  for (const auto& words : shells) EXPECT_TRUE(is_login_shell(leader, words)) << words.front();
  const std::vector<std::vector<std::string>> programs{
      {}, {"python3"}, {"bash", "agent.sh"}, {"sh", "-c", "sleep 1"}, {"bash", "-lc", "agent"}};
  for (const auto& words : programs) EXPECT_FALSE(is_login_shell(leader, words));
  EXPECT_FALSE(is_login_shell({.pid = 8, .session = 7, .terminal = 34816}, {"bash"}));
  EXPECT_FALSE(is_login_shell({.pid = 7, .session = 7}, {"bash"}));
}

}  // namespace
}  // namespace watchdog::monitor
