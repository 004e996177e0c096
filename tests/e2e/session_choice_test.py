#!/usr/bin/env python3
"""The session that a command is about, as people name it: the beginning of its id, its folder, or the last one."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

from server import Server

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
DONE, USAGE, REFUSED, NOT_FOUND = 0, 2, 3, 5
FIRST, SECOND = "5e551011-1111-4222-8333-444444444444", "5e551022-1111-4222-8333-444444444444"


class SessionChoice(unittest.TestCase):
    def setUp(self):
        config = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "watchdog.toml")
        config.write_text('[alerts.channels.log]\ntype = "log"\n')
        self.server = self.enterContext(Server(PROGRAM, arguments=["--config", config]))
        self.url = f"http://127.0.0.1:{self.server.port}"
        for session, folder in ((FIRST, "/srv/orchard"), (SECOND, "/srv/mill")):
            self.post("/api/hooks/claude-code", {"hook_event_name": "UserPromptSubmit", "prompt": "Begin", "session_id": session, "cwd": folder})

    def post(self, path, body):
        asked = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            self.assertEqual(answer.status, 200)

    def run_it(self, *words):
        return subprocess.run([PROGRAM, *words, "--server", self.url], capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                              stdin=subprocess.DEVNULL, env={**os.environ, "WATCHDOG_TOKEN": self.server.secret})

    def test_each_name_finds_its_session(self):
        names = {FIRST: FIRST, "5e551011": FIRST, "orchard": FIRST, "/srv/orchard/": FIRST, "mill": SECOND, "--last": SECOND}
        for name, session in names.items():
            with self.subTest(name):
                said = self.run_it("status", name)
                self.assertEqual(said.returncode, DONE, said.stderr)
                self.assertTrue(said.stdout.startswith(session + " "), said.stdout)
        for command in ("events", "explain", "cancel"):
            with self.subTest(command):
                said = self.run_it(command, "mill", "--json")
                self.assertEqual((said.returncode, said.stderr), (DONE, ""))

    def test_an_act_by_a_short_name_is_noted_once_with_its_session(self):
        self.assertEqual(self.run_it("cancel", "5e551011").returncode, DONE)
        self.assertEqual(self.run_it("cancel", "nobody").returncode, NOT_FOUND)
        acts = [json.loads(line) for line in self.run_it("audit", "--json").stdout.splitlines()]
        self.assertEqual([(act["target"], act["outcome"]) for act in acts], [(FIRST, "ok")])

    def test_a_status_says_which_session_it_is(self):
        said = self.run_it("status", "orchard").stdout
        self.assertRegex(said, r"(?m)^ *title +Begin$")
        self.assertRegex(said, r"(?m)^ *folder +orchard$")

    def test_the_list_says_where_each_is(self):
        said = self.run_it("sessions").stdout
        self.assertRegex(said, r"(?m)^STATE +FOR +TITLE +FOLDER +SESSION +WHY$")
        self.assertRegex(said, f"(?m)^.* Begin +orchard +{FIRST} ")
        self.assertNotIn("FOLDER", self.run_it("sessions", "--agent", "nobody").stdout)

    def test_a_cancel_says_whose_session_it_is(self):
        self.assertIn(f"session {SECOND}  mill: Begin\n", self.run_it("cancel", "--last").stdout)

    def test_a_wait_takes_the_last_one_and_hints_at_a_folder(self):
        self.post("/api/hooks/claude-code", {"hook_event_name": "SessionEnd", "reason": "logout", "session_id": SECOND, "cwd": "/srv/mill"})
        said = self.run_it("wait", "--last", "--for", "end", "--json")
        self.assertEqual(json.loads(said.stdout)["session"], SECOND, said.stderr)
        waits = subprocess.Popen([PROGRAM, "wait", "orchard", "--server", self.url], stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                                 env={**os.environ, "WATCHDOG_TOKEN": self.server.secret})
        self.addCleanup(waits.communicate)
        self.addCleanup(waits.kill)
        self.assertIn(f"If you mean session {FIRST}, give this id", waits.stderr.readline())
        self.assertEqual(self.run_it("wait").returncode, USAGE)
        self.assertEqual(self.run_it("wait", "x", "--last").returncode, USAGE)

    def test_each_list_says_whose_its_rows_are(self):
        call = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "make release"}, "tool_use_id": "c1"}
        self.post("/api/hooks/claude-code", call | {"session_id": SECOND, "cwd": "/srv/mill"})
        self.post("/api/hooks/claude-code", {"hook_event_name": "PermissionRequest", "tool_name": "Write", "tool_input": {"file_path": "x"},
                                             "session_id": FIRST, "cwd": "/srv/orchard"})
        self.assertRegex(self.run_it("turns").stdout, f"(?m)^{SECOND} +mill: Begin +claude-code +.*Bash: make release$")
        deadline = time.monotonic() + PATIENCE_S
        while (said := self.run_it("alerts", "--session", "orchard").stdout) .startswith("no alerts\n") and time.monotonic() < deadline:
            time.sleep(.1)
        self.assertRegex(said, f"(?m)^[0-9]+ .* {FIRST} +orchard: Begin +needs_input ")
        self.assertIn("Bash: make release", self.run_it("sessions").stdout)
        self.assertRegex(self.run_it("activity", "mill").stdout, f"^working  {SECOND}  mill: Begin  ")
        said = self.run_it("explain", "mill").stdout
        self.assertRegex(said, r"(?m)^ *title +Begin$")
        self.assertRegex(said, r"(?m)^ *folder +mill$")

    def test_commands_understand_the_names_that_completion_offers(self):
        self.post("/api/hooks/claude-code", {"hook_event_name": "UserPromptSubmit", "prompt": "Twice", "session_id": "x", "cwd": "/srv/mill"})
        offered = dict(line.split("\t") for line in self.run_it("sessions", "--names").stdout.splitlines())
        self.assertEqual(offered, {FIRST: "orchard: Begin", SECOND: "mill: Begin", "x": "mill: Twice", "orchard": "orchard: Begin"})
        for name in offered:
            self.assertEqual(self.run_it("status", name).returncode, DONE, name)
        self.post("/api/hooks/claude-code", {"hook_event_name": "SessionEnd", "reason": "logout", "session_id": SECOND, "cwd": "/srv/mill"})
        offered = dict(line.split("\t") for line in self.run_it("sessions", "--names").stdout.splitlines())
        self.assertEqual(offered["mill"], "mill: Twice", "the one that runs is meant")

    def test_forget_takes_the_same_names(self):
        self.assertEqual(self.run_it("forget", "mill", "--yes").returncode, REFUSED, "it runs")
        for name, session in (("mill", SECOND), ("--last", FIRST)):
            said = self.run_it("forget", name, "--yes", "--force")
            self.assertEqual((said.returncode, said.stdout.splitlines()[0]), (DONE, f"forgotten: {session}"), said.stderr)
        self.assertEqual(self.run_it("forget", "nobody", "--yes").returncode, NOT_FOUND)
        self.assertEqual(self.run_it("forget").returncode, USAGE)

    def test_a_name_of_several_is_refused_and_names_them(self):
        for command in ("status", "cancel"):
            said = self.run_it(command, "5e5510")
            self.assertEqual((said.returncode, said.stdout), (REFUSED, ""))
            self.assertIn(FIRST, said.stderr)
            self.assertIn(SECOND, said.stderr)

    def test_sessions_that_run_are_meant_first(self):
        self.post("/api/hooks/claude-code", {"hook_event_name": "SessionEnd", "reason": "exit", "session_id": SECOND, "cwd": "/srv/mill"})
        said = self.run_it("status", "5e5510")
        self.assertTrue(said.stdout.startswith(FIRST + " "), said.stdout + said.stderr)

    def test_a_subagent_hides_no_parent(self):
        self.post("/api/hooks/claude-code", {"hook_event_name": "SubagentStart", "agent_id": "a1", "agent_type": "look", "session_id": FIRST,
                                             "cwd": "/srv/orchard"})
        for name in ("5e551011", "orchard"):
            said = self.run_it("status", name)
            self.assertTrue(said.stdout.startswith(FIRST + " "), said.stdout + said.stderr)

    def test_a_chosen_id_is_not_the_beginning_of_another(self):
        self.post("/api/autonomous/sessions/build-42/events", [{"kind": "state_change", "type": "begun"}])
        for command in ("status", "cancel"):
            said = self.run_it(command, "build-4")
            self.assertEqual((said.returncode, said.stdout), (NOT_FOUND, ""))

    def test_a_slip_finds_nothing(self):
        for name in ("5e5", "orch", "nobody"):
            with self.subTest(name):
                said = self.run_it("status", name)
                self.assertEqual((said.returncode, said.stdout), (NOT_FOUND, ""))
        self.assertEqual(self.run_it("status").returncode, USAGE)
        self.assertEqual(self.run_it("status", "orchard", "--last").returncode, USAGE)


if __name__ == "__main__":
    unittest.main()
