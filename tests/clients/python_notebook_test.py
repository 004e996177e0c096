#!/usr/bin/python3
"""The Python client in cells of a notebook: a kernel of Jupyter, whose event loop runs beside the cells."""

import os
import subprocess
import tempfile
import unittest

from jupyter_client.manager import KernelManager

from python_case import CLIENT, PATIENCE_S, WithMonitor


class Notebook(WithMonitor):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        manager = KernelManager(connection_file=f"{folder}/kernel.json")
        manager.start_kernel(cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env={**os.environ, "HOME": folder, "PYTHONPATH": str(CLIENT), "WATCHDOG_SERVER": cls.url})
        cls.addClassCleanup(manager.shutdown_kernel, now=True)
        cls.kernel, cls.client = manager, manager.client()
        cls.client.start_channels()
        cls.addClassCleanup(cls.client.stop_channels)
        cls.client.wait_for_ready(timeout=PATIENCE_S)

    def run_cell(self, text, meanwhile=None):
        """What a cell prints, and the name of its error."""
        printed = []

        def take(message):
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])
                if meanwhile and "begun" in printed[-1]:
                    meanwhile()
        reply = self.client.execute_interactive(f"from watchdog_client import Reporter, wait_async, wrap\n{text}", timeout=PATIENCE_S, output_hook=take, store_history=True)
        return "".join(printed), reply["content"].get("ename")

    def outcome(self):
        ended = self.monitor.progress(self.session)["outcome"]
        return ended and (ended["kind"], ended["reason"])

    def test_a_cell_ends_its_session_and_calls_of_its_functions_are_reported(self):
        printed, error = self.run_cell(f"""
@wrap
async def look_up(word):
    return word.upper()
async with Reporter("{self.session}") as reporter:
    print(await look_up("a"))
print((await wait_async("{self.session}"))["lifecycle"])""")
        self.assertEqual((printed, error), ("A\ncompleted\n", None))
        self.assertEqual([event["kind"] for event in self.told()], ["start", "tool_call", "tool_result", "end"])

    def test_a_cell_that_fails_ends_its_session_as_failed(self):
        self.assertEqual(self.run_cell(f'with Reporter("{self.session}"):\n    1 / 0')[1], "ZeroDivisionError")
        self.assertEqual(self.outcome(), ("failed", "error"))

    def test_a_cancel_ends_the_cell_and_the_kernel_goes_on(self):
        cell = f'import asyncio\nasync with Reporter("{self.session}") as reporter:\n    await reporter.aflush()\n    print("begun")\n    await asyncio.sleep(600)'
        self.assertEqual(self.run_cell(cell, lambda: self.monitor.cancel(self.session, "enough", "ann"))[1], "CancelledError")
        self.assertEqual(self.outcome(), ("cancelled", "cancelled"))
        self.assertEqual(self.run_cell("print(6 * 7)"), ("42\n", None))

    def test_a_cell_that_is_interrupted_ends_its_session_as_cancelled(self):
        cell = f'import time\nwith Reporter("{self.session}") as reporter:\n    print("begun", flush=True)\n    time.sleep(600)'
        self.assertEqual(self.run_cell(cell, self.kernel.interrupt_kernel)[1], "KeyboardInterrupt")
        self.assertEqual(self.outcome(), ("cancelled", "interrupted"))

    def test_a_cell_that_runs_again_stops_the_reporter_that_it_replaces(self):
        """Each reporter beats ten times in a second, and one of them goes on. The error of a cell keeps the variables of its functions."""
        for number in range(3):
            cell = f'def work(reporter):\n    reporter.flush()\n    1 / 0\nreporter = Reporter("{self.session}-{number}", interval_s=0.1)\nwork(reporter)'
            self.assertEqual(self.run_cell(cell)[1], "ZeroDivisionError")
        printed, error = self.run_cell(f"""
import gc, threading, time
from watchdog_client import _senders
def alive():
    gc.collect()
    threads = [thread.name for thread in threading.enumerate()].count("watchdog")
    return threads, sorted(one.session[-1] for sender in list(_senders.values()) for one in list(sender.open))
until = time.monotonic() + {PATIENCE_S}
while alive() != (1, ["2"]) and time.monotonic() < until:
    time.sleep(0.05)
print(alive())""")
        self.assertEqual((printed, error), ("(1, ['2'])\n", None))
        self.run_cell("reporter.completed()\nreporter.flush()")


if __name__ == "__main__":
    unittest.main()
