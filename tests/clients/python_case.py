"""What the tests of the Python client share: a real monitor, and reporters to it. The program is their first argument."""

import logging
import os
import pathlib
import sys
import threading
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CLIENT = ROOT / "clients" / "python"
sys.path[:0] = [str(CLIENT), str(HERE.parent / "e2e")]

from server import Server  # noqa: E402
from watchdog_client import Monitor, Reporter  # noqa: E402

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
logging.disable(logging.CRITICAL)
for name in [name for name in os.environ if name.startswith("WATCHDOG_")]:
    del os.environ[name]


class WithMonitor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(PROGRAM))
        cls.url = f"http://{cls.server.host}"
        cls.monitor = Monitor(cls.url, cls.server.secret)

    def setUp(self):
        self.session = self.id().rpartition(".")[2]

    def reporter(self, **how):
        reporter = Reporter(how.pop("session", self.session), server=self.url, **how)
        self.addCleanup(reporter.close, 0)
        return reporter

    def told(self, kind=""):
        return list(self.monitor.events(self.session, kind))

    def begin(self, act):
        thread = threading.Thread(target=act)
        thread.start()
        self.addCleanup(thread.join)
