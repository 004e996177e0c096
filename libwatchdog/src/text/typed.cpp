#include "text/typed.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace watchdog {
namespace {

/// Blocks that programs write in a person's place.
constexpr std::string_view blocks_of_programs[] = {
    "system-reminder",     "task-notification",  // Claude Code
    "session_context",                           // Gemini CLI
    "environment_context", "user_instructions",  // Codex
    "system_notification", "current_datetime"};  // Copilot CLI

/// The name of the block `<name>…</name>` that the text begins with; empty: it begins otherwise.
std::string_view block_at(std::string_view text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz_-";
  if (!text.starts_with('<')) return {};
  const auto end = text.find_first_not_of(letters, 1);
  if (end == text.npos || text[end] != '>') return {};
  return text.substr(1, end - 1);
}

bool is_of_program(std::string_view block) {
  return std::ranges::find(blocks_of_programs, block) != std::end(blocks_of_programs);
}

/// Without the white space that it begins with.
std::string_view trimmed(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

}  // namespace

std::string_view typed(std::string_view text) {
  while (true) {
    text = trimmed(text);
    const auto name = block_at(text);
    if (!is_of_program(name)) return text;
    const auto close = "</" + std::string(name) + ">";
    const auto end = text.find(close);
    const auto rest =
        end == text.npos ? std::string_view() : trimmed(text.substr(end + close.size()));
    if (rest.empty()) return rest;
    text = rest;
  }
}

}  // namespace watchdog
