"""What the server promises of hooks: a part of contract_test.py."""

import json
import os
import pathlib
import re
import subprocess
import tomllib

SESSIONS = "/api/autonomous/sessions"
HOOKS = "/api/hooks"
README = pathlib.Path(__file__).parent.parent.parent / "README.md"
RECORDED = pathlib.Path(__file__).parent.parent / "data" / "hooks"


def hooks_are_told(contract):
    """What coding agents send becomes sessions; nothing of it breaks them."""
    ask, same = contract.ask, contract.tally.same
    events = lambda session: ask("GET", f"{SESSIONS}/{session}/events?limit=1000", status=200)["events"]
    for path in sorted(RECORDED.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            same("nothing is asked of it", ask("POST", f"{HOOKS}/{path.stem}", line["hook"], status=200), {})
        for session in {line["session"] for line in lines if line["reports"]}:
            wanted = [report["kind"] for line in lines if line["session"] == session for report in line["reports"]]
            same(f"{path.stem} told of {session}", [event["kind"] for event in events(session)], wanted)
    claude = "0d0b7a1e-5f1c-4c63-9b1e-2a8f6d1c9e11"
    document = lambda session: ask("GET", f"/api/autonomous/progress/{session}", status=200)
    same("it is over", (document(claude)["agent"], document(claude)["outcome"]["kind"]), ("claude-code", "completed"))
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
    same("it is to stop", hook("Stop"), {"continue": False, "stopReason": "cancelled by ann: enough"})
    ask("POST", f"{SESSIONS}", {"sessionId": "wrapper", "agent": "run"}, status=201)
    for name in ("SessionStart", "PreToolUse", "SessionEnd"):
        hook(name, query="?session=wrapper", tool_name="Bash")
    same("told of another session", [event["kind"] for event in events("wrapper")], ["message", "tool_call", "message"])
    same("which is not over", document("wrapper")["outcome"], None)
    for body in ("", "{", "[]", {}, {"session_id": "s"}, {"hook_event_name": "Stop"}, b'{"type":"\xff"}', "[" * 65 + "]" * 65):
        named = isinstance(body, dict)
        field = ("session_id" if "hook_event_name" in body else "hook_event_name") if named else None
        ask("POST", f"{HOOKS}/codex", body, status=400, field=field, fits=True if field == "session_id" else None)
    ask("POST", f"{HOOKS}/nobody", {}, status=404, field="agent", fits="unread")
    ask("POST", f"{HOOKS}/codex?session=a%20b", {}, status=422, field="session", fits="unread")
    what_the_readme_says_works(contract)


def what_the_readme_says_works(contract):
    """Each block that is to be copied is read, and what it names is run or asked."""
    here = lambda text: text.replace("127.0.0.1:3000", contract.server.host)
    blocks = re.findall(r"```(json|toml)\n(.*?)```", README.read_text(), re.S)
    for kind, text in blocks:
        if "/api/hooks/" not in text:
            continue
        if kind == "toml":
            words = tomllib.loads(here(text))["notify"]
            told = {"type": "agent-turn-complete", "thread-id": "readme-notify", "turn-id": "1", "input-messages": ["it's"]}
            run_hook(contract, [*words, json.dumps(told)], None)
            continue
        for name, groups in json.loads(here(text))["hooks"].items():
            for hook in (hook for group in groups for hook in group["hooks"]):
                body = {"session_id": "readme", "hook_event_name": name, "tool_name": "Bash", "tool_use_id": name}
                if hook["type"] == "http":
                    path = hook["url"].removeprefix(f"http://{contract.server.host}")
                    contract.ask("POST", path, body, status=200, count=False)
                else:
                    run_hook(contract, ["sh", "-c", hook["command"]], json.dumps(body))
    for session in ("readme", "readme-notify"):
        contract.tally.same("it arrived", contract.ask("GET", f"{SESSIONS}/{session}/events", status=200)["events"] != [], True)


def run_hook(contract, words, text):
    done = subprocess.run(words, input=text, capture_output=True, text=True, env=os.environ | {"no_proxy": "*"}, timeout=60)
    contract.tally.same(f"{words[0]} is a hook", (done.returncode, done.stdout), (0, "{}"))
