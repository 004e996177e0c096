#!/usr/bin/env python3
"""Three monitors on one real PostgreSQL, each on its own files: every one knows all sessions, and none does a thing twice."""

import collections
import json
import os
import pathlib
import queue
import sys
import tempfile
import threading
import time
import unittest

from fake_model import Model
from postgres import SESSIONS, Hook, Monitor, Postgres, percentiles, until

PROGRAM = sys.argv.pop(1)
# A change that one monitor stored is on the others. A sanitizer makes every program slow, and looks for other faults.
VISIBLE_MS = 3_000 if os.environ.get("WATCHDOG_SANITIZE") else 300
CHECKS = "/api/autonomous/check-status"


class Watcher:
    """What a stream shows, with the time at which it came."""

    def __init__(self, monitor, path):
        self.came = queue.Queue()
        threading.Thread(target=self.read, args=(monitor, path), daemon=True).start()
        assert self.came.get(timeout=60)[1] == "snapshot"

    def read(self, monitor, path):
        try:
            for kind, data in monitor.records(path):
                self.came.put((time.monotonic(), kind, data))
        except OSError:
            pass  # the monitor is gone

    def until(self, condition):
        """When it came."""
        while True:
            at, kind, data = self.came.get(timeout=60)
            if condition(kind, data):
                return at


class Several(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server, cls.hook, cls.model = Postgres(), Hook(), Model()
        cls.folder = tempfile.TemporaryDirectory()
        cls.ready = pathlib.Path(cls.folder.name, "ready")
        on_ready = json.dumps(["sh", "-c", 'echo "$WATCHDOG_SESSION" >> "$0"', str(cls.ready)])
        own = f'[checks]\nbase_url = "{cls.model.url}"\n[recovery]\non_ready = {on_ready}\non_ready_labels = ["team:mine"]\n'
        cls.monitors = [Monitor(PROGRAM, cls.server.url(), settings=cls.hook.settings(f"m{at}") + own)
                        for at in range(3)]
        until(lambda: sum(m.ready()["shards"] for m in cls.monitors) == 256 and
              all(m.ready()["monitors"] == 3 and m.ready()["shards"] >= 85 for m in cls.monitors), "they do not share")

    @classmethod
    def tearDownClass(cls):
        for monitor in cls.monitors:
            monitor.stop()
        cls.server.stop()
        cls.folder.cleanup()

    def measured(self, what, times):
        """Prints what was measured. Most changes come in time; the machine of a test may stall now and then."""
        middle, late = percentiles(times)
        print(f"{what}: {middle} ms in the middle, {late} ms at the 99th percentile (goal {VISIBLE_MS} ms)", file=sys.stderr)
        self.assertLess(middle, VISIBLE_MS, what)

    def test_each_has_its_share_and_says_so(self):
        shards = []
        for monitor in self.monitors:
            ready = monitor.ready()
            self.assertEqual((ready["lease"], ready["monitors"]), ("held", 3))
            for part in ready["held"].split(", "):
                first, _, last = part.partition("-")
                shards += range(int(first), int(last or first) + 1)
        self.assertEqual(sorted(shards), list(range(256)))

    def test_alerts_are_sent_once_whatever_monitor_heard_them(self):
        count = 24
        for number in range(count):
            self.monitors[number % 3].report(f"bad{number}")
            self.monitors[(number + 1) % 3].report(f"bad{number}", "end", outcome="failed", error="it broke")
        sent = lambda: collections.Counter(alert["sessionId"] for _, body in self.hook.came for alert in body["alerts"]
                                           if alert["sessionId"].startswith("bad"))
        until(lambda: len(sent()) == count, lambda: f"of {count} only {sent()}; {self.monitors[0].ask('GET', '/api/alerts?limit=30')}")
        time.sleep(2)  # what would be sent twice
        self.assertEqual(set(sent().values()), {1})
        senders = {path for path, body in self.hook.came for alert in body["alerts"] if alert["sessionId"].startswith("bad")}
        self.assertEqual(senders, {"m0", "m1", "m2"}, "each sends those of the sessions that it judges")

    def test_the_command_for_waits_that_are_over_runs_once(self):
        count = 12
        over = int(time.time() * 1000) - 25_000
        for number in range(count):
            monitor = self.monitors[number % 3]
            monitor.ask("POST", SESSIONS, {"sessionId": f"ready{number}", "labels": {"team": "mine"}})
            monitor.report(f"ready{number}", "wait", waiting_for="quota", until_ms=over)
        ran = lambda: self.ready.read_text().split() if self.ready.exists() else []
        until(lambda: len(set(ran())) == count, lambda: f"of {count} only {ran()}")
        time.sleep(6)  # a look later
        self.assertEqual(sorted(ran()), sorted(f"ready{number}" for number in range(count)))

    def test_answers_of_people_count_on_each(self):
        for number in range(3):
            self.monitors[0].report(f"known{number}")
            self.monitors[0].report(f"known{number}", "end", outcome="failed", error="it broke")
        alert_of = lambda monitor, session: next(iter(monitor.ask("GET", f"/api/alerts?sessionId={session}")[1]["alerts"]), None)
        for number, monitor in enumerate(self.monitors):
            alert = until(lambda: alert_of(monitor, f"known{number}"), "the monitor made no alert")
            status, answer = monitor.ask("POST", f"/api/alerts/{alert['alertId']}/acknowledge", {"by": f"person {number}"})
            self.assertEqual(status, 200, answer)
            for other in self.monitors:
                self.assertEqual(alert_of(other, f"known{number}")["acknowledged"]["by"], f"person {number}")
            # The first person counts, on whichever monitor the second one is.
            other = self.monitors[(number + 1) % 3]
            other.ask("POST", f"/api/alerts/{alert['alertId']}/acknowledge", {"by": "too late"})
            self.assertEqual(alert_of(monitor, f"known{number}")["acknowledged"]["by"], f"person {number}")
            status, answer = other.ask("POST", f"/api/alerts/{alert['alertId']}/snooze", {"minutes": 30})
            self.assertEqual(status, 200, answer)
            for each in self.monitors:
                self.assertEqual(alert_of(each, f"known{number}")["snoozedUntil"], answer["snoozedUntil"])

    def test_a_cancel_or_abort_reaches_the_agent_through_any(self):
        for number in range(9):
            agent, person = self.monitors[number % 3], self.monitors[number // 3]
            session = f"told{number}"
            agent.report(session, "turn", "turn_start", call_id=f"turn{number}")
            agent.report(session)
            status, answer = until(lambda: (lambda said: said if said[0] != 404 else None)(
                person.ask("POST", f"/api/turns/turn{number}/abort", {"reason": "another way"})), "the turn is not known")
            self.assertEqual(status, 200, answer)
            aborts = agent.report(session)[1]["directive"]["aborts"]
            self.assertEqual([abort["reason"] for abort in aborts], ["another way"])
            self.assertEqual(person.ask("POST", f"{SESSIONS}/{session}/cancel", {"reason": "enough"})[0], 200)
            self.assertEqual(agent.report(session)[1]["directive"]["cancel"]["reason"], "enough")
        active = [{turn["turnId"] for turn in m.ask("GET", "/api/turns/active?limit=1000")[1]["turns"]} for m in self.monitors]
        self.assertTrue({f"turn{number}" for number in range(9)} <= active[0], active)
        self.assertEqual(active[0], active[1])
        self.assertEqual(active[0], active[2])

    def test_a_question_to_a_model_has_one_answer(self):
        for number in range(3):
            asker, other = self.monitors[number], self.monitors[(number + 1) % 3]
            session = f"asked{number}"
            self.assertEqual(asker.ask("POST", SESSIONS, {"sessionId": session, "task": "waits"})[0], 201)
            asker.report(session)
            self.model.let_go.clear()
            status, check = asker.ask("POST", CHECKS, {"sessionId": session})
            self.assertEqual((status, check["state"]), (202, "pending"), check)
            for monitor in (other, asker):
                self.assertEqual(monitor.ask("GET", f"{CHECKS}/{check['checkId']}")[1]["state"], "pending")
                again = monitor.ask("POST", CHECKS, {"sessionId": session})[1]
                self.assertEqual(again["checkId"], check["checkId"], "one question at a time, on every monitor")
            self.model.let_go.set()
            answers = [until(lambda: (lambda found: found if found["state"] != "pending" else None)(
                monitor.ask("GET", f"{CHECKS}/{check['checkId']}")[1]), "the monitor has no answer") for monitor in self.monitors]
            self.assertEqual([answer["status"] for answer in answers], ["A"] * 3, answers)

    def test_all_answer_the_same(self):
        self.monitors[0].ask("POST", SESSIONS, {"sessionId": "parent"})
        self.monitors[0].report("parent", "tool_call", name="delegate", call_id="c")
        for number in range(6):
            self.monitors[number % 3].ask("POST", SESSIONS, {"sessionId": f"child{number}", "parent": "parent"})
            self.monitors[number % 3].report(f"child{number}", "wait", waiting_for="approval")

        def document(monitor):
            answer = monitor.progress("parent")
            return {name: answer[name] for name in ("health", "lifecycle", "explainedBy", "reason") if name in answer}

        until(lambda: len({json.dumps(document(m), sort_keys=True) for m in self.monitors}) == 1, "their documents differ")
        summary = lambda monitor: monitor.ask("GET", "/api/autonomous/summary")[1]
        until(lambda: summary(self.monitors[0]) == summary(self.monitors[1]) == summary(self.monitors[2]), "their summaries differ")
        total = int(self.server.run("SELECT count(*) FROM watchdog.sessions"))
        self.assertEqual(summary(self.monitors[0])["total"], total)

    def test_a_change_is_on_the_others_soon(self):
        count = 12
        for number in range(count):
            self.monitors[0].report(f"heard{number}")
            self.monitors[0].report(f"seen{number}")
        watchers = [Watcher(monitor, "/api/autonomous/stream?include=events,sessions") for monitor in self.monitors]
        rounds, events, rows, waits = 6, [], [], []
        for turn in range(rounds):
            for at in range(count):
                session, here, there = f"heard{at}", self.monitors[at % 3], (at + 1) % 3
                name = f"round{turn}"
                begun = time.monotonic()
                here.report(session, name=name)
                events.append(watchers[there].until(lambda kind, data: kind == "event" and data["sessionId"] == session and
                                                    data.get("type", data.get("name")) == name) - begun)
                # Of a list, what people wait for is a change of state.
                session, begun = f"seen{at}", time.monotonic()
                waits_now = turn % 2 == 0
                here.report(session, *(["wait"] if waits_now else []), **({"waiting_for": "approval"} if waits_now else {}))
                rows.append(watchers[there].until(lambda kind, data: kind == "session" and data["sessionId"] == session and
                                                  (data["lifecycle"] == "waiting") == waits_now) - begun)
        for turn in range(24):
            session, here, there = f"awaited{turn}", self.monitors[turn % 3], self.monitors[(turn + 2) % 3]
            here.report(session)
            answered = {}

            def wait():
                answered["answer"] = there.ask("GET", f"{SESSIONS}/{session}/wait?for=state-change=answer&timeoutMs=25000")[1]
                answered["at"] = time.monotonic()

            waiting = threading.Thread(target=wait)
            waiting.start()
            time.sleep(0.15)  # it waits by then, mostly
            begun = time.monotonic()
            here.report(session, name="answer")
            waiting.join()
            self.assertTrue(answered["answer"]["came"], answered)
            waits.append(answered["at"] - begun)
        self.measured("an event in a stream of another monitor", events)
        self.measured("a row in the list of another monitor", rows)
        self.measured("an answer that another monitor waits for", waits)


if __name__ == "__main__":
    unittest.main()
