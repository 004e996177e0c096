/// \file
/// What a caller shows to be let in, and what follows from it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/scope.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// A plain value.
struct Token {
  std::string name;  ///< Of whoever has it: letters, digits, `_` and `-`, at most 64.
  Scopes scopes;
  std::string secret;
};

/// Shorter ones could be guessed.
inline constexpr std::size_t secret_bytes_min = 16;

/// The tokens of a file, a line each: `TOKEN` (called user, of every scope) or
/// `NAME SCOPE[,SCOPE…] TOKEN`. Empty lines and those that begin with `#` say nothing. Errors:
/// `invalid`, with the line and without what stands in it. Thread-safe.
[[nodiscard]] Result<std::vector<Token>> tokens_from(std::string_view text);
/// Whether a secret may be one: long enough, and of visible ASCII. Errors: `invalid`. Thread-safe.
[[nodiscard]] Result<void> check_secret(std::string_view secret);
/// 32 random bytes. Thread-safe.
[[nodiscard]] std::string new_secret();

/// The token with this secret; null: there is none. Takes as long for a wrong one as for the right
/// one, whatever its length. Thread-safe.
[[nodiscard]] const Token* find_token(const std::vector<Token>& tokens, std::string_view secret);

/// A login lasts so long.
inline constexpr std::chrono::seconds login_lasts{7 * 24 * 3'600};

/// `NAME=VALUE` of the cookie by which a browser that showed this token is known until `expiry`. It
/// is signed with the token and does not tell it: nothing is kept here, and who takes the token out
/// of the file ends its logins. The name differs from token to token, because browsers give the
/// cookies of all ports of a host to each of them. Thread-safe.
[[nodiscard]] std::string login_cookie(const Token& token, WallTime expiry);

/// What a browser's cookies prove. A plain value.
struct Login {
  const Token* token = nullptr;  ///< Null: nothing.
  std::string cookie;            ///< The name of the one that proved it.
};
/// `cookies` is the header. Thread-safe.
[[nodiscard]] Login login_in(const std::vector<Token>& tokens, std::string_view cookies,
                             WallTime now);

}  // namespace watchdog::monitor
