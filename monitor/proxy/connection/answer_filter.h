/// \file
/// The body of an answer on its way to the client: what of it shows that the model is at work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/connection/answer_form.h"

namespace watchdog::monitor {

/// Passes bytes on as they come, in any pieces, and counts. Use from one thread at a time.
class AnswerFilter {
 public:
  using Form = AnswerForm;
  /// Events about the prompt's progress, until the answer itself begins.
  enum class Progress : std::uint8_t {
    none,    ///< not requested
    passed,  ///< the client did
    hidden,  ///< asked for on its behalf: it gets a comment instead
    dropped  ///< likewise, and it gets nothing
  };
  /// True if the client gets other bytes than the server sent.
  [[nodiscard]] static constexpr bool changes(Progress progress) noexcept {
    return progress == Progress::hidden || progress == Progress::dropped;
  }
  explicit AnswerFilter(Form form = Form::opaque, Progress progress = Progress::none)
      : form_(form), progress_(form == Form::events ? progress : Progress::none) {}

  /// Returns the bytes for the client now. While progress is possible, an incomplete event waits.
  [[nodiscard]] std::string pass(std::string bytes);
  /// Returns the waiting bytes at the end of the body.
  [[nodiscard]] std::string rest();

  /// Events, lines or pieces so far that are an answer's or its progress.
  [[nodiscard]] std::int64_t pieces() const noexcept { return pieces_; }
  [[nodiscard]] std::int64_t prompt_read() const noexcept { return prompt_read_; }
  [[nodiscard]] std::int64_t prompt_tokens() const noexcept { return prompt_tokens_; }
  /// True if what the client has ends where an event or a line ends, or in front of all.
  [[nodiscard]] bool between() const noexcept { return !in_event_ && line_bytes_ == 0; }

 private:
  void count(std::string_view bytes);
  void end_line();
  bool read_progress(std::string_view event);
  std::string filter_events(std::string_view bytes);

  Form form_;
  Progress progress_;
  bool in_event_ = false;  ///< Lines of an event came, and not its end. Comments are none.
  bool is_ping_ = false;   ///< The event under way is one.
  std::string line_;       ///< Its first characters.
  std::size_t line_bytes_ = 0;
  std::string event_;  ///< Held back.
  std::int64_t pieces_ = 0;
  std::int64_t prompt_read_ = 0;
  std::int64_t prompt_tokens_ = 0;
};

}  // namespace watchdog::monitor
