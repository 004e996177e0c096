// The tools of a workspace, carried out by an executor: files, and programs that behave badly.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/temp_dir.h"
#include "support/text_file.h"
#include "support/tool_bench.h"
#include "watchdog/tool.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::as;
using test::content_of;
using test::eventually;
using test::TempDir;
using test::ToolBench;
using test::write_file;
namespace fs = std::filesystem;

std::string arguments(std::initializer_list<std::pair<const char*, nlohmann::json>> fields) {
  auto object = nlohmann::json::object();
  for (const auto& [name, value] : fields) object[name] = value;
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class WorkspaceTools : public testing::Test {
 protected:
  WorkspaceTools() {
    setenv("WATCHDOG_EXEC", WATCHDOG_EXEC_BUILT, 1);  // NOLINT(concurrency-mt-unsafe): one thread
    fs::create_directory(dir / "in");
    fs::create_directory(dir / "out");
    write_file(dir / "out" / "secret", "secret");
    fs::create_directory_symlink(dir / "out", root / "way_out");
    fs::create_symlink(dir / "out" / "secret", root / "link_out");
    EXPECT_EQ(mkfifo((root / "pipe").c_str(), 0600), 0);
    bench.add(read_file_tool(workspace));
    bench.add(list_files_tool(workspace));
    bench.add(artifact_read_tool(artifacts));
    bench.parts.artifacts = artifacts;
  }

  std::string text_of(const std::string& tool, const std::string& with) {
    return as<ToolExecutionResult>(bench.call(tool, with)).output.text;
  }
  std::string refusal_of(const std::string& tool, const std::string& with) {
    return as<ToolFailure>(bench.call(tool, with)).message;
  }

  void add_shell(ShellOptions options = {}) {
    options.ladder.kill_verify = 60s;
    bench.add(shell_tool(workspace, artifacts, options));
  }
  CallReport shell(const std::string& command) {
    return bench.call("shell", arguments({{"command", command}}));
  }
  /// A process that wrote its number into a file is gone.
  [[nodiscard]] bool is_gone(const std::string& file) const {
    pid_t pid = 0;
    std::ifstream(root / file) >> pid;
    if (pid <= 0) throw std::runtime_error("no process wrote its number to " + file);
    return kill(pid, 0) != 0 && errno == ESRCH;
  }
  [[nodiscard]] bool has_come(const std::string& file) const {
    return eventually([&] { return fs::exists(root / file) && !fs::is_empty(root / file); });
  }

  const TempDir dir;
  const fs::path root = fs::canonical(dir.path()) / "in";
  std::shared_ptr<const Workspace> workspace = [this] {
    fs::create_directories(root);
    return std::make_shared<const Workspace>(std::move(*Workspace::open({root})));
  }();
  std::shared_ptr<ArtifactStore> artifacts =
      std::make_shared<ArtifactStore>(std::move(*ArtifactStore::open(dir / "artifacts", "run")));
  ToolBench bench;
};

// -- secrets

TEST_F(WorkspaceTools, a_file_that_is_read_and_written_back_is_the_same) {
  bench.add(write_file_tool(workspace, false));
  const std::string source =
      "password = getpass.getpass(prompt, stream)\n"
      "config = {\"password\": \"hunter2hunter2\", \"user\": \"app\"}\n"
      "URL = \"postgres://app:s3cr3tvalue@db:5432/x\"\n"
      "curl -u bob:hunter2hunter2 'https://h/cb?access_token=abc123def&a=b'\n"
      "Authorization: Bearer abcdefgh0123456789abcdefgh\n";
  write_file(root / "f", source);
  const auto read = text_of("read_file", arguments({{"path", "f"}}));
  EXPECT_EQ(read, source);
  (void)text_of("write_file", arguments({{"path", "f"}, {"content", read}}));
  EXPECT_EQ(content_of(root / "f"), source);
}

TEST_F(WorkspaceTools, a_stored_output_has_its_secrets_for_its_own_model_and_not_on_the_disk) {
  const auto output = [](const std::string& secret) {
    return std::string(9'000, 'x') + "\npassword=" + secret + "\nURL=redis://:" + secret +
           "@db/0\n" + std::string(9'000, 'y') + "\n";
  };
  const auto put = artifacts->put(output("hunter2hunter2"), "text/plain");
  ASSERT_TRUE(put.ok());
  const auto read_all = [&](const std::string& id) {
    std::string all;
    for (std::size_t offset = 0; offset < put->bytes;) {
      const auto page = text_of("artifact_read", arguments({{"id", id}, {"offset", offset}}));
      const auto end = page.rfind("go on with offset ");
      all += page.substr(0, page.rfind("\n[bytes "));
      if (end == page.npos) break;
      offset = std::stoul(page.substr(end + 18));
    }
    return all;
  };
  EXPECT_EQ(read_all(put->handle), output("hunter2hunter2"));
  for (const auto& entry : fs::recursive_directory_iterator(dir / "artifacts")) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(content_of(entry.path()).find("hunter2"), std::string::npos) << entry.path();
  }
  // The same with another password is the same file: nobody knows whose it is.
  ASSERT_TRUE(artifacts->put(output("swordfish77"), "text/plain").ok());
  EXPECT_EQ(read_all(put->handle), output("[redacted]"));
  auto sink = artifacts->sink();
  for (const char c : "a\n" + output("another1pass")) sink.write({&c, 1});
  const auto sunk = sink.finish("text/plain");
  ASSERT_TRUE(sunk.ok());
  EXPECT_EQ(read_all(sunk->handle), "a\n" + output("another1pass"));
}

TEST_F(WorkspaceTools, a_mask_is_never_written_where_the_file_has_the_original) {
  bench.add(write_file_tool(workspace, false));
  const auto answer = [&](const std::string& before, const std::string& content) {
    write_file(root / "f", before);
    const auto report = bench.call("write_file", arguments({{"path", "f"}, {"content", content}}));
    const bool is_written = std::holds_alternative<ToolExecutionResult>(report.outcome);
    EXPECT_EQ(content_of(root / "f"), is_written ? content : before);
    return is_written;
  };
  const std::string source = "a = 1\npassword = \"hunter2hunter2\"\nb = 2\n";
  const std::string masked = "a = 1\npassword = \"[redacted]\"\nb = 2\n";
  EXPECT_FALSE(answer(source, masked));
  EXPECT_FALSE(answer(source, "x = 0\n" + masked)) << "with other changes";
  EXPECT_FALSE(answer(source, "password = '[redacted]'\n")) << "cut";
  EXPECT_FALSE(answer("secret = compute(user)\n", "secret = [redacted]\n")) << "code";
  EXPECT_FALSE(answer("call-1a2b3c4d\n", "call-[redacted-1a2b3c4d5e6f7081]\n")) << "of an id";
  EXPECT_FALSE(answer(source + "c = '[redacted]'\n", masked + "c = '[redacted]'\n"));
  // A text about masks, or one that had them.
  EXPECT_TRUE(answer("A text.\n", "A text.\nSecrets become [redacted].\n"));
  EXPECT_TRUE(answer(masked, masked + "c = 3\n"));
  EXPECT_TRUE(answer(source, source + "# shown as [redacted]\n"));
  fs::remove(root / "f");
  EXPECT_FALSE(text_of("write_file", arguments({{"path", "new"}, {"content", masked}})).empty());
  EXPECT_EQ(content_of(root / "new"), masked);
  write_file(root / "f", source);
  EXPECT_NE(refusal_of("write_file", arguments({{"path", "f"}, {"content", masked}}))
                .find("Read the file with read_file"),
            std::string::npos);
}

// -- reading

TEST_F(WorkspaceTools, read_a_file_page_by_page) {
  write_file(root / "f", "0123456789");
  EXPECT_EQ(text_of("read_file", arguments({{"path", "f"}})), "0123456789");
  EXPECT_EQ(text_of("read_file", arguments({{"path", "f"}, {"offset", 2}, {"limit", 3}})),
            "234\n[bytes 2 to 5 of 10; go on with offset 5]");
  EXPECT_EQ(text_of("read_file", arguments({{"path", "f"}, {"offset", 10}})), "")
      << "nothing, and no error";
  EXPECT_EQ(text_of("read_file", arguments({{"path", (root / "f").string()}})), "0123456789");
}

TEST_F(WorkspaceTools, a_page_ends_with_a_whole_character) {
  write_file(root / "f", "a\u20ac\u20acb");
  std::string all;
  for (std::size_t offset = 0; offset < 8;) {
    const auto page =
        text_of("read_file", arguments({{"path", "f"}, {"offset", offset}, {"limit", 5}}));
    const auto text = page.substr(0, page.find("\n["));
    ASSERT_FALSE(text.empty());
    all += text;
    offset += text.size();
  }
  EXPECT_EQ(all, "a\u20ac\u20acb");
  write_file(root / "g", "\xff\xfe\x80\x80\x80\x80\x80\x80 end");
  const auto bytes = text_of("read_file", arguments({{"path", "g"}, {"limit", 4}}));
  EXPECT_TRUE(bytes.starts_with("\ufffd\ufffd")) << "what is not a text is read all the same";
  EXPECT_NE(bytes.find("go on with offset 4"), std::string::npos) << bytes;
}

TEST_F(WorkspaceTools, nothing_leads_out_and_nothing_waits) {
  for (const auto* path : {"../out/secret", "way_out/secret", "link_out", "/etc/passwd", "in/../..",
                           "pipe", "none", ".", ""}) {
    const auto report = bench.call("read_file", arguments({{"path", path}}));
    const auto& failure = as<ToolFailure>(report);
    EXPECT_EQ(failure.kind, FailureKind::tool_error) << path;
    EXPECT_FALSE(failure.message.empty()) << path;
    EXPECT_EQ(failure.message.find("secret\n"), std::string::npos);
  }
  for (const auto* path : {"..", "way_out", "/", "pipe", "none"}) {
    EXPECT_FALSE(refusal_of("list_files", arguments({{"path", path}})).empty()) << path;
  }
}

TEST_F(WorkspaceTools, offsets_and_limits_may_be_anything) {
  write_file(root / "f", "0123456789");
  for (const nlohmann::json& offset :
       {nlohmann::json(11), nlohmann::json(INT64_MAX), nlohmann::json(UINT64_MAX),
        nlohmann::json(-1), nlohmann::json(1e300), nlohmann::json("1"), nlohmann::json(true)}) {
    const auto said = refusal_of("read_file", arguments({{"path", "f"}, {"offset", offset}}));
    EXPECT_NE(said.find("offset"), std::string::npos) << offset << ": " << said;
  }
  EXPECT_EQ(text_of("read_file", arguments({{"path", "f"}, {"limit", INT64_MAX}})), "0123456789");
  EXPECT_FALSE(refusal_of("read_file", arguments({{"path", "f"}, {"limit", 0}})).empty());
  EXPECT_FALSE(refusal_of("read_file", R"({"path":["f"]})").empty());
  EXPECT_FALSE(refusal_of("read_file", "{}").empty());
}

TEST_F(WorkspaceTools, list_names_and_mark_directories) {
  fs::create_directory(root / "sub");
  write_file(root / "sub" / "b\xff", "");
  EXPECT_EQ(text_of("list_files", "{}"), "link_out\npipe\nsub/\nway_out\n");
  EXPECT_EQ(text_of("list_files", arguments({{"path", "sub"}})), "b\ufffd\n");
  fs::create_directory(root / "many");
  for (int at = 0; at < 1'005; ++at) write_file(root / "many" / std::to_string(10'000 + at), "");
  const auto many = text_of("list_files", arguments({{"path", "many"}}));
  EXPECT_TRUE(many.starts_with("10000\n"));
  EXPECT_TRUE(many.ends_with("10999\n[and 5 more]")) << many.substr(many.size() - 40);
}

// -- writing

TEST_F(WorkspaceTools, a_shell_without_its_helper_program_is_refused_at_the_start) {
  setenv("WATCHDOG_EXEC", "/no/where", 1);  // NOLINT(concurrency-mt-unsafe): one thread
  ToolRegistry tools;
  const auto added = tools.add(shell_tool(workspace, artifacts));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::unavailable);
  EXPECT_NE(added.error().message.find("tool shell: "), std::string::npos) << added.error().message;
  EXPECT_NE(added.error().message.find("/no/where"), std::string::npos) << added.error().message;
  EXPECT_EQ(tools.find("shell"), nullptr);
}

TEST_F(WorkspaceTools, write_in_the_workspace_and_nowhere_else) {
  bench.add(write_file_tool(workspace, false));
  EXPECT_EQ(text_of("write_file", arguments({{"path", "a/b/f"}, {"content", "new\n"}})),
            "wrote 4 bytes to a/b/f");
  EXPECT_EQ(content_of(root / "a" / "b" / "f"), "new\n");
  for (const auto* path : {"../out/f", "way_out/f", "link_out", "/tmp/f", "pipe", "a", ""}) {
    EXPECT_FALSE(refusal_of("write_file", arguments({{"path", path}, {"content", "x"}})).empty())
        << path;
  }
  EXPECT_EQ(content_of(dir / "out" / "secret"), "secret");
  EXPECT_FALSE(fs::exists(dir / "out" / "f"));
  EXPECT_FALSE(refusal_of("write_file", arguments({{"path", "f"}})).empty());
}

class WriteWithConsent : public WorkspaceTools {
 protected:
  WriteWithConsent() {
    bench.add(write_file_tool(workspace, true));
    bench.parts.checkpoints = checkpoints;
    bench.parts.confirm = [this](const ToolCall&, const Tool::Preview& preview, const auto&) {
      shown = preview.diff;
      if (meanwhile) meanwhile();
      return answer;
    };
    write_file(root / "f", "one\ntwo\n");
  }
  CallReport change() {
    return bench.call("write_file", arguments({{"path", "f"}, {"content", "one\n2\n"}}));
  }

  std::shared_ptr<CheckpointStore> checkpoints =
      std::make_shared<CheckpointStore>(std::move(*CheckpointStore::open(dir / "checkpoints")));
  std::string shown;
  Confirmation answer = Confirmation::approve;
  std::function<void()> meanwhile;
};

TEST_F(WriteWithConsent, a_change_confirmed_by_its_diff_can_be_undone) {
  const auto report = change();
  EXPECT_EQ(as<ToolExecutionResult>(report).output.text, "wrote 6 bytes to f");
  EXPECT_NE(shown.find("-two\n+2\n"), std::string::npos) << shown;
  EXPECT_EQ(content_of(root / "f"), "one\n2\n");
  ASSERT_FALSE(report.checkpoint.empty());
  const auto restored = checkpoints->restore(report.checkpoint);
  ASSERT_TRUE(restored.ok());
  EXPECT_EQ(restored->restored, std::vector<fs::path>{root / "f"});
  EXPECT_EQ(content_of(root / "f"), "one\ntwo\n");
}

TEST_F(WriteWithConsent, a_file_that_others_changed_since_is_not_restored) {
  const auto report = change();
  write_file(root / "f", "by hand");
  EXPECT_EQ(checkpoints->restore(report.checkpoint)->skipped_changed,
            std::vector<fs::path>{root / "f"});
  EXPECT_EQ(content_of(root / "f"), "by hand");
}

TEST_F(WriteWithConsent, a_no_leaves_nothing_behind) {
  answer = Confirmation::deny;
  const auto report = change();
  EXPECT_EQ(as<ToolDenied>(report).reason, DenyReason::write_denied);
  EXPECT_TRUE(report.checkpoint.empty());
  EXPECT_EQ(content_of(root / "f"), "one\ntwo\n");
  EXPECT_EQ(text_of("list_files", "{}"), "f\nlink_out\npipe\nway_out\n") << "no hidden files";
}

TEST_F(WriteWithConsent, a_change_made_during_the_confirmation_is_kept) {
  meanwhile = [this] { write_file(root / "f", "by hand"); };
  const auto report = change();
  EXPECT_EQ(as<ToolDenied>(report).reason, DenyReason::stale_precondition);
  EXPECT_TRUE(report.checkpoint.empty()) << "nothing was changed";
  EXPECT_EQ(content_of(root / "f"), "by hand");
}

TEST_F(WriteWithConsent, another_file_in_its_place_was_not_confirmed) {
  fs::create_directory(root / "a");
  fs::create_directory(root / "b");
  fs::create_directory_symlink("a", root / "current");
  meanwhile = [this] {
    fs::remove(root / "current");
    fs::create_directory_symlink("b", root / "current");
  };
  const auto report =
      bench.call("write_file", arguments({{"path", "current/f"}, {"content", "new"}}));
  EXPECT_EQ(as<ToolDenied>(report).reason, DenyReason::stale_precondition);
  EXPECT_TRUE(fs::is_empty(root / "a"));
  EXPECT_TRUE(fs::is_empty(root / "b"));
}

// -- programs

TEST_F(WorkspaceTools, shell_gives_output_and_how_it_ended) {
  add_shell();
  EXPECT_EQ(as<ToolExecutionResult>(shell("pwd; echo oops >&2")).output.text,
            root.string() + "\noops\n");
  const auto code = shell("echo out; exit 3");
  EXPECT_EQ(as<ToolFailure>(code).kind, FailureKind::exit_nonzero);
  EXPECT_EQ(as<ToolFailure>(code).exit_code, 3);
  EXPECT_EQ(as<ToolFailure>(code).partial.text, "out\n");
  const auto killed = shell("echo out; kill -SEGV $$");
  EXPECT_EQ(as<ToolFailure>(killed).kind, FailureKind::killed_by_signal);
  EXPECT_EQ(as<ToolFailure>(killed).exit_code, 128 + SIGSEGV);
  EXPECT_NE(render_for_model(killed).find("was killed by signal 11 (139)"), std::string::npos);
  EXPECT_EQ(as<ToolExecutionResult>(shell("printf 'a\\377b\\000c\\033[31mred'")).output.text,
            "a\ufffdbcred");
  EXPECT_EQ(as<ToolExecutionResult>(shell("cat; read x || echo no input")).output.text,
            "no input\n");
  for (const auto& bad : {arguments({{"command", ""}}), std::string("{}"),
                          arguments({{"command", std::string("a\0b", 3)}})}) {
    EXPECT_NE(refusal_of("shell", bad).find("command"), std::string::npos);
  }
}

TEST_F(WorkspaceTools, shell_takes_a_deadline_of_its_owner_and_of_its_model) {
  ShellOptions options{
      .deadline = {.idle = 300ms}, .concurrency = Concurrency::parallel, .retry_on_timeout = true};
  const auto tool = shell_tool(workspace, nullptr, options);
  EXPECT_EQ(concurrency_of(tool->spec()), Concurrency::parallel);
  EXPECT_EQ(retry_advice(tool->spec(), EffectState::unknown), RetryAdvice::safe);
  add_shell(options);
  EXPECT_EQ(as<ToolTimeout>(shell("sleep 60")).limit, 300ms);
  const auto asked =
      bench.call("shell", arguments({{"command", "sleep 60"}, {"timeout_seconds", 1}}));
  EXPECT_EQ(as<ToolTimeout>(asked).limit, 1s);
  EXPECT_EQ(asked.note, "timeout_seconds is understood as 1000 ms; write timeout_ms");
}

TEST_F(WorkspaceTools, shell_that_floods_is_kept_by_its_ends_and_says_where_the_rest_is) {
  add_shell();
  const auto report = shell("echo begin; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end");
  const auto& [artifact, preview] = as<ToolArtifactReference>(report);
  EXPECT_EQ(artifact.bytes, 100'000'000U + 11);
  EXPECT_LE(artifact.kept, ArtifactLimits{}.artifact_bytes_max);
  EXPECT_LE(preview.text.size(), 14'000U);
  EXPECT_TRUE(preview.text.starts_with("begin\nxxx"));
  EXPECT_TRUE(preview.text.ends_with("xxx\nend\n"));
  EXPECT_NE(preview.text.find("Stored output: " + artifact.handle + ";"), std::string::npos)
      << "not all of it is kept";
  EXPECT_NE(preview.text.find(" chars of 100000011 bytes shown"), std::string::npos);
  const auto first = text_of("artifact_read", arguments({{"id", artifact.handle}, {"limit", 8}}));
  EXPECT_TRUE(first.starts_with("begin\nxx\n[bytes 0 to 8 of ")) << first;
}

TEST_F(WorkspaceTools, artifact_read_says_where_the_middle_was_dropped) {
  auto opened = ArtifactStore::open(dir / "few", "run", {.artifact_bytes_max = 10});
  ASSERT_TRUE(opened.ok());
  const auto few = std::make_shared<ArtifactStore>(std::move(*opened));
  // Its first half ends within a character.
  const auto handle = few->put("begiä…and so on…abcde", "text/plain")->handle;
  ToolBench other;
  other.add(artifact_read_tool(few));
  const auto page = [&](int offset) {
    return as<ToolExecutionResult>(
               other.call("artifact_read", arguments({{"id", handle}, {"offset", offset}})))
        .output.text;
  };
  const auto first = page(0);
  EXPECT_NE(first.find("bytes after this page were dropped]"), std::string::npos) << first;
  EXPECT_NE(first.find("[bytes 0 to 5 of 10; go on with offset 5]"), std::string::npos) << first;
  EXPECT_EQ(first.find("abcde"), std::string::npos) << first;
  const auto second = page(5);
  EXPECT_NE(second.find("bytes before this page were dropped]\nabcde"), std::string::npos)
      << second;
  EXPECT_EQ(page(7), "cde");
}

TEST_F(WorkspaceTools, artifact_read_takes_nothing_but_an_id) {
  for (const auto* id :
       {"../in/f", "art_../../x", "art_", "art_zzzz", "art_000000000000", "/etc"}) {
    EXPECT_FALSE(refusal_of("artifact_read", arguments({{"id", id}})).empty()) << id;
  }
}

TEST_F(WorkspaceTools, shell_leaves_no_daemon_behind_and_names_it) {
  add_shell();
  const auto report =
      shell("setsid sh -c 'echo $$ >daemon; exec sleep 100' & while [ ! -s daemon ]; do :; done");
  const auto& text = as<ToolExecutionResult>(report).output.text;
  EXPECT_NE(text.find("[1 process was still running when the command ended and killed: sleep ("),
            std::string::npos)
      << text;
  EXPECT_TRUE(is_gone("daemon"));
}

TEST_F(WorkspaceTools, shell_says_of_survivors_what_becomes_of_them) {
  const auto kills = shell_tool(workspace, artifacts, {.survivors = Survivors::kill});
  const auto leaves = shell_tool(workspace, artifacts, {.survivors = Survivors::leave});
  EXPECT_TRUE(kills->spec().description.ends_with("when it ends is killed."));
  EXPECT_TRUE(leaves->spec().description.ends_with("when it ends is left running."));
}

constexpr const char* deaf =
    "trap '' TERM; echo $$ >leader; echo here; "
    "(trap '' TERM; echo begun >child; while :; do sleep 0.05; done) & "
    "while :; do sleep 0.05; done";

TEST_F(WorkspaceTools, shell_that_ignores_its_deadline_is_killed_within_the_grace) {
  add_shell();
  bench.options.cap = 500ms;
  bench.options.cancel_grace = 60s;  // it takes the ladder's second; the machine may be busy
  const auto report = shell(deaf);
  const auto& timeout = as<ToolTimeout>(report);
  EXPECT_EQ(timeout.kind, TimeoutKind::hard);
  EXPECT_FALSE(timeout.still_running);
  EXPECT_EQ(timeout.effects, EffectState::unknown);
  EXPECT_EQ(timeout.retry, RetryAdvice::verify_first);
  EXPECT_EQ(timeout.partial.text, "here\n");
  EXPECT_TRUE(is_gone("leader"));
}

TEST_F(WorkspaceTools, shell_that_ignores_a_cancel_is_killed_within_the_grace) {
  add_shell();
  bench.options.cancel_grace = 60s;
  auto turn = bench.turn();
  auto running = bench.begin(turn, "shell", arguments({{"command", deaf}}));
  ASSERT_TRUE(has_come("child"));
  bench.turns().abort(turn.id(), {.origin = CancelOrigin::user});
  const auto report = running.get();
  const auto& cancelled = as<ToolCancelled>(report);
  EXPECT_TRUE(cancelled.started);
  EXPECT_FALSE(cancelled.still_running);
  EXPECT_EQ(cancelled.partial.text, "here\n");
  EXPECT_TRUE(is_gone("leader"));
}

TEST_F(WorkspaceTools, shell_of_a_child_turn_ends_with_its_parents_turn) {
  add_shell();
  bench.options.cancel_grace = 60s;
  bench.add(make_tool({.name = "agent"}, [this](ToolContext& now) {
    auto child = bench.turns().begin_in(now.child_scope(), {.agent = "child"}, now.turn());
    const auto report =
        bench.executor().execute(*child, {"inner", "shell", arguments({{"command", deaf}})});
    return ToolReply{.text = std::string(name_of(report.outcome))};
  }));
  auto turn = bench.turn();
  auto running = bench.begin(turn, "agent");
  ASSERT_TRUE(has_come("child"));
  bench.turns().abort(turn.id(), {.origin = CancelOrigin::user, .text = "enough"});
  const auto report = running.get();
  EXPECT_EQ(as<ToolCancelled>(report).partial.text, "cancelled") << "so did its call end";
  EXPECT_TRUE(is_gone("leader"));
  EXPECT_TRUE(bench.turns().active().size() == 1);
}

TEST_F(WorkspaceTools, shell_keeps_what_it_printed_before_it_was_stopped) {
  add_shell();
  bench.options.cancel_grace = 60s;
  auto turn = bench.turn();
  auto running = bench.begin(turn, "shell",
                             arguments({{"command",
                                         "head -c 3000000 /dev/zero | tr '\\0' x; echo end; echo "
                                         "all >printed; exec sleep 100"}}));
  ASSERT_TRUE(has_come("printed"));
  bench.turns().abort(turn.id(), {.origin = CancelOrigin::user});
  const auto report = running.get();
  const auto& partial = as<ToolCancelled>(report).partial;
  ASSERT_TRUE(partial.artifact);
  EXPECT_EQ(partial.artifact->bytes, 3'000'004U) << "all of it";
  EXPECT_TRUE(partial.text.ends_with("xend\n"));
  EXPECT_NE(partial.text.find("Full output: " + partial.artifact->handle), std::string::npos);
}

}  // namespace
}  // namespace watchdog
