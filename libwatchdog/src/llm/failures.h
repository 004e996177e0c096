/// \file
/// Errors between a model's client and its server, as a failure for the run.
#pragma once

#include <string>
#include <string_view>

#include "llm/answer_reader.h"
#include "llm/error_body.h"
#include "net/http_client.h"
#include "watchdog/model_client.h"
#include "watchdog/time.h"

namespace watchdog {

/// The server's name in a message, and the secret that must not be in it. A plain value.
struct ServerName {
  std::string url;
  std::string secret{};  ///< Nowhere in a message.

  /// At most 300 bytes of what a server said, on one line, as UTF-8, without the secret.
  [[nodiscard]] std::string quote(std::string_view said) const;
};

/// There was no answer, or not all of it.
[[nodiscard]] Failure failure_of(const HttpFault& fault, const ServerName& server);

/// An answer with a status above 299. `now` is when it came.
[[nodiscard]] Failure failure_of(const HttpHead& head, std::string_view body,
                                 const ServerName& server, WallTime now);

/// An answer with a good status that was none.
[[nodiscard]] Failure failure_of(const AnswerFault& fault, const HttpHead& head,
                                 const ServerName& server);

[[nodiscard]] Failure cancelled(const ServerName& server);

}  // namespace watchdog
