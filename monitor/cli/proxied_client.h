/// \file
/// What both proxies of tool servers have on the client's side: standard input and output as lines,
/// the signals that end the program, and the reports about calls. For one thread; nothing blocks.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/message_lines.h"
#include "mcp/proxy/call_book.h"
#include "wrapper/file_descriptor.h"

namespace watchdog::monitor {

/// Receives reports. `open`: calls that are still open after it.
using CallSink = std::function<void(const mcp::CallOwner& owner, const std::string& client,
                                    Report report, std::size_t open)>;

class ProxiedClient : public mcp::CallBookEnds {
 public:
  void to_client(std::string message) final { to_client_.add(message); }
  void report(const mcp::CallOwner& owner, Report report) final {
    reports_.emplace_back(owner, std::move(report));
  }
  void tell(const std::string& words) final;

 protected:
  /// `sink` must outlive this.
  ProxiedClient(const mcp::CallBook::Options& options, const CallSink& sink)
      : book_(*this, options), sink_(sink) {}

  static Instant now() { return Instant{system_clock().since_boot()}; }

  /// Ignores SIGPIPE. SIGINT, SIGTERM and SIGHUP, which the caller has blocked, make `signals()`
  /// readable from now on.
  void open_signals();
  [[nodiscard]] int signals() const { return signals_.get(); }
  /// Returns the next of those signals, or 0 if no signal waits.
  [[nodiscard]] int next_signal() const;

  /// Reads standard input once and passes each whole line to `accept`. Returns false at its end.
  [[nodiscard]] bool read_client(const std::function<void(std::string)>& accept);

  /// Hands all reports to the sink.
  void flush_reports();

  static constexpr std::size_t read_bytes_max = 256 * 1024;

  mcp::CallBook book_;
  OutgoingLines to_client_;
  std::vector<char> buffer_ = std::vector<char>(read_bytes_max);  ///< For any read.
  bool client_ended_ = false;

 private:
  const CallSink& sink_;
  FileDescriptor signals_;
  MessageLines from_client_;
  std::vector<std::pair<mcp::CallOwner, Report>> reports_;
};

}  // namespace watchdog::monitor
