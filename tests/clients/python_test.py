#!/usr/bin/python3
"""The Python client against a real monitor, and against what is none."""

import ast
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

from python_case import CLIENT, HERE, PATIENCE_S, PROGRAM, ROOT, WithMonitor
from false_monitor import FalseMonitor
from server import Server
import watchdog_client
from watchdog_client import Cancelled, Monitor, Reporter, WaitFailed


class Reports(WithMonitor):
    def test_the_monitor_shows_all_reported_events(self):
        with self.reporter(agent="planner", task="to plan", labels={"team": "tools"}) as reporter:
            reporter.heartbeat(1, "reflection", {"tokens": 7}, expect_quiet_s=2)
            with reporter.tool("search", {"query": "x"}, deadline_s=600) as call:
                call.progress("half", value=1, total=2)
                call.result = {"found": 3}
            with self.assertRaises(KeyError), reporter.tool("broken"):
                raise KeyError("no")
            reporter.state_change("plan_generated", {"steps": 4})
            reporter.count(tokens=5)
            reporter.count(tokens=6)
            reporter.message("assistant", "done")
            reporter.wait_for("quota", "used up", until=1_900_000_000)
            reporter.report("budget", current_step=3, max_steps=10)
        progress = self.monitor.progress(self.session)
        self.assertEqual(progress["outcome"]["kind"], "completed")
        self.assertEqual((progress["agent"], progress["task"], progress["labels"]), ("planner", "to plan", {"team": "tools"}))
        self.assertEqual((progress["currentPhase"], progress["iteration"], progress["budget"]["currentStep"]), ("reflection", 1, 3))
        events = self.told()
        self.assertEqual([event["kind"] for event in events],
                         ["start", "heartbeat", "tool_call", "tool_progress", "tool_result", "tool_call", "error",
                          "state_change", "message", "wait", "budget", "heartbeat", "end"])
        self.assertEqual(events[0]["pid"], os.getpid())
        self.assertEqual(events[6]["text"], "KeyError: KeyError('no')")
        self.assertEqual(events[-2]["counters"], {"tokens": 11})
        self.assertEqual((events[9]["waiting_for"], events[9]["until_ms"]), ("quota", 1_900_000_000_000))

    def test_an_exception_fails_the_session_and_goes_on(self):
        with self.assertRaises(ZeroDivisionError), self.reporter():
            1 // 0
        outcome = self.monitor.progress(self.session)["outcome"]
        self.assertEqual((outcome["kind"], outcome["error"]), ("failed", "ZeroDivisionError: integer division or modulo by zero"))

    def test_the_first_end_counts(self):
        with self.reporter() as reporter:
            reporter.incomplete("max_iterations_reached")
            reporter.failed("no")
        self.assertEqual([event["outcome"] for event in self.told("end")], ["incomplete"])

    def test_it_reports_and_waits_where_calls_of_posix_are_missing(self):
        environment = {**os.environ, "WATCHDOG_SERVER": self.url, "WATCHDOG_TOKEN": self.server.secret}
        for platform in ("darwin", "win32"):
            with self.subTest(platform):
                words = [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning:watchdog_client",
                         "-W", "error::EncodingWarning:watchdog_client.pytest_plugin", str(HERE / "other_system.py"), f"on-{platform}", platform]
                done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
                self.assertEqual((done.stdout, done.returncode), ("ok\n", 0), done.stderr)

    def test_a_cancel_is_heard_with_the_next_answer_also_by_an_agent_that_is_silent(self):
        heard = threading.Event()
        reporter = self.reporter(interval_s=0.1, on_cancel=lambda cancel: (heard.set(), 1 // 0))
        reporter.flush(PATIENCE_S)
        self.assertFalse(reporter.cancelled)
        self.monitor.cancel(self.session, "enough", "ann")
        self.assertTrue(heard.wait(PATIENCE_S))
        self.assertEqual((reporter.cancel["by"], reporter.cancel["reason"]), ("ann", "enough"))
        with self.assertRaises(Cancelled), reporter:
            reporter.check()
        outcome = self.monitor.progress(self.session)["outcome"]
        self.assertEqual((outcome["kind"], outcome["subject"]), ("cancelled", "ann"))

    def test_one_call_is_aborted_alone(self):
        reporter = self.reporter(interval_s=0.1)
        reporter.report("turn", name="turn_start", call_id="turn-1")
        heard = threading.Event()
        reporter._on_abort = lambda abort: heard.set()
        with reporter.tool("shell", call_id="c1", turn_id="turn-1") as call, reporter.tool("other", call_id="c2", turn_id="turn-1") as other:
            reporter.flush(PATIENCE_S)
            self.monitor.ask("POST", "/api/turns/turn-1/abort-tool/c1", {})
            self.assertTrue(heard.wait(PATIENCE_S))
            self.assertEqual((call.aborted, other.aborted, reporter.cancelled), (True, False, False))

    def test_a_call_over_its_deadline_is_aborted_until_it_makes_progress(self):
        reporter = self.reporter()
        with reporter.tool("hang", deadline_s=0.05) as late, reporter.tool("quick", deadline_s=600) as early, reporter.tool("free") as free:
            patience = time.monotonic() + PATIENCE_S
            while not late.aborted and time.monotonic() < patience:
                threading.Event().wait(0.01)
            self.assertEqual((late.aborted, early.aborted, free.aborted), (True, False, False))
            late.progress("goes on")
            self.assertFalse(late.aborted)

    def test_content_that_cannot_be_encoded_or_is_huge_still_arrives_in_some_form(self):
        class Bad:
            def __repr__(self):
                raise RuntimeError
        circle = []
        circle.append(circle)
        deep = []
        for _ in range(100_000):
            deep = [deep]
        reporter = self.reporter(content="full", interval_s=0)
        contents = [float("nan"), b"\xff\xfe", "\ud800", {(1, 2): 3}, circle, Bad(), {"x": Bad()}, deep, json.loads("[" * 80 + "]" * 80), "q" * (3 << 20),
                    {"a": list(range(100_000))}]
        for number, content in enumerate(contents):
            reporter.state_change(f"c{number}", content)
        reporter.state_change("n" * 5000, None)
        reporter.state_change(None)
        reporter.heartbeat("seven")
        reporter.heartbeat(1, "p" * 5000)
        reporter.completed()
        self.assertTrue(reporter.flush(PATIENCE_S))
        self.assertEqual(reporter.rejected, 1)  # A change without a name.
        changes = self.told("state_change")
        self.assertEqual([event["type"] for event in changes[:-1]], [f"c{number}" for number in range(len(contents))])
        self.assertEqual(changes[1]["data"], "\\xff\\xfe")  # Other bytes are another text.
        self.assertTrue(changes[9]["data"].endswith("q… (3145728 characters)"))
        self.assertEqual(len(self.told("end")), 1)

    def test_a_bad_name_of_a_session_is_made_a_good_one(self):
        reporter = self.reporter(session="a b/c" * 100)
        self.assertTrue(reporter.flush(PATIENCE_S))
        self.assertRegex(reporter.session, r"^a-b-ca-b[a-c-]{120}$")

    def test_a_forked_child_reports_by_itself_and_repeats_nothing(self):
        reporter = self.reporter()
        reporter.state_change("parent")
        child = os.fork()
        if child == 0:
            reporter.state_change("child")
            os._exit(0 if reporter.flush(PATIENCE_S) else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        reporter.state_change("parent again")
        self.assertTrue(reporter.flush(PATIENCE_S))
        self.assertEqual(sorted(event["type"] for event in self.told("state_change")), ["child", "parent", "parent again"])

    def test_reports_from_many_threads_all_arrive(self):
        reporter = self.reporter()
        threads = [threading.Thread(target=lambda n=n: [reporter.state_change(f"{n}-{i}") for i in range(100)]) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(reporter.flush(PATIENCE_S))
        self.assertEqual(len({event["type"] for event in self.told("state_change")}), 800)

    def test_a_process_tells_all_before_it_exits(self):
        script = "from watchdog_client import Reporter\nr = Reporter()\nfor i in range(500): r.state_change(f's{i}')\n"
        environment = {"PATH": "", "PYTHONPATH": str(CLIENT), "WATCHDOG_SERVER": self.url, "WATCHDOG_SESSION": self.session}
        subprocess.run([sys.executable, "-c", script], env=environment, check=True)
        self.assertEqual(len(self.told("state_change")), 500)


class Waits(WithMonitor):
    def wait(self, *what, **how):
        return self.monitor.wait(self.session, *what, **how)

    def assertFails(self, end, *what, **how):
        with self.assertRaises(WaitFailed) as caught:
            self.wait(*what, **how)
        self.assertEqual(caught.exception.end, end, caught.exception)
        return str(caught.exception)

    def test_it_is_over_the_moment_the_session_ends(self):
        reporter = self.reporter()
        reporter.flush(PATIENCE_S)
        self.begin(lambda: (reporter.heartbeat(1, "work"), reporter.state_change("built"), reporter.completed()))
        self.assertEqual(self.wait()["outcome"]["kind"], "completed")
        self.assertEqual(self.wait("end")["currentPhase"], "work")  # The first look is at once.

    def test_a_session_that_is_not_there_yet_is_waited_for(self):
        looked = threading.Event()
        self.begin(lambda: (looked.wait(PATIENCE_S), self.reporter().completed()))
        waiting = watchdog_client._Wait(self.monitor, self.session, "completed", "fail", 3, 0, None, None)
        look = waiting._look
        waiting._look = lambda last: (look(last), looked.set())[0]
        self.assertEqual(waiting.run()["lifecycle"], "completed")

    def test_healths_changes_and_conditions_are_waited_for(self):
        reporter = self.reporter()
        self.begin(lambda: (reporter.state_change("planned"), reporter.wait_for("approval")))
        self.assertEqual(self.wait("health=blocked")["waitingFor"], "approval")
        seq = self.wait("state-change=planned")["lastSeq"]
        self.begin(lambda: reporter.tool_call("t", {}, "c") or reporter.tool_result("t", "r", "c"))
        self.wait("state-change=tool_call", after=seq)
        self.begin(lambda: reporter.heartbeat(7, "last"))
        self.assertEqual(self.wait(lambda progress: progress["iteration"] == 7)["currentPhase"], "last")

    def test_an_unexpected_end_is_reported_with_its_history(self):
        reporter = self.reporter(interval_s=0)
        for step in range(40):
            reporter.heartbeat(step, "edit")
            reporter.state_change("edited", {"step": step})
        reporter.failed("the compiler was killed", "task_failed")
        reporter.flush(PATIENCE_S)
        text = self.assertFails("ended")
        self.assertIn(f"session {self.session}: it ended as failed instead\n  expected  completed\n  last      "
                      "failed (task_failed): the compiler was killed; its health was progressing (", text)
        self.assertRegex(text, r"timeline  4\d entries, 40 heartbeats besides\n +0.000 s  start process \d+\n")
        self.assertRegex(text, r"\n +…  2\d omitted\n")
        self.assertTrue(text.endswith("end failed (task_failed): the compiler was killed"), text)
        self.assertFails("ended", "incomplete")
        self.assertFails("ended", "health=stuck")
        self.assertEqual(self.wait("failed")["lifecycle"], "failed")

    def spin(self, reporter):
        """Until somebody says stop: rounds without a change, one after the other."""
        stop = threading.Event()

        def rounds():
            iteration = 0
            while not stop.is_set():
                reporter.heartbeat(iteration, "loop")
                reporter.flush(PATIENCE_S)
                iteration += 1
        self.begin(rounds)
        self.addCleanup(stop.set)  # before the thread is joined, also where the test failed
        return stop

    def test_a_stuck_session_fails_after_three_more_iterations_by_default(self):
        reporter = self.reporter()
        reporter.state_change("begun")
        stop = self.spin(reporter)
        text = self.assertFails("stuck")
        self.assertRegex(text, r"it has been stuck for \d+ further iterations \(limit 3\)\n")
        asked = []
        text = self.assertFails("user_cancelled_stuck", on_stuck=lambda progress: (asked.append(progress["iteration"]), len(asked) < 3)[1])
        self.assertRegex(text, r"stuck for ([3-9]|\d\d+) further iterations \(limit 3\); the person who was asked")
        self.assertEqual(len(asked), 3)
        self.assertEqual(asked, sorted(asked))  # documents may be ahead of the stream that counts
        self.wait(lambda progress: progress["iteration"] > asked[-1] + 10, on_stuck="keep")
        stop.set()

    def test_a_verdict_that_is_taken_back_is_forgiven(self):
        reporter = self.reporter()
        for iteration in range(7):
            reporter.heartbeat(iteration, "loop")
        self.wait("health=stuck")
        self.begin(lambda: [reporter.state_change(f"free {n}") for n in range(4)] and
                   [reporter.heartbeat(n, "on") for n in range(8, 11)] and reporter.completed())
        self.assertEqual(self.wait()["lifecycle"], "completed")

    def test_a_process_that_is_gone_ends_the_wait(self):
        process = subprocess.Popen(["false"])
        self.assertIn("its process exited with 1 without having reported anything", self.assertFails("no_session", process=process))
        self.reporter().flush(PATIENCE_S)
        process = subprocess.Popen(["sleep", "100"])
        self.begin(lambda: self.wait("health=starting") and process.kill())
        self.reporter().heartbeat(1)
        self.assertIn("was ended by signal 9, and the session has not ended", self.assertFails("dead", process=process))

    def test_a_process_that_is_gone_ends_the_wait_while_nobody_reports(self):
        """This monitor begins its answer and never ends it, so only the end of the process can end the wait."""
        asked = threading.Event()

        class Silent(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.close_connection = True
                if "tell=now" in self.path:
                    return
                self.send_response(200)
                self.send_header("Content-Length", "10")
                self.send_header("Connection", "close")
                self.end_headers()
                asked.set()
                self.connection.recv(1)

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent) as silent:
            self.begin(silent.serve_forever)
            process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
            self.begin(lambda: (asked.wait(), process.stdin.close()))
            with self.assertRaises(WaitFailed) as failed:
                Monitor(f"http://127.0.0.1:{silent.server_port}", "").wait("never", process=process)
            self.assertEqual(failed.exception.end, "no_session")
            silent.shutdown()

    def test_misuse_is_a_value_error(self):
        for what in ("done", "health=happy", "health", "", "state-change="):
            with self.assertRaises(ValueError, msg=what):
                self.wait(what)
        with self.assertRaises(ValueError):
            self.wait(on_stuck="ask")
        with self.assertRaises(ValueError):
            self.monitor.wait("a b")
        self.reporter().flush(PATIENCE_S)
        with self.assertRaises(FileNotFoundError):
            self.wait(lambda progress: open("/absent"))

    def test_a_missing_monitor_is_reported_at_once(self):
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with self.assertRaises(WaitFailed) as caught:
            watchdog_client.wait("x", server=url)
        self.assertEqual(caught.exception.end, "unavailable")
        self.assertIn("watchdog-monitor serve", str(caught.exception))

    def test_a_server_that_is_not_a_monitor_is_reported_at_once(self):
        with FalseMonitor() as other, self.assertRaises(WaitFailed) as caught:
            watchdog_client.wait("x", server=other.url)
        self.assertEqual(caught.exception.end, "refused")

    def test_a_signal_from_an_outer_limit_is_answered_with_what_was_waited_for(self):
        reporter = self.reporter()
        reporter.state_change("begun")
        reporter.flush(PATIENCE_S)
        script = ("import watchdog_client, sys\n"
                  f"watchdog_client.wait('{self.session}', seen=lambda progress: print('seen', flush=True))\n")
        environment = {"PATH": "", "PYTHONPATH": str(CLIENT), "WATCHDOG_SERVER": self.url}
        process = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.terminate()
        _, text = process.communicate()
        self.assertEqual(process.returncode, -signal.SIGTERM)
        self.assertIn("ended as  interrupted", text)
        self.assertIn("state_change begun", text)


PRELUDE = """
import asyncio, concurrent.futures, multiprocessing, os, sys, threading, time
from watchdog_client import Cancelled, Monitor, Reporter
def report(name):
    Reporter().state_change(name)
def work(name):
    with Reporter(agent=name) as reporter:
        reporter.state_change(name)
def inherited(reporter, name):
    reporter.state_change(name)
if __name__ == "__main__":
"""


class Families(WithMonitor):
    """Nobody ends the session of another reporter, and no report is lost, in threads, forks and `multiprocessing`."""

    def program(self, *lines, status=0, **environment):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        script = pathlib.Path(folder, "program.py")
        script.write_text(PRELUDE + "".join(f"    {line}\n" for line in lines))
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CLIENT), "WATCHDOG_SERVER": self.url, "WATCHDOG_SESSION": self.session, **environment}
        done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, status, done.stderr)

    def changes(self, session):
        return sorted(event["type"] for event in self.monitor.events(session, "state_change"))

    def family(self):
        """agent → session of the children, which all have ended."""
        found = self.monitor.ask("GET", "/api/autonomous/sessions?limit=1000")["sessions"]
        mine = [self.monitor.progress(one["sessionId"]) for one in found if one["sessionId"].startswith(self.session + "-")]
        for one in mine:
            self.assertEqual((one["parentSessionId"], one["lifecycle"]), (self.session, "completed"))
        return {one["agent"]: one["sessionId"] for one in mine}

    def assert_whole(self, *changes):
        """The session was ended once, by the reporter that made it, after these changes and none was late."""
        events = self.told()
        self.assertEqual(sorted(event["type"] for event in events if event["kind"] == "state_change"), sorted(changes))
        self.assertEqual([event["outcome"] for event in events if event["kind"] == "end"], ["completed"])
        self.assertEqual([event for event in events if event.get("late")], [])

    def test_a_second_reporter_without_a_name_has_a_child_session(self):
        self.program("with Reporter(agent='outer') as outer:", "    outer.state_change('before')", "    work('inner')",
                     "    thread = threading.Thread(target=work, args=['thread'])", "    thread.start()", "    thread.join()", "    outer.state_change('after')")
        self.assert_whole("before", "after")
        family = self.family()
        self.assertEqual({agent: self.changes(session) for agent, session in family.items()}, {"inner": ["inner"], "thread": ["thread"]})

    def test_a_program_that_an_agent_starts_has_a_child_session(self):
        lines = ["import os, subprocess", "def start(*words):", "    subprocess.run([sys.executable, '-c', 'from watchdog_client import Reporter\\n' + chr(10).join(words)], check=True)",
                 "worker = ['with Reporter(agent=\"worker\") as reporter:', '    reporter.state_change(\"worker\")']",
                 "named = ['reporter = Reporter(\"%s\")' % os.environ['WATCHDOG_SESSION'], 'reporter.failed()']",
                 "with Reporter() as outer:", "    start(*worker)", "    start(*named)", "    outer.state_change('after')", "assert 'WATCHDOG_REPORTER' not in os.environ"]
        self.program(*lines)
        self.assert_whole("after")
        self.assertEqual(self.changes(self.family()["worker"]), ["worker"])
        self.program("import os, subprocess", *lines[1:4], "with Reporter() as outer:", "    outer.state_change('first')", "start(*worker)", WATCHDOG_SESSION=self.session + ".turns")
        self.assertEqual(self.changes(self.session + ".turns"), ["first", "worker"])

    def test_reporters_one_after_the_other_have_the_same_session(self):
        self.program("work('one')", "work('two')")
        self.assertEqual((self.changes(self.session), self.family()), (["one", "two"], {}))

    def test_a_second_reporter_of_the_same_name_does_not_end_the_block_of_the_first(self):
        self.program("with Reporter('x') as outer:", "    with Reporter('x') as inner:", "        inner.state_change('inner')",
                     "    try:", "        with Reporter('x') as inner:", "            1 // 0", "    except ZeroDivisionError:", "        pass",
                     "    outer.state_change('after')")
        self.session = "x"
        self.assert_whole("inner", "after")
        self.assertRegex(self.told("message")[0]["text"], "reports no more: failed ZeroDivisionError")

    def test_a_forked_child_does_not_end_the_session_of_its_parent(self):
        self.program("with Reporter() as reporter:", "    for status in (0, 3):", "        if os.fork() == 0:", "            reporter.state_change(f'child {status}')",
                     "            sys.exit(status)", "        os.wait()", "    if os.fork() == 0:", "        work('grandchild')", "        reporter.completed()",
                     "        os._exit(0 if reporter.flush(30) else 1)", "    os.wait()", "    reporter.state_change('parent')")
        self.assert_whole("child 0", "child 3", "parent")
        self.assertEqual(list(self.family()), ["grandchild"])

    def test_a_child_that_outlives_its_parent_ends_the_session(self):
        self.program("reporter = Reporter()", "reporter.flush(30)", "parent = os.getpid()", "if os.fork():", "    os._exit(0)",
                     "while os.getppid() == parent:", "    time.sleep(0.01)", "reporter.state_change('daemon')", "reporter.completed()")
        self.monitor.wait(self.session)
        self.assert_whole("daemon")

    def test_no_report_of_multiprocessing_is_lost_and_none_of_its_children_ends_the_session(self):
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method):
                self.session = f"processes-{method}"
                self.program(f"context = multiprocessing.get_context('{method}')", "with Reporter() as reporter:",
                             "    for target in (report, work):", "        process = context.Process(target=target, args=[target.__name__])",
                             "        process.start()", "        process.join()",
                             "    with concurrent.futures.ProcessPoolExecutor(3, mp_context=context) as pool:",
                             "        list(pool.map(work, [f'pool {n}' for n in range(6)]))",
                             *(["    process = context.Process(target=inherited, args=[reporter, 'inherited'])", "    process.start()", "    process.join()"]
                               if method == "fork" else []), "    reporter.state_change('parent')", WATCHDOG_SESSION=self.session)
                self.assert_whole("parent", *(["inherited"] if method == "fork" else []))
                found = self.monitor.ask("GET", "/api/autonomous/sessions?limit=1000")["sessions"]
                children = [one["sessionId"] for one in found if one["sessionId"].startswith(self.session + "-")]
                self.assertEqual(sorted(name for child in children for name in self.changes(child)), ["pool 0", "pool 1", "pool 2", "pool 3", "pool 4", "pool 5", "report", "work"])

    def test_a_process_of_multiprocessing_that_is_the_agent_has_the_session(self):
        for method in ("fork", "spawn"):
            self.session = f"agent-{method}"
            self.program(f"process = multiprocessing.get_context('{method}').Process(target=work, args=['agent'])", "process.start()", "process.join()",
                         WATCHDOG_SESSION=self.session)
            self.assert_whole("agent")

    def test_how_a_block_is_left_is_how_the_session_ends(self):
        for name, lines, outcome in (
                ("task", ["async def agent():", "    with Reporter('task'):", "        await asyncio.sleep(60)", "async def main():",
                          "    task = asyncio.ensure_future(agent())", "    await asyncio.sleep(0.05)", "    task.cancel()",
                          "    await asyncio.gather(task, return_exceptions=True)", "asyncio.run(main())"], "cancelled: task_cancelled"),
                ("generator", ["def agent():", "    with Reporter('generator') as reporter:", "        for step in range(9):",
                               "            with reporter.tool('t') as call:", "                call.result = step", "                yield step",
                               "for step in agent():", "    break"], "incomplete: left_early"),
                ("group", ["class CancelledError(Exception): pass", "try:", "    with Reporter('group'):", "        raise CancelledError", "except CancelledError:", "    pass"], "failed: error"),
                ("cancelled", ["try:", "    with Reporter('cancelled'):", "        try:", "            raise Cancelled('ann: enough')",
                               "        except Exception:", "            pass", "except Cancelled:", "    pass"], "cancelled: cancelled")):
            with self.subTest(name):
                self.program(*lines)
                ended = self.monitor.progress(name)["outcome"]
                self.assertEqual(f"{ended['kind']}: {ended['reason']}", outcome)
        self.assertEqual([event["kind"] for event in self.monitor.events("generator")], ["start", "tool_call", "tool_result", "end"])

    def test_a_cancel_in_a_tool_passes_a_loop_that_shows_its_model_each_error(self):
        reporter = self.reporter(interval_s=0.1)
        reporter.flush(PATIENCE_S)
        self.monitor.cancel(self.session, "enough", "ann")
        rounds = 0
        with self.assertRaises(Cancelled), reporter:
            while rounds < 600:
                rounds += 1
                try:
                    with reporter.tool("t"):
                        time.sleep(0.1)
                        reporter.check()
                except Exception as error:
                    print(error)
        self.assertEqual(self.monitor.progress(self.session)["outcome"]["kind"], "cancelled")

    def test_each_event_has_the_time_at_which_it_was_reported(self):
        """The monitor is away while a tool runs."""
        with FalseMonitor(answers=[503]) as monitor:
            reporter = Reporter("late", server=monitor.url, interval_s=0)
            monitor.asked.wait(PATIENCE_S)
            begin = time.time()
            with reporter.tool("slow"):
                reporter.heartbeat(1, "work")
                time.sleep(0.3)
            reporter.heartbeat(2, "work", {"tokens": 1})
            reporter.report("message", name="user", text="x", ts_ms=5)
            reporter.completed()
            monitor.answers[:] = [200]
            self.assertTrue(reporter.close(PATIENCE_S))
            events = [event for batch in monitor.batches for event in batch]
        self.assertEqual([event["kind"] for event in events], ["start", "tool_call", "heartbeat", "tool_result", "heartbeat", "message", "end"])
        times = [event["ts_ms"] for event in events]
        self.assertEqual(times.pop(5), 5)
        self.assertEqual(times, sorted(times))
        self.assertAlmostEqual(times[1], begin * 1000, delta=200)
        self.assertGreaterEqual(times[3] - times[1], 299)


class BadMonitors(unittest.TestCase):
    def test_nothing_acknowledged_is_lost_or_doubled_over_crashes_of_the_monitor(self):
        with Server(PROGRAM) as server:
            url = f"http://{server.host}"
            reporter = Reporter("survivor", server=url, interval_s=0)
            ended, looked = [], threading.Event()
            waiter = threading.Thread(target=lambda: ended.append(Monitor(url).wait("survivor", seen=lambda _: looked.set())))
            waiter.start()
            self.assertTrue(looked.wait(PATIENCE_S))
            for crash in range(3):
                for step in range(200):
                    reporter.state_change(f"{crash}-{step}")
                server.crash()
                reporter.state_change(f"{crash}-absent")
                server.start()
                self.assertTrue(reporter.flush(PATIENCE_S))
            reporter.completed()
            self.assertTrue(reporter.close(PATIENCE_S))
            waiter.join()
            self.assertEqual(ended[0]["lifecycle"], "completed")
            types = [event["type"] for event in Monitor(url).events("survivor", "state_change")]
            self.assertEqual(types, [f"{crash}-{step}" for crash in range(3) for step in [*range(200), "absent"]])
            self.assertEqual((reporter.dropped, reporter.rejected), (0, 0))

    def test_a_full_queue_gives_up_heartbeats_first_and_ends_never(self):
        with FalseMonitor(answers=[503]) as monitor:
            reporter = Reporter("full", server=monitor.url, queue_max=1000, interval_s=0)
            monitor.asked.wait(PATIENCE_S)
            for step in range(700):
                reporter.heartbeat(step, f"phase {step}")
                reporter.state_change(f"s{step}")
            self.assertGreater(reporter.dropped, 300)
            reporter.completed()
            for step in range(10_000):
                reporter.heartbeat(step, "after")
            monitor.answers[:] = [200]
            self.assertTrue(reporter.flush(PATIENCE_S))
            events = [event for batch in monitor.batches for event in batch]
            changes = [event["type"] for event in events if event["kind"] == "state_change"]
            self.assertEqual(changes, [f"s{step}" for step in range(700)])
            self.assertEqual(len([event for event in events if event["kind"] in ("start", "end")]), 2)
            told = [event["text"] for event in events if event["kind"] == "message"]
            self.assertRegex(" ".join(told), r"\d+ reports were dropped")
            for step in range(20_000):
                reporter.state_change("x" * 200, "y" * 60_000)
                if step > 300 and reporter.dropped > 1000:
                    break
            self.assertLess(reporter._bytes, 9 << 20)
            reporter.close(0)

    def test_refused_reports_are_sent_again_with_the_same_ids(self):
        for status in (401, 404, 429, 500, 503):
            with self.subTest(status), FalseMonitor(answers=[status, 200]) as monitor, \
                    unittest.mock.patch.object(watchdog_client, "_REFUSED_S", 0.01):
                reporter = Reporter("refused", server=monitor.url, interval_s=0)
                reporter.completed()
                self.assertTrue(reporter.close(PATIENCE_S))
                first, second = monitor.batches[0], monitor.batches[-1]
                self.assertEqual(first[0]["event_id"], second[0]["event_id"])
                self.assertEqual(reporter.rejected, 0)

    def test_a_report_that_is_too_large_or_malformed_is_found_and_left_out(self):
        with FalseMonitor(poison="bad") as monitor:
            for status in (400, 413, 422):
                monitor.poison_status = status
                monitor.batches.clear()
                reporter = Reporter("poison", server=monitor.url, interval_s=0)
                for step in range(100):
                    reporter.state_change("bad" if step == 37 else f"s{step}")
                self.assertTrue(reporter.close(PATIENCE_S))
                types = [event["type"] for batch in monitor.batches for event in batch if event["kind"] == "state_change"]
                self.assertEqual(types, [f"s{step}" for step in range(100) if step != 37])
                self.assertEqual(reporter.rejected, 1)

    def test_a_monitor_that_never_answers_or_is_not_there_costs_the_agent_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as mute:
            url = f"http://127.0.0.1:{mute.getsockname()[1]}"
            for server in (url, "http://127.0.0.1:1", "http://name.invalid", "nonsense://[", ""):
                reporter = Reporter("mute", server=server)
                begin = time.monotonic()
                for step in range(1000):
                    reporter.heartbeat(step, "work")
                reporter.completed()
                self.assertLess(time.monotonic() - begin, 5)
                self.assertEqual(reporter.close(0), server == "")

    def test_an_invalid_answer_is_not_an_acknowledgement(self):
        with FalseMonitor(answers=["garbage", "html", 200]) as monitor:
            reporter = Reporter("garbage", server=monitor.url, interval_s=0)
            reporter.completed()
            self.assertTrue(reporter.close(PATIENCE_S))
            self.assertEqual(monitor.batches[-1][-1]["kind"], "end")


class Documentation(WithMonitor):
    def test_the_example_of_the_documentation_runs(self):
        text = (ROOT / "docs" / "how-to" / "report-from-code.md").read_text()
        section = text[text.index("## Python"):]
        example = re.search(r"```python\n(.*?)```", section, re.S)[1]
        self.assertIn("watchdog_client", example)
        environment = {"PATH": "", "PYTHONPATH": str(CLIENT), "WATCHDOG_SERVER": self.url}
        prelude = "def reflect(step):\n    return {'step': step}\n"
        subprocess.run([sys.executable, "-c", prelude + example], env=environment, check=True)
        self.assertEqual(self.monitor.progress("my-run")["lifecycle"], "completed")

    def test_examples_of_kinds_of_programs_run(self):
        """Checks that each example completes a session, with all of its heartbeats and results."""
        def examples(file):
            return re.findall(r"```python\n(.*?)```", file.read_text(), re.S)
        asyncio_, handler = examples(ROOT / "docs" / "how-to" / "in-your-kind-of-program.md")
        (readme,) = examples(CLIENT / "README.md")
        run = "import asyncio\nasync def main():\n    await asyncio.gather(agent(), supervise())\nasyncio.run(main())"
        for session, code, counts in (("my-run", f"{asyncio_}\n{run}", (3, 3)), ("handler", f"{handler}\nhandler({{'id': 7}}, None)", (0, 1)),
                                      ("my-run", f"def search(query):\n    return query\n{readme}", (3, 3))):
            environment = {"PATH": "", "PYTHONPATH": str(CLIENT), "WATCHDOG_SERVER": self.url, "WATCHDOG_SESSION": session}
            subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, check=True)
            self.assertEqual(self.monitor.progress(session)["lifecycle"], "completed")
            kinds = [event["kind"] for event in self.monitor.events(session)]
            last = kinds[len(kinds) - 1 - kinds[::-1].index("start"):]
            self.assertEqual((last.count("heartbeat"), last.count("tool_result")), counts, code)

    def test_examples_of_pages_are_programs(self):
        for page in ("in-your-kind-of-program", "python-frameworks"):
            for code in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "how-to" / f"{page}.md").read_text(), re.S):
                compile(code, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                for words in re.findall(r"^from watchdog_client import (.*)$", code, re.M):
                    self.assertLessEqual(set(words.split(", ")), set(watchdog_client.__all__))


class Pytest(WithMonitor):
    def test_the_fixture_gives_each_test_a_session_and_fails_with_a_timeline(self):
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CLIENT), "WATCHDOG_SERVER": self.url}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_watchdog", "-p", "no:cacheprovider", str(HERE / "fixture_tests.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertIn("2 failed, 2 passed", done.stdout, done.stderr)
        self.assertIn("E           watchdog_client.WaitFailed: session test_it_fails-", re.sub(r"E +", "E           ", done.stdout))
        self.assertIn("end failed (error): RuntimeError: boom", done.stdout)
        self.assertIn("its process exited with 3, and the session has not ended", done.stdout)
        self.assertNotIn("_judge", done.stdout)  # Frames of the client are hidden.


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=1)
