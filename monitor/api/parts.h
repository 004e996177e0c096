/// \file
/// Long answers, read and written part by part.
#pragma once

#include <functional>

#include "api/call.h"
#include "text/json_writer.h"

namespace watchdog::monitor {

/// The approximate size of a part. Other requests are read between two parts, and a slow client
/// holds one part in memory.
inline constexpr std::size_t part_bytes_max = 256 * 1024;

/// Writes the next part of a body. True: there is more. Called one after another, each time where
/// it may wait for the disk.
using WritePart = std::function<Result<bool>(StoreReader&, JsonWriter&)>;

/// Replies with what `write` writes: at once if it is one part, else part by part, as the client
/// takes them. An error in the first part is the reply; a later one breaks the connection off.
void reply_in_parts(const CallPtr& call, WritePart write);

/// Replies with the sessions of the filter, `at_once` in a part: `begin` opens the array, `text`
/// makes the text of each, and `next` comes after it.
void reply_with_rows(const CallPtr& call, SessionFilter filter, int at_once,
                     std::function<void(JsonWriter&)> begin,
                     std::function<Result<std::string>(StoreReader&, const SessionRow&)> text);

}  // namespace watchdog::monitor
