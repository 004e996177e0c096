/// \file
/// The answers of an MCP server that is part of a monitor: its own API, asked with a client's
/// headers.
#pragma once

#include <memory>
#include <string>

#include "api/api.h"
#include "mcp/loop.h"
#include "mcp/source.h"

namespace watchdog::monitor::mcp {

/// Of a loop's steps alone; so are what it follows and their ends.
class ApiSource final : public Source {
 public:
  /// The first two must outlive it. `client`: a request of the client; its headers say who asks.
  ApiSource(Api& api, Loop& loop, const Request& client, std::string owner);

  [[nodiscard]] std::string owner() const override { return owner_; }
  void ask(Question question, std::function<void(Answer)> done) override;
  [[nodiscard]] std::unique_ptr<Following> follow(const std::string& session,
                                                  Listener listener) override;

 private:
  [[nodiscard]] Request request(Method method, std::string target, std::string body) const;

  Api& api_;
  Loop& loop_;
  Request client_;
  const std::string owner_;
};

}  // namespace watchdog::monitor::mcp
