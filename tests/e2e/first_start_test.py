#!/usr/bin/env python3
"""Starts the program without arguments, for a person who has set up nothing.

Usage: first_start_test.py MONITOR
"""

import contextlib
import datetime
import http.server
import json
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

PROGRAM = os.path.abspath(sys.argv.pop(1))
DATA = pathlib.Path(__file__).parent.parent / "data" / "transcripts"
PATIENCE_S = 60
DONE, FAILED, REFUSED = 0, 1, 3


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def stamp(ago_s):
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=ago_s)
    return then.strftime("%Y-%m-%dT%H:%M:%S.") + f"{then.microsecond // 1000:03}Z"


def claude_line(session, kind, ago_s, **more):
    return json.dumps({"type": kind, "sessionId": session, "cwd": "/home/u/project", "isSidechain": False,
                       "uuid": f"{session}-{ago_s}", "timestamp": stamp(ago_s)} | more) + "\n"


def a_call(session, ago_s, call):
    said = {"role": "assistant", "id": f"msg_{call}", "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "make"}}]}
    return claude_line(session, "assistant", ago_s, message=said)


def a_prompt(session, ago_s, text):
    return claude_line(session, "user", ago_s, message={"role": "user", "content": text})


def recorded(name, days_ago):
    """A transcript that its agent wrote, as if it had ended that long ago; and the id of its session."""
    text = (DATA / name).read_text()
    times = re.findall(r'"timestamp": ?"(\d{4}-\d\d-\d\dT[\d:.]+Z)"', text)
    parse = lambda one: datetime.datetime.fromisoformat(one.replace("Z", "+00:00"))
    shift = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=days_ago) - parse(max(times))
    for one in set(times):
        text = text.replace(one, (parse(one) + shift).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z")
    return text, re.search(r'"sessionId": ?"([^"]+)"', text)[1]


class Home:
    """A home folder, a desktop whose browser writes down what it opens, and an address."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.projects = self.folder / ".claude" / "projects" / "-home-u-project"
        self.projects.mkdir(parents=True)
        self.opened = self.folder / "opened"
        self.opened.touch()
        browser = self.folder / "bin" / "xdg-open"
        browser.parent.mkdir()
        browser.write_text(f'#!/bin/sh\necho "$1" >>{self.opened}\n')
        browser.chmod(0o700)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def environment(self, **more):
        return {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "HOME": str(self.folder), "DISPLAY": ":0",
                "WATCHDOG_MONITOR_PORT": str(self.port)} | more

    def run(self, *words, **more):
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                              env=self.environment(**more))

    def ask(self, path):
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as answer:
            return json.load(answer)


class FirstStart(unittest.TestCase):
    def setUp(self):
        self.home = Home(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, *words, **more):
        """Starts the program at a terminal; returns the process and what reads its terminal."""
        terminal, inner = pty.openpty()
        self.addCleanup(os.close, terminal)
        log = self.enterContext(open(self.home.folder / "log", "a+"))
        process = subprocess.Popen([PROGRAM, *words], stdin=inner, stdout=inner, stderr=log, env=self.home.environment(**more))
        os.close(inner)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        said = [""]

        def until(pattern):
            while not re.search(pattern, said[0], re.MULTILINE):
                with contextlib.suppress(OSError):  # the end of the program
                    if piece := os.read(terminal, 65536):
                        said[0] += piece.decode().replace("\r", "")
                        continue
                log.seek(0)
                self.fail(f"{pattern!r} does not come: {said[0]!r} {log.read()!r}")
            return said[0]
        return process, until

    def opened(self, count):
        """Waits until the browser has opened so many pages, and returns them."""
        until = time.monotonic() + PATIENCE_S
        while len(pages := self.home.opened.read_text().split()) < count:
            self.assertLess(time.monotonic(), until, pages)
            time.sleep(0.02)
        return pages

    def say_that_one_asks(self):
        report = json.dumps({"kind": "wait", "name": "approval", "text": "Run npm test?"}).encode()
        asked = urllib.request.Request(f"{self.home.url}/api/autonomous/sessions/fix-login/events", report,
                                       {"Content-Type": "application/json"})
        urllib.request.urlopen(asked, timeout=PATIENCE_S).close()

    def test_shows_my_sessions_and_a_second_start_finds_the_first(self):
        (self.home.projects / "live.jsonl").write_text(a_prompt("live", 60, "Fix the parser") + a_call("live", 50, "c1"))
        first, until = self.start()
        said = until(r"^To see the model server: ")
        self.assertTrue(said.startswith(f"listening on {self.home.url}\nopen {self.home.url}"), said)
        self.assertRegex(said, r"(?m)^1 session: none needs you, 1 working$")
        self.assertIn("watchdog-monitor hooks install", said)
        self.assertEqual(self.opened(1), [self.home.url], "other users see the words of a process, so no token is among them")
        self.assertEqual(self.home.ask("/api/autonomous/progress/live")["title"], "Fix the parser")
        self.assertTrue((self.home.folder / ".local/state/watchdog/watchdog.db").exists())

        self.say_that_one_asks()
        for more in ({"CI": "1"}, {}):  # the one with CI opens nothing
            second, until = self.start(**more)
            said = until(r"^2 sessions: 1 needs you, 1 working\n  .*\n")
            self.assertEqual(second.wait(PATIENCE_S), DONE)
            self.assertIn(f"a monitor runs already\nopen {self.home.url}\n", said)
            self.assertRegex(said, r"(?m)^  .* \(needs_input\): .*Run npm test\?")
            self.assertNotIn("token=", said)
        self.assertEqual(self.opened(2), [self.home.url] * 2)
        piped = self.home.run()
        self.assertEqual(piped.returncode, DONE, piped.stderr)
        self.assertIn("2 sessions: 1 needs you, 1 working\n", piped.stdout)
        # A database of its own, but the same address.
        other = self.home.run(WATCHDOG_DB=str(self.home.folder / "other.db"))
        self.assertEqual(other.returncode, DONE, other.stderr)
        self.assertIn("a monitor runs already\n", other.stdout)
        # A script that starts `serve` expects a new monitor.
        explicit = self.home.run("serve", "--follow")
        self.assertEqual((explicit.returncode, explicit.stdout), (REFUSED, ""))
        self.assertIn("is watched by another monitor already", explicit.stderr)
        # The same database, and nobody at the address.
        lost = self.home.run(WATCHDOG_MONITOR_PORT=str(free_port()))
        self.assertEqual((lost.returncode, lost.stdout), (REFUSED, ""))
        self.assertIn("is watched by another monitor already", lost.stderr)
        self.assertEqual(len(self.opened(2)), 2, "neither of these opened a page")
        first.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(PATIENCE_S), DONE)

    def test_says_where_nothing_has_reported(self):
        monitor, until = self.start(DISPLAY="")
        until(r"^no sessions yet$")
        monitor.send_signal(signal.SIGTERM)
        self.assertEqual(monitor.wait(PATIENCE_S), DONE)
        self.assertEqual(self.home.opened.read_text(), "", "it opened a page without a display")

    def test_believes_no_other_program_at_its_address(self):
        class Other(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"total": "many", "sessions": 7}')

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", self.home.port), Other)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        silent = self.enterContext(socket.create_server(("127.0.0.1", 0)))
        for port in (self.home.port, silent.getsockname()[1]):
            with self.subTest(port):
                said = self.home.run(WATCHDOG_MONITOR_PORT=str(port))
                self.assertEqual((said.returncode, said.stdout), (FAILED, ""))
                self.assertIn(f"cannot listen on 127.0.0.1 port {port}", said.stderr)
                self.assertIn("watchdog-monitor serve --follow --port PORT", said.stderr)

    def test_recorded_runs_that_are_copied_into_place_rest(self):
        text, run = recorded("claude-code.jsonl", days_ago=5)  # it ends at a limit of its quota
        (self.home.projects / f"{run}.jsonl").write_text(text)
        day = 86_400
        open_call = a_prompt("cut", 9 * day, "Build it") + a_call("cut", 9 * day - 5, "c1")
        (self.home.projects / "cut.jsonl").write_text(open_call)
        failed = a_prompt("failed", 3 * day, "Deploy it") + a_call("failed", 3 * day - 5, "c2") + claude_line(
            "failed", "result", 3 * day - 9, subtype="error_during_execution", is_error=True, result="the model is gone")
        (self.home.projects / "failed.jsonl").write_text(failed)
        monitor, until = self.start()
        self.assertRegex(until(r"^To see the model server: "), r"(?m)^3 sessions: none needs you, 3 resting$")
        for session, state in ((run, "idle"), ("cut", "idle"), ("failed", "failed")):
            document = self.home.ask(f"/api/autonomous/progress/{session}")
            self.assertEqual((document["state"], document["attention"]), (state, "resting"), document["reason"])
        self.assertEqual(self.home.ask("/api/alerts")["alerts"], [], "nobody is called to what is long over")
        calls = {event["kind"] for event in self.home.ask(f"/api/autonomous/sessions/{run}/events?limit=1000")["events"]}
        self.assertLessEqual({"user_input", "tool_call", "tool_result"}, calls)
        # One of them goes on: from then on it is a session like any other.
        with open(self.home.projects / "cut.jsonl", "a") as file:
            file.write(a_prompt("cut", 1, "Go on"))
        end = time.monotonic() + PATIENCE_S
        while self.home.ask("/api/autonomous/progress/cut")["attention"] != "working":
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        monitor.send_signal(signal.SIGINT)
        self.assertEqual(monitor.wait(PATIENCE_S), DONE)


if __name__ == "__main__":
    unittest.main()
