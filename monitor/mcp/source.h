/// \file
/// The place that an MCP server gets its answers from: questions as of the monitor's HTTP API.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/message.h"

namespace watchdog::monitor::mcp {

/// A question to the HTTP API. A plain value.
struct Question {
  Method method = Method::get;
  std::string target{};  ///< Path and query, percent-encoded.
  std::string body{};
};

/// Its answer. A plain value.
struct Answer {
  int status = 200;    ///< 0: the monitor cannot be reached.
  std::string body{};  ///< JSON; of status 0 a sentence for people.
};

/// A stream of changes, followed until this is destroyed.
class Following {
 public:
  Following() = default;
  Following(const Following&) = delete;
  Following& operator=(const Following&) = delete;
  virtual ~Following() = default;
};

/// Asks with the permissions of one client. Thread-safe; callbacks come on any thread, also before
/// the call returns.
class Source {
 public:
  /// The callbacks of a stream. A plain value.
  struct Listener {
    /// A record: its kind and its data.
    std::function<void(std::string event, std::string data)> on_record{};
    /// The monitor does not answer; the stream goes on when it does again.
    std::function<void()> lost{};
    /// The stream ended for good.
    std::function<void(Answer)> ended{};
  };

  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  /// Names whose permissions these are; tasks belong to that name.
  [[nodiscard]] virtual std::string owner() const = 0;
  virtual void ask(Question question, std::function<void(Answer)> done) = 0;
  /// Follows a session; an empty id: all of them. Records are `snapshot` with the documents that
  /// are there, and `session` with a document or row that changed, at most one a second each.
  [[nodiscard]] virtual std::unique_ptr<Following> follow(const std::string& session,
                                                          Listener listener) = 0;
};

}  // namespace watchdog::monitor::mcp
