#!/usr/bin/env python3
"""The command for waits that are over: once for each, and never for a session that goes on or ended."""

import http.client
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest

from server import Server

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 90
SESSIONS = "/api/autonomous/sessions"


def until(found, what):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if (it := found()):
            return it
        time.sleep(0.05)
    raise AssertionError(what)


class RecoveryTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.runs = self.folder / "runs"
        self.server = None

    def start(self, command):
        config = self.folder / "watchdog.toml"
        config.write_text(f'[recovery]\non_ready = {json.dumps(command)}\non_ready_labels = ["team:mine"]\n')
        self.server = self.enterContext(Server(PROGRAM, {}, ["--config", config]))

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        text = json.load(answer)
        connection.close()
        self.assertLess(answer.status, 300, text)
        return text

    def make(self, session, **more):
        """A session that the owner's settings name by its label."""
        self.ask("POST", SESSIONS, {"sessionId": session, "labels": {"team": "mine"}} | more)

    def report(self, session, *events):
        self.ask("POST", f"{SESSIONS}/{session}/events", list(events))

    def ran(self):
        return self.runs.read_text().splitlines() if self.runs.exists() else []

    def said(self, session):
        """What the monitor itself stored in the session."""
        events = self.ask("GET", f"{SESSIONS}/{session}/events?limit=100")["events"]
        return [event["text"] for event in events if event.get("origin") == "monitor"]

    def test_it_runs_once_for_each_wait_that_is_over_and_for_nothing_else(self):
        say = 'echo "$WATCHDOG_SESSION $WATCHDOG_AGENT $WATCHDOG_WAITED_FOR $WATCHDOG_PROVIDER" >> "$0"'
        self.start(["sh", "-c", say, str(self.runs)])
        now = int(time.time() * 1000)
        over = {"kind": "wait", "waiting_for": "quota", "provider": "anthropic", "until_ms": now - 25_000}
        work = {"kind": "state_change", "type": "step"}
        for session in ("goes-on", "ended", "later", "endless", "forgotten", "tries-again", "last"):
            self.make(session)
        self.make("ready", agent="co\nder")
        # Anybody may report a wait of a session that nobody knows.
        self.ask("POST", SESSIONS, {"sessionId": "stranger", "labels": {"team": "other"}})
        self.report("stranger", work, over)
        # To call oneself a wrapper proves nothing.
        self.ask("POST", f"{SESSIONS}/claims/events?source=run", [{"kind": "start"}, over])
        # Nor does the word for a process that the monitor found.
        found = {"kind": "start", "name": "process", "pid": os.getppid(), "boot_id": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
                 "host": os.uname().nodename}
        self.report("says-found", found, over)
        self.report("goes-on", over, work)
        self.report("ended", over, {"kind": "end", "outcome": "completed"})
        self.report("later", over | {"until_ms": now + 3_600_000})
        self.report("endless", {"kind": "wait", "waiting_for": "quota"})
        self.report("forgotten", over | {"until_ms": now - 90_000_000})
        self.report("tries-again", over | {"waiting_for": "retry"})
        self.report("ready", work, over)
        until(self.ran, "the command did not run")
        until(lambda: "recovery.on_ready ended with 0" in self.said("ready"), self.said("ready"))
        document = self.ask("GET", "/api/autonomous/progress/ready")
        self.assertEqual((document["state"], document["waitingFor"]), ("waiting", "quota"), "running the command does not count as progress")
        # The next wait of the same session is another one.
        self.report("ready", work, over | {"until_ms": now - 30_000})
        until(lambda: len(self.ran()) > 1, "the second wait was not seen")
        self.server.process.terminate()
        self.server.process.wait()
        self.server.process.stdout.close()
        self.server.start()
        self.report("last", over)
        until(lambda: len(self.ran()) > 2, "a restart ended it")
        time.sleep(6)  # a look later
        self.assertEqual(sorted(self.ran()), ["last  quota anthropic", "ready co der quota anthropic", "ready co der quota anthropic"])

    def test_a_command_that_cannot_run_is_named_in_the_session(self):
        self.start([str(self.folder / "missing")])
        self.make("ready")
        self.report("ready", {"kind": "wait", "waiting_for": "quota", "until_ms": int(time.time() * 1000) - 25_000})
        until(lambda: any("did not start" in text for text in self.said("ready")), lambda: self.said("ready"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
