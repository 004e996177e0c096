#include "watchdog/subprocess.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <numeric>
#include <thread>

#include "calls/running.h"
#include "process/exec_process.h"
#include "process/head_tail_buffer.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using test::Subprocess;
using test::TempDir;

std::string lines_to(int last) {
  std::string text;
  for (int line = 1; line <= last; ++line) text.append(std::to_string(line)).append("\n");
  return text;
}

TEST_F(Subprocess, says_what_it_wrote_and_how_it_ended) {
  const auto end = run_process(shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->code, 3);
  EXPECT_EQ(end->signal, std::nullopt);
  EXPECT_EQ(end->status(), 3);
  EXPECT_TRUE(end->head == "out\nerr\n" || end->head == "err\nout\n") << end->head;
  EXPECT_EQ(end->tail, "");
  EXPECT_EQ(end->err_tail, "err\n");
  EXPECT_EQ(end->output_bytes, 8U);
  EXPECT_EQ(end->survivors, 0U);
  EXPECT_FALSE(end->stopped || end->containment_lost || end->output_held);
}

TEST_F(Subprocess, that_a_signal_ended_has_no_code) {
  const auto end = run_process(shell("kill -TERM $$"));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, std::nullopt);
  EXPECT_EQ(end->signal, SIGTERM);
  EXPECT_EQ(end->status(), 143);
  EXPECT_FALSE(end->stopped);
}

TEST_F(Subprocess, is_found_in_its_path_and_gets_its_words_unchanged) {
  const TempDir dir;
  std::ofstream(dir / "tool") << "#!/bin/sh\nfor word; do echo \"[$word]\"; done\npwd\n";
  chmod((dir / "tool").c_str(), 0755);
  SpawnSpec spec{.argv = {"tool", "", "a b", "$HOME", "*", "\n"},
                 .cwd = "/",
                 .env = {{"PATH", "/nowhere::" + dir.path().string() + ":/usr/bin:/bin"}},
                 .mark = mark};
  auto end = run_process(spec);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->head, "[]\n[a b]\n[$HOME]\n[*]\n[\n]\n/\n");

  spec.argv = {"./tool"};  // as after a cd
  spec.cwd = dir.path();
  end = run_process(spec);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->head, dir.path().string() + "\n");
}

TEST_F(Subprocess, says_while_its_processes_work) {
  for (const auto& [script, works] :
       {std::pair{"(while :; do :; done) & sleep 1; kill $!", true}, std::pair{"sleep 1", false}}) {
    int looks = 0;
    const auto end =
        run_process(shell(script), {.working = [&] { ++looks; }, .look_every = Millis{250}});
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(looks > 0, works) << script << ": " << looks;
  }
}

TEST_F(Subprocess, gets_no_secrets_and_asks_nobody) {
  setenv("SECRET_KEY", "hunter2", 1);
  setenv("LC_TIME", "C", 1);
  setenv("PAGER", "less", 1);
  auto spec = shell("env");
  spec.env = {{"TERM", "xterm"}, {"OWN", "a=b"}};
  const auto end = run_process(spec);
  ASSERT_TRUE(end);
  const auto has = [](const ProcessEnd& of, const std::string& line) {
    return ("\n" + of.head).find("\n" + line + "\n") != std::string::npos;
  };
  EXPECT_EQ(end->head.find("hunter2"), std::string::npos);
  for (const char* line : {"LC_TIME=C", "PAGER=cat", "GIT_TERMINAL_PROMPT=0", "OWN=a=b"})
    EXPECT_TRUE(has(*end, line)) << line << " in " << end->head;
  EXPECT_TRUE(has(*end, "TERM=xterm")) << "what the caller sets is set";
  EXPECT_TRUE(has(*end, "WATCHDOG_CALL=" + mark));

  for (const char* line : {"EDITOR=false", "GIT_ASKPASS=false", "DEBIAN_FRONTEND=noninteractive",
                           "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_1=sequence.editor"})
    EXPECT_TRUE(has(*end, line)) << line << " in " << end->head;

  setenv("GIT_EDITOR", "vi", 1);
  spec.env.insert({{"GIT_CONFIG_COUNT", "1"}, {"GIT_CONFIG_KEY_0", "a.b"}, {"EDITOR", "ed"}});
  spec.inherit_env = true;
  const auto all = run_process(spec);
  ASSERT_TRUE(all);
  EXPECT_TRUE(has(*all, "SECRET_KEY=hunter2"));
  EXPECT_TRUE(has(*all, "PAGER=cat"));
  EXPECT_TRUE(has(*all, "EDITOR=ed"));
  EXPECT_EQ(all->head.find("GIT_EDITOR="), std::string::npos) << "it would go before EDITOR";
  EXPECT_TRUE(has(*all, "GIT_CONFIG_KEY_0=a.b"));
  EXPECT_TRUE(has(*all, "GIT_CONFIG_KEY_1=core.editor")) << "behind the caller's own";
  unsetenv("GIT_EDITOR");

  spec.mark.clear();
  const auto first = run_process(spec);
  const auto second = run_process(spec);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->head, second->head) << "marks are fresh";
  for (const char* name : {"SECRET_KEY", "LC_TIME", "PAGER"}) unsetenv(name);
}

TEST_F(Subprocess, has_an_empty_input_and_no_terminal) {
  const auto end = run_process(
      shell("cat; read line || echo nothing; (: </dev/tty) 2>/dev/null || echo no terminal"));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->head, "nothing\nno terminal\n");
}

TEST_F(Subprocess, reads_what_it_is_given_even_if_nobody_else_does) {
  const std::string text = "a\n" + std::string(1'000'000, 'x') + "\nlast";
  auto spec =
      shell("wc -c; cat /proc/self/fd/0 | tail -c 4; echo new 2>/dev/null >&0 || echo sealed");
  spec.input = text;
  const auto end = run_process(spec);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->head, std::to_string(text.size()) + "\nlastsealed\n");
  spec = shell("echo does not read");
  spec.input = text;
  EXPECT_EQ(run_process(spec)->head, "does not read\n");
}

TEST_F(Subprocess, gets_no_files_and_no_signal_settings) {
  std::vector<int> open;
  for (int file = 0; file < 5; ++file) open.push_back(::open("/dev/null", O_RDWR));  // inherited
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto pipe_before = std::signal(SIGPIPE, SIG_IGN);
  const auto end =
      run_process(shell("ls /proc/$$/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status; :"));
  std::signal(SIGPIPE, pipe_before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  for (const int file : open) close(file);
  ASSERT_TRUE(end);
  // posix_spawn itself has the two signals of the thread library ignored (32 and 33).
  const auto ignored = end->head.rfind('\t') + 1;
  EXPECT_EQ(end->head.substr(0, ignored), "0\n1\n2\nSigBlk:\t0000000000000000\nSigIgn:\t");
  EXPECT_EQ(std::stoull(end->head.substr(ignored), nullptr, 16) & ~(3ULL << 31U), 0U) << end->head;
}

TEST_F(Subprocess, runs_from_a_caller_without_standard_files) {
  // In a child, because those of the test are needed.
  const pid_t child = fork();
  if (child == 0) {
    for (const int file : {0, 1, 2}) close(file);
    const auto end = run_process(shell("echo out; echo err >&2"));
    _exit(end && end->output_bytes == 8 && end->err_tail == "err\n" ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Subprocess, that_cannot_be_run_is_said_to_be_why) {
  const TempDir dir;
  const auto file = [&](const char* name, const char* text, mode_t mode) {
    std::ofstream(dir / name) << text;
    chmod((dir / name).c_str(), mode);
    return (dir / name).string();
  };
  struct Case {
    SpawnSpec spec;
    ErrorCode code;
    const char* says;
  };
  const std::vector<Case> cases = {
      {{.argv = {"no-such-program"}}, ErrorCode::not_found, "cannot run no-such-program in ."},
      {{.argv = {"/nowhere/program"}}, ErrorCode::not_found, "no such program"},
      {{.argv = {file("plain", "text", 0644)}}, ErrorCode::invalid, "Permission denied"},
      {{.argv = {dir.path().string()}}, ErrorCode::invalid, "Permission denied"},
      {{.argv = {file("text", "text", 0755)}}, ErrorCode::invalid, "Exec format error"},
      {{.argv = {file("lost", "#!/no/where\n", 0755)}}, ErrorCode::not_found, "#!"},
      {{.argv = {"true"}, .cwd = "/no/where"}, ErrorCode::not_found, "directory /no/where"},
      {{.argv = {"true"}, .cwd = dir / "plain"}, ErrorCode::not_found, "Not a directory"},
      {{.argv = {"true", std::string(1U << 20U, 'x')}}, ErrorCode::invalid, "too long"},
      {{.argv = {"true"}, .env = {{"A", std::string(1U << 20U, 'x')}}},
       ErrorCode::invalid,
       "too long"},
      {{}, ErrorCode::invalid, "name is empty"},
      {{.argv = {""}}, ErrorCode::invalid, "name is empty"},
      {{.argv = {"true", std::string(1, '\0')}}, ErrorCode::invalid, "word 1 has a NUL"},
      {{.argv = {"true"}, .env = {{"A=B", ""}}}, ErrorCode::invalid, "\"A=B\""},
      {{.argv = {"true"}, .env = {{"A", std::string(1, '\0')}}}, ErrorCode::invalid, "variable A"},
      {{.argv = {"true"}, .ladder = {.terminate = Millis{-1}}}, ErrorCode::invalid, "-1 ms"},
  };
  for (const auto& [spec, code, says] : cases) {
    const auto end = run_process(spec);
    ASSERT_FALSE(end) << says;
    EXPECT_EQ(end.error().code, code) << end.error().message;
    EXPECT_NE(end.error().message.find(says), std::string::npos) << end.error().message;
  }
}

TEST_F(Subprocess, needs_the_program_that_comes_with_the_library) {
  setenv("WATCHDOG_EXEC", "/no/where/watchdog-exec", 1);
  const auto missing = run_process(shell("true"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::unavailable);
  EXPECT_NE(missing.error().message.find("/no/where/watchdog-exec"), std::string::npos);

  setenv("WATCHDOG_EXEC", "/bin/false", 1);
  const auto another = run_process(shell("true"));
  ASSERT_FALSE(another);
  EXPECT_EQ(another.error().code, ErrorCode::unavailable);
  EXPECT_NE(another.error().message.find("/bin/false ended with 1"), std::string::npos);

  unsetenv("WATCHDOG_EXEC");
  // In the headers' prefix, which the agent's own place says nothing of.
  const TempDir dir;
  std::filesystem::create_directories(dir / "libexec/watchdog");
  std::filesystem::create_directories(dir / "include/watchdog");
  std::filesystem::create_symlink(WATCHDOG_EXEC_BUILT, dir / "libexec/watchdog/watchdog-exec");
  const auto listed = process_helper();
  if (!listed) {
    EXPECT_TRUE(
        detail::offer_exec(dir / "include/watchdog/exec_place.h", "../../libexec/watchdog"));
    const auto offered = process_helper();
    ASSERT_TRUE(offered) << offered.error().message;
    EXPECT_EQ(*offered, dir / "libexec/watchdog/watchdog-exec");
    std::filesystem::remove(*offered);
    const auto removed = process_helper();
    ASSERT_FALSE(removed);
    EXPECT_NE(removed.error().message.find(offered->string()), std::string::npos);
  }
  const auto found = run_process(shell("true"));  // by chance one is installed
  EXPECT_TRUE(found || found.error().message.find("none of /") != std::string::npos);
}

// The sanitizer's check of an object's type opens a descriptor itself and aborts when none is free.
#ifndef WATCHDOG_SANITIZE_ADDRESS
TEST_F(Subprocess, without_a_free_descriptor_is_refused_and_leaks_none) {
  const auto used = test::open_files();
  const int first_free = dup(STDERR_FILENO);  // the test's parent may have left holes
  close(first_free);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  int refused = 0;
  bool ran = false;
  for (rlim_t room = 0; !ran && room < used + 32; ++room) {
    const rlimit scarce{.rlim_cur = static_cast<rlim_t>(first_free) + room,
                        .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &scarce);
    const auto end = run_process({.argv = {"/bin/true"}, .mark = mark});
    setrlimit(RLIMIT_NOFILE, &before);
    ran = end.ok();
    if (ran) continue;
    ++refused;
    EXPECT_EQ(end.error().code, ErrorCode::exhausted) << end.error().message;
    EXPECT_LE(test::open_files(), used);
  }
  EXPECT_TRUE(ran);
  EXPECT_GE(refused, 3);
}
#endif

TEST_F(Subprocess, without_a_free_process_is_refused) {
  constexpr uid_t lonely = 64'321;  // nobody else is
  constexpr int cannot_run = 77;
  int refused = 0;
  for (rlim_t processes = 1; processes <= 3; ++processes) {
    const pid_t child = fork();
    if (child == 0) {
      if (geteuid() == 0 && setuid(lonely) != 0) _exit(cannot_run);
      if (!run_process({.argv = {"/bin/true"}, .mark = mark})) _exit(cannot_run);
      const rlimit few{.rlim_cur = processes, .rlim_max = processes};
      setrlimit(RLIMIT_NPROC, &few);
      const auto end = run_process({.argv = {"/bin/true"}, .mark = mark});
      if (end) _exit(0);
      _exit(end.error().code == ErrorCode::exhausted ? 1 : 2);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (WEXITSTATUS(status) == cannot_run)
      GTEST_SKIP() << "another user may not run " << WATCHDOG_EXEC_BUILT;
    EXPECT_LE(WEXITSTATUS(status), 1);
    refused += WEXITSTATUS(status);
  }
  EXPECT_GE(refused, 1);
}

TEST_F(Subprocess, returns_after_the_helper_that_found_no_free_process) {
  setenv("WATCHDOG_EXEC", WATCHDOG_UNRULY, 1);
  const auto end = run_process({.argv = {"late-helper"}, .mark = mark});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::exhausted);
  EXPECT_TRUE(test::marked(mark).empty()) << "it is still there";
}

TEST_F(Subprocess, that_was_called_off_before_is_not_started) {
  const TempDir dir;
  std::stop_source source;
  source.request_stop();
  const auto end =
      run_process(shell("touch " + (dir / "started").string()), {.stop = source.get_token()});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::cancelled);
  EXPECT_FALSE(std::filesystem::exists(dir / "started"));
}

TEST_F(Subprocess, writes_without_end_and_memory_stays_as_it_is) {
  constexpr int last = 12'000'000;  // 98 MB
  auto spec = shell("seq 1 " + std::to_string(last));
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // KiB
  };
  const auto before = peak();
  std::uint64_t heard = 0;
  const auto end = run_process(
      spec, {.output = [&](std::string_view bytes, OutputStream) { heard += bytes.size(); }});
  ASSERT_TRUE(end);
  EXPECT_LT(peak() - before, 32 * 1'024);
  EXPECT_EQ(end->output_bytes, 96'888'897U);
  EXPECT_EQ(heard, end->output_bytes);
  ASSERT_EQ(end->head.size(), spec.head_bytes);
  ASSERT_EQ(end->tail.size(), spec.tail_bytes);
  EXPECT_EQ(end->head, lines_to(200'000).substr(0, spec.head_bytes));
  std::string last_lines;
  for (int line = last - 100'000; line <= last; ++line)
    last_lines.append(std::to_string(line)).append("\n");
  EXPECT_EQ(end->tail, last_lines.substr(last_lines.size() - spec.tail_bytes));
}

TEST_F(Subprocess, writes_to_both_streams_in_turn) {
  std::string out;
  std::string err;
  const auto end =
      run_process(shell("for each in 1 2 3 4 5 6 7 8 9 10; do seq 1 20000; seq 1 20000 "
                        ">&2; done"),
                  {.output = [&](std::string_view bytes, OutputStream from) {
                    (from == OutputStream::out ? out : err) += bytes;
                  }});
  ASSERT_TRUE(end);
  std::string expected;
  for (int each = 0; each < 10; ++each) expected += lines_to(20'000);
  EXPECT_EQ(out, expected);
  EXPECT_EQ(err, expected);
  EXPECT_EQ(end->output_bytes, 2 * expected.size());
  EXPECT_EQ(end->err_tail, expected.substr(expected.size() - 4'096));
}

TEST_F(Subprocess, whose_output_another_holds_is_read_to_the_last_byte_that_it_wrote) {
  auto spec = shell("sleep 1000 & head -c 200000 /dev/zero");
  spec.drain_grace = Millis{0};
  for (int run = 0; run < 30; ++run) {
    const auto end = run_process(spec);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->output_bytes, 200'000U);
    EXPECT_EQ(end->survivors, 1U);
  }
}

TEST_F(Subprocess, whose_listener_throws_is_stopped) {
  int called = 0;
  const auto end =
      run_process(shell("echo one; sleep 1000"), {.output = [&](std::string_view, OutputStream) {
                    ++called;
                    throw 42;  // NOLINT: what it is does not matter
                  }});
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->stopped);
  EXPECT_EQ(end->head, "one\n");
  EXPECT_EQ(called, 1);
}

TEST_F(Subprocess, runs_beside_others) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int each = 0; each < 8; ++each)
    threads.emplace_back([&, each] {
      for (int run = 0; run < 5; ++run) {
        const auto end = run_process(
            shell("sleep 1000 & echo " + std::to_string(each) + "; exit " + std::to_string(each)));
        right += end && end->code == each && end->survivors == 1 && !end->containment_lost &&
                 end->head == std::to_string(each) + "\n";
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 40);
}

TEST(HeadTailBuffer, is_the_beginning_and_the_end) {
  std::string all(64, ' ');
  std::iota(all.begin(), all.end(), ' ');
  for (std::size_t head = 0; head < 6; ++head)
    for (std::size_t tail = 0; tail < 6; ++tail)
      for (std::size_t bytes = 0; bytes <= all.size(); ++bytes)
        for (const std::size_t piece : {1U, 2U, 3U, 5U, 7U, 64U}) {
          HeadTailBuffer kept(head, tail);
          for (std::size_t at = 0; at < bytes; at += piece)
            kept.add(std::string_view(all).substr(at, std::min(piece, bytes - at)));
          const auto kept_head = std::min(head, bytes);
          const auto kept_tail = std::min(tail, bytes - kept_head);
          EXPECT_EQ(kept.release_head(), all.substr(0, kept_head));
          EXPECT_EQ(kept.release_tail(), all.substr(bytes - kept_tail, kept_tail));
        }
}

}  // namespace
}  // namespace watchdog
