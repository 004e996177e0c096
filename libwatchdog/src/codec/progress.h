/// \file
/// Writes the progress document, the public view of a session.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "judge/attention.h"
#include "text/json_writer.h"
#include "watchdog/health.h"
#include "watchdog/session.h"
#include "watchdog/time.h"

namespace watchdog {

/// The properties of a session that do not change while it runs. A plain value.
struct Description {
  std::string members{};  ///< Parent, agent, task, labels, as JSON members without braces.
  std::string agent{};
  std::string title{};      ///< Its owner's title for it, else its task. Empty: none was given.
  std::string directory{};  ///< The last component of the one that it works in. Empty: not known.
  Family family = Family::root;

  friend bool operator==(const Description&, const Description&) = default;
};
[[nodiscard]] Description description_of(const SessionSpec& spec);
[[nodiscard]] inline Family family_of(const SessionSpec& spec) {
  return spec.parent.empty() ? Family::root : Family::child;
}

/// The session's name for people. It is its owner's title or task, else the first line of its first
/// prompt, else its agent and directory, else its short id.
[[nodiscard]] std::string title_of(std::string_view session_id, const Description& description,
                                   const Words& words);
/// The first 8 characters of a UUID; other ids as they are.
[[nodiscard]] std::string_view short_id(std::string_view session_id) noexcept;

/// The members by which people distinguish sessions: title, shortId, directory.
void write_title(JsonWriter& out, std::string_view session_id, const Description& description,
                 const Words& words);

/// The events that prove a health, each with what it shows, as an array.
void write_evidence(JsonWriter& out, const Health& health);

/// Writes a turn's members without braces. `running`: its newest call, or null.
void write_turn(JsonWriter& out, const OpenTurn& turn, const OpenCall* running, Instant now);

/// Writes the model server's state as an object, or null if none is known. `now` and `wall` are the
/// same moment on both clocks.
void write_server(JsonWriter& out, const Case& judged, Instant now, WallTime wall);

/// Another session, whose health explains why one waits. A plain value.
struct Explanation {
  std::string session{};
  HealthKind health = HealthKind::unknown;
  std::string reason{};
};

/// The estimate about a running session, from ended ones of the same agent. Nothing concludes from
/// it. A plain value.
struct Estimate {
  /// How many of the sessions that looked like this did not finish.
  struct Unfinished {
    std::int64_t seen = 0;
    double share = 0, low = 0, high = 1;  ///< With the 95 % interval.
    std::string text{};
  };
  /// How many further calls four of five needed.
  struct CallsLeft {
    std::int64_t low = 0, high = 0;
    std::int64_t seen = 0;
    double coverage = 0;  ///< The share of held-out sessions that ended within their range.
    std::string text{};
  };
  std::int64_t calls = 0;  ///< The finished calls after which it was compared.
  std::optional<Unfinished> unfinished{};
  std::optional<CallsLeft> calls_left{};
};

/// The whole document as JSON. `now` and `wall` are the same moment on both clocks. REQUIRES: `now`
/// not before the newest event.
[[nodiscard]] std::string progress_document(std::string_view session_id, const Case& judged,
                                            const Description& description, Instant now,
                                            WallTime wall,
                                            const std::optional<Explanation>& explained_by = {},
                                            const std::optional<Estimate>& estimate = {});

}  // namespace watchdog
