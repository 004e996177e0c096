/// \file
/// Collects the parts of an answer, whatever API they come from.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "llm/call_assembler.h"
#include "llm/observed_answer.h"

namespace watchdog {

/// Texts, calls and numbers of one answer. Bounded: of texts it keeps the beginning, of arguments
/// above 1 MiB a digest, and calls of more than 8 MiB end the reading. Use from one thread at a
/// time.
class AnswerBuilder {
 public:
  /// Receives the answer's text and reasoning as they come; may be empty.
  using TextSink = std::function<void(std::string_view fragment)>;

  explicit AnswerBuilder(TextSink sink) : sink_(std::move(sink)) {}

  void begin() { heard_.begun = true; }
  /// Begins it; the first id and model that are not empty are kept.
  void name(std::string_view id, std::string_view model);
  /// `text`: a string, or a list of parts; null: none.
  void say_text(const nlohmann::json* text) { say(text, heard_.text_bytes, true); }
  void say_reasoning(const nlohmann::json* text) { say(text, heard_.reasoning_bytes, false); }
  /// A call, or a further part of the one with that index.
  void call(std::optional<std::int64_t> index, std::string_view id, std::string_view tool,
            const nlohmann::json* arguments);
  [[nodiscard]] bool has_call(std::string_view id) const { return calls_.has(id); }
  [[nodiscard]] bool has_call(std::int64_t index) const { return calls_.has(index); }
  /// Something came that is not kept.
  void move() { moved_ = true; }
  /// Numbers outside 1 to 2³¹-2 change nothing. Each number replaces the one before.
  void count_prompt(std::optional<std::int64_t> tokens) { count(heard_.prompt_tokens, tokens); }
  void count_output(std::optional<std::int64_t> tokens) { count(heard_.output_tokens, tokens); }
  void count_cached(std::optional<std::int64_t> tokens) { count(heard_.cached_tokens, tokens); }
  /// The largest count, of each of the two.
  void count_read(std::optional<std::int64_t> read, std::optional<std::int64_t> total);
  void complete() { heard_.complete = true; }
  /// The end, with the server's word for its reason.
  void finish(std::string_view reason);
  /// The server's error text, of which the beginning is kept.
  void fail(std::string_view message);
  /// A part of it cannot be read.
  void lose() { heard_.lost = true; }
  /// It has more calls than are kept: read no more of it.
  [[nodiscard]] bool is_full() const noexcept { return is_full_; }

  /// Counts a piece if one of the calls above brought content since the last piece.
  void end_piece();
  /// Ends the answer: its calls are complete now.
  void end();
  [[nodiscard]] const ObservedAnswer& heard() const noexcept { return heard_; }

 private:
  void say(const nlohmann::json* text, std::int64_t& bytes, bool kept);
  static void count(std::int64_t& into, std::optional<std::int64_t> number);

  TextSink sink_;
  ObservedAnswer heard_;
  CallAssembler calls_{arguments_bytes_max};
  std::size_t calls_bytes_ = 0;
  bool moved_ = false;
  bool is_full_ = false;

  static constexpr std::size_t arguments_bytes_max = 1U << 20U;
};

}  // namespace watchdog
