#!/usr/bin/python3
"""Usage: action_test.py MONITOR

Runs the steps of action.yml as GitHub's runner does: with an agent that is stuck, one that is slow, one that finishes, and
jobs that are cancelled.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MONITOR = sys.argv.pop(1) if len(sys.argv) > 1 else "watchdog-monitor"
MONITOR = str(pathlib.Path(MONITOR).resolve())
ACTION = yaml.safe_load((SOURCE / "action.yml").read_text())
PATIENCE_S = 300

# An agent that prints what `claude -p --output-format stream-json` prints.
AGENT = r"""
import json, os, sys, time
kind = sys.argv[1]
def say(type, **more): print(json.dumps({"type": type, "session_id": "s", **more}), flush=True)
def call(id, command): say("assistant", message={"id": f"m{id}", "role": "assistant", "content": [{"type": "tool_use", "id": f"t{id}", "name": "Bash", "input": {"command": command}}]})
def result(id, text): say("user", message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{id}", "content": text}]})
say("system", subtype="init", model="m", tools=["Bash"], cwd="/")
number = 0
while kind == "stuck" or number < (12 if kind == "slow" else 2):
    call(number, "make test" if kind == "stuck" else f"make part-{number}")
    if kind == "slow": time.sleep(0.3)
    result(number, "FAILED: </code><script>alert(1)</script> | 1 of 3" if kind == "stuck" else f"ok {number}")
    number += 1
    if kind == "stuck": time.sleep(0.02)
if kind == "unfinished": say("result", subtype="error_max_turns", is_error=True, num_turns=number)
else: say("result", subtype="success", is_error=False, num_turns=number, result="done")
"""


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def filled(text, values):
    """An expression of a workflow stands for an input."""
    return re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: values[found[1]], str(text))


class Step:
    """A step of a job that uses the action."""

    def __init__(self, folder, **inputs):
        self.folder = folder
        values = {name: str(facts.get("default", "")) for name, facts in ACTION["inputs"].items()}
        values.update({"program": MONITOR, "working-directory": str(folder)}, **{name.replace("_", "-"): text for name, text in inputs.items()})
        assert ACTION["runs"]["using"] == "composite"
        (step,) = ACTION["runs"]["steps"]
        assert step["shell"] == "bash" and all(set(re.findall(r"\$\{\{(.*?)\}\}", text)) <= {f" inputs.{name} " for name in values} for text in step["env"].values())
        assert "${{" not in step["run"], "an input would become code"
        script = folder / "step.sh"
        script.write_text(step["run"])
        self.files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in self.files.values():
            file.write_text("")
        environment = {**os.environ, **{name: filled(text, values) for name, text in step["env"].items()}, **{name: str(file) for name, file in self.files.items()},
                       "GITHUB_ACTION_PATH": str(SOURCE), "RUNNER_TEMP": str(folder), "WATCHDOG_SESSION": "of-another-step"}
        self.process = subprocess.Popen(["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)], cwd=filled(step["working-directory"], values), env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self):
        self.said, self.errors = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode

    def run(self):
        code = self.end()
        self.summary = self.files["GITHUB_STEP_SUMMARY"].read_text()
        self.outputs = dict(line.split("=", 1) for line in self.files["GITHUB_OUTPUT"].read_text().splitlines())
        return code


class Action(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "agent.py").write_text(AGENT)

    def step(self, **inputs):
        step = Step(self.folder, **inputs)
        self.addCleanup(lambda: step.process.poll() is None and step.process.kill())
        return step

    def expect_gone(self, *names):
        """The processes whose numbers are in these files end, and a stranger of the same name goes on."""
        pids = [int((self.folder / name).read_text()) for name in names]
        until = time.monotonic() + PATIENCE_S
        while any(map(is_running, pids)) and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual([pid for pid in pids if is_running(pid)], [])

    def stranger(self):
        process = subprocess.Popen(["sleep", "600"], cwd=self.folder)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_stuck_agent_ends_with_its_proof(self):
        stranger = self.stranger()
        step = self.step(command="sleep 600 & echo $! >one\nsetsid sleep 600 & echo $! >two\npython3 agent.py stuck", task="Repair the parser", session="stuck-one")
        self.assertEqual(step.run(), 1, step.errors)
        self.assertRegex(step.summary, r"^### Agent: looping\n")
        for row in (r"\| reason \| Calls Bash \d+ times in a row, with the same arguments and the same result \|", r"\| why the step ended \| it has been looping for \d+ further iterations",
                    r"\| task \| <code>Repair the parser</code> \|", r"\| evidence, event 4 \| where it began: <code>tool_result Bash FAILED: ", r"\| evidence, event \d+ \| the newest round",
                    r"The last \d+ calls:\n\n\| call \| arguments \| result \|", r"<code>Bash</code> \| <code>\{&quot;command&quot;: &quot;make test&quot;\}</code> \| <code>FAILED: ",
                    r"\| suspect → looping \|"):
            self.assertRegex(step.summary, row)
        self.assertNotIn("<script>", step.summary)
        self.assertTrue(all(line.count("|") in (3, 4) for line in step.summary.splitlines() if line.startswith("|")), step.summary)
        self.assertRegex(step.said, r"\n::error title=The agent is looping::Calls Bash \d+ times in a row")
        self.assertEqual((step.outputs["session"], step.outputs["outcome"]), ("stuck-one", "stuck"))
        self.assertRegex(step.outputs["reason"], "^Calls Bash")
        kept = subprocess.run([MONITOR, "status", "stuck-one", "--config", "", "--db", step.outputs["database"]], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        self.assertIn("cancelled", kept.stdout)
        self.expect_gone("one", "two")
        self.assertIsNone(stranger.poll())

    def test_a_slow_agent_goes_on(self):
        step = self.step(command="python3 agent.py slow")
        self.assertEqual(step.run(), 0, step.errors)
        self.assertRegex(step.summary, r"^### Agent: completed\n(.*\n)*\| exit code of the command \| 0 \|\n(.*\n)*The last 12 calls:")
        self.assertNotIn("::error", step.said)
        self.assertEqual(step.outputs["outcome"], "completed")

    def test_a_command_ends_with_its_own_code(self):
        step = self.step(command="python3 agent.py finished")
        self.assertEqual(step.run(), 0, step.errors)
        self.assertEqual(step.outputs["outcome"], "completed")
        step = self.step(command="echo 'ok 1'\necho 'ok 2'\nfalse | cat\nexit 7", state_change_on="^nothing$\n\n^ok ")
        self.assertEqual(step.run(), 1)  # as the runner's own shell: -eo pipefail
        step = self.step(command="echo 'ok 1'\necho 'ok 2'\npwd\nexit 7", state_change_on="^nothing$\n\n^ok ")
        self.assertEqual(step.run(), 7)
        self.assertIn(f"\n{self.folder.resolve()}\n", step.said)
        self.assertRegex(step.summary, r"^### Agent: failed\n(.*\n)*\| state changes \| 2 \|\n")
        self.assertEqual(step.outputs["outcome"], "failed")

    def test_an_agent_that_gave_up_fails_the_step(self):
        step = self.step(command="python3 agent.py unfinished || true")
        self.assertEqual(step.run(), 1, step.errors)
        self.assertNotEqual(step.outputs["outcome"], "completed")

    def test_a_cancelled_job_ends_what_it_started(self):
        stranger = self.stranger()
        for number, name in ((signal.SIGINT, "INT"), (signal.SIGTERM, "TERM")):
            step = self.step(command="sleep 600 & echo $! >one; setsid sleep 600 & echo $! >two; echo ready; wait")
            watchdog = threading.Timer(PATIENCE_S, step.process.kill)
            watchdog.start()
            self.assertEqual(step.process.stdout.readline(), "ready\n")
            watchdog.cancel()
            step.process.send_signal(number)
            self.assertEqual(step.run(), 128 + number, step.errors)
            self.assertRegex(step.summary, r"^### Agent: cancelled while it was ")
            self.assertEqual(step.outputs["outcome"], "cancelled")
            self.expect_gone("one", "two")
        self.assertIsNone(stranger.poll())

    def test_a_command_that_knows_the_session_reports_to_it(self):
        client = SOURCE / "clients/python"
        code = "from watchdog_client import Reporter\nwith Reporter(agent=\"a\") as r: r.state_change(\"planned\")"
        step = self.step(command=f"PYTHONPATH={client} python3 -c '{code}'; test -z \"${{ACTION_COMMAND:-}}\"")
        self.assertEqual(step.run(), 0, step.errors)
        self.assertRegex(step.summary, r"\| state changes \| 1 \|")

    def test_a_wrong_input_is_named(self):
        step = self.step(command="true", program="no-such-program")
        self.assertEqual(step.run(), 3)
        self.assertEqual(step.said, "::error title=watchdog::The program no-such-program is missing. Install watchdog-monitor in an earlier step, or name its path in the input program.\n")
        step = self.step(command="true", on_quiet="maybe")
        self.assertEqual(step.run(), 2)
        self.assertIn("The input on-quiet is “maybe”; it must be keep or fail.", step.said)
        step = self.step(command=" \n")
        self.assertEqual(step.run(), 2)


if __name__ == "__main__":
    unittest.main()
