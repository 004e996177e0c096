// An agent in about a hundred lines. It reads the files of a directory until its model has an
// answer; what keeps it alive, tells slow from stuck and ends it for a reason is in the library.
//
//   OPENAI_BASE_URL=http://127.0.0.1:8080/v1 watchdog-example-agent "What is in here?" [DIRECTORY]

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "watchdog/model_client.h"
#include "watchdog/run.h"
#include "watchdog/settings.h"

namespace {

using namespace watchdog;
namespace fs = std::filesystem;

constexpr const char* tools = R"([
  {"type": "function", "function": {"name": "list_files", "description": "Names of the files.",
    "parameters": {"type": "object", "properties": {}}}},
  {"type": "function", "function": {"name": "read_file", "description": "The beginning of a file.",
    "parameters": {"type": "object", "properties": {"name": {"type": "string"}},
                   "required": ["name"]}}}])";

/// What a tool says. What goes wrong is told to the model, which may do better next time.
std::string use(const ToolRequest& call, const fs::path& directory) {
  std::string text;
  if (call.name == "list_files") {
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (entry.is_regular_file()) text += entry.path().filename().string() + "\n";
    }
    return text;
  }
  const auto arguments = nlohmann::json::parse(call.arguments, nullptr, false);
  if (call.name != "read_file" || !arguments.is_object() || !arguments.contains("name")) {
    throw std::runtime_error("there is list_files {} and read_file {\"name\": …}");
  }
  // The last part of the name only: it stays in the directory.
  std::ifstream file(directory / fs::path(arguments["name"].get<std::string>()).filename());
  if (!file) throw std::runtime_error("there is no such file");
  text.resize(4'000);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

class Agent {
 public:
  Agent(const std::string& task, fs::path directory) : directory_(std::move(directory)) {
    talk_ = {
        {.role = "system", .content = "Answer the user's question. Use the tools to find out."},
        {.role = "user", .content = task}};
  }

  /// Thinks: the task is complete when the model answers instead of calling tools.
  Result<Reflection, Failure> reflect(Iteration& now) {
    auto answer = now.ask({.messages = talk_, .tools = tools});
    if (!answer) return answer.error();
    talk_.push_back(
        {.role = "assistant", .content = answer->text, .tool_calls = answer->tool_calls});
    if (answer->tool_calls.empty()) {
      return Reflection{.assessment = Assessment::task_complete, .data = answer->text};
    }
    return Reflection{.data = "calls " + answer->tool_calls.front().name + " " +
                              answer->tool_calls.front().arguments};
  }

  /// Acts: carries out what the model asked for.
  Result<Act, Failure> act(Iteration& now, const Reflection&) {
    const auto calls = talk_.back().tool_calls;
    for (const auto& call : calls) {
      now.tracker().tool_call(call.name, call.arguments, call.id);
      std::string result;
      try {
        result = use(call, directory_);
        now.tracker().tool_result(call.name, result, call.id);
      } catch (const std::exception& error) {
        result = std::string("error: ") + error.what();
        now.tracker().tool_error(call.name, result, call.id);
      }
      talk_.push_back({.role = "tool", .content = result, .tool_call_id = call.id});
    }
    return Act{.reported = true};
  }

  /// Repeats itself: goes back to the question, and tells the model to try something else.
  void recover(const Trouble& trouble) {
    talk_.resize(2);
    talk_.push_back({.role = "user", .content = trouble.advice});
  }

 private:
  fs::path directory_;
  std::vector<ChatMessage> talk_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string task = argc > 1 ? argv[1] : "What is in this directory?";
  if (argc > 3 || task.starts_with("-")) {
    std::cerr
        << "usage: watchdog-example-agent [TASK] [DIRECTORY]\n"
           "The model is at $OPENAI_BASE_URL; `watchdog-monitor config` shows all settings.\n";
    return 2;
  }
  const auto configuration = Configuration::load({});
  if (!configuration) {
    std::cerr << to_text(configuration.error());
    return 3;
  }
  const auto& settings = configuration->settings();
  auto client = ModelClient::to(settings.model);
  if (!client) {
    std::cerr << client.error().message << '\n';
    return 3;
  }

  const char* session = std::getenv("WATCHDOG_SESSION");
  ProgressTracker tracker(
      {.session = session != nullptr ? session : "",
       .spec = {.agent = "example-agent", .task = task, .policy = settings.policy},
       .database = settings.monitor.db});
  // Asked beside the agent whether it gets anywhere, where that does not disturb it.
  const auto checker = checker_for(tracker, client->model_beside(), settings.checks.options);
  Agent agent(task, argc > 2 ? argv[2] : ".");
  Run run({.tracker = tracker,
           .callbacks = {
               .reflect = [&](Iteration& now) { return agent.reflect(now); },
               .act = [&](Iteration& now,
                          const Reflection& reflection) { return agent.act(now, reflection); }},
           .model = client->model(),
           .budget = std::make_shared<ExecutionBudget>(system_clock(), settings.budget.limits,
                                                       settings.budget.thresholds),
           .checker = settings.checks.enabled ? checker.get() : nullptr},
          settings.run);
  const auto end = run.go();
  std::cout << end.last.data << '\n';
  std::cerr << tracker.session() << ": " << name_of(end.outcome.kind) << ", " << end.outcome.reason
            << ". " << end.outcome.error << '\n';
  return end.outcome.kind == OutcomeKind::completed ? 0 : 1;
}
