#include "ingest/turn_failure.h"

#include <algorithm>
#include <iterator>

#include "llm/limit_end.h"
#include "llm/provider.h"

namespace watchdog::monitor {

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
