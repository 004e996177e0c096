"""OpenTelemetry SDK. Tested against a stand-in written from the documented interface, not against the package.

    provider.add_span_processor(WatchdogSpans(reporter))   # of the process's TracerProvider
"""

from __future__ import annotations

import contextlib
from typing import Any, Optional

from opentelemetry.sdk.trace import SpanProcessor
from watchdog_client import Cancelled, Reporter
from watchdog_client.integrations import Reports

# The GenAI conventions, OpenInference and OpenLLMetry, in this order.
_KIND = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
_TOOL = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool.parameters", "input.value", "traceloop.entity.input")
_RESULT = ("gen_ai.tool.call.result", "output.value", "traceloop.entity.output")
_MODEL = ("chat", "text_completion", "generate_content", "llm")


class WatchdogSpans(SpanProcessor):
    """Reports calls of tools when they begin, which an exporter cannot, and requests to models. It cannot stop an agent."""

    def __init__(self, reporter: Optional[Reporter] = None):
        self._reports = Reports(reporter)

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        kind = str(_first(span, _KIND) or span.name.partition(" ")[0]).lower()
        if kind in ("execute_tool", "tool"):
            self._reports.begin(_id(span), _first(span, _TOOL) or span.name.replace("execute_tool ", ""), _first(span, _ARGUMENTS))
        elif kind in _MODEL:
            with contextlib.suppress(Cancelled):
                self._reports.step("model")

    def on_end(self, span: Any) -> None:
        if not self._reports.is_running(_id(span)):
            kind = str(_first(span, _KIND)).lower()
            if kind not in ("execute_tool", "tool"):
                return
            self.on_start(span)  # It got its attributes after its start.
        failed = span.status.status_code.name == "ERROR"
        self._reports.end(_id(span), _first(span, _RESULT), (span.status.description or "error") if failed else None)


def _id(span: Any) -> str:
    return f"{span.context.span_id:016x}"


def _first(span: Any, names: Any) -> Any:
    return next((span.attributes[name] for name in names if name in (span.attributes or {})), None)
