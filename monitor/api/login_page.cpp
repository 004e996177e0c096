#include "api/login_page.h"

#include <string>

#include "api/layout.h"

namespace watchdog::monitor {
namespace {

constexpr std::string_view form = R"html(<form class="login" method="post" action="/login">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button class="main">Log in</button>
</form>
<p class="hint">It is in the monitor's token file, which its owner can read.</p>
)html";

}  // namespace

Response login_page(const Response& refusal, std::string_view trouble) {
  std::string html = "<h1>Log in</h1>\n";
  if (!trouble.empty()) {
    html += "<p class=\"trouble\" role=\"alert\">" + escaped(trouble) + "</p>\n";
  }
  auto page = in_shell("login", "Watchdog: log in", html.append(form), refusal.status);
  page.extra_headers += refusal.extra_headers;
  return page;
}

Response login_page(std::string_view trouble) {
  return login_page(Response{}, trouble);
}

}  // namespace watchdog::monitor
