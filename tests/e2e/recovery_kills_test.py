#!/usr/bin/env python3
"""A monitor that is killed at any moment of an act repeats none. With WATCHDOG_FULL, 200 kills."""

import collections
import http.client
import json
import os
import pathlib
import random
import sys
import tempfile
import threading
import unittest

from server import Server

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
KILLS = 200 if os.environ.get("WATCHDOG_FULL") else 40
SEED = int(os.environ.get("WATCHDOG_SEED") or random.randrange(2**31))
AT_MOST = {"tell": 1, "deny": 2, "stop": 1}
RULES = """
[recovery.rules.tell]
step = "nudge"
[recovery.rules.deny]
step = "refuse"
at_most = 2
[recovery.rules.stop]
step = "cancel"
"""


class RecoveryKills(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "watchdog.toml").write_text(RULES)
        self.server = self.enterContext(Server(PROGRAM, {}, ["--config", folder / "watchdog.toml"]))
        self.heard = collections.defaultdict(collections.Counter)  # session → acts that its agent got
        self.random = random.Random(SEED)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Authorization": f"Bearer {self.server.secret}"})
            return json.load(connection.getresponse())
        finally:
            connection.close()

    def hook(self, session, name, **more):
        """Nothing: the monitor died meanwhile."""
        try:
            answer = self.ask("POST", "/api/hooks/claude-code", {"session_id": session, "hook_event_name": name} | more)
        except (OSError, http.client.HTTPException, ValueError):
            return None
        own = answer.get("hookSpecificOutput", {})
        if answer.get("continue") is False:
            self.heard[session]["stop"] += 1
        elif own.get("permissionDecision") == "deny":
            self.heard[session]["deny"] += 1
        elif "additionalContext" in own:
            self.heard[session]["tell"] += 1
        return answer

    def call(self, session, number):
        """False: the monitor died, so the agent ran the call without it."""
        of = {"tool_name": "Bash", "tool_use_id": f"t{number}", "tool_input": {"command": "make"}}
        before = self.hook(session, "PreToolUse", **of)
        if before and (before.get("continue") is False or before.get("hookSpecificOutput", {}).get("permissionDecision") == "deny"):
            return True
        after = self.hook(session, "PostToolUse", **of, tool_response="2 failed")
        return before is not None and after is not None

    def loop_and_kill(self, session, kills_left):
        """Until the session is cancelled. Gives how often the monitor was killed."""
        kills, number = 0, 0
        self.hook(session, "UserPromptSubmit", prompt="mend the test")
        while not self.heard[session]["stop"] and number < 60:
            number += 1
            killer = None
            # From here on each call that the monitor hears brings an act.
            if number >= 4 and kills < kills_left and self.random.random() < 0.5:
                killer = threading.Timer(self.random.uniform(0, 0.02), self.server.crash)
                killer.start()
            self.call(session, number)
            if killer:
                killer.join()
                kills += 1
                self.server.start()
        return kills

    def test_no_act_is_repeated(self):
        print(f"WATCHDOG_SEED={SEED}", file=sys.stderr)
        kills, sessions = 0, []
        while kills < KILLS:
            sessions.append(f"s{len(sessions)}")
            kills += self.loop_and_kill(sessions[-1], KILLS - kills)
        acts = collections.Counter()
        for session in sessions:
            events = self.ask("GET", f"/api/autonomous/sessions/{session}/events?limit=1000")["events"]
            claimed = collections.Counter(event["text"].split()[1] for event in events if event.get("text", "").startswith("rule "))
            with self.subTest(session=session):
                for rule, most in AT_MOST.items():
                    self.assertLessEqual(claimed[rule], most, "an act was claimed again")
                    # Before its answer an act can be lost. After a cancel each call is stopped.
                    if rule != "stop":
                        self.assertLessEqual(self.heard[session][rule], claimed[rule], "an act was done without a claim, or twice")
            acts.update(claimed)
        written = collections.Counter(entry["actor"].removeprefix("rule:") for entry in self.ask("GET", "/api/audit?limit=1000")["audit"]
                                      if entry["action"] in ("nudge", "refuse", "cancel"))
        for rule in AT_MOST:
            self.assertLessEqual(written[rule], acts[rule], "the list of acts has more than the sessions")
        self.assertGreater(acts["stop"], 0, "no session was cancelled")
        print(f"{kills} kills, {len(sessions)} sessions, acts {dict(acts)}, of which {dict(written)} reached the list", file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
