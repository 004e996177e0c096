#include "core/sse_reader.h"

#include <utility>

namespace watchdog::monitor {

bool SseReader::feed(std::string_view bytes, const std::function<bool(const SseRecord&)>& sink) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    feed_piece(bytes.substr(0, end));
    if (end == bytes.npos) return true;
    bytes.remove_prefix(end + 1);
    const auto line = std::exchange(line_, {});
    if (!line.empty()) {
      feed_line(line);
      continue;
    }
    const auto record = std::exchange(record_, {});
    if (std::exchange(too_long_, false)) continue;
    if (!id_.empty()) last_id_ = std::exchange(id_, {});
    if (!record.data.empty() && !sink(record)) return false;
  }
  return true;
}

void SseReader::feed_piece(std::string_view piece) {
  const auto room = line_bytes_max - line_.size();
  too_long_ = too_long_ || piece.size() > room;
  line_ += piece.substr(0, room);
}

void SseReader::feed_line(std::string_view line) {
  const auto colon = line.find(": ");
  if (colon == line.npos) return;  // a comment, or nothing of ours
  const auto name = line.substr(0, colon);
  const auto value = line.substr(colon + 2);
  if (name == "event") record_.event = value;
  if (name == "data") record_.data = value;
  if (name == "id") id_ = value;
}

void SseReader::restart() {
  line_.clear();
  too_long_ = false;
  id_.clear();
  record_ = {};
}

}  // namespace watchdog::monitor
