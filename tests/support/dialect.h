/// \file
/// How each API writes an answer, event by event, as its servers do.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "support/scripted_answer.h"
#include "support/simulated_server.h"

namespace watchdog::test {

/// One answer. Its functions give bytes of the body, without the framing of HTTP.
class Dialect {
 public:
  virtual ~Dialect() = default;
  [[nodiscard]] virtual std::string_view stream_type() const { return "text/event-stream"; }
  /// The prompt's progress, where the API has it.
  [[nodiscard]] virtual std::string progress(const Piece&) { return {}; }
  [[nodiscard]] virtual std::string ping() { return ":\n\n"; }
  /// A token, with all that has to come before it.
  [[nodiscard]] virtual std::string token(const ScriptedToken& token, bool is_first) = 0;
  [[nodiscard]] virtual std::string end(const Piece& done) = 0;
  /// An error when the head has gone out already; else `error`.
  [[nodiscard]] virtual std::string error_in_stream(const Piece& piece);
  [[nodiscard]] virtual std::string error(const Piece& piece);
  /// Not a stream.
  [[nodiscard]] virtual std::string whole(const Piece& done) = 0;
};

using Speaker = std::unique_ptr<Dialect> (*)(const ScriptedAnswer& answer,
                                             const SimulatedModel& model);

/// What is spoken at a path; `speaker` null: nothing is.
struct Spoken {
  Speaker speaker = nullptr;
  bool streams = false;  ///< Unless set otherwise.
  bool embeds = false;   ///< No token is written.
};
/// The arguments of a speaker must outlive the dialect that it makes.
[[nodiscard]] Spoken spoken_at(std::string_view path);

[[nodiscard]] std::unique_ptr<Dialect> openai_chat(const ScriptedAnswer&, const SimulatedModel&);
[[nodiscard]] std::unique_ptr<Dialect> openai_text(const ScriptedAnswer&, const SimulatedModel&);
[[nodiscard]] std::unique_ptr<Dialect> openai_embeddings(const ScriptedAnswer&,
                                                         const SimulatedModel&);
[[nodiscard]] std::unique_ptr<Dialect> openai_responses(const ScriptedAnswer&,
                                                        const SimulatedModel&);
[[nodiscard]] std::unique_ptr<Dialect> anthropic_messages(const ScriptedAnswer&,
                                                          const SimulatedModel&);
[[nodiscard]] std::unique_ptr<Dialect> ollama_chat(const ScriptedAnswer&, const SimulatedModel&);
[[nodiscard]] std::unique_ptr<Dialect> ollama_generate(const ScriptedAnswer&,
                                                       const SimulatedModel&);
[[nodiscard]] std::unique_ptr<Dialect> llama_completion(const ScriptedAnswer&,
                                                        const SimulatedModel&);

/// Text of one part of the answer, put together.
[[nodiscard]] std::string text_of(const ScriptedAnswer& answer, ScriptedToken::Part part);
/// As llama.cpp reports them with the end of an answer.
[[nodiscard]] std::string timings_of(const Piece& done, const SimulatedModel& model);
[[nodiscard]] std::string progress_of(const Piece& piece, const SimulatedModel& model);

}  // namespace watchdog::test
