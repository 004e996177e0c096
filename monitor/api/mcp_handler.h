/// \file
/// The Model Context Protocol on the monitor's port. Its server is above this layer.
#pragma once

#include <functional>
#include <string>

#include "api/message.h"

namespace watchdog::monitor {

/// A request to `/mcp` that is permitted. A plain value.
struct McpRequest {
  Request http;
  std::string caller;               ///< Name of the caller's token.
  std::function<bool()> allowed{};  ///< Whether the permission still holds. From any thread.
};

class McpHandler {
 public:
  McpHandler() = default;
  McpHandler(const McpHandler&) = delete;
  McpHandler& operator=(const McpHandler&) = delete;
  virtual ~McpHandler() = default;

  /// Answers from any thread. Thread-safe.
  virtual void answer(McpRequest request, Reply reply) = 0;
};

}  // namespace watchdog::monitor
