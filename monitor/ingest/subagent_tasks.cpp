#include "ingest/subagent_tasks.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "codec/json.h"
#include "codec/json_bounds.h"
#include "ingest/hook_members.h"
#include "watchdog/session.h"

namespace watchdog::monitor {
namespace {

/// Claude Code (its older versions, too) and opencode; Copilot CLI has the second.
constexpr std::array<std::string_view, 3> starting_tools{"Agent", "Task", "task"};

}  // namespace

void SubagentTasks::note(const std::string& session, const Report& call) {
  if (std::ranges::find(starting_tools, call.name) == starting_tools.end()) return;
  if (!check_json(call.content)) return;
  const auto arguments = nlohmann::json::parse(call.content, nullptr, false);
  if (!arguments.is_object()) return;
  const HookMembers members(arguments);
  Task task{.session = session,
            .agent = members.word({"subagent_type", "agent_type"}, label_bytes_max),
            .text = members.word({"description", "prompt"}, label_bytes_max)};
  if (task.text.empty()) return;
  if (tasks_.size() == tasks_max) tasks_.pop_front();
  tasks_.push_back(std::move(task));
}

void SubagentTasks::join(Batch& batch) {
  if (batch.by != ReportOrigin::hooks) return;
  const auto& parent = batch.spec.parent;
  const bool begins = std::ranges::any_of(
      batch.reports, [](const Report& report) { return report.kind == ReportKind::start; });
  if (begins && !parent.empty() && batch.spec.task.empty()) {
    const auto is_of = [&](const Task& task) { return task.session == parent; };
    auto found = std::ranges::find_if(
        tasks_, [&](const Task& task) { return is_of(task) && task.agent == batch.spec.agent; });
    if (found == tasks_.end()) found = std::ranges::find_if(tasks_, is_of);
    if (found != tasks_.end()) {
      batch.spec.task = std::move(found->text);
      tasks_.erase(found);
    }
  }
  for (const auto& report : batch.reports)
    if (report.kind == ReportKind::tool_call) note(batch.session, report);
}

}  // namespace watchdog::monitor
