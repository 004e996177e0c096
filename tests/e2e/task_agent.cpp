// An agent for tests of settings that the example agent has no use for. Its work and its model are
// scripted.
//   task_agent phase NAME      a run of one phase, which takes 300 ms; prints its outcome
//   task_agent task TYPE MS    gives a task to an agent of this type, which takes 25 steps of MS
//                              milliseconds if its budget allows; prints the tool's result. The
//                              task's answer is the stage of its budget after each step.
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "watchdog/run.h"
#include "watchdog/settings.h"
#include "watchdog/tool_runner.h"
#include "watchdog/tracker.h"

namespace {

using namespace watchdog;

constexpr Millis phase_takes{300};

void work_for(Millis time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, time, [] { return false; });
}

int fail(const std::string& why) {
  std::cerr << why << std::endl;
  return 3;
}

int run_phase(const Settings& settings, const std::string& name) {
  ProgressTracker tracker(
      {.session = "agent", .spec = {.agent = "task-agent"}, .database = settings.monitor.db});
  const Model model = [](const ChatRequest&, const ChatSink&,
                         const std::stop_token& stop) -> Result<ChatAnswer, Failure> {
    work_for(phase_takes, stop);
    return ChatAnswer{.text = R"({"steps":["work"]})", .output_tokens = 1};
  };
  Run run({.tracker = tracker,
           .callbacks = {
               .reflect = [&](Iteration& now) -> Result<Reflection, Failure> {
                 if (name == "planning") {
                   if (const auto made = now.plan("work"); !made) return made.error();
                 } else {
                   now.phase(name);
                   work_for(phase_takes, now.stop());
                 }
                 if (now.stop().stop_requested()) return Reflection{};
                 return Reflection{.assessment = Assessment::task_complete};
               },
               .act = [](Iteration&, const Reflection&) -> Result<Act, Failure> { return Act{}; }},
           .model = model},
          settings.run);
  const auto end = run.go();
  std::cout << name_of(end.outcome.kind) << ", " << end.outcome.reason << std::endl;
  return 0;
}

int give_task(const Settings& settings, const std::string& type, Millis step_takes) {
  const auto task =
      parse_task(R"({"prompt":"look around","agent_type":")" + type + R"("})", settings.task_tool);
  if (!task) return fail(task.error().message);
  ProgressTracker tracker(
      {.session = "agent", .spec = {.agent = "task-agent"}, .database = settings.monitor.db});
  const TaskRunner runner = [step_takes](const TaskSpec&, const TaskSite& site) {
    constexpr int steps_max = 25;
    TaskAnswer answer;
    for (int step = 0; step < steps_max && !site.budget->exhausted(); ++step) {
      work_for(step_takes, {});
      answer.text += std::string(name_of(site.budget->step())) + " ";
    }
    answer.outcome.kind =
        site.budget->exhausted() ? OutcomeKind::incomplete : OutcomeKind::completed;
    return answer;
  };
  const auto result =
      run_task(*task,
               {.tracker = tracker,
                .budget = std::make_shared<ExecutionBudget>(system_clock(), settings.budget.limits,
                                                            settings.budget.thresholds),
                .reporting = {.database = settings.monitor.db}},
               settings.task_tool, runner);
  if (!result) return fail(result.error().message);
  std::cout << to_json(*result) << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto configuration = Configuration::load({});
  if (!configuration) return fail(to_text(configuration.error()));
  const auto& settings = configuration->settings();
  if (words.size() == 2 && words[0] == "phase") return run_phase(settings, words[1]);
  if (words.size() == 3 && words[0] == "task")
    return give_task(settings, words[1], Millis{std::atoi(words[2].c_str())});
  return fail("usage: task_agent phase NAME | task TYPE MS");
}
