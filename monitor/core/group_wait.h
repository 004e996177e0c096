/// \file
/// Sessions that belong together and all wait, while their goal is open. A notice for people,
/// computed when a document or a list is made. No health or alert follows from it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"

namespace watchdog::monitor {

/// One of the sessions that wait. A plain value.
struct GroupMember {
  std::string session{};
  std::vector<std::string> waits_for{};  ///< Ids of sessions. Empty: it waits for a prompt.
};

/// A group of which everybody waits. A plain value.
struct GroupWait {
  std::vector<GroupMember> members{};  ///< Two or more, the one at the top first.
  WallTime since{};                    ///< When the last one of them began to wait.
};

/// The label whose sessions of one value form a group, besides parents and their children.
inline constexpr std::string_view group_label = "group";
/// Members of a group, at most. Nothing is said of larger ones.
inline constexpr std::size_t group_members_max = 32;

/// Returns true if the session waits for its children: it says so, or a tool that waits for a
/// subagent is its only open call.
[[nodiscard]] bool waits_for_children(const History& history) noexcept;

/// Returns false if the session surely is in no group of which everybody waits, so that nothing has
/// to be read for group_wait(). Costs next to nothing.
[[nodiscard]] bool may_be_group_wait(Backend& backend, std::string_view session,
                                     const Watched& watched);

/// Returns the group's wait, if all running sessions of the group rest or wait for their children,
/// and the goal is open. It is open if one of them waits for its children, or if its turn left
/// something open (see unfinished_note). No limit of time decides it. Sessions that never did
/// anything are not members. Use from the reader's thread. Errors: as of the reader.
[[nodiscard]] Result<std::optional<GroupWait>> group_wait(Backend& backend, StoreReader& reader,
                                                          const SessionRow& row,
                                                          const Watched& watched);
/// A child that never reported anything while its parent went on. A plain value.
struct SilentChild {
  std::string session{};
  std::int64_t rounds = 0;  ///< Rounds of calls of the parent since, up to the 20 that are kept.
};

/// Rounds of calls of a parent from which a child that never spoke is named. A child needs one
/// answer of its model to report a first call. Five times as many are the count from which
/// repetition is suspect, too.
inline constexpr std::int64_t silent_child_rounds = 5;

/// Returns the running child of the session that reported its start and nothing else, while the
/// session finished `silent_child_rounds` rounds of calls or more. Of several the one that started
/// first.
[[nodiscard]] Result<std::optional<SilentChild>> silent_child(Backend& backend,
                                                              std::string_view session,
                                                              const Case& judged);

/// Add the notices to a JSON object about the session, as its members `groupWait` and
/// `silentChild`.
[[nodiscard]] std::string with_group_wait(std::string object,
                                          const std::optional<GroupWait>& group);
[[nodiscard]] std::string with_silent_child(std::string object,
                                            const std::optional<SilentChild>& child);

}  // namespace watchdog::monitor
