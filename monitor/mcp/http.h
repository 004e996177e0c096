/// \file
/// The MCP server on the monitor's port: streamable HTTP.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/api.h"
#include "api/mcp_handler.h"
#include "mcp/loop.h"
#include "mcp/peer.h"

namespace watchdog::monitor::mcp {

/// Answers on a thread of its own.
class HttpHandler final : public McpHandler {
 public:
  /// Beyond: the one that idles longest goes.
  static constexpr std::size_t sessions_max = 1'000;
  /// A session without a request or an open stream ends.
  static constexpr Millis session_idle_max{3'600'000};

  /// `api` must outlive it. `version`: of this program.
  HttpHandler(Api& api, std::string version);
  ~HttpHandler() override;

  /// Tasks survive the end of the process in this file. Call it before the first request. Errors:
  /// those of TaskBook::keep_in().
  [[nodiscard]] Result<void> keep_tasks_in(std::filesystem::path file);
  void answer(McpRequest request, Reply reply) override;
  /// Drops the tasks of these sessions. It waits a moment for that. From any thread.
  void forget(std::vector<std::string> sessions);
  /// Ends all sessions and requests. Later ones get no answer.
  void stop();

 private:
  struct Session {
    std::shared_ptr<Peer> peer{};
    std::string owner{};
    WallTime used{};
    std::weak_ptr<void> stream{};  ///< Of the open GET.
  };

  void post(const McpRequest& request, const Reply& reply);
  void accept(const McpRequest& request, const Message& message, const std::shared_ptr<Peer>& peer,
              const std::string& session, const Reply& reply);
  void open_stream(const McpRequest& request, const Reply& reply);
  void end_session(const McpRequest& request, const Reply& reply);
  /// Null: there is none of this caller; then the refusal is the reply.
  [[nodiscard]] Session* session_of(const McpRequest& request, const Reply& reply);
  [[nodiscard]] std::string begin_session(const McpRequest& request,
                                          const std::shared_ptr<Peer>& peer);
  void drop_idle();
  /// A newer stream replaces an older one.
  static void finish_stream(const Session& session);
  static void end(const Session& session);

  Api& api_;
  LoopThread loop_;
  ServerContext context_;
  std::map<std::string, Session> sessions_;
  std::set<std::shared_ptr<Peer>> single_;  ///< Of requests without a session, until answered.
};

/// Returns the error for headers that differ from the message, as 2026-07-28 has it; nothing: they
/// fit. Pure.
[[nodiscard]] std::optional<RpcError> header_error(const Request& request, const Message& message);

}  // namespace watchdog::monitor::mcp
