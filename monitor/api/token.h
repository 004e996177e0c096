/// \file
/// Tokens and logins of callers.
#pragma once

#include <cstdint>
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
  std::string name;  ///< Of its owner: letters, digits, `_` and `-`, at most 64.
  Scopes scopes;
  std::string secret;

  bool operator==(const Token&) const = default;
};

/// Shorter ones could be guessed.
inline constexpr std::size_t secret_bytes_min = 16;

/// Reads the tokens of a file, one per line: `TOKEN` (called user, of every scope) or `NAME
/// SCOPE[,SCOPE…] TOKEN`. Empty lines and lines that begin with `#` are ignored. Errors: `invalid`,
/// with the line's number and without its text. Thread-safe.
[[nodiscard]] Result<std::vector<Token>> tokens_from(std::string_view text);
/// Checks that a secret is long enough, and of visible ASCII. Errors: `invalid`. Thread-safe.
[[nodiscard]] Result<void> check_secret(std::string_view secret);
/// 32 random bytes, as 64 hexadecimal digits. Thread-safe.
[[nodiscard]] std::string new_secret();
/// Returns true for a secret of the form of new_secret(), which nobody can guess: 64 hexadecimal
/// digits, of which ten or more differ. `openssl rand -hex 32` makes one. Thread-safe.
[[nodiscard]] bool is_random(std::string_view secret);
/// Returns 64 bits of the text's SHA-256. Thread-safe.
[[nodiscard]] std::uint64_t short_digest(std::string_view text);

/// Returns the token with this secret; null: there is none. A wrong secret takes as long as the
/// right one, whatever its length. Thread-safe.
[[nodiscard]] const Token* find_token(const std::vector<Token>& tokens, std::string_view secret);

/// The lifetime of a login.
inline constexpr std::chrono::seconds login_lasts{7 * 24 * 3'600};

/// Returns the `NAME=VALUE` of the cookie that identifies a browser with this token until `expiry`.
/// It is signed with the token and does not contain it. Nothing is stored here; removing the token
/// from the file ends its logins. Each token has its own name, because browsers send the cookies of
/// all ports of a host to each of them. Thread-safe.
[[nodiscard]] std::string login_cookie(const Token& token, WallTime expiry);

/// Returns those cookies of a browser's header `Cookie`, each as `NAME=VALUE`, that claim to be a
/// login with one of these tokens which lasts. Thread-safe.
[[nodiscard]] std::vector<std::string_view> login_cookies(const std::vector<Token>& tokens,
                                                          std::string_view cookies, WallTime now);
/// Returns the token that signed this one of login_cookies(); null: none did. Thread-safe.
[[nodiscard]] const Token* signer_of(const std::vector<Token>& tokens, std::string_view cookie);

/// The proof in a browser's cookies. A plain value.
struct Login {
  const Token* token = nullptr;  ///< Null: nothing.
  std::string cookie;            ///< The name of the one that proved it.
};
/// Returns the first login that holds. `cookies` is the header. Thread-safe.
[[nodiscard]] Login login_in(const std::vector<Token>& tokens, std::string_view cookies,
                             WallTime now);

}  // namespace watchdog::monitor
