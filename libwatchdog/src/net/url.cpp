#include "net/url.h"

#include <algorithm>
#include <charconv>

#include "text/ascii.h"

namespace watchdog {
namespace {

constexpr std::string_view own_port(bool tls) {
  return tls ? "443" : "80";
}

bool is_port(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number > 0 && number < 65'536;
}

/// Letters, digits and what else names and addresses are written with.
bool is_host(std::string_view text, bool bracketed) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '-' || c == '_' ||
           (bracketed && (c == ':' || c == '%'));
  });
}

Error url_error(std::string_view why) {
  return {ErrorCode::invalid, "the URL of a server " + std::string(why), "base_url"};
}

}  // namespace

std::string Url::authority() const {
  std::string result = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != own_port(tls)) result.append(":").append(port);
  return result;
}

std::string Url::text() const {
  return (tls ? "https://" : "http://") + authority() + path;
}

Result<Url> url_from(std::string_view text) {
  Url url;
  const std::string scheme = lower_case(text.substr(0, text.find("://")));
  if (scheme != "http" && scheme != "https") return url_error("begins with http:// or https://");
  url.tls = scheme == "https";
  text.remove_prefix(std::min(text.size(), scheme.size() + 3));
  std::string_view authority = text.substr(0, text.find_first_of("/?#"));
  std::string_view path = text.substr(authority.size());
  if (authority.find('@') != std::string_view::npos) {
    return url_error("may not carry credentials; there is a field for the key");
  }
  if (std::ranges::any_of(path,
                          [](char c) { return c <= ' ' || c == 0x7F || c == '?' || c == '#'; })) {
    return url_error("ends with its path: no spaces, no question mark, no #");
  }
  while (path.ends_with('/')) path.remove_suffix(1);
  url.path = path;

  const bool bracketed = authority.starts_with('[');
  if (bracketed && authority.find(']') == std::string_view::npos) return url_error("names a host");
  const auto host_end = bracketed ? authority.find(']') : authority.rfind(':');
  url.host = lower_case(authority.substr(bracketed ? 1 : 0, host_end - (bracketed ? 1 : 0)));
  if (!is_host(url.host, bracketed)) return url_error("names a host");
  authority.remove_prefix(std::min(authority.size(), host_end));
  if (bracketed && !authority.empty()) authority.remove_prefix(1);
  if (authority.empty()) {
    url.port = own_port(url.tls);
    return url;
  }
  url.port = authority.substr(1);
  if (!authority.starts_with(':') || !is_port(url.port)) {
    return url_error("has a port between 1 and 65535, or none");
  }
  return url;
}

}  // namespace watchdog
