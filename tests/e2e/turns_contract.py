"""What the server promises of turns: a part of contract_test.py."""

import subprocess

from process_facts import facts_of

SESSIONS = "/api/autonomous/sessions"
TURNS = "/api/turns"


def turns_are_told(contract):
    """What runs within sessions, and how it is stopped."""
    ask, same, until = contract.ask, contract.tally.same, contract.until
    say = lambda *events: contract.post("turns", list(events))
    turn = lambda name, call, **more: {"kind": "turn", "name": f"turn_{name}", "call_id": call} | more
    begin = lambda call, of: {"kind": "tool_call", "name": "shell", "args": {"n": call}, "call_id": call, "turn_id": of}
    active = lambda: [t for t in ask("GET", f"{TURNS}/active?limit=1000", status=200)["turns"] if t["sessionId"] == "turns"]
    abort = lambda path, body=None, status=200, **more: ask("POST", f"{TURNS}/{path}", body, status=status, **more)
    ask("POST", SESSIONS, {"sessionId": "turns", "agent": "coder"}, status=201)
    same("nothing to do", say(turn("start", "outer"), turn("start", "in ner", parent_turn_id="outer", depth=1))["directive"], None)
    say(begin("c1", "in ner"), begin("c2", "in ner"), {"kind": "tool_progress", "call_id": "c1", "text": "half", "accepted": 1})
    outer, inner = active()
    same("the outer turn", (outer["turnId"], outer["nousId"], outer["currentTool"], outer["toolCallCount"]), ("outer", "coder", None, 0))
    same("the inner one", (inner["parentTurnId"], inner["depth"], inner["currentTool"], inner["toolCallCount"]), ("outer", 1, "shell", 2))
    same("all its calls, by which they are stopped", [(t["name"], t["callId"]) for t in inner["tools"]], [("shell", "c1"), ("shell", "c2")])
    same("and the newest", (inner["currentToolId"], outer["currentToolId"], outer["tools"]), ("c2", None, []))
    until("turns", "in two turns", lambda d: [t["turnId"] for t in d["turns"]] == ["outer", "in ner"])
    until("turns", "half there", lambda d: (d["tools"][0]["message"], d["tools"][0]["turnId"]) == ("half", "in ner"))
    for path, field in (("none/abort", "turnId"), ("none/abort-tool/c1", "turnId"), ("outer/abort-tool/c1", "toolId"),
                        ("in%20ner/abort-tool/none", "toolId")):
        abort(path, {}, 404, field=field)
    for path in ("outer/abort", "in%20ner/abort-tool/c1"):
        abort(path, "{", 400)
        for field in ("reason", "by"):
            abort(path, {field: 5}, 400, field=field)
            abort(path, {field: "x" * 4097}, 422, field=field)
    same("a call is to stop", abort("in%20ner/abort-tool/c2", {"by": "ann", "reason": "enough"}),
         {"ok": True, "turnId": "in ner", "toolId": "c2"})
    told = say({"kind": "message"})["directive"]
    same("told so, and no more", (told["cancel"], [(a["turnId"], a["toolId"], a["by"], a["reason"]) for a in told["aborts"]]),
         (None, [("in ner", "c2", "ann", "enough")]))
    same("until it has", say({"kind": "error", "call_id": "c2", "text": "stopped"})["directive"], None)
    abort("in%20ner/abort-tool/c2", status=404, field="toolId")
    for reason in ("first", "second"):  # asked again, it is the same
        same("the turn is to stop", abort("in%20ner/abort", {"reason": reason}), {"ok": True, "turnId": "in ner"})
    same("which is seen", [t["aborting"] for t in active()], [False, True])
    asked = say({"kind": "message"})["directive"]["aborts"]
    same("the first reason counts", [(a["toolId"], a["reason"]) for a in asked], [(None, "first")])
    ask("POST", f"{SESSIONS}/turns/cancel", {"reason": "all of it"}, status=200)
    both = say({"kind": "message"})["directive"]
    same("and the session too", (both["cancel"]["reason"], len(both["aborts"])), ("all of it", 1))
    contract.post("twin", turn("start", "outer"))
    for path in ("outer/abort", "outer/abort-tool/c1"):
        abort(path, status=409, field="turnId")
    contract.post("twin", {"kind": "end"})
    same("nothing of a turn that is over", say(turn("end", "in ner", reason="aborted"))["directive"]["aborts"], [])
    abort("in%20ner/abort", status=404, field="turnId")
    kinds = [e["turn_id"] for e in ask("GET", f"{SESSIONS}/turns/events?kind=cancel", status=200)["events"] if "turn_id" in e]
    same("each abort is an event once", kinds, ["in ner", "in ner"])
    gone = subprocess.Popen(["true"])
    facts = facts_of(gone)
    gone.wait()
    quick = {"sessionId": "orphan", "policy": {"heartbeatInterval": 100}}
    ask("POST", SESSIONS, quick | facts, status=201)
    contract.post("orphan", [turn("start", "lost"), turn("start", "child", parent_turn_id="lost"), turn("start", "other")])
    until("orphan", "gone", lambda d: d["health"] == "dead")
    abort("lost/abort")
    until("orphan", "still dead, with the other turn", lambda d: d["health"] == "dead" and [t["turnId"] for t in d["turns"]] == ["other"])
    ends = ask("GET", f"{SESSIONS}/orphan/events?kind=turn", status=200)["events"][3:]
    same("the child ends first", [(e["call_id"], e["name"], e["reason"]) for e in ends],
         [("child", "turn_end", "aborted"), ("lost", "turn_end", "aborted")])
    say(turn("end", "outer"), {"kind": "end"})
    same("nothing is left", active(), [])
