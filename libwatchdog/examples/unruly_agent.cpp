// An agent that finishes although its tools misbehave. One tool hangs for ever and ignores a stop.
// One leaves a daemon behind that ignores SIGTERM. One does the same, and hangs. One takes long and
// reports its progress. A script replaces the model.
//
//   AGENT_TOOL_TIMEOUT=2 watchdog-unruly-agent [DIRECTORY]

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "usage.h"
#include "watchdog/run.h"
#include "watchdog/settings.h"
#include "watchdog/terminal_text.h"
#include "watchdog/tool.h"
#include "watchdog/tool_runner.h"

namespace {

using namespace watchdog;

/// A bug that every framework meets one day. Only its process can end it.
std::shared_ptr<Tool> hanging_tool() {
  return make_tool({.name = "hang", .description = "Never returns.", .effect = Effect::none},
                   [](ToolContext&) -> ToolReply {
                     while (true) std::this_thread::sleep_for(std::chrono::hours(1));
                   });
}

/// Takes several times as long as it may go without progress.
std::shared_ptr<Tool> slow_tool(Millis timeout) {
  return make_tool({.name = "build",
                    .description = "Takes long, and says how far it is.",
                    .effect = Effect::none},
                   [timeout](ToolContext& now) -> ToolReply {
                     constexpr Millis a_step{100};
                     const auto steps = static_cast<int>(4 * timeout / a_step);
                     for (int step = 1; step <= steps; ++step) {
                       now.throw_if_stopped();
                       std::this_thread::sleep_for(a_step);
                       now.progress(step, steps, "compiling");
                     }
                     return {.text = "built"};
                   });
}

constexpr const char* daemon_left =
    R"({"command":"setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' & echo started"})";
constexpr const char* daemon_and_hang =
    R"({"command":"setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' & sleep 100000"})";

/// All four at once; then it prints the results.
Result<ChatAnswer, Failure> scripted(const ChatRequest& request, const ChatSink& sink,
                                     const std::stop_token&) {
  ChatAnswer answer{.output_tokens = 1};
  for (const auto& message : request.messages) {
    if (message.role == "tool") answer.text += message.tool_call_id + ": " + message.content + "\n";
  }
  if (answer.text.empty()) {
    answer.tool_calls = {{.id = "hangs", .name = "hang", .arguments = "{}"},
                         {.id = "builds", .name = "build", .arguments = "{}"},
                         {.id = "forks", .name = "shell", .arguments = daemon_left},
                         {.id = "forks-and-hangs", .name = "shell", .arguments = daemon_and_hang}};
  }
  sink({.pieces = 1, .bytes = 1}, "");
  return answer;
}

int fail(const std::string& why) {
  std::cerr << terminal_text(why) << '\n';
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr auto usage =
      "Usage: watchdog-unruly-agent [DIRECTORY]\n"
      "An agent whose tools hang, take long and leave processes behind. `watchdog-monitor demo`\n"
      "starts it.\n";
  if (const auto done = answer_about("watchdog-unruly-agent", usage, argc, argv, 1)) return *done;
  const auto configuration = Configuration::load({});
  if (!configuration) return fail(to_text(configuration.error()));
  const auto& settings = configuration->settings();
  auto directory = Workspace::open({argc > 1 ? argv[1] : "."});
  if (!directory) return fail(directory.error().message);

  const char* session = std::getenv("WATCHDOG_SESSION");
  ProgressTracker tracker({.session = session != nullptr ? session : "",
                           .spec = {.agent = "unruly-agent", .policy = settings.policy},
                           .database = settings.monitor.db});
  const auto tools = std::make_shared<ToolRegistry>();
  const auto timeout = settings.tools.deadlines.timeout.value_or(Millis{120'000});
  const auto workspace = std::make_shared<const Workspace>(std::move(*directory));
  for (const auto& tool : {hanging_tool(), slow_tool(timeout), shell_tool(workspace, nullptr)}) {
    if (const auto added = tools->add(tool); !added) return fail(added.error().message);
  }
  ToolRunner runner({.tracker = tracker, .tools = tools}, executor_options(settings));
  std::vector<ChatMessage> messages{{.role = "user", .content = "Try all of your tools."}};
  Run run({.tracker = tracker,
           .callbacks = {.reflect = [&](Iteration& now) -> Result<Reflection, Failure> {
                           auto answer =
                               now.ask({.messages = messages, .tools = runner.definitions()});
                           if (!answer) return answer.error();
                           messages.push_back({.role = "assistant",
                                               .content = answer->text,
                                               .tool_calls = answer->tool_calls});
                           return Reflection{.assessment = answer->tool_calls.empty()
                                                               ? Assessment::task_complete
                                                               : Assessment::going_on,
                                             .data = answer->text};
                         },
                         .act = [&](Iteration& now, const Reflection&) -> Result<Act, Failure> {
                           const auto calls = messages.back().tool_calls;
                           for (auto& result : tool_messages(runner.carry_out(now, calls))) {
                             messages.push_back(std::move(result));
                           }
                           return Act{.reported = true};
                         }},
           .model = scripted},
          settings.run);
  const auto end = run.go();
  std::cout << terminal_text(end.last.data) << name_of(end.outcome.kind) << ", "
            << terminal_text(end.outcome.reason) << std::endl;
  // Its end is stored. The thread that hangs would only be waited for.
  std::quick_exit(end.outcome.kind == OutcomeKind::completed ? 0 : 1);
}
