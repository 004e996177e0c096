/// \file
/// What a test server is to be like, as JSON on its command line and at run time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "support/scripted_answer.h"
#include "support/server_responses.h"
#include "support/simulated_server.h"

namespace watchdog::test {

/// A plain value.
struct BackendScenario {
  SimulatedModel model{};
  ServerManners manners{};
  ScriptedLengths lengths{};
  bool cache = false;     ///< A prompt's beginning that is known is not read again.
  std::string api_key{};  ///< Empty: none is asked for.
  bool mend = false;      ///< Faults so far are over.
  std::optional<SimulatedFault> fault{};
};

/// Changes the settings that the object names. Returns what is wrong with it; empty: nothing. Keys
/// of the machine: kind, parallel, context, batch, prefill and decode (tokens a second), jitter,
/// loading_s, sleep_s, ping_s, busy_cpu, idle_cpu. Keys of the server: slots, metrics, model,
/// api_key, cache. Keys of answers: prompt_tokens, answer_tokens, reasoning_tokens. Further keys:
/// mend and fault. Keys of a fault: kind, at_s (from `now`), phase, after, slots_answer,
/// health_answers, cpu, lasts_s.
[[nodiscard]] std::string apply(const nlohmann::json& change, Instant now,
                                BackendScenario& scenario);

}  // namespace watchdog::test
