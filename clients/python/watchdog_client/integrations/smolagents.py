"""smolagents. Tested against a stand-in written from the documented interface, not against the package.

    agent = watch(CodeAgent(tools=[search], model=model), reporter)
"""

from __future__ import annotations

from typing import Any, Optional, TypeVar

from smolagents import ActionStep
from watchdog_client import Reporter, wrap
from watchdog_client.integrations import Reports

_Agent = TypeVar("_Agent")


def watch(agent: _Agent, reporter: Optional[Reporter] = None) -> _Agent:
    """Reports steps and calls of tools of the agent, and returns it. A cancel ends the run after the current step."""
    reports = Reports(reporter)
    watched: Any = agent
    for name, tool in watched.tools.items():
        tool.forward = reporter.wrap(tool.forward, name=name) if reporter else wrap(tool.forward, name=name)

    def on_step(step: Any, agent: Any = None) -> None:
        if reports.reporter:
            if step.error is not None:
                reports.reporter.tool_error("step", str(step.error))
            else:
                reports.reporter.state_change("step", step.observations if step.observations is not None else step.action_output)
        reports.step("step", step.step_number)

    if hasattr(watched.step_callbacks, "register"):
        watched.step_callbacks.register(ActionStep, on_step)
    else:
        watched.step_callbacks.append(on_step)
    return agent
