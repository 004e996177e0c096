"""Strands Agents. Tested against a stand-in written from the documented interface, not against the package.

    agent = Agent(tools=[search], hooks=[WatchdogHooks(reporter)])
"""

from __future__ import annotations

from typing import Any, Optional

from strands.hooks import AfterToolCallEvent, BeforeModelCallEvent, BeforeToolCallEvent
from watchdog_client import Reporter
from watchdog_client.integrations import Reports


class WatchdogHooks:
    """Reports requests to models and calls of tools. After a cancel no call starts, and the run ends at its next request."""

    def __init__(self, reporter: Optional[Reporter] = None):
        self._reports = Reports(reporter)

    def register_hooks(self, registry: Any, **more: Any) -> None:
        registry.add_callback(BeforeModelCallEvent, self._on_model)
        registry.add_callback(BeforeToolCallEvent, self._on_call)
        registry.add_callback(AfterToolCallEvent, self._on_end)

    def _on_model(self, event: Any) -> None:
        self._reports.step(getattr(event.agent, "name", None) or "model")

    def _on_call(self, event: Any) -> None:
        self._reports.begin(event.tool_use["toolUseId"], event.tool_use["name"], event.tool_use.get("input"))
        if self._reports.reporter and self._reports.reporter.cancelled:
            event.cancel_tool = "somebody asked the agent to stop"

    def _on_end(self, event: Any) -> None:
        failed = event.exception or (event.result.get("content") if event.result.get("status") == "error" else None)
        self._reports.end(event.tool_use["toolUseId"], event.result.get("content"), failed)
