#include "facts/process.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include "support/spawned.h"

namespace watchdog {
namespace {

using test::Spawned;
using test::tree_with;

TEST(Process, is_seen_with_its_children_and_theirs) {
  const Spawned program({"sh", "-c", "sh -c 'sleep 1000 & sleep 1000 & wait' & wait"});
  const auto tree = tree_with(program, 3, "sleep");
  EXPECT_EQ(tree.root.pid, program.pid());
  EXPECT_EQ(tree.root.parent, getpid());
  EXPECT_EQ(tree.root.command, "sh");
  EXPECT_EQ(tree.root.threads, 1);
  ASSERT_EQ(tree.children.size(), 3U);
  EXPECT_EQ(tree.children[0].parent, program.pid());
  EXPECT_EQ(tree.children[1].parent, tree.children[0].pid);
  EXPECT_EQ(tree.children[2].parent, tree.children[0].pid);
}

TEST(Process, that_is_gone_or_another_is_nothing) {
  Spawned program({"sleep", "1000"});
  const auto facts = program.facts();
  auto other = facts;
  other.start_ticks += 1;
  EXPECT_FALSE(process_tree(other));
  auto elsewhere = facts;
  elsewhere.host += "x";
  EXPECT_FALSE(process_tree(elsewhere));
  EXPECT_TRUE(process_tree(facts));
  program.end();
  EXPECT_FALSE(process_tree(facts));
  EXPECT_FALSE(process_tree({}));
  EXPECT_FALSE(process_at(-1));
}

TEST(Process, shows_one_that_ended_and_was_not_waited_for) {
  const Spawned program({"true"});
  while (process_at(program.pid())->state != 'Z') continue;
  const auto tree = process_tree(program.facts());
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->root.state, 'Z');
  EXPECT_TRUE(tree->children.empty());
  EXPECT_EQ(is_running(program.facts()), false);
}

TEST(Process, many_children_and_levels_are_bounded) {
  const Spawned wide(
      {"sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 0; do sleep 1000 & sleep 1000 & done; wait"});
  EXPECT_EQ(tree_with(wide, ProcessTree::children_max, "sleep").children.size(),
            ProcessTree::children_max);
  // Each shell waits for the next one: `; :` keeps it from becoming that.
  const Spawned deep({"sh", "-c", "sh -c 'sh -c \"sh -c \\\"sleep 1000; :\\\"; :\"; :'; :"});
  const auto tree = tree_with(deep, 3, "sh");
  EXPECT_EQ(tree.children.size(), 3U);
  EXPECT_EQ(tree.children.back().command, "sh") << "sleep is a level deeper";
}

TEST(Process, may_have_any_name) {
  for (const char* name : {"a) S 1 (b", ") ", "new\nline", "\xff\xfe)", "((((", ""}) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_NAME, name);
      raise(SIGSTOP);
      _exit(0);
    }
    ASSERT_EQ(waitpid(child, nullptr, WUNTRACED), child);
    auto facts = this_process();
    facts.pid = child;
    facts.start_ticks = 0;
    const auto tree = process_tree(facts);
    ASSERT_TRUE(tree) << name;
    EXPECT_EQ(tree->root.command, name);
    EXPECT_EQ(tree->root.state, 'T');
    EXPECT_EQ(tree->root.parent, getpid());
    EXPECT_GT(tree->root.start_ticks, 0);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

TEST(Process, numbers_its_threads_and_its_time) {
  const auto self = process_tree(this_process());
  ASSERT_TRUE(self);
  EXPECT_GE(self->root.threads, 1);
  EXPECT_GE(self->root.cpu.count(), 0);
  EXPECT_EQ(self->root.state, 'R');
}

}  // namespace
}  // namespace watchdog
