"""Runs the example of one framework with the real framework, and looks at what the monitor has of it. scripts/agents starts it.

Usage: run.py NAME   programs/NAME.py has the packages, the title of the example, and the names that the example uses.
"""

import ast
import importlib.util
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))

import given  # noqa: E402
from framework_stand_ins import run_example  # noqa: E402
from model import Model  # noqa: E402
from watchdog_client import Monitor  # noqa: E402


def declared(name):
    """What a program says of itself, without running it: TITLE, PACKAGES, and CALL where it makes another one."""
    found = {"CALL": ("search", given.ARGUMENTS)}
    for one in ast.parse((HERE / "programs" / f"{name}.py").read_text(encoding="utf-8")).body:
        if isinstance(one, ast.Assign) and one.targets[0].id in ("TITLE", "PACKAGES", "CALL"):
            found[one.targets[0].id] = ast.literal_eval(one.value)
    return found


def run(name):
    """What the monitor has of the run, and the call that was to be made."""
    facts = declared(name)
    spec = importlib.util.spec_from_file_location(f"program_{name}", HERE / "programs" / f"{name}.py")
    program = importlib.util.module_from_spec(spec)
    with Model(*facts["CALL"]) as model:
        given.MODEL = model.url
        spec.loader.exec_module(program)
        run_example(facts["TITLE"], {**vars(program), "print": lambda *_: None})
    return list(Monitor().events(os.environ["WATCHDOG_SESSION"])), facts["CALL"]


def mistake(events, tool, arguments):
    """What is wrong with the reports."""
    calls = [event for event in events if event["kind"] == "tool_call" and event["name"] == tool and event.get("args") == arguments]
    results = [event for event in events if event["kind"] == "tool_result" and "found" in event.get("text", "")]
    if len(calls) != 1:
        return f"the call is reported {len(calls)} times"
    if [event["call_id"] for event in results] != [calls[0]["call_id"]]:
        return f"the result is reported {len(results)} times"
    if not any(event["kind"] == "heartbeat" and event.get("source") == "loop" for event in events):
        return "no step is reported"
    ends = [event.get("outcome") for event in events if event["kind"] == "end"]
    return "" if ends == ["completed"] else f"the session ended as {ends}"


if __name__ == "__main__":
    events, call = run(sys.argv[1])
    if wrong := mistake(events, *call):
        print(*events, sep="\n")
        sys.exit(wrong)
