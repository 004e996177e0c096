/// \file
/// Advice about an agent's reports in the reply to them, once per session and kind.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "watchdog/report.h"

namespace watchdog::monitor {

enum class HintKind : std::uint8_t {
  bare_heartbeats,
  unknown_kind,
  unknown_member,
  cut_content,
  call_without_result,
  result_without_call
};

/// A report that begins or ends a call, or ends the turn of all of them. A plain value.
struct CallStep {
  enum class Kind : std::uint8_t { call, result, rest };
  Kind kind = Kind::call;
  std::string call{};  ///< The call's id; of `rest` empty.
};

/// The steps of those reports that name a call, and the ends of turns that were not broken off.
[[nodiscard]] std::vector<CallStep> call_steps(std::span<const Report> reports);

/// The first call id of each fault. Empty: none.
struct Unpaired {
  std::string call{};    ///< A turn ended while this call had no result.
  std::string result{};  ///< This result came without its call.
};

/// Remembers the hints given and the open calls of sessions. Of `sessions_max` sessions: after that
/// it begins again. Thread-safe.
class Hints {
 public:
  static constexpr std::size_t sessions_max = 10'000;
  static constexpr std::size_t calls_max = 64;

  /// True for the first time that it is asked for this session and kind.
  [[nodiscard]] bool is_first(std::string_view session, HintKind kind);

  /// The session is new. Calls of other sessions are not paired: their beginning is not known.
  void begin(std::string_view session);
  /// Its calls are no longer paired.
  void leave(std::string_view session);
  /// Pairs calls with their results. A session with over `calls_max` open calls is left alone.
  [[nodiscard]] Unpaired follow(std::string_view session, std::span<const CallStep> steps);

 private:
  struct Session {
    std::uint8_t given = 0;
    bool followed = false;
    std::set<std::string, std::less<>> open{};
  };
  /// REQUIRES: mutex_ is held.
  Session& at(std::string_view session);

  std::mutex mutex_;
  std::unordered_map<std::string, Session> sessions_;
};

/// True for a heartbeat that says nothing but that the process is alive, and does not say so.
[[nodiscard]] bool is_bare_heartbeat(const Report& report) noexcept;
/// The sentence. `about`: the kind or the call.
[[nodiscard]] std::string hint_text(HintKind kind, const std::string& about);

}  // namespace watchdog::monitor
