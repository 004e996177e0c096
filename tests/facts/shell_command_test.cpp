#include "facts/shell_command.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "facts/agent_tools.h"
#include "watchdog/repetition.h"

namespace watchdog {
namespace {

struct CommandCase {
  const char* command;
  bool waits;
  bool reads_only;
};

class Commands : public testing::TestWithParam<CommandCase> {};

TEST_P(Commands, are_known_by_their_programs) {
  const auto& row = GetParam();
  const auto purpose = purpose_of_command(row.command);
  EXPECT_EQ(purpose.waits, row.waits) << row.command;
  EXPECT_EQ(purpose.reads_only, row.reads_only) << row.command;
}

INSTANTIATE_TEST_SUITE_P(
    Table, Commands,
    testing::Values(
        CommandCase{"sleep 240; kilnctl show 7", true, false},
        CommandCase{"sleep 5m && cat /srv/log", true, true},
        CommandCase{"cat log; sleep $PAUSE", true, true},
        CommandCase{"bash -lc \"sleep 60 && make status\"", true, false},
        CommandCase{"bash\n-lc\nsleep 60", true, true},
        CommandCase{"until curl -sf http://localhost/up; do sleep 10; done", true, false},
        CommandCase{"timeout 600 gh run watch 17", true, false},
        CommandCase{"gh pr checks 4 --watch", true, false},
        CommandCase{"KUBECONFIG=a /usr/bin/kubectl -n x rollout status deploy/y", true, false},
        CommandCase{"kubectl get pods -w", true, false},
        CommandCase{"docker logs --follow kiln", true, false},
        CommandCase{"tail -f /srv/log", true, true}, CommandCase{"", true, false},
        // A pause for a server's start, and words that only look like it.
        CommandCase{"./serve & sleep 1; curl localhost", false, false},
        CommandCase{"echo 'sleep 60'", false, true}, CommandCase{"grep -rn watch src", false, true},
        CommandCase{"kubectl get pods", false, false}, CommandCase{"tail -n 20 log", false, true},
        // Commands that may change a file.
        CommandCase{"cat a | sort -u | head", false, true}, CommandCase{"cat a > b", false, false},
        CommandCase{"grep x a 2>/dev/null", false, true}, CommandCase{"ls 2>&1", false, true},
        CommandCase{"sed -n 1,5p a; git diff", false, true},
        CommandCase{"sed -i s/a/b/ c", false, false}, CommandCase{"git commit -m x", false, false},
        CommandCase{"python3 -c 'print(1)'", false, false}));

TEST(CommandTexts, of_any_bytes_end) {
  for (const auto* odd :
       {"'", "\"", "a 'b", "`", ">", "> ", "&&", "timeout", "A=1", "-c 'x", "sleep"})
    (void)purpose_of_command(odd);
  EXPECT_FALSE(purpose_of_command("cat " + std::string(10'000, 'a')).reads_only)
      << "nobody read the end of it";
}

Marks marks_of_call(const char* tool, const char* arguments) {
  Report call{.kind = ReportKind::tool_call, .name = tool, .content = arguments};
  mark(call);
  return std::get<Marks>(call.detail);
}

TEST(CallsThatWait, are_marked_for_every_agent) {
  for (const auto& [tool, arguments] : {
           std::pair{"TaskOutput", R"({"task_id":"b1","block":true})"},
           {"BashOutput", R"({"bash_id":"b1"})"},
           {"Bash", R"({"command":"sleep 30; ./look","description":"look"})"},
           {"exec_command", R"({"cmd":"sleep 30; ./look","yield_time_ms":1})"},
           {"shell", R"({"command":["bash","-lc","sleep 30 && ./look"]})"},
           {"write_stdin", R"({"session_id":8,"chars":"","yield_time_ms":60000})"},
           {"execute_bash", R"({"command":"","is_input":"false"})"},
           {"terminal", R"({"kind":"Execute","command":"sleep 300 && ./look"})"},
           {"read_bash", R"({"shellId":"0","delay":30})"},
           {"get_terminal_output", R"({"id":"t"})"},
           {"mcp__kiln__browser_wait_for", R"({"text":"hot"})"},
       })
    EXPECT_TRUE(marks_of_call(tool, arguments).waits) << tool;
  for (const auto& [tool, arguments] : {
           std::pair{"write_stdin", R"({"session_id":8,"chars":"y\n"})"},
           {"Bash", R"({"command":"make check","description":"sleep 60"})"},
           {"Read", R"({"file_path":"/srv/sleep 60"})"},
       })
    EXPECT_FALSE(marks_of_call(tool, arguments).waits) << tool;
}

TEST(CallsThatWait, keep_their_mark_in_a_file) {
  for (const auto* command : {"sleep 30", "cat a", "make"}) {
    const auto marks =
        marks_of_call("Bash", ("{\"command\":\"" + std::string(command) + "\"}").c_str());
    const auto bytes = encoded(marks);
    EXPECT_EQ(decoded_marks(bytes), marks) << command;
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
      EXPECT_FALSE(decoded_marks(bytes.substr(0, cut)).has_value()) << command << ": " << cut;
    }
  }
}

TEST(CommandsThatDoNothing, ask_for_the_same_in_any_words) {
  const auto identity = [](const std::string& command) {
    const nlohmann::json arguments{{"command", command}, {"description", "Says: " + command}};
    return marks_of_call("Bash", arguments.dump().c_str()).identity;
  };
  const auto nothing = identity("true");
  for (const auto* command : {":", ": the tests still run", "true && true", "# only a comment",
                              "true # done", "/bin/true", "\"}", "( : ) ; true"}) {
    EXPECT_TRUE(purpose_of_command(command).does_nothing) << command;
    EXPECT_EQ(identity(command), nothing) << command;
  }
  for (const auto* command :
       {"", "false", "true > out", "true && make", "make # true", "true\nmake", "# a comment\nmake",
        "echo a#b", "[ -f out ]", "$NEXT", "sleep 9"}) {
    EXPECT_FALSE(purpose_of_command(command).does_nothing) << command;
    EXPECT_NE(identity(command), nothing) << command;
  }
}

TEST(ShellCommand, is_shown_as_people_know_it) {
  const struct {
    std::string arguments;
    std::string shown;
  } rows[] = {
      {R"({"command":"make check","timeout":5})", "make check"},
      {R"({"timeout":5, "command" : "make check"})", "make check"},
      {R"({"cmd":"kiln --warm","yield_time_ms":10000})", "kiln --warm"},
      {R"({"command":["bash","-lc","echo \"a\" ]"]})", R"(echo "a" ])"},
      {R"({"command":"echo \"a\"\n\tls C:\\x"})", R"(echo "a"  ls C:\x)"},
      {"make check\nls", "make check ls"},
      {R"({"path":"command"})", ""},
      {R"({"command":5})", ""},
      {R"({"command":"unfinished)", "unfinished"},
      {"", ""},
      {"  ", ""},
  };
  for (const auto& row : rows) EXPECT_EQ(command_in(row.arguments), row.shown) << row.arguments;
  const auto cut = command_in(R"({"command":")" + std::string(59, 'a') + "\u00e4\u00e4\"}");
  EXPECT_LE(cut.size(), 60U);
  EXPECT_EQ(cut, std::string(59, 'a')) << "no character is split";
  for (std::size_t at = 0; at < 40; ++at)
    (void)command_in(std::string_view(R"({"command":"a\u00e4\n\\"})").substr(0, at));
}

}  // namespace
}  // namespace watchdog
