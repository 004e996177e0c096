// Whatever a client and its tool server send through the proxy of tool calls: the proxy itself
// answers no request twice, and no call goes to the server twice.
// The first letter of a line names the sender: `c`, the client, or `s`, the server. Three letters
// are events. `t`: time passes. `g`: the server is gone. `r`: a new server runs.

#include <map>

#include "fuzz/fuzz.h"
#include "mcp/proxy/call_book.h"

using namespace watchdog;
using monitor::mcp::CallBook;
using monitor::mcp::envelope_of;

namespace {

bool is_call(const monitor::mcp::Envelope& seen) {
  return seen.kind == monitor::mcp::Message::Kind::request && seen.method == "tools/call";
}

class Ends final : public monitor::mcp::CallBookEnds {
 public:
  void to_client(std::string message) override {
    if (message == passing) return;
    const auto seen = envelope_of(message);
    if (seen && seen->kind == monitor::mcp::Message::Kind::response) ++answers[seen->key()];
  }
  void to_server(std::string message) override {
    const auto seen = envelope_of(message);
    if (seen && is_call(*seen)) ++calls[seen->key()];
  }
  void report(const monitor::mcp::CallOwner& /*owner*/, Report /*report*/) override { ++reports; }
  void tell(const std::string& /*words*/) override {}

  std::string passing;                 ///< The newest message of the server.
  std::map<std::string, int> answers;  ///< The proxy's own.
  std::map<std::string, int> calls;
  int reports = 0;
};

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {
      R"(c{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}})"
      "\n"
      R"(s{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}})"
      "\n"
      R"(c{"jsonrpc":"2.0","method":"notifications/initialized"})",
      R"(c{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"build","arguments":{"n":1},"_meta":{"progressToken":"p"}}})"
      "\n"
      R"(s{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1,"message":"one"}})"
      "\nt\n"
      R"(s{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"ok"}]}})",
      R"(c{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"build","task":{"ttl":60000}}})"
      "\n"
      R"(s{"jsonrpc":"2.0","id":"a","result":{"task":{"taskId":"t1","status":"working","lastUpdatedAt":"2026-01-01T00:00:00Z"}}})"
      "\nt\n"
      R"(c{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"t1"}})"
      "\n"
      R"(s{"jsonrpc":"2.0","id":4,"result":{"taskId":"t1","status":"completed"}})",
      R"(c{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x"}})"
      "\ng\nr\n"
      R"(c{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}})",
      R"(s{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"?"}})"
      "\n"
      R"(c{"jsonrpc":"2.0","id":7,"result":{"action":"decline"}})",
      R"(c[{"jsonrpc":"2.0","id":6,"method":"tools/call"}])"};
}

void try_input(std::string_view text) {
  Ends ends;
  CallBook book(ends, {.calls_max = 4});
  Instant now{Millis{1'000'000}};
  std::map<std::string, int> asked;
  std::map<std::string, int> called;
  for (std::size_t from = 0; from < text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    const std::string line(text.substr(from, end - from));
    from = end + 1;
    if (line.empty()) continue;
    const std::string message = line.substr(1);
    switch (line[0]) {
      case 'c':
        if (const auto seen = envelope_of(message);
            seen && seen->kind == monitor::mcp::Message::Kind::request) {
          ++asked[seen->key()];
          if (is_call(*seen)) ++called[seen->key()];
        }
        book.from_client(message, now);
        break;
      case 's':
        ends.passing = message;
        book.from_server(message, now);
        break;
      case 't':
        now += book.next(now).value_or(Millis{1'000});
        book.tick(now);
        break;
      case 'g':
        book.server_gone("the tool server exited with code 1", now);
        break;
      case 'r':
        book.server_restarted();
        break;
      default:
        break;
    }
    FUZZ_REQUIRE(book.open() <= 8);
  }
  now += Millis{3'600'000};
  book.tick(now);
  for (const auto& [id, count] : ends.calls) {
    const auto found = called.find(id);
    FUZZ_REQUIRE(found != called.end() && count <= found->second);
  }
  for (const auto& [id, count] : asked) FUZZ_REQUIRE(ends.answers[id] <= count);
}
