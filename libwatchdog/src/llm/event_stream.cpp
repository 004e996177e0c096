#include "llm/event_stream.h"

namespace watchdog {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// The part of a line that counts as data, or nothing.
bool data_of(std::string_view line, std::string_view& data) {
  if (line.starts_with('{')) {
    data = line;
    return true;
  }
  const auto colon = line.find(':');
  const auto field = line.substr(0, colon);
  if (field != "data" && field != "error") return false;
  data = colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
  if (data.starts_with(' ')) data.remove_prefix(1);
  return true;
}

}  // namespace

EventStream::Fed EventStream::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    if (after_return_) {
      after_return_ = false;
      if (bytes.starts_with('\n')) {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const auto end = bytes.find_first_of("\r\n");
    const auto piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > event_bytes_max_) return Fed::too_large;
    if (end == std::string_view::npos) {
      line_.append(piece);
      return Fed::more;
    }
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    Fed fed = Fed::more;
    if (line_.empty()) {
      fed = feed_line(piece, sink);
    } else {
      line_.append(piece);
      fed = feed_line(line_, sink);
      line_.clear();
    }
    if (fed != Fed::more) return fed;
  }
  return Fed::more;
}

EventStream::Fed EventStream::end(const Sink& sink) {
  if (!line_.empty()) {
    const auto fed = feed_line(line_, sink);
    line_.clear();
    if (fed != Fed::more) return fed;
  }
  return dispatch(sink);
}

EventStream::Fed EventStream::feed_line(std::string_view line, const Sink& sink) {
  if (first_line_ && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
  first_line_ = false;
  if (line.empty()) return dispatch(sink);
  std::string_view data;
  if (!data_of(line, data)) return Fed::more;
  if (data_.size() + data.size() + 1 > event_bytes_max_) return Fed::too_large;
  if (has_data_) data_ += '\n';
  data_.append(data);
  has_data_ = true;
  return Fed::more;
}

EventStream::Fed EventStream::dispatch(const Sink& sink) {
  if (!has_data_) return Fed::more;
  has_data_ = false;
  const bool more = data_.empty() || sink(data_);
  data_.clear();
  return more ? Fed::more : Fed::enough;
}

}  // namespace watchdog
