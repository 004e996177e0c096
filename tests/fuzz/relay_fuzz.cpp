// Whatever clients send and servers answer, a proxy makes valid reports of it, within bounds, and
// the same ones however the answer is cut.

#include <random>
#include <string_view>

#include "codec/json.h"
#include "facts/ids.h"
#include "fuzz/fuzz.h"
#include "proxy/sessions/session_recorder.h"

using watchdog::Batch;
using watchdog::Millis;
using watchdog::ReportKind;
using watchdog::WallTime;
using watchdog::monitor::AnswerBegan;
using watchdog::monitor::AnswerPiece;
using watchdog::monitor::ExchangeBegan;
using watchdog::monitor::ExchangeEnded;
using watchdog::monitor::SessionRecorder;

namespace {

constexpr std::string_view targets[] = {"/v1/chat/completions", "/v1/messages", "/v1/responses",
                                        "/api/chat", "/completion"};
constexpr std::string_view types[] = {"text/event-stream", "application/json",
                                      "application/x-ndjson", ""};

/// The request's body, a zero byte, the answer: asked twice, as one text but for heartbeats, whose
/// number is a matter of the pieces.
std::string reported(std::string_view input, std::string_view target, std::string_view type,
                     const auto& next_bytes) {
  const auto zero = input.find('\0');
  const auto body = std::make_shared<std::string>(input.substr(0, zero));
  const auto answer = zero == input.npos ? std::string_view{} : input.substr(zero + 1);
  SessionRecorder recorder;
  std::string all;
  const WallTime now{Millis{1'000}};
  const auto record = [&](std::uint64_t exchange, auto what) {
    for (const auto& batch :
         recorder.record({.exchange = exchange, .at = now, .what = std::move(what)})) {
      FUZZ_REQUIRE(watchdog::is_session_id(batch.session));
      FUZZ_REQUIRE(watchdog::check(batch.spec).ok());
      for (const auto& report : batch.reports) {
        FUZZ_REQUIRE(report.content.size() <= watchdog::event_bytes_max);
        if (report.kind == ReportKind::heartbeat) continue;
        all += batch.session + " " + std::string(name_of(report.kind)) + " " + report.name + " " +
               report.call_id + " " + report.content + "\n";
      }
    }
  };
  for (const std::uint64_t exchange : {1U, 2U}) {
    ExchangeBegan began{.method = "POST", .target = std::string(target), .peer = "::1"};
    began.headers.emplace_back("User-Agent", std::string(answer.substr(0, 20)));
    began.body = body;
    record(exchange, std::move(began));
    record(exchange, AnswerBegan{.status = 200, .content_type = std::string(type)});
    for (auto rest = answer; !rest.empty();) {
      const auto piece = rest.substr(0, next_bytes());
      rest.remove_prefix(piece.size());
      record(exchange, AnswerPiece{std::string(piece)});
    }
    record(exchange, ExchangeEnded{});
  }
  return all;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  using namespace std::string_literals;
  return {
      "{\"messages\":[{\"role\":\"user\",\"content\":\"U\"},{\"role\":\"assistant\",\"tool_calls\":"
      "["
      "{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\","
      "\"tool_call_id\":\"a\",\"content\":\"A\"}],\"metadata\":{\"user_id\":\"_session_s\"}}\0"s,
      "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
      "\"u\",\"content\":\"A\",\"is_error\":true}]}]}\0"s,
      "{\"input\":[{\"type\":\"function_call_output\",\"call_id\":\"k\",\"output\":\"A\"}],"
      "\"previous_response_id\":\"r\"}\0"s,
      "{\"prompt\":\"Hi\"}\0data: "s,
      "data: {\"choices\":[{\"delta\":{\"content\":\"Hi \"},\"finish_reason\":\"stop\"}]}\n\n",
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{"
      "\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\n",
      "data: "
      "{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\","
      "\"id\":\"u\",\"name\":\"f\"}}\n\n",
      "data: "
      "{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"partial_json\":\"{}\"}}\n\n",
      "data: {\"type\":\"message_stop\"}\n\n",
      "data: "
      "{\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"call_id\":"
      "\"k\",\"name\":\"f\",\"arguments\":\"{}\"}}\n\n",
      "{\"message\":{\"content\":\"Hi\",\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]},\"done\":"
      "true}"
      "\n",
      "data: {\"error\":{\"message\":\"no\"}}\n\n",
      "data: [DONE]\n\n",
      "{\"object\":\"response\",\"id\":\"r\",\"status\":\"completed\",\"output\":[]}"};
}

void try_input(std::string_view input) {
  std::mt19937 random(static_cast<unsigned>(input.size()));
  const auto target = targets[input.size() % std::size(targets)];
  const auto type = types[input.size() / 7 % std::size(types)];
  const auto whole = reported(input, target, type, [&] { return input.size(); });
  FUZZ_REQUIRE(reported(input, target, type, [] { return 1; }) == whole);
  FUZZ_REQUIRE(reported(input, target, type, [&] { return 1 + random() % 40; }) == whole);
}
