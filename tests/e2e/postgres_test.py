#!/usr/bin/env python3
"""Monitors on a real PostgreSQL: reports, answers, alerts, copies, and two monitors of which one is killed."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

from postgres import PATIENCE_S, PROGRAMS, PROGRESS, Monitor, Postgres, until

PROGRAM = sys.argv.pop(1)
ENDING_S = 10  # As scripts/run-postgres says.


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
        self.monitors.append(Monitor(PROGRAM, self.server.url(), arguments))
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
        status, ready = monitor.ask("GET", "/readyz")
        self.assertEqual((status, ready["status"], ready["shards"], ready["held"], ready["monitors"], ready["lease"]),
                         (200, "ready", 256, "0-255", 1, "held"))
        self.assertLess(ready["leaseAgeMs"], 10_000)
        metrics = monitor.ask("GET", "/metrics")[1]
        for line in ("watchdog_shards 256", "watchdog_lease_late 0", "watchdog_step_downs_total 0", "watchdog_store_up 1"):
            self.assertIn(line, metrics)
        forgotten = monitor.command("forget", "one", "--yes")
        self.assertEqual(forgotten.returncode, 0)
        self.assertIn("VACUUM", forgotten.stdout)
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
        # Without a database the monitor reports that, and still answers.
        self.server.end()
        status, trouble = until(lambda: (lambda answer: answer if answer[0] == 503 else None)(monitor.ask("GET", "/readyz")),
                                "it does not notice")
        self.assertIn("database", trouble["error"]["message"])
        self.assertIn("watchdog_store_up 0", monitor.ask("GET", "/metrics")[1])
        self.server.start()
        until(lambda: monitor.ask("GET", "/readyz")[0] == 200, "it does not become ready again")

    def test_the_script_shows_three_monitors(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/run-postgres")
        shown = subprocess.Popen([sys.executable, script, PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: shown.kill() if shown.poll() is None else None)
        lines = [shown.stdout.readline() for _ in range(7)]
        urls = [line.split("/#token=") for line in lines if "/#token=" in line]
        self.assertEqual(len(urls), 3, lines)

        def ready(url, token):
            asked = urllib.request.Request(f"{url.strip()}/readyz", headers={"Authorization": f"Bearer {token.strip()}"})
            with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
                return json.load(answer)

        until(lambda: [ready(*url).get("monitors") for url in urls] == [3, 3, 3], "they do not find each other")
        folder = lines[0].split()[-1]
        self.assertTrue(os.path.isdir(folder), lines)
        # Monitors that do not end must not keep it for long: it waits for all of them together.
        for pid in lines[6].split("take over: ")[1].split(". ")[0].split(", "):
            os.kill(int(pid), signal.SIGSTOP)
        begun = time.monotonic()
        shown.send_signal(signal.SIGINT)
        self.assertEqual(shown.wait(2 * PATIENCE_S), 0, shown.stderr.read())
        self.assertLess(time.monotonic() - begun, ENDING_S + 20)
        shown.stdout.close()
        shown.stderr.close()
        self.assertFalse(os.path.exists(folder), "it leaves nothing behind")

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

    def restores_what_the_named_command_saves(self, folder, environment):
        saved = os.path.join(folder, "it's saved")
        backup = subprocess.run([PROGRAM, "backup", "--db", self.server.url(), saved], **environment)
        self.assertNotEqual(backup.returncode, 0)
        command = backup.stderr[backup.stderr.index("pg_dump"):].split(". pg_restore")[0].replace("\n", " ")
        subprocess.run(["sh", "-c", command], check=True, env=os.environ | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}"})
        before = self.server.run("SELECT count(*) FROM watchdog.events")
        self.server.run("DROP SCHEMA watchdog CASCADE")
        subprocess.run([f"{PROGRAMS}/pg_restore", "-d", self.server.url(), saved], check=True)
        self.assertEqual(self.server.run("SELECT count(*) FROM watchdog.events"), before)

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
            self.restores_what_the_named_command_saves(folder, environment)
            refused = subprocess.run([PROGRAM, "serve", "--db", self.server.url(), "--retention-bytes", "5000000"], **environment)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("monitor.retention_days", refused.stderr)
            refused = subprocess.run([PROGRAM, "serve", "--db", "postgresql://me:topsecret@localhost/db"], **environment)
            self.assertIn(".pgpass", refused.stderr)
            self.assertNotIn("topsecret", refused.stderr + refused.stdout)
        self.assertEqual(self.monitor().progress("moved")["lifecycle"], "running")


if __name__ == "__main__":
    unittest.main()
