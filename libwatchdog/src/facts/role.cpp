#include "facts/role.h"

#include <algorithm>
#include <iterator>

namespace watchdog {
namespace {

struct RoleRow {
  std::string_view role;
  Speaker speaker;
};

constexpr RoleRow role_rows[] = {{"user", Speaker::person},
                                 {"human", Speaker::person},
                                 {"system", Speaker::person},
                                 {"developer", Speaker::person},
                                 {"hook", Speaker::hook},
                                 {"notification", Speaker::hook},
                                 {"tool", Speaker::program},
                                 {"tool_result", Speaker::program},
                                 {"function", Speaker::program},
                                 {"terminal", Speaker::program},
                                 {"console", Speaker::program},
                                 {"shell", Speaker::program},
                                 {"command_output", Speaker::program},
                                 {"output", Speaker::program},
                                 {"stdout", Speaker::program},
                                 {"stderr", Speaker::program},
                                 {"environment", Speaker::program},
                                 {"observation", Speaker::program},
                                 {"error", Speaker::program}};

constexpr std::string_view model_roles[] = {"assistant", "agent",    "ai",        "model",
                                            "thought",   "thinking", "reasoning", "plan"};

/// As in "Computer_terminal".
constexpr std::string_view device_roles[] = {"erminal", "onsole"};

}  // namespace

Speaker speaker_of(std::string_view role) noexcept {
  for (const auto& row : role_rows) {
    if (row.role == role) return row.speaker;
  }
  for (const auto device : device_roles) {
    if (role.ends_with(device)) return Speaker::program;
  }
  return Speaker::agent;
}

bool is_model(std::string_view role) noexcept {
  // As in "Orchestrator (thought)".
  if (role.ends_with("(thought)")) return true;
  return std::find(std::begin(model_roles), std::end(model_roles), role) != std::end(model_roles);
}

}  // namespace watchdog
