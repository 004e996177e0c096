/// \file
/// What a test server is to be like, as JSON on its command line and at run time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "support/scripted_answer.h"
#include "support/server_tells.h"
#include "support/simulated_server.h"

namespace watchdog::test {

/// A plain value.
struct BackendScenario {
  SimulatedModel model{};
  ServerManners manners{};
  ScriptedLengths lengths{};
  bool cache = false;     ///< What is alike in the prompts' beginnings need not be read again.
  std::string api_key{};  ///< Empty: none is asked for.
  bool mend = false;      ///< Faults so far are over.
  std::optional<SimulatedFault> fault{};
};

/// Changes what the object names. Returns what is wrong with it; empty: nothing. Keys: kind,
/// parallel, context, batch, prefill, decode (tokens a second), jitter, loading_s, sleep_s, ping_s,
/// busy_cpu, idle_cpu, slots, metrics, model, prompt_tokens, answer_tokens,
/// reasoning_tokens, cache, api_key, mend, fault {kind, at_s from `now`, phase, after,
/// slots_answer, health_answers, cpu, lasts_s}.
[[nodiscard]] std::string apply(const nlohmann::json& change, Instant now,
                                BackendScenario& scenario);

}  // namespace watchdog::test
