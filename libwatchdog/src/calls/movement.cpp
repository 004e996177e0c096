// Texts are compared by digests, without times of day and blanks: a line that only shows the time
// says nothing new. Numbers that count do. A piece of output is searched until its first new line,
// so a stream of news costs little; equal lines are skipped by a comparison.
#include "calls/movement.h"

#include <algorithm>
#include <cmath>

#include "facts/digest.h"

namespace watchdog {
namespace {

constexpr std::size_t text_bytes_max = 512;

/// As much of a text as is compared.
std::string compared(std::string_view text) {
  return std::string(text.substr(0, text_bytes_max));
}

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

/// Letters that a date and a time of day consist of.
bool is_of_time(char letter) {
  return is_digit(letter) || std::string_view(":.,-+TZ").find(letter) != std::string_view::npos;
}

/// `12:05`, `2026-11-28T12:05:01.5Z`, or the seconds or milliseconds since 1970.
bool is_time(std::string_view word) {
  const auto digits = static_cast<std::size_t>(std::ranges::count_if(word, is_digit));
  if (digits == 0 || !is_digit(word.front())) return false;
  const auto colon = word.find(':');
  if (colon != std::string_view::npos && colon > 0 && colon + 1 < word.size())
    return is_digit(word[colon - 1]) && is_digit(word[colon + 1]);
  if (digits == 8 && word.size() >= 10 && word[4] == '-' && word[7] == '-') return true;
  const auto whole = std::min(word.find('.'), word.size());
  return word.front() == '1' && (whole == 10 || whole == 13) &&
         std::ranges::all_of(word.substr(0, whole), is_digit);
}

/// The text without what changes although nothing happened.
std::string stripped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (is_digit(text[at]) && (at == 0 || !is_of_time(text[at - 1]))) {
      const auto end =
          std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), is_of_time);
      const auto word = text.substr(at, static_cast<std::size_t>(end - text.begin()) - at);
      if (!is_time(word)) out += word;
      at += word.size();
      continue;
    }
    if (static_cast<unsigned char>(text[at]) > ' ') out += text[at];
    ++at;
  }
  return out;
}

}  // namespace

bool News::is_new(std::string_view text) {
  const auto content = stripped(text);
  if (content.empty()) return false;
  const auto digest = digest_of(content);
  if (std::ranges::find(digests_, digest) != digests_.end()) return false;
  if (digests_.size() == texts_max) digests_.pop_front();
  digests_.push_back(digest);
  return true;
}

bool NewLines::add_line(std::string_view line, bool is_whole) {
  if (is_whole && line == newest_) return false;
  if (is_whole) newest_ = line;
  return news_.is_new(line);
}

bool NewLines::add(std::string_view piece) {
  for (int lines = 0; !piece.empty() && lines < lines_max; ++lines) {
    const auto end = std::min(piece.find_first_of("\r\n"), piece.size());
    const bool is_whole = end < piece.size();
    const auto rest = piece;
    const auto part = piece.substr(0, std::min(end, line_bytes_max - begun_.size()));
    piece.remove_prefix(std::min(end + 1, piece.size()));
    if (!is_whole) {
      begun_ += part;
      return add_line(rest.substr(0, std::min(end, line_bytes_max)), false);
    }
    if (begun_.empty()) {
      if (add_line(part, true)) return true;
      continue;
    }
    begun_ += part;
    const bool is_new = add_line(begun_, true);
    begun_.clear();
    if (is_new) return true;
  }
  return false;
}

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

Movement::Movement(ResolvedDeadline limits, Instant start) : deadline_(std::move(limits), start) {}

bool Movement::move(Instant now) {
  deadline_.accept(now);
  stale_bytes_ = 0;
  return true;
}

/// It said something, and nothing new.
bool Movement::stand(bool is_said) {
  if (is_said) deadline_.reject();
  return false;
}

bool Movement::progress(double value, std::optional<double> total, std::string_view message,
                        Instant now) {
  const bool is_new = news_.is_new(compared(message));
  if (!message.empty()) words_ = compared(message);
  const bool rises = std::isfinite(value) && (!value_ || value > *value_);
  if (rises) {
    value_ = value;
    total_ = total && std::isfinite(*total) && *total >= value ? total : std::nullopt;
    stale_bytes_ = 0;
    return deadline_.progress(value, now);
  }
  return is_new ? move(now) : stand(true);
}

bool Movement::message(std::string_view text, Instant now) {
  const auto newest = compared(text);
  const bool is_beat = message_rhythm_.is_beat(newest == message_, now);
  message_ = newest;
  return is_beat ? stand(true) : move(now);
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

bool Movement::output(std::string_view piece, Instant now) {
  const bool is_new = lines_.add(piece);
  stale_bytes_ = is_new ? 0 : stale_bytes_ + piece.size();
  return deadline_.progress_bytes(deadline_.bytes() + piece.size(), now, is_new);
}

bool Movement::bytes(std::uint64_t total, Instant now) {
  return deadline_.progress_bytes(total, now);
}

void Movement::alive(Instant now) {
  if (stale_bytes_ <= flood_bytes) deadline_.put_off(now);
}

}  // namespace watchdog
