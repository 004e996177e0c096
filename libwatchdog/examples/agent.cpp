// An agent in about a hundred lines. It reads files in a directory, runs commands and changes files
// there until its model has an answer. The library does the rest: it retries failed requests,
// distinguishes slow from stuck, handles tools that hang, and ends each run with a reason.
//
//   OPENAI_BASE_URL=http://127.0.0.1:8080/v1 watchdog-example-agent "What is in here?" [DIRECTORY]

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "usage.h"
#include "watchdog/model_client.h"
#include "watchdog/run.h"
#include "watchdog/settings.h"
#include "watchdog/terminal_text.h"
#include "watchdog/tool.h"
#include "watchdog/tool_runner.h"

namespace {

using namespace watchdog;

/// Shows what a tool is about to change, and waits for a word on it.
Confirmation ask_person(const ToolCall&, const Tool::Preview& preview,
                        const std::stop_token& stop) {
  static std::mutex terminal;  // calls may run at the same time; questions may not
  const std::lock_guard one_at_a_time(terminal);
  std::cerr << terminal_text(preview.diff) << "\nDo it? [y/N] ";
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN};
  while (!stop.stop_requested()) {
    if (poll(&input, 1, 100) == 0) continue;
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "yes" ? Confirmation::approve : Confirmation::deny;
  }
  return Confirmation::deny;
}

Result<std::shared_ptr<ToolRegistry>> tools_for(Workspace&& directory,
                                                const std::shared_ptr<ArtifactStore>& outputs,
                                                bool confirm) {
  const auto workspace = std::make_shared<const Workspace>(std::move(directory));
  auto tools = std::make_shared<ToolRegistry>();
  std::vector all{list_files_tool(workspace), read_file_tool(workspace),
                  write_file_tool(workspace, confirm),
                  shell_tool(workspace, outputs, {.confirm = confirm})};
  if (outputs) all.push_back(artifact_read_tool(outputs));
  for (auto& tool : all) {
    if (auto added = tools->add(tool); !added) return added.error();
  }
  return tools;
}

/// Counts calls that were made, and those that were refused because nobody is there to confirm
/// them. Thread-safe.
class Refusals {
 public:
  void on_event(const ToolEvent& event) {
    if (event.kind != ToolEvent::Kind::result) return;
    const auto* denied = std::get_if<ToolDenied>(&event.report->outcome);
    if (denied == nullptr) {
      ++made_;
    } else if (denied->reason == DenyReason::write_denied && refused_++ == 0) {
      std::cerr << "A call was refused: " << how << '\n';
    }
  }
  [[nodiscard]] bool all() const { return refused_ > 0 && made_ == 0; }

  static constexpr auto how =
      "it needs a confirmation, and there is no terminal for one. To allow calls that change "
      "things, set tools.confirm_writes = false (WATCHDOG_TOOLS_CONFIRM_WRITES=false).";

 private:
  std::atomic<int> made_{0};
  std::atomic<int> refused_{0};
};

class Agent {
 public:
  Agent(const std::string& task, ToolRunner& tools, const Refusals& refusals)
      : tools_(tools), refusals_(refusals) {
    messages_ = {
        {.role = "system", .content = "Do what the user asks for. Use the tools to find out."},
        {.role = "user", .content = task}};
  }

  /// Thinks: the task is complete when the model answers instead of calling tools.
  Result<Reflection, Failure> reflect(Iteration& now) {
    auto answer = now.ask({.messages = messages_, .tools = tools_.definitions()});
    if (!answer) return answer.error();
    messages_.push_back(
        {.role = "assistant", .content = answer->text, .tool_calls = answer->tool_calls});
    if (answer->tool_calls.empty()) {
      // Its answer is not the result of any work.
      if (refusals_.all())
        return Reflection{.assessment = Assessment::task_failed,
                          .data = answer->text,
                          .reason = std::string("every call was refused: ") + Refusals::how};
      return Reflection{.assessment = Assessment::task_complete, .data = answer->text};
    }
    return Reflection{.data = "calls " + answer->tool_calls.front().name + " " +
                              answer->tool_calls.front().arguments};
  }

  /// Acts: runs the calls that the model requested, and adds their results to the conversation.
  Result<Act, Failure> act(Iteration& now, const Reflection&) {
    const auto calls = messages_.back().tool_calls;
    for (auto& result : tool_messages(tools_.carry_out(now, calls))) {
      messages_.push_back(std::move(result));
    }
    return Act{.reported = true};
  }

  /// Repeats itself: goes back to the question, and asks the model to try something else.
  void recover(const Trouble& trouble) {
    messages_.resize(2);
    messages_.push_back({.role = "user", .content = trouble.advice});
  }

 private:
  ToolRunner& tools_;
  const Refusals& refusals_;
  std::vector<ChatMessage> messages_;
};

int fail(const std::string& why) {
  std::cerr << terminal_text(why) << '\n';
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr auto usage =
      "Usage: watchdog-example-agent [TASK] [DIRECTORY]\n"
      "An agent that looks into a directory, runs commands and changes files there until its "
      "model\n"
      "has an answer. The model is at $OPENAI_BASE_URL; `watchdog-monitor config` shows all "
      "settings.\n";
  if (const auto done = answer_about("watchdog-example-agent", usage, argc, argv, 2)) return *done;
  const std::string task = argc > 1 ? argv[1] : "What is in this directory?";
  const auto configuration = Configuration::load({});
  if (!configuration) return fail(to_text(configuration.error()));
  const auto& settings = configuration->settings();
  if (auto added = add_redactions(settings.privacy); !added) return fail(added.error().message);
  if (settings.budget.limits.cost)
    return fail(
        "budget.cost is set, but this agent knows no prices, so nothing would hold it. Remove it, "
        "or set budget.tokens");
  auto client = ModelClient::to(settings.model);
  if (!client) return fail(client.error().message);
  auto directory = Workspace::open({argc > 2 ? argv[2] : "."});
  if (!directory) return fail(directory.error().message);

  const char* session = std::getenv("WATCHDOG_SESSION");
  const ProgressTracker::Config recorded{
      .session = session != nullptr ? session : "",
      .spec = {.agent = "example-agent", .task = task, .policy = settings.policy},
      .database = settings.monitor.db};
  if (auto valid = check(recorded); !valid) return fail(valid.error().message);
  ProgressTracker tracker(recorded);
  std::shared_ptr<ArtifactStore> outputs;  // without it, what is too long is cut for good
  if (auto opened = open_artifacts(settings, tracker.session())) {
    outputs = std::make_shared<ArtifactStore>(std::move(*opened));
  } else {
    std::cerr << terminal_text(opened.error().message) << '\n';
  }
  auto registry = tools_for(std::move(*directory), outputs, settings.tools.confirm_writes);
  if (!registry) return fail(registry.error().message);
  const auto budget = std::make_shared<ExecutionBudget>(system_clock(), settings.budget.limits,
                                                        settings.budget.thresholds);
  const bool is_attended = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
  Refusals refusals;
  std::function<void(const ToolEvent&)> watch_refusals;
  if (!is_attended)
    watch_refusals = [&refusals](const ToolEvent& event) { refusals.on_event(event); };
  ToolRunner tools(
      {.tracker = tracker,
       .tools = *registry,
       .budget = budget,
       .agent = "example-agent",
       .executor = {.artifacts = outputs, .confirm = is_attended ? ask_person : Confirmer{}},
       .observer = watch_refusals},
      executor_options(settings));
  // The checker asks the model whether the agent makes progress. It asks only where that does not
  // displace the agent's prompt.
  const auto checker = checker_for(tracker, client->model_beside(), settings.checks.options);
  Agent agent(task, tools, refusals);
  Run run({.tracker = tracker,
           .callbacks = {
               .reflect = [&](Iteration& now) { return agent.reflect(now); },
               .act = [&](Iteration& now,
                          const Reflection& reflection) { return agent.act(now, reflection); }},
           .model = client->model(),
           .budget = budget,
           .checker = settings.checks.enabled ? checker.get() : nullptr},
          settings.run);
  const auto end = run.go();
  std::cout << terminal_text(end.last.data) << '\n';
  std::cerr << tracker.session() << ": " << name_of(end.outcome.kind) << ", "
            << terminal_text(reason_and_subject(end.outcome) + ". " + end.outcome.error) << '\n';
  return end.outcome.kind == OutcomeKind::completed ? 0 : 1;
}
