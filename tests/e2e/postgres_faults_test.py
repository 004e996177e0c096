#!/usr/bin/env python3
"""Three monitors under load on a real PostgreSQL, while machines, connections and clocks fail.

Nothing that was acknowledged is lost, each alert is sent, at most one of all twice, and no session that works is taken
for dead or stuck. The load goes on through all faults. With WATCHDOG_FULL the faults last as long as in a bad night.
"""

import collections
import glob
import http.client
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
import unittest

from postgres import PROGRAMS, SESSIONS, Hook, Monitor, Postgres, until

PROGRAM = sys.argv.pop(1)
FULL = bool(os.environ.get("WATCHDOG_FULL"))
SEED = int(os.environ.get("WATCHDOG_SEED", time.time_ns() % 2**31))
AGENTS = 40
TAKE_OVER_S = 20
STOPPED_S = 60 if FULL else 17  # A lease lasts 15 s.
FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), "")


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
            while not self.send([event, {"kind": "heartbeat", "source": "loop", "iteration": step}]):
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


class Faults(unittest.TestCase):
    def setUp(self):
        if not FAKETIME:
            sys.exit("libfaketime is missing: install the package faketime, as scripts/test does")
        print(f"WATCHDOG_SEED={SEED}", file=sys.stderr)
        self.random = random.Random(SEED)
        self.begun = time.monotonic()
        self.hook = Hook()
        self.alerts, self.stopped = [], None

    def say(self, text):
        print(f"{time.monotonic() - self.begun:5.1f} s  {text}", file=sys.stderr)

    def start(self, server, url=None):
        self.server, self.url = server, url or server.url()
        self.monitors = []
        self.addCleanup(lambda: [m.stop(signal.SIGKILL) for m in self.monitors if m.process.returncode is None])
        for _ in range(3):
            self.add_monitor()
        until(lambda: self.shards() == 256, "they do not share")
        self.agents = [Agent(number, self.monitors, SEED) for number in range(AGENTS)]

    def add_monitor(self):
        self.monitors.append(Monitor(PROGRAM, self.url, (), self.hook.settings(f"m{len(self.hook.came)}")))

    def shards(self):
        """Of the monitors that answer."""
        total = 0
        for monitor in self.monitors:
            try:
                ready = monitor.ask("GET", "/readyz", patience_s=3)[1]
            except OSError:
                continue
            total += ready.get("shards", 0) if ready.get("lease") == "held" else 0
        return total

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
                last[monitor.host] = monitor.ask("POST", f"{SESSIONS}/{session}/events", events, patience_s=3)
                return last[monitor.host][0] == 200
            except (OSError, http.client.HTTPException) as why:
                last[monitor.host] = why
                return False

        until(send, lambda: f"{session} cannot report: {last}", every_s=0.2)

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
        sent = lambda: collections.Counter(alert["sessionId"] for _, body in self.hook.came for alert in body["alerts"])
        until(lambda: all(session in sent() for session in self.alerts), f"alerts are lost: of {self.alerts} only {sent()}", 90)
        repeated = sum(count - 1 for session, count in sent().items() if session in self.alerts)
        false = self.server.run("SELECT s.name, t.health, t.reason FROM watchdog.transitions t JOIN watchdog.sessions s ON "
                                "s.id = t.session WHERE t.health IN ('dead', 'stuck', 'looping') AND s.name LIKE 'agent%'")
        self.say(f"{len(self.alerts)} alerts, {repeated} repeated, false conclusions: {false or 'none'}")
        self.assertLessEqual(repeated, 1)
        self.assertEqual(false, "")
        self.assertEqual([session for session in sent() if session.startswith("agent")], [], "alerts of sessions that work")

    def test_monitors_and_their_database_fail_under_load(self):
        environment = os.environ | {"LD_PRELOAD": FAKETIME, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1"}
        clock = pathlib.Path(f"/tmp/watchdog-clock-{os.getpid()}")
        clock.write_text("+0\n")
        clock.chmod(0o644)
        self.addCleanup(clock.unlink)
        server = Postgres(("max_connections=30",), environment | {"FAKETIME_TIMESTAMP_FILE": str(clock)})
        self.addCleanup(server.stop)
        self.start(server)
        time.sleep(2)

        self.say("kill -9 of a monitor")
        killed = time.monotonic()
        self.monitors[0].process.kill()
        self.report_failure("killed")
        self.cut_connections()
        until(lambda: self.shards() == 256, "nobody takes over", TAKE_OVER_S + 5)
        took = time.monotonic() - killed
        self.say(f"taken over after {took:.1f} s")
        self.assertLess(took, TAKE_OVER_S + 1)
        self.monitors.pop(0).stop(signal.SIGKILL)
        self.add_monitor()

        self.say(f"SIGSTOP of a monitor for {STOPPED_S} s")
        stopped = self.stopped = self.monitors[0]
        stopped.process.send_signal(signal.SIGSTOP)
        until_s = time.monotonic() + STOPPED_S
        self.report_failure("stopped")
        self.exhaust_connections()
        self.restart_database()
        time.sleep(max(0, until_s - time.monotonic()))
        stopped.process.send_signal(signal.SIGCONT)
        self.stopped = None
        until(lambda: self.shards() == 256 and stopped.ready().get("shards", 0) > 0, "it does not come back")
        self.say("it is back")
        self.assertIn("watchdog_step_downs_total 1", stopped.ask("GET", "/metrics")[1])

        for hours in ("-3h", "+5h"):
            self.say(f"the clock of the database is set {hours}")
            clock.write_text(hours + "\n")
            self.report_failure(f"clock{hours[1:]}")
            time.sleep(20 if FULL else 3)
            until(lambda: self.shards() == 256, "nobody judges some sessions")
        self.check()

    def cut_connections(self):
        for round_ in range(5 if FULL else 2):
            self.say("all connections are cut")
            self.server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'watchdog-monitor'")
            self.report_failure(f"cut{round_}")
            time.sleep(1)

    def exhaust_connections(self):
        self.say("no connection is left")
        takers = [subprocess.Popen([f"{PROGRAMS}/psql", "-qAtX", "-h", self.server.folder.name, "-U", "postgres", "postgres", "-c",
                                    f"SELECT pg_sleep({20 if FULL else 4})"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                  for _ in range(30)]
        time.sleep(0.5)
        subprocess.run([f"{PROGRAMS}/psql", "-qAtX", "-h", self.server.folder.name, "-U", "postgres", "postgres", "-c",
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'watchdog-monitor'"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        for taker in takers:
            taker.wait()
        self.say("there are connections again")
        self.report_failure("exhausted")

    def restart_database(self):
        self.say("the database is restarted")
        self.server.end(signal.SIGINT)
        time.sleep(10 if FULL else 1)
        self.server.start()
        self.report_failure("restarted")

    def test_a_standby_takes_over(self):
        primary = Postgres()
        self.addCleanup(primary.stop)
        standby = Standby(primary)
        self.addCleanup(standby.stop)
        # From now on a COMMIT waits for the standby.
        primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.run("SELECT pg_reload_conf()")
        hosts = f"{primary.folder.name},{standby.folder.name}"
        self.start(primary, f"postgresql:///postgres?user=postgres&host={hosts}&target_session_attrs=read-write")
        time.sleep(3)
        self.say("the primary is gone, the standby is promoted")
        primary.end(signal.SIGKILL)
        self.server = standby
        standby.promote()
        promoted = time.monotonic()
        self.report_failure("failover")
        self.say(f"reports are stored again {time.monotonic() - promoted:.1f} s after the promotion")
        time.sleep(20 if FULL else 4)
        self.check()


class Standby(Postgres):
    """Replicates another one until it is promoted."""

    def __init__(self, primary):
        self.primary = primary
        super().__init__()

    def initialize(self):
        subprocess.run([f"{PROGRAMS}/pg_basebackup", "-D", self.data, "-h", self.primary.folder.name, "-U", "postgres", "-R",
                        "-c", "fast", "--no-sync"], check=True, cwd="/", **self.user)

    def promote(self):
        self.run("SELECT pg_promote()")


if __name__ == "__main__":
    unittest.main()
