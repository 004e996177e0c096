#include "proxy/connection/answer_filter.h"

#include <algorithm>
#include <array>
#include <utility>

#include "proxy/connection/json_members.h"

namespace watchdog::monitor {
namespace {

/// Reports of progress are much shorter; what is longer is an answer.
constexpr std::size_t held_bytes_max = 16'384;
/// Enough of a line to recognise it.
constexpr std::size_t line_start_max = 16;
constexpr std::string_view progress_name = "\"prompt_progress\":";

/// Returns the end of the first event, with its empty line; nothing: it is incomplete.
std::size_t event_end(std::string_view bytes) {
  for (auto at = bytes.find('\n'); at != std::string_view::npos; at = bytes.find('\n', at + 1)) {
    const auto next = bytes.substr(at + 1, 2);
    if (next.starts_with('\n')) return at + 2;
    if (next == "\r\n") return at + 3;
  }
  return std::string_view::npos;
}

bool is_comment(std::string_view event) {
  return event.starts_with(':') && event.find("\ndata:") == std::string_view::npos;
}

}  // namespace

std::string AnswerFilter::pass(std::string bytes) {
  if (progress_ != Progress::none) return filter_events(bytes);
  count(bytes);
  return bytes;
}

std::string AnswerFilter::rest() {
  progress_ = Progress::none;
  count(event_);
  return std::exchange(event_, {});
}

std::string AnswerFilter::filter_events(std::string_view bytes) {
  event_.append(bytes);
  std::string given;
  while (progress_ != Progress::none && !event_.empty()) {
    const auto end = event_end(event_);
    if (end == std::string::npos) {
      if (event_.size() > held_bytes_max) progress_ = Progress::none;
      break;
    }
    const auto event = std::string_view(event_).substr(0, end);
    if (!read_progress(event)) {
      if (!is_comment(event)) progress_ = Progress::none;
      count(event);
      given += event;
    } else if (progress_ == Progress::passed) {
      given += event;
    } else if (progress_ == Progress::hidden) {
      // Without an empty line, which some clients take for the end of an event.
      given += ": the prompt is read: " + std::to_string(prompt_read_) + " of " +
               std::to_string(prompt_tokens_) + " tokens\n";
    }
    event_.erase(0, end);
  }
  if (progress_ == Progress::none) given += rest();
  return given;
}

/// The outermost member, not the words of an answer: within a string the quotes are escaped.
bool AnswerFilter::read_progress(std::string_view event) {
  if (event.find(progress_name) == std::string_view::npos) return false;
  const auto data = event.find("data:");
  if (data == std::string_view::npos) return false;
  const auto progress = member_of(event.substr(data + 5), "prompt_progress");
  static constexpr std::array<std::string_view, 2> names{"processed", "total"};
  std::array<std::string_view, 2> found;
  if (progress.empty() || !find_members(progress, names, found)) return false;
  const auto read = count_in(found[0]);
  const auto total = count_in(found[1]);
  if (!read || !total) return false;
  prompt_read_ = std::max(prompt_read_, *read);
  prompt_tokens_ = *total;
  return true;
}

void AnswerFilter::count(std::string_view bytes) {
  if (bytes.empty()) return;
  if (form_ == Form::opaque) {
    ++pieces_;
    in_event_ = true;
    return;
  }
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto piece = bytes.substr(0, end);
    if (line_.size() < line_start_max) line_.append(piece.substr(0, line_start_max - line_.size()));
    line_bytes_ += piece.size();
    if (end == std::string_view::npos) break;
    end_line();
    bytes.remove_prefix(end + 1);
  }
}

void AnswerFilter::end_line() {
  const bool is_empty = line_bytes_ == 0 || line_ == "\r";
  if (form_ == Form::lines) {
    if (line_.find_first_not_of(" \t\r") != std::string::npos) ++pieces_;
  } else if (is_empty) {
    in_event_ = is_ping_ = false;
  } else if (!line_.starts_with(':')) {
    in_event_ = true;
    if (line_.starts_with("event:")) is_ping_ = line_ == "event: ping" || line_ == "event: ping\r";
    if (line_.starts_with("data:") && !is_ping_) ++pieces_;
  }
  line_.clear();
  line_bytes_ = 0;
}

}  // namespace watchdog::monitor
