#!/usr/bin/env python3
"""Plays Claude Code: sends to its hooks what its documentation says, and obeys what they answer.

Usage: claude.py MODEL HOOKS PROMPT   HOOKS is a file like ~/.claude/settings.json. Ctrl-C is its Esc.
"""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import uuid

MODEL, HOOKS, PROMPT = sys.argv[1:]
SESSION = str(uuid.uuid4())


class Stopped(Exception):
    """A hook said that the agent shall not go on."""


def tell(name, **more):
    """What the hooks answer to an event."""
    event = {"session_id": SESSION, "transcript_path": f"{os.environ['HOME']}/.claude/projects/x/{SESSION}.jsonl", "cwd": os.getcwd(),
             "permission_mode": "bypassPermissions", "hook_event_name": name} | more
    given = json.dumps(event)
    answer = {}
    for hook in (hook for group in json.load(open(HOOKS))["hooks"].get(name, []) for hook in group["hooks"]):
        try:
            if hook["type"] == "http":
                request = urllib.request.Request(hook["url"], given.encode(), {"Content-Type": "application/json"} | hook.get("headers", {}))
                with urllib.request.urlopen(request, timeout=hook.get("timeout", 60)) as response:
                    said = response.read()
            else:
                said = subprocess.run(hook["command"], shell=True, input=given.encode(), capture_output=True).stdout
            answer |= json.loads(said or "{}")
        except (OSError, ValueError) as error:
            print(name, error, flush=True)  # No monitor, no harm.
    if answer.get("continue") is False:
        raise Stopped(answer.get("stopReason"))
    return answer


def context(name, tool, answer):
    """What hooks add for the model, as the program itself puts it into its next request."""
    text = answer.get("hookSpecificOutput", {}).get("additionalContext")
    return [{"role": "system", "content": f"{name}:{tool} hook additional context: {text}"}] if text else []


def ask(messages):
    body = {"model": "scripted", "stream": False, "messages": messages, "tools": [{}]}
    request = urllib.request.Request(f"{MODEL}/v1/messages", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)["content"]


class Interrupted(Exception):
    pass


def interrupt(*_):
    raise Interrupted


def call(block):
    """The text of the result, whether that is a failure, and what the hooks add."""
    facts = {"tool_name": block["name"], "tool_input": block["input"], "tool_use_id": block["id"]}
    before = tell("PreToolUse", **facts)
    decided, added = before.get("hookSpecificOutput", {}), context("PreToolUse", block["name"], before)
    if decided.get("permissionDecision") == "deny":
        return f"PreToolUse:{block['name']} hook error: {decided.get('permissionDecisionReason')}", True, added
    command = block["input"].get("command") or f"cat {block['input']['file_path']}"
    process = subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = process.communicate()
    except Interrupted:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        tell("PostToolUseFailure", **facts, error="The user doesn't want to proceed with this tool use.", is_interrupt=True)
        raise
    if process.returncode:
        error = f"Command exited with non-zero status code {process.returncode}\n{err}"
        after = tell("PostToolUseFailure", **facts, error=error, is_interrupt=False)
        return error, True, added + context("PostToolUseFailure", block["name"], after)
    after = tell("PostToolUse", **facts, tool_response={"stdout": out, "stderr": err, "interrupted": False, "isImage": False})
    return out, False, added + context("PostToolUse", block["name"], after)


def turn():
    tell("UserPromptSubmit", prompt=PROMPT)
    messages = [{"role": "user", "content": PROMPT}]
    while True:
        try:
            content = ask(messages)
        except urllib.error.HTTPError as error:
            kind = {401: "authentication_failed", 429: "rate_limit"}.get(error.code, "unknown")
            tell("StopFailure", error=kind, error_details=f"{error.code} {error.reason}",
                 last_assistant_message=f"API Error: {json.load(error)['error']['message']}")
            return 1
        except OSError as error:
            tell("StopFailure", error="unknown", error_details=str(error), last_assistant_message="API Error: Connection error.")
            return 1
        calls = [block for block in content if block["type"] == "tool_use"]
        messages.append({"role": "assistant", "content": content})
        if not calls:
            tell("Stop", stop_hook_active=False, last_assistant_message=content[0]["text"])
            return 0
        results, added = [], []
        for block in calls:
            text, failed, more = call(block)
            added += more
            results.append({"type": "tool_result", "tool_use_id": block["id"], "content": text, "is_error": failed})
        messages += [{"role": "user", "content": results}, *added]


signal.signal(signal.SIGINT, interrupt)
code = 0
try:
    tell("SessionStart", source="startup", model="scripted")
    code = turn()
except Interrupted:
    sys.stdin.read()  # It is somebody's turn.
except Stopped as error:
    print("stopped:", error, flush=True)
try:
    tell("SessionEnd", reason="other")
except Stopped:
    pass
sys.exit(code)
