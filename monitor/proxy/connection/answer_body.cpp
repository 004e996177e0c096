// The same answer must pass whether it comes before or after a head of ours. So below such a head
// its first bytes decide and not its type, which many servers get wrong. Bytes that cannot be
// judged yet are held: blanks, and an object that may be an error.
#include "proxy/connection/answer_body.h"

#include <algorithm>
#include <utility>

#include "proxy/connection/json_members.h"
#include "proxy/connection/message_head.h"

namespace watchdog::monitor {
namespace {

/// Of an error that must be converted. A larger object is an answer.
constexpr std::size_t held_bytes_max = 65'536;
constexpr int first_success = 200;
constexpr int first_redirect = 300;

/// Returns the coding without blanks; empty: it changes nothing.
std::string coding_of(std::string_view header) {
  std::string coding(header);
  std::erase_if(coding, [](char c) { return c == ' ' || c == '\t'; });
  return is_header(coding, "identity") ? std::string() : coding;
}

}  // namespace

AnswerBody::AnswerBody(const Client& client, const Head& head)
    : client_(client),
      status_(head.status),
      coding_(coding_of(head.coding)),
      has_come_(true),
      form_(form_of_type(head.type)) {
  if (!coding_.empty()) unpacker_ = unpacker_for(coding_);
  // Progress that the proxy asked for must not reach the client packed either.
  unpacks_ = unpacker_ && (client.has_head || AnswerFilter::changes(client.progress));
  const bool is_good = status_ >= first_success && status_ < first_redirect;
  if (client.has_head && !is_good) way_ = Way::refusal;
  if (client.has_head && is_good && client.streams && form_ == AnswerForm::opaque)
    way_ = Way::undecided;
  // Without the first bytes an unknown form may still become events.
  if (!is_good || !client.streams) is_first_ = false;
  const bool is_packed = !coding_.empty() && !unpacks_;
  if (is_packed) form_ = AnswerForm::opaque;
  filter_ = AnswerFilter(form_, client.progress);
}

std::string_view AnswerBody::obstacle() const noexcept {
  return client_.has_head && !is_read() ? std::string_view(coding_) : std::string_view();
}

bool AnswerBody::changes() const noexcept {
  return unpacks_ || (form_ == AnswerForm::events && AnswerFilter::changes(client_.progress));
}

bool AnswerBody::takes_insertions() const noexcept {
  if (!has_come_) return true;
  const bool is_packed = !coding_.empty() && !unpacks_;
  return way_ == Way::passes && !is_packed && form_ != AnswerForm::opaque && filter_.between();
}

AnswerBody::Piece AnswerBody::pass(std::string bytes) {
  Piece piece;
  is_empty_ = false;
  if (coding_.empty()) {
    piece.read = bytes;  // the copy waits longer, and has no room to spare
    piece.given = give(std::move(bytes));
    return piece;
  }
  if (unpacker_) {
    // A few bytes may unpack to gigabytes.
    constexpr std::size_t piece_bytes_max = 16 * 1'024 * 1'024;
    std::string content;
    if (unpacker_->feed(bytes, content, piece_bytes_max) == Unpacker::Fed::good) {
      piece.read = std::move(content);
    } else {
      piece.is_broken = unpacks_;
    }
  }
  if (!unpacks_) {
    piece.given = filter_.pass(std::move(bytes));
  } else if (piece.read) {
    piece.given = give(*piece.read);
  }
  return piece;
}

std::string AnswerBody::give(std::string bytes) {
  if (bytes.empty()) return {};
  if (way_ == Way::passes) {
    const bool names_nothing = std::exchange(is_first_, false) && form_ == AnswerForm::opaque;
    if (names_nothing && start_of_body(bytes) == AnswerStart::events) {
      form_ = AnswerForm::events;
      filter_ = AnswerFilter(form_, AnswerFilter::Progress::none);
    }
    return filter_.pass(std::move(bytes));
  }
  const auto room = way_ == Way::refusal ? held_bytes_max - held_.size() : bytes.size();
  held_.append(bytes, 0, room);
  if (way_ == Way::undecided) decide();
  if (way_ == Way::document && held_.size() > held_bytes_max) way_ = Way::passes;
  return way_ == Way::passes ? filter_.pass(std::exchange(held_, {})) : std::string();
}

void AnswerBody::decide() {
  switch (start_of_body(held_)) {
    case AnswerStart::unknown:
      if (held_.size() < held_bytes_max) return;
      way_ = Way::refusal;
      held_.resize(held_bytes_max);
      return;
    case AnswerStart::events:
      form_ = AnswerForm::events;
      break;
    case AnswerStart::json:
      if (!streams_lines(client_.api)) {
        way_ = Way::document;
        return;
      }
      form_ = AnswerForm::lines;
      break;
    case AnswerStart::other:
      way_ = Way::refusal;
      held_.resize(std::min(held_.size(), held_bytes_max));
      return;
  }
  way_ = Way::passes;
  filter_ = AnswerFilter(form_, client_.progress);
}

std::optional<std::string> AnswerBody::rest() {
  if (unpacks_ && !is_empty_ && !unpacker_->is_whole()) return std::nullopt;
  if (way_ == Way::passes) return filter_.rest();
  const bool is_answer = way_ == Way::document && member_of(held_, "error").empty();
  if (is_answer || !client_.streams) return std::exchange(held_, {});
  return error_in_stream(client_.api, refusal_text());
}

std::string AnswerBody::refusal_text() const {
  if (!member_of(held_, "error").empty()) return held_;
  return error_body(client_.api, status_, "server_error",
                    held_.empty() ? "the model server refused the request" : held_);
}

}  // namespace watchdog::monitor
