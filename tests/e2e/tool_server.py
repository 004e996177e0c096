"""A tool server of MCP on standard input and output, for tests. Each tool does one thing that servers do."""

import json
import os
import sys
import threading
import time

lock = threading.Lock()


def say(message):
    with lock:
        sys.stdout.write(message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message}))
        sys.stdout.write("\n")
        sys.stdout.flush()


def result(call, text, **more):
    say({"id": call["id"], "result": {"content": [{"type": "text", "text": text}], **more}})


def progress(call, value, message):
    token = call["params"].get("_meta", {}).get("progressToken")
    if token is not None:
        say({"method": "notifications/progress", "params": {"progressToken": token, "progress": value, "message": message}})


def work(call):
    """Reports progress for longer than a deadline."""
    for step in range(int(call["params"]["arguments"]["steps"])):
        time.sleep(0.3)
        progress(call, step * step + 1, f"file {step}")
    result(call, "worked")


def burn(call):
    """Uses CPU and says nothing."""
    until = time.monotonic() + call["params"]["arguments"]["seconds"]
    while time.monotonic() < until:
        pass
    result(call, "burned")


def late(call):
    """Answers after its call was given up."""
    time.sleep(call["params"]["arguments"]["seconds"])
    result(call, "late")


def handle(message):
    if message.get("method") == "initialize":
        return say({"id": message["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                                    "serverInfo": {"name": "tools", "version": str(os.getpid())}}})
    if message.get("method") == "notifications/cancelled":
        return print("cancelled", message["params"]["requestId"], file=sys.stderr, flush=True)
    if message.get("method") != "tools/call":
        return say({"id": message["id"], "result": {}}) if "id" in message else None
    tool = message["params"]["name"]
    if tool == "hang":
        return None
    if tool == "die":
        os._exit(3)
    if tool == "pid":
        return result(message, str(os.getpid()))
    if tool == "meta":
        return result(message, json.dumps(message["params"].get("_meta")))
    if tool == "fail":
        return result(message, "no such file", isError=True)
    if tool == "noise":
        say("not JSON")
        return result(message, "x" * message["params"]["arguments"]["bytes"])
    return threading.Thread(target={"work": work, "burn": burn, "late": late}[tool], args=(message,), daemon=True).start()


for line in sys.stdin:
    try:
        handle(json.loads(line))
    except ValueError:
        say({"error": {"code": -32700, "message": "not JSON"}})
