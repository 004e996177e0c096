// Whatever a client of the Model Context Protocol sends: each request gets at most one answer, each
// answer is JSON-RPC, and nothing goes on for a client that is gone.

#include <string_view>

#include "fuzz/fuzz.h"
#include "mcp/manual_server.h"

using namespace watchdog;
using monitor::mcp::json;

std::vector<std::string> fuzz_seeds() {
  return {
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}})",
      R"({"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"wait","arguments":{"session":"s","until":"state-change","after":0},"_meta":{"progressToken":"t"}}})",
      R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"agents","arguments":{"attention":["needs_you"],"limit":5}}})",
      R"({"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"report","arguments":{"session":"s","kind":"blocked","seconds":5}}})",
      R"({"jsonrpc":"2.0","id":4,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}})",
      R"({"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["watchdog://sessions"],"taskIds":["x"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}})",
      R"({"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":"watchdog://session/s"}})",
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}})",
      R"({"jsonrpc":"2.0","id":8,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}})"
      "\n"
      R"({"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"cancel","arguments":{"session":"s"}}})"
      "\n"
      R"({"jsonrpc":"2.0","id":"confirm-1","result":{"action":"accept"}})",
      R"([{"jsonrpc":"2.0","id":7,"method":"ping"}])"};
}

void try_input(std::string_view text) {
  test::ManualServer server;
  // The monitor's answers are the input as well: a server may be another version.
  server.source->answers = {{"/", {.body = std::string(text)}}};
  for (std::size_t from = 0; from <= text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    server.accept(std::string(text.substr(from, end - from)));
    from = end + 1;
  }
  for (const auto& stream : server.source->streams)
    if (stream->is_open) stream->listener.on_record("session", std::string(text));
  server.announce(test::document("progressing", 3));
  server.announce(test::document("completed", 4));
  server.loop.pass(Millis{60'000});
  for (const auto& message : server.sent) {
    FUZZ_REQUIRE(message["jsonrpc"] == "2.0");
    FUZZ_REQUIRE(
        message.contains("result") + message.contains("error") + message.contains("method") == 1);
    FUZZ_REQUIRE(json::accept(monitor::mcp::line_of(message)));
  }
  server.peer->close();
  const auto sent_before = server.sent.size();
  server.announce(test::document("failed", 5));
  server.loop.pass(Millis{60'000});
  FUZZ_REQUIRE(server.sent.size() == sent_before);
}
