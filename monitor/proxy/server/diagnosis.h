/// \file
/// The kind of a model server, what it reports, and what that means for slow answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "process/process_sample.h"
#include "proxy/server/server_questions.h"

namespace watchdog::monitor {

/// A plain value.
struct Diagnosis {
  bool is_reachable = false;
  std::string trouble{};         ///< Why not; empty if it is reachable.
  std::string kind = "unknown";  ///< As of Names<ServerKind>, or `sglang`.
  std::string version{};         ///< Empty: not reported, like the next ones.
  std::vector<std::string> models{};
  bool needs_key = false, is_loading = false, is_sleeping = false;
  std::optional<std::int64_t> context{};  ///< Tokens of a slot, or of the loaded model.
  Asked slots = Asked::unasked;           ///< `waiting`: not within 2 s.
  std::size_t slots_total = 0, slots_busy = 0;
  bool shows_reading = false;      ///< Its slots show the progress of a prompt.
  Asked metrics = Asked::unasked;  ///< `unsupported`: off, or there is no such thing.
  bool shows_prompt_progress = false;
  std::string progress_why{};  ///< Why it does or does not.
  bool is_local = false;       ///< Its host is this machine.
  std::optional<ServerProcess> process{};
};

/// Asks the server about itself, for some seconds at most, and looks for its process. Does not wake
/// a model that sleeps. Thread-safe.
[[nodiscard]] Diagnosis diagnose(const Url& server, ServerQuestions& questions);

/// Returns what to change, one sentence each.
[[nodiscard]] std::vector<std::string> advice_for(const Diagnosis& diagnosis);

}  // namespace watchdog::monitor
