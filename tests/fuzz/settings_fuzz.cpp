// Any file is read or refused at a place in it; what is accepted for a setting is shown as it can
// be given again.

#include <algorithm>
#include <string_view>

#include "config/table.h"
#include "config/toml_leaf.h"
#include "fuzz/fuzz.h"

using namespace watchdog;

std::vector<std::string> fuzz_seeds() {
  return {sample_configuration().substr(0, 2'000),
          "[run]\nmax_iterations = 25\nretries = 1_000\n",
          "[policy]\nstuckThreshold = 8\n[policy.patterns]\nR3 = { suspect = 4, stuck = 6 }\n",
          "[policy.tools.\"a.b\"]\nuse = \"paging\"\nidentity = [\n  'q', # why\n  \"\\u00e9\" ]\n",
          "task_tool.agents.plan.max_steps = 0x10\n[[model]]\nname = '''x'''\n",
          "monitor = { db = \"\", port = 65535, retention_days = 1e2 }\n",
          "budget.cost = inf\nbudget.steps = -0\nmigration.status_based = \"compare\"\n",
          "a.a.a.a.a.a.a.a.a = 1979-05-27T07:32:00Z\n",
          "\xff\xef\xbb\xbf\r\n"};
}

void try_input(std::string_view text) {
  const auto leaves = toml_leaves(text);
  if (!leaves) {
    const auto lines = std::ranges::count(text, '\n') + 1;
    FUZZ_REQUIRE(leaves.error().line >= 1 && leaves.error().line <= lines + 1);
    FUZZ_REQUIRE(leaves.error().column >= 0 && !leaves.error().message.empty());
    return;
  }
  Settings settings;
  for (const auto& leaf : *leaves) {
    FUZZ_REQUIRE(!key_text(leaf.path).empty());
    const auto setting = find_setting(leaf.path);
    if (!setting) {
      (void)is_section(leaf.path);
      continue;
    }
    const auto key = setting->key();
    const auto field = setting->field(settings);
    const auto done = set(field, leaf.value, key, setting->row->allowed);
    FUZZ_REQUIRE(done || !done.error().message.empty());
    if (!done) continue;
    const auto value = shown(field, key);
    if (value.is_null()) continue;  // a tool's empty identity is none
    FUZZ_REQUIRE(set(field, value, key, setting->row->allowed).ok());
    FUZZ_REQUIRE(shown(field, key) == value);
  }
}
