#!/usr/bin/env python3
"""`watchdog-monitor replay` on what other programs record.

Usage: replay_test.py MONITOR
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))


def run(*words):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WATCHDOG_")} | {"WATCHDOG_CONFIG": ""}
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, env=environment, timeout=60)


class Replay(unittest.TestCase):
    def test_recognizes_what_other_programs_record(self):
        data = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "replay")
        for name, format_, calls, outcome in (
                ("openhands.json", "openhands", 8, "completed"), ("openhands-v1.jsonl", "openhands", 1, "completed"),
                ("swe-agent.traj", "swe-agent", 2, "completed"), ("mini-swe-agent.traj.json", "swe-agent", 2, "incomplete"),
                ("langsmith.jsonl", "langsmith", 1, "completed"), ("langfuse.json", "langfuse", 1, "completed"),
                ("otlp.jsonl", "otlp", 1, "completed")):
            with self.subTest(name):
                said = run("replay", "--json", "--limit-seconds", "100", os.path.join(data, name))
                self.assertEqual(said.returncode, 0, said.stderr)
                found = json.loads(said.stdout)
                self.assertEqual((found["format"], found["calls"], found["outcome"]), (format_, calls, outcome))
                if name == "openhands.json":
                    self.assertEqual(found["stuck"], {"seq": found["stuck"]["seq"], "call": 4, "pattern": "R1"})
                    self.assertEqual(found["limitSeconds"], {"limit": 100, "ends": True, "call": 2, "beforeEndMs": 440000})
        with tempfile.TemporaryDirectory() as folder:
            for text, wrong in (('{"x":1}\n', "the format was not recognized. Name it with --format: watchdog, otlp"),
                                ('{"run_type":"tool","inputs":{}}\n{bad\n', "run.jsonl:2: it is not JSON")):
                with open(folder + "/run.jsonl", "w", encoding="utf-8") as file:
                    file.write(text)
                said = run("replay", folder + "/run.jsonl")
                self.assertEqual(said.returncode, 1)
                self.assertIn(wrong, said.stderr)

    def test_a_replayed_run_is_a_session_of_the_database(self):
        data = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "replay")
        with tempfile.TemporaryDirectory() as folder:
            database = folder + "/w.db"
            said = run("replay", "--db", database, os.path.join(data, "openhands.json"))
            self.assertEqual(said.returncode, 0, said.stderr)
            said = run("sessions", "--db", database, "--json")
            self.assertIn("openhands", said.stdout)
            again = run("replay", "--db", database, os.path.join(data, "openhands.json"))
            self.assertEqual(again.returncode, 1)
            self.assertIn("is in the database already", again.stderr)


if __name__ == "__main__":
    unittest.main()
