/// \file
/// What a record says, by the names of `otlp_names.h` and the table of `otlp_table.h`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ingest/otlp_names.h"
#include "ingest/otlp_record.h"
#include "ingest/otlp_table.h"

/// Pure functions.
namespace watchdog::monitor::otlp_value {

/// Returns the agent of a service; the last row of the table if it is not known.
[[nodiscard]] const otlp_table::Sender& sender_of(std::string_view service);

/// Returns the value of the first name that the record has; empty: it has none.
[[nodiscard]] std::string_view value(const OtlpRecord& record, otlp_names::Aliases aliases);
/// The same, cut to what an event may hold.
[[nodiscard]] std::string text_of(const OtlpRecord& record, otlp_names::Aliases aliases);
/// The same, cut to what a name may hold.
[[nodiscard]] std::string word_of(const OtlpRecord& record, otlp_names::Aliases aliases);
/// Returns the number; 0: there is none, or it is below 0.
[[nodiscard]] double number_of(const OtlpRecord& record, otlp_names::Aliases aliases);

/// True for what Claude Code and Codex send in place of a text that a person has not allowed.
[[nodiscard]] bool is_hidden(std::string_view text);

/// True for the decision of a person not to allow a call: Claude Code and Gemini CLI, Codex.
[[nodiscard]] bool is_refusal(std::string_view decision);

/// Returns the meaning of the record; null: it has none.
[[nodiscard]] const otlp_table::Row* row_of(const OtlpRecord& record);

/// Equal records have equal digests.
[[nodiscard]] std::uint64_t digest_of(const OtlpRecord& record);

}  // namespace watchdog::monitor::otlp_value
