#include "ingest/turn_failure.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "llm/limit_end.h"
#include "llm/provider.h"

namespace watchdog::monitor {
namespace {

/// Words of a failure that has neither a known kind nor a status, in small letters.
constexpr std::pair<std::string_view, std::string_view> words_of_failures[] = {
    {"credit balance", wait_reports::billing},
    {"insufficient credit", wait_reports::billing},
    {"payment required", wait_reports::billing},
    {"billing", wait_reports::billing},
    {"session limit", wait_reports::quota},
    {"usage limit", wait_reports::quota},
    {"weekly limit", wait_reports::quota},
    {"5-hour limit", wait_reports::quota},
    {"opus limit", wait_reports::quota},
    {"hit your limit", wait_reports::quota},
    {"rate limit", wait_reports::quota},
    {"too many requests", wait_reports::quota},
    {"quota", wait_reports::quota},
    {"invalid api key", wait_reports::login},
    {"/login", wait_reports::login},
    {"oauth", wait_reports::login},
    {"authentication", wait_reports::login},
    {"not logged in", wait_reports::login},
};

std::string in_small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return text;
}

}  // namespace

std::string_view wait_after(const TurnFailure& failure) {
  constexpr std::string_view logins[] = {"authentication_failed", "oauth_org_not_allowed",
                                         "ProviderAuthError", "unauthorized", "invalid_api_key"};
  constexpr std::string_view quotas[] = {"rate_limit", "rate_limit_exceeded",
                                         "usage_limit_exceeded"};
  const auto is_one_of = [&](const auto& words) {
    return std::ranges::find(words, failure.kind) != std::end(words);
  };
  if (is_one_of(logins) || failure.status == 401 || failure.status == 403)
    return wait_reports::login;
  if (failure.kind == "billing_error" || failure.status == 402) return wait_reports::billing;
  if (is_one_of(quotas) || failure.status == 429) return wait_reports::quota;
  const auto text = failure.status == 0 ? in_small_letters(failure.text) : std::string();
  for (const auto& [words, subject] : words_of_failures)
    if (text.find(words) != text.npos) return subject;
  return wait_reports::input;
}

std::vector<Report> failed_turn(const TurnFailure& failure, WallTime now) {
  const auto text = failure.kind.empty() || failure.text.empty()
                        ? failure.kind + failure.text
                        : failure.kind + ": " + failure.text;
  const auto waits_for = wait_after(failure);
  std::vector<Report> reports(3);
  // The turn is over, and so are its calls. The wait follows the error that it is for.
  reports[0].kind = ReportKind::idle;
  reports[0].name = idle_reports::failed;
  reports[0].content = text;
  reports[1].kind = ReportKind::message;
  reports[1].name = "error";
  reports[1].content = text;
  reports[2].kind = ReportKind::wait;
  reports[2].name = waits_for;
  reports[2].content = waits_for == wait_reports::input ? "the turn failed: " + text : text;
  if (waits_for == wait_reports::quota) {
    const auto all = failure.text + "\n" + failure.more;
    reports[2].until = limit_end_in_text(all, now);
    reports[2].provider = provider_in_text(all);
  }
  return reports;
}

}  // namespace watchdog::monitor
