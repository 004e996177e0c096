/// \file
/// The file in which a monitor's tokens are, and from which its owner's commands take theirs.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "api/token.h"

namespace watchdog::monitor {

/// Errors: `not_found`, `unavailable`, `invalid` (others can read it or own it; a line is wrong).
/// Their messages name the file. Thread-safe.
[[nodiscard]] Result<std::vector<Token>> read_token_file(const std::filesystem::path& path);

/// Creates the file, mode 0600, with one new token of every scope, and its directory with mode 0700
/// if that is missing. An existing file stays as it is; of two concurrent creators the first wins.
/// Errors: `unavailable`. Thread-safe.
[[nodiscard]] Result<void> make_token_file(const std::filesystem::path& path);

/// Returns the name of the file beside a token file that holds one more token, which may only
/// report. Hooks get that one. Pure.
[[nodiscard]] std::filesystem::path report_token_file(const std::filesystem::path& path);

/// Returns the tokens of a token file and of report_token_file(). The latter is made if it is
/// missing and can be made; tokens in it that may do more than report are left out. A name that is
/// taken gets a number. Errors: as read_token_file(). Thread-safe.
[[nodiscard]] Result<std::vector<Token>> read_all_tokens(const std::filesystem::path& path);

/// Returns the secret that hooks get: of the token in the file with the fewest scopes that may
/// report and may not act, else of report_token_file(). Errors: those of read_token_file();
/// `invalid` (no token may only report; the message says how to make one). Thread-safe.
[[nodiscard]] Result<std::string> reporting_secret(const std::filesystem::path& path);

/// Creates a file of mode 0600 with this text, and its directory with mode 0700 if that is missing.
/// An existing file stays as it is; of two concurrent creators the first wins. `error_about` begins
/// the messages: `the token file`. Errors: `unavailable`. Thread-safe.
[[nodiscard]] Result<void> make_owner_file(const std::filesystem::path& path,
                                           const std::string& text, std::string_view error_about);

/// Returns the key that signs the links of messages: the content of the database's name with the
/// suffix `-link-key`, which is made if it is missing. Errors: `unavailable`, `invalid` (others can
/// read it or own it; it is too short). Thread-safe.
[[nodiscard]] Result<std::string> link_key(const std::filesystem::path& database);

/// The secret to act with: of the first token that may, else of the first; empty: there is none.
[[nodiscard]] std::string acting_secret(const std::vector<Token>& tokens);

}  // namespace watchdog::monitor
