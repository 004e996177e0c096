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
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT / "tests" / "e2e")]

import real_agents  # noqa: E402
import recovery  # noqa: E402
import shapes  # noqa: E402
import table  # noqa: E402
from agents import AGENTS, ALL_AGENTS  # noqa: E402
from stage import Wrong  # noqa: E402


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
        self.assertEqual(len(cells), 3 * (11 * 3 + 2) + 11)

    def test_only_a_cell_that_changed_its_side_is_news(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "results.json")
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                real_agents.changes({("a", "hooks", "x"): (None, "idle"), ("a", "hooks", "y"): (None, "idle")}, file)
                real_agents.changes({("a", "hooks", "x"): (None, "completed"), ("a", "hooks", "y"): ("dead", "dead")}, file)
            self.assertEqual(said.getvalue(), "changed  a/hooks/y  was right: idle; is wrong: dead\n")
            self.assertEqual(json.loads(file.read_text()), {"a/hooks/x": "right: completed", "a/hooks/y": "wrong: dead"})


class Acts(unittest.TestCase):
    """What counts as shown in the requests of an agent. The key of a request is its number of results."""

    NUDGE = f"watchdog-monitor (a local monitor that the user installed): the last 4 calls of Bash `{recovery.COMMAND}` gave the same result"
    REFUSAL = NUDGE + ", so this one was not run."

    def check(self, step, requests, calls, agent="claude", way="hooks"):
        stage = types.SimpleNamespace(name=agent, way=way)
        try:
            recovery.SHOWN[step](stage, requests, calls)
        except Wrong as error:
            return str(error)
        return ""

    def test_a_nudge_is_in_the_very_next_request(self):
        said = self.NUDGE + "."
        self.assertEqual(self.check("nudge", {3: "", 4: said, 5: said}, 4), "")
        self.assertIn("[5]", self.check("nudge", {3: "", 4: "", 5: said}, 4))
        self.assertIn("[]", self.check("nudge", {4: self.REFUSAL}, 4))
        self.assertIn("the last 4 calls", self.check("nudge", {6: said}, 6))

    def test_each_refusal_is_in_the_next_request(self):
        requests = {4: "", 5: self.REFUSAL, 6: self.REFUSAL}
        self.assertEqual(self.check("refuse", requests, 5), "")
        self.assertIn("1 and 1 times", self.check("refuse", requests, 6))

    def test_after_a_cancel_it_asks_nothing_or_reads_of_it(self):
        self.assertEqual(self.check("cancel", {6: ""}, 7), "")
        self.assertIn("1 times more", self.check("cancel", {7: ""}, 7))
        self.assertIn("does not say so", self.check("cancel", {7: ""}, 7, "codex"))
        self.assertEqual(self.check("cancel", {7: "cancelled by rule stop: the last 4 calls"}, 7, "codex"), "")
        self.assertIn("1 times more", self.check("cancel", {7: "cancelled by rule stop: the last 4 calls"}, 7, "codex", "both"))


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
