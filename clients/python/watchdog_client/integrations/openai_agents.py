"""OpenAI Agents SDK. Tested against a stand-in written from the documented interface, not against the package.

    Runner.run(agent, "Plan the week", hooks=WatchdogHooks(reporter))
"""

from __future__ import annotations

import json
from typing import Any, Optional

from agents import RunHooks
from watchdog_client import Reporter
from watchdog_client.integrations import Reports


def _id(context: Any, tool: Any) -> str:
    return getattr(context, "tool_call_id", None) or f"{id(context)}-{tool.name}"


class WatchdogHooks(RunHooks):
    """Reports requests to models, handoffs and calls of tools. A cancel ends the run at its next step."""

    def __init__(self, reporter: Optional[Reporter] = None):
        self._reports = Reports(reporter)

    async def on_llm_start(self, context: Any, agent: Any, *more: Any, **named: Any) -> None:
        self._reports.step(agent.name)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        reporter = self._reports.reporter
        if reporter:
            reporter.state_change("handoff", {"from": from_agent.name, "to": to_agent.name})

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        arguments: Any = getattr(context, "tool_arguments", None)
        try:
            arguments = json.loads(arguments)
        except (TypeError, ValueError):
            pass
        self._reports.begin(_id(context, tool), tool.name, arguments)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        self._reports.end(_id(context, tool), result)
