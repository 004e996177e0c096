#include "api/login_page.h"

#include <string>

namespace watchdog::monitor {
namespace {

constexpr std::string_view begin = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Watchdog: log in</title>
<style>
:root { color-scheme: light dark; --bad: #cf222e; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff7b72; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 4rem auto; max-width: 26rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; }
label { display: block; font-weight: 600; }
input, button { font: inherit; padding: .5rem .75rem; box-sizing: border-box; }
input { width: 100%; margin: .25rem 0 1rem; }
.trouble { color: var(--bad); font-weight: 600; }
</style>
</head>
<body>
<main>
<h1>Watchdog</h1>
)html";

constexpr std::string_view form = R"html(<form method="post" action="/login">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Log in</button>
</form>
<p>It is in the monitor's token file, which its owner can read.</p>
</main>
</body>
</html>
)html";

}  // namespace

Response login_page(const Response& refusal, std::string_view trouble) {
  std::string html(begin);
  // Said by this program alone: nothing of the request is in it.
  if (!trouble.empty()) {
    html.append("<p class=\"trouble\" role=\"alert\">").append(trouble).append("</p>\n");
  }
  html += form;
  return {.status = refusal.status,
          .body = std::move(html),
          .content_type = "text/html; charset=utf-8",
          .extra_headers =
              "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; form-action "
              "'self'; base-uri 'none'; frame-ancestors 'none'\r\n"
              "Referrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n" +
              refusal.extra_headers};
}

Response login_page(std::string_view trouble) {
  return login_page(Response{}, trouble);
}

}  // namespace watchdog::monitor
