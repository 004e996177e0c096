// Finds the JSON values in an answer's bytes. Bytes are events, lines or one document, by the
// content type or by how they begin. `answer_value.h` reads the values. It skips what it does
// not understand, because the client reads the same bytes and judges them itself.
#include "llm/answer_stream.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "codec/fields.h"
#include "llm/answer_value.h"
#include "llm/error_body.h"
#include "llm/event_stream.h"

namespace watchdog {
namespace {

using nlohmann::json;

/// One event, one line or one whole answer. The Responses API repeats instructions and tools in
/// its events.
constexpr std::size_t answer_event_bytes_max = 4U << 20U;
constexpr std::size_t answer_values_max = 200'000;
constexpr std::size_t error_bytes_max = 16'384;

}  // namespace

class AnswerStream::State {
 public:
  State(int status, std::string_view content_type, TextSink text_sink)
      : answer_(std::move(text_sink)) {
    if (status >= 400) {
      form_ = Form::error;
    } else if (content_type.starts_with("text/event-stream")) {
      form_ = Form::events;
    } else if (content_type.find("ndjson") != std::string_view::npos) {
      form_ = Form::lines;
    }
  }

  void feed(std::string_view bytes) {
    std::string begun;
    if (form_ == Form::unknown) {
      begun = rest_.append(bytes);
      const auto first = begun.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
      if (first == std::string::npos) return rest_.size() > error_bytes_max ? lose() : void();
      rest_.clear();
      const char begin = begun[first];  // some servers send events under another name
      form_ = begin == 'd' || begin == ':' || begin == 'e' ? Form::events : Form::document;
      bytes = begun;
    }
    switch (form_) {
      case Form::events:
        check_events(
            events_.feed(bytes, [this](std::string_view data) { return read_event(data); }));
        break;
      case Form::lines:
        feed_lines(bytes);
        break;
      case Form::error:
        rest_.append(bytes.substr(0, error_bytes_max - std::min(rest_.size(), error_bytes_max)));
        break;
      case Form::document:
        if (rest_.size() + bytes.size() > answer_event_bytes_max) return lose();
        rest_.append(bytes);
        break;
      case Form::unknown:
      case Form::over:
        break;
    }
  }

  void end() {
    switch (form_) {
      case Form::events:
        check_events(events_.end([this](std::string_view data) { return read_event(data); }));
        break;
      case Form::lines:
        read_text(rest_);
        break;
      case Form::document:
        // A stream of lines whose server calls it a document.
        if (!read_text(rest_) && !read_array(rest_)) feed_lines(std::exchange(rest_, {}) + '\n');
        break;
      case Form::error:
        answer_.fail(error_body_from(std::string_view(rest_)).message);
        if (answer_.heard().error.empty()) answer_.fail("no reason given");
        break;
      case Form::unknown:
      case Form::over:
        break;
    }
    form_ = Form::over;
    rest_ = std::string();
    answer_.end();
  }

  [[nodiscard]] const ObservedAnswer& heard() const noexcept { return answer_.heard(); }

 private:
  enum class Form : std::uint8_t { unknown, events, lines, document, error, over };

  void lose() {
    answer_.lose();
    form_ = Form::over;
    rest_ = std::string();
  }

  /// One that is not understood is passed over.
  bool read_event(std::string_view data) {
    read_text(data);
    return form_ != Form::over;
  }

  void check_events(EventStream::Fed fed) {
    if (fed == EventStream::Fed::too_large) lose();
  }

  void feed_lines(std::string_view bytes) {
    while (!bytes.empty() && form_ != Form::over) {
      const auto end = bytes.find('\n');
      const auto piece = bytes.substr(0, end);
      if (rest_.size() + piece.size() > answer_event_bytes_max) return lose();
      rest_.append(piece);
      if (end == std::string_view::npos) return;
      read_text(std::exchange(rest_, {}));
      bytes.remove_prefix(end + 1);
    }
  }

  /// Gemini's stream for clients that did not ask for events. False: it is not such an array.
  bool read_array(std::string_view data) {
    const auto value = parse_json(data, answer_values_max);
    if (!value || !value->is_array()) return false;
    for (const json& piece : *value)
      if (piece.is_object()) read_value(piece);
    return true;
  }

  void read_value(const json& value) {
    read_answer_value(value, answer_);
    answer_.end_piece();
    if (answer_.is_full()) lose();
  }

  /// An event, a line or a document. False: it is not a JSON object. Unknown members are skipped.
  bool read_text(std::string_view data) {
    if (data.starts_with("[DONE]")) {
      if (answer_.heard().begun) answer_.complete();
      return true;
    }
    const auto value = parse_json(data, answer_values_max);
    if (!value) {
      if (value.error().code == ErrorCode::exhausted) answer_.lose();
      return false;
    }
    if (!value->is_object()) return false;
    read_value(*value);
    return true;
  }

  Form form_ = Form::unknown;
  AnswerBuilder answer_;
  EventStream events_{answer_event_bytes_max};
  std::string rest_;  ///< A line or a document, as far as it came.
};

AnswerStream::AnswerStream(int status, std::string_view content_type, TextSink sink)
    : state_(std::make_unique<State>(status, content_type, std::move(sink))) {}
AnswerStream::~AnswerStream() = default;
AnswerStream::AnswerStream(AnswerStream&&) noexcept = default;
AnswerStream& AnswerStream::operator=(AnswerStream&&) noexcept = default;

void AnswerStream::feed(std::string_view bytes) {
  state_->feed(bytes);
}
void AnswerStream::end() {
  state_->end();
}
const ObservedAnswer& AnswerStream::heard() const noexcept {
  return state_->heard();
}

}  // namespace watchdog
