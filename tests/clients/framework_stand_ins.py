"""What the tests of the Python integrations share: stand-ins for modules of frameworks, and the examples of the page about them."""

import ast
import asyncio
import inspect
import pathlib
import re
import sys
import types

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "how-to" / "python-frameworks.md"


def stand_in(name, **content):
    """Makes a module, and the packages that it is in."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        module = sys.modules.setdefault(".".join(parts[:count]), types.ModuleType(".".join(parts[:count])))
        module.__path__ = []
    module.__dict__.update(content)


class Thing(types.SimpleNamespace):
    """An object with attributes."""


def examples():
    """The examples of the page, by their titles."""
    parts = re.split(r"^## (.*)\n", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]
    found = {title: re.search(r"```python\n(.*?)```", text, re.S) for title, text in zip(parts[::2], parts[1::2])}
    return {title: match[1] for title, match in found.items() if match}


def run_example(title, names):
    """Runs the example as it is in the page, in a coroutine if it has `await`."""
    code = compile(examples()[title], title, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    done = eval(code, names)
    if inspect.iscoroutine(done):
        asyncio.run(done)
