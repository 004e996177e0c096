#include "llm/limit_end.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "llm/retry_after.h"
#include "llm/time_zone.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;

/// Monday, 23 November 2026, 12:00 UTC.
const WallTime now = *http_date_from("Mon, 23 Nov 2026 12:00:00 GMT");

WallTime at(const char* date) {
  return *http_date_from(date);
}

std::optional<WallTime> in_headers(const std::map<std::string, std::string, std::less<>>& headers) {
  return limit_end_in_headers(
      [&](std::string_view name) -> std::string_view {
        const auto found = headers.find(name);
        return found == headers.end() ? std::string_view() : found->second;
      },
      now);
}

TEST(LimitEnd, reads_the_headers_of_each_provider) {
  struct Row {
    const char* of;
    std::map<std::string, std::string, std::less<>> headers;
    std::optional<WallTime> end;
  };
  const std::vector<Row> rows{
      {"any server", {{"retry-after", "20"}}, now + 20s},
      {"any server", {{"retry-after", "Mon, 23 Nov 2026 13:00:00 GMT"}}, now + 1h},
      {"Azure", {{"retry-after-ms", "1500"}}, now + 1500ms},
      {"a pause of 0", {{"retry-after", "0"}}, std::nullopt},
      {"Claude's subscription",
       {{"anthropic-ratelimit-unified-status", "rejected"},
        {"anthropic-ratelimit-unified-reset", "1795460400"}},
       WallTime{1795460400s}},
      {"not used up",
       {{"anthropic-ratelimit-unified-status", "allowed_warning"},
        {"anthropic-ratelimit-unified-reset", "1795460400"}},
       std::nullopt},
      {"Anthropic, two limits",
       {{"anthropic-ratelimit-requests-remaining", "0"},
        {"anthropic-ratelimit-requests-reset", "2026-11-23T12:00:30Z"},
        {"anthropic-ratelimit-output-tokens-remaining", "0"},
        {"anthropic-ratelimit-output-tokens-reset", "2026-11-23T12:01:00Z"},
        {"anthropic-ratelimit-tokens-remaining", "5000"},
        {"anthropic-ratelimit-tokens-reset", "2026-11-23T12:09:00Z"}},
       now + 1min},
      {"OpenAI",
       {{"x-ratelimit-remaining-requests", "59"},
        {"x-ratelimit-reset-requests", "1s"},
        {"x-ratelimit-remaining-tokens", "0"},
        {"x-ratelimit-reset-tokens", "6m0s"}},
       now + 6min},
      {"Groq",
       {{"x-ratelimit-remaining-requests", "0"}, {"x-ratelimit-reset-requests", "2m59.56s"}},
       now + 179'560ms},
      {"Azure",
       {{"x-ratelimit-remaining-tokens", "0"}, {"x-ratelimit-reset-tokens", "26"}},
       now + 26s},
      {"Azure without a count",
       {{"x-ratelimit-remaining-tokens", "-1"}, {"x-ratelimit-reset-tokens", "0"}},
       std::nullopt},
      {"OpenRouter",
       {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "1795478400000"}},
       WallTime{1795478400s}},
      {"codex",
       {{"x-codex-primary-used-percent", "100"},
        {"x-codex-primary-reset-at", "1795449000"},
        {"x-codex-secondary-used-percent", "80"},
        {"x-codex-secondary-reset-at", "1795800000"}},
       WallTime{1795449000s}},
      {"a moment that has passed",
       {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "1700000000"}},
       std::nullopt},
      {"a moment in three years",
       {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "1895478400"}},
       std::nullopt},
      {"nonsense", {{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", "soon"}}, std::nullopt},
  };
  for (const auto& row : rows) EXPECT_EQ(in_headers(row.headers), row.end) << row.of;
}

TEST(LimitEnd, reads_the_bodies_of_errors) {
  struct Row {
    const char* body;
    std::optional<WallTime> end;
  };
  const Row rows[] = {
      {R"({"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_at":1795449000,"resets_in_seconds":4200}})",
       WallTime{1795449000s}},
      {R"({"error":{"type":"usage_limit_reached","resets_in_seconds":13872}})", now + 13'872s},
      {R"([{"error":{"code":429,"message":"Please retry in 34.07s.","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.07s"}]}}])",
       now + 34'070ms},
      {R"({"error":{"code":429,"details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"12s"}]}})",
       at("Tue, 24 Nov 2026 08:00:00 GMT")},
      {R"({"error":{"code":429,"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1795478400000"}}}})",
       WallTime{1795478400s}},
      {R"({"error":{"message":"Rate limit reached for model in organization on tokens per day (TPD). Please try again in 7m12.345s. Visit us."}})",
       now + 432'345ms},
      {R"({"error":{"message":"Requests have exceeded the call rate limit. Please retry after 26 seconds."}})",
       now + 26s},
      {R"({"error":{"message":"slow down"}})", std::nullopt},
      {R"({"error":"try again in 5 s"})", std::nullopt},
      {"rate limited, retry in 5 s", now + 5s},
      {"", std::nullopt},
      {"[]", std::nullopt},
      {R"({"error":{"resets_at":"tomorrow"}})", std::nullopt},
  };
  for (const auto& row : rows) EXPECT_EQ(limit_end_in_body(row.body, now), row.end) << row.body;
}

TEST(LimitEnd, reads_what_agents_print) {
  struct Row {
    const char* text;
    std::optional<WallTime> end;
  };
  const Row rows[] = {
      {"Claude AI usage limit reached|1795460400", WallTime{1795460400s}},
      {"You've hit your limit · resets 10pm (America/New_York)",
       at("Tue, 24 Nov 2026 03:00:00 GMT")},
      {"You've hit your limit · resets 1pm (Europe/Berlin)", at("Tue, 24 Nov 2026 12:00:00 GMT")},
      {"You've hit your limit · resets 1:30pm (Europe/Berlin)",
       at("Mon, 23 Nov 2026 12:30:00 GMT")},
      {"limit reached, resets 7:40pm (Asia/Shanghai)", at("Tue, 24 Nov 2026 11:40:00 GMT")},
      {"weekly limit · resets Nov 27, 5pm (Asia/Calcutta)", at("Fri, 27 Nov 2026 11:30:00 GMT")},
      {"resets Jan 2 at 12am (UTC)", at("Sat, 02 Jan 2027 00:00:00 GMT")},
      {"resets 9pm (Nowhere/Land)", std::nullopt},
      {"resets 9pm (../../etc/passwd)", std::nullopt},
      {"You've hit your usage limit. Upgrade to Pro or try again in 2 days 17 hours 14 minutes.",
       now + 48h + 17h + 14min},
      {"try again at Dec 3rd, 2026 3:15 PM UTC", at("Thu, 03 Dec 2026 15:15:00 GMT")},
      {"The quota is available again at 2026-11-23T20:00:00+02:00.",
       at("Mon, 23 Nov 2026 18:00:00 GMT")},
      {"available again at 2026-11-23 20:00", std::nullopt},
      {"I will retry 5 times", std::nullopt},
      {"try again in a moment", std::nullopt},
      {"resets 25:00 UTC", std::nullopt},
      {"resets 13pm (UTC)", std::nullopt},
      {"the deploy finished at 9pm", std::nullopt},
  };
  for (const auto& row : rows) EXPECT_EQ(limit_end_in_text(row.text, now), row.end) << row.text;
}

TEST(LimitEnd, a_change_of_the_clocks_moves_no_end) {
  // Berlin: 25 October 2026, 03:00 becomes 02:00.
  const auto before = *http_date_from("Sat, 24 Oct 2026 21:00:00 GMT");
  EXPECT_EQ(limit_end_in_text("resets 9am (Europe/Berlin)", before),
            at("Sun, 25 Oct 2026 08:00:00 GMT"));
}

TEST(LimitEnd, no_text_is_too_strange) {
  constexpr std::uint64_t seed = 1;
  SCOPED_TRACE("WATCHDOG_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::vector<std::string> parts{"resets ",     "try again ",
                                       "in ",         "at ",
                                       "9",           "99999999999999999999",
                                       "pm",          ":",
                                       "59",          "|",
                                       "1795460400",  "(Europe/Berlin)",
                                       "d",           "ms",
                                       "1e308",       "-",
                                       "{\"error\":", "{",
                                       "[",           "\"resets_at\":",
                                       "}",           "Feb 31",
                                       ", ",          "2026-11-23T12:00:00Z",
                                       "\xff",        std::string(1, '\0')};
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (auto left = random() % 12; left > 0; --left) text += parts[random() % parts.size()];
    for (const auto& end :
         {limit_end_in_text(text, now), limit_end_in_body(text, now),
          in_headers({{"x-ratelimit-remaining", "0"}, {"x-ratelimit-reset", text}}),
          in_headers({{"retry-after", text}})}) {
      if (!end) continue;
      EXPECT_GT(*end, now) << text;
      EXPECT_LE(*end, now + 366 * 24h) << text;
    }
  }
}

std::string zone_file(const std::string& name) {
  std::ifstream file("/usr/share/zoneinfo/" + name, std::ios::binary);
  std::stringstream whole;
  whole << file.rdbuf();
  return whole.str();
}

/// A zone file without a list of changes. All is in its last line.
std::string slim_zone(const std::string& rule) {
  const std::string no_times(4, '\0');
  const auto block = [&](const std::string& contents) {
    return "TZif2" + std::string(15, '\0') + std::string(16, '\0') +
           std::string("\0\0\0\1\0\0\0\1", 8) + contents;
  };
  const std::string type(7, '\0');  // one offset, and one letter
  return block(type) + block(type) + "\n" + rule + "\n";
}

TEST(TimeZone, files_without_a_list_of_changes_have_a_rule_for_each_year) {
  for (const auto* name :
       {"America/Los_Angeles", "Europe/Berlin", "Europe/Dublin", "Australia/Sydney",
        "Australia/Lord_Howe", "America/Santiago", "Pacific/Auckland", "Asia/Jerusalem"}) {
    const auto bytes = zone_file(name);
    ASSERT_FALSE(bytes.empty()) << "the machine has no time zones: install tzdata";
    const auto listed = TimeZone::from(bytes);
    ASSERT_TRUE(listed) << name;
    const auto end = bytes.rfind('\n', bytes.size() - 2) + 1;
    const auto ruled = TimeZone::from(slim_zone(bytes.substr(end, bytes.size() - end - 1)));
    ASSERT_TRUE(ruled) << name;
    for (auto moment = now; moment < now + 8 * 365 * 24h; moment += 37min)
      ASSERT_EQ(ruled->offset(moment), listed->offset(moment))
          << name << " " << moment.time_since_epoch().count();
  }
}

TEST(TimeZone, a_rule_that_cannot_be_read_changes_nothing) {
  for (const auto* rule :
       {"", "PST8", "PST8PDT", "PST8PDT,J60,J300", "PST8PDT,M13.2.0,M11.1.0", "PST8PDT,M3.2.0",
        "PST8PDT,M3.2.0,M11.1.0,", "<", "PST999PDT,M3.2.0,M11.1.0"}) {
    const auto zone = TimeZone::from(slim_zone(rule));
    ASSERT_TRUE(zone) << rule;
    EXPECT_EQ(zone->offset(now), 0h) << rule;
  }
}

TEST(TimeZone, damaged_files_are_no_zones) {
  const auto bytes = zone_file("Europe/Berlin");
  ASSERT_TRUE(TimeZone::from(bytes)) << "the machine has no time zones: install tzdata";
  EXPECT_EQ(TimeZone::from(bytes)->offset(now), 1h);
  EXPECT_EQ(TimeZone::from(bytes)->offset(at("Wed, 01 Jul 2026 12:00:00 GMT")), 2h);
  EXPECT_FALSE(TimeZone::from(""));
  EXPECT_FALSE(TimeZone::from("TZif2"));
  EXPECT_FALSE(TimeZone::from(bytes.substr(0, 60)));
  constexpr std::uint64_t seed = 1;
  SCOPED_TRACE("WATCHDOG_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 5'000; ++round) {
    auto damaged = bytes.substr(0, random() % 2 == 0 ? bytes.size() : random() % bytes.size());
    for (int left = 0; left < 4 && !damaged.empty(); ++left)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    if (const auto zone = TimeZone::from(damaged)) {
      EXPECT_LE(std::chrono::abs(zone->offset(now)), 48h);
    }
  }
  for (const auto* name : {"/etc/passwd", "../../../etc/passwd", "Europe", "a b"})
    EXPECT_FALSE(TimeZone::named(name)) << name;
}

}  // namespace
}  // namespace watchdog
