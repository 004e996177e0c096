/// \file
/// What a hook asks a person, and the form in which its agent takes a person's answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ingest/hooks.h"
#include "ingest/person_answer.h"

namespace watchdog::monitor {

/// A question of a hook that can be answered elsewhere. A plain value.
struct HookQuestion {
  HookAgent agent = HookAgent::generic;
  std::string event{};      ///< As the agent calls it.
  HeldQuestion question{};  ///< Without id, session and times.
  std::string input{};      ///< JSON of the call's arguments, which an answer repeats.
};

/// Returns the question of a hook's event. Nothing: it asks none, or none that one text answers, or
/// one that cannot be shown in whole. That has a secret, or characters that hide something, or is
/// very long. `body` is JSON that hook_event() accepted. Thread-safe.
[[nodiscard]] std::optional<HookQuestion> hook_question(HookAgent agent, std::string_view event,
                                                        std::string_view body);

/// Returns the body by which the agent takes the answer. Pure.
[[nodiscard]] std::string hook_reply(const HookQuestion& asked, const PersonAnswer& answer);

/// `denied by ann: not on this machine`.
[[nodiscard]] std::string denial_of(const PersonAnswer& answer);

}  // namespace watchdog::monitor
