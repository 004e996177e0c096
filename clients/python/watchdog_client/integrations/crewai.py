"""CrewAI. Tested against a stand-in written from the documented interface, not against the package.

    listener = WatchdogListener(reporter)   # before the crew begins; keep the reference
"""

from __future__ import annotations

import contextlib
from typing import Any, Optional

from crewai.events import BaseEventListener, LLMCallStartedEvent, TaskCompletedEvent, ToolUsageErrorEvent, ToolUsageFinishedEvent, ToolUsageStartedEvent
from watchdog_client import Cancelled, Reporter
from watchdog_client.integrations import Reports


class WatchdogListener(BaseEventListener):
    """Reports requests to models, completed tasks and calls of tools. It cannot stop a crew: look at `reporter.cancelled` in a tool.

    CrewAI calls listeners in threads of its own, so give it the reporter.
    """

    def __init__(self, reporter: Optional[Reporter] = None):
        self._reports = Reports(reporter)
        super().__init__()

    def setup_listeners(self, crewai_event_bus: Any) -> None:
        reports = self._reports

        @crewai_event_bus.on(LLMCallStartedEvent)
        def on_model(source: Any, event: Any) -> None:
            with contextlib.suppress(Cancelled):
                reports.step(getattr(event, "agent_role", None) or "model")

        @crewai_event_bus.on(TaskCompletedEvent)
        def on_task(source: Any, event: Any) -> None:
            if reports.reporter:
                reports.reporter.state_change("task_completed", {"task": getattr(event, "task_name", None), "output": str(event.output)})

        @crewai_event_bus.on(ToolUsageStartedEvent)
        def on_start(source: Any, event: Any) -> None:
            reports.begin(_id(event, "event_id"), event.tool_name, event.tool_args)

        @crewai_event_bus.on(ToolUsageFinishedEvent)
        def on_end(source: Any, event: Any) -> None:
            reports.end(_id(event, "started_event_id"), getattr(event, "output", None), getattr(event, "failure", None))

        @crewai_event_bus.on(ToolUsageErrorEvent)
        def on_error(source: Any, event: Any) -> None:
            reports.end(_id(event, "started_event_id"), error=event.error)


def _id(event: Any, name: str) -> str:
    """Older versions give events no ids."""
    return getattr(event, name, None) or f"{event.tool_name} {event.tool_args}"
