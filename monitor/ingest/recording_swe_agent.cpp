// SWE-agent and mini-SWE-agent. A `.traj` file is one object: `trajectory` has a step for each
// answer (thought, action, observation), `info` says how the run ended and what it used. A
// `.traj.json` file of mini-SWE-agent has `messages` in their place. SWE-agent keeps no times.
// Sources: https://swe-agent.com/latest/usage/trajectories/, SWE-agent/SWE-agent sweagent/types.py
// (05ff843), and mini-SWE-agent's docs/usage/output_files.md.
#include <algorithm>
#include <cmath>
#include <deque>

#include "ingest/recording_steps.h"
#include "ingest/transcript_state.h"
#include "watchdog/reasons.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// The tool of an action is its first word, where that is a name; else the shell.
std::string swe_tool(std::string_view action) {
  const auto begin = std::min(action.find_first_not_of(" \t\r\n"), action.size());
  action.remove_prefix(begin);
  const auto word = action.substr(0, action.find_first_of(" \t\r\n"));
  const bool is_name =
      !word.empty() && word.size() <= 64 && std::ranges::all_of(word, [](unsigned char letter) {
        return std::isalnum(letter) != 0 || letter == '_' || letter == '-' || letter == '.' ||
               letter == '/';
      });
  return is_name ? std::string(word) : "bash";
}

/// The command in an answer's block of code; empty: it has none.
std::string swe_command(std::string_view answer) {
  for (const std::string_view fence : {"```bash\n", "```mswea_bash_command\n"}) {
    const auto begin = answer.find(fence);
    if (begin == std::string_view::npos) continue;
    const auto code = answer.substr(begin + fence.size());
    return std::string(code.substr(0, code.find("\n```")));
  }
  return {};
}

/// How the run ended, by the status in its file; nothing: it has none.
std::optional<Outcome> swe_outcome(const std::string& status) {
  if (status.empty()) return std::nullopt;
  std::string word = status;
  std::ranges::transform(word, word.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  Outcome outcome;
  outcome.reason = std::string(reasons::error);
  if (word == "submitted") {
    outcome.reason = std::string(reasons::task_complete);
  } else if (word.starts_with(
                 "submitted")) {  // its work was taken as it was: `submitted (exit_cost)`
    outcome = {.kind = OutcomeKind::incomplete, .reason = short_name(status)};
  } else if (word.find("cost") != word.npos || word.find("context") != word.npos ||
             word.find("limit") != word.npos || word.find("time") != word.npos) {
    outcome = {.kind = OutcomeKind::incomplete, .reason = short_name(status)};
  } else {
    outcome.kind = OutcomeKind::failed;
    outcome.error = status;
  }
  return outcome;
}

/// The value of `<returncode>`; 0: the text has none.
bool has_bad_code(std::string_view text) {
  constexpr std::string_view mark = "<returncode>";
  const auto at = text.find(mark);
  if (at == std::string_view::npos) return false;
  return !text.substr(at + mark.size()).starts_with("0<");
}

/// The time of a message: its own, or that of the model's answer.
std::optional<WallTime> swe_time(const json& message) {
  const auto& extra = member(message, "extra");
  const auto at = second_in(extra, "timestamp");
  return at ? at : second_in(member(extra, "response"), "created");
}

/// An early file of mini-SWE-agent is the list of messages: a command in a block of code, and its
/// output with marks.
bool is_mini_list(const json& list) {
  constexpr std::size_t looked_at = 50;
  for (std::size_t at = 0; at + 1 < list.size() && at < looked_at; ++at) {
    if (text_in(list[at], "role") != "assistant" || text_in(list[at + 1], "role") != "user")
      continue;
    const auto seen = content_text(member(list[at + 1], "content"));
    return !swe_command(content_text(member(list[at], "content"))).empty() &&
           seen.find("<returncode>") != seen.npos;
  }
  return false;
}

class SweAgentReader final : public ValueReader {
 public:
  Result<void> read(const json& value, std::string_view /*text*/, StepList& steps) override {
    const auto& trajectory = member(value, "trajectory");
    const auto& messages = value.is_array() ? value : member(value, "messages");
    if (!value.is_object() && !value.is_array())
      return Error{ErrorCode::malformed, "a trajectory must be an object"};
    if (!trajectory.is_array() && !messages.is_array())
      return Error{ErrorCode::malformed, "trajectory, or messages, must be an array"};
    SessionSpec spec;
    spec.agent = trajectory.is_array() ? "swe-agent" : "mini-swe-agent";
    session_ = steps.session(text_in(value, "instance_id"), std::move(spec));
    call_ = 0;
    at_.reset();
    if (trajectory.is_array()) {
      read_history(member(value, "history"), steps);
      for (const auto& step : trajectory) read_step(step, steps);
    } else {
      open_.clear();
      // The task has no time of its own.
      for (const auto& message : messages)
        if ((at_ = swe_time(message))) break;
      for (const auto& message : messages) read_message(message, steps);
    }
    read_info(member(value, "info"), steps);
    return {};
  }
  void finish(StepList& /*steps*/) override {}

 private:
  /// The task is the first prompt that is not a demonstration.
  void read_history(const json& history, StepList& steps) {
    if (!history.is_array()) return;
    for (const auto& item : history) {
      if (text_in(item, "role") != "user" || flag_in(item, "is_demo")) continue;
      return steps.prompt(session_, content_text(member(item, "content")), {});
    }
  }

  void read_step(const json& step, StepList& steps) {
    steps.message(session_, "assistant", text_in(step, "thought"), {});
    auto action = text_in(step, "action");
    auto seen = content_text(member(step, "observation"));
    if (action.find_first_not_of(" \t\r\n") == std::string::npos) {
      steps.message(session_, "environment", std::move(seen), {});
      return;
    }
    const auto tool = swe_tool(action);
    const auto id = "step-" + std::to_string(++call_);
    steps.call(session_, tool, id, std::move(action), {});
    steps.result(session_, tool, id, false, std::move(seen), {});
  }

  void read_message(const json& message, StepList& steps) {
    const auto role = text_in(message, "role");
    const auto& extra = member(message, "extra");
    if (const auto at = swe_time(message)) at_ = at;
    auto text = content_text(member(message, "content"));
    if (role == "assistant") return read_answer(message, std::move(text), steps);
    if (role != "user" && role != "tool") return;  // system, exit
    if (open_.empty()) {
      // Before the first answer it is the task, later a reminder of the program.
      if (call_ == 0) return steps.prompt(session_, std::move(text), at_);
      return steps.message(session_, "environment", std::move(text), at_);
    }
    auto found = std::ranges::find(open_, text_in(message, "tool_call_id"), &OpenCall::id);
    if (found == open_.end()) found = open_.begin();
    const bool failed = number_in(extra, "returncode") != 0 || has_bad_code(text);
    steps.result(session_, found->tool, found->id, failed, std::move(text), at_);
    open_.erase(found);
  }

  void read_answer(const json& message, std::string text, StepList& steps) {
    open_.clear();
    const auto& calls = member(message, "tool_calls");
    const auto& actions = member(member(message, "extra"), "actions");
    const auto command = swe_command(text);
    steps.message(session_, "assistant", std::move(text), at_);
    if (calls.is_array() && !calls.empty()) {
      for (const auto& call : calls) {
        const auto& function = member(call, "function");
        open(text_in(function, "name"), text_in(call, "id"),
             content_text(member(function, "arguments")), steps);
      }
    } else if (actions.is_array() && !actions.empty()) {
      for (const auto& action : actions) {
        auto words = text_in(action, "command");
        if (words.empty()) words = text_in(action, "action");
        open("bash", text_in(action, "tool_call_id"), std::move(words), steps);
      }
    } else if (!command.empty()) {
      open("bash", {}, command, steps);
    }
  }

  void open(std::string tool, std::string id, std::string arguments, StepList& steps) {
    ++call_;
    if (id.empty()) id = "step-" + std::to_string(call_);
    if (tool.empty()) tool = "bash";
    steps.call(session_, tool, id, std::move(arguments), at_);
    open_.push_back({.tool = std::move(tool), .id = std::move(id)});
  }

  void read_info(const json& info, StepList& steps) {
    const auto& stats = member(info, "model_stats");
    BudgetFigures figures;
    figures.steps = std::clamp<std::int64_t>(number_in(stats, "api_calls"), 0, budget_max);
    figures.tokens =
        std::clamp<std::int64_t>(number_in(stats, "tokens_sent"), 0, budget_max / 2) +
        std::clamp<std::int64_t>(number_in(stats, "tokens_received"), 0, budget_max / 2);
    if (const auto& cost = member(stats, "instance_cost");
        cost.is_number() && cost.get<double>() > 0 && std::isfinite(cost.get<double>()))
      figures.cost = std::min(cost.get<double>(), 1e9);
    if (figures.steps > 0 || figures.tokens > 0 || figures.cost > 0)
      steps.use(session_, figures, at_);
    auto outcome = swe_outcome(text_in(info, "exit_status"));
    if (!outcome) return;
    const bool is_done = outcome->kind == OutcomeKind::completed;
    steps.rest(session_, is_done ? std::string_view() : idle_reports::failed,
               is_done ? std::string() : text_in(info, "exit_status"), at_);
    steps.end(session_, std::move(*outcome), at_);
  }

  struct OpenCall {
    std::string tool;
    std::string id;
  };

  std::shared_ptr<const RecordedSession> session_;
  std::optional<WallTime> at_;
  std::int64_t call_ = 0;
  std::deque<OpenCall> open_;
};

}  // namespace

bool is_swe_agent(const json& value) {
  if (value.is_array()) return is_mini_list(value);
  const auto& trajectory = member(value, "trajectory");
  if (trajectory.is_array() && !trajectory.empty()) {
    const auto& step = trajectory.front();
    return member(step, "action").is_string() && step.contains("observation") &&
           !step.contains("source");
  }
  if (trajectory.is_array()) return member(value, "info").is_object();
  return member(value, "messages").is_array() &&
         (text_in(value, "trajectory_format").starts_with("mini-swe-agent") ||
          member(member(value, "info"), "model_stats").is_object());
}

std::unique_ptr<ValueReader> swe_agent_reader() {
  return std::make_unique<SweAgentReader>();
}

}  // namespace watchdog::monitor
