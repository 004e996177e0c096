/// \file
/// The HTTP API without HTTP: a request goes in, a response comes out.
#pragma once

#include "api/backend.h"
#include "api/check_desk.h"
#include "api/feed.h"
#include "api/gate.h"
#include "api/message.h"

namespace watchdog::monitor {

/// Thread-safe, if its backend is.
class Api {
 public:
  /// All must outlive this and every reply under way. Without a feed there are no streams.
  Api(Backend& backend, CheckDesk& desk, Gate gate, Feed* feed = nullptr)
      : backend_(backend), desk_(desk), gate_(std::move(gate)), feed_(feed) {}

  /// Whether the request may go on, judged by its headers alone: the refusal, or nothing.
  [[nodiscard]] std::optional<Response> refuse(const Request& request) const;

  /// Answers a request that `refuse` let pass. A question about a running session is answered from
  /// memory, before this returns; everything else from wherever the backend works.
  void handle(Request request, Reply reply) const;

 private:
  Backend& backend_;
  CheckDesk& desk_;
  Gate gate_;
  Feed* feed_;
};

}  // namespace watchdog::monitor
