#!/usr/bin/env python3
"""Three monitors under load on a real PostgreSQL, while machines, connections and clocks fail.

With WATCHDOG_FULL the faults last as long as in a bad night.
"""

import glob
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from postgres import PROGRAMS, Postgres, until
from under_load import FULL, TAKE_OVER_S, UnderLoad

STOPPED_S = 60 if FULL else 17  # A lease lasts 15 s.
FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), "")


class Faults(UnderLoad):
    def test_monitors_and_their_database_fail_under_load(self):
        if not FAKETIME:
            sys.exit("libfaketime is missing: install the package faketime, as scripts/test does")
        environment = os.environ | {"LD_PRELOAD": FAKETIME, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1"}
        clock = pathlib.Path(f"/tmp/watchdog-clock-{os.getpid()}")
        clock.write_text("+0\n")
        clock.chmod(0o644)
        self.addCleanup(clock.unlink)
        server = Postgres((), environment | {"FAKETIME_TIMESTAMP_FILE": str(clock)})
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

    def restart_database(self):
        self.say("the database is restarted")
        self.server.end(signal.SIGINT)
        time.sleep(10 if FULL else 1)
        self.server.start()
        self.report_failure("restarted")

    def test_another_monitor_sends_what_a_killed_one_was_sending(self):
        server = Postgres()
        self.addCleanup(server.stop)
        self.start(server)
        self.hook.hanging = {"m0", "m1", "m2"}
        self.report_failure("claimed")
        until(self.hook.came.__len__, "nobody sends the alert")
        sender = int(self.hook.came[0][0].removeprefix("m"))
        self.say(f"kill -9 of monitor {sender}, which sends an alert")
        killed = time.monotonic()
        self.monitors.pop(sender).stop(signal.SIGKILL)
        self.hook.hanging = set()
        until(lambda: self.sent()["fails-claimed"] > 1, "nobody sends the alert again", 60)
        took = time.monotonic() - killed
        self.say(f"another one sent it {took:.1f} s later")
        self.assertLess(took, TAKE_OVER_S + 1)
        self.check()

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
