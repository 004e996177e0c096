#!/usr/bin/env python3
"""Rules that need no hook: the processes of a hung command are ended, and a program of the monitor's owner runs."""

import glob
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from server import Server

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 120
FAST = 60  # The monitor's clock runs that many times as fast: a call is quiet after ten minutes.
FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), "")
END = '[recovery.rules.end]\non = ["quiet"]\nstep = "end_call"\n'
# An agent with a shell tool: it reports its calls by hooks, and goes on when a command fails.
AGENT = r"""
import http.client, json, os, subprocess, sys
host, token = sys.argv[1:]
def hook(name, **more):
    connection = http.client.HTTPConnection(host, timeout=60)
    body = {"session_id": "s", "hook_event_name": name, "cwd": os.getcwd()} | more
    connection.request("POST", f"/api/hooks/claude-code?pid={os.getpid()}", json.dumps(body), {"Authorization": f"Bearer {token}"})
    connection.getresponse().read()
    connection.close()
hook("SessionStart", source="startup")
hook("UserPromptSubmit", prompt="Count the apples in the orchard")
helper = subprocess.Popen(["tail", "-f", "/dev/null"])  # the kernel's clock is not as fast, so no other process has the name of a command
for number, line in enumerate(sys.stdin):
    of = {"tool_name": "Bash", "tool_use_id": f"c{number}", "tool_input": {"command": line.strip()}}
    hook("PreToolUse", **of)
    done = subprocess.run(["bash", "-c", line.strip() + "; true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=number % 2 == 1)
    hook("PostToolUse", **of, tool_response={"stdout": done.stdout, "exitCode": done.returncode})
    print(json.dumps({"command": line.strip(), "code": done.returncode, "helper": helper.poll()}), flush=True)
"""


class Steps(unittest.TestCase):
    def start(self, rules, fast=FAST):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "watchdog.toml").write_text(rules)
        if fast > 1 and os.environ.get("WATCHDOG_SANITIZE"):
            self.skipTest("a sanitizer's library must be loaded before all others")
        self.assertTrue(FAKETIME, "libfaketime is missing: install the package faketime, as scripts/test does")
        more = {"LD_PRELOAD": FAKETIME, "FAKETIME": f"+0 x{fast}"} if fast > 1 else {}
        self.server = self.enterContext(Server(PROGRAM, more, ["--config", self.folder / "watchdog.toml"]))

    def agent(self):
        work = self.folder / "orchard"
        work.mkdir()
        self.process = subprocess.Popen([sys.executable, "-c", AGENT, self.server.host, self.server.secret], cwd=work, text=True, start_new_session=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.leave)

    def leave(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def call(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def result(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        connection.request(method, path, None if body is None else json.dumps(body), {"Authorization": f"Bearer {self.server.secret}"})
        answer = connection.getresponse()
        text = json.load(answer)
        connection.close()
        self.assertLess(answer.status, 300, text)
        return text

    def until(self, check, why):
        end = time.monotonic() + PATIENCE_S
        while not (found := check()):
            self.assertLess(time.monotonic(), end, why)
            time.sleep(0.05)
        return found

    def trail(self):
        """All acts. What came of them is written some seconds later."""
        return [(entry["actor"], entry["action"], entry["outcome"]) for entry in self.ask("GET", "/api/audit")["audit"]
                if entry["action"] != "trial"]

    def said(self, session="s"):
        events = self.ask("GET", f"/api/autonomous/sessions/{session}/events?limit=1000")["events"]
        return [event["text"] for event in events if event.get("text", "").startswith("rule ")]

    def test_a_hung_command_is_ended_and_the_agent_goes_on(self):
        self.start(END)
        self.agent()
        for number in range(2):  # in the agent's process group, and in one of its own
            self.call("sleep 500")
            done = self.result()
            self.assertEqual(done["helper"], None, "another process of the agent runs on")
            self.assertIn(done["code"], (-signal.SIGTERM, 128 + signal.SIGTERM, 0))
            actor, action, outcome = self.until(lambda: self.trail()[number:], "the act is in the audit log")[0]
            self.assertEqual((actor, action), ("rule:end", "end_call"))
            self.assertRegex(outcome, r"^[12] process(es)? ended: slow \(F8\)(, event \d+)?$")
        self.call("echo apples")
        self.assertEqual(self.result()["code"], 0)
        claim, result = self.said()[:2]
        self.assertRegex(claim, r"^rule end did end_call: slow \(F8\): the command `sleep 500` of Bash has run for 1\d min.*, and its [12] process(es)? do no work$")
        self.assertRegex(result, r"^rule end: [12] process(es)? ended$")
        self.assertIsNone(self.process.poll())

    def test_a_command_that_ignores_the_first_signal_is_killed(self):
        self.start(END)
        self.agent()
        self.call("""python3 -c 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(500)'""")
        self.assertIsNone(self.result()["helper"])
        self.assertIn("ended", self.until(self.trail, "the act is in the audit log")[0][2])

    def test_a_process_without_the_commands_name_is_left_alone(self):
        """The command is a loop of the shell itself. Its child has another name, so nobody knows whose it is."""
        self.start(END)
        self.agent()
        self.call("eval $(echo c2xlZXAgMTU= | base64 -d)")
        self.assertEqual(self.result()["code"], 0)
        self.assertEqual((self.trail(), self.said()), ([], []))

    def test_another_agent_in_the_command_is_left_alone(self):
        """It waits for a model that needs longer than a command may rest."""
        self.start(END)
        self.agent()
        waits = AGENT.split("hook(\"SessionStart\"")[0].replace('"session_id": "s"', '"session_id": "inner"') + \
            'import time\ntime.sleep(1)\nhook("SessionStart", source="startup")\nfor _ in range(5):\n    hook("UserPromptSubmit", prompt="Count the pears")\n    time.sleep(0.3)\ntime.sleep(18)\n'
        (self.folder / "orchard" / "inner.py").write_text(waits)
        self.call(f"{sys.executable} inner.py {self.server.host} {self.server.secret} || echo it was ended")
        self.assertEqual(self.result()["code"], 0)
        self.assertEqual((self.trail(), self.said()), ([], []))

    def test_a_dry_run_ends_nothing(self):
        self.start(END + "dry_run = true\n")
        self.agent()
        self.call("sleep 20")
        self.assertEqual(self.result()["code"], 0)
        self.assertRegex(self.trail()[0][2], "^would end_call: slow")

    def test_a_program_gets_the_facts_and_the_bundle_of_a_dead_agent(self):
        keeper = "import json, pathlib, shutil, sys; facts = json.load(sys.stdin); shutil.copy(facts['bundle'], '{0}/bundle.tar'); pathlib.Path('{0}/part').write_text(json.dumps(facts)); pathlib.Path('{0}/part').rename('{0}/facts')"
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        kept = self.folder
        words = json.dumps([sys.executable, "-c", keeper.format(kept)])
        self.start(f'[recovery.rules.again]\non = ["dead"]\nstep = "command"\ncommand = {words}\n', fast=1)
        self.agent()
        self.call("echo one")
        self.result()
        os.killpg(self.process.pid, signal.SIGKILL)
        facts = json.loads(self.until(lambda: (kept / "facts").exists() and (kept / "facts").read_text(), "the command ran"))
        self.assertEqual({name: facts[name] for name in ("rule", "sessionId", "agent", "attempt", "agentRuns", "folder")},
                         {"rule": "again", "sessionId": "s", "agent": "claude-code", "attempt": 1, "agentRuns": False, "folder": "orchard"})
        self.assertIn("dead", facts["proof"])
        names = subprocess.run(["tar", "-tf", kept / "bundle.tar"], capture_output=True, text=True, check=True).stdout
        self.assertIn("README.md", names)
        self.until(lambda: not pathlib.Path(facts["bundle"]).exists(), "the bundle is gone with its command")
        self.until(lambda: self.trail() and self.trail()[0][:2] == ("rule:again", "command"), "the act is in the audit log")
        self.assertRegex(self.trail()[0][2], "^its command ended with 0: dead")
        claims = self.said()
        self.server.crash()
        self.server.start()
        time.sleep(8)  # a look of the rules
        self.assertEqual(self.said(), claims, "a restart repeats no act")

    def test_a_pause_stops_these_rules(self):
        self.start(END)
        self.ask("POST", "/api/recovery/pause")
        self.agent()
        self.call("sleep 18")
        self.assertEqual(self.result()["code"], 0)
        self.assertEqual(self.said(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
