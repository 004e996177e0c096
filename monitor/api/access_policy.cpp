// Decisions by the headers of a request alone. A token in a header comes before cookies, because a
// browser sends cookies with whatever any page asks. So a login counts for this server's own pages
// only. The tokens to compare with are the caller's choice, see GuessLimits.
#include "api/access_policy.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace watchdog::monitor {
namespace {

std::string lower(std::string_view text) {
  std::string made(text);
  for (auto& c : made) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return made;
}

/// The name in `name:port`, `[::1]:port` or without a port, in lower case.
std::string name_in(std::string_view host) {
  const auto end =
      host.starts_with('[') ? std::min(host.find(']'), host.size() - 1) + 1 : host.find(':');
  return lower(host.substr(0, end));
}

/// True for `NAME[:PORT]` and `[ADDRESS][:PORT]`. Other texts could mean different hosts to this
/// server and to the client.
bool is_host(std::string_view host) {
  const auto is_in = [](std::string_view text, std::string_view allowed) {
    return text.find_first_not_of(allowed) == std::string_view::npos;
  };
  constexpr std::string_view digits = "0123456789";
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789.-_";
  const auto name = name_in(host);
  const auto rest = host.substr(name.size());
  const bool address = name.starts_with('[');
  const std::string_view inner =
      address ? std::string_view(name).substr(1, name.size() - 2) : std::string_view(name);
  if (inner.empty() || (address && !name.ends_with(']'))) return false;
  if (!is_in(inner, address ? "0123456789abcdef:." : letters)) return false;
  return rest.empty() ||
         (rest.starts_with(':') && rest.size() <= 6 && is_in(rest.substr(1), digits));
}

/// Returns the text after `Bearer `; empty without it.
std::string_view bearer(std::string_view authorization) {
  constexpr std::string_view scheme = "bearer ";
  if (lower(authorization.substr(0, scheme.size())) != scheme) return {};
  return authorization.substr(scheme.size());
}

std::string cookie_line(const std::string& cookie, std::chrono::seconds age, bool secure) {
  return "Set-Cookie: " + cookie + "; Path=/; Max-Age=" + std::to_string(age.count()) +
         "; HttpOnly; SameSite=Strict" + (secure ? "; Secure\r\n" : "\r\n");
}

}  // namespace

std::optional<Response> AccessPolicy::refuse_foreign(const Request& request,
                                                     const Caller& caller) const {
  if (request.host.empty()) return error_response(400, "malformed", "the Host header is missing");
  if (!is_host(request.host))
    return error_response(400, "malformed", "the Host header is not NAME or NAME:PORT");
  const auto name = name_in(request.host);
  const bool is_local = name == "localhost" || name == "127.0.0.1" || name == "[::1]";
  const bool known = any_host || is_local || std::ranges::any_of(hosts, [&](const auto& host) {
                       return name_in(host) == name;
                     });
  if (!known) {
    return error_response(403, "refused",
                          "this server does not answer to the host name " + name +
                              "; monitor.hosts names those it answers to");
  }
  // Another program may serve pages by the other scheme at the same name and port. Under a name of
  // its own, a program in front of this one may add TLS. Loopback names lead past that program,
  // too.
  const bool by_http = !secure || (behind_proxy && is_local);
  const bool by_https = secure || !is_local;
  const bool own_page = (by_http && request.origin == "http://" + request.host) ||
                        (by_https && request.origin == "https://" + request.host);
  const bool foreign_page = !request.origin.empty() && !own_page;
  const bool changes = request.method != Method::get && request.method != Method::head;
  if (changes && (foreign_page || request.fetch_site == "cross-site")) {
    return error_response(403, "refused", "pages of other sites may not change anything here");
  }
  // A cookie comes along with what any page makes the browser send: it needs a word of the
  // browser's that the page was ours.
  if (caller.by_login &&
      (foreign_page || (changes && !own_page && request.fetch_site != "same-origin"))) {
    return error_response(403, "refused",
                          "a login counts for this server's own pages only; programs show a token");
  }
  return std::nullopt;
}

std::string AccessPolicy::peer(const Request& request) const {
  const std::string_view named = request.forwarded_for;
  // The client may have written what is before the last comma.
  const auto last = named.substr(std::min(named.find_last_of(", ") + 1, named.size()));
  const bool address = !last.empty() && last.size() <= 45 &&
                       last.find_first_not_of("0123456789abcdefABCDEF.:") == std::string_view::npos;
  return behind_proxy && address ? std::string(last) : request.peer;
}

std::vector<std::string_view> AccessPolicy::credentials(const Request& request,
                                                        WallTime now) const {
  if (const auto secret = bearer(request.authorization); !secret.empty()) return {secret};
  return login_cookies(tokens, request.cookie, now);
}

Caller AccessPolicy::caller(const Request& request,
                            const std::vector<std::string_view>& credentials, ComparedWith compared,
                            std::size_t& right) const {
  const bool by_login = bearer(request.authorization).empty();
  auto known = tokens;
  if (compared == ComparedWith::random_only)
    std::erase_if(known, [](const Token& token) { return !is_random(token.secret); });
  for (right = 0; right < credentials.size(); ++right) {
    const auto* token =
        by_login ? signer_of(known, credentials[right]) : find_token(known, credentials[right]);
    if (token != nullptr)
      return {.name = token->name, .scopes = token->scopes, .known = true, .by_login = by_login};
  }
  return {.scopes = without_token,
          .wrong_token = !by_login,
          .unchecked = !by_login && compared == ComparedWith::random_only};
}

Caller AccessPolicy::caller(const Request& request, WallTime now) const {
  std::size_t right = 0;
  return caller(request, credentials(request, now), ComparedWith::all, right);
}

std::optional<Response> AccessPolicy::refuse(const Caller& caller,
                                             std::optional<Scope> scope) const {
  if (!scope || caller.scopes.contains(*scope)) return std::nullopt;
  if (caller.known) {
    return error_response(403, "refused",
                          "the token of " + caller.name + " is not for this: it lacks the scope " +
                              std::string(name_of(*scope)));
  }
  auto response = error_response(
      401, "refused",
      caller.wrong_token ? "this token is not known here"
                         : "a token is needed: Authorization: Bearer …, or a login of the page",
      token_file);
  response.extra_headers = "WWW-Authenticate: Bearer\r\n";
  return response;
}

std::string AccessPolicy::log_in(const Token& token, WallTime now) const {
  return cookie_line(login_cookie(token, now + login_lasts), login_lasts, secure);
}

std::string AccessPolicy::log_out(const Request& request, WallTime now) const {
  const auto login = login_in(tokens, request.cookie, now);
  return login.token == nullptr ? "" : cookie_line(login.cookie + "=", {}, secure);
}

}  // namespace watchdog::monitor
