/// \file
/// Finds when a limit of requests, tokens or money ends.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "watchdog/time.h"

namespace watchdog {

/// Reads the time at which the limit of a refused request ends from the headers of the response:
/// `retry-after`, and those of Anthropic, OpenAI, Codex, Groq, Azure and OpenRouter. Of several
/// used-up limits the last end counts. Nothing: no header says it, or the time is not within a year
/// from `now`.
[[nodiscard]] std::optional<WallTime> limit_end_in_headers(
    const std::function<std::string_view(std::string_view)>& header, WallTime now);

/// Reads it from the JSON body of an error (Codex, Gemini, OpenRouter), else from the words of its
/// message. A daily limit of Gemini ends at midnight in California, whatever the body says.
[[nodiscard]] std::optional<WallTime> limit_end_in_body(std::string_view body, WallTime now);

/// Reads it from a text that an agent prints: "resets 9pm (Europe/Berlin)", "try again in 6m12s",
/// "try again at Feb 3rd, 2026 3:15 PM", "limit reached|1795806400". A time without a zone is in
/// the zone of this machine.
[[nodiscard]] std::optional<WallTime> limit_end_in_text(std::string_view text, WallTime now);

}  // namespace watchdog
