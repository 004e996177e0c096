#!/usr/bin/python3
"""What the Python client costs its agent, and how it works with asyncio, wrapped functions, signals and wrong values."""

import contextlib
import gc
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
import unittest

from python_case import CLIENT, PATIENCE_S, WithMonitor
from false_monitor import FalseMonitor
import watchdog_client
from watchdog_client import MonitorError, Reporter


def eventually(holds):
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with contextlib.suppress(MonitorError):  # There is no such session yet.
            if holds():
                return True
        time.sleep(0.01)
    return False


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def senders():
    return [thread for thread in threading.enumerate() if thread.name == "watchdog"]


def program(*lines, **environment):
    return subprocess.run([sys.executable, "-c", "\n".join(["import sys, time", "from watchdog_client import Reporter", *lines])], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "PYTHONPATH": str(CLIENT), **environment})


class Costs(WithMonitor):
    def test_exits_without_a_monitor_take_a_moment_in_all_and_say_what_is_lost(self):
        """Each of these ten waited for two seconds."""
        done = program("begin = time.monotonic()", "for number in range(10):", "    with Reporter(f's{number}') as reporter:",
                       "        reporter.state_change('x')", "print(time.monotonic() - begin)", WATCHDOG_SERVER=f"http://127.0.0.1:{closed_port()}")
        self.assertLess(float(done.stdout), 5, done.stderr)
        self.assertEqual(len(re.findall(r"s\d: 3 reports were not delivered to http://127.0.0.1:\d+: Connection ?Refused", done.stderr, re.I)), 10, done.stderr)

    def test_reporters_that_are_open_at_the_exit_of_the_process_share_its_limit(self):
        with socket.create_server(("127.0.0.1", 0)) as mute:
            begin = time.monotonic()
            done = program("reporters = [Reporter(f's{number}', exit_s=1.0) for number in range(20)]", WATCHDOG_SERVER=f"http://127.0.0.1:{mute.getsockname()[1]}")
            self.assertLess(time.monotonic() - begin, 15)
        self.assertEqual(done.stderr.count("1 reports were not delivered"), 20, done.stderr)

    def test_a_monitor_that_comes_late_still_gets_what_an_owner_waits_for(self):
        port = closed_port()
        reporter = Reporter(self.session, server=f"http://127.0.0.1:{port}", exit_s=PATIENCE_S)
        with reporter:
            self.assertTrue(eventually(lambda: reporter._sender.is_nobody_there()))
            monitor = FalseMonitor()
            threading.Timer(0.5, lambda: monitor.__enter__(port)).start()
        self.assertEqual([event["kind"] for batch in monitor.batches for event in batch], ["start", "end"])
        monitor.__exit__()

    def test_all_sessions_share_one_thread_and_it_leaves_after_the_last(self):
        self.assertTrue(eventually(lambda: not senders()))
        reporters = [self.reporter(session=f"{self.session}-{number}") for number in range(60)]
        for reporter in reporters:
            self.assertTrue(reporter.flush(PATIENCE_S))
        self.assertEqual(len(senders()), 1)
        for reporter in reporters:
            reporter.completed()
        for reporter in reporters:
            self.assertTrue(reporter.flush(PATIENCE_S))
            self.assertEqual(self.monitor.progress(reporter.session)["lifecycle"], "completed")
        self.assertTrue(eventually(lambda: not senders()))
        reporters[0].state_change("late")
        self.assertTrue(reporters[0].flush(PATIENCE_S))
        self.assertEqual(len(list(self.monitor.events(reporters[0].session, "state_change"))), 1)

    def test_a_busy_session_does_not_keep_others_from_reporting(self):
        busy, over = self.reporter(session=self.session + "-busy", interval_s=0), threading.Event()
        threads = [threading.Thread(target=lambda: [busy.state_change("x" * 100) for _ in iter(over.is_set, True)]) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            with self.reporter(exit_s=PATIENCE_S) as reporter:
                reporter.state_change("y")
        finally:
            over.set()
            for thread in threads:
                thread.join()
        self.assertEqual(self.monitor.progress(self.session)["lifecycle"], "completed")

    def test_a_refused_session_does_not_keep_others_from_reporting(self):
        with FalseMonitor(answers=[404, 200]) as monitor:
            first = Reporter("refused", server=monitor.url, interval_s=0)
            self.assertTrue(eventually(lambda: first._not_before))
            second = Reporter("taken", server=monitor.url, interval_s=0)
            self.assertTrue(second.close(PATIENCE_S))
            first.close(0)

    def test_a_reporter_that_nobody_has_any_more_stops_its_heartbeats(self):
        """A cell of a notebook that failed stayed alive as long as the notebook."""
        reporter = self.reporter(interval_s=0.02)
        self._cleanups.clear()
        self.assertTrue(eventually(lambda: self.told("heartbeat")))
        sender = reporter._sender
        del reporter
        self.assertTrue(eventually(lambda: gc.collect() is not None and self.session not in [one.session for one in sender.open | sender.unsent]))
        self.assertEqual(self.monitor.progress(self.session)["lifecycle"], "running")

    def test_its_reports_are_sent_before(self):
        Reporter(self.session, server=self.url, interval_s=0).state_change("x")
        gc.collect()
        self.assertTrue(eventually(lambda: self.told("state_change")))

    def test_large_data_does_not_delay_the_agent(self):
        """Encoding took seconds before the text was cut."""
        values = {"text": {"page": "x" * 50_000_000}, "bytes": b"x" * 50_000_000, "rows": [{"a": number} for number in range(300_000)],
                  "set": set(range(300_000)), "error": ValueError("x" * 50_000_000)}
        begin = time.monotonic()
        json.dumps(values["rows"])
        for value in values.values():
            repr(value)
        whole_s = time.monotonic() - begin
        reporter = self.reporter(interval_s=0)
        begin = time.monotonic()
        for name, value in values.items():
            with reporter.tool(name) as call:
                call.result = value
        self.assertLess(time.monotonic() - begin, whole_s / 5)
        self.assertTrue(reporter.flush(PATIENCE_S))
        self.assertEqual(len(self.told("tool_result")), 5)

    def test_data_that_is_not_read_to_its_end_is_not_equal(self):
        def run(name, make):
            with self.reporter(session=f"{self.session}-{name}", interval_s=0) as reporter:
                for number in range(14):
                    reporter.heartbeat(number, "poll")
                    with reporter.tool("poll", {}) as call:
                        call.result = make(number)
            return str(self.monitor.ask("GET", f"/api/autonomous/sessions/{reporter.session}/transitions"))
        self.assertNotIn("looping", run("texts", lambda number: "x" * 2_000_000 + str(number)))
        self.assertNotIn("looping", run("rows", lambda number: [*range(50_000), number]))
        self.assertNotIn("looping", run("tail", lambda number: "x" * 200_000 + f"{number:c}"))
        self.assertIn("looping", run("same", lambda number: {"page": "x" * 200_000}))

    def test_an_object_in_data_that_is_no_json_is_printed_once(self):
        class Counted:
            count = 0

            def __repr__(self):
                Counted.count += 1
                return "Counted()"
        reporter = self.reporter(interval_s=0)
        for data in ([Counted(), float("nan")], {(1, 2): 3, "x": Counted()}, Counted()):
            Counted.count = 0
            reporter.state_change("x", data)
            self.assertEqual(Counted.count, 1, data)


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=1)
