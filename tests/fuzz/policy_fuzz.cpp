// A policy or a session's creation that is accepted is written as it can be read again.

#include <string_view>

#include "codec/json.h"
#include "facts/ids.h"
#include "fuzz/fuzz.h"
#include "privacy/redaction.h"

using namespace watchdog;

std::vector<std::string> fuzz_seeds() {
  return {R"({"stuckThreshold":8,"patterns":{"R3":{"suspect":4,"stuck":6}}})",
          R"({"tools":{"a.b":{"use":"paging","identity":["q"]},"f":{"use":"poll"}}})",
          R"({"enableConcurrentChecks":false,"silentAfterMs":1000,"slowFactor":2.5})",
          R"({"sessionId":"s","agent":"a","task":"t","labels":{"k":"v"},"content":"full"})",
          R"({"sessionId":"s","parentSessionId":"p","policy":{"stuckThreshold":8},"pid":1})",
          "{}"};
}

void try_input(std::string_view text) {
  if (auto patch = policy_patch_from_json(text)) {
    const auto written = to_json(*patch);
    const auto again = policy_patch_from_json(written);
    FUZZ_REQUIRE(again.ok());
    FUZZ_REQUIRE(to_json(*again) == written);
    redact(*patch);
    FUZZ_REQUIRE(policy_patch_from_json(to_json(*patch)).ok());
  } else {
    FUZZ_REQUIRE(!patch.error().message.empty());
  }
  std::string id;
  if (auto spec = session_spec_from_json(text, id)) {
    const auto written = to_json(*spec);
    std::string none;
    const auto again = session_spec_from_json(written, none);
    FUZZ_REQUIRE(again.ok());
    FUZZ_REQUIRE(to_json(*again) == written);
    redact(*spec);
    FUZZ_REQUIRE(check(*spec).ok());
  }
}
