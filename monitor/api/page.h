/// \file
/// The pages for people, readable without scripts. Agents' texts never become markup in them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "api/message.h"
#include "codec/progress.h"
#include "judge/attention.h"
#include "store/store_reader.h"

namespace watchdog::monitor {

/// A session at a moment. A plain value.
struct PageRow {
  SessionRow row;
  Case judged;
  Urgency urgency;
  std::optional<Explanation> explained_by;
};

/// The list at `/`. `are_all`: there are no others.
[[nodiscard]] Response sessions_page(const std::vector<PageRow>& sessions, bool are_all,
                                     Instant now);

/// One session, with its newest events, the newest first.
[[nodiscard]] Response session_page(const PageRow& session, const std::vector<Event>& events,
                                    Instant now);

/// Says that something is not there, with the status.
[[nodiscard]] Response notice_page(int status, std::string_view title, std::string_view text);

/// A duration as people say it: `3 s`, `12 min`, `5 h`, `2 d`.
[[nodiscard]] std::string spoken(Millis time);

}  // namespace watchdog::monitor
