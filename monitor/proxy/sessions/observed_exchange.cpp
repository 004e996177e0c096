#include "proxy/sessions/observed_exchange.h"

#include <algorithm>

#include "llm/limit_end.h"
#include "proxy/sessions/refusal.h"
#include "watchdog/history.h"

namespace watchdog::monitor {
namespace {

using How = ExchangeEnded::How;
constexpr std::size_t error_bytes_max = 16U << 10U;

bool is_of_events(std::string_view content_type) {
  constexpr std::string_view events = "text/event-stream";
  return std::ranges::equal(content_type.substr(0, events.size()), events, [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y;
  });
}

}  // namespace

void ObservedExchange::begin_answer(const AnswerBegan& began) {
  status = began.status;
  retry_after = began.retry_after;
  limit_end = began.limit_end;
  is_read = began.content_encoding.empty() || began.content_encoding == "identity";
  if (!is_read) {
    coding = began.content_encoding;
    return;
  }
  is_stream = is_of_events(began.content_type);
  loop = std::make_unique<TextLoop>();
  answer.emplace(began.status, began.content_type,
                 [to = loop.get()](std::string_view text) { (void)to->feed(text); });
}

void ObservedExchange::feed(std::string_view bytes) {
  ++pieces;
  if (!answer || !is_read) return;
  if (is_stream && !has_event) find_event(bytes);
  answer->feed(bytes);
  if (is_error(status)) error_body.append(bytes, 0, error_bytes_max - error_body.size());
}

void ObservedExchange::find_event(std::string_view bytes) {
  for (const char c : bytes) {
    const bool is_blank = c == '\n' || c == '\r';
    has_event |= at_line_begin && !is_blank && c != ':';
    at_line_begin = is_blank;
  }
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

SpentTokens ObservedExchange::spent() const {
  if (status == 0 || is_error(status) || is_redirect(status)) return {};
  constexpr std::int64_t bytes_of_token = 4;
  const auto& so_far = heard();
  return {
      .prompt = so_far.prompt_tokens > 0 ? so_far.prompt_tokens : request_bytes / bytes_of_token,
      .cached = so_far.cached_tokens,
      .output = static_cast<std::int64_t>(tokens())};
}

std::string ObservedExchange::why_unread() const {
  return "the server answered, and the answer is not read here" +
         (coding.empty() ? std::string() : ": it is compressed by " + coding.substr(0, 32));
}

ExchangeFault ObservedExchange::fault(const ExchangeEnded& ended) const {
  const auto& so_far = heard();
  // Some clients hang up as soon as they have read that this is all.
  const bool all_said = is_read && so_far.complete && so_far.error.empty() &&
                        (ended.how == How::client_gone || ended.how == How::lost);
  if (ended.how == How::over_budget)
    return {.text = ended.message, .waits_for = wait_reports::quota};
  if (ended.how != How::answered && !all_said) {
    const bool is_of_server =
        ended.how != How::client_gone && ended.how != How::stopped && ended.how != How::denied;
    return {.text = ended.message.empty() ? std::string(name_of(ended.how)) : ended.message,
            .waits_for = is_of_server ? backend : std::string_view()};
  }
  if (is_redirect(status))
    return {.text = "HTTP " + std::to_string(status) + ": the server names another address",
            .is_redirect = true};
  if (is_error(status)) {
    return {.text = "HTTP " + std::to_string(status) +
                    (so_far.error.empty() ? "" : ": " + so_far.error),
            .waits_for = wait_after_refusal(status, so_far.error)};
  }
  if (!so_far.error.empty()) return {.text = so_far.error};
  if (is_read && is_stream && !has_event)
    return {.text = "the server ended its stream without an event", .waits_for = backend};
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
