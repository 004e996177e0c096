// A model's answer is the same in whatever pieces it comes, and stays within its bound. The counts
// that are reported on the way never fall.

#include <random>
#include <string_view>

#include "fuzz/fuzz.h"
#include "llm/answer_reader.h"

using watchdog::AnswerReader;
using watchdog::ChatAnswer;
using watchdog::ChatProgress;
using watchdog::ChatSink;

namespace {

constexpr std::size_t answer_bytes_max = 2'000;

/// Everything that a reader makes of the pieces, as one text.
std::string read(std::string_view body, std::string_view content_type, const auto& next_bytes) {
  ChatProgress before;
  std::string reported;
  const ChatSink sink = [&](const ChatProgress& progress, std::string_view text) {
    FUZZ_REQUIRE(progress.prompt_tokens >= before.prompt_tokens);
    FUZZ_REQUIRE(progress.prompt_read >= before.prompt_read);
    FUZZ_REQUIRE(progress.pieces >= before.pieces && progress.bytes >= before.bytes);
    before = progress;
    reported += text;
  };
  AnswerReader reader(content_type, {.bytes_max = answer_bytes_max, .probabilities = true}, sink);
  while (!body.empty()) {
    const auto piece = body.substr(0, next_bytes());
    body.remove_prefix(piece.size());
    if (!reader.feed(piece)) break;
  }
  auto answer = reader.end(false);
  if (!answer) return "fault " + std::to_string(static_cast<int>(answer.error().kind)) + reported;

  std::string all = answer->text + "|" + answer->reasoning + "|" + answer->finish_reason;
  std::size_t bytes = answer->text.size() + answer->reasoning.size();
  for (const auto& call : answer->tool_calls) {
    FUZZ_REQUIRE(!call.id.empty());
    bytes += call.arguments.size();
    all += "|" + call.id + " " + call.name + " " + call.arguments;
  }
  for (const auto& token : answer->tokens)
    FUZZ_REQUIRE(token.probability >= 0 && token.probability <= 1);
  FUZZ_REQUIRE(bytes <= answer_bytes_max);
  FUZZ_REQUIRE(static_cast<std::int64_t>(bytes) == before.bytes);
  FUZZ_REQUIRE(reported.size() == answer->text.size() + answer->reasoning.size());
  return all + "|" + std::to_string(answer->output_tokens) + "|" + reported;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {
      "data: {\"choices\":[{\"delta\":{\"content\":\"Hi 中\"}}],\"id\":\"x\"}\n\n",
      "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm\"}}]}\r\n\r\n",
      "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"completion_"
      "tokens\":3}}\n\ndata: [DONE]\n\n",
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{"
      "\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\n",
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":{}}}]}}]}\n\n",
      "data: {\"prompt_progress\":{\"total\":9,\"cache\":1,\"processed\":4}}\n\n",
      "data: {\"choices\":[{\"delta\":{\"content\":\"A\"},\"logprobs\":{\"content\":[{\"token\":"
      "\"A\",\"logprob\":-0.5}]}}]}\n\n",
      "data: {\"error\":{\"code\":500,\"message\":\"no\"}}\n\n",
      "error: {\"error\":\"no\"}\n\n",
      ": ping\n\n",
      "{\"choices\":[{\"message\":{\"content\":\"All\"},\"finish_reason\":\"stop\"}]}",
      "<html></html>",
      "\xEF\xBB\xBF"};
}

void try_input(std::string_view body) {
  std::mt19937 random(static_cast<unsigned>(body.size()));
  for (const char* type : {"text/event-stream", "application/json"}) {
    const auto whole = read(body, type, [&] { return body.size(); });
    FUZZ_REQUIRE(read(body, type, [] { return 1; }) == whole);
    FUZZ_REQUIRE(read(body, type, [&] { return 1 + random() % 40; }) == whole);
  }
}
