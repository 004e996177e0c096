/// \file
/// What a reply tells an agent about its reports, once per session and kind.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "watchdog/report.h"

namespace watchdog::monitor {

enum class HintKind : std::uint8_t { bare_heartbeats, unknown_kind, cut_content };

/// Remembers which hints were given. After `sessions_max` sessions it begins again. Thread-safe.
class Hints {
 public:
  static constexpr std::size_t sessions_max = 10'000;

  /// True for the first time that it is asked for this session and kind.
  [[nodiscard]] bool is_first(std::string_view session, HintKind kind);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::uint8_t> given_;
};

/// True for a heartbeat that says nothing but that the process is alive, and does not say so.
[[nodiscard]] bool is_bare_heartbeat(const Report& report) noexcept;
/// The sentence; `about`: what it is about, of a kind that needs that.
[[nodiscard]] std::string hint_text(HintKind kind, const std::string& about);

inline bool Hints::is_first(std::string_view session, HintKind kind) {
  const std::lock_guard guard(mutex_);
  if (given_.size() >= sessions_max) given_.clear();
  auto& kinds = given_[std::string(session)];
  const auto bit = static_cast<std::uint8_t>(1U << static_cast<unsigned>(kind));
  if ((kinds & bit) != 0) return false;
  kinds = static_cast<std::uint8_t>(kinds | bit);
  return true;
}

inline bool is_bare_heartbeat(const Report& report) noexcept {
  if (report.kind != ReportKind::heartbeat) return false;
  const auto* beats = std::get_if<Heartbeats>(&report.detail);
  if (beats == nullptr) return true;
  return beats->source == Source::unsaid && !beats->iteration && beats->phase.empty();
}

inline std::string hint_text(HintKind kind, const std::string& about) {
  switch (kind) {
    case HintKind::bare_heartbeats:
      return "Heartbeats without iteration and phase show only that the process is alive. Send an "
             "iteration with each pass of the main loop: then a loop without progress is found.";
    case HintKind::unknown_kind:
      return "Ignored: " + about + ".";
    case HintKind::cut_content:
      break;
  }
  return "Only the first 200 characters of long contents are kept. Create the session with "
         "\"content\": \"full\" to keep all.";
}

}  // namespace watchdog::monitor
