#include <algorithm>
#include <utility>

#include "privacy/content.h"
#include "watchdog/tool_runner.h"

namespace watchdog {
namespace {

constexpr std::size_t tool_name_chars_max = 64;

ChatMessage interrupted(const ToolRequest& call) {
  return {.role = "tool",
          .content = "[CANCELLED] Tool \"" +
                     std::string(first_characters(call.name, tool_name_chars_max)) +
                     "\" has no result: the turn was interrupted. It may have run.",
          .tool_call_id = call.id};
}

}  // namespace

std::vector<ChatMessage> tool_messages(std::span<const CallReport> reports) {
  std::vector<ChatMessage> messages;
  messages.reserve(reports.size());
  for (const auto& report : reports) {
    messages.push_back(
        {.role = "tool", .content = render_for_model(report), .tool_call_id = report.call.id});
  }
  return messages;
}

bool repair_history(std::vector<ChatMessage>& conversation) {
  std::vector<ChatMessage> repaired;
  repaired.reserve(conversation.size());
  bool changed = false;
  for (std::size_t at = 0; at < conversation.size();) {
    auto& message = conversation[at];
    if (message.role == "tool") {  // answers nothing
      changed = true;
      ++at;
      continue;
    }
    const auto calls = message.tool_calls;
    const bool asks = message.role == "assistant" && !calls.empty();
    repaired.push_back(std::move(message));
    ++at;
    if (!asks) continue;
    // Its answers stand before whatever else is said next, also where something came in between.
    std::vector<ChatMessage> between;
    std::vector<ChatMessage> answers;
    for (; at < conversation.size() && conversation[at].role != "assistant"; ++at) {
      auto& next = conversation[at];
      changed |= next.role == "tool" && !between.empty();
      (next.role == "tool" ? answers : between).push_back(std::move(next));
    }
    std::size_t used = 0;
    for (std::size_t number = 0; number < calls.size(); ++number) {
      const auto& call = calls[number];
      const auto found =
          std::find_if(answers.begin(), answers.end(), [&](const ChatMessage& answer) {
            return answer.role == "tool" && answer.tool_call_id == call.id;
          });
      if (found == answers.end()) {
        repaired.push_back(interrupted(call));
        changed = true;
        continue;
      }
      changed |= static_cast<std::size_t>(found - answers.begin()) != number;
      repaired.push_back(std::move(*found));
      found->role.clear();
      ++used;
    }
    changed |= used != answers.size();
    for (auto& other : between) repaired.push_back(std::move(other));
  }
  conversation = std::move(repaired);
  return changed;
}

}  // namespace watchdog
