#!/usr/bin/env python3
"""`watchdog-monitor replay` on what other programs record.

Usage: replay_test.py MONITOR
"""

import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import urllib.request

PROGRAM = os.path.abspath(sys.argv.pop(1))


def run(*words):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WATCHDOG_")} | {"WATCHDOG_CONFIG": ""}
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, env=environment, timeout=60)


@contextlib.contextmanager
def opened(*words, **variables):
    """`replay --open` and the URL that it prints; ended by Ctrl-C."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WATCHDOG_") and not k.endswith("DISPLAY")}
    process = subprocess.Popen([PROGRAM, "replay", "--open", *words], stdout=subprocess.PIPE, text=True,
                               env=environment | {"WATCHDOG_CONFIG": ""} | variables)
    try:
        url = next((line.split()[1] for line in process.stdout if line.startswith("open http")), None)
        yield url
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        if process.wait(60) != 0:
            raise AssertionError(f"replay --open ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def fetched(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def event_ids(database):
    with contextlib.closing(sqlite3.connect(database)) as store:
        return [row[0] for row in store.execute("SELECT event_id FROM events ORDER BY seq")]


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
                self.assertIn("A limit of 1 step would", run("replay", "--limit-steps", "1", os.path.join(data, name)).stdout)
                if name == "openhands.json":
                    self.assertEqual(found["stuck"], {"seq": found["stuck"]["seq"], "call": 4, "pattern": "R1"})
                    self.assertEqual(found["limitSeconds"], {"limit": 100, "ends": True, "call": 2, "beforeEndMs": 440000})
        with tempfile.TemporaryDirectory() as folder:
            only_metrics = json.dumps({"resourceMetrics": [{"resource": {}, "scopeMetrics": []}]})
            for text, wrong in ((only_metrics, "run.jsonl: no session was found in it; it was read as otlp"),
                                ('{"x":1}\n', "the format was not recognized. Its first members are x. Name the format with --format: watchdog, otlp"),
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
            self.assertEqual(event_ids(database)[-1], "end-of-recording")
            again = run("replay", "--db", database, os.path.join(data, "openhands.json"))
            self.assertEqual(again.returncode, 1)
            self.assertIn("is in the database already", again.stderr)

    def test_opens_a_replayed_run_as_a_session_page(self):
        data = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "replay")
        with tempfile.TemporaryDirectory() as folder:
            with opened(os.path.join(data, "openhands.json"), TMPDIR=folder) as url:
                base, _, session = url.partition("/sessions/")
                self.assertEqual(session, "openhands")
                self.assertIn("<html", fetched(url))
                progress = json.loads(fetched(f"{base}/api/autonomous/progress/{session}"))
                self.assertEqual((progress["lifecycle"], progress["agent"]), ("completed", "openhands"))
                self.assertEqual(len(os.listdir(folder)), 1, "the temporary database")
            self.assertEqual(os.listdir(folder), [], "nothing is left")
            # Several sessions: the list. The database that was named stays.
            files = [os.path.join(data, name) for name in ("openhands.json", "langfuse.json")]
            with opened("--db", folder + "/w.db", *files) as url:
                self.assertNotIn("/sessions/", url)
                listed = json.loads(fetched(url + "/api/autonomous/sessions"))
                self.assertEqual(len(listed["sessions"]), 2)
            self.assertTrue(os.path.exists(folder + "/w.db"))
        said = run("replay", "--open", "/nowhere/run.jsonl")
        self.assertEqual((said.returncode, said.stdout), (5, ""))

    def test_opens_a_browser_where_there_is_a_display(self):
        data = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "replay")
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(folder + "/said")
            program = pathlib.Path(folder, "xdg-open")
            program.write_text(f'#!/bin/sh\necho "$1" >{folder}/said\n', encoding="utf-8")
            program.chmod(0o700)
            with opened(os.path.join(data, "openhands.json"), DISPLAY=":0",
                        PATH=folder + ":" + os.environ["PATH"]) as url:
                self.assertEqual(pathlib.Path(folder, "said").read_text(encoding="utf-8").strip(), url)

    def test_names_a_session_after_its_file(self):
        call = '{"kind":"tool_call","name":"a","call_id":"1","ts_ms":1795341601000}\n'
        with tempfile.TemporaryDirectory() as folder:
            for name in ("one/run", "two/run", "two/a b"):
                path = pathlib.Path(folder, name + ".jsonl")
                path.parent.mkdir(exist_ok=True)
                path.write_text(call, encoding="utf-8")
            for files, ids in ((["one/run"], ["run"]), (["one/run", "two/run", "two/a b"], ["one:run", "two:run", "a-b"])):
                said = run("replay", "--json", *(f"{folder}/{file}.jsonl" for file in files))
                self.assertEqual([json.loads(line)["session"] for line in said.stdout.splitlines()], ids, said.stderr)
            # The same file twice is refused.
            said = run("replay", folder + "/one/run.jsonl", folder + "/one/run.jsonl")
            self.assertEqual(said.returncode, 1)
            self.assertIn("is in the database already", said.stderr)

    def test_treats_events_of_this_program_as_they_are(self):
        call = '{"kind":"tool_call","name":"a","call_id":"%d","ts_ms":1795341601000}\n'
        calls = call % 1 + call % 2
        for name, text, words, code, said in (
                ("no end", calls, [], 0, {"calls": 2, "outcome": None}),
                ("nothing", "", [], 1, None),
                ("kinds of a newer version", '{"seq":1,"at_ms":1,"kind":"dream"}\n', [], 0, {"events": 0, "format": "watchdog"}),
                ("the rest is not read", calls + "{bad\n", ["--first-calls", "1"], 0, {"calls": 1, "outcome": None}),
                ("a broken line", calls + "{bad\n", [], 1, {"calls": 2, "unreadableLines": 1}),
                ("a file of another program", '{"x":1}\n', [], 1, None)):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                database, trace = folder + "/w.db", folder + "/run.jsonl"
                with open(trace, "w", encoding="utf-8") as file:
                    file.write(text)
                found = run("replay", "--json", "--db", database, *words, trace)
                self.assertEqual(found.returncode, code, found.stderr)
                self.assertEqual(found.stdout == "", said is None)
                if said:
                    self.assertEqual({key: json.loads(found.stdout)[key] for key in said}, said)
                self.assertNotIn("end-of-recording", event_ids(database))
                # Nothing of a file that is refused is stored, even if another file follows.
                if said is None:
                    with open(folder + "/next.jsonl", "w", encoding="utf-8") as file:
                        file.write(call % 3)
                    found = run("replay", "--json", "--db", database, trace, folder + "/next.jsonl")
                    self.assertEqual((found.returncode, found.stdout.count("\n")), (1, 1))
                    with contextlib.closing(sqlite3.connect(database)) as store:
                        self.assertEqual(store.execute("SELECT count(*) FROM sessions").fetchone(), (1,))


if __name__ == "__main__":
    unittest.main()
