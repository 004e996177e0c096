#!/usr/bin/env python3
"""Five agents in five terminals, heard by their hooks alone: what their person's phone says, and when."""

import http.client
import json
import os
import pathlib
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

from receivers import Receivers, settings_with_a_phone
from server import Server

PROGRAM = sys.argv.pop(1)
TLS = pathlib.Path(__file__).parent.parent / "data" / "tls"
PATIENCE_S = 60
SOON_S = 10 * (3 if os.environ.get("WATCHDOG_SANITIZE") else 1)  # from what happens to the message
LOOP_HOLD_S = 20
SECRETS = ("npm ci", "Which port", "the parser works", "sleep 600", "pytest", "Repair")


class FiveTerminals(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.phone = self.enterContext(Receivers(TLS / "cert.pem", TLS / "key.pem"))
        config = settings_with_a_phone(folder, self.phone, 'on = ["stuck", "looping", "dead", "failed", "needs_input", "idle"]\nidle_seconds = 2')
        self.server = self.enterContext(Server(PROGRAM, arguments=["--config", config]))

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        connection.request(method, path, body and json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        self.assertIn(answer.status, (200, 201), text)
        return text

    def hook(self, folder, event, hold=0, **more):
        event = {"session_id": f"session-{folder}", "cwd": f"/home/ann/{folder}", "hook_event_name": event} | more
        return json.loads(self.ask("POST", f"/api/hooks/claude-code?hold={hold}", event))

    def call(self, folder, number, command, result):
        facts = {"tool_name": "Bash", "tool_use_id": f"{folder}-{number}", "tool_input": {"command": command}}
        self.hook(folder, "PreToolUse", **facts)
        self.hook(folder, "PostToolUse", **facts, tool_response={"stdout": result})

    def message(self, folder, patience_s=SOON_S):
        """The message about the session of this folder, and how long it took."""
        begun = time.monotonic()
        while time.monotonic() < begun + PATIENCE_S:
            for message in self.phone.taken("ntfy"):
                if message["title"].startswith(folder + ":"):
                    self.assertLess(time.monotonic() - begun, patience_s, message)
                    return message, time.monotonic() - begun
            time.sleep(0.05)
        self.fail(f"no message about {folder}: {[message['title'] for message in self.phone.taken('ntfy')]}")

    def test_each_rings_when_its_person_is_wanted_and_says_who_and_what(self):
        for folder in ("parser", "server", "docs", "batch", "tests"):
            self.hook(folder, "SessionStart", source="startup")
            self.hook(folder, "UserPromptSubmit", prompt="Repair what is broken here")

        asks = {"tool_name": "Bash", "tool_use_id": "c1", "tool_input": {"command": "npm ci"}}
        self.hook("parser", "PreToolUse", **asks)
        told = []
        held = threading.Thread(target=lambda: told.append(self.hook("parser", "PermissionRequest", hold=60, **asks)), daemon=True)
        held.start()
        message, _ = self.message("parser")
        self.assertEqual(message["title"], "parser: Claude Code asks for permission")
        buttons = {action["label"]: urllib.parse.urlsplit(action["url"]).path for action in message["actions"]}
        self.ask("POST", buttons["Allow"], Host="monitor.example")
        held.join(PATIENCE_S)
        self.assertEqual(told[0]["hookSpecificOutput"]["decision"], {"behavior": "allow"})

        self.hook("server", "Stop", last_assistant_message="It can listen now. Which port shall it use?")
        self.assertIn("Claude Code asks", self.message("server")[0]["title"])

        self.hook("docs", "Stop", last_assistant_message="Done: the parser works.")
        self.assertIn("Claude Code", self.message("docs")[0]["title"])

        self.hook("batch", "Stop", last_assistant_message="It runs.",
                  background_tasks=[{"type": "shell", "status": "running", "command": "sleep 600"}])
        begun = time.monotonic()
        for number in range(8):
            self.call("tests", number, "pytest", "1 failed")
        self.message("tests", LOOP_HOLD_S + SOON_S)
        self.assertGreater(time.monotonic() - begun, LOOP_HOLD_S, "it may end by itself")

        titles = [message["title"] for message in self.phone.taken("ntfy")]
        self.assertFalse([title for title in titles if title.startswith("batch:")], "it goes on by itself")
        self.assertEqual(len(titles), len(set(titles)), "one message for each")
        for message in self.phone.taken("ntfy"):
            for text in SECRETS:
                self.assertNotIn(text, json.dumps(message), "no texts unless their owner says so")

    def titles(self, count, begin):
        """Waits until `count` titles of messages begin like this. Returns the titles of all messages."""
        end = time.monotonic() + SOON_S
        while True:
            titles = [message["title"] for message in self.phone.taken("ntfy")]
            if len([title for title in titles if title.startswith(begin)]) >= count:
                return titles
            self.assertLess(time.monotonic(), end, f"{count} of {begin}: {titles}")
            time.sleep(0.05)

    def test_each_question_of_a_session_rings(self):
        self.hook("parser", "SessionStart", source="startup")
        for number in range(1, 7):
            asks = {"tool_name": "Bash", "tool_use_id": f"c{number}", "tool_input": {"command": f"make part{number}"}}
            self.hook("parser", "PreToolUse", **asks)
            self.hook("parser", "PermissionRequest", **asks)
            self.titles(number, "parser: Claude Code asks for permission")
            self.hook("parser", "PostToolUse", **asks, tool_response={"stdout": f"part {number}"})

    def test_answered_questions_delay_no_failure(self):
        for folder in ("one", "two", "three"):
            asks = {"tool_name": "Bash", "tool_use_id": "c1", "tool_input": {"command": "make"}}
            self.hook(folder, "PreToolUse", **asks)
            self.hook(folder, "PermissionRequest", **asks)
            self.titles(1, f"{folder}: Claude Code asks")
            self.hook(folder, "PostToolUse", **asks, tool_response={"stdout": "made"})
            self.titles(2, f"{folder}: ")
        self.ask("POST", "/api/autonomous/sessions", {"sessionId": "boom", "labels": {"cwd": "/home/ann/boom"}})
        self.ask("POST", "/api/autonomous/sessions/boom/events", {"kind": "end", "outcome": "failed"})
        self.titles(1, "boom: ")

    def test_a_permission_names_its_tool_and_not_the_command(self):
        """By each agent's own event, and without the one that comes before a call."""
        command = {"tool_name": "run_it", "tool_input": {"command": "make --private"}}
        for agent, tool, events in (
                ("claude-code", "run_it", [{"hook_event_name": "PermissionRequest", **command}]),
                ("codex", "run_it", [{"hook_event_name": "PermissionRequest", **command}]),
                ("gemini-cli", "run_it", [{"hook_event_name": "BeforeTool", **command}, {
                    "hook_event_name": "Notification", "notification_type": "ToolPermission", "message": "Tool Confirm Shell Command requires execution",
                    "details": {"type": "exec", "title": "Confirm Shell Command", "command": "make --private"}}]),
                ("copilot-cli", "run_it", [{"hook_event_name": "PreToolUse", **command}, {
                    "hook_event_name": "Notification", "notification_type": "permission_prompt", "message": "Allow make --private?"}])):
            for event in events:
                self.ask("POST", f"/api/hooks/{agent}", {"session_id": f"of-{agent}", "cwd": f"/home/ann/{agent}"} | event)
            message, _ = self.message(agent)
            self.assertIn("asks for permission", message["title"])
            self.assertIn(f"for approval: {tool}", message["message"], agent)
            self.assertNotIn("private", json.dumps(message), agent)
            self.assertIn("make --private", json.dumps(self.ask("GET", f"/api/autonomous/progress/of-{agent}")), agent)

    def test_opencode_is_known_by_its_folder(self):
        for kind, more in (("chat.message", {"text": "Repair it"}), ("permission.asked", {"id": "per_1", "permission": "bash", "patterns": ["make"]})):
            self.ask("POST", "/api/hooks/opencode", {"type": kind, "properties": {"sessionID": "ses_1"} | more, "cwd": "/home/ann/shop"})
        message, _ = self.message("shop")
        self.assertEqual(message["title"], "shop: opencode asks for permission")
        self.assertIn("for approval: bash", message["message"])


if __name__ == "__main__":
    unittest.main(verbosity=1)
