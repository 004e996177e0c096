#!/usr/bin/env python3
"""`watchdog-monitor run`: what commands do, and what is told of them."""

import contextlib
import json
import os
import pathlib
import resource
import shlex
import signal
import socket
import subprocess
import sys
import unittest

from wrapped import PATIENCE_S, PROGRAM, Wrapped, environment
from server import Server, memory

MIB = 1 << 20
FOREVER = "[ -p forever ] || mkfifo forever; exec 3<>forever; while :; do read x <&3; done"  # signals are heard meanwhile


class Outcomes(Wrapped):
    def test_a_shell_loop_makes_progress_with_each_matching_line(self):
        script = "for i in 1 2 3; do echo step $i; echo noise; done; printf 'step last'"
        code, output, told = self.run_to_end("sh", "-c", script, options=["--state-change-on", "^step", "--task", "walk"])
        self.assertEqual((code, output), (0, b"step 1\nnoise\nstep 2\nnoise\nstep 3\nnoise\nstep last"))
        self.assertEqual((told["outputLines"], told["outputBytes"]), (6, len(output)))
        document = self.progress()
        self.assertEqual((self.state_changes(), document["agent"], document["task"]), (4, "sh", "walk"))
        self.assertEqual([e["data"] for e in self.events("state_change")], ["step 1", "step 2", "step 3", "step last"])
        self.assertEqual(self.outcome(), ("completed", "task_complete", None))
        counters = self.events("heartbeat")[-1]["counters"]
        self.assertEqual((counters["output_lines"], counters["output_bytes"]), (6, len(output)))

    def test_the_lines_of_a_key_are_not_told(self):
        lines = ["A%063d" % i for i in range(30)]
        key = "\n".join(["-----BEGIN RSA PRIVATE " + "KEY-----", *lines, "-----END RSA PRIVATE " + "KEY-----", "done", ""])
        (self.folder / "key").write_text(key)
        code, output, _ = self.run_to_end("sh", "-c", f"cat {self.folder / 'key'}; cat {self.folder / 'key'} >&2",
                                          options=["--state-change-on", "."])
        self.assertEqual((code, output.decode()), (0, key))
        told = [e["data"] for e in self.events("state_change")]
        self.assertEqual((len(told), told.count("done")), (66, 2))
        for line in lines:
            self.assertNotIn(line, str(told))
        stored = b"".join(file.read_bytes() for file in self.folder.rglob("*") if file.is_file() and file.name != "key")
        self.assertNotIn(lines[7].encode(), stored)
        self.assertIn(b"[redacted]", stored)

    def test_output_alone_is_not_a_state_change(self):
        self.run_to_end("sh", "-c", "echo much; echo more >&2")
        self.assertEqual(self.state_changes(), 0)
        self.assertEqual(self.events("heartbeat")[0]["source"], "sidecar")

    def test_make(self):
        (self.folder / "Makefile").write_text("all: a b\na b:\n\techo building $@\nbroken:\n\tfalse\n")
        code, _, _ = self.run_to_end("make", options=["--state-change-on", "^building"])
        self.assertEqual((code, self.state_changes(), self.outcome()[0]), (0, 2, "completed"))
        code, _, _ = self.run_to_end("make", "broken", session="broken")
        self.assertEqual((code, self.outcome("broken")), (2, ("failed", "process_exited", "exit code 2")))

    def test_a_python_script_that_raises(self):
        code, _, _ = self.run_to_end("/usr/bin/python3", "-c", "raise SystemExit('no')")
        self.assertEqual((code, self.outcome()), (1, ("failed", "process_exited", "exit code 1")))

    def test_npm_install_of_a_local_folder(self):
        for name, more in (("part", {}), ("whole", {"dependencies": {"part": "file:../part"}})):
            (self.folder / name).mkdir()
            (self.folder / name / "package.json").write_text(json.dumps({"name": name, "version": "1.0.0"} | more))
        quiet = {"npm_config_cache": str(self.folder / "cache"), "npm_config_update_notifier": "false"}
        code, output, _ = self.run_to_end("npm", "install", "--offline", "--no-audit", "--no-fund",
                                          options=["--state-change-on", "^added"], cwd=self.folder / "whole", env=environment(quiet))
        self.assertEqual(code, 0, output)
        self.assertTrue((self.folder / "whole" / "node_modules" / "part").exists())
        self.assertEqual((self.state_changes(), self.outcome()[0]), (1, "completed"))

    def test_a_signal_that_ended_it(self):
        code, _, told = self.run_to_end("sh", "-c", "kill -KILL $$")
        self.assertEqual((code, told["exitCode"], told["signal"]), (137, None, 9))
        self.assertEqual(self.outcome(), ("failed", "process_exited", "signal 9 (Killed)"))

    def test_a_command_that_cannot_run_is_reported_as_shells_do(self):
        code, _, _ = self.run_to_end("no-such-command")
        self.assertEqual(code, 127)
        self.assertIn("cannot run no-such-command: No such file", self.errors)
        plain = self.folder / "plain"
        plain.write_text("no program")
        code, _, _ = self.run_to_end(plain, session="plain")
        self.assertEqual((code, self.outcome("plain")[0]), (126, "failed"))

    def test_a_session_may_be_run_again(self):
        for code, attempt in ((3, 1), (0, 2)):
            self.run_to_end("sh", "-c", f"exit {code}")
            self.assertEqual(self.progress()["attempt"], attempt)
        self.assertEqual(self.outcome()[0], "completed")

    def test_it_is_used_as_its_help_says(self):
        for words, code in (([], 2), (["--session", "a b", "--", "true"], 2), (["--nonsense", "--", "true"], 2),
                            (["--state-change-on", "(", "--", "true"], 2), (["--server", "x", "--db", "y", "--", "true"], 2),
                            (["--server", "nonsense", "--", "true"], 2), (["--name", "x" * 257, "--", "true"], 2)):
            done = subprocess.run([PROGRAM, "run", *words], env=environment(), capture_output=True, timeout=PATIENCE_S)
            self.assertEqual(done.returncode, code, words)
        text = subprocess.run([PROGRAM, "run", "--help"], capture_output=True, text=True, timeout=PATIENCE_S).stdout
        for word in ("128+n", "127", "126", "WATCHDOG_SESSION", "WATCHDOG_DB", "WATCHDOG_SERVER", "exitCode"):
            self.assertIn(word, text)


class Output(Wrapped):
    def test_binary_passes_as_it_is(self):
        data = os.urandom(3 * MIB)
        (self.folder / "data").write_bytes(data)
        code, output, told = self.run_to_end("cat", "data", options=["--state-change-on", "x", "--json-events"])
        self.assertEqual((code, output == data, told["outputLines"]), (0, True, data.count(b"\n")))

    def test_input_is_the_commands_own(self):
        code, output, _ = self.run_to_end("tr", "a-z", "A-Z", stdin=self.file_with(b"from a file"))
        self.assertEqual((code, output), (0, b"FROM A FILE"))

    def file_with(self, data):
        (self.folder / "input").write_bytes(data)
        file = open(self.folder / "input", "rb")
        self.addCleanup(file.close)
        return file

    def test_both_streams_stay_apart(self):
        code, output, _ = self.run_to_end("sh", "-c", "echo out; echo err >&2")
        self.assertEqual(output, b"out\n")
        self.assertEqual(self.errors.splitlines()[0], "err")

    def test_it_may_close_its_output_and_go_on(self):
        os.mkfifo(self.folder / "go")
        process = self.start("sh", "-c", "exec >&- 2>&-; read line <go; exit 7", stdout=subprocess.PIPE)
        self.assertEqual(process.poll(), None)
        (self.folder / "go").write_text("now\n")
        self.assertEqual(process.wait(PATIENCE_S), 7)
        self.assertEqual(self.outcome()[2], "exit code 7")

    def test_it_learns_that_nobody_reads_any_more(self):
        process = self.start("yes", stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.read(2), b"y\n")
        process.stdout.close()
        self.assertEqual(process.wait(PATIENCE_S), 128 + signal.SIGPIPE)

    def test_a_line_without_end_takes_no_memory(self):
        size = 300 * MIB
        code, _, told = self.run_to_end("head", "-c", size, "/dev/zero", options=["--state-change-on", "x", "--json-events"],
                                        stdout=subprocess.DEVNULL)
        self.assertEqual((code, told["outputBytes"], told["outputLines"]), (0, size, 0))
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, memory(100), "KiB, of any child so far")

    def test_a_million_recognised_lines_do_not_fill_the_database(self):
        lines = 100_000 if os.environ.get("WATCHDOG_SANITIZE") else 1_000_000  # ThreadSanitizer takes a minute for a million
        code, output, _ = self.run_to_end("seq", lines, options=["--state-change-on", "."])
        self.assertEqual((code, output.count(b"\n")), (0, lines))
        self.assertTrue(0 < self.state_changes() < lines / 10)

    def test_a_process_that_still_holds_the_output_is_named(self):
        # Each is waited for until it is what it will be.
        script = ("sleep 1000 & one=$!; sleep 1000 >/dev/null 2>&1 & two=$!; "
                  "for pid in $one $two; do until grep -q sleep /proc/$pid/comm; do :; done; echo $pid; done")
        process = self.start("sh", "-c", script, options=["--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.wait(PATIENCE_S), 0)
        holder, quiet = (int(process.stdout.readline()) for _ in range(2))
        told = json.loads(process.stderr.readline())
        for pid in (holder, quiet):
            os.kill(pid, signal.SIGKILL)  # it lived on
        self.assertEqual((process.stdout.read(), process.stderr.read()), (b"", b""), "its reader ends with it")
        self.assertEqual(told["holders"], [f"sleep ({holder})"])
        self.assertIn(f"sleep ({holder})", self.events("message")[-1]["text"])
        self.assertEqual(self.outcome()[0], "completed")

    def logged(self, name, filter, lines=300):
        """A script that logs by a filter, as many do, and says last why it failed."""
        script = f"exec > >({filter}) 2>&1\nseq {lines}\necho FAILED: test_x\nexit 3\n"
        (self.folder / name).write_text(script)
        return "".join(f"{line}\n" for line in range(1, lines + 1)) + "FAILED: test_x\n"

    def test_no_line_is_lost_behind_a_filter(self):
        log = self.folder / "log"
        right = self.logged("script", "tee -a log")
        for run in range(1_000 if os.environ.get("WATCHDOG_FULL") else 40):
            log.unlink(missing_ok=True)
            process = self.start("bash", "script", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            output = process.communicate(timeout=PATIENCE_S)[0].decode()
            self.assertEqual((process.returncode, output, log.read_text()), (3, right, right), run)

    def test_no_line_is_lost_behind_a_slow_filter(self):
        for name, filter in (("stamps", "while read line; do echo $line; sleep 0.005; done"), ("sleeps", "sleep 2; tee log"),
                             ("sleeps in between", "read line; echo $line; sleep 2; cat")):
            with self.subTest(name):
                right = self.logged("script", filter, 100)
                code, output, told = self.run_to_end("bash", "script")
                self.assertEqual((code, output.decode()), (3, right))
                if name == "stamps":
                    self.assertEqual(told["outputBytes"], len(right))

    def test_the_output_of_a_process_that_goes_on_is_passed_on_to_its_end(self):
        os.mkfifo(self.folder / "go")
        process = self.start("bash", "-c", "echo early; { read x <go; seq 100000; echo late >&2; echo over; } | tee log &",
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.wait(PATIENCE_S), 0)
        self.assertEqual(self.outcome()[0], "completed")
        (self.folder / "go").write_text("now\n")
        output, errors = process.communicate(timeout=PATIENCE_S)
        right = "".join(f"{line}\n" for line in range(1, 100_001)) + "over\n"
        self.assertEqual((output.decode(), errors), ("early\n" + right, b"late\n"))
        self.assertEqual((self.folder / "log").read_text(), right)

    def test_a_process_that_goes_on_learns_that_nobody_reads_any_more(self):
        os.mkfifo(self.folder / "go")
        process = self.start("bash", "-c", "{ read x <go; exec yes; } & echo $!", stdout=subprocess.PIPE)
        writer = int(process.stdout.readline())
        process.wait(PATIENCE_S)
        process.stdout.close()
        (self.folder / "go").write_text("now\n")
        self.until("it has ended", lambda: not pathlib.Path(f"/proc/{writer}").exists())

    def test_a_process_that_never_is_quiet_does_not_keep_its_caller(self):
        with open("/dev/null", "wb") as nowhere:
            process = self.start("sh", "-c", "yes & echo $! >pid", stdout=nowhere)
            self.assertEqual(process.wait(PATIENCE_S), 0)
        os.kill(int((self.folder / "pid").read_text()), signal.SIGKILL)

    def test_output_that_cannot_be_written_is_an_error(self):
        for lines in (1, 100_000):
            for stream, words in (("stdout", "output"), ("stderr", "error")):
                with self.subTest(lines=lines, stream=stream), open("/dev/full", "wb") as full:
                    other = {"stdout": "stderr", "stderr": "stdout"}[stream]
                    session = f"{stream}{lines}"
                    script = f"exec seq {lines}" + (" >&2" if stream == "stderr" else "")
                    process = self.start("sh", "-c", script, session=session, **{stream: full, other: subprocess.PIPE})
                    text = process.communicate(timeout=PATIENCE_S)[0 if other == "stdout" else 1].decode()
                    self.assertEqual(process.returncode, 1)
                    said = f"the command's standard {words} cannot be written: No space left on device"
                    if other == "stderr":
                        self.assertIn(said, text)
                    self.assertEqual(self.outcome(session), ("failed", "process_exited", said))

    def test_files_that_the_caller_closed_are_closed(self):
        show = "for file in 0 1 2; do test -e /proc/self/fd/$file && printf $file >&5; done"
        for closed, right in (("<&-", "12"), (">&-", "02"), ("2>&-", "01"), ("<&- >&- 2>&-", "")):
            words = " ".join(map(shlex.quote, self.words("sh", "-c", show)))
            with self.subTest(closed):
                (self.folder / "open").write_text("")
                subprocess.run(["sh", "-c", f"exec 5>open; {words} {closed}"], cwd=self.folder, env=environment(), timeout=PATIENCE_S)
                self.assertEqual((self.folder / "open").read_text(), right)
        words = " ".join(map(shlex.quote, self.words("sh", "-c", "echo word")))
        self.assertNotEqual(subprocess.run(["sh", "-c", f"{words} >&- 2>&-"], env=environment(), timeout=PATIENCE_S).returncode, 0)

    def test_signals_that_the_caller_ignores_stay_ignored(self):
        numbers = {signal.SIGPIPE, signal.SIGXFSZ}
        mask = sum(1 << (number - 1) for number in numbers)
        for ignores in (False, True):
            set_up = lambda how=signal.SIG_IGN if ignores else signal.SIG_DFL: [signal.signal(number, how) for number in numbers]
            _, output, _ = self.run_to_end("grep", "SigIgn", "/proc/self/status", restore_signals=False, preexec_fn=set_up)
            self.assertEqual(int(output.split()[1], 16) & mask, mask if ignores else 0, ignores)

    def test_lines_may_be_events(self):
        lines = ['{"kind":"state_change","type":"plan","data":{"steps":2}}', '{"kind":"tool_call","name":"ls","call_id":"1"}',
                 '{"kind":"nonsense"}', '{"kind":"start"}', "{broken", '{"kind":"end","outcome":"incomplete","reason":"tired"}']
        (self.folder / "lines").write_text("\n".join(lines) + "\n")
        code, output, _ = self.run_to_end("cat", "lines", options=["--json-events"])
        self.assertEqual((code, output.decode().splitlines()), (0, lines))
        kinds = [e["kind"] for e in self.events() if e["kind"] != "heartbeat" and not e.get("late")]
        self.assertEqual(kinds, ["start", "state_change", "tool_call", "end"])
        self.assertEqual(self.outcome(), ("incomplete", "tired", None))

    def test_an_agents_stream_is_read_as_it_passes(self):
        answer = {"type": "assistant", "parent_tool_use_id": None, "session_id": "c", "uuid": "2",
                  "message": {"id": "m", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]}}
        result = {"type": "user", "parent_tool_use_id": None, "session_id": "c", "uuid": "3",
                  "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a"}]}}
        last = {"type": "result", "subtype": "error_max_turns", "num_turns": 1, "session_id": "c"}
        begin = {"type": "system", "subtype": "init", "tools": [], "session_id": "c", "uuid": "1"}
        (self.folder / "lines").write_text("".join(json.dumps(one) + "\n" for one in (begin, answer, result, last)))
        code, output, _ = self.run_to_end("sh", "-c", "cat lines; exit 1")
        self.assertEqual((code, output), (1, (self.folder / "lines").read_bytes()))
        kinds = [e["kind"] for e in self.events() if e["kind"] != "heartbeat" and not e.get("late")]
        self.assertEqual(kinds, ["start", "tool_call", "tool_result", "idle", "end"])
        self.assertEqual(self.outcome(), ("incomplete", "max_iterations_reached", None))

    def test_progress_on_the_icon_is_a_state_change_when_it_changes(self):
        script = "for p in 10 10 50; do printf '\\033]9;4;1;%s\\007' $p; read x; done; printf '\\033]9;4;0\\033\\\\'"
        process = self.start("bash", "-c", script, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(3):
            self.read_until(process.stdout.fileno(), b"\007")
            process.stdin.write(b"\n")
            process.stdin.flush()
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual([(e["type"], e["data"]) for e in self.events("state_change")],
                         [("progress", {"state": "normal", "percent": 10}), ("progress", {"state": "normal", "percent": 50}),
                          ("progress", {"state": "none", "percent": 0})])


class Stopping(Wrapped):
    def ready(self, script, **more):
        process = self.start("bash", "-c", script, stdout=subprocess.PIPE, **more)
        self.read_until(process.stdout.fileno(), b"ready\n")
        return process

    def cancel(self):
        cancelled = lambda: self.ask("cancel", "s", "--reason", "enough")[0] == 0
        self.until("its session is there", cancelled)

    def test_signals_are_passed_on(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            process = self.ready("trap 'exit 42' " + signal.Signals(number).name[3:] + "; echo ready; " + FOREVER)
            process.send_signal(number)
            self.assertEqual(process.wait(PATIENCE_S), 42, number)

    def test_a_signal_that_the_command_dies_of(self):
        process = self.ready("echo ready; exec sleep 1000")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 143)
        self.assertEqual(self.outcome()[2], "signal 15 (Terminated)")

    def test_a_command_that_ignores_signals_goes_on(self):
        os.mkfifo(self.folder / "go")
        process = self.ready("trap '' TERM INT HUP; echo ready; read line <go; exit 5")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process.send_signal(number)
        (self.folder / "go").write_text("now\n")
        self.assertEqual(process.wait(PATIENCE_S), 5)

    def test_a_cancel_reaches_it(self):
        process = self.ready("trap 'echo bye; exit 9' TERM; echo ready; " + FOREVER)
        self.cancel()
        self.assertEqual(process.wait(PATIENCE_S), 9)
        self.assertEqual(process.stdout.read(), b"bye\n")
        self.assertEqual(self.outcome(), ("cancelled", "cancelled: user", "enough"))

    def test_a_cancel_ends_what_ignores_it_and_all_that_it_started(self):
        process = self.ready("trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >daemon; while :; do sleep 1000; done' & "
                             "until [ -s daemon ]; do :; done; echo ready; " + FOREVER)
        daemon = int((self.folder / "daemon").read_text())
        self.cancel()
        self.assertEqual(process.wait(PATIENCE_S), 137)
        self.assertEqual(self.outcome()[0], "cancelled")
        self.assertFalse(pathlib.Path(f"/proc/{daemon}").exists())

    def test_a_wrapper_that_is_killed_hangs_up(self):
        process = self.ready("trap 'echo told >hup; exit' HUP; echo ready; " + FOREVER)
        process.kill()
        self.until("the command is told", lambda: (self.folder / "hup").exists())


class Reporting(Wrapped):
    def test_the_command_finds_its_session_in_its_environment(self):
        show = "echo ${WATCHDOG_SESSION-none} ${WATCHDOG_DB-none} ${WATCHDOG_SERVER-none}"
        _, output, _ = self.run_to_end("sh", "-c", show, env=environment({"WATCHDOG_SESSION": "outer"}))
        self.assertEqual(output.decode().split(), ["s", str(self.database), "none"])
        self.assertEqual(self.progress()["parentSessionId"], "outer")
        _, output, _ = self.run_to_end("sh", "-c", show, options=["--server", "http://127.0.0.1:1"],
                                       env=environment({"WATCHDOG_DB": "x"}))
        self.assertEqual(output.decode().split(), ["s", "none", "http://127.0.0.1:1"])

    def test_a_client_inside_reports_to_the_same_session(self):
        with Server(PROGRAM) as server:
            url = f"http://{server.host}"
            script = """if True:
                import json, os, urllib.request
                base = os.environ["WATCHDOG_SERVER"] + "/api/autonomous/sessions/" + os.environ["WATCHDOG_SESSION"]
                body = json.dumps({"kind": "state_change", "type": "inside"}).encode()
                print(urllib.request.urlopen(base + "/events", body).status)"""
            code, output, _ = self.run_to_end("/usr/bin/python3", "-c", script, options=["--server", url, "--name", "mine"])
            self.assertEqual((code, output), (0, b"200\n"))
            self.database = pathlib.Path(server.folder.name, "w.db")
            self.assertEqual((self.progress()["agent"], self.outcome()[0]), ("mine", "completed"))
            self.assertEqual([e["type"] for e in self.events("state_change")], ["inside"])

    def test_a_monitor_may_restart_meanwhile_and_cancel(self):
        os.mkfifo(self.folder / "go")
        with Server(PROGRAM) as server:
            process = self.start("bash", "-c", "echo step 1; read x <go; echo step 2; trap 'exit 6' TERM; echo ready; "
                                 + FOREVER, stdout=subprocess.PIPE,
                                 options=["--server", f"http://{server.host}", "--state-change-on", "^step"])
            self.read_until(process.stdout.fileno(), b"step 1\n")
            server.crash()
            (self.folder / "go").write_text("\n")
            self.read_until(process.stdout.fileno(), b"ready\n")
            server.start()
            self.database = pathlib.Path(server.folder.name, "w.db")
            self.until("both are told", lambda: len(self.events("state_change")) == 2)
            token = pathlib.Path(server.folder.name, "w.db-token")
            subprocess.run([PROGRAM, "cancel", "s", "--server", f"http://{server.host}", "--token-file", token],
                           env=environment(), check=True, capture_output=True, timeout=PATIENCE_S)
            self.assertEqual(process.wait(PATIENCE_S), 6)
            self.assertEqual(self.outcome(), ("cancelled", "cancelled: user", None))
            self.assertEqual([e["data"] for e in self.events("state_change")], ["step 1", "step 2"])

    def test_without_a_monitor_the_command_runs_all_the_same(self):
        code, output, _ = self.run_to_end("sh", "-c", "echo done; exit 4", options=["--server", "http://127.0.0.1:1"])
        self.assertEqual((code, output), (4, b"done\n"))
        self.assertIn("is not reported", self.errors)

    def test_a_monitor_that_does_not_answer_holds_nobody(self):
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            code, output, _ = self.run_to_end("sh", "-c", "echo done; exit 4", options=["--server", url])
        self.assertEqual((code, output), (4, b"done\n"))
        self.assertIn("does not answer", self.errors)

    def test_without_a_database_the_command_runs_all_the_same(self):
        code, output, _ = self.run_to_end("sh", "-c", "echo done; exit 4", options=["--db", "/proc/none/w.db"])
        self.assertEqual((code, output), (4, b"done\n"))
        self.assertIn("cannot be kept", self.errors)


if __name__ == "__main__":
    unittest.main(verbosity=int(os.environ.get("VERBOSE", "1")), argv=sys.argv)
