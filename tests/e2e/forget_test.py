#!/usr/bin/env python3
"""A forgotten session is in no file of the state folder any more, whichever way it came; and no file has its secrets before.

Usage: forget_test.py MONITOR
"""

import datetime
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from server import Server

PROGRAM = os.path.abspath(sys.argv.pop(1))
PATIENCE_S = 60
SESSIONS = "/api/autonomous/sessions"
SECRET = "gh" + "p_0123456789abcdefghijABCDEFGHIJ012345"
PLANTED = "plantedword"


def line(**more):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return json.dumps({"timestamp": now, "cwd": f"/home/{PLANTED}", "version": "2.1.0"} | more) + "\n"


def transcript(session):
    prompt = {"role": "user", "content": f"{PLANTED} prompt with {SECRET}"}
    answer = {"id": "m1", "role": "assistant", "model": "m", "stop_reason": "end_turn", "content": [{"type": "text", "text": f"{PLANTED} answer"}],
              "usage": {"input_tokens": 1, "output_tokens": 1}}
    return line(type="user", uuid="u1", sessionId=session, message=prompt) + line(type="assistant", uuid="u2", sessionId=session, message=answer)


class Forget(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.transcripts = self.home / ".claude" / "projects" / "x"
        self.transcripts.mkdir(parents=True)
        self.server = self.enterContext(Server(PROGRAM, {"HOME": str(self.home)}, ["--follow", "claude-code"]))
        self.folder = pathlib.Path(self.server.folder.name)

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        connection.request(method, path, body if body is None else json.dumps(body),
                           {"Content-Type": "application/json", "Authorization": f"Bearer {self.server.secret}"} | headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, json.loads(content) if content.startswith(b"{") else content

    def command(self, *words, **more):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WATCHDOG_")} | {"HOME": str(self.home)} | more
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def files_with(self, *words):
        """The log of the process is the test's own."""
        found = {}
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and path.name != "log":
                held = [word for word in words if word.encode() in path.read_bytes()]
                if held:
                    found[str(path.relative_to(self.folder))] = held
        return found

    def until(self, session):
        """Its transcript was read."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            status, document = self.ask("GET", f"/api/autonomous/progress/{session}")
            if status == 200 and document["state"] not in ("working", "unknown"):
                return
            time.sleep(0.05)
        self.fail(f"{session} did not come")

    def begin_task(self, session):
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "wait", "arguments": {"session": session, "until": f"state-change={SECRET}"}, "task": {},
                           "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                                     "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}}}
        self.ask("POST", "/mcp", call, Accept="application/json, text/event-stream", **{"MCP-Protocol-Version": "2026-07-28",
                 "Mcp-Method": "tools/call", "Mcp-Name": "wait"})

    def test_no_file_has_a_secret_and_none_names_a_forgotten_session(self):
        kinds = {}
        kinds["reported"] = "reported-1"
        self.ask("POST", SESSIONS, {"sessionId": "reported-1", "agent": PLANTED, "task": f"{PLANTED} {SECRET}", "title": f"{PLANTED} {SECRET}"})
        self.ask("POST", f"{SESSIONS}/reported-1/events", {"kind": "state_change", "type": PLANTED, "data": SECRET})
        kinds["hooks"] = "hooks-1"
        self.ask("POST", "/api/hooks/claude-code", {"session_id": "hooks-1", "hook_event_name": "UserPromptSubmit", "cwd": f"/{PLANTED}",
                                                    "prompt": f"{PLANTED} {SECRET}"})
        kinds["followed"] = "3f0e0000-aaaa-4bbb-8ccc-0123456789ab"
        (self.transcripts / f"{kinds['followed']}.jsonl").write_text(transcript(kinds["followed"]))
        self.until(kinds["followed"])
        other = self.home / "other"
        other.mkdir()
        kinds["read"] = "4f0e0000-aaaa-4bbb-8ccc-0123456789ab"
        (other / f"{kinds['read']}.jsonl").write_text(transcript(kinds["read"]))
        self.command("follow", "claude-code", other, "--once", "--server", f"http://{self.server.host}", WATCHDOG_TOKEN=self.server.secret,
                     WATCHDOG_DB=str(self.folder / "w.db"))
        self.until(kinds["read"])
        kinds["wrapped"] = "wrapped-1"
        self.command("run", "--session", "wrapped-1", "--server", f"http://{self.server.host}", "--", "echo", PLANTED, SECRET,
                     WATCHDOG_TOKEN=self.server.secret)
        self.begin_task("reported-1")
        self.ask("POST", f"/api/turns/{SECRET}/abort", {})
        self.assertEqual(self.files_with(SECRET), {}, "secrets")
        before = self.files_with(PLANTED, *kinds.values())
        for name in ("w.db-transcripts", "w.db-mcp-tasks", "follow-"):
            self.assertTrue(any(file.startswith(name) for file in before), f"{name}: {before}")
        self.ask("POST", "/api/autonomous/forget", {"sessions": list(kinds.values()), "force": True})
        for kind, session in kinds.items():
            with self.subTest(kind=kind):
                self.assertEqual(self.ask("GET", f"/api/autonomous/progress/{session}")[0], 404)
                self.assertEqual(self.files_with(session), {})
        self.assertEqual(self.files_with(PLANTED), {})
        # The former lines are not read again. New lines begin the session again.
        self.server.crash()
        self.server.start()
        with (self.transcripts / f"{kinds['followed']}.jsonl").open("a") as file:
            file.write(line(type="user", uuid="u3", sessionId=kinds["followed"], message={"role": "user", "content": "next"}))
        deadline = time.monotonic() + PATIENCE_S
        while self.ask("GET", f"/api/autonomous/progress/{kinds['followed']}")[0] != 200:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertEqual([name for name, words in self.files_with(f"{PLANTED} answer").items()], [])


if __name__ == "__main__":
    unittest.main()
