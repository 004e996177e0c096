/// \file
/// A word to somebody's web server, bounded in time.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// Asks once, over a connection of its own, and gives the status; what it says is of no interest.
/// `url` is `http[s]://HOST[:PORT][/PATH][?QUERY]`. A redirect is an answer. Errors: `invalid` (the
/// URL), `cancelled`, `unavailable`; messages name the server and no more of the URL, which may be
/// a secret. Thread-safe.
[[nodiscard]] Result<int> get(std::string_view url, Millis at_most,
                              const std::stop_token& stop = {});

}  // namespace watchdog
