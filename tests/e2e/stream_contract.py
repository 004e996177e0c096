"""What the server promises of rows and streams: a part of contract_test.py."""

SESSIONS = "/api/autonomous/sessions"
STREAM = "/api/autonomous/stream"
PROGRESS = "/api/autonomous/progress"
SUMMARY = "/api/autonomous/summary"


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
    same("what is left of an ended one", (row["outcome"], row["reason"], row["iteration"]), ("failed", "Broke", None))
    for query, status, field in (("limit=10001", 422, "limit"), ("limit=x", 400, "limit"), ("health=fine", 422, "health")):
        ask("GET", f"{SESSIONS}?{query}", status=status, field=field)
    lists_are_sorted_by_attention(contract)
    hints_are_given_once(contract)
    for path in (STREAM, f"{SESSIONS}/row/stream"):
        ask("HEAD", f"{path}?include=events,transitions&after=0.0", status=200)
        ask("GET", f"{path}?include=all", status=422, field="include")
        for cursor in ("1", "1.", ".1", "a.b", "-1.0", "1.2.3", "99999999999999999999.0"):
            ask("GET", f"{path}?after={cursor}", status=400, field="after", fits="unread")
        ask("GET", path, status=400, field="Last-Event-ID", headers={"Last-Event-ID": "x"}, fits="unread")
    waits_are_answered(contract)
    ask("HEAD", f"{SESSIONS}/nobody/stream", status=404)
    ask("GET", f"{SESSIONS}/nobody/stream", status=404, field="sessionId")


def waits_are_answered(contract):
    """Met, not met any more, not yet; and what no wait can be."""
    ask, same = contract.ask, contract.tally.same
    path = f"{SESSIONS}/row/wait"
    answer = ask("GET", f"{path}?for=failed", status=200)
    same("met", (answer["came"], answer["end"], answer["timeline"]), (True, None, None))
    answer = ask("GET", path, status=200)
    same("not met", (answer["came"], answer["end"], answer["why"]), (False, "ended", "it ended as failed instead"))
    answer = ask("GET", f"{SESSIONS}/nobody/wait?for=condition&tell=now", status=200)
    same("not yet", (answer["came"], answer["end"], answer["cursor"], answer["progress"]), (False, None, "absent", None))
    answer = ask("GET", f"{SESSIONS}/row/wait?for=condition&onStuck=keep&furtherMax=7&after=1&timeoutMs=0", status=200)
    same("nor any more", answer["end"], "ended")
    ask("HEAD", f"{path}?for=end", status=200)
    for query, status, field in (("for=done", 422, "for"), ("for=health=fine", 422, "for"), ("for=state-change=", 422, "for"),
                                 ("onStuck=panic", 422, "onStuck"), ("furtherMax=0", 422, "furtherMax"), ("furtherMax=x", 400, "furtherMax"),
                                 ("after=-1", 422, "after"), ("tell=all", 422, "tell"), ("timeoutMs=25001", 422, "timeoutMs")):
        ask("GET", f"{path}?{query}", status=status, field=field)
    for cursor in ("1", "1.1", "1.1.", "a.b.c", "1.1.-1", "1.1.1.1", "1.1.99999999999999999999"):
        ask("GET", f"{path}?cursor={cursor}", status=400, field="cursor", fits="unread")


def hints_are_given_once(contract):
    """A developer reads why reports bring less than they could."""
    same, post = contract.tally.same, contract.post
    ask = contract.ask
    ask("POST", SESSIONS, {"sessionId": "hinted"}, status=201)
    for event, words in (({"kind": "heartbeat"}, "Heartbeats without iteration"), ({"kind": "message", "text": "x" * 500}, "first 200 characters")):
        said = [post("hinted", [event])["hint"] for _ in range(2)]
        same(f"hint about {event['kind']}", (words in (said[0] or ""), said[1]), (True, None))
    said = [post("hinted", [{"kind": "dream"}, {"kind": "heartbeat", "source": "sidecar"}])["hint"] for _ in range(2)]
    same("hint about a kind", ('"dream"' in said[0], said[1]), (True, None))
    call, result = {"kind": "tool_call", "name": "t", "call_id": "c1"}, {"kind": "tool_result", "name": "t", "call_id": "c1"}
    said = [post("hinted", [result])["hint"] for _ in range(2)]
    same("hint about a result without its call", ('"c1" has no call' in (said[0] or ""), said[1]), (True, None))
    said = post("hinted", [call | {"call_id": "c2"}, {"kind": "end"}])["hint"]
    same("hint about a call without its result", '"c2" has no result' in (said or ""), True)
    same("none about a pair", post("pairs", [call, result, {"kind": "end"}])["hint"], None)
    same("none about one that is numbered", post("unhinted", [{"kind": "heartbeat", "iteration": 1}, {"kind": "heartbeat", "phase": "plan"}])["hint"], None)


def lists_are_sorted_by_attention(contract):
    """Who needs a person comes first, and is counted."""
    ask, same = contract.ask, contract.tally.same
    before = ask("GET", SUMMARY, status=200)
    lives = {"calm": [{"kind": "state_change", "type": "t"}],
             "asks": [{"kind": "user_input", "text": "Mend the gate\nand more"}, {"kind": "message", "name": "assistant", "text": "So it is."},
                      {"kind": "wait", "waiting_for": "approval", "text": "May I?"}],
             "queues": [{"kind": "wait", "waiting_for": "quota"}], "rests": [{"kind": "user_input", "text": "hello"}, {"kind": "idle"}],
             "through": [{"kind": "end", "outcome": "completed"}]}
    for session, events in lives.items():
        ask("POST", SESSIONS, {"sessionId": session, "agent": "sorted", "labels": {"cwd": "/home/me/gate"}}, status=201)
        contract.post(session, events)
    found = lambda query: [row["sessionId"] for row in ask("GET", f"{SESSIONS}?agent=sorted&{query}", status=200)["sessions"]]
    same("those first that need a person", found("sort=attention"), ["asks", "rests", "queues", "calm", "through"])
    same("by attention", sorted(found("attention=needs_you,watch")), ["asks", "queues"])
    same("by state", sorted(found("state=needs_input,your_turn")), ["asks", "rests"])
    same("by health", sorted(found("health=blocked,idle")), ["asks", "queues", "rests"])
    same("by its title", found("search=MEND%20THE"), ["asks"])
    same("by its directory", len(found("q=/home/me/gate")), 5)
    same("the newest first", found("attention=watch,working&sort=newest"), ["queues", "calm"])
    page = ask("GET", f"{SESSIONS}?agent=sorted&sort=attention&limit=2", status=200)
    same("how many there are", (len(page["sessions"]), page["total"], page["next"]), (2, 5, None))
    page = ask("GET", f"{SESSIONS}?agent=sorted&attention=needs_you,ready,watch,working,resting&limit=2", status=200)
    rest = ask("GET", f"{SESSIONS}?agent=sorted&attention=needs_you,ready,watch,working,resting&after={page['next']}", status=200)
    same("a page follows", [row["sessionId"] for row in page["sessions"] + rest["sessions"]], found("limit=100"))
    documents = ask("GET", f"{PROGRESS}?agent=sorted&sort=attention", status=200)["sessions"]
    same("documents likewise", [document["sessionId"] for document in documents], found("sort=attention"))
    row, = ask("GET", f"{SESSIONS}?agent=sorted&state=needs_input", status=200)["sessions"]
    same("what it is called", [row[key] for key in ("title", "shortId", "directory", "lastMessage")], ["Mend the gate", "asks", "gate", "So it is."])
    after = ask("GET", SUMMARY, status=200)
    same("counted", {word: after["states"][word] - before["states"][word] for word in after["states"] if after["states"][word] != before["states"][word]},
         {"needs_input": 1, "waiting": 1, "your_turn": 1, "progressing": 1, "completed": 1})
    same("in all", (after["total"] - before["total"], sum(after["attention"].values()), sum(after["states"].values())), (5, after["total"], after["total"]))
    for query, status, field in (("attention=me", 422, "attention"), ("state=blocked", 422, "state"), ("sort=size", 422, "sort"),
                                 ("sort=attention&after=3", 422, "after"), ("q=a&search=b", 400, "search")):
        ask("GET", f"{SESSIONS}?{query}", status=status, field=field, fits="unread")
    ask("GET", f"{SUMMARY}?limit=1", status=400, field="limit", fits="unread")
    same("at work", [ask("GET", f"/api/activity?{query}", status=200)["activity"] for query in ("agent=sorted", "session=asks", "session=rests")],
         ["working", "waiting", "idle"])
    ask("GET", "/api/activity?session=nobody", status=404, field="sessionId")
    ask("GET", "/api/activity?label=x", status=400, field="label", fits="unread")
    ask("GET", "/api/activity?session=asks&is=working", status=412)
    ask("GET", "/api/activity?until=idle&not=stuck", status=422, field="until", fits="unread")
    ask("GET", "/api/activity?until=idle&timeoutMs=25001", status=422, field="timeoutMs")
