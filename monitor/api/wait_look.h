/// \file
/// A wait for a session, as a monitor sees it: what happened since a place, and what follows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "core/feed.h"
#include "store/transition_reader.h"
#include "watchdog/wait.h"

namespace watchdog::monitor {

/// How far a wait has come. Its client sends it back to go on, to whatever monitor has the file. A
/// plain value.
struct WaitPlace {
  Cursor seen;            ///< Events and changes of health up to here are judged.
  Seq trouble_after = 0;  ///< Iterations after this event count as trouble; 0: no trouble.
  bool is_there = true;   ///< There was such a session.

  /// `SEQ.TRANSITION.TROUBLE`, or `absent`
  [[nodiscard]] std::string text() const;
  /// Returns nothing if the text is not a place.
  [[nodiscard]] static std::optional<WaitPlace> parse(std::string_view text);
  bool operator==(const WaitPlace&) const = default;
};

/// The question of a waiting client. A plain value.
struct WaitQuestion {
  std::string session;
  Awaited awaited;
  Seq after = 0;                   ///< Only a state change after this event counts.
  std::optional<WaitPlace> place;  ///< Goes on after it; empty: from the session's present state.
};

/// Follows a session until the wait is over. Use from one thread at a time.
class WaitLook {
 public:
  explicit WaitLook(WaitQuestion question);

  /// Judges what is new, a bounded part at a time. Returns false if there is more: look again.
  [[nodiscard]] Result<bool> look(Backend& backend, StoreReader& reader);

  [[nodiscard]] bool is_over() const { return came_ || end_; }
  [[nodiscard]] bool came() const { return came_; }
  [[nodiscard]] std::optional<WaitEnd> end() const { return end_; }
  [[nodiscard]] const std::string& why() const { return why_; }
  /// Returns whether anything happened after the place of the question; without one: always.
  [[nodiscard]] bool has_news() const { return question_.place != place_; }
  [[nodiscard]] const WaitPlace& place() const { return place_; }
  /// The session at the last look; nullopt: no such session.
  [[nodiscard]] const std::optional<Watched>& watched() const { return watched_; }
  [[nodiscard]] SessionKey key() const { return key_; }
  [[nodiscard]] const WaitQuestion& question() const { return question_; }

 private:
  void begin(Seq read_after);
  [[nodiscard]] Result<void> begin_at_present(StoreReader& reader, std::int64_t newest_change);
  Result<bool> absent(const Error& error);
  void fold(const Event& event);
  void fold(const TransitionRow& change);
  void add_sample(Seq seq);
  void judge(const Awaited& awaited);
  void judge_in_passing();

  WaitQuestion question_;
  WaitPlace place_;
  bool is_placed_ = false;
  Seq known_ = 0;        ///< Events up to this one were judged before.
  Seq read_ = 0;         ///< Events up to this one are read.
  Seq count_after_ = 0;  ///< Iterations up to this event are not part of the trouble.
  SessionKey key_ = observer_key;
  std::optional<Watched> watched_;
  SessionSample now_;
  WaitMemory memory_;
  IterationCount iterations_;
  bool came_ = false;
  std::optional<WaitEnd> end_;
  std::string why_;
};

/// Returns all changes of a session's health, oldest first; after `newest` none.
[[nodiscard]] Result<std::vector<Transition>> changes_of(StoreReader& reader, SessionKey key,
                                                         std::int64_t newest = INT64_MAX);

}  // namespace watchdog::monitor
