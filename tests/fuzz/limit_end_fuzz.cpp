// Whatever a server or an agent says about a limit, its end is within a year from now, or nothing.
// A zone file may have any bytes.

#include <map>
#include <optional>
#include <string_view>

#include "fuzz/fuzz.h"
#include "llm/error_body.h"
#include "llm/failures.h"
#include "llm/limit_end.h"
#include "llm/retry_after.h"
#include "llm/time_zone.h"
#include "proxy/sessions/refusal.h"
#include "text/utf8.h"

using namespace watchdog;

std::vector<std::string> fuzz_seeds() {
  using namespace std::string_literals;
  return {
      "retry-after-ms: 1500\nretry-after: Mon, 23 Nov 2026 12:05:00 GMT\ndate: Mon, 23 Nov 2026 "
      "12:00:00 GMT\n",
      "anthropic-ratelimit-unified-status: rejected\nanthropic-ratelimit-unified-reset: "
      "1795460400\n",
      "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 6m0s\nx-ratelimit-reset: "
      "1795460400000\n",
      R"({"error":{"type":"usage_limit_reached","resets_at":1795460400,"message":"try again in 2h59m56.5s"}})",
      R"({"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"41.6s"}]}})",
      R"([{"error":{"message":"x","metadata":{"headers":{"X-RateLimit-Reset":"1795460400000"}}}}])",
      "Claude AI usage limit reached|1795460400",
      "resets 9pm (Europe/Berlin)",
      "try again at Feb 3rd, 2027 3:15 PM, or in 2 days, 17 hours and 14 minutes",
      "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
      "\0\0\16\20\0\0CET\0"s};
}

namespace {

const WallTime now{Millis{1'795'435'200'000}};

void require_soon(const std::optional<WallTime>& end) {
  FUZZ_REQUIRE(!end || (*end > now && *end - now <= std::chrono::days(367)));
}

/// The lines `NAME: VALUE` of the text.
std::map<std::string, std::string, std::less<>> headers_in(std::string_view text) {
  std::map<std::string, std::string, std::less<>> all;
  while (!text.empty() && all.size() < 100) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (const auto colon = line.find(": "); colon != line.npos)
      all.emplace(line.substr(0, colon), line.substr(colon + 2));
  }
  return all;
}

}  // namespace

void try_input(std::string_view text) {
  const auto headers = headers_in(text);
  const auto header = [&](std::string_view name) -> std::string_view {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : found->second;
  };
  require_soon(limit_end_in_headers(header, now));
  require_soon(limit_end_in_body(text, now));
  require_soon(limit_end_in_text(text, now));
  (void)http_date_from(text);
  if (const auto pause = retry_after(header, now)) FUZZ_REQUIRE(pause->count() >= 0);

  const auto body = error_body_from(text);
  FUZZ_REQUIRE(body.status >= 0);
  (void)monitor::wait_after_refusal(429, text);
  HttpHead head;
  head.status = 429;
  head.headers.assign(headers.begin(), headers.end());
  const auto failure = failure_of(head, text, {.url = "http://h", .secret = "s3cret"}, now);
  FUZZ_REQUIRE(!failure.message.empty() && is_utf8(failure.message));
  FUZZ_REQUIRE(failure.message.find("s3cret") == std::string::npos);

  if (const auto zone = TimeZone::from(text)) {
    constexpr std::chrono::hours most{48};
    for (const auto at : {WallTime{}, now, WallTime::max(), WallTime::min()})
      FUZZ_REQUIRE(std::chrono::abs(zone->offset(at)) <= most);
  }
  (void)TimeZone::named(text);
}
