#include "api/gate.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace watchdog::monitor {
namespace {

/// The name in `name:port`, `[::1]:port` or without a port, in lower case.
std::string name_in(std::string_view host) {
  const auto end =
      host.starts_with('[') ? std::min(host.find(']'), host.size() - 1) + 1 : host.find(':');
  std::string name(host.substr(0, end));
  for (auto& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

/// Takes as long for a wrong token as for the right one.
bool same_token(std::string_view given, std::string_view expected) {
  unsigned difference = given.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i] ^ expected[i % expected.size()]);
  }
  return difference == 0;
}

}  // namespace

std::optional<Response> Gate::refuse(const Request& request) const {
  if (request.host.empty()) return error_response(400, "malformed", "the Host header is missing");
  const auto name = name_in(request.host);
  const bool local = name == "localhost" || name == "127.0.0.1" || name == "[::1]";
  const bool known = local || std::find(hosts.begin(), hosts.end(), name) != hosts.end();
  // Another site's page that reaches this server by a name of its own (DNS rebinding) stops here. A
  // token does the same where the server is meant to be reached by any name.
  if (!known && token.empty()) {
    return error_response(403, "refused", "this server does not answer to the host name " + name);
  }
  const bool changes = request.method != Method::get && request.method != Method::head;
  const bool foreign_page = !request.origin.empty() && request.origin != "http://" + request.host &&
                            request.origin != "https://" + request.host;
  if (changes && (foreign_page || request.fetch_site == "cross-site")) {
    return error_response(403, "refused", "pages of other sites may not change anything here");
  }
  if (token.empty()) return std::nullopt;
  constexpr std::string_view scheme = "Bearer ";
  if (request.authorization.starts_with(scheme) &&
      same_token(std::string_view(request.authorization).substr(scheme.size()), token)) {
    return std::nullopt;
  }
  auto response = error_response(401, "refused", "a token is needed: Authorization: Bearer …");
  response.extra_headers = "WWW-Authenticate: Bearer\r\n";
  return response;
}

}  // namespace watchdog::monitor
