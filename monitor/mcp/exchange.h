/// \file
/// One request of a client on its way to its answer.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "mcp/rpc.h"
#include "mcp/source.h"

namespace watchdog::monitor::mcp {

/// Sends a message to a client. `is_last`: it is the answer to its request.
using Send = std::function<void(const json& message, bool is_last)>;

/// Of a loop's steps alone. Answers at most once; after that, or after close(), it sends nothing.
class Exchange {
 public:
  Exchange(Message request, Revision form, std::shared_ptr<Source> asks, Send send)
      : revision(form),
        params(std::move(request.params)),
        source(std::move(asks)),
        id_(std::move(request.id)),
        send_(std::move(send)) {}

  const Revision revision;
  json params;
  const std::shared_ptr<Source> source;
  bool supports_tasks = false;  ///< The client declared the extension, or asked for a task.
  bool can_ask = false;         ///< The client shows questions to a person, and they can reach it.
  bool is_asking = false;       ///< A question to a person may be sent before the answer.
  /// The session of reports that name none; empty: each must name one.
  std::string own_session{};
  /// The wait or the subscriptions of the request. It ends when the request is answered or closed.
  std::shared_ptr<void> work{};
  /// Called when the request is closed without an answer.
  std::function<void()> closed{};

  [[nodiscard]] bool is_modern() const noexcept { return revision == Revision::v2026_07_28; }
  [[nodiscard]] const json& id() const noexcept { return id_; }
  [[nodiscard]] bool is_over() const noexcept { return !send_; }
  /// The client's token for progress; null: it wants none.
  [[nodiscard]] const json& progress_token() const;

  void notify(std::string_view method, json params);
  /// Sends a request of the server, which belongs to this one.
  void ask(const json& id, std::string_view method, json params);
  /// Reports progress. Values that do not rise are made to.
  void progress(double value, const std::string& words);
  void finish(json result);
  void fail(int code, std::string message, json data = {});
  /// The client is gone or cancelled the request.
  void close();

 private:
  void answer(const json& message);

  const json id_;
  Send send_;
  double progress_ = 0;
};
using ExchangePtr = std::shared_ptr<Exchange>;

/// Returns a tool's result: structured, and as text.
[[nodiscard]] json tool_result(json structured);
/// Returns a tool's result that is an error.
[[nodiscard]] json tool_error(const std::string& words);

}  // namespace watchdog::monitor::mcp
