#include "proxy/sessions/refusal.h"

#include "watchdog/history.h"
#include "watchdog/reasons.h"
#include "watchdog/report.h"

namespace watchdog::monitor {

std::string_view wait_after_refusal(int status, std::string_view error) {
  const auto says = [&](std::string_view words) {
    return error.find(words) != std::string_view::npos;
  };
  if (status == 401 || status == 403 || status == 407) return wait_reports::login;
  if (status == 402 || status == 429) return wait_reports::quota;
  if (status == 529 || (status >= 500 && (says("verloaded") || says("at capacity"))))
    return wait_reports::overload;  // Anthropic; Google with 503
  if (status >= 500) return backend;
  if (says("API key not valid")) return wait_reports::login;          // Google, with 400
  if (says("credit balance is too low")) return wait_reports::quota;  // Anthropic, likewise
  return {};
}

std::string_view reason_of_refusal(std::string_view what, int status, bool reached) {
  if (what == wait_reports::login) return reasons::authentication;
  if (what == wait_reports::quota) return reasons::rate_limited;
  if (status > 0) return reasons::model_server_error;
  return reached ? reasons::connection_lost : reasons::connection_refused;
}

}  // namespace watchdog::monitor
