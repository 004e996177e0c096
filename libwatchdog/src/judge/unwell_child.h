/// \file
/// How a parent's event says that a session below it is not well: "ID: REASON",
/// "ID needs a person (others work): REASON". The id of a session has no blank.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "judge/attention.h"
#include "watchdog/history.h"

namespace watchdog::unwell_child {

inline constexpr std::string_view needs_person = " needs a person";
inline constexpr std::string_view others_work = " (others work)";

/// Returns the text before the child's reason.
[[nodiscard]] inline std::string head(std::string_view id, Attention attention, bool works) {
  std::string text(id);
  if (attention == Attention::needs_you) text += needs_person;
  if (works) text += others_work;
  return text + ": ";
}

/// True if the head of this text has one of the words above.
[[nodiscard]] inline bool says(std::string_view text, std::string_view words) noexcept {
  return text.substr(0, text.find(": ")).find(words) != std::string_view::npos;
}

/// True if the session waits for a session below it, and its wait or its call has these words.
[[nodiscard]] inline bool says(const History& history, std::string_view words) noexcept {
  if (history.lifecycle == Lifecycle::waiting)
    return history.notes->waiting_for == wait_reports::children &&
           says(history.notes->wait_why, words);
  if (history.lifecycle != Lifecycle::running) return false;
  return std::ranges::any_of(*history.open_calls, [&](const OpenCall& call) {
    return call.passed < OpenCall::passed_max &&
           call.notes->seen.starts_with(call_reports::waits_for) && says(call.notes->seen, words);
  });
}

}  // namespace watchdog::unwell_child
