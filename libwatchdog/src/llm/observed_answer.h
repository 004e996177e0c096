/// \file
/// What was read of a model server's answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "watchdog/model_client.h"

namespace watchdog {

/// The part of an answer that was read so far. A plain value.
struct ObservedAnswer {
  std::string id{};  ///< The server's own id of it.
  std::string model{};
  std::string text{};  ///< Its first `answer_text_bytes_max` bytes.
  std::int64_t text_bytes = 0;
  std::int64_t reasoning_bytes = 0;
  std::int64_t pieces = 0;         ///< Pieces with content: about one for each token.
  std::int64_t prompt_read = 0;    ///< Tokens of the prompt that were read, and
  std::int64_t prompt_tokens = 0;  ///< how many there are; 0: not reported.
  std::int64_t output_tokens = 0;  ///< Likewise.
  std::int64_t cached_tokens = 0;  ///< Tokens of the prompt that the server had already.
  std::string finish_reason{};
  std::vector<ToolRequest>
      calls{};            ///< Complete ones, at the end of the answer. Without arguments: `{}`.
  std::string error{};    ///< The server's error text; empty: none.
  bool begun = false;     ///< A part of an answer came.
  bool complete = false;  ///< The server marked the end.
  bool lost = false;      ///< Too large to read, so this is only a part.
};

inline constexpr std::size_t answer_text_bytes_max = 16'384;

}  // namespace watchdog
