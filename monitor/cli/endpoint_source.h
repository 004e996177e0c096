/// \file
/// The answers of an MCP server that is a command: from a running monitor, or from a file.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/endpoint.h"
#include "mcp/source.h"

namespace watchdog::monitor {

/// Asks on one thread of its own, and follows each stream on another. Callbacks come on those.
class EndpointSource final : public mcp::Source {
 public:
  explicit EndpointSource(Endpoint::Options options);
  ~EndpointSource() override;

  [[nodiscard]] std::string owner() const override { return "local"; }
  void ask(mcp::Question question, std::function<void(mcp::Answer)> done) override;
  [[nodiscard]] std::unique_ptr<mcp::Following> follow(const std::string& session,
                                                       Listener listener) override;

 private:
  mcp::Answer answer_to(const mcp::Question& question);

  const Endpoint::Options options_;
  std::optional<Endpoint> reading_;
  std::optional<Endpoint> writing_;
  struct Queue;
  std::unique_ptr<Queue> queue_;  ///< Goes first: its thread uses the rest.
};

}  // namespace watchdog::monitor
