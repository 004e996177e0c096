// The proxy writes each head again. Headers that concern two neighbours stay behind: a fixed list,
// and all that a `Connection` header names. The framing is ours too; only an answer without a body
// keeps its length, which is that of the body there would be. Headers that begin with X-Watchdog-
// never reach the model's server. `prefix_in` takes /s/ and /t/ in either order, each once.
#include "proxy/connection/message_head.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>

#include "api/target.h"

namespace watchdog::monitor {
namespace {

char lower(char c) noexcept {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool is_same(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

bool contains(std::string_view name, std::string_view part) noexcept {
  return std::search(name.begin(), name.end(), part.begin(), part.end(),
                     [](char x, char y) { return lower(x) == y; }) != name.end();
}

/// For two neighbours only; or defined by the body's own framing.
constexpr std::array<std::string_view, 10> neighbours{"connection",
                                                      "keep-alive",
                                                      "proxy-connection",
                                                      "proxy-authenticate",
                                                      "proxy-authorization",
                                                      "te",
                                                      "trailer",
                                                      "transfer-encoding",
                                                      "upgrade",
                                                      "content-length"};

/// True if a `Connection` header names it.
bool is_named(std::string_view list, std::string_view name) noexcept {
  while (!list.empty()) {
    const auto end = std::min(list.find(','), list.size());
    auto word = list.substr(0, end);
    while (!word.empty() && (word.front() == ' ' || word.front() == '\t')) word.remove_prefix(1);
    while (!word.empty() && (word.back() == ' ' || word.back() == '\t')) word.remove_suffix(1);
    if (is_same(word, name)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

bool stays_here(const Headers& headers, std::string_view name) noexcept {
  return std::ranges::any_of(neighbours, [&](auto own) { return is_same(own, name); }) ||
         std::ranges::any_of(headers, [&](const auto& header) {
           return is_same(header.first, "connection") && is_named(header.second, name);
         });
}

void add(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ").append(value).append("\r\n");
}

void add(std::string& head, Framing framing) {
  if (framing.kind == Framing::Kind::length)
    add(head, "Content-Length", std::to_string(framing.length));
  if (framing.kind == Framing::Kind::chunks) add(head, "Transfer-Encoding", "chunked");
}

bool is_secret(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 7> parts{"auth",   "cookie", "key",       "token",
                                                  "secret", "passw",  "credential"};
  return std::ranges::any_of(parts, [&](auto part) { return contains(name, part); });
}

/// Browsers send the cookies of a host to all of its ports. The monitor's login is not for the
/// model's server.
std::string without_logins(std::string_view cookies) {
  std::string kept;
  while (!cookies.empty()) {
    const auto end = std::min(cookies.find(';'), cookies.size());
    auto one = cookies.substr(0, end);
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    if (!one.empty() && !is_same(one.substr(0, 9), "watchdog-"))
      kept.append(kept.empty() ? "" : "; ").append(one);
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
  }
  return kept;
}

}  // namespace

bool is_header(std::string_view name, std::string_view wanted) noexcept {
  return is_same(name, wanted);
}

void drop_header(Headers& headers, std::string_view name) {
  std::erase_if(headers, [name](const auto& header) { return is_same(header.first, name); });
}

void drop_page_permissions(Headers& headers) {
  std::erase_if(headers, [](const auto& header) {
    return is_same(std::string_view(header.first).substr(0, 15), "access-control-");
  });
}

std::string_view header_in(const Headers& headers, std::string_view name) noexcept {
  const auto found = std::ranges::find_if(
      headers, [&](const auto& header) { return is_same(header.first, name); });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

PathPrefix prefix_in(std::string_view target) {
  PathPrefix found;
  const auto whole = target;
  const auto split_off = [&](std::string_view mark, std::string& into) {
    if (!into.empty() || !target.starts_with(mark)) return false;
    const auto rest = target.substr(mark.size());
    const auto end = std::min(rest.find_first_of("/?"), rest.size());
    auto name = Target::parse("/" + std::string(rest.substr(0, end)));
    if (!name || name->segments.size() != 1) return false;
    into = std::move(name->segments.front());
    target = rest.substr(end);
    return true;
  };
  while (split_off("/s/", found.session) || split_off("/t/", found.token)) {
  }
  found.text = whole.substr(0, whole.size() - target.size());
  if (target.empty() || target.starts_with('?')) found.target = "/";
  found.target += target;
  return found;
}

std::string request_head(std::string_view method, std::string_view target, const Headers& headers,
                         const Url& server, Framing framing, bool plain) {
  std::string head;
  head.reserve(1'024);
  head.append(method).append(" ").append(server.path).append(target).append(" HTTP/1.1\r\n");
  add(head, "Host", server.authority());
  for (const auto& [name, value] : headers) {
    const bool ours = is_same(std::string_view(name).substr(0, 11), "x-watchdog-");
    // A page below /t/TOKEN/ is the referrer of what it loads.
    const bool tells_token = is_same(name, "referer") && value.find("/t/") != value.npos;
    if (ours || tells_token || is_same(name, "host") || is_same(name, "expect") ||
        stays_here(headers, name) || (plain && is_same(name, "accept-encoding")))
      continue;
    if (!is_same(name, "cookie")) {
      add(head, name, value);
    } else if (const auto kept = without_logins(value); !kept.empty()) {
      add(head, name, kept);
    }
  }
  // Without this header a server may choose any coding.
  if (plain) add(head, "Accept-Encoding", "identity");
  add(head, framing);
  return head.append("\r\n");
}

std::string location_here(std::string_view location, const Url& server, std::string_view prefix) {
  auto rest = location;
  const auto accept = [&rest](std::string_view begin) {
    if (!is_same(rest.substr(0, begin.size()), begin)) return false;
    rest.remove_prefix(begin.size());
    return true;
  };
  const bool is_tls = accept("https:");
  const bool is_plain = !is_tls && accept("http:");
  // It sends its clients to TLS: through the proxy they would come back for ever.
  if (is_tls && !server.tls) return std::string(location);
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    const auto authority = rest.substr(0, rest.find_first_of("/?#"));
    const auto host = server.authority();
    if (!is_same(authority, host) && !is_same(authority, host + ":" + server.port))
      return std::string(location);
    rest.remove_prefix(authority.size());
  } else if (is_tls || is_plain || !rest.starts_with('/')) {
    return std::string(location);
  }
  if (!rest.starts_with(server.path)) return std::string(location);
  rest.remove_prefix(server.path.size());
  const bool is_below = rest.empty() || rest.find_first_of("/?#") == 0;
  if (!is_below) return std::string(location);
  // Without an own host, so that it is right for every name that the proxy has.
  return std::string(prefix) + (rest.starts_with('/') ? "" : "/") + std::string(rest);
}

std::string answer_head(int status, std::string_view reason, const Headers& headers,
                        Framing framing, bool last) {
  std::string head;
  head.reserve(512);
  head.append("HTTP/1.1 ").append(std::to_string(status)).append(" ").append(reason).append("\r\n");
  for (const auto& [name, value] : headers) {
    // Without a body the length is that of the body there would be.
    const bool has_length = framing.kind == Framing::Kind::none && is_same(name, "content-length");
    if (has_length || !stays_here(headers, name)) add(head, name, value);
  }
  add(head, framing);
  if (last) add(head, "Connection", "close");
  return head.append("\r\n");
}

Headers without_secrets(const Headers& headers) {
  Headers kept;
  for (const auto& header : headers)
    if (!is_secret(header.first)) kept.push_back(header);
  return kept;
}

std::uint64_t key_digest(const Headers& headers) noexcept {
  for (const std::string_view name : {"authorization", "x-api-key", "api-key", "x-goog-api-key"}) {
    const auto value = header_in(headers, name);
    if (!value.empty()) return std::hash<std::string_view>{}(value) | 1U;
  }
  return 0;
}

}  // namespace watchdog::monitor
