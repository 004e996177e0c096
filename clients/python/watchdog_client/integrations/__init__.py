"""Optional modules for frameworks of agents. Importing one needs its framework; the package itself needs none.

Each takes a reporter. Without one it reports to `Reporter.current()`. Without a current reporter it reports nothing.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any, Dict, Optional, Tuple

from watchdog_client import Reporter


class Reports:
    """What the modules share: calls by their id, and steps with a number."""

    def __init__(self, reporter: Optional[Reporter] = None):
        self._reporter = reporter
        self._calls: Dict[str, Tuple[Reporter, str]] = {}
        self._lock = threading.Lock()
        self._steps = itertools.count(1)

    @property
    def reporter(self) -> Optional[Reporter]:
        """The reporter that was given, else the current one."""
        return self._reporter or Reporter.current()

    def step(self, phase: str, number: Optional[int] = None) -> None:
        """Reports that the agent begins a step. Raises `Cancelled` if somebody asked it to stop."""
        reporter = self.reporter
        if reporter:
            reporter.heartbeat(next(self._steps) if number is None else number, str(phase))
            reporter.check()

    def begin(self, call_id: Any, name: Any, arguments: Any = None) -> None:
        """Reports that a call begins."""
        reporter = self.reporter
        if reporter:
            with self._lock:
                self._calls[str(call_id)] = reporter, str(name)
            reporter.tool_call(str(name), arguments, str(call_id))

    def end(self, call_id: Any, result: Any = None, error: Any = None) -> None:
        """Reports that a call has ended. A call that has not begun is left out."""
        with self._lock:
            reporter, name = self._calls.pop(str(call_id), (None, ""))
        if reporter and error is not None:
            reporter.tool_error(name, error, str(call_id))
        elif reporter:
            reporter.tool_result(name, result, str(call_id))

    def is_running(self, call_id: Any) -> bool:
        """Whether a call has begun and not ended."""
        return str(call_id) in self._calls
