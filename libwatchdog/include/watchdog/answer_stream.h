/// \file
/// What a model's server answers, read along while it passes by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/model.h"

namespace watchdog {

/// What was heard of an answer so far. A plain value.
struct HeardAnswer {
  std::string id;  ///< The server's own name for it.
  std::string model;
  std::string text;  ///< Its first `answer_text_bytes_max` bytes.
  std::int64_t text_bytes = 0;
  std::int64_t reasoning_bytes = 0;
  std::int64_t pieces = 0;         ///< With something of the answer in it: about one a token.
  std::int64_t prompt_read = 0;    ///< Tokens of the prompt, as told while it is read, and
  std::int64_t prompt_tokens = 0;  ///< how many there are; 0: not told.
  std::int64_t output_tokens = 0;  ///< Likewise.
  std::string finish_reason;
  std::vector<ToolRequest> calls;  ///< Once it is over. Without arguments: `{}`.
  std::string error;               ///< What the server says went wrong; empty: nothing.
  bool begun = false;              ///< Something of an answer came.
  bool complete = false;           ///< It said itself that this is all.
  bool lost = false;               ///< It is too large to be read: there is more than is told here.
};

inline constexpr std::size_t answer_text_bytes_max = 16'384;

/// Takes the answers of the OpenAI API (chat, completions, Responses), Anthropic's, Ollama's and
/// llama.cpp's own, as streams and whole, and tells them apart by what they look like. How the
/// bytes are cut changes nothing. Keeps some 20 KiB, one event, and the arguments of calls; of
/// arguments above 1 MiB a digest. Use from one thread at a time.
class AnswerStream {
 public:
  /// Gets the answer's text and reasoning as they come; may be empty.
  using TextSink = std::function<void(std::string_view fragment)>;

  AnswerStream(int status, std::string_view content_type, TextSink sink);
  ~AnswerStream();
  AnswerStream(AnswerStream&&) noexcept;
  AnswerStream& operator=(AnswerStream&&) noexcept;

  void feed(std::string_view bytes);
  /// The body is over, whole or not.
  void end();
  [[nodiscard]] const HeardAnswer& heard() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
