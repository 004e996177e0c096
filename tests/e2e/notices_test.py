#!/usr/bin/env python3
"""Notices about sessions: what a turn left open, groups of which everybody waits, children that never spoke."""

import http.client
import json
import re
import subprocess
import sys
import time
import unittest

from server import Server
from upstream import Upstream, respond

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
STATES = {"d": "completed", "p": "pending", "i": "in_progress"}
PROMISED = "The last message announces an act, and no call followed"
CUT = "The model's last answer was cut at its limit of length"


def todos(statuses):
    """A plan of which the default level of contents keeps only a part."""
    return {"todos": [{"content": f"Part {number}: change what reads the settings", "status": STATES[status], "activeForm": "Changing"}
                      for number, status in enumerate(statuses)]}


class NoticesTest(unittest.TestCase):
    arguments = ()

    def setUp(self):
        self.server = self.enterContext(Server(PROGRAM, None, self.arguments))

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        connection.request(method, path, None if body is None else json.dumps(body), {"Authorization": f"Bearer {self.server.secret}"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        self.assertLess(answer.status, 300, text)
        return json.loads(text)

    def document(self, session):
        return self.ask("GET", f"/api/autonomous/progress/{session}")

    def row(self, session):
        rows = self.ask("GET", "/api/autonomous/sessions")["sessions"]
        return next(row for row in rows if row["sessionId"] == session)

    def until(self, holds):
        end = time.monotonic() + PATIENCE_S
        while not (found := holds()):
            self.assertLess(time.monotonic(), end, "it does not come")
            time.sleep(0.02)
        return found

    def run_program(self, *arguments):
        made = subprocess.run([PROGRAM, *arguments, "--server", f"http://{self.server.host}"], capture_output=True, text=True,
                              timeout=PATIENCE_S, env={"PATH": "/usr/bin", "COLUMNS": "400", "WATCHDOG_TOKEN": self.server.secret})
        self.assertEqual(made.returncode, 0, made.stderr)
        return made.stdout

    def page(self, path):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.server.secret}"})
        text = connection.getresponse().read().decode()
        connection.close()
        return text


class Hooks(NoticesTest):
    def hook(self, event, session="s-1", **more):
        return self.ask("POST", "/api/hooks/claude-code", {"session_id": session, "hook_event_name": event, "cwd": "/home/ann/parser", **more})

    def call(self, tool, number, session="s-1", **more):
        self.hook("PreToolUse", session, tool_name=tool, tool_use_id=f"c-{number}", **more)
        self.hook("PostToolUse", session, tool_name=tool, tool_use_id=f"c-{number}", tool_response={"text": "ok"}, **more)

    def turn(self, plan, answer):
        self.hook("UserPromptSubmit", prompt="Repair the parser of dates")
        self.call("TodoWrite", 1, tool_input=todos(plan))
        self.hook("Stop", last_assistant_message=answer)

    def test_loose_ends_of_a_turn_are_shown_and_move_nothing(self):
        self.turn("ddd", "All is done.")
        before = self.document("s-1")
        self.assertIsNone(before["unfinished"])
        self.turn("ddppp", "The cause is clear. Now I will run the tests.")
        note = "The turn ended with 3 of 5 plan items open; the last message announces an act, and no call followed"
        after = self.document("s-1")
        self.assertEqual(after["unfinished"], note)
        self.assertEqual([after[name] for name in ("state", "attention", "lifecycle", "health", "reason")],
                         [before[name] for name in ("state", "attention", "lifecycle", "health", "reason")])
        self.assertEqual(self.row("s-1")["unfinished"], note)
        self.assertIn("unfinished: " + note, self.run_program("status", "s-1"))
        self.assertIn("unfinished: " + note, self.run_program("explain", "s-1"))
        self.assertIn("unfinished: " + note, self.run_program("sessions"))
        self.assertIn(note, self.page("/sessions/s-1"))
        self.assertEqual(self.ask("GET", "/api/alerts")["alerts"], [])
        self.hook("UserPromptSubmit", prompt="Which port does it use?")
        self.assertIsNone(self.document("s-1")["unfinished"], "it works")
        self.hook("Stop", last_assistant_message="Port 8080.")
        self.assertIsNone(self.document("s-1")["unfinished"], "that turn was about something else")

    def test_a_question_and_an_interruption_leave_nothing_open(self):
        self.turn("ddd", "Should I run the tests?")
        self.assertEqual((self.document("s-1")["state"], self.document("s-1")["unfinished"]), ("needs_input", None))
        self.turn("ddd", "Let me know if you want more.")
        self.assertIsNone(self.document("s-1")["unfinished"])

    def test_it_survives_a_crash(self):
        self.turn("dpp", "Done for now.")
        self.server.crash()
        self.server.start()
        self.assertEqual(self.document("s-1")["unfinished"], "The turn ended with 2 of 3 plan items open")


class Groups(NoticesTest):
    def make(self, session, **more):
        self.ask("POST", "/api/autonomous/sessions", {"sessionId": session, **more})

    def say(self, session, *reports):
        self.ask("POST", f"/api/autonomous/sessions/{session}/events", list(reports))

    def rest(self, session, plan=None):
        if plan:
            self.call(session, "TodoWrite", todos(plan))
        self.say(session, {"kind": "message", "name": "assistant", "text": "That is it."}, {"kind": "idle"})

    def call(self, session, tool, arguments):
        self.say(session, {"kind": "tool_call", "name": tool, "args": arguments}, {"kind": "tool_result", "name": tool, "text": "ok"})

    def members(self, session):
        group = self.document(session).get("groupWait")
        return group and {member["sessionId"]: member["waitsFor"] for member in group["members"]}

    def test_a_family_of_which_everybody_waits_is_named(self):
        self.make("lead")
        for child in ("tests", "docs"):
            self.make(child, parentSessionId="lead")
            self.rest(child)
        self.assertIsNone(self.members("tests"), "the lead has not begun")
        self.rest("lead")
        self.assertIsNone(self.members("lead"), "nothing is open")
        self.rest("lead", "dpp")
        expected = {"lead": [], "tests": ["lead"], "docs": ["lead"]}
        for session in expected:
            self.assertEqual(self.members(session), expected)
            self.assertEqual(self.row(session)["groupWait"], self.document(session)["groupWait"])
        document = self.document("lead")
        self.assertEqual(document["state"], "your_turn")
        self.assertEqual(document["groupWait"]["since"], document["stateSince"], "the lead was the last")
        self.assertTrue(document["groupWait"]["text"].startswith("everybody waits: lead waits for a prompt; "))
        for command in ("status", "explain"):
            self.assertIn("everybody waits: lead waits for a prompt", self.run_program(command, "lead"))
        self.assertIn("everybody waits", self.run_program("sessions"))
        self.say("docs", {"kind": "tool_call", "name": "Read", "args": {}})
        self.assertEqual([self.members(session) for session in expected], [None] * 3, "one works")

    def test_a_parent_whose_call_waits_for_a_child_that_rests(self):
        self.make("lead")
        self.say("lead", {"kind": "tool_call", "name": "Task", "args": {"prompt": "Write tests"}, "call_id": "t"})
        self.assertIsNone(self.members("lead"), "its child is not known")
        self.make("tests", parentSessionId="lead")
        self.say("tests", {"kind": "tool_call", "name": "Read", "args": {}})
        self.assertIsNone(self.members("lead"), "its child works")
        self.rest("tests")
        self.assertEqual(self.members("lead"), {"lead": ["tests"], "tests": ["lead"]})
        self.say("lead", {"kind": "tool_call", "name": "Task", "args": {"prompt": "Write docs"}, "call_id": "u"})
        self.assertIsNone(self.members("lead"), "the child of the second call is not known")

    def test_sessions_of_one_label_are_a_group(self):
        for session in ("a", "b"):
            self.make(session, labels={"group": "release"})
            self.rest(session)
        self.make("other", labels={"group": "another"})
        self.rest("other", "pp")
        self.assertIsNone(self.members("a"))
        self.rest("b", "pp")
        self.assertEqual(self.members("a"), {"a": [], "b": []})
        self.assertIsNone(self.members("other"), "it is alone")
        self.make("c", labels={"group": "release"})
        self.say("c", {"kind": "wait", "waiting_for": "quota"})
        self.assertIsNone(self.members("a"), "one waits for something else")

    def test_parents_in_a_circle_are_read_once(self):
        self.make("x", parentSessionId="y")
        self.make("y", parentSessionId="x")
        self.rest("x")
        self.rest("y", "pp")
        self.assertEqual(self.members("x"), {"x": ["y"], "y": ["x"]})

    def test_a_child_that_never_spoke_is_named_after_five_rounds_of_its_parent(self):
        self.make("lead")
        self.make("mute", parentSessionId="lead")
        self.make("never", parentSessionId="lead")
        self.say("mute", {"kind": "start"})
        for number in range(4):
            self.call("lead", "Read", {"file": number})
        self.assertNotIn("silentChild", self.document("lead"))
        self.call("lead", "Read", {"file": 4})
        document = self.document("lead")
        self.assertEqual((document["silentChild"]["sessionId"], document["silentChild"]["rounds"]), ("mute", 5))
        self.assertEqual((document["state"], document["explainedBy"]), ("progressing", None))
        self.assertIn("its child mute has reported nothing but its start", self.run_program("status", "lead"))
        self.say("mute", {"kind": "tool_call", "name": "Read", "args": {}})
        self.assertNotIn("silentChild", self.document("lead"))


class Proxied(NoticesTest):
    def setUp(self):
        self.end, self.text = "length", "The first half of"
        self.upstream = self.enterContext(Upstream(self.answer))
        self.arguments = ["--upstream", self.upstream.url, "--proxy-port", "0", "--no-probe"]
        super().setUp()
        for line in self.server.process.stdout:
            if found := re.search(r"their model at https?://127\.0\.0\.1:(\d+)/v1", line):
                self.port = int(found[1])
                return

    def answer(self, connection, _, __):
        respond(connection, json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": self.text}, "finish_reason": self.end}]}).encode())

    def prompt(self, text):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json", "X-Watchdog-Session": "p-1"})
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def rested(self, said):
        def look():
            rows = self.ask("GET", "/api/autonomous/sessions")["sessions"]
            return next((row for row in rows if row["lifecycle"] == "idle" and row["lastMessage"] == said), None)
        return self.until(look)

    def test_how_the_last_answer_ended(self):
        self.prompt("Tell me all")
        row = self.rested(self.text)
        self.assertEqual(row["unfinished"], CUT)
        self.assertEqual(row["reason"], "The answer is complete")
        self.end, self.text = "tool_calls", "Wait a moment"
        self.prompt("Look at the log")
        self.assertEqual(self.rested(self.text)["unfinished"], "The model's last answer ended for a tool call that it does not have")
        self.end, self.text = "stop", "Now let me look at the log."
        self.prompt("Look again")
        self.assertEqual(self.rested(self.text)["unfinished"], PROMISED)
        self.text = "The log is empty."
        self.prompt("Look once more")
        self.assertIsNone(self.rested(self.text)["unfinished"])


if __name__ == "__main__":
    unittest.main()
