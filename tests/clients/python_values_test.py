#!/usr/bin/python3
"""Which values the Python client can tell apart, and what it says of wrong words."""

import array
import collections
import contextlib
import dataclasses
import decimal
import enum
import json
import logging
import pathlib
import re
import subprocess
import sys
import time
import types
import unittest
import unittest.mock

from python_case import CLIENT, PATIENCE_S, ROOT, WithMonitor
from false_monitor import FalseMonitor
import watchdog_client
from watchdog_client import Reporter


class Plain:
    """Prints as its address."""

    def __init__(self, number):
        self.number = number


class Vague(Plain):
    def __repr__(self):
        return "<Response [200]>"


class Mute(Plain):
    def __repr__(self):
        return ""


class Cut(Plain):
    def __repr__(self):
        return "array([0, 1, ..., 8, 9])"


class Holder(Plain):
    def __repr__(self):
        return f"Holder(item={Plain(self.number)!r})"


class Slots:
    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


class Model(Plain):
    def model_dump(self):
        return {"number": self.number}


class Frame(Plain):
    def to_dict(self, orient="dict"):
        return {"column": {0: self.number}}


@dataclasses.dataclass
class Data:
    number: int
    inner: object = None


@dataclasses.dataclass
class Secretive:
    number: int = dataclasses.field(repr=False)


class Colour(enum.Enum):
    RED = 1


def circle(number):
    ring = [number]
    ring.append(ring)
    return ring


class Values(WithMonitor):
    """The monitor compares the texts of values. Two values have the same text only if they are equal."""

    OPAQUE = [Plain, Vague, Mute, Cut, Holder, Slots, Secretive, circle, lambda n: {"x": [Plain(n)]}, lambda n: Data(n, Plain(n)), lambda n: {(1, 2): Plain(n)},
              lambda n: iter([n]), lambda n: (yield n), lambda n: lambda: n, lambda n: {"response": Vague(n), "status": 200}, lambda n: object()]
    EXACT = [Model, Frame, Data, lambda n: Data(n, Model(n)), lambda n: {n, "a", "b"}, lambda n: types.SimpleNamespace(number=n, inner=Data(n)), lambda n: collections.deque([n]), lambda n: b"\xff%d" % n,
             lambda n: {"x": Colour.RED, "n": n, "kind": Colour, "text": "Loading..."}, lambda n: types.MappingProxyType({"n": n}), lambda n: {"x": float("nan"), "n": n},
             lambda n: Exception(f"no {n}"), lambda n: pathlib.Path(f"/a/{n}"), lambda n: decimal.Decimal(n), lambda n: array.array("i", [n]), lambda n: {(1, 2): n},
             lambda n: "see ... <b>it</b> at 0x7f00 " + str(n)]

    @staticmethod
    def text(value):
        return watchdog_client._content("text", value, "result_hash")

    def test_values_that_cannot_be_printed_are_never_equal(self):
        for make in self.OPAQUE:
            one = make(1)
            texts = [self.text(one), self.text(make(1)), self.text(make(2)), self.text(one)]
            without_addresses = {re.sub("0x[0-9a-f]+", "", str(text)) for text in texts}
            self.assertEqual(len(without_addresses), 4, texts)

    def test_values_that_can_be_printed_are_equal_if_they_are(self):
        for make in self.EXACT:
            self.assertEqual(self.text(make(1)), self.text(make(1)))
            self.assertNotEqual(self.text(make(1)), self.text(make(2)))

    def test_they_are_printed_as_data(self):
        self.assertEqual(json.loads(self.text(Data(1, Model(2)))["text"]), {"number": 1, "inner": {"number": 2}})
        self.assertEqual(json.loads(self.text({"f": Frame(3)})["text"]), {"f": {"column": {"0": 3}}})
        self.assertEqual(json.loads(self.text({"b", "a"})["text"]), ["a", "b"])
        try:
            try:
                raise KeyError("cause")
            except KeyError as cause:
                raise ValueError("effect") from cause
        except ValueError as error:
            self.assertEqual(json.loads(self.text(error)["text"]), "ValueError: ValueError('effect'), caused by KeyError: KeyError('cause')")
            self.assertEqual(self.text(RuntimeError(Plain(1)))["text"].count("opaque"), 0)  # The address in an error is noise.

    def test_a_mock_and_objects_that_raise_are_printed(self):
        class Bad(Model):
            def model_dump(self):
                raise RuntimeError

        class Worse(Bad):
            def __repr__(self):
                raise RuntimeError
        for value in (unittest.mock.MagicMock(), Bad(1), Worse(1), {"x": [Worse(1)]}, type("Liar", (), {"model_dump": lambda self: self})()):
            self.assertIn("opaque", self.text(value)["text"])

    def test_an_object_is_printed_once(self):
        class Counted:
            count = 0

            def __repr__(self):
                Counted.count += 1
                return f"Counted({Counted.count})"
        reporter = self.reporter()
        reporter.state_change("x", {"y": Counted()})
        self.assertEqual(Counted.count, 1)

    def test_no_loop_is_seen_in_what_nobody_can_compare(self):
        """Fourteen equal rounds of calls, for each kind of value, as arguments, result and new state."""
        def rounds(name, make, act):
            with self.reporter(session=name, interval_s=0) as reporter:
                for number in range(14):
                    reporter.heartbeat(number, "poll")
                    act(reporter, make(number))
            marks = [event for event in self.monitor.events(name) if event["kind"] == "end"]
            self.assertEqual(len(marks), 1)
            return self.monitor.ask("GET", f"/api/autonomous/sessions/{name}/transitions")

        def result(reporter, value):
            with reporter.tool("poll", {}) as call:
                call.result = value

        def arguments(reporter, value):
            with reporter.tool("poll", value) as call:
                call.result = "ok"
        for number, make in enumerate(self.OPAQUE):
            for act in (result, arguments):
                self.assertNotIn("looping", str(rounds(f"opaque-{number}-{act.__name__}", make, act)))
        self.assertIn("looping", str(rounds("same-data", lambda n: Data(1, Model(2)), result)))
        self.assertIn("looping", str(rounds("same-error", lambda n: ConnectionError(Plain(n)), result)))


class Mistakes(WithMonitor):
    """A wrong word harms no agent: it is logged once. `strict` raises it."""

    WRONG = [("stat_change", {"type": "x"}, "kind of event", "state_change"), ("", {}, "kind of event", None), (None, {}, "kind of event", None),
             ("wait", {"waiting_for": "quota", "until": 5}, "field of the event wait", "until_ms"),
             ("wait", {"waiting_for": "quota", "deadline_ms": 5}, "field of the event wait", None),
             ("budget", {"max_step": 5, "current_step": 1}, "field of the event budget", "max_steps"),
             ("budget", {"currentStep": None}, "field of the event budget", "current_step"),
             ("tool_call", {"name": "t", "arguments": {}}, "field of the event tool_call", "args"),
             ("message", {"name": "user", "tekst": "t"}, "field of the event message", "text")]

    def setUp(self):
        super().setUp()
        watchdog_client._said.clear()
        logging.disable(logging.NOTSET)
        self.addCleanup(logging.disable, logging.CRITICAL)

    def test_a_wrong_word_is_raised_with_the_nearest_and_all_right_ones_if_the_reporter_is_strict(self):
        reporter = self.reporter(strict=True)
        for kind, fields, what, near in self.WRONG:
            with self.subTest(kind=kind, fields=fields), self.assertRaises(ValueError) as caught:
                reporter.report(kind, **fields)
            text = str(caught.exception)
            self.assertIn(f"is not a {what}", text)
            if near:
                self.assertIn(f'Did you mean "{near}"? ', text)
            right = watchdog_client._kinds[kind].split() if kind in watchdog_client._kinds else watchdog_client._kinds
            for word in right:
                self.assertIn(word, text.partition("The right words are ")[2])
        reporter.report("budget", current_step=3, max_steps=10, tokens=5, max_cost=2.5, stage="low")
        reporter.report("turn", name="turn_start", call_id="t1", depth=0)
        reporter.report("opinion", status="A", confidence=0.5, text="fine")
        reporter.completed()
        self.assertTrue(reporter.close(PATIENCE_S))
        self.assertEqual([event["kind"] for event in self.told()], ["start", "budget", "turn", "opinion", "end"])

    def test_a_wrong_word_is_said_once_in_a_process_and_the_rest_of_the_report_arrives(self):
        with self.assertLogs("watchdog_client", "WARNING") as logs:
            for session in (self.session, self.session + "-other"):
                reporter = self.reporter(session=session)
                for kind, fields, _, _ in self.WRONG * 3:
                    reporter.report(kind, **fields)
                reporter.completed()
                self.assertTrue(reporter.close(PATIENCE_S))
        said = [line for line in logs.output if "is not a" in line and "Did you mean" in line or "The right words" in line]
        self.assertEqual(len(said), len(self.WRONG), logs.output)
        self.assertEqual(len({line for line in logs.output}), len(logs.output))
        self.assertEqual(len([line for line in logs.output if '"stat_change"' in line]), 1, logs.output)
        self.assertEqual([event["kind"] for event in self.told("budget")], ["budget"] * 6)

    def test_it_is_on_standard_error_of_a_process_without_settings_of_its_own(self):
        script = ("import watchdog_client\n"
                  "with watchdog_client.Reporter('x') as r:\n    r.report('wiat')\n    r.report('wiat')\n    print('goes on')\n")
        environment = {"PATH": "", "PYTHONPATH": str(CLIENT), "WATCHDOG_SERVER": ""}
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "goes on\n")
        self.assertEqual(done.stderr.count("wiat"), 1, done.stderr)
        self.assertIn('Did you mean "wait"?', done.stderr)

    def test_a_hint_of_the_monitor_is_said_once_and_raised_if_the_reporter_is_strict(self):
        body = b'{"accepted":1,"directive":null,"hint":"unknown member \\"until\\" of a wait; did you mean until_ms?"}'
        with FalseMonitor(body=body) as monitor:
            with self.assertLogs("watchdog_client", "WARNING") as logs:
                for session in "ab":
                    with Reporter(session, server=monitor.url, interval_s=0) as reporter:
                        reporter.state_change("x")
                        reporter.flush(PATIENCE_S)
            self.assertEqual([line.count("did you mean until_ms?") for line in logs.output], [1])
            with self.assertRaisesRegex(ValueError, "did you mean until_ms"), Reporter("c", server=monitor.url, strict=True, exit_s=PATIENCE_S):
                pass
            self.assertEqual([event["outcome"] for event in monitor.batches[-1] if event["kind"] == "end"], ["completed"])
            with self.assertRaises(KeyError), Reporter("d", server=monitor.url, strict=True, exit_s=PATIENCE_S):
                raise KeyError("the agent's own error comes first")
            reporter = Reporter("e", server=monitor.url, strict=True, interval_s=0)
            deadline = time.monotonic() + PATIENCE_S
            with self.assertRaisesRegex(ValueError, "did you mean until_ms"):
                while time.monotonic() < deadline:
                    reporter.heartbeat(1, "work")
            reporter.completed()
            with contextlib.suppress(ValueError):
                reporter.close(PATIENCE_S)

    def test_a_refused_report_is_raised_if_the_reporter_is_strict(self):
        reporter = self.reporter(strict=True)
        reporter.report("heartbeat", iteration="seven")
        with self.assertRaisesRegex(ValueError, "a report was not understood"):
            reporter.flush(PATIENCE_S)
        with self.assertRaisesRegex(ValueError, "the session has no properties"), \
                self.reporter(session=self.session + "-policy", strict=True, policy={"stuckThreshold": "three"}) as reporter:
            reporter.flush(PATIENCE_S)

    def test_the_words_are_those_of_the_schema(self):
        done = subprocess.run([sys.executable, str(ROOT / "docs" / "tools" / "client_words.py"), "--check"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        fields = json.loads((ROOT / "schemas" / "event.schema.json").read_text())["properties"]
        self.assertEqual(list(watchdog_client._kinds), fields["kind"]["examples"])
        self.assertEqual({word for words in watchdog_client._kinds.values() for word in words.split()} | set(watchdog_client._every_kind), set(fields))


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=1)
