/// \file
/// What model servers say of themselves, as they write it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "support/simulated_server.h"

namespace watchdog::test {

/// An answer of HTTP. A plain value.
struct ServerResponse {
  int status = 200;
  std::string body{};
  std::string content_type = "application/json; charset=utf-8";
  std::string headers{};
};

/// The server's options, and the name of its model. A plain value.
struct ServerManners {
  bool has_slots = true;     ///< Not `--no-slots`.
  bool has_metrics = false;  ///< `--metrics`.
  std::string model = "small";
};

/// Which question a path is; nothing: the server has no such path.
[[nodiscard]] std::optional<Question> question_at(std::string_view path, ServerBuild build);

/// The server's answer at a path of `question_at`. `since` is its view when its metrics were read
/// last: its gauges count from there.
[[nodiscard]] ServerResponse response_at(std::string_view path, const ServerView& view,
                                         const ServerView& since, const SimulatedModel& model,
                                         const ServerManners& manners);

/// Its own head line, or empty.
[[nodiscard]] std::string_view server_header(ServerBuild build);

}  // namespace watchdog::test
