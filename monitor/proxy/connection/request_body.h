/// \file
/// What of a request's body its way through the proxy depends on.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/server_evidence.h"

namespace watchdog::monitor {

/// A request's body as far as it is read. A plain value.
struct RequestBody {
  std::shared_ptr<const std::string> content{};  ///< Unpacked; null: it is not understood.
  bool is_cut = false;                           ///< `content` is its beginning.
  std::string unread{};           ///< Why not all of it is read, for people; empty: all is.
  bool takes_members = false;     ///< It is a whole JSON object, and not packed.
  std::string model{};            ///< JSON text; empty: none was found.
  std::optional<bool> streams{};  ///< Nothing: it does not say.
  std::string progress{};         ///< `return_progress`, JSON text.
  TaskParameters parameters{};    ///< Without `stream`.
};

/// Reads a body. `bytes` is the beginning of it unless `is_whole`; of its content at most
/// `content_bytes_max` are kept. `coding`: Content-Encoding. One pass; thread-safe.
[[nodiscard]] RequestBody read_request_body(const std::shared_ptr<const std::string>& bytes,
                                            std::string_view coding, bool is_whole,
                                            std::size_t content_bytes_max);

/// True if the beginning of a body without a coding names its model.
[[nodiscard]] bool names_model(std::string_view beginning) noexcept;

}  // namespace watchdog::monitor
