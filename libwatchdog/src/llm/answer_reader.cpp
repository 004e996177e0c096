#include "llm/answer_reader.h"

#include <algorithm>
#include <utility>

namespace watchdog {
namespace {

using Fed = AnswerAssembler::Fed;

constexpr std::size_t excerpt_bytes_max = 4'096;

/// The limit of the JSON around the answer itself, in an event or a document.
constexpr std::size_t around_bytes_max = 1U << 20U;

bool is_decided(Fed fed) {
  return fed != Fed::nothing && fed != Fed::news;
}

}  // namespace

AnswerReader::AnswerReader(std::string_view content_type, AnswerBounds bounds, const ChatSink& sink,
                           std::stop_token stop)
    : sink_(sink),
      stop_(std::move(stop)),
      bytes_max_(bounds.bytes_max + around_bytes_max),
      form_(content_type.starts_with("text/event-stream") ? Form::events : Form::unknown),
      events_(bytes_max_),
      assembler_(bounds) {}

bool AnswerReader::feed(std::string_view bytes) {
  if (is_over()) return false;
  if (excerpt_.size() < excerpt_bytes_max)
    excerpt_.append(bytes.substr(0, excerpt_bytes_max - excerpt_.size()));
  std::string begun;
  if (form_ == Form::unknown) {
    begun = document_.append(bytes);
    const auto first = document_.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (first == std::string::npos) return document_.size() < excerpt_bytes_max;
    // Some servers send events under another name.
    const char begin = document_[first];
    form_ = begin == 'd' || begin == ':' || begin == 'e' ? Form::events : Form::document;
    bytes = begun;
    document_.clear();
  }
  if (form_ == Form::events) {
    return check_events(
        events_.feed(bytes, [this](std::string_view data) { return read_event(data); }));
  }
  if (document_.size() + bytes.size() > bytes_max_) {
    last_ = Fed::too_large;
    return false;
  }
  document_.append(bytes);
  return true;
}

bool AnswerReader::check_events(EventStream::Fed fed) {
  if (fed == EventStream::Fed::too_large) last_ = Fed::too_large;
  return !is_over();
}

bool AnswerReader::is_over() const {
  return stopped_ || is_decided(last_);
}

bool AnswerReader::read_event(std::string_view data) {
  stopped_ = stop_.stop_requested();
  if (stopped_) return false;
  last_ = assembler_.feed(data);
  if (last_ == Fed::malformed) excerpt_ = data.substr(0, excerpt_bytes_max);
  if (last_ == Fed::news && sink_) sink_(assembler_.progress(), assembler_.newest());
  return !is_decided(last_);
}

Result<ChatAnswer, AnswerFault> AnswerReader::end(bool cut) {
  using Kind = AnswerFault::Kind;
  if (!is_over() && form_ == Form::events) {
    check_events(events_.end([this](std::string_view data) { return read_event(data); }));
    if (last_ == Fed::malformed) last_ = Fed::nothing;  // half an event
    cut = true;  // unless something said that this is the end
  } else if (!is_over() && form_ == Form::document && !cut) {
    read_event(document_);
  }
  if (stopped_) return fault(Kind::cancelled);
  if (last_ == Fed::error) return fault(Kind::error);
  if (last_ == Fed::too_large) return fault(Kind::too_large);
  if (last_ == Fed::malformed) return fault(Kind::malformed);
  if (assembler_.complete() || (form_ == Form::document && assembler_.begun()))
    return assembler_.finish();
  return fault(cut ? Kind::cut_off : Kind::malformed);
}

AnswerFault AnswerReader::fault(AnswerFault::Kind kind) const {
  return {.kind = kind, .excerpt = excerpt_, .error = assembler_.error()};
}

}  // namespace watchdog
