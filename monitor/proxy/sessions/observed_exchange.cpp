#include "proxy/sessions/observed_exchange.h"

#include <algorithm>

#include "llm/limit_end.h"
#include "proxy/sessions/refusal.h"
#include "watchdog/history.h"

namespace watchdog::monitor {
namespace {

using How = ExchangeEnded::How;
constexpr std::size_t error_bytes_max = 16U << 10U;

}  // namespace

void ObservedExchange::begin_answer(const AnswerBegan& began) {
  status = began.status;
  retry_after = began.retry_after;
  limit_end = began.limit_end;
  const auto& coding = began.content_encoding;
  is_read = coding.empty() || coding == "identity";
  if (!is_read) return;
  loop = std::make_unique<TextLoop>();
  answer.emplace(began.status, began.content_type,
                 [to = loop.get()](std::string_view text) { (void)to->feed(text); });
}

void ObservedExchange::feed(std::string_view bytes) {
  ++pieces;
  if (!answer || !is_read) return;
  answer->feed(bytes);
  if (is_error(status)) error_body.append(bytes, 0, error_bytes_max - error_body.size());
}

const ObservedAnswer& ObservedExchange::heard() const {
  static const ObservedAnswer none;
  return answer ? answer->heard() : none;
}

double ObservedExchange::tokens() const {
  const auto unread = is_read && answer ? 0 : pieces;
  if (!answer) return static_cast<double>(unread);
  const auto reported = heard().output_tokens > 0 ? heard().output_tokens : heard().pieces;
  return static_cast<double>(std::max(reported, unread));
}

ExchangeFault ObservedExchange::fault(const ExchangeEnded& ended) const {
  const auto& so_far = heard();
  // Some clients hang up as soon as they have read that this is all.
  const bool all_said = is_read && so_far.complete && so_far.error.empty() &&
                        (ended.how == How::client_gone || ended.how == How::lost);
  if (ended.how != How::answered && !all_said) {
    const bool is_of_server =
        ended.how != How::client_gone && ended.how != How::stopped && ended.how != How::denied;
    return {.text = ended.message.empty() ? std::string(name_of(ended.how)) : ended.message,
            .waits_for = is_of_server ? backend : std::string_view()};
  }
  if (is_error(status)) {
    return {.text = "HTTP " + std::to_string(status) +
                    (so_far.error.empty() ? "" : ": " + so_far.error),
            .waits_for = wait_after_refusal(status, so_far.error)};
  }
  if (!so_far.error.empty()) return {.text = so_far.error};
  const bool broke_off = is_read && so_far.begun && !so_far.complete && !so_far.lost;
  if (!broke_off) return {};
  return {.text = "the answer broke off before its end", .waits_for = backend};
}

std::optional<WallTime> ObservedExchange::end_of_wait(std::string_view what, WallTime now) const {
  if (limit_end) return limit_end;
  if (retry_after) return now + *retry_after;
  if (what != wait_reports::quota && what != wait_reports::overload) return std::nullopt;
  return limit_end_in_body(error_body, now);
}

}  // namespace watchdog::monitor
