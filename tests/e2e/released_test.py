#!/usr/bin/env python3
"""What an earlier released program left behind: this program reads it and goes on with it.

Usage: released_test.py MONITOR
       released_test.py --record MONITOR FOLDER    with the released program: makes tests/data/released/VERSION
"""

import gzip
import http.client
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from server import Server

RELEASED = pathlib.Path(__file__).resolve().parent.parent / "data" / "released"
API = "/api/autonomous"
# Each session has what it reported.
SESSIONS = {
    "finished": [{"kind": "tool_call", "name": "shell", "call_id": "c1", "content": "make"},
                 {"kind": "tool_result", "name": "shell", "call_id": "c1", "content": "ok"},
                 {"kind": "budget", "axes": {"tokens": {"used": 1200, "limit": 5000}}},
                 {"kind": "state_change", "type": "step"}, {"kind": "end", "outcome": "completed"}],
    "failed": [{"kind": "message", "name": "assistant", "content": "I will look at it."},
               {"kind": "error", "content": "no such file"}, {"kind": "end", "outcome": "failed", "reason": "task_failed", "error": "no such file"}],
    "waiting": [{"kind": "state_change", "type": "step"}, {"kind": "wait", "name": "user", "content": "May I?"}],
    "looping": [step for at in range(8) for step in (
        {"kind": "tool_call", "name": "read", "call_id": f"l{at}", "content": '{"path":"a"}'},
        {"kind": "tool_result", "name": "read", "call_id": f"l{at}", "content": "the same"})],
    "working": [{"kind": "heartbeat", "iteration": 1, "phase": "think"}, {"kind": "state_change", "type": "step"},
                {"kind": "tool_call", "name": "shell", "call_id": "w1", "content": "sleep"}],
}
ENDED = ("finished", "failed")
# Members whose values follow from the time of the question: after a day a failure needs nobody any more.
VARY = re.compile(r"now|attention|\w*Ago")


def ask(server, method, path, body=None):
    connection = http.client.HTTPConnection(server.host, timeout=60)
    connection.request(method, path, body, {"Authorization": f"Bearer {server.secret}", "Content-Type": "application/x-ndjson"})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    if response.status >= 300:
        raise AssertionError(f"{method} {path}: {response.status} {content[:500]}")
    return json.loads(content)


def questions():
    yield f"{API}/sessions?limit=100"
    for session in SESSIONS:
        yield f"{API}/progress/{session}"
        yield f"{API}/sessions/{session}/events?limit=100"


def record(program, folder):
    folder.mkdir(parents=True, exist_ok=True)
    with Server(program) as server:
        for session, reports in SESSIONS.items():
            ask(server, "POST", f"{API}/sessions/{session}/events", "\n".join(map(json.dumps, reports)))
        answers = {path: ask(server, "GET", path) for path in questions()}
        server.process.terminate()  # it stores its snapshots
        server.process.wait()
        database = pathlib.Path(server.folder.name, "w.db").read_bytes()
    (folder / "database.gz").write_bytes(gzip.compress(database, 9, mtime=0))
    (folder / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")
    (folder / "settings.toml").write_bytes(subprocess.run([program, "config", "--sample"], check=True, capture_output=True).stdout)


class Released(unittest.TestCase):
    def setUp(self):
        self.versions = sorted(path for path in RELEASED.iterdir() if path.is_dir())
        self.assertTrue(self.versions)

    def serve(self, folder):
        server = Server(PROGRAM)
        server.folder = tempfile.TemporaryDirectory()
        server.log = open(pathlib.Path(server.folder.name, "log"), "w+", encoding="utf-8")
        database = pathlib.Path(server.folder.name, "w.db")
        database.write_bytes(gzip.decompress((folder / "database.gz").read_bytes()))
        database.chmod(0o600)
        self.addCleanup(server.__exit__)
        return server.start()

    def compare(self, was, now, values, place):
        """Each member is still there, with the same type, and with the same value where `values` says so."""
        if isinstance(was, dict):
            self.assertIsInstance(now, dict, place)
            for name, value in was.items():
                self.assertIn(name, now, place)
                self.compare(value, now[name], values and not VARY.fullmatch(name), f"{place}.{name}")
        elif isinstance(was, list):
            self.assertIsInstance(now, list, place)
            if values:
                self.assertEqual(len(was), len(now), place)
                for at, (one, other) in enumerate(zip(was, now)):
                    self.compare(one, other, True, f"{place}[{at}]")
        elif values:
            self.assertEqual(was, now, place)
        elif was is not None and now is not None:
            number = (int, float)
            self.assertTrue(type(was) is type(now) or isinstance(was, number) and isinstance(now, number), f"{place}: {was} {now}")

    def test_answers_have_what_they_had(self):
        for folder in self.versions:
            server = self.serve(folder)
            for path, was in json.loads((folder / "answers.json").read_text()).items():
                now = ask(server, "GET", path)
                ended = any(f"/{session}" in path for session in ENDED)
                if "/events" in path:  # the monitor may add what it saw meanwhile
                    now["events"] = now["events"][:len(was["events"])]
                    ended = True
                with self.subTest(version=folder.name, path=path):
                    self.compare(was, now, ended, "")

    def test_a_session_goes_on(self):
        for folder in self.versions:
            server = self.serve(folder)
            answers = json.loads((folder / "answers.json").read_text())
            for session in ("working", "looping", "waiting"):
                path = f"{API}/progress/{session}"
                before = answers[path]
                ask(server, "POST", f"{API}/sessions/{session}/events", '{"kind":"state_change","type":"step"}')
                after = ask(server, "GET", path)
                self.assertEqual(after["progress"]["stateChanges"], before["progress"]["stateChanges"] + 1, session)
                self.assertEqual(after["progress"]["heartbeats"], before["progress"]["heartbeats"], session)
                self.assertGreater(after["lastSeq"], before["lastSeq"], session)

    def test_settings_are_still_accepted(self):
        for folder in self.versions:
            done = subprocess.run([PROGRAM, "config", "--check", "--config", folder / "settings.toml"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            # The sample explains each setting in a comment. Here each is set.
            text = "\n".join(line[1:] if line.startswith("#") and " = " in line and line[1:2].isalpha() and "…" not in line else line
                             for line in (folder / "settings.toml").read_text().splitlines())
            with tempfile.TemporaryDirectory() as place:
                file = pathlib.Path(place, "all.toml")
                file.write_text(text)
                done = subprocess.run([PROGRAM, "config", "--check", "--config", file], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if sys.argv[1] == "--record":
    record(sys.argv[2], pathlib.Path(sys.argv[3]))
else:
    PROGRAM = sys.argv.pop(1)
    unittest.main()
