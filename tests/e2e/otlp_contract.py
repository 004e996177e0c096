"""What the server promises of OpenTelemetry: a part of contract_test.py."""

import gzip
import json
import pathlib
import time

SESSIONS = "/api/autonomous/sessions"
RECORDED = pathlib.Path(__file__).parent.parent / "data" / "otlp"
JSON = {"Content-Type": "application/json"}
PROTOBUF = {"Content-Type": "application/x-protobuf"}
GZIP = {"Content-Encoding": "gzip"}
INFLATED_MAX = 20 * 1024 * 1024
MEMBERS = {"/v1/logs": "resourceLogs", "/v1/traces": "resourceSpans", "/v1/metrics": "resourceMetrics"}


TRACES = "/api/autonomous/traces"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def logs_of(session, trace):
    """A request whose one record names session and trace."""
    text = lambda name, value: {"key": name, "value": {"stringValue": value}}
    record = {"traceId": trace, "spanId": "00f067aa0ba902b7", "timeUnixNano": str(time.time_ns()),
              "attributes": [text("event.name", "claude_code.user_prompt"), text("session.id", session)]}
    return {"resourceLogs": [{"resource": {"attributes": [text("service.name", "claude-code")]}, "scopeLogs": [{"logRecords": [record]}]}]}


def a_trace_is_known(contract):
    """A trace leads to the session that telemetry of it names, while that session exists."""
    ask, same = contract.ask, contract.tally.same
    ask("GET", f"{TRACES}/{TRACE}", status=404, field="trace")
    for session, trace in (("traced", TRACE), ("untraced", "5" + TRACE[1:])):
        ask("POST", "/v1/logs", logs_of(session, trace), status=200, headers=JSON)
        same("its session", ask("GET", f"{TRACES}/{trace}", status=200), {"sessionId": session})
    ask("POST", f"{SESSIONS}/untraced/forget", {"force": True}, status=200)
    ask("GET", f"{TRACES}/{trace}", status=404, field="trace")
    for wrong in ("0" * 32, TRACE[1:], TRACE + "0", TRACE.upper(), "g" + TRACE[1:], "a%20b"):
        ask("GET", f"{TRACES}/{wrong}", status=400, field="trace", fits="unread")
    operation, = contract.specification.at(f"{TRACES}/{TRACE}")
    operation.known = f"{TRACES}/{TRACE}"


def telemetry_is_taken(contract):
    """What agents export becomes sessions, once; nothing of it breaks them."""
    ask, same = contract.ask, contract.tally.same
    events = lambda session: [event for event in ask("GET", f"{SESSIONS}/{session}/events?limit=1000", status=200)["events"]
                              if event["kind"] != "heartbeat"]
    counts = []
    for _ in range(2):
        for path in sorted(RECORDED.glob("*.jsonl")):
            for line in map(json.loads, path.read_text().splitlines()):
                same("it is taken", ask("POST", line["path"], line["body"], status=200, headers=JSON), {})
        counts.append([len(events(row["sessionId"])) for row in ask("GET", SESSIONS, status=200)["sessions"]])
    same("told twice, it happened once", counts[0], counts[1])
    document = ask("GET", "/api/autonomous/progress/01a202d9-6d73-7250-b7bb-32a518cc6577", status=200)
    same("Codex is at rest", (document["agent"], document["state"]), ("codex", "your_turn"))
    same("its tokens", document["budget"]["tokens"], 4380)
    document = ask("GET", "/api/autonomous/progress/85ad8770-8c2f-44a5-ac87-f8fe25bac694", status=200)
    same("Gemini CLI waits for a login", (document["state"], document["waitingFor"]), ("needs_input", "login"))
    told = json.dumps([events("7c1c3d1e-0000-4000-8000-00000000c1a0"),
                       ask("GET", "/api/autonomous/progress/7c1c3d1e-0000-4000-8000-00000000c1a0", status=200)])
    same("nothing personal is kept", [word for word in ("ann@", "user_01ANN", "aaaaaaaa-1111") if word in told], [])

    for path, member in MEMBERS.items():
        same("nothing is fine", ask("POST", path, {}, status=200, headers=JSON), {})
        same("in protobuf, too", ask("POST", path, b"", status=200, headers=PROTOBUF, fits="unread"), None)
        ask("POST", path, gzip.compress(b"{}"), status=200, headers=JSON | GZIP, fits="unread")
        wrong = ask("POST", path, {member: 5}, status=400, headers=JSON)
        same("an error is a google.rpc.Status", sorted(wrong), ["code", "message"])
        ask("POST", path, "{", status=400, headers=JSON)
        ask("POST", path, b"\x0a\x7f", status=400, headers=PROTOBUF, fits="unread")
        ask("POST", path, b"no gzip", status=400, headers=JSON | GZIP, fits="unread")
        bomb = gzip.compress(b" " * (INFLATED_MAX + 1))
        same("a bomb is small", len(bomb) < 100_000, True)
        ask("POST", path, bomb, status=413, headers=JSON | GZIP)
        ask("POST", path, "{}", status=415, headers={"Content-Type": "text/plain"})
        ask("POST", path, "{}", status=415, headers=JSON | {"Content-Encoding": "br"})
