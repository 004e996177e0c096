/// \file
/// Ids that agents and programs choose or get.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "watchdog/time.h"

namespace watchdog {

inline constexpr std::size_t session_id_bytes_max = 128;

/// True for `[A-Za-z0-9._:@-]{1,128}`, but for `.` and `..`.
[[nodiscard]] bool is_session_id(std::string_view id) noexcept;
/// Returns a foreign id as one of ours: each other letter becomes `-`, and the end is cut. Empty
/// stays empty.
[[nodiscard]] std::string as_session_id(std::string id);

/// A fresh ULID (26 characters of Crockford's base 32; 48 bits of Unix ms, 80 random bits;
/// https://github.com/ulid/spec): unique, and sorted by time. Thread-safe.
[[nodiscard]] std::string new_ulid(WallTime now);

/// Returns a new UUID version 7 (RFC 9562). Our clients send these as `event_id`, because ids that
/// rise with time cost an index least. Thread-safe.
[[nodiscard]] std::string new_uuid7(WallTime now);

}  // namespace watchdog
