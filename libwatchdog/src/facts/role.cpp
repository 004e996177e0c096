#include "facts/role.h"

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

}  // namespace

Speaker speaker_of(std::string_view role) noexcept {
  for (const auto& row : role_rows) {
    if (row.role == role) return row.speaker;
  }
  return Speaker::agent;
}

}  // namespace watchdog
