#!/usr/bin/env python3
"""The owner's program that looks at a model server when it hangs: once for each hang, bounded, and for the sessions that wait for it."""

import contextlib
import http.client
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest

from server import Server

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 120
SESSIONS = "/api/autonomous/sessions"
SECRET = "gh" + "p_0123456789abcdefghijABCDEFGHIJ012345"
# A model server that keeps requests until a line comes on its standard input. Then each gets an answer, piece by piece.
MODEL = r"""
import socket, sys, threading, time
server = socket.create_server(("127.0.0.1", 0), backlog=64)
print(server.getsockname()[1], flush=True)
kept, go = [], threading.Condition()
def answer(connection):
    with go:
        kept.append(connection)
        print("asked", flush=True)
        go.wait()
    send = lambda text: connection.sendall(f"{len(text):x}\r\n{text}\r\n".encode())
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
    for number in range(20):
        send('data: {"choices": [{"index": 0, "delta": {"content": "word"}}]}\n\n')
        time.sleep(0.1)
    send("data: [DONE]\n\n")
    connection.sendall(b"0\r\n\r\n")
    connection.close()
def serve(connection):
    if connection.recv(65536).startswith(b"POST"):
        return answer(connection)
    connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    connection.close()
def listen():
    while True:
        threading.Thread(target=serve, args=[server.accept()[0]], daemon=True).start()
threading.Thread(target=listen, daemon=True).start()
for line in sys.stdin:
    with go:
        go.notify_all()
"""


class Diagnose(unittest.TestCase):
    def start(self, script, **more):
        """A monitor in front of a model, and a program that is a script of a shell. It notes each of its starts."""
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.model = subprocess.Popen([sys.executable, "-c", MODEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.leave)
        self.started = self.folder / "started"
        program = self.folder / "look"
        program.write_text(f"#!/bin/sh\necho $$ >> {self.started}\n{script}\n")
        program.chmod(0o700)
        (self.folder / "watchdog.toml").write_text(
            f'[proxy]\nupstream = "http://127.0.0.1:{self.model.stdout.readline().strip()}"\nport = 0\n'
            f'[recovery]\ndiagnose = ["{program}", "--pid={{pid}}", "and", "{{pid}}"]\n')
        times = {"WATCHDOG_INTERNAL_TIMES": "proxy.look_every_ms=100"}
        self.server = self.enterContext(Server(PROGRAM, times | more, ["--config", self.folder / "watchdog.toml"]))
        for line in self.server.process.stdout:
            if line.startswith("agents reach"):
                self.proxy = line.split("http://")[1].split("/")[0]
                break

    def leave(self):
        self.model.kill()
        self.model.wait()
        self.model.stdin.close()
        self.model.stdout.close()

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        connection.request(method, path, None if body is None else json.dumps(body), {"Authorization": f"Bearer {self.server.secret}"})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        self.assertLess(answer.status, 300, content)
        return json.loads(content) if content.startswith(b"{") else content

    def until(self, check, why):
        end = time.monotonic() + PATIENCE_S
        while not (found := check()):
            self.server.log.flush()
            self.assertLess(time.monotonic(), end, why)
            time.sleep(0.05)
        return found

    def request(self, session):
        """A model request of the session, which the model has got."""
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": f"work of {session}"}]}

        def wait():
            with contextlib.suppress(OSError, http.client.HTTPException), \
                    contextlib.closing(http.client.HTTPConnection(self.proxy, timeout=PATIENCE_S)) as connection:
                connection.request("POST", f"/s/{session}/v1/chat/completions", json.dumps(body))
                connection.getresponse().read()
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        if self.model_runs:
            self.model.stdout.readline()
        return thread

    model_runs = True

    def hang(self):
        time.sleep(0.3)
        self.model.send_signal(signal.SIGSTOP)
        self.model_runs = False

    def go_on(self):
        self.model.send_signal(signal.SIGCONT)
        self.model.stdin.write("go\n")
        self.model.stdin.flush()
        self.model_runs = True

    def is_known(self, session):
        return any(one["sessionId"] == session for one in self.ask("GET", SESSIONS)["sessions"])

    def look(self, session):
        """What the bundle of the session has of its model server; empty: nothing."""
        with tarfile.open(fileobj=io.BytesIO(self.ask("GET", f"{SESSIONS}/{session}/bundle"))) as tar:
            files = {pathlib.Path(one.name).name: tar.extractfile(one).read().decode() for one in tar.getmembers()}
        self.assertEqual("server.txt" in files, "`server.txt`" in files["README.md"])
        return files.get("server.txt", "")

    def runs(self):
        return self.started.read_text().split() if self.started.exists() else []

    def acts(self, session):
        return [(act["actor"], act["action"], act["result"], act["proof"]) for act in self.ask("GET", f"/api/audit?sessionId={session}")["audit"]]

    def test_each_session_that_waits_has_what_one_run_printed(self):
        self.start(f'echo "arguments: $*"; echo "key: {SECRET}"; env', WATCHDOG_API_KEY="not-for-programs")
        # Nobody makes a program run by a report, and nobody gets its output by one.
        self.ask("POST", f"{SESSIONS}/liar/events", [{"kind": "evidence", "state": "hung", "call_id": f"request-{number}"} for number in range(4)])
        self.ask("POST", f"{SESSIONS}/calm/events", {"kind": "message", "text": "hello"})
        time.sleep(3)
        self.assertEqual(self.runs(), [])
        self.request("one")
        self.request("two")
        self.hang()
        said = self.until(lambda: self.look("one"), "no look is kept")
        self.assertEqual(self.until(lambda: self.look("two"), "the second session has none"), said)
        self.assertRegex(said, r"\AThe model server http://127\.0\.0\.1:\d+ hung, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\nprocess "
                               rf"{self.model.pid} \(python3[^)]*\)\ncommand \S+/look --pid={self.model.pid} and {self.model.pid}\nThe command ended with 0\.")
        self.assertIn(f"\narguments: --pid={self.model.pid} and {self.model.pid}\n", said)
        self.assertIn("\nkey: [redacted]\n", said)
        for word in (SECRET, "not-for-programs", "WATCHDOG_API_KEY"):
            self.assertNotIn(word, said)
        self.assertEqual((self.look("liar"), self.look("calm")), ("", ""))
        # One of them may have shown its hang a moment after the run.
        acts = self.until(lambda: [(session, *act) for session in ("one", "two") for act in self.acts(session)], "no act is in the trail")
        self.assertEqual(len(acts), len({session for session, *_ in acts}))
        for session, actor, action, result, proof in acts:
            self.assertEqual((actor, action, result), ("recovery.diagnose", "command", "its command ended with 0"))
            self.assertRegex(proof["text"], r"^stuck \(F5\), event \d+$")
            event = self.ask("GET", f"{SESSIONS}/{session}/events?limit=1&after={proof['events'][0] - 1}")["events"][0]
            self.assertEqual((event["kind"], event["state"]), ("evidence", "hung"))
        # Nothing has moved: a request that comes now gets what is known.
        self.request("three")
        self.until(lambda: self.is_known("three"), "the third session is not known")
        self.assertEqual(self.until(lambda: self.look("three"), "the third session has none"), said)
        self.assertEqual(len(self.runs()), 1)
        self.assertEqual(self.acts("three"), [])
        looks = pathlib.Path(self.server.folder.name, "w.db-looks")
        kept = lambda: sorted(path.name.split("~")[0] for path in looks.glob("*.server"))
        self.assertEqual(kept(), ["one", "three", "two"])
        self.ask("POST", f"{SESSIONS}/one/forget", {"force": True})
        self.assertEqual(kept(), ["three", "two"])

    def test_a_program_that_does_not_end_is_ended_and_runs_again_for_the_next_hang(self):
        self.start("sleep 1000 & echo $! >> $0.child; echo begun; while :; do sleep 1; done")
        first = self.request("one")
        self.hang()
        self.until(self.runs, "it does not run")
        said = self.until(lambda: self.look("one"), "no look is kept")
        self.assertIn("The command was ended after 30 s. It printed:\n\nbegun\n", said)
        for pid in [*self.runs(), (self.folder / "look.child").read_text().strip()]:
            self.assertFalse(os.path.exists(f"/proc/{pid}"), pid)
        self.go_on()
        first.join()
        self.request("one")
        self.hang()
        self.until(lambda: len(self.runs()) == 2, "it does not run again after the server moved")

    def test_a_flood_is_cut_and_a_pause_holds(self):
        self.start("echo first; seq -f 'line %.0f' 300000; echo last")
        command = ["--server", f"http://{self.server.host}", "--token-file", f"{self.server.folder.name}/w.db-token"]
        subprocess.run([PROGRAM, "recovery", "pause", *command], check=True, capture_output=True)
        self.request("one")
        self.hang()
        state = lambda: self.ask("GET", "/api/autonomous/progress/one")["server"]
        self.until(lambda: (state() or {}).get("state") == "hung", "the hang is not seen")
        time.sleep(3)
        self.assertEqual(self.runs(), [])
        subprocess.run([PROGRAM, "recovery", "resume", *command], check=True, capture_output=True)
        said = self.until(lambda: self.look("one"), "no look is kept")
        self.assertLess(len(said), 256 * 1024)
        printed = said.split("It printed:\n\n")[1].splitlines()
        [cut] = [at for at, line in enumerate(printed) if line.endswith("bytes are left out")]
        self.assertEqual((printed[0], printed[-1]), ("first", "last"))
        for line in printed[1:cut] + printed[cut + 1:-1]:
            self.assertRegex(line, r"^line \d+$")

    def test_a_program_that_is_missing_is_said(self):
        self.start("true")
        (self.folder / "look").unlink()
        self.request("one")
        self.hang()
        said = self.until(lambda: self.look("one"), "no look is kept")
        self.assertRegex(said, r"\nThe command did not start: .*\n?.*It printed:\n\nnothing\n")
        [(_, action, result, _)] = self.until(lambda: self.acts("one"), "no act is in the trail")
        self.assertEqual(action, "command")
        self.assertRegex(result, "^its command did not start: ")


if __name__ == "__main__":
    unittest.main()
