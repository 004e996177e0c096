/// \file
/// A question as servers want it written.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "watchdog/model_client.h"

namespace watchdog {

/// For whom it is written. A plain value.
struct RequestShape {
  ServerKind server = ServerKind::unknown;
  std::string_view model;  ///< For a request that names none.
  bool stream = true;
  bool extras = true;        ///< With the fields that not every server knows.
  bool sampling = true;      ///< With the temperature and the seed: reasoning models refuse them.
  bool newer_limit = false;  ///< `max_completion_tokens` instead of `max_tokens`.
};

/// The body of `POST …/chat/completions`. REQUIRES: wrong_field(request) is empty.
[[nodiscard]] std::string to_json(const ChatRequest& request, const RequestShape& shape);

/// The field that has to be JSON and is not; empty: none.
[[nodiscard]] std::string_view wrong_field(const ChatRequest& request);

/// Returns the form for one more try, if a server refused the request because of an optional field.
[[nodiscard]] std::optional<RequestShape> plainer(const RequestShape& shape, std::string_view sent,
                                                  int status, std::string_view refusal);

}  // namespace watchdog
