// What a request names and shows: its target, a proxy's prefix, tokens, cookies, types and URLs.

#include <string_view>

#include "api/target.h"
#include "api/token.h"
#include "core/alert_links.h"
#include "fuzz/fuzz.h"
#include "net/url.h"
#include "proxy/connection/message_head.h"
#include "text/wildcard.h"

using namespace watchdog;
using namespace watchdog::monitor;

std::vector<std::string> fuzz_seeds() {
  return {"/api/autonomous/sessions/s/events?limit=10&kind=opinion&after=3",
          "/s/a%20b/t/0123456789abcdef/v1/chat/completions?x=%2F",
          "# who\nann read,act 0123456789abcdef0123\n0123456789abcdef\n",
          "watchdog-0123=ann.1700000000.abcdef; other=\"x\"",
          "https://bob:x@[::1]:8080/v1?x#y",
          "acknowledge.12.1790000000000."
          "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
          "gpt-*-mini"};
}

void try_input(std::string_view text) {
  if (const auto target = Target::parse(text); !target)
    FUZZ_REQUIRE(!target.error().message.empty());
  const auto prefix = prefix_in(text);
  FUZZ_REQUIRE(prefix.target.empty() || prefix.target[0] == '/' || prefix.target == text);
  const auto split = text.size() / 2;
  (void)matches_wildcard(text.substr(0, split), text.substr(split));
  const auto tokens = tokens_from(text);
  if (!tokens) {
    FUZZ_REQUIRE(!tokens.error().message.empty());
  } else {
    for (const auto& token : *tokens) {
      FUZZ_REQUIRE(check_secret(token.secret).ok());
      FUZZ_REQUIRE(find_token(*tokens, token.secret) != nullptr);
    }
  }
  const std::vector<Token> known{{.name = "ann", .secret = "0123456789abcdef0123"}};
  FUZZ_REQUIRE(login_in(known, text, WallTime{}).token == nullptr);
  const auto cookie = login_cookie(known[0], WallTime{std::chrono::hours(1)});
  FUZZ_REQUIRE(login_in(known, cookie, WallTime{}).token == &known[0]);
  if (const auto link = alert_link_from(text)) {
    const AlertLinks links("0123456789abcdef0123456789abcdef", "https://a");
    const Alert alert{.id = link->alert, .session = "s"};
    FUZZ_REQUIRE(link->alert > 0);
    FUZZ_REQUIRE(!links.is_own(*link, alert));
    const auto own = alert_link_from(links.token(link->answer, alert, link->until));
    FUZZ_REQUIRE(own && links.is_own(*own, alert));
  }
}
