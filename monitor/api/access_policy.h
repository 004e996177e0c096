/// \file
/// Decides who may do what, in one place. No socket, no clock, no memory of earlier requests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/guess_limits.h"
#include "api/message.h"
#include "api/scope.h"
#include "api/token.h"

namespace watchdog::monitor {

/// The party of a request. A plain value.
struct Caller {
  std::string name = "local";  ///< Of the token; `local`: none was shown.
  Scopes scopes;
  bool known = false;        ///< A token or a login was shown, and is right.
  bool by_login = false;     ///< Then: it was a login.
  bool wrong_token = false;  ///< A token was shown, and is not right or was not compared.
  bool unchecked = false;    ///< Then: it was not compared with all tokens, see GuessLimits.
};

/// A plain value.
struct AccessPolicy {
  std::vector<Token> tokens;
  Scopes without_token;            ///< Permissions without a token.
  std::vector<std::string> hosts;  ///< Names it answers to beside loopback's, without ports.
  bool any_host = false;           ///< A proxy looks at names.
  bool secure = false;             ///< Browsers come by HTTPS.
  bool behind_proxy = false;       ///< It says for whom it asks.
  /// Named to callers without a token; empty: not named, because they may be on another machine.
  std::string token_file;

  /// The refusal of what another site's page sends, or by a name of its own (DNS rebinding);
  /// nothing if the request may go on.
  [[nodiscard]] std::optional<Response> refuse_foreign(const Request& request,
                                                       const Caller& caller) const;
  /// The address that asks: the one that the proxy names, if there is one.
  [[nodiscard]] std::string peer(const Request& request) const;
  /// Returns what a request shows and callers can guess: its token, or else its logins.
  [[nodiscard]] std::vector<std::string_view> credentials(const Request& request,
                                                          WallTime now) const;
  /// Returns the caller who shows these credentials. `right` gets the index of the first right
  /// one, or the size of the list.
  [[nodiscard]] Caller caller(const Request& request,
                              const std::vector<std::string_view>& credentials,
                              ComparedWith compared, std::size_t& right) const;
  /// The same without a limit on guesses.
  [[nodiscard]] Caller caller(const Request& request, WallTime now) const;
  /// Returns the refusal of a caller without the permission, or nothing. Without a scope every
  /// caller may.
  [[nodiscard]] std::optional<Response> refuse(const Caller& caller,
                                               std::optional<Scope> scope) const;

  /// The header lines that make a browser known, and unknown again.
  [[nodiscard]] std::string log_in(const Token& token, WallTime now) const;
  [[nodiscard]] std::string log_out(const Request& request, WallTime now) const;
};

}  // namespace watchdog::monitor
