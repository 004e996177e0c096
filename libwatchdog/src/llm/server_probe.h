/// \file
/// Reads what model servers report about themselves. The bytes may hold anything: other shapes
/// count as not reported, and work and memory are bounded by the size of the input.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/server_evidence.h"
#include "watchdog/model_client.h"

namespace watchdog {

/// The paths by which servers are recognised, in this order.
inline constexpr std::array<std::string_view, 3> probe_paths = {"/props", "/api/version",
                                                                "/version"};
/// Returns the kind that the answer to one of `probe_paths` shows; `unknown`: none.
[[nodiscard]] ServerKind server_of(std::string_view path, int status,
                                   std::string_view server_header, std::string_view body);

/// No answer of a server about itself is longer.
inline constexpr std::size_t probe_bytes_max = 4U << 20U;

/// llama.cpp's `/props` (tools/server/README.md). A plain value.
struct ServerProps {
  std::optional<int> total_slots{};
  bool is_sleeping = false;
  std::optional<std::int64_t> context{};  ///< Tokens of one slot.
  std::string model{};                    ///< A path; empty: not reported.
  std::string build{};                    ///< Likewise.
};
/// Returns nothing if it is not a llama.cpp server's.
[[nodiscard]] std::optional<ServerProps> props_from(std::string_view body);

/// Reads llama.cpp's `/slots`, at most 1,024. `n_prompt_tokens` is left out: it grows with the
/// answer. Returns nothing if it is not such a list.
[[nodiscard]] std::optional<std::vector<SlotSample>> slot_samples_from(std::string_view body);

/// Totals and queue from a page of metrics in Prometheus' text format. A plain value.
struct ServerTotals {
  std::string_view by{};  ///< The names that it uses: `llamacpp`, `vllm`, `sglang`.
  std::optional<std::int64_t> decodes{}, prompt_total{}, written_total{}, running{}, queued{};
  std::optional<std::int64_t> started{};  ///< In seconds since 1970.
};
/// Reads totals of llama.cpp, vLLM and SGLang by their own names; values of several models or
/// engines are added. Returns nothing if none of these names is there.
[[nodiscard]] std::optional<ServerTotals> totals_from(std::string_view page);

/// Returns true for the answer with which llama.cpp refuses requests until it is ready.
[[nodiscard]] bool is_loading_answer(int status, std::string_view body);

/// One of Ollama's `/api/ps`. A plain value.
struct RunningModel {
  std::string name{};
  std::int64_t bytes = 0, gpu_bytes = 0;
  std::int64_t context = 0;  ///< 0: not reported.
};
/// At most 64. Returns nothing if it is not such a list.
[[nodiscard]] std::optional<std::vector<RunningModel>> running_models_from(std::string_view body);

/// The first 64 names in `/v1/models`.
[[nodiscard]] std::vector<std::string> model_names_from(std::string_view body);
/// Reads `/api/version` or `/version`; empty: not reported.
[[nodiscard]] std::string version_from(std::string_view body);

}  // namespace watchdog
