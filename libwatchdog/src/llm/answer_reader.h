/// \file
/// The body of an answer to a question, as it arrives: a stream of events, or one document.
#pragma once

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>

#include "llm/assembler.h"
#include "llm/error_body.h"
#include "llm/event_stream.h"
#include "watchdog/model_client.h"
#include "watchdog/result.h"

namespace watchdog {

/// Why a body is not an answer.
struct AnswerFault {
  enum class Kind : std::uint8_t { malformed, too_large, cut_off, error, cancelled };
  Kind kind = Kind::malformed;
  std::string excerpt{};  ///< Of a body that is not an answer.
  ErrorBody error{};      ///< If the server says itself what failed.
};

/// Pure but for the sink. Use from one thread at a time.
class AnswerReader {
 public:
  /// `sink` may be empty, and outlives this. `stop` is looked at before each event.
  AnswerReader(std::string_view content_type, AnswerBounds bounds, const ChatSink& sink,
               std::stop_token stop = {});

  /// Returns false if it is decided, or cancelled; no more need be read.
  bool feed(std::string_view bytes);
  /// At the end of the body, or where it was `cut` off.
  [[nodiscard]] Result<ChatAnswer, AnswerFault> end(bool cut);

 private:
  enum class Form : std::uint8_t { unknown, events, document };
  bool check_events(EventStream::Fed fed);
  bool read_event(std::string_view data);
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] AnswerFault fault(AnswerFault::Kind kind) const;

  const ChatSink& sink_;
  std::stop_token stop_;
  std::size_t bytes_max_;
  Form form_;
  EventStream events_;
  AnswerAssembler assembler_;
  AnswerAssembler::Fed last_ = AnswerAssembler::Fed::nothing;
  bool stopped_ = false;
  std::string document_;
  std::string excerpt_;
};

}  // namespace watchdog
