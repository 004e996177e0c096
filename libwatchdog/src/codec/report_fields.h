/// \file
/// The fields of a report that agents send and the store keeps alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codec/fields.h"
#include "watchdog/report.h"

namespace watchdog {

inline constexpr std::size_t no_limit = SIZE_MAX;  ///< Of the bytes of a stored text.

/// Returns the name of the field that holds a report's content.
[[nodiscard]] std::string_view content_field(ReportKind kind);
/// Returns the name of the field that holds a report's name.
[[nodiscard]] std::string_view name_field(ReportKind kind);
/// Returns the name of the field that holds a report's hash.
[[nodiscard]] std::string_view hash_field(ReportKind kind);

/// Reads an agent's outcome or a stored one; `bytes_max` bounds the former.
[[nodiscard]] Outcome read_outcome(Fields& fields, std::size_t bytes_max);
/// Reads an agent's judgement or a stored one.
[[nodiscard]] Opinion read_opinion(Fields& fields);
/// Reads an old limit that was passed; `name` is the limit's.
[[nodiscard]] LimitPassed read_limit(Fields& fields, const std::string& name);
/// Reads until when a report's session waits, and for whose limit; `bytes_max` bounds the latter.
void read_wait(Fields& fields, Report& report, std::size_t bytes_max);

}  // namespace watchdog
