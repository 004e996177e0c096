/// \file
/// What the monitor sees of calls that run for long: whether their processes work, and whether the
/// sessions that they started do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "judge/attention.h"
#include "observer/live_sessions.h"
#include "observer/process_looks.h"
#include "process/process_work.h"
#include "watchdog/report.h"

namespace watchdog {

/// Reports it as progress of the call, so that the same events give the same judgements whenever
/// they are folded. Use from the observer's thread.
class CallLooks {
 public:
  CallLooks(const LiveSessions& sessions, ProcessLooks& processes)
      : sessions_(sessions), processes_(processes) {}

  /// Returns when the session's calls are looked at next; `never`: it has none that runs for long.
  [[nodiscard]] Instant next(const LiveSession& session) const;
  /// Looks if it is time. Returns a report if there is news, or if the call still works after a
  /// while.
  [[nodiscard]] std::optional<Report> look(const LiveSession& session, Instant now);
  /// After something happened to a child. Returns true if its parent's call, which waits for it, is
  /// looked at at once.
  [[nodiscard]] bool note_child(const LiveSession& parent, const LiveSession& child);
  void forget(SessionKey session) { seen_.erase(session); }

 private:
  /// Of a session, at the latest look.
  struct Seen {
    Instant at{};
    Seq call = 0;
    std::optional<ProcessWork> work{};         ///< Of the processes that began with the call.
    Instant worked_at{};                       ///< When it was last seen to work,
    Instant told_at{};                         ///< and when that was reported.
    SessionKey child{};                        ///< The worst child, if one is not well,
    Attention attention = Attention::working;  ///< and its attention.
    bool hurries = false;                      ///< A child's attention changed since.
  };
  /// The state of a call. Empty words: it works. Nothing: nobody can know.
  [[nodiscard]] std::optional<std::string> words(const LiveSession& session, const OpenCall& call,
                                                 Seen& seen, Instant now);
  [[nodiscard]] std::optional<std::string> words_of_children(const LiveSession& session,
                                                             const OpenCall& call, Seen& seen,
                                                             Instant now) const;
  [[nodiscard]] std::optional<std::string> words_of_processes(const History& history,
                                                              const OpenCall& call, Seen& seen,
                                                              Instant now);

  const LiveSessions& sessions_;
  ProcessLooks& processes_;
  std::unordered_map<SessionKey, Seen> seen_;
};

}  // namespace watchdog
