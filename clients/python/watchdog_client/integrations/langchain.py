"""LangChain and LangGraph. Tested against a stand-in written from the documented interface, not against the package.

    graph.invoke(inputs, config={"callbacks": [WatchdogCallbacks(reporter)]})
"""

from __future__ import annotations

from typing import Any, Optional, Set, Tuple

from langchain_core.callbacks import BaseCallbackHandler
from watchdog_client import Reporter
from watchdog_client.integrations import Reports


class WatchdogCallbacks(BaseCallbackHandler):
    """Reports nodes of a graph, requests to models, tokens and calls of tools. A cancel ends the run at its next step."""

    run_inline = True  # in the order of the events, also in asyncio

    def __init__(self, reporter: Optional[Reporter] = None):
        self._reports = Reports(reporter)
        self._nodes: Set[Tuple[Any, ...]] = set()

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: Any, metadata: Any = None, **more: Any) -> None:
        facts = metadata or {}
        node = tuple(facts.get(f"langgraph_{word}") for word in ("node", "step", "checkpoint_ns")) + (facts.get("thread_id"),)
        if node[0] and node not in self._nodes:  # Each runnable within a node has the same facts.
            self._nodes.add(node)
            self._reports.step(node[0], node[1])

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: Any, metadata: Any = None, **more: Any) -> None:
        if not (metadata or {}).get("langgraph_node"):
            self._reports.step("model")

    on_chat_model_start = on_llm_start

    def on_llm_new_token(self, token: Any, **more: Any) -> None:
        reporter = self._reports.reporter
        if reporter:
            reporter.count(tokens=1)

    def on_llm_error(self, error: BaseException, **more: Any) -> None:
        reporter = self._reports.reporter
        if reporter:
            reporter.tool_error("model", error)

    def on_tool_start(self, serialized: Any, input_str: Any, *, run_id: Any, inputs: Any = None, **more: Any) -> None:
        name = (serialized or {}).get("name") or more.get("name") or "tool"
        self._reports.begin(run_id, name, input_str if inputs is None else inputs)

    def on_tool_end(self, output: Any, *, run_id: Any, **more: Any) -> None:
        self._reports.end(run_id, getattr(output, "content", output))

    def on_tool_error(self, error: BaseException, *, run_id: Any, **more: Any) -> None:
        self._reports.end(run_id, error=error)
