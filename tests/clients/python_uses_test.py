#!/usr/bin/python3
"""What the Python client costs its agent, and how it works with asyncio, wrapped functions, signals and wrong values."""

import asyncio
import collections
import contextlib
import decimal
import fractions
import gc
import inspect
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
import types
import unittest

from python_case import CLIENT, PATIENCE_S, WithMonitor
from false_monitor import FalseMonitor
import watchdog_client
from watchdog_client import MonitorError, Reporter


def eventually(holds):
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with contextlib.suppress(MonitorError):  # There is no such session yet.
            if holds():
                return True
        time.sleep(0.01)
    return False


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def senders():
    return [thread for thread in threading.enumerate() if thread.name == "watchdog"]


def program(*lines, **environment):
    return subprocess.run([sys.executable, "-c", "\n".join(["import sys, time", "from watchdog_client import Reporter", *lines])], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "PYTHONPATH": str(CLIENT), **environment})


class Costs(WithMonitor):
    def test_exits_without_a_monitor_take_a_moment_in_all_and_say_what_is_lost(self):
        """Each of these ten waited for two seconds."""
        done = program("begin = time.monotonic()", "for number in range(10):", "    with Reporter(f's{number}') as reporter:",
                       "        reporter.state_change('x')", "print(time.monotonic() - begin)", WATCHDOG_SERVER=f"http://127.0.0.1:{closed_port()}")
        self.assertLess(float(done.stdout), 5, done.stderr)
        self.assertEqual(len(re.findall(r"s\d: 3 reports were not delivered to http://127.0.0.1:\d+: Connection ?Refused", done.stderr, re.I)), 10, done.stderr)

    def test_reporters_that_are_open_at_the_exit_of_the_process_share_its_limit(self):
        with socket.create_server(("127.0.0.1", 0)) as mute:
            begin = time.monotonic()
            done = program("reporters = [Reporter(f's{number}', exit_s=0.5) for number in range(20)]", WATCHDOG_SERVER=f"http://127.0.0.1:{mute.getsockname()[1]}")
            self.assertLess(time.monotonic() - begin, 15)
        self.assertEqual(done.stderr.count("1 reports were not delivered"), 20, done.stderr)

    def test_a_monitor_that_never_answers_costs_one_exit_its_limit_and_others_a_moment(self):
        with socket.create_server(("127.0.0.1", 0)) as mute:
            done = program("begin = time.monotonic()", "for number in range(6):", "    with Reporter(f's{number}', exit_s=1.0):", "        pass",
                           "print(time.monotonic() - begin)", WATCHDOG_SERVER=f"http://127.0.0.1:{mute.getsockname()[1]}")
        self.assertLess(float(done.stdout), 5, done.stderr)
        self.assertEqual(done.stderr.count("2 reports were not delivered"), 6, done.stderr)

    def test_a_monitor_that_comes_late_still_gets_what_an_owner_waits_for(self):
        port = closed_port()
        reporter = Reporter(self.session, server=f"http://127.0.0.1:{port}", exit_s=PATIENCE_S)
        with reporter:
            self.assertTrue(eventually(lambda: reporter._sender.is_nobody_there()))
            monitor = FalseMonitor()
            threading.Timer(0.5, lambda: monitor.__enter__(port)).start()
        self.assertEqual([event["kind"] for batch in monitor.batches for event in batch], ["start", "end"])
        monitor.__exit__()

    def test_all_sessions_share_one_thread_and_it_leaves_after_the_last(self):
        self.assertTrue(eventually(lambda: not senders()))
        reporters = [self.reporter(session=f"{self.session}-{number}") for number in range(15)]
        for reporter in reporters:
            self.assertTrue(reporter.flush(PATIENCE_S))
        self.assertEqual(len(senders()), 1)
        for reporter in reporters:
            reporter.completed()
        for reporter in reporters:
            self.assertTrue(reporter.flush(PATIENCE_S))
            self.assertEqual(self.monitor.progress(reporter.session)["lifecycle"], "completed")
        self.assertTrue(eventually(lambda: not senders()))
        reporters[0].state_change("late")
        self.assertTrue(reporters[0].flush(PATIENCE_S))
        self.assertEqual(len(list(self.monitor.events(reporters[0].session, "state_change"))), 1)

    def test_a_busy_session_does_not_keep_others_from_reporting(self):
        busy, over = self.reporter(session=self.session + "-busy", interval_s=0), threading.Event()
        threads = [threading.Thread(target=lambda: [busy.state_change("x" * 100) for _ in iter(over.is_set, True)]) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            with self.reporter(exit_s=PATIENCE_S) as reporter:
                reporter.state_change("y")
        finally:
            over.set()
            for thread in threads:
                thread.join()
        self.assertEqual(self.monitor.progress(self.session)["lifecycle"], "completed")

    def test_a_refused_session_does_not_keep_others_from_reporting(self):
        with FalseMonitor(answers=[404, 200]) as monitor:
            first = Reporter("refused", server=monitor.url, interval_s=0)
            self.assertTrue(eventually(lambda: first._not_before))
            second = Reporter("taken", server=monitor.url, interval_s=0)
            self.assertTrue(second.close(PATIENCE_S))
            first.close(0)

    def test_a_reporter_that_nobody_has_any_more_stops_its_heartbeats(self):
        """A cell of a notebook that failed stayed alive as long as the notebook."""
        reporter = self.reporter(interval_s=0.02)
        self._cleanups.clear()
        self.assertTrue(eventually(lambda: self.told("heartbeat")))
        sender = reporter._sender
        del reporter
        self.assertTrue(eventually(lambda: gc.collect() is not None and self.session not in [one.session for one in sender.open | sender.unsent]))
        self.assertEqual(self.monitor.progress(self.session)["lifecycle"], "running")

    def test_its_reports_are_sent_before(self):
        Reporter(self.session, server=self.url, interval_s=0).state_change("x")
        gc.collect()
        self.assertTrue(eventually(lambda: self.told("state_change")))

    def test_large_data_does_not_delay_the_agent(self):
        """Encoding took seconds before the text was cut."""
        values = {"text": {"page": "x" * 50_000_000}, "bytes": b"x" * 50_000_000, "rows": [{"a": number} for number in range(200_000)],
                  "set": set(range(200_000)), "error": ValueError("x" * 50_000_000)}
        begin = time.monotonic()
        json.dumps(values["rows"])
        for value in values.values():
            repr(value)
        whole_s = time.monotonic() - begin
        reporter = self.reporter(interval_s=0)
        begin = time.monotonic()
        for name, value in values.items():
            with reporter.tool(name) as call:
                call.result = value
        self.assertLess(time.monotonic() - begin, whole_s / 5)
        self.assertTrue(reporter.flush(PATIENCE_S))
        self.assertEqual(len(self.told("tool_result")), 5)

    def test_large_data_within_other_values_take_a_moment(self):
        """Of the agent's own processor time. Some of these took half a second."""
        text = "x" * 50_000_000
        reporter = Reporter("large", server="http://127.0.0.1:9", interval_s=0, queue_max=100)
        self.addCleanup(reporter.close, 0)

        def fail(error):
            with contextlib.suppress(ValueError), Reporter("failed", server="http://127.0.0.1:9", exit_s=0):
                raise error
        acts = {"error": lambda: reporter.state_change("x", ValueError({"page": text})), "namespace": lambda: reporter.state_change("x", types.SimpleNamespace(page=text)),
                "set": lambda: reporter.state_change("x", pages), "counts": lambda: reporter.state_change("x", counts), "texts": lambda: reporter.state_change("x", texts),
                "name": lambda: reporter.tool_call(text), "number": lambda: reporter.heartbeat({"page": text}), "block": lambda: fail(ValueError({"page": text})),
                "end": lambda: Reporter("failed", server="http://127.0.0.1:9", exit_s=0).failed(ValueError(text))}
        pages, counts, texts = frozenset([text, text[1:]]), collections.Counter(range(200_000)), {f"{number}" for number in range(200_000)}
        for name, act in acts.items():
            spent = []
            for _ in range(5):
                begin = time.thread_time()
                act()
                spent.append(time.thread_time() - begin)
            self.assertLess(min(spent), 0.02, name)

    def test_data_that_is_not_read_to_its_end_is_not_equal(self):
        def run(name, make):
            with self.reporter(session=f"{self.session}-{name}", interval_s=0) as reporter:
                for number in range(14):
                    reporter.heartbeat(number, "poll")
                    with reporter.tool("poll", {}) as call:
                        call.result = make(number)
            return str(self.monitor.ask("GET", f"/api/autonomous/sessions/{reporter.session}/transitions"))
        self.assertNotIn("looping", run("texts", lambda number: "x" * 2_000_000 + str(number)))
        self.assertNotIn("looping", run("rows", lambda number: [*range(50_000), number]))
        self.assertNotIn("looping", run("tail", lambda number: "x" * 200_000 + f"{number:c}"))
        self.assertIn("looping", run("same", lambda number: {"page": "x" * 200_000}))

    def test_an_object_in_data_without_a_form_in_json_is_printed_once(self):
        class Counted:
            count = 0

            def __repr__(self):
                Counted.count += 1
                return "Counted()"
        reporter = self.reporter(interval_s=0)
        for data in ([Counted(), float("nan")], {(1, 2): 3, "x": Counted()}, Counted()):
            Counted.count = 0
            reporter.state_change("x", data)
            self.assertEqual(Counted.count, 1, data)


class Asyncio(WithMonitor):
    def test_the_end_of_a_block_does_not_stop_the_loop(self):
        """Without a monitor that answers, all tasks of a server stood still for two seconds."""
        async def main(server):
            stalls, over = [], asyncio.Event()

            async def tick():
                while not over.is_set():
                    begin = time.monotonic()
                    await asyncio.sleep(0.01)
                    stalls.append(time.monotonic() - begin)
            ticking = asyncio.ensure_future(tick())
            async with Reporter("mute", server=server, exit_s=0.6):
                pass
            reporter = Reporter("mute", server=server)
            self.assertFalse(await reporter.aflush(0.3))
            self.assertFalse(await reporter.aclose(0.3))
            over.set()
            await ticking
            return len(stalls)
        with socket.create_server(("127.0.0.1", 0)) as mute:
            self.assertGreater(asyncio.run(main(f"http://127.0.0.1:{mute.getsockname()[1]}")), 10)

    def test_a_cancel_cancels_the_task_also_if_it_is_silent(self):
        """The interval of heartbeats is long here: the reporter itself asks for a cancel."""
        async def agent():
            async with self.reporter(interval_s=3600) as reporter:
                async with reporter.tool("sleep"):
                    await reporter.aflush()
                    self.monitor.cancel(self.session, "enough", "ann")
                    await asyncio.sleep(PATIENCE_S)

        async def main():
            begin = time.monotonic()
            with self.assertRaises(asyncio.CancelledError):
                await asyncio.ensure_future(agent())
            return time.monotonic() - begin
        self.assertLess(asyncio.run(main()), PATIENCE_S / 2)
        self.assertEqual(self.monitor.progress(self.session)["lifecycle"], "cancelled")

    def test_a_plain_agent_that_looks_for_a_cancel_gets_it_without_reporting(self):
        reporter = self.reporter(interval_s=3600)
        self.assertFalse(reporter.cancelled)
        reporter.flush(PATIENCE_S)
        self.monitor.cancel(self.session)
        self.assertTrue(eventually(lambda: reporter.cancelled))
        self.assertEqual([event["kind"] for event in self.told()], ["start", "cancel"] if self.told("cancel") else ["start"])

    def test_a_wait_leaves_the_loop_free_and_a_cancel_ends_it(self):
        async def main():
            waiting = asyncio.ensure_future(self.monitor.wait_async(self.session))
            reporter = self.reporter()
            await asyncio.sleep(0)
            reporter.completed()
            self.assertEqual((await waiting)["lifecycle"], "completed")
            with self.assertRaises(watchdog_client.WaitFailed):
                await watchdog_client.wait_async(self.session, "failed", server=self.url, token=self.server.secret)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.monitor.wait_async("never"), 0.3)
        asyncio.run(main())
        self.assertTrue(eventually(lambda: not [one for one in threading.enumerate() if one.name == "watchdog-wait"]))

    def test_each_task_has_its_own_current_reporter(self):
        async def agent(name):
            async with self.reporter(session=f"{self.session}-{name}"):
                await asyncio.sleep(0.01)
                await asyncio.to_thread(look_up, name)

        @watchdog_client.wrap
        def look_up(word):
            return word.upper()

        async def main():
            await asyncio.gather(agent("one"), agent("two"))
        asyncio.run(main())
        for name in ("one", "two"):
            events = list(self.monitor.events(f"{self.session}-{name}"))
            self.assertEqual([(event["kind"], event.get("args") or event.get("text")) for event in events[1:3]], [("tool_call", {"word": name}), ("tool_result", name.upper())])
        self.assertEqual(look_up("x"), "X")


class Functions(WithMonitor):
    def calls(self):
        return [(event["kind"], event["name"], event.get("args", event.get("text"))) for event in self.told() if event["kind"] in ("tool_call", "tool_result", "error")]

    def test_a_function_of_any_kind_is_reported_with_arguments_and_result(self):
        with self.reporter() as reporter:
            @reporter.wrap
            def add(a, b=2, *rest, **more):
                """Adds."""
                return a + b

            @watchdog_client.wrap(name="search")
            async def find(query):
                await asyncio.sleep(0)
                return [query]

            @reporter.tool("count")
            def numbers(to):
                got = yield 1
                yield got
                return "end"

            @reporter.wrap()
            async def stream(to):
                for number in range(to):
                    yield number

            @reporter.wrap
            def fail():
                raise KeyError("no")

            class Agent:
                @watchdog_client.wrap
                def method(self, x):
                    return x

            async def consume():
                return [one async for one in stream(2)]

            def outer():
                result = yield from numbers(3)
                yield result
            self.assertEqual((add(1), add.__name__, add.__doc__), (3, "add", "Adds."))
            add(1, 2, 3, c=4)
            self.assertEqual(asyncio.run(find(query="x")), ["x"])
            generator = outer()
            self.assertEqual([next(generator), generator.send("sent"), next(generator)], [1, "sent", "end"])
            self.assertEqual(asyncio.run(consume()), [0, 1])
            self.assertRaises(KeyError, fail)
            self.assertEqual(Agent().method(5), 5)
            self.assertTrue(inspect.iscoroutinefunction(find) and inspect.isgeneratorfunction(numbers) and inspect.isasyncgenfunction(stream))
        self.assertEqual(self.calls(), [
            ("tool_call", "add", {"a": 1}), ("tool_result", "add", "3"), ("tool_call", "add", {"a": 1, "b": 2, "rest": [3], "c": 4}), ("tool_result", "add", "3"),
            ("tool_call", "search", {"query": "x"}), ("tool_result", "search", '["x"]'), ("tool_call", "count", {"to": 3}), ("tool_result", "count", '[1,"sent"]'),
            ("tool_call", "stream", {"to": 2}), ("tool_result", "stream", "[0,1]"), ("tool_call", "fail", {}), ("error", "fail", "KeyError: KeyError('no')"),
            ("tool_call", "method", {"x": 5}), ("tool_result", "method", "5")])

    def test_a_generator_that_is_left_early_has_not_failed_and_one_that_catches_goes_on(self):
        closed = []
        with self.reporter() as reporter:
            @reporter.wrap
            def numbers():
                try:
                    for number in range(9):
                        try:
                            yield number
                        except ValueError:
                            yield "caught"
                finally:
                    closed.append(True)
            for number in numbers():
                break
            generator = numbers()
            next(generator)
            self.assertEqual(generator.throw(ValueError()), "caught")
            generator.close()
            gc.collect()
        self.assertEqual((self.calls()[1::2], closed), ([("tool_result", "numbers", "[0]"), ("tool_result", "numbers", '[0,"caught"]')], [True, True]))

    def test_the_current_reporter_is_that_of_the_block(self):
        self.assertIsNone(Reporter.current())
        with self.reporter(session=self.session + "-outer") as outer:
            self.assertIs(Reporter.current(), outer)
            with self.reporter(session=self.session + "-inner") as inner:
                self.assertIs(Reporter.current(), inner)
                found = []
                self.begin(lambda: found.append(Reporter.current()))
                self.assertTrue(eventually(lambda: found == [None]))  # A thread has no block, and there are two.
            self.assertIs(Reporter.current(), outer)
            self.begin(lambda: found.append(Reporter.current()))
            self.assertTrue(eventually(lambda: found[1:] == [outer]))
        self.assertIsNone(Reporter.current())

    def test_a_signal_ends_the_session_if_its_owner_wants_that(self):
        done = program("import os, signal", "with Reporter('signalled', signals=True) as reporter:", "    reporter.state_change('x')",
                       "    os.kill(os.getpid(), signal.SIGTERM)", "    time.sleep(60)", WATCHDOG_SERVER=self.url)
        self.assertEqual(done.returncode, -15, done.stderr)
        self.assertEqual([event["kind"] for event in self.monitor.events("signalled")], ["start", "state_change", "end"])
        self.assertEqual(self.monitor.progress("signalled")["lifecycle"], "cancelled")


class WrongValues(WithMonitor):
    def setUp(self):
        super().setUp()
        watchdog_client._said.clear()
        logging.disable(logging.NOTSET)
        self.addCleanup(logging.disable, logging.CRITICAL)

    def test_no_call_raises_and_each_mistake_is_said_once(self):
        with self.assertLogs("watchdog_client", "WARNING") as logs:
            for _ in range(2):
                reporter = Reporter(123, server=self.url, policy={"heartbeatInterval": "10s"}, interval_s="soon", exit_s="later", queue_max="many", labels=5)
                reporter.wait_for("input", until="tomorrow")
                reporter.heartbeat(1, "work", expect_quiet_s="5s" * 10)
                reporter.heartbeat("seven")
                with reporter.tool("t", deadline_s="1 min") as call:
                    self.assertFalse(call.aborted)
                reporter.completed()
                self.assertTrue(reporter.close(PATIENCE_S))
        self.assertLess(max(len(line) for line in logs.output), 400)
        for word in ("policy", "interval_s", "exit_s", "queue_max", "labels", "until", "expect_quiet_s", "iteration", "deadline_s"):
            self.assertEqual(len([line for line in logs.output if f": {word} is" in line]), 1, (word, logs.output))
        self.assertEqual([event["kind"] for event in self.monitor.events("123")][:3], ["start", "wait", "heartbeat"])
        for wrong in (lambda: Reporter("strict", server="", strict=True, interval_s="soon"), lambda: Reporter("strict", server="", strict=True).heartbeat("seven")):
            self.assertRaises(ValueError, wrong)

    def test_numbers_of_any_kind_are_iterations(self):
        with self.reporter() as reporter:
            for number in (True, 2.0, decimal.Decimal(3), fractions.Fraction(4), Index(), 10**30):
                reporter.heartbeat(number, f"phase {number}")
            reporter.wait_for("quota", until="2000000000")
        self.assertEqual(([event.get("iteration") for event in self.told("heartbeat")], reporter.rejected), ([1, 2, 3, 4, 5, None], 0))
        self.assertEqual([event["until_ms"] for event in self.told("wait")], [2_000_000_000_000])


class Index:
    """As the integers of numpy."""

    def __index__(self):
        return 5


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=1)
