/// \file
/// An answer put together from the chunks of a stream, or from one whole answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "llm/call_assembler.h"
#include "llm/error_body.h"
#include "watchdog/model_client.h"

namespace watchdog {

/// Limits of an answer, and its wanted parts. A plain value.
struct AnswerBounds {
  std::size_t bytes_max = 0;   ///< Of the kept part.
  bool probabilities = false;  ///< Of tokens: otherwise they are passed over.
};

/// Takes what the OpenAI API's servers send, as they send it: tool calls in fragments or whole,
/// with or without index and id; reasoning under either name. The work is linear in what comes. Use
/// from one thread at a time.
class AnswerAssembler {
 public:
  explicit AnswerAssembler(AnswerBounds bounds) : bounds_(bounds) {}

  enum class Fed : std::uint8_t {
    nothing,    ///< nothing new for the one who asked
    news,       ///< `progress` rose, `newest` holds the new text
    end,        ///< the stream said that it ends here
    malformed,  ///< it is not JSON
    too_large,  ///< the answer is above its bounds
    error,      ///< the server says that it failed: `error`
  };
  Fed feed(std::string_view data);

  [[nodiscard]] const ChatProgress& progress() const noexcept { return progress_; }
  [[nodiscard]] std::string_view newest() const noexcept { return newest_; }
  [[nodiscard]] const ErrorBody& error() const noexcept { return error_; }
  /// Something of an answer came.
  [[nodiscard]] bool begun() const noexcept { return begun_; }
  /// Its end came: a finish reason, or the end of the stream after something of an answer.
  [[nodiscard]] bool complete() const noexcept {
    return begun_ && (ended_ || !answer_.finish_reason.empty());
  }
  /// Returns the complete answer. Call it once.
  [[nodiscard]] ChatAnswer finish();

 private:
  void read_choice(const nlohmann::json& choice);
  void read_call(const nlohmann::json& call);
  void read_tokens(const nlohmann::json& choice);
  void read_usage(const nlohmann::json& chunk);
  bool read_prompt(const nlohmann::json& chunk);
  void append(std::string& to, const nlohmann::json* text);
  void count(std::size_t bytes);
  [[nodiscard]] bool is_too_large() const;

  AnswerBounds bounds_;
  std::size_t bytes_kept_ = 0;  ///< With what a call or a token costs besides its text.
  ChatAnswer answer_;
  std::string response_id_;
  CallAssembler calls_;
  ChatProgress progress_;
  std::string newest_;
  ErrorBody error_;
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace watchdog
