#!/usr/bin/env python3
"""`watchdog-monitor predict`: a model of a monitor's own sessions, where it is shown, and that nothing else uses it.

Usage: predict_test.py MONITOR
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from server import Server
from specification import Specification

PROGRAM = os.path.abspath(sys.argv.pop(1))
ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "tests/data/predict/examples.jsonl"
SEED = 23


def run(*words):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WATCHDOG_")}
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120,
                          env=environment | {"WATCHDOG_CONFIG": ""})


def request(server, method, path, body=None):
    connection = http.client.HTTPConnection(server.host, timeout=60)
    try:
        connection.request(method, path, body, {"Authorization": f"Bearer {server.secret}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return json.loads(text)
    finally:
        connection.close()


def calls(numbers, fails):
    """The events of some calls. A failing agent calls the same program again and again."""
    for number in numbers:
        word = "again" if fails else f"step{number} part{number * 7}"
        yield {"kind": "tool_call", "name": "shell", "call_id": f"c{number}", "args": {"command": f"make {word}"}}
        yield {"kind": "error" if fails else "tool_result", "name": "shell", "call_id": f"c{number}",
               "text": f"the result of {word} says what was found there"}


def report(server, session, events):
    body = "".join(json.dumps(event) + "\n" for event in events)
    return request(server, "POST", f"/api/autonomous/sessions/{session}/events", body)


def make(server, session, agent):
    request(server, "POST", "/api/autonomous/sessions", json.dumps({"sessionId": session, "agent": agent}))


def whole(server, session, agent, length, fails, ends_well):
    make(server, session, agent)
    end = {"kind": "end", "outcome": "completed" if ends_well else "failed"}
    report(server, session, [*calls(range(length), fails), end])


def fill(server):
    """Of `worker` those that repeat themselves seldom finish. Of `coin` chance decides. `rare` has few sessions."""
    draw = random.Random(SEED)
    print("seed", SEED)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = []
        for agent, count in (("worker", 240), ("coin", 120), ("rare", 20)):
            for number in range(count):
                fails = number % 2 == 0
                well = draw.random() < (0.5 if agent == "coin" else 0.1 if fails else 0.9)
                done.append(pool.submit(whole, server, f"{agent}-{number}", agent, draw.randint(8, 14), fails, well))
        for one in done:
            one.result()


class OwnSessions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(PROGRAM)
        cls.server.__enter__()
        fill(cls.server)
        cls.database = os.path.join(cls.server.folder.name, "w.db")
        cls.said = run("predict", "train", "--db", cls.database, "--json")
        cls.model = pathlib.Path(cls.database + "-prediction.json").read_bytes()
        cls.again = run("predict", "train", "--db", cls.database)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def progress(self, session):
        return request(self.server, "GET", f"/api/autonomous/progress/{session}")

    def test_training_says_what_is_shown_and_why_the_rest_is_hidden(self):
        self.assertEqual(self.said.returncode, 0, self.said.stderr)
        trained = json.loads(self.said.stdout)
        self.assertEqual((trained["sessions"], trained["dropped"]), (380, 0))
        self.assertEqual(trained["model"], self.database + "-prediction.json")
        worth = {agent["agent"]: {stage["calls"]: stage["worth"] for stage in agent["stages"]}
                 for agent in trained["agents"]}
        self.assertEqual(worth["worker"][8], "shown")
        self.assertEqual(worth["coin"][8], "at_chance")
        self.assertEqual(worth["rare"][8], "few_sessions")
        model = json.loads(pathlib.Path(trained["model"]).read_text())
        self.assertEqual((model["version"], model["trained_on"]), (2, trained["trainedOn"]))
        self.assertEqual(os.stat(trained["model"]).st_mode & 0o777, 0o600)
        # The same sessions gave the same file.
        self.assertEqual(self.again.returncode, 0, self.again.stderr)
        self.assertEqual(pathlib.Path(trained["model"]).read_bytes(), self.model)

    def test_evaluation_measures_on_other_tasks_and_gives_the_reasons(self):
        said = run("predict", "evaluate", "--db", self.database)
        self.assertEqual(said.returncode, 0, said.stderr)
        for words in ("AUROC", "ECE", "Reliability, 8 calls", "IN AGENT", "will it finish: shown (24",
                      "does not beat the agent's own base rate", "20 sessions got that far; 50 are needed"):
            self.assertIn(words, said.stdout)
        found = json.loads(run("predict", "evaluate", "--db", self.database, "--json").stdout)
        stage = next(stage for stage in found["stages"] if stage["calls"] == 8)
        self.assertEqual(stage["runs"], found["sessions"])
        for name in ("auroc", "auprc", "brier", "ece", "withinAgent"):
            self.assertLessEqual(stage[name]["low"], stage[name]["value"])
            self.assertLessEqual(stage[name]["value"], stage[name]["high"])
        self.assertGreater(stage["auroc"]["value"], 0.7)
        self.assertGreater(stage["shown"]["runs"], 0)
        self.assertLess(stage["shown"]["brier"], stage["shown"]["brierBaseRate"])
        self.assertEqual(sum(line["runs"] for line in stage["reliability"]), found["sessions"])
        self.assertEqual(stage["agents"][0]["agent"], "worker")

    def test_a_running_session_has_an_estimate_where_it_is_worth_something(self):
        specification = Specification(ROOT / "schemas")
        for session, agent, length, fails in (("one", "worker", 9, True), ("two", "worker", 9, False),
                                              ("three", "coin", 9, True), ("four", "rare", 9, True),
                                              ("five", "worker", 3, True)):
            make(self.server, session, agent)
            report(self.server, session, calls(range(length), fails))
        shares = {}
        listed = {row["sessionId"]: row["estimate"] for row in request(self.server, "GET", "/api/autonomous/progress?limit=100")["sessions"]}
        for session in ("one", "two"):
            document = self.progress(session)
            self.assertEqual(listed[session], document["estimate"], "a list has it, too")
            called = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "agents", "arguments": {"search": session}}}
            agents = request(self.server, "POST", "/mcp", json.dumps(called))["result"]["structuredContent"]["agents"]
            self.assertEqual({one["sessionId"]: one["estimate"] for one in agents}[session],
                             "; ".join(document["estimate"][part]["text"] for part in ("unfinished", "callsLeft")))
            self.assertEqual(specification.faults_of(document, specification.file("progress.schema.json")), [])
            estimate = document["estimate"]
            self.assertRegex(estimate["unfinished"]["text"],
                             r"^\d of 10 sessions that looked like this did not finish \(\d+ seen\)$")
            self.assertGreaterEqual(estimate["unfinished"]["seen"], 50)
            self.assertEqual(estimate["calls"], 9)
            shares[session] = estimate["unfinished"]["share"]
            self.assertIn(estimate["unfinished"]["text"], run("status", session, "--server", f"http://{self.server.host}").stdout)
            self.assertIn(estimate["unfinished"]["text"], run("status", session, "--db", self.database).stdout)
            self.assertRegex(estimate["callsLeft"]["text"], r"^4 of 5 such sessions needed \d( to \d)? more calls \(\d+ seen\)$")
        self.assertGreater(shares["one"], 0.7)
        self.assertLess(shares["two"], 0.3)
        self.assertIsNone(self.progress("three")["estimate"] and self.progress("three")["estimate"]["unfinished"])
        for session in ("four", "five"):
            self.assertIsNone(self.progress(session)["estimate"], session)
        # More calls: it follows, and is gone with the end.
        report(self.server, "two", calls(range(9, 13), False))
        self.assertEqual(self.progress("two")["estimate"]["calls"], 13)
        report(self.server, "two", [{"kind": "end", "outcome": "completed"}])
        self.assertIsNone(self.progress("two")["estimate"])

    def test_explain_names_what_counts(self):
        said = run("predict", "explain", "worker-0", "--db", self.database)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn("sessions that looked like this did not finish", said.stdout)
        found = json.loads(run("predict", "explain", "worker-0", "--db", self.database, "--json").stdout)
        self.assertEqual(found["comparedAfter"], 12 if found["calls"] >= 12 else 8)
        self.assertTrue(0 < len(found["contributions"]) <= 3)
        for sentence in found["contributions"]:
            self.assertRegex(sentence, r"^The value of .* likely that the session finishes\.$")
        coins = (json.loads(run("predict", "explain", f"coin-{number}", "--db", self.database, "--json").stdout)
                 for number in range(20))
        hidden = next(coin for coin in coins if coin["comparedAfter"] == 8)
        self.assertIsNone(hidden["unfinished"])
        self.assertIn("base rate", hidden["why"])
        self.assertEqual(run("predict", "explain", "--last", "--db", self.database).returncode, 0)
        self.assertEqual(run("predict", "explain", "nobody", "--db", self.database).returncode, 5)

    def test_healths_and_alerts_are_the_same_with_and_without_a_model(self):
        def life(server, with_model):
            make(server, "looping", "worker")
            for begin in range(0, 12, 4):
                report(server, "looping", calls(range(begin, begin + 4), True))
                document = request(server, "GET", "/api/autonomous/progress/looping")
                self.assertEqual(document["estimate"] is not None and begin < 8, with_model and begin < 8)
            changes = request(server, "GET", "/api/autonomous/sessions/looping/transitions")["transitions"]
            document.pop("estimate")
            told = [alert for alert in request(server, "GET", "/api/alerts")["alerts"] if alert["sessionId"] == "looping"]
            return ([[change[name] for name in ("from", "health", "pattern", "reason")] for change in changes],
                    [[alert[name] for name in ("kind", "health", "reason")] for alert in told],
                    [document[name] for name in ("health", "state", "attention", "stuckBy", "reason", "stuck")])

        with Server(PROGRAM) as other:
            without = life(other, False)
        self.assertEqual(life(self.server, True), without)
        self.assertIn("looping", [change[1] for change in without[0]])

    def test_a_damaged_model_counts_as_none(self):
        with Server(PROGRAM) as server:
            file = pathlib.Path(server.folder.name, "w.db-prediction.json")
            make(server, "x", "worker")
            report(server, "x", calls(range(9), True))
            for text in ("", "{", json.dumps({"version": 1})):
                file.write_text(text)
                self.assertIsNone(request(server, "GET", "/api/autonomous/progress/x")["estimate"])
                self.assertEqual(run("predict", "explain", "x", "--db", server.folder.name + "/w.db").returncode, 3)
            # A monitor that runs reads a new file by itself: it looks every 100 ms.
            shutil.copy(self.database + "-prediction.json", file)
            time.sleep(0.2)
            self.assertIsNotNone(request(server, "GET", "/api/autonomous/progress/x")["estimate"])
            file.unlink()
            time.sleep(0.2)
            self.assertIsNone(request(server, "GET", "/api/autonomous/progress/x")["estimate"])


class Recorded(unittest.TestCase):
    """Without own sessions: recorded runs as examples."""

    def test_recorded_runs_are_measured_as_documented(self):
        found = json.loads(run("predict", "evaluate", "--no-prior", "--examples", EXAMPLES, "--json").stdout)
        twelve = next(stage for stage in found["stages"] if stage["calls"] == 12)
        self.assertAlmostEqual(twelve["auroc"]["value"], 0.723, delta=0.005)
        self.assertAlmostEqual(twelve["withinAgent"]["value"], 0.563, delta=0.005)

    def test_names_missing_and_wrong_files(self):
        with tempfile.TemporaryDirectory() as folder:
            database = folder + "/w.db"
            self.assertEqual(run("predict", "train", "--db", database).returncode, 5)
            replayed = run("replay", "--db", database, ROOT / "tests/data/replay/openhands.json")
            self.assertEqual(replayed.returncode, 0, replayed.stderr)
            for action in ("train", "evaluate"):
                said = run("predict", action, "--db", database)
                self.assertEqual((said.returncode, said.stdout), (1, ""))
                self.assertIn("1 ended sessions are too few", said.stderr)
            said = run("predict", "explain", "openhands", "--db", database)
            self.assertEqual(said.returncode, 5)
            self.assertIn("predict train", said.stderr)
            bad = pathlib.Path(folder, "bad.jsonl")
            bad.write_text('{"end":"lost"}\n')
            said = run("predict", "evaluate", "--examples", bad)
            self.assertEqual(said.returncode, 3)
            self.assertIn("line 1", said.stderr)
        for words in (["predict"], ["predict", "explain"], ["predict", "train", "x"], ["predict", "guess"],
                      ["predict", "explain", "x", "--examples", "y"]):
            self.assertEqual(run(*words).returncode, 2, words)


if __name__ == "__main__":
    unittest.main()
