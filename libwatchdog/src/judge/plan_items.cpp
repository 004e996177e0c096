#include "judge/plan_items.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace watchdog {
namespace {

using nlohmann::json;

struct PlanToolRow {
  std::string_view tool;
  PlanTool kind;
};
constexpr PlanToolRow plan_tools[] = {
    {"TodoWrite", PlanTool::list},           // Claude Code
    {"TaskCreate", PlanTool::new_task},      // Claude Code
    {"TaskUpdate", PlanTool::changed_task},  // Claude Code
    {"update_plan", PlanTool::list},         // Codex
    {"todowrite", PlanTool::list},           // opencode
    {"write_todos", PlanTool::list},         // Gemini CLI
    {"todo_write", PlanTool::list},          // Cursor
    {"SetTodoList", PlanTool::list},         // Kimi CLI
    {"set_plan", PlanTool::list},            // plans of other agents
};

constexpr std::size_t read_bytes_max = 64U << 10U;
constexpr std::size_t items_counted_max = 255;

const json* first_member(const json& object, std::initializer_list<const char*> names) {
  for (const auto* name : names)
    if (const auto found = object.find(name); found != object.end()) return &*found;
  return nullptr;
}

/// In small letters; empty: it has none.
std::string item_status(const json& item) {
  if (!item.is_object()) return {};
  const auto* status = first_member(item, {"status", "state"});
  if (status == nullptr || !status->is_string()) return {};
  auto text = status->get<std::string>();
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return text;
}

/// Done, or given up.
bool is_item_over(std::string_view status) {
  constexpr std::string_view words[] = {"completed", "complete", "done",    "cancelled",
                                        "canceled",  "skipped",  "deleted", "removed"};
  return std::ranges::find(words, status) != std::end(words);
}

bool is_under_way(std::string_view status) {
  constexpr std::string_view words[] = {"in_progress", "in progress", "in-progress", "inprogress"};
  return std::ranges::find(words, status) != std::end(words);
}

PlanItems items_of_list(const json& arguments) {
  // It leaves out the items that stay as they are.
  if (arguments.value("merge", json()) == true) return {};
  const auto* items = first_member(arguments, {"todos", "plan", "items"});
  if (items == nullptr || !items->is_array() || items->size() > items_counted_max) return {};
  std::size_t open = 0;
  std::size_t under_way = 0;
  for (const auto& item : *items) {
    const auto status = item_status(item);
    if (status.empty()) return {};
    if (is_item_over(status)) continue;
    ++open;
    if (is_under_way(status)) ++under_way;
  }
  const bool is_last_update_missing = open == 1 && under_way == 1 && items->size() > 1;
  return {.open = static_cast<std::uint8_t>(is_last_update_missing ? 0 : open),
          .all = static_cast<std::uint8_t>(items->size())};
}

PlanItems changed_task(const json& arguments) {
  const auto* id = first_member(arguments, {"taskId", "task_id", "id"});
  const auto status = item_status(arguments);
  if (id == nullptr || status.empty()) return {};
  std::uint64_t number = 0;
  if (id->is_number_unsigned()) number = id->get<std::uint64_t>();
  if (const auto* text = id->get_ptr<const json::string_t*>()) {
    const auto read = std::from_chars(text->data(), text->data() + text->size(), number);
    if (read.ptr != text->data() + text->size() || read.ec != std::errc()) return {};
  }
  if (number > items_counted_max) return {};
  return {.open = static_cast<std::uint8_t>(is_item_over(status) ? 0 : 1),
          .all = static_cast<std::uint8_t>(number)};
}

}  // namespace

PlanTool plan_tool(std::string_view tool) noexcept {
  const auto own = tool.rfind("__");
  if (tool.starts_with("mcp__") && own != tool.npos) tool.remove_prefix(own + 2);
  const auto* row = std::ranges::find(plan_tools, tool, &PlanToolRow::tool);
  return row == std::end(plan_tools) ? PlanTool::none : row->kind;
}

PlanItems plan_items(std::string_view tool, std::string_view arguments) {
  const auto kind = plan_tool(tool);
  if (kind == PlanTool::none || arguments.size() > read_bytes_max) return {};
  if (kind == PlanTool::new_task) return {.open = 1, .all = 1};
  const auto read = json::parse(arguments, nullptr, false);
  if (!read.is_object()) return {};
  return kind == PlanTool::list ? items_of_list(read) : changed_task(read);
}

}  // namespace watchdog
