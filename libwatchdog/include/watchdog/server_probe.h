/// \file
/// What model servers tell of themselves beside their API, read from the answers' bytes. They may
/// hold anything: what is not of the shape counts as not told, and work and memory are bounded by
/// the bytes that are given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/model_client.h"
#include "watchdog/server_evidence.h"

namespace watchdog {

/// What is asked for to tell servers apart, in this order.
inline constexpr std::array<std::string_view, 3> telling_paths = {"/props", "/api/version",
                                                                  "/version"};
/// What the answer to one of `telling_paths` tells; `unknown`: nothing.
[[nodiscard]] ServerKind server_of(std::string_view path, int status,
                                   std::string_view server_header, std::string_view body);

/// No answer of a server about itself is longer.
inline constexpr std::size_t telling_bytes_max = 4U << 20U;

/// llama.cpp's `/props` (tools/server/README.md). A plain value.
struct ServerProps {
  std::optional<int> total_slots{};
  bool is_sleeping = false;
  std::optional<std::int64_t> context{};  ///< Tokens that fit into a slot.
  std::string model{};                    ///< A path; empty: not told.
  std::string build{};                    ///< Likewise.
};
/// Nothing: it is not a llama.cpp server's.
[[nodiscard]] std::optional<ServerProps> props_from(std::string_view body);

/// llama.cpp's `/slots`, of at most 1,024 of them. `n_prompt_tokens` is left out: it grows with the
/// answer. Nothing: it is no such list.
[[nodiscard]] std::optional<std::vector<SlotSight>> slot_sights_from(std::string_view body);

/// Totals and queue from a page of metrics in Prometheus' text format. A plain value.
struct ServerTotals {
  std::string_view by{};  ///< Whose names they have: `llamacpp`, `vllm`, `sglang`.
  std::optional<std::int64_t> decodes{}, prompt_total{}, written_total{}, running{}, queued{};
  std::optional<std::int64_t> started{};  ///< In seconds since 1970.
};
/// Of llama.cpp, vLLM and SGLang by their own names; what is told for several models or engines is
/// added up. Nothing: none of these names is there.
[[nodiscard]] std::optional<ServerTotals> totals_from(std::string_view page);

/// llama.cpp refuses everything so until it is ready.
[[nodiscard]] bool is_loading_answer(int status, std::string_view body);

/// One of Ollama's `/api/ps`. A plain value.
struct RunningModel {
  std::string name;
  std::int64_t bytes = 0, gpu_bytes = 0;
  std::int64_t context = 0;  ///< 0: not told.
};
/// At most 64. Nothing: it is no such list.
[[nodiscard]] std::optional<std::vector<RunningModel>> running_models_from(std::string_view body);

/// The first 64 names in `/v1/models`.
[[nodiscard]] std::vector<std::string> model_names_from(std::string_view body);
/// Of `/api/version` or `/version`; empty: not told.
[[nodiscard]] std::string version_from(std::string_view body);

}  // namespace watchdog
