"""Run by python_test.py with pytest: two of them are to fail."""

import sys
import threading

AGENT = """
from watchdog_client import Reporter
with Reporter(agent="sample") as watchdog:
    for step in range(3):
        watchdog.heartbeat(step, "work")
        watchdog.state_change("worked", {"step": step})
    %s
"""


def test_it_completes(watchdog):
    watchdog.start([sys.executable, "-c", AGENT % "pass"])
    assert watchdog.wait()["progress"]["stateChanges"] == 3
    assert [event["data"]["step"] for event in watchdog.events("state_change")] == [0, 1, 2]


def test_it_reports_from_a_thread(watchdog):
    reporter = watchdog.reporter(agent="thread")
    threading.Thread(target=reporter.wait_for, args=["approval"]).start()
    assert watchdog.wait("health=blocked")["waitingFor"] == "approval"


def test_it_fails(watchdog):
    watchdog.start([sys.executable, "-c", AGENT % "raise RuntimeError('boom')"])
    watchdog.wait()


def test_it_vanishes(watchdog):
    watchdog.start([sys.executable, "-c", AGENT % "import os; watchdog.flush(); os._exit(3)"])
    watchdog.wait()
