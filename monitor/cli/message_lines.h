/// \file
/// Messages of one line each, on their way through a pipe.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string>
#include <string_view>
#include <utility>

#include "mcp/proxy/envelope.h"

namespace watchdog::monitor {

/// Collects bytes to lines. A longer one than is allowed is skipped to its end.
class MessageLines {
 public:
  /// Calls `accept` with each line, without its end. Returns how many were skipped.
  template <class Accept>
  int feed(std::string_view bytes, const Accept& accept) {
    int skipped = 0;
    while (!bytes.empty()) {
      const auto end = bytes.find('\n');
      if (!skips_) line_ += bytes.substr(0, end);
      if (line_.size() > mcp::proxied_bytes_max) {
        skips_ = true;
        ++skipped;
        line_ = {};
      }
      if (end == std::string_view::npos) break;
      if (!std::exchange(skips_, false)) accept(std::exchange(line_, {}));
      bytes.remove_prefix(end + 1);
    }
    return skipped;
  }
  /// Passes on what has no end.
  template <class Accept>
  void finish(const Accept& accept) {
    if (!line_.empty()) accept(std::exchange(line_, {}));
  }
  void clear() {
    line_.clear();
    skips_ = false;
  }

 private:
  std::string line_;
  bool skips_ = false;
};

/// The answer to a client whose message was skipped.
inline std::string too_long_text() {
  return mcp::line_of(mcp::response_of(mcp::RpcError{
      .code = mcp::rpc_invalid_request,
      .message =
          "a message may have at most " + std::to_string(mcp::proxied_bytes_max) + " bytes"}));
}

/// Lines on their way out. Use from one thread at a time.
class OutgoingLines {
 public:
  /// More should not be added before some is written.
  static constexpr std::size_t bytes_max = 8 * 1024 * 1024;

  void add(const std::string& line) { bytes_.append(line).append("\n"); }
  [[nodiscard]] std::size_t size() const { return bytes_.size() - sent_; }
  void clear() {
    bytes_.clear();
    sent_ = 0;
  }
  /// Writes as much as a file that is ready surely takes at once. False: nobody reads it; then the
  /// bytes are dropped.
  [[nodiscard]] bool write_to(int file) {
    const auto piece = std::string_view(bytes_).substr(sent_, PIPE_BUF);
    const auto count = ::write(file, piece.data(), piece.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (count < 0) {
      clear();
      return false;
    }
    sent_ += static_cast<std::size_t>(count);
    if (sent_ == bytes_.size()) clear();
    if (sent_ > bytes_max) bytes_.erase(0, std::exchange(sent_, 0));
    return true;
  }

 private:
  std::string bytes_;
  std::size_t sent_ = 0;
};

}  // namespace watchdog::monitor
