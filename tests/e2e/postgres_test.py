#!/usr/bin/env python3
"""Monitors on a real PostgreSQL: reports, answers, alerts, copies, and two monitors of which one is killed."""

import ctypes
import glob
import http.client
import json
import os
import pathlib
import pwd
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
PROGRAMS = next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)), "")
PROGRESS = "/api/autonomous/progress"
die_with_parent = lambda libc=ctypes.CDLL(None): libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def until(true, why):
    """Waits for what another process does."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(why)


class Postgres:
    """A server in a temporary directory, as an unprivileged user, on a socket of its own."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.user = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder.name, nobody.pw_uid, nobody.pw_gid)
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self.data = os.path.join(self.folder.name, "data")
        subprocess.run([f"{PROGRAMS}/initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                        "--locale=C.UTF-8", "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd="/", **self.user)
        self.log = open(os.path.join(self.folder.name, "log"), "w")
        self.start()

    def start(self):
        self.process = subprocess.Popen([f"{PROGRAMS}/postgres", "-D", self.data, "-k", self.folder.name,
                                         "-c", "listen_addresses=", "-c", "fsync=off"], stderr=self.log, cwd="/",
                                        preexec_fn=die_with_parent, **self.user)
        until(lambda: subprocess.run([f"{PROGRAMS}/pg_isready", "-q", "-h", self.folder.name]).returncode == 0,
              "PostgreSQL does not start")

    def crash(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        self.start()

    def url(self, database="postgres"):
        return f"postgresql:///{database}?user=postgres&host={self.folder.name}"

    def run(self, sql):
        return subprocess.run([f"{PROGRAMS}/psql", "-qAtX", "-h", self.folder.name, "-U", "postgres", "postgres", "-c", sql],
                              check=True, capture_output=True, text=True).stdout.strip()

    def stop(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        self.log.close()
        self.folder.cleanup()


class Monitor:
    """A monitor, on a machine of its own as far as its files go."""

    def __init__(self, database, arguments=()):
        self.home = tempfile.TemporaryDirectory()
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("WATCHDOG_", "XDG_"))}
        self.environment |= {"HOME": self.home.name, "no_proxy": "*"}
        self.log = open(os.path.join(self.home.name, "log"), "w+")
        self.process = subprocess.Popen([PROGRAM, "serve", "--db", database, "--port", "0", *arguments],
                                        stdout=subprocess.PIPE, stderr=self.log, text=True, env=self.environment,
                                        preexec_fn=die_with_parent)
        line = self.process.stdout.readline()
        if not line.startswith("listening on http"):
            self.log.seek(0)
            sys.exit(f"{PROGRAM} says: {line} {self.log.read()}")
        self.host = line.split("://")[1].strip()
        self.secret = pathlib.Path(self.home.name, ".local/state/watchdog/server-token").read_text().split()[-1]

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE_S)
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, json.loads(text) if text.startswith(("{", "[")) else text

    def report(self, session, kind="state_change", name="step", **members):
        """As agents do: again until it is acknowledged."""
        event = {"kind": kind, "eventId": f"{session}-{time.monotonic_ns()}", **members}
        if kind == "state_change":
            event["type"] = name
        return until(lambda: (lambda answer: answer if answer[0] in (200, 201, 202) else None)(
            self.ask("POST", f"/api/autonomous/sessions/{session}/events", event)), f"{session} cannot report")

    def progress(self, session):
        return self.ask("GET", f"{PROGRESS}/{session}")[1]

    def command(self, *words):
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True,
                              env=self.environment | {"WATCHDOG_SERVER": f"http://{self.host}", "WATCHDOG_TOKEN": self.secret})

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait()
        self.process.stdout.close()
        self.log.seek(0)
        text = self.log.read()
        self.log.close()
        self.home.cleanup()
        return text


class OnPostgres(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Postgres()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.server.run("DROP SCHEMA IF EXISTS watchdog CASCADE")
        self.monitors = []

    def tearDown(self):
        for monitor in self.monitors:
            if monitor.process.returncode is None:
                monitor.stop(signal.SIGKILL)

    def monitor(self, *arguments):
        self.monitors.append(Monitor(self.server.url(), arguments))
        return self.monitors[-1]

    def test_a_monitor_does_on_postgresql_what_it_does_on_a_file(self):
        monitor = self.monitor()
        monitor.report("one", name="step")
        self.assertEqual(monitor.progress("one")["lifecycle"], "running")
        status = monitor.command("status", "one")
        self.assertEqual(status.returncode, 0, status.stderr)
        self.assertIn("one", monitor.command("sessions").stdout)
        self.assertIn("step", monitor.command("events", "one").stdout)
        self.assertEqual(monitor.command("cancel", "one", "--reason", "enough").returncode, 0)
        self.assertIn("enough", json.dumps(monitor.report("one")))
        waits = subprocess.Popen([PROGRAM, "wait", "one"], stdout=subprocess.PIPE, text=True,
                                 env=monitor.environment | {"WATCHDOG_SERVER": f"http://{monitor.host}", "WATCHDOG_TOKEN": monitor.secret})
        monitor.report("one", "end", outcome="cancelled")
        waits.communicate(timeout=PATIENCE_S)
        self.assertEqual(monitor.progress("one")["lifecycle"], "cancelled")
        status, page = monitor.ask("GET", "/")
        self.assertEqual(status, 200)
        self.assertEqual(monitor.ask("GET", "/readyz"), (200, {"status": "ready", "shards": 256, "monitors": 1}))
        metrics = monitor.ask("GET", "/metrics")[1]
        self.assertIn("watchdog_shards 256", metrics)
        self.assertEqual(monitor.command("forget", "one", "--yes").returncode, 0)
        self.assertEqual(monitor.ask("GET", f"{PROGRESS}/one")[0], 404)
        self.assertEqual(self.server.run("SELECT count(*) FROM watchdog.events WHERE session <> 0"), "0")
        log = monitor.stop()
        self.assertEqual(monitor.process.returncode, 0, log)

    def test_the_database_may_fail_and_come_back(self):
        monitor = self.monitor()
        for number in range(10):
            monitor.report("s", name=f"before {number}")
        self.server.crash()
        for number in range(10):
            monitor.report("s", name=f"after {number}")
        names = self.server.run("SELECT count(DISTINCT name) || ' ' || count(*) FROM watchdog.events WHERE session <> 0")
        self.assertEqual(names, "20 20", "each report once")
        self.assertEqual(until(lambda: monitor.ask("GET", "/readyz")[0] == 200, "it does not become ready"), True)
        self.assertNotEqual(monitor.progress("s")["health"], "dead")

    def test_two_monitors_share_the_sessions_and_one_takes_over(self):
        first, second = self.monitor(), self.monitor()
        until(lambda: {m.ask("GET", "/readyz")[1].get("shards") for m in (first, second)} == {128}, "they do not share")
        for number in range(12):
            (first, second)[number % 2].report(f"s{number}", name="step")
        for monitor in (first, second):
            for number in range(12):
                self.assertEqual(monitor.progress(f"s{number}")["lifecycle"], "running")
        # A cancel reaches an agent through whichever monitor it talks to.
        self.assertEqual(first.command("cancel", "s3", "--reason", "enough").returncode, 0)
        self.assertIn("enough", json.dumps(second.report("s3")))
        begun = time.monotonic()
        second.stop(signal.SIGKILL)
        until(lambda: first.ask("GET", "/readyz")[1].get("shards") == 256, "nobody takes over")
        self.assertLess(time.monotonic() - begun, 21)
        for number in range(12):
            self.assertNotIn(first.progress(f"s{number}")["health"], ("dead", "stuck"))
        first.report("s1", "end", outcome="completed")
        self.assertEqual(first.progress("s1")["lifecycle"], "completed")

    def test_sessions_move_between_a_file_and_postgresql(self):
        monitor = self.monitor()
        monitor.report("moved", name="step")
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "w.db")
            refused = monitor.command("copy", "--from", self.server.url(), "--to", file)
            self.assertIn("a monitor runs on", refused.stderr)
            monitor.stop()
            environment = {"env": {k: v for k, v in os.environ.items() if not k.startswith("WATCHDOG_")},
                           "capture_output": True, "text": True}
            os.unlink(file) if os.path.exists(file) else None
            there = subprocess.run([PROGRAM, "copy", "--from", self.server.url(), "--to", file, "--json"], **environment)
            self.assertEqual(there.returncode, 0, there.stderr)
            self.server.run("DROP SCHEMA watchdog CASCADE")
            back = subprocess.run([PROGRAM, "copy", "--from", file, "--to", self.server.url(), "--json"], **environment)
            self.assertEqual(back.returncode, 0, back.stderr)
            self.assertEqual(json.loads(there.stdout)["digest"], json.loads(back.stdout)["digest"])
            again = subprocess.run([PROGRAM, "copy", "--from", file, "--to", self.server.url()], **environment)
            self.assertIn("holds sessions already", again.stderr)
            backup = subprocess.run([PROGRAM, "backup", "--db", self.server.url(), os.path.join(folder, "b")], **environment)
            self.assertIn("pg_dump", backup.stderr)
            refused = subprocess.run([PROGRAM, "serve", "--db", "postgresql://me:topsecret@localhost/db"], **environment)
            self.assertIn(".pgpass", refused.stderr)
            self.assertNotIn("topsecret", refused.stderr + refused.stdout)
        self.assertEqual(self.monitor().progress("moved")["lifecycle"], "running")


if __name__ == "__main__":
    if not PROGRAMS:
        print("there is no PostgreSQL on this machine")
        sys.exit(77)
    unittest.main()
