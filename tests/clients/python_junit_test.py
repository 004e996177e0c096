#!/usr/bin/python3
"""A failed wait in pytest names its proof in the JUnit report as well, with a text that is XML whatever the agent reports."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as tree

from python_case import CLIENT, PATIENCE_S, PROGRAM

TESTS = '''
import sys
AGENT = """
from watchdog_client import Reporter
with Reporter(agent="looper") as watchdog:
    while not watchdog.cancelled:
        with watchdog.tool("search", {"query": "<again> & ]]> \\\\x00"}) as call:
            call.result = "nothing \\\\x1b[31m"
"""

def test_loops(watchdog):
    watchdog.start([sys.executable, "-c", AGENT])
    watchdog.wait()

def test_finishes(watchdog):
    watchdog.start([sys.executable, "-c", "from watchdog_client import Reporter\\nReporter().completed()"])
    watchdog.wait()
'''


class Junit(unittest.TestCase):
    def test_a_report_names_the_proof(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "conftest.py").write_text('pytest_plugins = ["pytest_watchdog"]\n')
            (folder / "test_it.py").write_text(TESTS)
            environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CLIENT), "WATCHDOG_PROGRAM": PROGRAM, "TMPDIR": name}
            done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=report.xml"], cwd=folder, env=environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=10 * PATIENCE_S, check=False)
            self.assertEqual(done.returncode, 1, done.stdout)
            cases = {case.get("name"): case.find("failure") for case in tree.parse(folder / "report.xml").iter("testcase")}
        self.assertIsNone(cases["test_finishes"])
        for text in (cases["test_loops"].get("message"), cases["test_loops"].text):
            self.assertRegex(text, r"session test_loops-\w+: it has been looping for \d+ further iterations \(limit 3\)")
            self.assertRegex(text, r"running, looping \(Calls search \d+ times in a row, with the same arguments and the same result\)")
            self.assertTrue(re.search(r"timeline +\d+ entries", text) and "tool_call search" in text, text)


if __name__ == "__main__":
    unittest.main()
