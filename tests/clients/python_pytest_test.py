#!/usr/bin/python3
"""The plug-in for pytest: its own monitor, the processes of a test, and what it says when it is ended from outside."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from python_case import CLIENT, PATIENCE_S, PROGRAM

AGENT = "import sys\nfrom watchdog_client import Reporter\nwith Reporter() as r: r.state_change('x')\n"
HAS_XDIST = subprocess.run([sys.executable, "-c", "import xdist"], capture_output=True).returncode == 0


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Pytest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CLIENT), "WATCHDOG_PROGRAM": PROGRAM, "TMPDIR": str(self.folder)}
        self.write("conftest.py", 'pytest_plugins = ["pytest_watchdog"]\n')
        self.write("agent.py", AGENT)

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def start(self, *words):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
        process = subprocess.Popen(command, cwd=self.folder, env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a shell ignores it for what runs in its background
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_tests(self, *words):
        return self.start(*words).communicate()[0]

    def assert_gone(self, pids):
        until = time.monotonic() + PATIENCE_S
        while any(is_alive(pid) for pid in pids) and time.monotonic() < until:
            time.sleep(0.01)
        self.assertEqual([pid for pid in pids if is_alive(pid)], [])

    def servers(self):
        """The monitors of this test, which have their databases in its folder."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(self.folder).encode() in path.read_bytes() and b"serve" in path.read_bytes():
                    found.append(path.parent.name)
            except OSError:
                pass
        return found

    def test_it_starts_a_monitor_of_its_own_for_all_tests_and_ends_it(self):
        self.write("test_it.py", """
import asyncio, os, subprocess, sys
from watchdog_client import Reporter
servers = set()

def test_started(watchdog):
    watchdog.start([sys.executable, "agent.py"])
    assert watchdog.wait()["outcome"]["kind"] == "completed"
    servers.add(watchdog.monitor.server)

def test_environment(watchdog):
    subprocess.run([sys.executable, "agent.py"], check=True)
    with Reporter() as reporter:
        assert reporter.session == watchdog.session
    assert [event["kind"] for event in watchdog.events("state_change")] == ["state_change"]
    servers.add(watchdog.monitor.server)

def test_cancel_and_asyncio(watchdog):
    async def main():
        with watchdog.reporter() as reporter:
            await reporter.aflush()
            watchdog.monitor.cancel(watchdog.session)
            reporter.state_change("heard")
            await reporter.aflush()
        return await watchdog.wait_async("cancelled")
    assert asyncio.run(main())["lifecycle"] == "cancelled"

def test_one_server():
    assert len(servers) == 1 and "WATCHDOG_SESSION" not in os.environ
""")
        said = self.run_tests()
        self.assertIn("4 passed", said)
        self.assertEqual(self.servers(), [])
        if HAS_XDIST:
            self.assertIn("3 passed", self.run_tests("-n", "2", "-k", "not one_server"))
            self.assertEqual(self.servers(), [])

    def test_without_a_monitor_one_test_fails_and_the_others_are_skipped(self):
        self.write("test_it.py", "def test_a(watchdog): pass\ndef test_b(watchdog): pass\ndef test_c(watchdog): pass\n")
        self.environment["WATCHDOG_PROGRAM"] = "/nowhere/watchdog-monitor"
        probe = subprocess.run([sys.executable, "-c", "from watchdog_client import Monitor; Monitor().progress('x')"], env=self.environment, capture_output=True, text=True)
        if "refused" not in probe.stderr.lower():
            self.skipTest("there is a server at port 3000")
        said = self.run_tests()
        self.assertIn("2 skipped, 1 error", said)
        self.assertEqual(said.count("the program watchdog-monitor is missing"), 1, said)
        self.assertIn("3 skipped", self.run_tests("--watchdog-missing", "skip"))

    def test_the_end_of_a_test_ends_all_its_processes_and_asks_them_first(self):
        self.write("grandchild.py", """
import os, pathlib, signal, sys, time
def end(*_):
    pathlib.Path(sys.argv[1] + "-asked").touch()
    if sys.argv[2] == "ends": sys.exit(1)
signal.signal(signal.SIGTERM, end)
pathlib.Path(sys.argv[1] + "-made").write_text(str(os.getpid()))
while True: time.sleep(0.01)
""")
        self.write("test_it.py", f"""
import pathlib, sys, time
import pytest
from watchdog_client import pytest_plugin
pytest_plugin._END_S = 0.5

@pytest.mark.parametrize("how", ["ends", "stays"])
def test_it(watchdog, how):
    watchdog.start(["sh", "-c", f"{sys.executable} grandchild.py {{how}} {{how}} & {sys.executable} agent.py; wait"])
    while not pathlib.Path(f"{{how}}-made").exists() or not pathlib.Path(f"{{how}}-made").read_text():
        time.sleep(0.01)
    watchdog.wait()
""")
        self.assertIn("2 passed", self.run_tests())
        for how in ("ends", "stays"):
            self.assertTrue((self.folder / f"{how}-asked").exists())
        self.assert_gone([(self.folder / f"{how}-made").read_text() for how in ("ends", "stays")])

    def test_a_wait_without_reports_says_so_and_what_it_waited_for_when_a_signal_ends_it(self):
        self.write("test_it.py", """
import pathlib, subprocess, sys
from watchdog_client import pytest_plugin
pytest_plugin._NOTICE_S = 0.1

def test_it(watchdog):
    pathlib.Path("pid").write_text(str(watchdog.start(["sleep", "1000"]).pid))
    watchdog.wait()
""")
        for words in ([], ["-n", "1"])[:1 + HAS_XDIST]:
            for ends in (signal.SIGTERM, signal.SIGINT):
                with self.subTest(words=words, ends=ends):
                    process, said = self.start(*words), []
                    for line in process.stdout:
                        said.append(line)
                        if "still waiting for completed of test_it-" in line and "WATCHDOG_SESSION" in line:
                            os.killpg(process.pid, ends)
                    text = "".join(said)
                    self.assertRegex(text, rf"session test_it-\w+: this process was asked to end \({ends.name}\)\n  expected  completed\n", text)
                    process.wait()
                    self.assert_gone([(self.folder / "pid").read_text(), *self.servers()])


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=1)
