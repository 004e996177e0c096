#include "mcp/proxy/movement.h"

#include <algorithm>
#include <cmath>

namespace watchdog::monitor::mcp {
namespace {

constexpr std::size_t text_bytes_max = 512;

/// As much of a text as is compared.
std::string compared(std::string_view text) {
  return std::string(text.substr(0, text_bytes_max));
}

}  // namespace

bool Rhythm::is_beat(bool is_same, Instant now) {
  const auto gap = last_ ? now - *last_ : Millis{0};
  const bool is_known = last_.has_value();
  last_ = now;
  if (!is_same || !is_known || gap < period_min) {
    beats_ = 0;
    return false;
  }
  const auto tolerance = std::max(period_ / 5, Millis{100});
  const bool is_regular = beats_ == 0 || (gap >= period_ - tolerance && gap <= period_ + tolerance);
  if (beats_ == 0 || !is_regular) period_ = gap;
  beats_ = is_regular ? std::min(beats_ + 1, beats_max + 1) : 1;
  return beats_ > beats_max;
}

Movement::Movement(std::optional<Millis> idle, Instant start)
    : idle_(idle), deadline_({.idle = idle}, start) {}

bool Movement::move(Instant now) {
  (void)deadline_.progress_bytes(++steps_, now);
  moved_at_ = deadline_.active(now);
  was_alive_ = false;
  ++accepted_;
  return true;
}

bool Movement::progress(double value, std::optional<double> total, std::string_view message,
                        Instant now) {
  if (!std::isfinite(value) || (value_ && value <= *value_)) return false;
  const bool has_end = total && *total >= value;
  const bool is_count = value_ && value == *value_ + 1 && !has_end;
  const bool is_beat = progress_rhythm_.is_beat(is_count && compared(message) == words_, now);
  value_ = value;
  total_ = has_end ? total : std::nullopt;
  words_ = compared(message);
  return !is_beat && move(now);
}

bool Movement::message(std::string_view text, Instant now) {
  const auto newest = compared(text);
  const bool is_beat = message_rhythm_.is_beat(newest == message_, now);
  message_ = newest;
  return !is_beat && move(now);
}

bool Movement::task(std::string_view updated_at, std::string_view status_message, Instant now) {
  const auto at = compared(updated_at);
  const auto words = compared(status_message);
  if (at == updated_at_ && words == status_message_) return false;
  updated_at_ = at;
  status_message_ = words;
  if (!words.empty()) words_ = words;
  return move(now);
}

void Movement::alive(Instant now) {
  if (!idle_ || deadline_.active(now) - moved_at_ > alive_max * *idle_) return;
  (void)deadline_.progress_bytes(++steps_, now);
  was_alive_ = true;
}

}  // namespace watchdog::monitor::mcp
