/// \file
/// What a model that is none says to a request: always the same to the same one.
///
/// A line `SAY text` of the newest message of the user makes it say that, `CALL name {json}` makes
/// it call that tool. A line `THEN` ends what is answered at once: the rest comes when results are
/// back. `AGAIN` at the end repeats the last part for ever. Without any of these it babbles.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace watchdog::test {

struct ScriptedCall {
  std::string id, name, arguments;
};

struct ScriptedToken {
  enum class Part : std::uint8_t { reasoning, text, call };
  Part part = Part::text;
  std::size_t call = 0;  ///< Which one.
  std::string text;
};

/// A plain value.
struct ScriptedAnswer {
  std::string id;  ///< Digits that identify the request.
  std::string model;
  bool stream = false;
  bool usage = false;  ///< The stream is to end with it.
  bool return_progress = false;
  std::string prompt;  ///< Everything to be read.
  std::int64_t prompt_tokens = 1, cached = 0;
  std::vector<ScriptedToken> tokens;
  std::vector<ScriptedCall> calls;
  bool cut = false;  ///< By the client's own limit of tokens.
};

/// How long answers are where nothing else says so. A plain value.
struct ScriptedLengths {
  std::int64_t prompt = 0;  ///< Tokens; 0: a quarter of its bytes.
  std::int64_t answer = 12;
  std::int64_t reasoning = 0;  ///< Before it.
};

/// `streams`: what the API does where the request does not say.
[[nodiscard]] ScriptedAnswer answer_to(const nlohmann::json& body, bool streams,
                                       const ScriptedLengths& lengths);

}  // namespace watchdog::test
