#!/usr/bin/env python3
"""Whether sessions are at work, in one word: the command, and the route behind it."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

from server import Server

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
DONE, FAILED, USAGE, NOT_FOUND = 0, 1, 2, 5
ACTIVITIES = ["working", "stuck", "quiet", "waiting", "idle", "unknown"]


class ActivityTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Server(PROGRAM))
        self.url = f"http://127.0.0.1:{self.server.port}"

    def post(self, path, body):
        asked = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            self.assertLess(answer.status, 300)

    def session(self, name, *events, **more):
        self.post("/api/autonomous/sessions", {"sessionId": name, "agent": "coder", **more})
        if events:
            self.post(f"/api/autonomous/sessions/{name}/events", list(events))

    def hook(self, session, event, **more):
        self.post("/api/hooks/claude-code", {"session_id": session, "hook_event_name": event, **more})

    def run_it(self, *words):
        return subprocess.run([PROGRAM, "activity", *words, "--server", self.url], capture_output=True, text=True, check=False,
                              timeout=PATIENCE_S, stdin=subprocess.DEVNULL, env={**os.environ, "WATCHDOG_TOKEN": self.server.secret})

    def activity(self, *words):
        said = self.run_it(*words, "--json")
        self.assertEqual((said.returncode, said.stderr), (DONE, ""))
        return json.loads(said.stdout)

    def test_the_busiest_session_speaks_for_all(self):
        self.assertEqual(self.activity()["activity"], "unknown")
        self.assertIsNone(self.activity()["sessionId"])
        self.session("ended", {"kind": "end", "outcome": "completed"})
        self.assertEqual((self.activity()["activity"], self.activity()["sessionId"]), ("idle", "ended"))
        self.session("asks", {"kind": "wait", "name": "approval"})
        self.assertEqual((self.activity()["activity"], self.activity()["sessionId"]), ("waiting", "asks"))
        self.session("loops", *[event for at in range(12) for event in (
            {"kind": "tool_call", "name": "ls", "call_id": f"c{at}", "args": {"path": "."}},
            {"kind": "tool_result", "name": "ls", "call_id": f"c{at}", "text": "a"})])
        self.assertEqual(self.activity()["activity"], "stuck")
        self.session("works", {"kind": "state_change", "type": "edit"}, labels={"team": "a"})
        found = self.activity()
        self.assertEqual((found["activity"], found["sessionId"]), ("working", "works"))
        self.assertEqual(found["sessions"], dict.fromkeys(ACTIVITIES, 0) | {"working": 1, "stuck": 1, "waiting": 1})
        self.assertIn("ast progress", found["reason"])

    def test_a_label_or_a_session_narrows_it(self):
        self.session("a-1", {"kind": "state_change", "type": "edit"}, labels={"team": "a"})
        self.session("b-1", {"kind": "idle"}, labels={"team": "b"})
        self.assertEqual(self.activity("--label", "team:b")["activity"], "idle")
        self.assertEqual(self.activity("b-1")["activity"], "idle")
        self.assertEqual(self.activity("a-1")["activity"], "working")
        self.assertEqual(self.activity("--label", "team:c")["activity"], "unknown")
        self.assertEqual(self.run_it("nobody").returncode, NOT_FOUND)

    def test_a_command_that_goes_on_after_the_turn_is_work(self):
        self.hook("s", "UserPromptSubmit", prompt="Serve it")
        self.hook("s", "Stop", last_assistant_message="It runs.", background_tasks=[
            {"id": "b1", "type": "shell", "status": "running", "description": "serve", "command": "./serve"}])
        found = self.activity("s")
        self.assertEqual(found["activity"], "working")
        self.assertIn("./serve", found["reason"])

    def test_a_child_that_loops_does_not_work_for_its_parent(self):
        self.hook("s", "UserPromptSubmit", prompt="Prune it")
        self.hook("s", "SubagentStart", agent_id="saw", agent_type="pruner")
        self.hook("s", "Stop", last_assistant_message="The pruner works.", background_tasks=[
            {"id": "saw", "type": "subagent", "status": "running"}])
        self.assertEqual(self.activity("s")["activity"], "working")
        for at in range(12):
            call = {"agent_id": "saw", "agent_type": "pruner", "tool_name": "Glob", "tool_input": {"pattern": "*"},
                    "tool_use_id": f"g{at}"}
            self.hook("s", "PreToolUse", **call)
            self.hook("s", "PostToolUse", **call, tool_response="a")
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.activity("s"))["activity"] == "working" and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(found["activity"], "waiting")
        self.assertIn("s:saw needs a person: ", found["reason"])
        self.assertEqual(self.activity()["activity"], "stuck")
        self.hook("s", "SubagentStart", agent_id="rake", agent_type="sweeper")
        while (found := self.activity("s"))["activity"] == "waiting" and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(found["activity"], "working", "the other child must not be stopped")

    def test_a_probe_asks_by_exit_code(self):
        self.session("works", {"kind": "state_change", "type": "edit"})
        self.assertEqual(self.run_it("--is", "idle,waiting").returncode, FAILED)
        said = self.run_it("--is", "working")
        self.assertEqual(said.returncode, DONE)
        self.assertRegex(said.stdout, r"^working  works  coder  Last progress: ")
        self.assertEqual(self.run_it("--is", "asleep").returncode, USAGE)
        self.assertEqual(self.run_it("--not", "stuck,quiet").returncode, DONE)
        self.assertEqual(self.run_it("--not", "working,stuck").returncode, FAILED)
        self.assertEqual(self.run_it("--is", "working", "--not", "working").returncode, FAILED)

    def status(self, query):
        try:
            with urllib.request.urlopen(f"{self.url}/api/activity?{query}", timeout=PATIENCE_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, json.load(refusal)

    def test_a_probe_asks_by_status(self):
        self.session("works", {"kind": "state_change", "type": "edit"})
        for query, status in (("is=working", 200), ("is=idle,waiting", 412), ("not=stuck", 200), ("not=stuck,working", 412)):
            with self.subTest(query):
                told, answer = self.status(query)
                self.assertEqual((told, answer["activity"]), (status, "working"))
        for query, field in (("is=asleep", "is"), ("until=idle&not=stuck", "until"), ("until=idle&timeoutMs=25001", "timeoutMs")):
            with self.subTest(query):
                told, answer = self.status(query)
                self.assertEqual((told, answer["error"]["field"]), (422, field))

    def test_a_wait_is_answered_when_the_word_comes_or_in_time(self):
        self.session("works", {"kind": "state_change", "type": "edit"}, labels={"team": "a"})
        self.assertEqual(self.status("until=working,idle")[1]["activity"], "working")
        self.assertEqual(self.status("until=idle&timeoutMs=0")[1]["activity"], "working")
        command = subprocess.Popen([PROGRAM, "activity", "--label", "team:a", "--until", "idle,waiting", "--server", self.url],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                                   env={**os.environ, "WATCHDOG_TOKEN": self.server.secret})
        self.addCleanup(command.kill)
        with self.assertRaises(subprocess.TimeoutExpired):
            command.wait(3)
        self.post("/api/autonomous/sessions/works/events", [{"kind": "wait", "name": "approval"}])
        said, errors = command.communicate(timeout=PATIENCE_S)
        self.assertEqual((command.returncode, errors), (DONE, ""))
        self.assertRegex(said, r"^waiting  works  ")

    def test_a_monitor_that_stops_answers_those_who_wait(self):
        self.session("works", {"kind": "state_change", "type": "edit"})
        answers = []
        waits = threading.Thread(target=lambda: answers.append(self.status("until=idle")))
        waits.start()
        time.sleep(2)
        self.server.process.terminate()
        waits.join(PATIENCE_S)
        self.assertEqual([(status, answer["activity"]) for status, answer in answers], [(200, "working")])

    def test_waits_leave_room_for_others(self):
        self.session("works", {"kind": "state_change", "type": "edit"})
        # These are more than there is room for.
        for _ in range(25):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
            self.addCleanup(connection.close)
            connection.request("GET", "/api/activity?until=idle")
        deadline = time.monotonic() + PATIENCE_S
        told, answer = self.status("until=idle&timeoutMs=0")
        while told == 200 and time.monotonic() < deadline:
            time.sleep(0.1)
            told, answer = self.status("until=idle&timeoutMs=0")
        self.assertEqual((told, answer["error"]["code"]), (503, "exhausted"))
        self.assertEqual(self.status("is=working")[1]["activity"], "working")


if __name__ == "__main__":
    unittest.main()
