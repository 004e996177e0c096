"""A pytest fixture: a test's agent reports to a session of its own, and the test waits for it without sleeping.

    # conftest.py, with this file and watchdog_client.py on the path
    pytest_plugins = ["pytest_watchdog"]

    def test_the_agent_finishes(watchdog):
        watchdog.start([sys.executable, "agent.py"])     # its environment names the session; ended with the test
        progress = watchdog.wait()                       # until it completes, however long it takes
        assert progress["progress"]["stateChanges"] > 3

    def test_it_asks_before_it_deploys(watchdog):
        with watchdog.reporter(agent="deployer") as reporter:    # an agent within the test's process
            threading.Thread(target=deploy, args=[reporter]).start()
            watchdog.wait("health=blocked")

A wait that fails, fails the test. It says what was expected, how the session was last, why, and what happened. The
monitor is $WATCHDOG_SERVER (with $WATCHDOG_TOKEN), else http://127.0.0.1:3000.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import Any, Dict, Iterator, List, Sequence

import pytest
from watchdog_client import Awaited, Json, Monitor, Reporter


class WatchdogFixture:
    """A session for one test."""

    def __init__(self, name: str):
        self.session = re.sub(r"[^A-Za-z0-9._:@-]+", "-", name)[-100:] + "-" + os.urandom(4).hex()
        self.monitor = Monitor()
        self._processes: List[subprocess.Popen[Any]] = []
        self._reporters: List[Reporter] = []

    @property
    def environment(self) -> Dict[str, str]:
        """The environment of a process that reports to this session."""
        return {**os.environ, "WATCHDOG_SESSION": self.session}

    def start(self, command: Sequence[str], **how: Any) -> subprocess.Popen[Any]:
        """Starts the agent. A wait fails if the agent exits without ending its session."""
        self._processes.append(subprocess.Popen(command, env={**self.environment, **how.pop("env", {})}, **how))
        return self._processes[-1]

    def reporter(self, **how: Any) -> Reporter:
        self._reporters.append(Reporter(self.session, **how))
        return self._reporters[-1]

    def wait(self, for_: Awaited = "completed", **how: Any) -> Json:
        """Like `watchdog_client.wait`."""
        __tracebackhide__ = True
        how.setdefault("process", self._processes[-1] if self._processes else None)
        return self.monitor.wait(self.session, for_, **how)

    def progress(self) -> Json:
        return self.monitor.progress(self.session)

    def events(self, kind: str = "") -> List[Json]:
        return list(self.monitor.events(self.session, kind))

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        for reporter in self._reporters:
            reporter.close(2)


@pytest.fixture
def watchdog(request: pytest.FixtureRequest) -> Iterator[WatchdogFixture]:
    fixture = WatchdogFixture(request.node.name)
    yield fixture
    fixture.close()
