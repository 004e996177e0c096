/// \file
/// An answer put together from the chunks of a stream, or from one whole answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "llm/error_body.h"
#include "watchdog/model.h"

namespace watchdog {

/// What may come, and what is wanted of it. A plain value.
struct AnswerBounds {
  std::size_t bytes_max = 0;   ///< Of what is kept.
  bool probabilities = false;  ///< Of tokens: otherwise they are passed over.
};

/// More calls at once are no answer that anybody can use.
inline constexpr std::size_t answer_calls_max = 1'000;

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
  /// What was put together. To be called once.
  [[nodiscard]] ChatAnswer take();

 private:
  void read_choice(const nlohmann::json& choice);
  void read_call(const nlohmann::json& call);
  [[nodiscard]] std::optional<std::size_t> known_place(std::optional<std::int64_t> index,
                                                       std::string_view id,
                                                       std::string_view name) const;
  std::size_t place_of(const nlohmann::json& call, std::string_view id, std::string_view name);
  void read_tokens(const nlohmann::json& choice);
  void read_usage(const nlohmann::json& chunk);
  bool read_prompt(const nlohmann::json& chunk);
  void append(std::string& to, const nlohmann::json* text);
  void count(std::size_t bytes);
  [[nodiscard]] bool is_too_large() const;

  /// Whether a text that grows is one whole object by now, as its brackets tell.
  class ObjectText {
   public:
    void grow(std::string_view piece);
    [[nodiscard]] bool is_whole() const noexcept { return state_ == State::whole; }

   private:
    enum class State : std::uint8_t { empty, begun, in_string, escaped, whole, other };
    void grow(char c);
    State state_ = State::empty;
    std::size_t depth_ = 0;
  };
  /// What is known of a call besides what it says.
  struct CallPlace {
    std::optional<std::int64_t> index;
    ObjectText arguments{};
  };

  AnswerBounds bounds_;
  std::size_t bytes_kept_ = 0;  ///< With what a call or a token costs besides its text.
  ChatAnswer answer_;
  std::string response_id_;
  std::vector<CallPlace> places_;                            ///< Of each call.
  std::map<std::int64_t, std::size_t> newest_by_index_;      ///< Calls.
  std::map<std::string, std::size_t, std::less<>> by_id_{};  ///< Calls.
  ChatProgress progress_;
  std::string newest_;
  ErrorBody error_;
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace watchdog
