/// \file
/// Reads the answers of model servers as they pass through the proxy.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "llm/observed_answer.h"

namespace watchdog {

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
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
