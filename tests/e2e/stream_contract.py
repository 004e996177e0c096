"""What the server promises of rows and streams: a part of contract_test.py."""

SESSIONS = "/api/autonomous/sessions"
STREAM = "/api/autonomous/stream"


def rows_and_streams_are_told(contract):
    """Sessions in short, and where a stream begins."""
    ask, same = contract.ask, contract.tally.same
    ask("POST", SESSIONS, {"sessionId": "row", "agent": "rower", "labels": {"a": "b"}}, status=201)
    contract.post("row", [{"kind": "heartbeat", "iteration": 3, "phase": "out"},
                          {"kind": "state_change", "type": "t"}, {"kind": "tool_call", "name": "shell", "call_id": "1"}])
    row, = ask("GET", f"{SESSIONS}?agent=rower&limit=10000", status=200)["sessions"]
    same("what a row says", [row[key] for key in ("sessionId", "agent", "health", "currentPhase", "iteration", "heartbeats", "outcome")],
         ["row", "rower", "progressing", "out", 3, 1, None])
    same("the tool that runs", row["tool"]["name"], "shell")
    contract.post("row", [{"kind": "end", "outcome": "failed", "reason": "broke"}])
    row, = ask("GET", f"{SESSIONS}?agent=rower&lifecycle=failed", status=200)["sessions"]
    same("what is left of an ended one", (row["outcome"], row["reason"], row["iteration"]), ("failed", "broke", None))
    for query, status, field in (("limit=10001", 422, "limit"), ("limit=x", 400, "limit"), ("health=fine", 422, "health")):
        ask("GET", f"{SESSIONS}?{query}", status=status, field=field)
    for path in (STREAM, f"{SESSIONS}/row/stream"):
        ask("HEAD", f"{path}?include=events,transitions&after=0.0", status=200)
        ask("GET", f"{path}?include=all", status=422, field="include")
        for cursor in ("1", "1.", ".1", "a.b", "-1.0", "1.2.3", "99999999999999999999.0"):
            ask("GET", f"{path}?after={cursor}", status=400, field="after", fits="unread")
        ask("GET", path, status=400, field="Last-Event-ID", headers={"Last-Event-ID": "x"}, fits="unread")
    ask("HEAD", f"{SESSIONS}/nobody/stream", status=404)
    ask("GET", f"{SESSIONS}/nobody/stream", status=404, field="sessionId")
