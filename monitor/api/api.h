/// \file
/// The HTTP API without HTTP: a request goes in, a response comes out.
#pragma once

#include "api/access.h"
#include "api/backend.h"
#include "api/check_desk.h"
#include "api/feed.h"
#include "api/message.h"

namespace watchdog::monitor {

/// Thread-safe, if its backend is.
class Api {
 public:
  /// All must outlive this and every reply under way. Without a feed there are no streams.
  /// `requests_per_second_max`: of each other machine; 0: no limit.
  Api(Backend& backend, CheckDesk& desk, Gate gate, Feed* feed = nullptr,
      double requests_per_second_max = 0)
      : backend_(backend),
        desk_(desk),
        access_(std::move(gate), requests_per_second_max),
        feed_(feed) {}

  /// Whether the request may go on to have its body read, judged by its headers alone: the refusal,
  /// or nothing. What its caller may do is looked at again when it is handled.
  [[nodiscard]] std::optional<Response> refuse(const Request& request);

  /// Answers a request that `refuse` let pass. A question about a running session is answered from
  /// memory, before this returns; everything else from wherever the backend works.
  void handle(Request request, Reply reply);

 private:
  Backend& backend_;
  CheckDesk& desk_;
  Access access_;
  Feed* feed_;
};

}  // namespace watchdog::monitor
