#!/usr/bin/env python3
"""Every command of the real program: help, JSON, exit codes; and those that live in a terminal."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest
import urllib.request

from fake_model import Model
from server import Server

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
DONE, FAILED, USAGE, REFUSED, UNREACHABLE, NOT_FOUND, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


def run(*words, **more):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                          stdin=subprocess.DEVNULL, **more)


def commands():
    listing = run("--help").stdout.split("Subcommands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (\w+) ", listing, re.MULTILINE)


class OfThemselves(unittest.TestCase):
    """What needs no monitor."""

    def test_each_says_what_it_does_and_how_it_ends(self):
        self.assertGreater(len(commands()), 20)
        for command in commands():
            with self.subTest(command):
                said = run(command, "--help")
                self.assertEqual((said.returncode, said.stderr), (DONE, ""))
                self.assertIn(f"Usage: watchdog-monitor {command}", said.stdout)
                self.assertRegex(said.stdout, r"Exit codes?:")
                self.assertEqual(run(command, "--no-such-option").returncode, USAGE)

    def test_man_reads_the_manual_page(self):
        page = run("man").stdout
        for command in commands():
            self.assertRegex(page, rf"(?m)^\.SS {command}\b")
        laid_out = subprocess.run(["groff", "-Kutf8", "-man", "-Tutf8", "-ww", "-P-cbou"], input=page, capture_output=True, text=True, check=False)
        self.assertEqual((laid_out.returncode, laid_out.stderr), (0, ""))
        self.assertIn("--on-stuck", laid_out.stdout.replace("‐", "-").replace("−", "-"))

    def complete(self, *words, environment=None):
        script = ('source <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _watchdog_monitor; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        said = subprocess.run(["bash", "-c", script, PROGRAM, PROGRAM, *words], capture_output=True, text=True, check=True, env=environment)
        self.assertEqual(said.stderr, "")
        return said.stdout.split()

    def test_bash_completes_commands_options_and_their_words(self):
        self.assertEqual(sorted(self.complete("")), sorted([*commands(), "--help", "--version"]))
        self.assertEqual(self.complete("sess"), ["sessions"])
        self.assertIn("--on-stuck", self.complete("wait", "--"))
        self.assertEqual(sorted(self.complete("wait", "--on-stuck", "")), ["ask", "fail", "keep"])
        self.assertEqual(self.complete("completion", "--h"), ["--help"])

    def test_where_nobody_answers_is_said(self):
        for command in ("status x", "sessions", "events x", "explain x", "turns", "alerts", "cancel x", "check x", "report", "watch --json",
                        "wait x"):
            with self.subTest(command):
                said = run(*command.split(), "--server", "http://127.0.0.1:1")
                self.assertEqual(said.returncode, UNREACHABLE)
                self.assertIn("127.0.0.1:1", said.stderr)
                self.assertEqual(said.stdout if command != "wait x" else "", "")
        self.assertEqual(run("status", "x", "--server", "ftp://x").returncode, REFUSED)
        self.assertEqual(run("status", "x", "--server", "http://a", "--db", "b").returncode, USAGE)

    def test_the_doctor_needs_a_server_that_answers(self):
        for upstream, code in (("http://127.0.0.1:1", UNREACHABLE), ("ftp://x", USAGE)):
            said = run("doctor", "--upstream", upstream)
            self.assertEqual((said.returncode, said.stdout), (code, ""))
            self.assertIn("http://", said.stderr)
        self.assertEqual(run("doctor", "--upstream", "http://127.0.0.1:1", "--key-file", "/nowhere").returncode, USAGE)
        said = run("doctor", "--upstream", "http://127.0.0.1:1", "--json")
        self.assertEqual((said.returncode, json.loads(said.stdout)["reachable"]), (UNREACHABLE, False))


class WithAMonitor(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Server(PROGRAM))
        self.where = ("--server", f"http://127.0.0.1:{self.server.port}")
        self.report("runs", {"kind": "heartbeat", "source": "loop", "iteration": 1, "phase": "plan"},
                    {"kind": "state_change", "type": "planned", "data": {"steps": 2}})

    def report(self, session, *events):
        asked = urllib.request.Request(f"{self.where[1]}/api/autonomous/sessions/{session}/events", json.dumps(events).encode())
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            self.assertEqual(answer.status, 200)

    def environment(self, **more):
        return {**os.environ, "WATCHDOG_TOKEN": self.server.secret, **more}

    def test_each_gives_json(self):
        objects = {"status runs": 1, "sessions": 1, "events runs": 2, "explain runs": 1, "turns": 0, "alerts": 1, "report": 1,
                   "wait runs --for health=progressing": 1}
        for command, count in objects.items():
            with self.subTest(command):
                said = run(*command.split(), "--json", *self.where)
                self.assertEqual((said.returncode, said.stderr), (DONE, ""))
                self.assertEqual([type(json.loads(line)) for line in said.stdout.splitlines()], [dict] * count)
        said = run("config", "--json")
        self.assertIn("settings", json.loads(said.stdout))
        said = run("cancel", "runs", "--json", *self.where, env=self.environment())
        self.assertEqual((said.returncode, json.loads(said.stdout)["sessionId"]), (DONE, "runs"))
        said = run("audit", "--json", *self.where, env=self.environment())
        self.assertEqual(said.returncode, DONE)
        self.assertIn("cancel", said.stdout)

    def test_what_the_model_server_does_is_said(self):
        self.report("runs", {"kind": "evidence", "call_id": "r", "state": "reading", "done": 41216, "total": 61440, "left_ms": 118000})
        said = run("status", "runs", *self.where)
        self.assertIn("model server     reads the prompt: 41,216 of 61,440 tokens, about 2 min left\n", said.stdout)

    def test_the_doctor_tells_what_it_found_and_which_limits_bite(self):
        said = run("doctor", "--upstream", self.where[1] + "/v1", "--json")
        self.assertEqual((said.returncode, said.stderr), (DONE, ""))
        found = json.loads(said.stdout)
        self.assertEqual((found["url"], found["kind"], found["reachable"]), (self.where[1], "unknown", True))
        self.assertIn("bodyTimeout", [limit["name"] for limit in found["clientLimits"]])
        said = run("doctor", "--upstream", self.where[1])
        self.assertEqual(said.returncode, DONE)
        for words in ("prompt progress", "What to change", "stream_chunk_timeout"):
            self.assertIn(words, said.stdout)

    def test_what_is_not_there_is_said(self):
        for command in ("status", "events", "explain", "cancel", "events --follow"):
            with self.subTest(command):
                said = run(*command.split(), "nobody", *self.where, env=self.environment())
                self.assertEqual((said.returncode, said.stdout), (NOT_FOUND, ""))
                self.assertIn("nobody", said.stderr)
        said = run("cancel", "runs", *self.where, "--token-file", "/nowhere")
        self.assertEqual(said.returncode, NOT_FOUND)
        said = run("cancel", "runs", *self.where, env=self.environment(WATCHDOG_TOKEN="wrong"))
        self.assertEqual(said.returncode, REFUSED)
        self.assertIn("token", said.stderr)

    def test_a_check_that_cannot_be_made_fails_and_says_why(self):
        said = run("check", "runs", *self.where)
        self.assertEqual((said.returncode, said.stdout), (UNREACHABLE, ""))
        self.assertIn("model", said.stderr)

    def test_a_check_is_waited_for_and_told(self):
        model = Model()
        self.addCleanup(model.server_close)
        self.addCleanup(model.shutdown)
        self.server.crash()
        self.server.more = {"OPENAI_BASE_URL": model.url, "WATCHDOG_CHECKS_SHARE_SERVER": "true",
                            "WATCHDOG_CHECKS_ON_SUSPICION": "false"}
        self.server.start()
        for session, goal in (("a", "loops"), ("b", "is not allowed")):
            asked = urllib.request.Request(f"{self.where[1]}/api/autonomous/sessions",
                                           json.dumps({"sessionId": session, "task": goal}).encode())
            urllib.request.urlopen(asked, timeout=PATIENCE_S).close()
            self.report(session, {"kind": "state_change", "type": "step"})
        said = run("check", "a", *self.where)
        self.assertEqual(said.returncode, DONE)
        self.assertRegex(said.stdout, r"done: it is stuck in a loop.*\n  reads the same file again\n$")
        said = run("check", "a", "--json", *self.where)
        self.assertEqual((said.returncode, json.loads(said.stdout)["status"]), (DONE, "B"))
        self.assertEqual(run("check", "b", *self.where).returncode, FAILED)
        said = run("check", "a", "--no-wait", "--json", *self.where)
        self.assertEqual((said.returncode, json.loads(said.stdout)["sessionId"]), (DONE, "a"))

    def test_completion_knows_the_sessions(self):
        self.report("other", {"kind": "start"})
        environment = {**os.environ, "WATCHDOG_SERVER": self.where[1]}
        self.assertEqual(sorted(OfThemselves.complete(self, "status", "", environment=environment)), ["other", "runs"])

    def lines(self, *words):
        process = subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, text=True, bufsize=1)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def test_events_are_followed_over_a_restart(self):
        following = self.lines("events", "runs", "--follow", "--json", *self.where)
        took = lambda: json.loads(following.stdout.readline())
        self.assertEqual([took()["kind"], took()["kind"]], ["heartbeat", "state_change"])
        self.report("runs", {"kind": "state_change", "type": "second"})
        self.assertEqual(took()["type"], "second")
        self.server.crash()
        self.server.start()
        self.report("runs", {"kind": "state_change", "type": "third"})
        self.assertEqual(took()["type"], "third")
        following.send_signal(signal.SIGINT)
        self.assertEqual(following.wait(), -signal.SIGINT)

    def test_events_of_a_file_are_followed(self):
        following = self.lines("events", "runs", "--follow", "--kind", "state_change", "--db", os.path.join(self.server.folder.name, "w.db"))
        self.assertIn("planned", following.stdout.readline())
        self.report("runs", {"kind": "heartbeat", "source": "loop"}, {"kind": "state_change", "type": "second"})
        self.assertIn("second", following.stdout.readline())

    def test_rows_are_told_as_they_change(self):
        watching = self.lines("watch", "--json", *self.where)
        self.assertEqual(json.loads(watching.stdout.readline())["sessionId"], "runs")
        self.report("later", {"kind": "start"})
        self.assertEqual(json.loads(watching.stdout.readline())["sessionId"], "later")

    def test_the_live_list_obeys_its_keys_and_gives_the_terminal_back(self):
        self.assertEqual(run("watch", *self.where).returncode, USAGE, "there is no terminal")
        child, terminal = pty.fork()
        if child == 0:
            os.execve(PROGRAM, [PROGRAM, "watch", *self.where], self.environment(TERM="xterm"))
        self.addCleanup(os.close, terminal)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 100, 0, 0))
        seen = ""

        def until(text):
            nonlocal seen
            patient_until = time.monotonic() + PATIENCE_S
            while text not in seen:
                self.assertLess(time.monotonic(), patient_until, f"{text!r} does not come: {seen[-2000:]!r}")
                select.select([terminal], [], [], 1)
                with contextlib.suppress(OSError):
                    seen += os.read(terminal, 65536).decode(errors="replace")
            seen = seen.split(text, 1)[1]

        def press(keys):
            os.write(terminal, keys.encode())

        until("\x1b[?1049h")
        until("1 sessions, 0 in trouble; by health")
        until("runs")
        press("s")
        until("by session")
        press("/nob\r")
        until('with "nob"')
        press("/")
        until("/nob_")
        press("\x1b")
        until("enter: open")
        press("\r")
        until("planned")
        press("\x1b")
        until("enter: open")
        press("c")
        until("Ask runs to stop?")
        press("y")
        until("runs is asked to stop")
        press("q")
        until("\x1b[?1049l")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), DONE)
        flags = termios.tcgetattr(terminal)[3]
        self.assertTrue(flags & termios.ICANON and flags & termios.ECHO)


unittest.main()
