#include "ingest/codex_trust.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace watchdog::monitor {
namespace {

using EventNames = std::vector<std::string>;

/// A hook, and the digest that Codex 0.169 showed for it (`hooks/list` of its app server).
struct TrustedHook {
  const char* event;
  const char* group;
  const char* digest;
};
constexpr TrustedHook trusted_hooks[] = {
    {"Stop",
     R"({"hooks":[{"type":"command","command":"curl http://127.0.0.1:3000/api/hooks/codex"}]})",
     "ab539d46dfeb4d00b592ae9ea0abe3bd88f10faa1ad1fa0e2f2f4440fc132c7c"},
    {"PreToolUse",
     R"({"matcher":"Bash","hooks":[{"type":"command","command":"curl \"http://127.0.0.1:3000/api/hooks/codex?session=$WATCHDOG_SESSION\" || true # \u00e4","timeout":5,"statusMessage":"hi"}]})",
     "3a5229fb2fa655575937f23e09b8b124903ccb5bdf60d2ca53e0c047e7e09cbf"},
    {"Interrupt",
     R"({"matcher":"x","hooks":[{"type":"command","command":"curl http://127.0.0.1:3000/api/hooks/codex","timeout":9}]})",
     "462c3004064b355ae4aaee4e62629b3bddb6f0b42f83a7ce2b59af7b976a4fcf"},
    {"SessionEnd",
     R"({"matcher":"","hooks":[{"type":"command","command":"curl http://127.0.0.1:3000/api/hooks/codex","timeout":0}]})",
     "225142e118420cef3033a810775b61e1cdc0d16ac68da728af8a61ff3f0161b3"},
};

std::string hooks_with(const TrustedHook& hook) {
  return std::string(R"({"hooks":{")") + hook.event + "\":[" + hook.group + "]}}";
}

TEST(CodexTrust, a_hook_is_trusted_by_the_digest_that_codex_itself_takes) {
  for (const auto& hook : trusted_hooks) {
    const auto line = std::string("trusted_hash = \"sha256:") + hook.digest + "\"\n";
    const auto asked = [&](const std::string& config) {
      const auto found = codex_hooks(hooks_with(hook), config);
      EXPECT_EQ(found.reporting, EventNames{hook.event});
      EXPECT_EQ(found.missing.size(), 10U);
      return found.untrusted;
    };
    EXPECT_EQ(asked("model = \"m\"\n[hooks.state.\"/h/hooks.json:x:0:0\"]\n" + line), EventNames{});
    EXPECT_EQ(asked(line), EventNames{}) << "the first line";
    EXPECT_EQ(asked(""), EventNames{hook.event});
    EXPECT_EQ(asked("# " + line), EventNames{hook.event});
    EXPECT_EQ(asked("trusted_hash = \"sha256:" + std::string(64, '0') + "\""),
              EventNames{hook.event});
  }
}

TEST(CodexTrust, a_changed_hook_is_trusted_no_longer) {
  const auto& hook = trusted_hooks[1];
  const auto config = std::string("trusted_hash = \"sha256:") + hook.digest + "\"\n";
  for (const auto& [from, to] : {std::pair{"|| true", "|| false"},
                                 {"\"timeout\":5", "\"timeout\":6"},
                                 {"\"Bash\"", "\"Edit\""},
                                 {"PreToolUse", "PostToolUse"}}) {
    auto changed = hooks_with(hook);
    changed.replace(changed.find(from), std::string_view(from).size(), to);
    EXPECT_EQ(codex_hooks(changed, config).untrusted.size(), 1U) << changed;
  }
}

TEST(CodexTrust, foreign_hooks_and_invalid_hooks_are_ignored) {
  for (
      const char* text :
      {"", "{", "[]", "{}", R"({"hooks":7})", R"({"hooks":{"Stop":{}}})",
       R"({"hooks":{"Stop":[7,{"hooks":[7,{"command":7},{"type":"command","command":"true"}]}]}})"}) {
    const auto found = codex_hooks(text, "");
    EXPECT_EQ(found.reporting, EventNames{}) << text;
    EXPECT_EQ(found.untrusted, EventNames{}) << text;
    EXPECT_EQ(found.missing.size(), 11U) << text;
  }
  EXPECT_FALSE(codex_hooks("{", "").is_json);
  EXPECT_TRUE(codex_hooks("{}", "").is_json);
}

}  // namespace
}  // namespace watchdog::monitor
