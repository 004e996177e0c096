"""Pydantic AI. Tested against a stand-in written from the documented interface, not against the package.

    agent = Agent("openai:your-model", event_stream_handler=watchdog_events(reporter))
"""

from __future__ import annotations

from typing import Any, AsyncIterable, Awaitable, Callable, Optional

from watchdog_client import Reporter
from watchdog_client.integrations import Reports


def watchdog_events(reporter: Optional[Reporter] = None) -> Callable[[Any, AsyncIterable[Any]], Awaitable[None]]:
    """Returns a handler that reports requests to models, pieces of answers and calls of tools. A cancel ends the run at its next step."""
    reports = Reports(reporter)

    async def handle(context: Any, events: AsyncIterable[Any]) -> None:
        answers = False
        async for event in events:
            kind = getattr(event, "event_kind", "")
            if kind in ("part_start", "part_delta") and not answers:
                answers = True
                reports.step("model")
            if kind == "part_delta" and reports.reporter:
                reports.reporter.count(pieces=1)
            elif kind == "function_tool_call":
                reports.begin(event.part.tool_call_id, event.part.tool_name, event.part.args)
            elif kind == "function_tool_result":
                part = getattr(event, "part", None) or event.result
                failed = getattr(part, "part_kind", "") == "retry-prompt"
                reports.end(part.tool_call_id, None if failed else part.content, part.content if failed else None)

    return handle
