"""What the server promises of hooks: a part of contract_test.py."""

import http.client
import json
import os
import pathlib
import re
import subprocess
import threading
import time
import tomllib

SESSIONS = "/api/autonomous/sessions"
HOOKS = "/api/hooks"
PAGES = pathlib.Path(__file__).parent.parent.parent / "docs" / "how-to" / "clients"
RECORDED = pathlib.Path(__file__).parent.parent / "data" / "hooks"


def hooks_are_told(contract):
    """What coding agents send becomes sessions; nothing of it breaks them."""
    ask, same = contract.ask, contract.tally.same
    # This very process sends them, so it is taken for the agent's.
    is_process = lambda event: (event["kind"], event.get("name")) == ("start", "process")
    events = lambda session: [event for event in ask("GET", f"{SESSIONS}/{session}/events?limit=1000", status=200)["events"]
                              if not is_process(event)]
    for path in sorted(RECORDED.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            same("nothing is asked of it", ask("POST", f"{HOOKS}/{path.stem}", line["hook"], status=200), {})
        for session in {line["session"] for line in lines if line["reports"]}:
            wanted = [report["kind"] for line in lines if line["session"] == session for report in line["reports"]]
            same(f"{path.stem} told of {session}", [event["kind"] for event in events(session)], wanted)
    claude = "0d0b7a1e-5f1c-4c63-9b1e-2a8f6d1c9e11"
    document = lambda session: ask("GET", f"/api/autonomous/progress/{session}", status=200)
    same("it is over, after an error of its model", (document(claude)["agent"], document(claude)["outcome"]["kind"]), ("claude-code", "failed"))
    child = document(f"{claude}:a54165b")
    same("its subagent", (child["parentSessionId"], child["agent"], child["outcome"]["kind"]), (claude, "Explore", "completed"))

    hook = lambda name, session="hooked", agent="claude-code", query="", **more: ask(
        "POST", f"{HOOKS}/{agent}{query}", {"session_id": session, "hook_event_name": name} | more, status=200)
    call = {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "curl -H 'Authorization: Bearer abcdefghijklmnop0123'"}}
    for _ in range(2):
        hook("PreToolUse", **call)
    told = events("hooked")
    same("told twice, it happened once", len(told), 1)
    same("secrets are taken out", "abcdefghijklmnop0123" in json.dumps(told), False)
    hook("PostToolUse", **call | {"tool_response": "x" * (2 << 20)})
    same("a long answer is an answer", events("hooked")[-1]["kind"], "tool_result")
    ask("POST", f"{SESSIONS}/hooked/cancel", {"by": "ann", "reason": "enough"}, status=200)
    reason = "cancelled by ann: enough"
    same("it is to stop", hook("Stop"), {"continue": False, "stopReason": reason})
    same("and has stopped", [document("hooked")["outcome"][key] for key in ("kind", "subject", "error")], ["cancelled", "ann", "enough"])
    same("a further call is denied", hook("PreToolUse", **call | {"tool_use_id": "t2"})["hookSpecificOutput"]["permissionDecision"], "deny")
    hook("UserPromptSubmit", "denied", "codex", prompt="go")
    hook("PreToolUse", "denied", "codex", **call)
    ask("POST", f"{SESSIONS}/denied/cancel", {"by": "ann", "reason": "enough"}, status=200)
    for number in (2, 3):
        told = hook("PreToolUse", "denied", "codex", **call | {"tool_use_id": f"t{number}"})
        same("Codex obeys this alone", (list(told), told["hookSpecificOutput"]["permissionDecision"]), (["hookSpecificOutput"], "deny"))
    same("it goes on until it stops", (events("denied")[-1]["kind"], document("denied")["outcome"]), ("error", None))
    same("its end is no answer", hook("SessionEnd", "denied", "codex"), {})
    same("it was cancelled", document("denied")["outcome"]["kind"], "cancelled")
    ask("POST", f"{SESSIONS}", {"sessionId": "wrapper", "agent": "run"}, status=201)
    for name in ("SessionStart", "PreToolUse", "SessionEnd"):
        hook(name, query="?session=wrapper", tool_name="Bash")
    same("told of another session", [event["kind"] for event in events("wrapper")], ["message", "tool_call", "message"])
    same("which is not over", document("wrapper")["outcome"], None)
    waits = lambda session: (document(session)["state"], document(session)["waitingFor"])
    for number, command in (("a", "ls"), ("b", "rm -rf /")):
        hook("PreToolUse", "parallel", tool_name="Bash", tool_use_id=number, tool_input={"command": command})
    hook("PermissionRequest", "parallel", tool_name="Bash", tool_input={"command": "ls"})
    hook("PostToolUse", "parallel", tool_name="Bash", tool_use_id="b", tool_response="gone")
    same("the result of another call is no approval", waits("parallel"), ("needs_input", "approval"))
    hook("PreToolUse", "parallel", tool_name="Read", tool_use_id="c")
    same("and neither is its begin", waits("parallel"), ("needs_input", "approval"))
    hook("PostToolUse", "parallel", tool_name="Bash", tool_use_id="a", tool_response="text")
    same("its own result is", waits("parallel"), ("progressing", None))
    hook("PreToolUse", "parent", "codex", tool_name="Task", tool_use_id="t")
    hook("PreToolUse", "parent", "codex", agent_id="sub", tool_name="Read", tool_use_id="r")
    hook("Interrupt", "parent", "codex")

    def soon(session, holds):
        """What follows from an event for other sessions is stored after the hook's answer."""
        end = time.monotonic() + 60
        while not holds(found := document(session)) and time.monotonic() < end:
            time.sleep(0.02)
        return found

    def sub_is(ended):
        return soon("parent:sub", lambda found: bool(found["outcome"]) == ended)

    outcome = sub_is(True)["outcome"]
    same("what was interrupted with it is over", (outcome["kind"], outcome["subject"]), ("cancelled", "parent"))
    same("and is not waited for", soon("parent", lambda found: found["state"] == "your_turn")["state"], "your_turn")
    hook("PreToolUse", "parent", "codex", agent_id="sub", tool_name="Read", tool_use_id="r2")
    same("unless it goes on", (sub_is(False)["attempt"], sub_is(False)["outcome"]), (2, None))
    hook("SessionEnd", "parent", "codex")
    same("its end is theirs", sub_is(True)["outcome"]["kind"], "cancelled")
    for body in ("", "{", "[]", {}, {"session_id": "s"}, {"hook_event_name": "Stop"}, b'{"type":"\xff"}', "[" * 65 + "]" * 65):
        named = isinstance(body, dict)
        field = ("session_id" if "hook_event_name" in body else "hook_event_name") if named else None
        ask("POST", f"{HOOKS}/codex", body, status=400, field=field, fits=True if field == "session_id" else None)
    ask("POST", f"{HOOKS}/nobody", {}, status=404, field="agent", fits="unread")
    ask("POST", f"{HOOKS}/codex?pid=4294967296", {}, status=422, field="pid", fits="unread")
    questions_are_held(contract)
    notices_are_shown(contract)
    rules_are_paused(contract)
    what_the_pages_say_works(contract)


def notices_are_shown(contract):
    """Documents and rows have the notices that their schemas describe."""
    ask, same = contract.ask, contract.tally.same
    say = lambda session, reports: ask("POST", f"{SESSIONS}/{session}/events", reports, status=200)
    ask("POST", SESSIONS, {"sessionId": "lead"}, status=201)
    ask("POST", SESSIONS, {"sessionId": "helper", "parentSessionId": "lead"}, status=201)
    todos = {"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}]}
    say("helper", [{"kind": "message", "name": "assistant", "text": "Ready."}, {"kind": "idle"}])
    say("lead", [{"kind": "tool_call", "name": "TodoWrite", "args": todos}, {"kind": "tool_result", "name": "TodoWrite", "text": "ok"}, {"kind": "idle"}])
    document = ask("GET", "/api/autonomous/progress/lead", status=200)
    same("the turn left something open", document["unfinished"], "The turn ended with 1 of 2 plan items open")
    same("everybody waits", document["groupWait"]["members"], [{"sessionId": "lead", "waitsFor": []}, {"sessionId": "helper", "waitsFor": ["lead"]}])
    rows = ask("GET", f"{SESSIONS}?q=lead", status=200)["sessions"]
    same("the row has both", [(row["unfinished"], row["groupWait"]) for row in rows if row["sessionId"] == "lead"], [(document["unfinished"], document["groupWait"])])
    ask("POST", SESSIONS, {"sessionId": "mute", "parentSessionId": "lead"}, status=201)
    say("mute", [{"kind": "start"}])
    for number in range(5):
        say("lead", [{"kind": "tool_call", "name": "Read", "args": {"file": number}}, {"kind": "tool_result", "name": "Read", "text": f"text {number}"}])
    document = ask("GET", "/api/autonomous/progress/lead", status=200)
    same("the child never spoke", (document["silentChild"]["sessionId"], document["silentChild"]["rounds"]), ("mute", 5))
    same("somebody works", (document.get("groupWait"), document["unfinished"]), (None, None))


def rules_are_paused(contract):
    """A token that may read gets the rules of recovery. Only a token that may act pauses them."""
    ask, same = contract.ask, contract.tally.same
    for act, paused in (("pause", True), ("resume", False)):
        ask("POST", f"/api/recovery/{act}", status=401, headers={"Authorization": None})
        same(f"after {act}", ask("POST", f"/api/recovery/{act}", status=200), {"paused": paused, "rules": []})
        same("it stays so", ask("GET", "/api/recovery", status=200), {"paused": paused, "rules": []})


def questions_are_held(contract):
    """A session has a question while a hook of its agent waits, and a person's answer reaches that hook."""
    ask, same = contract.ask, contract.tally.same
    answer, got = f"{SESSIONS}/held/answer", []
    asks = {"session_id": "held", "hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "make"}}

    def wait():
        connection = http.client.HTTPConnection(contract.server.host, timeout=60)
        connection.request("POST", f"{HOOKS}/claude-code?hold=60", json.dumps(asks))
        got.append(json.loads(connection.getresponse().read()))
        connection.close()

    def question():
        return ask("GET", "/api/autonomous/progress/held", status=200, count=False).get("question")

    ask("POST", f"{HOOKS}/claude-code", asks | {"hook_event_name": "UserPromptSubmit", "prompt": "Build it"}, status=200)
    ask("POST", answer, {"decision": "allow", "questionId": "none"}, status=404, field="sessionId", fits=True)
    hook = threading.Thread(target=wait, daemon=True)
    hook.start()
    end = time.monotonic() + 60
    while not question() and time.monotonic() < end:
        time.sleep(0.02)
    rows = ask("GET", f"{SESSIONS}?q=held", status=200)["sessions"]
    same("the row has it", [row["question"]["text"] for row in rows if row["sessionId"] == "held"], ["make"])
    named = {"questionId": question()["questionId"]}
    ask("POST", answer, {"decision": "allow"}, status=400, field="questionId")
    ask("POST", answer, named, status=400, field="decision", fits=True)
    ask("POST", answer, named | {"decision": "perhaps"}, status=422, field="decision")
    ask("POST", answer, named | {"decision": "allow", "text": "yes"}, status=422, field="answer", fits=True)
    told = ask("POST", answer, named | {"decision": "allow", "by": "ann"}, status=200)
    same("it is answered", told["answer"], "allow")
    hook.join(60)
    same("the hook gets the answer", got, [{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}])
    ask("POST", answer, named | {"decision": "deny"}, status=409, field="questionId", fits=True)
    ask("POST", f"{HOOKS}/claude-code?hold=86401", asks, status=422, field="hold", fits="unread")


def what_the_pages_say_works(contract):
    """The program that a page gives Codex is copied and run. `hooks_test.py` runs what `hooks install` writes."""
    page = (PAGES / "codex.md").read_text().replace("127.0.0.1:3000", contract.server.host)
    blocks = [text for text in re.findall(r"```toml\n(.*?)```", page, re.S) if "/api/hooks/" in text]
    contract.tally.same("one program for Codex", len(blocks), 1)
    for text in blocks:
        told = {"type": "agent-turn-complete", "thread-id": "readme-notify", "turn-id": "1", "input-messages": ["it's"]}
        run_hook(contract, [*tomllib.loads(text)["notify"], json.dumps(told)], None)
    contract.tally.same("it arrived", contract.ask("GET", f"{SESSIONS}/readme-notify/events", status=200)["events"] != [], True)


def run_hook(contract, words, text):
    done = subprocess.run(words, input=text, capture_output=True, text=True, env=os.environ | {"no_proxy": "*"}, timeout=60)
    contract.tally.same(f"{words[0]} is a hook", (done.returncode, done.stdout), (0, "{}"))
