/// \file
/// The body of a server's answer on its way to the client.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ingest/unpacker.h"
#include "proxy/connection/answer_filter.h"
#include "proxy/connection/model_api.h"

namespace watchdog::monitor {

/// Decides what the client gets of a body. A head of our own says that all is well and names no
/// coding. So below it a packed body is unpacked, and an error becomes one in the form that the
/// API's clients read. Use from one thread at a time.
class AnswerBody {
 public:
  /// The client's request and state. A plain value.
  struct Client {
    ModelApi api = ModelApi::other;
    bool streams = false;
    bool has_head = false;  ///< It has a head of ours.
    AnswerFilter::Progress progress = AnswerFilter::Progress::none;
  };
  /// Of the server's head.
  struct Head {
    int status = 0;
    std::string_view type{};    ///< Content-Type.
    std::string_view coding{};  ///< Content-Encoding.
  };

  /// No head has come.
  AnswerBody() = default;
  AnswerBody(const Client& client, const Head& head);

  /// The coding in which the client would get the body below a head that does not name it; empty:
  /// it can be passed on.
  [[nodiscard]] std::string_view obstacle() const noexcept;
  /// True if the client gets it without its coding. A head that is passed on must not name that.
  [[nodiscard]] bool unpacks() const noexcept { return unpacks_; }
  /// True if `Piece::read` has the content.
  [[nodiscard]] bool is_read() const noexcept { return coding_.empty() || unpacker_ != nullptr; }
  /// True if the client gets another number of bytes than the server sent.
  [[nodiscard]] bool changes() const noexcept;

  /// A plain value.
  struct Piece {
    std::string given{};                ///< For the client, now.
    std::optional<std::string> read{};  ///< Its content; nothing: it is not understood.
    bool is_broken = false;             ///< The client cannot get the rest.
  };
  /// Takes the next bytes as they came.
  [[nodiscard]] Piece pass(std::string bytes);
  /// Returns what is left for the client at the end of the body; nothing: its end is missing.
  [[nodiscard]] std::optional<std::string> rest();

  /// True if something of ours may follow what the client has: a comment, or an error.
  [[nodiscard]] bool takes_insertions() const noexcept;
  [[nodiscard]] const AnswerFilter& filter() const noexcept { return filter_; }

 private:
  /// How the bytes go on.
  enum class Way : std::uint8_t {
    passes,     ///< as they come
    undecided,  ///< the first ones will tell
    document,   ///< a whole answer or an error, which its end tells
    refusal     ///< the server's error, or no answer at all
  };
  std::string give(std::string bytes);
  void decide();
  [[nodiscard]] std::string refusal_text() const;

  Client client_{};
  int status_ = 0;
  std::string coding_;  ///< Empty: none.
  bool has_come_ = false;
  bool unpacks_ = false;
  std::unique_ptr<Unpacker> unpacker_;
  AnswerForm form_ = AnswerForm::opaque;
  AnswerFilter filter_;
  Way way_ = Way::passes;
  bool is_first_ = true;  ///< Nothing of the body came.
  bool is_empty_ = true;  ///< Likewise, packed.
  std::string held_;
};

}  // namespace watchdog::monitor
