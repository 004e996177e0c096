"""What the server promises at /mcp: a part of contract_test.py. Clients of the protocol are in tests/clients/mcp."""

import json

MCP = "/mcp"
JSON = {"Content-Type": "application/json"}
STREAM = {"Accept": "text/event-stream"}
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def message(method, params=None, number=1):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}


def mcp_is_spoken(contract):
    """Each status that the file has for /mcp comes up."""
    ask, same = contract.ask, contract.tally.same
    contract.post("spoken", {"kind": "state_change", "type": "step"})
    same("a tool answers", ask("POST", MCP, message("tools/call", {"name": "agent", "arguments": {"session": "spoken"}}),
                               status=200, headers=JSON)["result"]["structuredContent"]["agent"]["sessionId"], "spoken")
    begun = contract.send("POST", MCP, json.dumps(message("initialize", {"protocolVersion": "2025-11-25"})).encode(), JSON, None)[0]
    session = {"Mcp-Session-Id": begun.getheader("Mcp-Session-Id")}
    ask("POST", MCP, {"jsonrpc": "2.0", "method": "notifications/initialized"}, status=202, headers=JSON | session)
    ask("GET", MCP, status=200, headers=STREAM | session)
    ask("GET", MCP, status=406, headers={"Accept": "text/html"} | session)
    ask("GET", MCP, status=400, headers=STREAM, fits="unread")
    ask("GET", MCP, status=404, headers=STREAM | {"Mcp-Session-Id": "gone"})
    ask("POST", MCP, message("ping"), status=404, headers=JSON | {"Mcp-Session-Id": "gone"})
    modern = {"MCP-Protocol-Version": "2026-07-28"}
    ask("POST", MCP, message("nothing", {"_meta": MODERN}), status=404, headers=JSON | modern | {"Mcp-Method": "nothing"})
    wrong = ask("POST", MCP, message("tools/list", {"_meta": MODERN}), status=400, headers=JSON | modern, fits="unread")
    same("headers must fit", wrong["error"]["code"], -32020)
    ask("POST", MCP, message("subscriptions/listen", {"_meta": MODERN, "notifications": {}}), status=406,
        headers=JSON | modern | {"Mcp-Method": "subscriptions/listen"})
    for text in ("{", "[]", json.dumps([message("ping")]), "[" * 100):
        ask("POST", MCP, text, status=400, headers=JSON, fits="unread")
    ask("POST", MCP, "{}", status=415, headers={"Content-Type": "text/plain"}, fits="unread")
    ask("POST", MCP, message("ping", {"x": "x" * 4_200_000}), status=413, headers=JSON)
    ask("DELETE", MCP, status=204, headers=session)
    ask("DELETE", MCP, status=404, headers=session)
