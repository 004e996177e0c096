"""Monitors on a real PostgreSQL under load, for tests of faults: what must hold whatever happens to them.

Nothing that was acknowledged is lost, each alert is sent, at most one of all twice, and no session that works is taken
for dead or stuck. The load goes on through all faults.
"""

import collections
import http.client
import json
import os
import random
import signal
import sys
import threading
import time
import unittest

from postgres import SESSIONS, Hook, Monitor, until

PROGRAM = sys.argv.pop(1)
FULL = bool(os.environ.get("WATCHDOG_FULL"))
SEED = int(os.environ.get("WATCHDOG_SEED", time.time_ns() % 2**31))
AGENTS = 40
TAKE_OVER_S = 20


class Agent(threading.Thread):
    """Reports steps until `stop`. It repeats each report until a monitor acknowledges it."""

    def __init__(self, number, monitors, seed):
        super().__init__(daemon=True)
        self.session, self.monitors, self.random = f"agent{number}", monitors, random.Random(seed + number)
        self.acknowledged, self.slowest, self.stopping = [], 0, False
        self.start()

    def run(self):
        step = 0
        while not self.stopping:
            step += 1
            event = {"kind": "state_change", "type": f"step {step}", "event_id": f"{self.session}-{step}"}
            begun = time.monotonic()
            beat = {"kind": "heartbeat", "source": "loop", "iteration": step, "event_id": f"{self.session}-{step}-beat"}
            while not self.send([event, beat]):
                time.sleep(0.2)
            self.slowest = max(self.slowest, time.monotonic() - begun)
            self.acknowledged.append(event["event_id"])
            time.sleep(self.random.uniform(0.1, 0.4))

    def send(self, events):
        monitor = self.random.choice(self.monitors)
        connection = http.client.HTTPConnection(monitor.host, timeout=8)
        try:
            connection.request("POST", f"{SESSIONS}/{self.session}/events", json.dumps(events),
                               {"Authorization": f"Bearer {monitor.secret}", "Content-Type": "application/json"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


class UnderLoad(unittest.TestCase):
    def setUp(self):
        print(f"WATCHDOG_SEED={SEED}", file=sys.stderr)
        self.random = random.Random(SEED)
        self.begun = time.monotonic()
        self.hook = Hook()
        self.alerts, self.stopped = [], None

    def say(self, text):
        print(f"{time.monotonic() - self.begun:5.1f} s  {text}", file=sys.stderr)

    def start(self, server, *urls):
        """Three monitors and the agents. `urls`: of the monitors, if not of the server."""
        self.server, self.url = server, urls[0] if urls else server.url()
        self.monitors = []
        self.addCleanup(lambda: [m.stop(signal.SIGKILL) for m in self.monitors if m.process.returncode is None])
        for at in range(3):
            self.add_monitor(urls[at % len(urls)] if urls else None)
        until(lambda: self.shards() == 256, "they do not share")
        self.agents = [Agent(number, self.monitors, SEED) for number in range(AGENTS)]

    def add_monitor(self, url=None):
        self.monitors.append(Monitor(PROGRAM, url or self.url, (), self.hook.settings(f"m{len(self.monitors)}")))

    def ready(self, monitor):
        """The status and the answer; 0: none in time."""
        try:
            return monitor.ask("GET", "/readyz", patience_s=3)
        except OSError as why:
            return 0, str(why)

    def shards(self):
        """Of the monitors that answer."""
        answers = [self.ready(monitor)[1] for monitor in self.monitors]
        return sum(ready["shards"] for ready in answers if isinstance(ready, dict) and ready.get("lease") == "held")

    def until_each_says(self, what, monitors=None):
        """What a person finds at these monitors, of which the page shows the first: the answer of /readyz, and the metrics."""
        seen = {}

        def says(monitor):
            status, answer = seen[monitor.host] = self.ready(monitor)
            return status == 503 and any(text in answer["error"]["message"] for text in what) and \
                "watchdog_store_up 0\n" in monitor.ask("GET", "/metrics")[1]

        for monitor in monitors or self.monitors:
            until(lambda monitor=monitor: says(monitor), lambda: f"no monitor says {what}: {seen}", 40)
        self.say(f"all say it: {seen[(monitors or self.monitors)[-1].host][1]['error']['message']}")

    def report_failure(self, name):
        """Of a session in the middle of a fault: its alert must come."""
        session = f"fails-{name}"
        self.alerts.append(session)
        events = [{"kind": "state_change", "type": "step", "event_id": f"{session}-1"},
                  {"kind": "end", "outcome": "failed", "error": "it broke", "event_id": f"{session}-2"}]

        last = {}

        def send():
            monitor = self.random.choice([monitor for monitor in self.monitors if monitor is not self.stopped])
            try:
                last[monitor.host] = monitor.ask("POST", f"{SESSIONS}/{session}/events", events, patience_s=8)
                return last[monitor.host][0] == 200
            except (OSError, http.client.HTTPException) as why:
                last[monitor.host] = why
                return False

        until(send, lambda: f"{session} cannot report: {last}", every_s=0.2)

    def sent(self):
        """How often the alert of each session came."""
        return collections.Counter(alert["sessionId"] for _, body in self.hook.came for alert in body["alerts"])

    def check(self):
        for agent in self.agents:
            agent.stopping = True
        for agent in self.agents:
            agent.join(60)
            self.assertFalse(agent.is_alive(), f"{agent.session} still waits")
        until(lambda: self.shards() == 256, "nobody judges some sessions")
        acknowledged = [event for agent in self.agents for event in agent.acknowledged]
        stored = collections.Counter(self.server.run("SELECT event_id FROM watchdog.events WHERE event_id LIKE 'agent%'").split("\n"))
        lost = [event for event in acknowledged if event not in stored]
        self.say(f"{len(acknowledged)} events acknowledged, {len(lost)} lost, slowest "
                 f"{max(agent.slowest for agent in self.agents):.1f} s")
        self.assertEqual(lost, [])
        self.assertEqual([event for event, count in stored.items() if count > 1], [], "stored twice")
        until(lambda: all(session in self.sent() for session in self.alerts),
              lambda: f"alerts are lost: of {self.alerts} only {self.sent()}", 90)
        repeated = sum(count - 1 for session, count in self.sent().items() if session in self.alerts)
        false = self.server.run("SELECT s.name, t.health, t.reason FROM watchdog.transitions t JOIN watchdog.sessions s ON "
                                "s.id = t.session WHERE t.health IN ('dead', 'stuck', 'looping') AND s.name LIKE 'agent%'")
        self.say(f"{len(self.alerts)} alerts, {repeated} repeated, false conclusions: {false or 'none'}")
        self.assertLessEqual(repeated, 1)
        self.assertEqual(false, "")
        unwanted = [alert for _, body in self.hook.came for alert in body["alerts"] if alert["sessionId"].startswith("agent")]
        self.assertEqual(unwanted, [], "alerts of sessions that work")
