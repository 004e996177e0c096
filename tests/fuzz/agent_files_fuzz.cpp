// Whatever is in an agent's settings, an install keeps all of it, a second one changes nothing, and
// a removal leaves no hook of a monitor.

#include <string_view>

#include "fuzz/fuzz.h"
#include "ingest/codex_trust.h"
#include "setup/hook_setup.h"
#include "setup/jsonc.h"

using namespace watchdog;
using namespace watchdog::monitor;

std::vector<std::string> fuzz_seeds() {
  return {
      "\xef\xbb\xbf// settings\r\n{\r\n  \"theme\": \"dark\", // not light\r\n  /* soon "
      "*/\r\n}\r\n",
      "{\"hooks\": {\"Stop\": [ // nothing yet\n ], \"SessionStart\" :[ ] }, \"z\": [1, 2,],}",
      R"({"version":1,"hooks":{"stop":[{"command":"x"}],"a\u0041":[{"bash":"y"}]}})",
      R"({"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":)"
      R"("curl -sS http://127.0.0.1:3000/api/hooks/codex"}]}]}})",
      R"({"hooks":{"Stop":[{"hooks":[{"type":"http","url":"http://127.0.0.1:3000/api/hooks/claude-code"}]}]}})",
      "[hooks.state]\n\"/h/hooks.json:pre_tool_use:0:0\" = { trusted_hash = \"sha256:00\" }\n"};
}

namespace {

/// The lines of opencode's plugin that an install looks for.
constexpr std::string_view plugin =
    "// The plugin that reports what opencode does to watchdog-monitor.\n"
    "const installed = null;\n";

void try_agent(const AgentSetup& agent, std::string_view text, const HookTarget& target) {
  const auto found = hooks_in(agent, text, target);
  const auto with = with_hooks(agent, text, target);
  FUZZ_REQUIRE(found.ok() || !found.error().message.empty());
  if (!with) {
    FUZZ_REQUIRE(!with.error().message.empty());
    return;
  }
  const auto now = hooks_in(agent, *with, target);
  FUZZ_REQUIRE(now.ok() && now->state == HookState::present);
  const auto again = with_hooks(agent, *with, target);
  FUZZ_REQUIRE(again.ok() && *again == *with);
  const auto without = without_hooks(agent, *with);
  FUZZ_REQUIRE(without.ok());
  const auto left = hooks_in(agent, *without, target);
  FUZZ_REQUIRE(left.ok() && left->state == HookState::absent && left->reporting.empty());
}

}  // namespace

void try_input(std::string_view text) {
  if (const auto root = parse_jsonc(text); !root) {
    FUZZ_REQUIRE(!root.error().message.empty() && root.error().line >= 1);
  } else {
    FUZZ_REQUIRE(root->begin <= root->end && root->end <= text.size());
  }
  const HookTarget target{.server = "http://127.0.0.1:3000", .plugin = plugin};
  for (const auto& agent : agent_setups()) try_agent(agent, text, target);
  const auto split = text.size() / 2;
  (void)codex_hooks(text, text);
  (void)codex_hooks(text.substr(0, split), text.substr(split));
}
