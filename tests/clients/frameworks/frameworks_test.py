#!/usr/bin/python3
"""scripts/agents --python: what works, fails or cannot be had. pip has an index with three packages in a folder, and no network.

Usage: frameworks_test.py MONITOR
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

PROGRAM = sys.argv.pop(1)
ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "agents"

SPANS = '''
import contextlib
import types

class SpanProcessor:
    pass

class TracerProvider:
    def __init__(self):
        self.processors = []

    def add_span_processor(self, one):
        self.processors.append(one)

    def get_tracer(self, name):
        return self

    @contextlib.contextmanager
    def start_as_current_span(self, name, attributes):
        status = types.SimpleNamespace(status_code=types.SimpleNamespace(name="UNSET"), description=None)
        span = types.SimpleNamespace(name=name, attributes=dict(attributes), context=types.SimpleNamespace(span_id=id(attributes)), status=status)
        span.set_attribute = span.attributes.__setitem__
        for one in self.processors:
            one.on_start(span, None)
        yield span
        for one in self.processors:
            one.on_end(span)
'''
# It calls no hook.
SMOLAGENTS = '''
class ActionStep:
    pass

def tool(function):
    return function

class OpenAIServerModel:
    def __init__(self, *_, **more):
        pass

class ToolCallingAgent:
    def __init__(self, tools, model):
        self.tools, self.step_callbacks = {}, []

    def run(self, task):
        pass
'''


def make_wheel(folder, package, version, files, extras=""):
    name = f"{package.replace('-', '_')}-{version}"
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        provides = f"Provides-Extra: {extras}\n" if extras else ""
        wheel.writestr(f"{name}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n{provides}")
        wheel.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{name}.dist-info/RECORD", "")


class Script(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def agents(self, *words):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.folder), "PIP_CONFIG_FILE": "/dev/null"}
        command = ["/usr/bin/python3", str(SCRIPT), "--python", "--folder", str(self.folder / "agents"), *words]
        return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def test_it_says_what_works_fails_and_cannot_be_had(self):
        make_wheel(self.folder, "opentelemetry-sdk", "9.1", {"opentelemetry/__init__.py": "", "opentelemetry/sdk/__init__.py": "", "opentelemetry/sdk/trace.py": SPANS})
        make_wheel(self.folder, "smolagents", "9.2", {"smolagents.py": SMOLAGENTS}, "openai")
        make_wheel(self.folder, "strands-agents", "9.3", {"strands.py": "raise RuntimeError('it is broken')"}, "openai")
        done = self.agents("--monitor", PROGRAM, *(word for name in ("opentelemetry", "smolagents", "strands", "crewai") for word in ("--only", name)))
        self.assertEqual(done.stdout.splitlines(), [
            "opentelemetry      opentelemetry-sdk 9.1: works",
            "smolagents         smolagents 9.2: fails: the call is reported 0 times",
            "strands            strands-agents 9.3: fails: RuntimeError: it is broken",
            "crewai             crewai: cannot be had: No matching distribution found for crewai"], done.stderr)
        self.assertEqual(done.returncode, 1)
        done = self.agents("--monitor", PROGRAM, "--only", "crewai")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_wrong_words(self):
        done = self.agents("--only", "nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown framework nonsense; use one of agent_framework, claude_agent_sdk, crewai,", done.stderr)
        self.assertEqual(self.agents("--monitor", "/nowhere").returncode, 3)

    def test_each_module_has_a_program(self):
        modules = {path.stem for path in (ROOT / "clients/python/watchdog_client/integrations").glob("[a-z]*.py")}
        self.assertEqual({path.stem for path in (ROOT / "tests/clients/frameworks/programs").glob("*.py")}, modules)
        for path in (ROOT / "tests/clients/frameworks/programs").glob("*.py"):
            compile(path.read_text(), str(path), "exec")


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=1)
