// How programs end, and what they started: by itself, by a stop, or against its will.

#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "calls/running.h"
#include "facts/process.h"
#include "process/descendants.h"
#include "support/spawned.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using test::marked;
using test::Spawned;
using test::Subprocess;
using test::TempDir;

/// A daemon by the book that is deaf to what asks it to end; the output is not its own.
const std::string daemon =
    "setsid sh -c 'trap \"\" TERM HUP INT; (while :; do sleep 0.1; done) & : >$FILE; wait' "
    "</dev/null >/dev/null 2>&1 & while ! test -e $FILE; do sleep 0.01; done; ";

TEST_F(Subprocess, a_child_that_outlives_it_does_not_keep_its_caller_waiting) {
  const auto before = system_clock().since_boot();
  const auto end = run_process(shell("sleep 1000 & echo $!"));
  ASSERT_TRUE(end);
  EXPECT_LT(system_clock().since_boot() - before, Millis{30'000});
  EXPECT_EQ(end->code, 0);
  EXPECT_EQ(end->survivors, 1U);
  EXPECT_EQ(end->survivors_killed, 1U);
  const auto pid = end->head.substr(0, end->head.find('\n'));
  EXPECT_EQ(end->survivor_names, std::vector<std::string>{"sleep (" + pid + ")"});
  EXPECT_FALSE(end->containment_lost || end->output_held || end->stopped);
}

TEST_F(Subprocess, a_child_that_outlives_it_may_finish_its_output) {
  auto spec = shell("(sleep 0.2; echo late) & echo early");
  spec.drain_grace = Millis{60'000};
  const auto end = run_process(spec);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->head, "early\nlate\n");
  EXPECT_EQ(end->survivors, 0U) << "they ended by themselves";
}

TEST_F(Subprocess, a_filter_that_outlives_it_loses_no_line) {
  const TempDir folder;
  std::string all;
  for (int line = 1; line <= 60; ++line) all += std::to_string(line) + "\n";
  for (const std::string filter : {"cat", "tee log", "{ sleep 0.7; cat; }",
                                   "while read line; do echo $line; sleep 0.005; done"}) {
    const auto script = "exec > >(" + filter + ") 2>&1; seq 60; echo last; exit 3";
    const auto end = run_process({.argv = {"bash", "-c", script}, .cwd = folder.path()});
    ASSERT_TRUE(end);
    EXPECT_EQ(end->head, all + "last\n") << filter;
    EXPECT_EQ(end->code, 3);
    EXPECT_FALSE(end->output_cut) << filter;
  }
}

TEST_F(Subprocess, a_child_that_outlives_it_and_writes_without_end_is_cut_off) {
  auto spec = shell("yes & echo $!");
  spec.head_bytes = spec.tail_bytes = 1'024;
  const auto end = run_process(spec);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->survivors, 1U);
  EXPECT_EQ(end->survivors_killed, 1U);
}

TEST_F(Subprocess, many_outlive_it_and_some_are_named) {
  const auto end = run_process(shell(
      "for each in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 1000 & done"));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->survivors, 20U);
  EXPECT_EQ(end->survivors_killed, 20U);
  EXPECT_EQ(end->survivor_names.size(), 16U);
}

TEST_F(Subprocess, a_child_that_outlives_it_may_be_left_alone) {
  auto spec = shell("sleep 1000 & echo $!");
  spec.survivors = Survivors::leave;
  std::optional<Result<ProcessEnd>> end;
  // The one that asked for it ends before it does.
  std::thread([&] { end = run_process(spec); }).join();
  ASSERT_TRUE(end && *end);
  EXPECT_EQ((*end)->survivors, 1U);
  EXPECT_EQ((*end)->survivors_killed, 0U);
  EXPECT_FALSE((*end)->containment_lost);
  EXPECT_TRUE((*end)->output_held);
  const auto left = marked(mark);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(std::to_string(left[0]) + "\n", (*end)->head);
  kill(left[0], SIGKILL);
  wait_until([&] { return marked(mark).empty(); });
}

TEST_F(Subprocess, a_stop_ends_also_what_would_be_left_alone) {
  auto spec = shell("sleep 1000 & echo ready; wait");
  spec.survivors = Survivors::leave;
  const auto end = stopped_when_ready(spec);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->stopped);
  EXPECT_EQ(end->signal, SIGTERM);
}

TEST_F(Subprocess, a_stop_lets_it_say_goodbye) {
  const auto end = stopped_when_ready(
      shell("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->stopped);
  EXPECT_EQ(end->code, 7);
  EXPECT_NE(end->head.find("bye\n"), std::string::npos) << end->head;
}

TEST_F(Subprocess, a_stop_ends_a_deaf_daemon) {
  const TempDir dir;
  auto spec = shell(daemon + "echo ready; sleep 1000");
  spec.env["FILE"] = dir / "there";
  spec.ladder.terminate = Millis{200};
  const auto end = stopped_when_ready(spec);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->stopped);
  EXPECT_EQ(end->signal, SIGTERM);
  EXPECT_GE(end->survivors, 1U);
  EXPECT_EQ(end->survivors_killed, end->survivors);
  EXPECT_FALSE(end->containment_lost);
}

TEST_F(Subprocess, a_stop_kills_what_is_deaf_after_the_leader_heard_it) {
  auto spec = shell("(trap '' TERM; echo ready; while :; do sleep 0.1; done) & wait");
  spec.ladder.terminate = Millis{200};
  const auto end = stopped_when_ready(spec);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->signal, SIGTERM);
  EXPECT_GE(end->survivors_killed, 1U);
  EXPECT_FALSE(end->containment_lost);
}

TEST_F(Subprocess, a_stop_ends_what_flees_from_it) {
  for (const char* how : {"flee", "flee-sessions"}) {
    const auto end =
        stopped_when_ready({.argv = {WATCHDOG_UNRULY, how},
                            .mark = mark,
                            .ladder = {.terminate = Millis{100}, .kill_verify = Millis{60'000}}});
    ASSERT_TRUE(end);
    EXPECT_TRUE(end->stopped);
    EXPECT_EQ(end->signal, SIGKILL);
    EXPECT_FALSE(end->containment_lost);
    EXPECT_TRUE(marked(mark).empty()) << how;
  }
}

TEST_F(Subprocess, a_stop_ends_one_that_was_halted) {
  const auto end = stopped_when_ready(shell("echo ready; kill -STOP $$; echo awake"));
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->stopped);
  EXPECT_EQ(end->signal, SIGTERM);
}

TEST_F(Subprocess, a_stop_without_grace_kills) {
  auto spec = shell("trap '' TERM; echo ready; while :; do sleep 0.1; done");
  spec.ladder.terminate = Millis{0};
  const auto end = stopped_when_ready(spec);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->signal, SIGKILL);
}

TEST_F(Subprocess, a_stop_reaches_it_when_its_supervisor_was_halted) {
  const auto end = stopped_when_ready(shell("kill -STOP $PPID; echo ready; sleep 1000"));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->signal, SIGTERM);
}

TEST_F(Subprocess, that_kills_its_supervisor_does_not_get_away) {
  const TempDir dir;
  auto spec = shell(daemon + "echo before; kill -9 $PPID; sleep 1000");
  spec.env["FILE"] = dir / "there";
  const auto end = run_process(spec);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->signal, SIGKILL);
  EXPECT_EQ(end->head, "before\n");
  EXPECT_GE(end->survivors, 1U);
  EXPECT_EQ(end->survivors_killed, end->survivors);
  EXPECT_FALSE(end->containment_lost);
}

bool is_alive(pid_t pid) {
  const auto found = process_at(pid);
  return found && found->state != 'Z' && found->state != 'X';
}

TEST_F(Subprocess, killing_its_supervisor_leaves_no_process_behind_or_is_reported) {
  // Children with and without an environment, in its session and out of it, with its output and
  // without. They write their numbers into files.
  const std::string children =
      "run='echo $$ >\"$1\"; exec sleep 1000'; "
      "env -i sh -c \"$run\" sh $DIR/0 & "
      "env -i setsid sh -c \"$run\" sh $DIR/1 >/dev/null 2>&1 & "
      "setsid sh -c \"$run\" sh $DIR/2 & "
      "env -i setsid sh -c \"(sh -c '$run' sh $DIR/3 &); $run\" sh $DIR/4 & "
      "for file in 0 1 2 3 4; do while [ ! -s $DIR/$file ]; do :; done; done; "
      "read -r _ _ _ guard _ </proc/$PPID/stat; echo $PPID $guard; sleep 1000";
  for (const std::string killed : {"supervisor", "guard", "both"}) {
    SCOPED_TRACE(killed);
    const TempDir dir;
    auto spec = shell(children);
    spec.env["DIR"] = dir.path();
    const auto kill_one = [&](std::string_view text, OutputStream) {
      std::istringstream numbers{std::string(text)};
      pid_t supervisor = 0;
      pid_t guard = 0;
      numbers >> supervisor >> guard;
      ASSERT_GT(supervisor, 1);
      ASSERT_GT(guard, 1);
      ASSERT_NE(guard, getpid());
      if (killed == "both") kill(guard, SIGSTOP);  // so that it does not see the other's end
      if (killed != "guard") kill(supervisor, SIGKILL);
      if (killed != "supervisor") kill(guard, SIGKILL);
    };
    const auto end = run_process(spec, {.output = kill_one});
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->containment_lost, killed == "both");
    std::vector<pid_t> left;
    for (int at = 0; at < 5; ++at) {
      pid_t pid = 0;
      std::ifstream(dir / std::to_string(at)) >> pid;
      ASSERT_GT(pid, 1);
      if (is_alive(pid)) left.push_back(pid);
    }
    if (killed != "both") {
      EXPECT_TRUE(left.empty()) << left.size() << " got away";
      EXPECT_GE(end->survivors, killed == "supervisor" ? 5U : 0U);
      EXPECT_EQ(end->survivors_killed, end->survivors);
    }
    for (const auto pid : left) kill(pid, SIGKILL);
    // A supervisor without a guard may still be about to exit; only the test's own limit ends this.
    while (!marked(mark).empty()) std::this_thread::yield();
  }
}

TEST_F(Subprocess, dies_with_its_caller) {
  for (const bool caller_forked : {false, true}) {
    const TempDir dir;
    auto spec = shell(daemon + "echo ready; sleep 1000");
    spec.env["FILE"] = dir / "there";
    spec.ladder.terminate = Millis{200};
    std::array<int, 2> copy{};  // a pipe for the number of the caller's copy
    ASSERT_EQ(pipe(copy.data()), 0);
    const pid_t caller = fork();
    if (caller == 0) {
      const auto end = run_process(spec, {.output = [&](std::string_view, OutputStream) {
                                     // It holds all files that the caller has open.
                                     const pid_t forked = caller_forked ? fork() : -1;
                                     if (caller_forked && forked == 0) {
                                       alarm(250);
                                       while (true) pause();
                                     }
                                     if (write(copy[1], &forked, sizeof forked) > 0)
                                       kill(getpid(), SIGKILL);
                                   }});
      _exit(end ? 0 : 1);
    }
    pid_t forked = 0;
    EXPECT_EQ(read(copy[0], &forked, sizeof forked), static_cast<ssize_t>(sizeof forked));
    int status = 0;
    waitpid(caller, &status, 0);
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    wait_until([&] { return marked(mark).empty(); });
    EXPECT_TRUE(!caller_forked || kill(forked, SIGKILL) == 0) << "it was there all the time";
    for (const int file : copy) close(file);
  }
}

TEST_F(Subprocess, of_another_user_is_said_to_be_out_of_reach) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a program of another user";
  constexpr uid_t caller = 64'322;
  constexpr uid_t foreigner = 64'323;
  constexpr int cannot_run = 77;
  const TempDir dir;
  chmod(dir.path().c_str(), 0755);
  const auto program = dir / "foreign";
  std::filesystem::copy_file(WATCHDOG_UNRULY, program);
  ASSERT_EQ(chown(program.c_str(), foreigner, foreigner), 0);
  chmod(program.c_str(), 06755);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(caller) != 0 || setuid(caller) != 0) _exit(cannot_run);
    if (!run_process({.argv = {"/bin/true"}, .mark = mark})) _exit(cannot_run);
    const auto end =
        stopped_when_ready({.argv = {program, "foreign"},
                            .mark = mark,
                            .ladder = {.terminate = Millis{50}, .kill_verify = Millis{100}}});
    if (!end || end->code == 3) _exit(cannot_run);
    _exit(end->containment_lost && end->survivors == 1 && end->survivors_killed == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  for (const pid_t left : marked(mark)) kill(left, SIGKILL);
  wait_until([&] { return marked(mark).empty(); });
  if (WEXITSTATUS(status) == cannot_run) GTEST_SKIP() << "here no program can be another user's";
  EXPECT_EQ(status, 0);
}

TEST_F(Subprocess, leaves_its_callers_children_alone) {
  const Spawned sleeper({"sleep", "1000"});
  const pid_t ended = fork();
  if (ended == 0) _exit(5);
  for (int run = 0; run < 5; ++run) EXPECT_TRUE(run_process(shell("sleep 1000 &")));
  EXPECT_TRUE(process_at(sleeper.pid()));
  int status = -1;
  EXPECT_EQ(waitpid(ended, &status, 0), ended);
  EXPECT_EQ(WEXITSTATUS(status), 5);
}

TEST_F(Subprocess, is_understood_by_a_caller_that_ignores_its_children) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const auto end = run_process(shell("exit 3"));
  std::signal(SIGCHLD, before);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->code, 3);
}

TEST(Descendants, a_number_that_is_anothers_by_now_gets_no_signal) {
  Spawned program({"sleep", "1000"});
  const auto all = descendants();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].pid, program.pid());
  auto reused = all[0];
  reused.parent = 1;  // it was no child of this process, so that somebody else reaped it
  reused.start_ticks -= 1;
  send_signal(reused, SIGKILL);
  EXPECT_EQ(waitpid(program.pid(), nullptr, WNOHANG), 0);
  reused.start_ticks += 1;
  send_signal(reused, SIGKILL);
  siginfo_t info{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(program.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(descendants().empty()) << "it ended and was not waited for";
}

}  // namespace
}  // namespace watchdog
