#!/usr/bin/env python3
"""`watchdog-monitor run` at a terminal: commands behave as they do without it."""

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
import unittest

from wrapped import PATIENCE_S, PROGRAM, Wrapped, environment


class AtTerminal(Wrapped):
    def setUp(self):
        super().setUp()
        self.seat = None

    def sit(self, words):
        """Starts a program at a new terminal, as its session's first."""
        self.pid, self.seat = pty.fork()
        if self.pid == 0:
            os.chdir(self.folder)
            os.execvpe(words[0], words, environment({"TERM": "xterm", "WATCHDOG_DB": str(self.database), "HISTFILE": ""}))
        seat, pid = self.seat, self.pid
        self.unread.pop(seat, None)
        self.addCleanup(os.close, seat)
        self.addCleanup(self.clear, pid)

    @staticmethod
    def clear(pid):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def type(self, text):
        os.write(self.seat, text.encode())

    def sees(self, text):
        return self.read_until(self.seat, text.encode())

    def resize(self, rows, columns):
        fcntl.ioctl(self.seat, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def is_raw(self):
        return not termios.tcgetattr(self.seat)[3] & termios.ICANON

    def end(self):
        """What still comes, and the exit code."""
        with contextlib.suppress(OSError):
            while os.read(self.seat, 65536):
                pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Alone(AtTerminal):
    def test_all_three_files_are_a_terminal_of_the_same_size(self):
        script = """if True:
            import os, signal, sys
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
            print(*map(os.isatty, range(3)), flush=True)
            signal.sigwait({signal.SIGWINCH})  # `input` would miss one that comes just before it reads
            print(*os.get_terminal_size(), flush=True)
            print("got", input())
            sys.exit(5)"""
        self.sit(self.words("/usr/bin/python3", "-c", script))
        self.sees("True True True\r\n")
        self.resize(33, 77)
        self.sees("77 33\r\n")
        self.type("hello\r")
        self.sees("hello\r\ngot hello\r\n")
        self.assertEqual(self.end(), 5)
        self.assertEqual(self.outcome(), ("failed", "process_exited", "exit code 5"))

    def test_redirected_output_is_not_a_terminal(self):
        self.sit(["bash", "-c", f"{PROGRAM} run -- sh -c 'test -t 0 && ! test -t 1 && test -t 2 && echo right' >out; cat out; tty"])
        self.sees("right\r\n")
        self.sees("/dev/pts/")
        self.assertEqual(self.end(), 0)

    def test_the_terminal_is_put_back(self):
        for script, number, code in (("echo ready; read x", None, 0), ("echo ready; exec sleep 1000", signal.SIGTERM, 143),
                                     ("echo ready; exec sleep 1000", signal.SIGHUP, 129)):
            self.sit(self.words("sh", "-c", script))
            self.sees("ready\r\n")
            self.assertTrue(self.is_raw())
            os.kill(self.pid, number) if number else self.type("\r")
            # Its settings stay as long as this end is open.
            self.assertEqual((self.end(), self.is_raw()), (code, False), script)

    def test_the_terminal_is_put_back_even_if_the_wrapper_is_killed(self):
        self.sit(self.words("bash", "-c", "mkfifo f; exec 3<>f; trap 'echo told >hup; exit' HUP; echo ready; while :; do read x <&3; done"))
        self.sees("ready\r\n")
        os.kill(self.pid, signal.SIGKILL)
        self.until("it is put back", lambda: not self.is_raw())
        self.until("the command is told", lambda: (self.folder / "hup").exists())

    def test_a_typed_interrupt_reaches_the_command_alone(self):
        self.sit(self.words("bash", "-c", "trap 'echo caught; exit 3' INT; echo ready; read x"))
        self.sees("ready\r\n")
        self.type("\x03")
        self.sees("caught\r\n")
        self.assertEqual(self.end(), 3)

    def test_a_typed_stop_does_nothing_where_no_shell_could_let_it_go_on(self):
        self.sit(self.words("bash", "-c", "echo ready; read x; echo got $x"))
        self.sees("ready\r\n")
        self.type("\x1aword\r")
        self.sees("got word\r\n")
        self.assertEqual(self.end(), 0)

    def test_an_interrupt_that_ends_it(self):
        self.sit(self.words("sh", "-c", "echo ready; exec sleep 1000"))
        self.sees("ready\r\n")
        self.type("\x03")
        self.assertEqual(self.end(), 130)
        self.assertEqual(self.outcome()[2], "signal 2 (Interrupt)")

    def test_the_end_of_input_may_be_typed(self):
        self.sit(self.words("sh", "-c", "echo ready; cat; echo over"))
        self.sees("ready\r\n")
        self.type("word\r\x04")
        self.sees("word\r\nword\r\nover\r\n")
        self.assertEqual(self.end(), 0)

    def test_a_line_editor(self):
        self.sit(self.words("ed", "-p", "> ", "notes"))
        self.sees("> ")
        for line in ("a", "first line", ".", "w"):
            self.type(line + "\r")
        self.sees("11\r\n")
        self.type("q\r")
        self.assertEqual((self.end(), (self.folder / "notes").read_text()), (0, "first line\n"))
        self.assertEqual(self.outcome()[0], "completed")

    def test_a_screen_editor(self):
        self.sit(self.words("vi", "-u", "NONE", "notes"))
        self.sees("notes")
        self.type("ifrom the screen\x1b:wq\r")
        self.assertEqual((self.end(), (self.folder / "notes").read_text()), (0, "from the screen\n"))
        self.assertEqual(self.outcome()[0], "completed")


class InShell(AtTerminal):
    """Jobs of an interactive shell."""

    def setUp(self):
        super().setUp()
        self.sit(["bash", "--norc", "--noediting", "-i"])
        self.type("PS1='$((1+1))> '\r")
        self.sees("2> ")

    def wrapped(self, script):
        self.type(f"{PROGRAM} run --session s -- {script}\r")

    def test_a_job_stops_and_goes_on(self):
        self.wrapped("bash -c 'echo rea''dy; read a; echo got $a; exit 4'")
        self.sees("ready\r\n")
        self.type("\x1a")
        self.sees("Stopped")
        self.sees("2> ")
        self.assertFalse(self.is_raw())
        self.type("echo shell $((20+1))\r")
        self.sees("shell 21\r\n")
        self.type("fg\r")
        self.until("it has the terminal again", self.is_raw)
        self.type("word\r")
        self.sees("got word\r\n")
        self.sees("2> ")
        self.type("echo code $?\r")
        self.sees("code 4\r\n")

    def test_a_job_in_the_background_does_not_take_the_terminal(self):
        self.wrapped("sh -c 'echo rea''dy; exit 4' & wait $!; echo code $?")
        self.sees("code 4\r\n")
        self.assertFalse(self.is_raw())

    def test_a_job_may_be_called_to_the_front(self):
        self.wrapped("bash -c 'echo rea''dy; read a; echo got $a' &")
        self.sees("ready")
        self.type("fg\r")
        self.until("it has the terminal", self.is_raw)
        self.type("word\r")
        self.sees("got word\r\n")

    def test_fg_brings_a_job_lines_and_an_end_of_input(self):
        # While it begins, the shell's line editor has the terminal.
        self.sit(["bash", "--norc", "-i"])
        self.type("PS1='$((1+1))> '\r")
        self.sees("2> ")
        self.wrapped("sh -c 'echo rea''dy; cat; echo ov''er' &")
        self.sees("ready")
        self.type("fg\r")
        self.until("it has the terminal", self.is_raw)
        self.until("the job has it", lambda: os.tcgetpgrp(self.seat) != self.pid)
        self.type("two\r")
        self.sees("two\r\ntwo\r\n")
        self.type("\x04")
        self.sees("over\r\n")

    def test_lines_of_a_pipeline_begin_at_the_left(self):
        for more in ("| cat", "2>&1 | cat", "2> >(cat)", "| cat; echo end"):
            self.wrapped(f"sh -c 'seq 3; exec seq 4 6 >&2' {more}")
            numbers = []
            while len(numbers) < 6:  # two programs write, so that lines may mix; the prompt may come before the last ones
                line = re.fullmatch(rb"(?:2> )?([1-6])\r\n", self.sees("\n"))
                numbers += [line[1]] if line else []
            self.assertEqual(sorted(numbers, key=lambda number: number > b"3"), [b"1", b"2", b"3", b"4", b"5", b"6"], more)
            self.type("echo ma''rk\r")
            self.sees("mark\r\n")

    def test_a_reader_of_the_terminal_in_a_pipeline_gets_all_keys(self):
        reader = "while read line; do echo got $line; done </dev/tty"
        self.type(f"{PROGRAM} run --session s -- sh -c 'echo rea''dy >&2; exec sleep 1000' | sh -c '{reader}'\r")
        self.sees("ready\r\n")
        for number in range(20):
            self.type(f"word{number}\r")
            self.sees(f"got word{number}\r\n")
        self.assertFalse(self.is_raw())
        self.type("\x03")
        self.sees("2> ")

    def test_a_command_in_a_pipeline_reads_the_terminal_itself(self):
        self.wrapped("bash -c 'test -t 0 && test -t 2 && echo rea''dy >&2; read -p \"na\"me: a; echo got $a; stty size <&2' | cat")
        self.sees("ready\r\n")
        self.sees("name:")
        self.resize(33, 77)
        self.type("word\r")
        self.sees("got word\r\n33 77\r\n")
        self.sees("2> ")

    def test_an_interrupt_in_a_pipeline(self):
        self.wrapped("bash -c 'echo rea''dy >&2; exec sleep 1000' | cat")
        self.sees("ready\r\n")
        self.type("\x03")
        self.sees("2> ")
        # The terminal sends it to the whole job.
        self.type("echo codes ${PIPESTATUS[*]}\r")
        self.sees("codes 130 130\r\n")


if __name__ == "__main__":
    unittest.main(verbosity=int(os.environ.get("VERBOSE", "1")), argv=sys.argv)
