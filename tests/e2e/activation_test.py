#!/usr/bin/env python3
"""A socket that a service manager holds: no report is lost while the monitor restarts."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 90
# As systemd does: the descriptor is number 3, and the variables name the process itself.
LAUNCH = 'LISTEN_PID=$$ LISTEN_FDS="$1" exec "$2" serve --db "$3" --bind "$4" --port "$5" --config ""'


class ActivationTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.running = []
        self.addCleanup(lambda: [self.end(process, signal.SIGKILL) for process in self.running])

    def listening(self):
        made = socket.create_server(("127.0.0.1", 0), backlog=1_024)
        self.addCleanup(made.close)
        return made

    def launch(self, passed, bind="127.0.0.1", count=1):
        def pass_on():  # The only descriptors of the child besides the first three.
            os.dup2(passed.fileno(), 3)
            os.set_inheritable(3, True)

        environment = {k: v for k, v in os.environ.items() if not k.startswith(("WATCHDOG_", "LISTEN_"))}
        process = subprocess.Popen(["sh", "-c", LAUNCH, "sh", str(count), PROGRAM, self.folder / "w.db", bind, "1"],
                                   preexec_fn=pass_on, close_fds=False, text=True, env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.running.append(process)
        return process

    @staticmethod
    def end(process, how):
        if process.poll() is None:
            process.send_signal(how)
        process.communicate(timeout=PATIENCE_S)
        return process.returncode

    def test_reports_wait_while_the_monitor_restarts(self):
        passed = self.listening()
        port = passed.getsockname()[1]
        process = self.launch(passed)
        self.assertEqual(process.stdout.readline(), f"listening on http://127.0.0.1:{port}\n")
        stop, refused, accepted = threading.Event(), [], []

        def report(worker):
            count = 0
            while not stop.is_set():
                event = {"kind": "state_change", "type": f"{worker}-{count}", "event_id": f"e-{worker}-{count}"}
                request = urllib.request.Request(f"http://127.0.0.1:{port}/api/autonomous/sessions/s-{worker}/events",
                                                 json.dumps([event]).encode(), method="POST")
                try:
                    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                        accepted.append((worker, json.load(answer)["accepted"]))
                except OSError as fault:
                    refused.append(f"{worker}-{count}: {fault}")
                count += 1

        workers = [threading.Thread(target=report, args=(n,)) for n in range(3)]
        for worker in workers:
            worker.start()
        for _ in range(4):
            goal = len(accepted) + 30
            while len(accepted) < goal and not refused:
                stop.wait(0.01)
            self.assertEqual(self.end(process, signal.SIGTERM), 0)
            process = self.launch(passed)
            self.assertTrue(process.stdout.readline().startswith("listening on "))
        goal = len(accepted) + 30
        while len(accepted) < goal and not refused:
            stop.wait(0.01)
        stop.set()
        for worker in workers:
            worker.join()
        self.assertEqual(refused, [], f"of {len(accepted)} reports")
        self.assertEqual({count for _, count in accepted}, {1})
        for n in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/autonomous/sessions/s-{n}/events?limit=1000",
                                        timeout=PATIENCE_S) as answer:
                stored = [e for e in json.load(answer)["events"] if e["kind"] == "state_change"]
            self.assertEqual(len(stored), min(1_000, sum(1 for worker, _ in accepted if worker == n)))
            self.assertEqual([e["event_id"] for e in stored], [f"e-{e['type']}" for e in stored])

    def test_a_socket_of_another_address_is_refused(self):
        process = self.launch(self.listening(), bind="127.0.0.2")
        said = process.communicate(timeout=PATIENCE_S)[1]
        self.assertEqual((process.returncode, "monitor.bind" in said), (3, True), said)

    def test_other_sockets_are_refused(self):
        one, other = socket.socketpair()
        self.addCleanup(other.close)
        self.addCleanup(one.close)
        for passed, count, expected in ((one, 1, "does not listen"), (self.listening(), 2, "2 sockets")):
            process = self.launch(passed, count=count)
            said = process.communicate(timeout=PATIENCE_S)[1]
            self.assertEqual((process.returncode, expected in said), (3, True), said)


if __name__ == "__main__":
    unittest.main(verbosity=1)
