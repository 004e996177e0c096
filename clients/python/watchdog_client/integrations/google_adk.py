"""Google Agent Development Kit. Tested against a stand-in written from the documented interface, not against the package.

    runner = Runner(agent=agent, app_name="app", session_service=sessions, plugins=[WatchdogPlugin(reporter)])
"""

from __future__ import annotations

from typing import Any, Optional

from google.adk.plugins.base_plugin import BasePlugin
from watchdog_client import Reporter
from watchdog_client.integrations import Reports


class WatchdogPlugin(BasePlugin):
    """Reports requests to models and calls of tools. A cancel ends the run at its next request."""

    def __init__(self, reporter: Optional[Reporter] = None, name: str = "watchdog"):
        super().__init__(name=name)
        self._reports = Reports(reporter)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        self._reports.step(getattr(callback_context, "agent_name", None) or "model")

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        self._reports.begin(tool_context.function_call_id, tool.name, tool_args)

    async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
        self._reports.end(tool_context.function_call_id, result)

    async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Exception) -> None:
        self._reports.end(tool_context.function_call_id, error=error)
