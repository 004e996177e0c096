#include "api/layout.h"

#include <functional>
#include <map>

#include "api/assets.h"
#include "shell_html.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

namespace {

/// Links to all scripts of a page: else the browser finds them one import after the other.
std::string preloads_of(std::string_view page) {
  std::string html;
  const auto own = std::string(page) + ".js";
  for (const auto name : modules_of({"app.js", own})) {
    html += "<link rel=\"modulepreload\" href=\"" + assets_path() + "/";
    html.append(name).append("\">\n");
  }
  return html;
}

/// Likewise; pages of other names have no script of their own.
const std::string& preloads(std::string_view page) {
  static const std::map<std::string, std::string, std::less<>> known = [] {
    std::map<std::string, std::string, std::less<>> made;
    for (const auto* name : {"list", "session", "alerts", "overview"})
      made.emplace(name, preloads_of(name));
    return made;
  }();
  static const std::string none;
  const auto found = known.find(page);
  return found == known.end() ? none : found->second;
}

}  // namespace

Response in_shell(std::string_view page, std::string_view title, std::string_view body,
                  int status) {
  const auto now = std::to_string(system_clock().wall().time_since_epoch().count());
  std::string html;
  std::string_view rest = shell_html;
  while (true) {
    const auto begin = rest.find("{{");
    html += rest.substr(0, begin);
    if (begin == std::string_view::npos) break;
    const auto end = rest.find("}}", begin);
    const auto name = rest.substr(begin + 2, end - begin - 2);
    if (name == "now") html += now;
    if (name == "title") html += escaped(title);
    if (name == "assets") html += assets_path();
    if (name == "page") html += page;
    if (name == "preloads") html += preloads(page);
    if (name == "body") html += body;
    rest.remove_prefix(end + 2);
  }
  // A form of a page that gives no referrer at all comes from nowhere, and is refused.
  return {.status = status,
          .body = std::move(html),
          .content_type = "text/html; charset=utf-8",
          .extra_headers =
              "Content-Security-Policy: default-src 'none'; script-src 'self'; "
              "style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
              "form-action 'self'; frame-ancestors 'none'\r\n"
              "Referrer-Policy: same-origin\r\nX-Frame-Options: DENY\r\n"};
}

}  // namespace watchdog::monitor
