"""Microsoft Agent Framework. Tested against a stand-in written from the documented interface, not against the package.

    agent = Agent(client=client, middleware=watchdog_middleware(reporter))
"""

from __future__ import annotations

from typing import Any, Awaitable, Callable, List, Optional

from agent_framework import ChatMiddleware, FunctionMiddleware
from watchdog_client import Reporter
from watchdog_client.integrations import Reports


class _Requests(ChatMiddleware):
    def __init__(self, reports: Reports):
        self._reports = reports

    async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
        self._reports.step("model")
        await call_next()


class _Calls(FunctionMiddleware):
    def __init__(self, reports: Reports):
        self._reports = reports

    async def process(self, context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
        call_id = f"call-{id(context):x}"
        self._reports.begin(call_id, context.function.name, context.arguments)
        try:
            await call_next()
        except BaseException as error:
            if type(error).__name__ != "MiddlewareTermination":
                self._reports.end(call_id, error=error)
            raise
        finally:
            self._reports.end(call_id, context.result)


def watchdog_middleware(reporter: Optional[Reporter] = None) -> List[Any]:
    """Returns middleware that reports requests to models and calls of functions. A cancel ends the run at its next request."""
    reports = Reports(reporter)
    return [_Requests(reports), _Calls(reports)]
