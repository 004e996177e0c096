#!/usr/bin/env python3
"""The stage table of the real agents, the comparison of names that they send, and the words of scripts/agents. No agent runs."""

import contextlib
import fnmatch
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT / "tests" / "e2e")]

import real_agents  # noqa: E402
import shapes  # noqa: E402
import table  # noqa: E402
from agents import AGENTS, ALL_AGENTS  # noqa: E402


class Table(unittest.TestCase):
    def setUp(self):
        stages = table.STAGES | table.MORE_STAGES | table.SLOW_STAGES
        self.cells = ["/".join(cell) for cell in table.cells_of(ALL_AGENTS, stages, (*table.WAYS, *table.MORE_WAYS))]

    def test_each_agent_has_each_stage_in_each_way(self):
        for agent in ALL_AGENTS:
            for stage in table.STAGES.keys() | table.MORE_STAGES.keys():
                ways = {cell.split("/")[1] for cell in self.cells if cell.split("/")[0] == agent and cell.split("/")[2] == stage}
                self.assertTrue(ways >= ({"telemetry", "all"} if stage == "counted" else {"hooks", "proxy", "both"}), (agent, stage, ways))

    def test_each_exception_is_about_a_cell_and_says_why(self):
        for pattern, why in table.CANNOT_KNOW.items():
            self.assertTrue(any(fnmatch.fnmatch(cell, pattern) for cell in self.cells), pattern)
            self.assertGreater(len(why), 20, pattern)
        self.assertEqual(table.KNOWN_WRONG - {*self.cells, *(f"{cell.rsplit('/', 1)[0]}/{also}" for cell in self.cells for also in table.AGAIN)}, set())

    def test_the_agents_of_the_tests_have_their_old_cells(self):
        cells = list(table.cells_of(AGENTS, table.STAGES, (*table.WAYS, "telemetry", "all")))
        self.assertIn(("claude", "hooks", "finished"), cells)
        self.assertNotIn(("claude", "proxy", "finished"), cells, "the one that is played has hooks alone")
        self.assertEqual(len(cells), 3 * (10 * 3 + 2) + 10)

    def test_only_a_cell_that_changed_its_side_is_news(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "results.json")
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                real_agents.changes({("a", "hooks", "x"): (None, "idle"), ("a", "hooks", "y"): (None, "idle")}, file)
                real_agents.changes({("a", "hooks", "x"): (None, "completed"), ("a", "hooks", "y"): ("dead", "dead")}, file)
            self.assertEqual(said.getvalue(), "changed  a/hooks/y  was right: idle; is wrong: dead\n")
            self.assertEqual(json.loads(file.read_text()), {"a/hooks/x": "right: completed", "a/hooks/y": "wrong: dead"})


class Shapes(unittest.TestCase):
    def test_names_of_hooks_and_telemetry(self):
        recorder = shapes.Recorder()
        recorder.hooks, recorder.telemetry = {}, set()
        recorder.keep("/api/hooks/x?event=Stop", {"hook_event_name": "Stop", "session_id": "s"})
        recorder.keep("/api/hooks/opencode", {"type": "session.idle", "properties": {"sessionID": "s"}})
        recorder.keep("/v1/logs", {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"attributes": [
            {"key": "event.name", "value": {"stringValue": "tool_result"}}]}]}]}]})
        recorder.keep("/v1/traces", {"scopeSpans": [{"spans": [{"name": "chat", "spanId": "1", "attributes": [{"key": "model", "value": {}}]}]}]})
        recorder.keep("/v1/metrics", {"metrics": [{"name": "tokens", "histogram": {"dataPoints": [{"sum": 3}]}}]})
        self.assertEqual(recorder.hooks, {"Stop": {"hook_event_name", "session_id"}, "session.idle": {"sessionID"}})
        self.assertEqual(recorder.telemetry, {"event.name", "event tool_result", "span chat", "model", "metric tokens"})

    def test_a_shape_is_kept_for_each_agent(self):
        kept = {file.stem: json.loads(file.read_text()) for file in shapes.KEPT.glob("*.json")}
        self.assertEqual(kept.keys(), ALL_AGENTS.keys())
        for name, shape in kept.items():
            self.assertIn("content-type", shape["headers"], name)
            self.assertGreater(len(shape["hooks"]), 4, name)


class Script(unittest.TestCase):
    def said(self, *words):
        done = subprocess.run([str(ROOT / "scripts" / "agents"), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return done.returncode, done.stderr.splitlines()[0] if done.stderr else ""

    def test_wrong_words(self):
        self.assertEqual(self.said("--coding", "--only", "codex"), (2, "--only: codex does not name cells; write AGENT/WAY/STAGE, each of which may be *"))
        for words in (("--coding", "--python"), ("--python", "--pinned"), ("--coding", "--jobs", "none"), ("--keep",)):
            self.assertEqual(self.said(*words)[0], 2, words)
        self.assertEqual(self.said("--coding", "--monitor", "/nowhere"), (3, "No program at /nowhere: build it, or name one with --monitor"))


if __name__ == "__main__":
    unittest.main(verbosity=1)
