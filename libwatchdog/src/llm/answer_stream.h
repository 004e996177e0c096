/// \file
/// Reads the answers of model servers as they pass through the proxy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
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
  std::string finish_reason{};
  std::vector<ToolRequest>
      calls{};            ///< Complete ones, at the end of the answer. Without arguments: `{}`.
  std::string error{};    ///< The server's error text; empty: none.
  bool begun = false;     ///< A part of an answer came.
  bool complete = false;  ///< The server marked the end.
  bool lost = false;      ///< Too large to read, so this is only a part.
};

inline constexpr std::size_t answer_text_bytes_max = 16'384;

/// Reads answers of the OpenAI API (chat, completions, Responses), Anthropic, Ollama, Google
/// (Gemini) and llama.cpp, as streams or documents. It recognises the API by the content. The sizes
/// of the pieces do not matter. It keeps some 20 KiB, one event, and the arguments of calls; of
/// arguments above 1 MiB a digest. Use from one thread at a time.
class AnswerStream {
 public:
  /// Receives the answer's text and reasoning as they come; may be empty.
  using TextSink = std::function<void(std::string_view fragment)>;

  AnswerStream(int status, std::string_view content_type, TextSink sink);
  ~AnswerStream();
  AnswerStream(AnswerStream&&) noexcept;
  AnswerStream& operator=(AnswerStream&&) noexcept;

  void feed(std::string_view bytes);
  /// Ends the body, complete or not.
  void end();
  [[nodiscard]] const ObservedAnswer& heard() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
