"""Commands that run under the wrapper, for its tests."""

import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
PATIENCE_S = float(os.environ.get("PATIENCE_S", "60"))


def environment(more=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("WATCHDOG_", "OPENAI_"))}
    return clean | {"LC_ALL": "C.UTF-8"} | (more or {})


class Wrapped(unittest.TestCase):
    """A folder with a database of its own for each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.database = self.folder / "w.db"
        self.unread = {}  # Came out of a file, and was not asked for yet.

    def words(self, *command, options=(), session="s"):
        where = () if {"--server", "--db"} & set(options) else ("--db", self.database)
        return [PROGRAM, "run", "--session", session, *map(str, where), *map(str, options), "--", *map(str, command)]

    def start(self, *command, options=(), session="s", **more):
        more = {"stdin": subprocess.DEVNULL, "env": environment(), "cwd": self.folder} | more
        process = subprocess.Popen(self.words(*command, options=options, session=session), **more)
        self.addCleanup(self.finish, process)
        return process

    @staticmethod
    def finish(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for file in (process.stdin, process.stdout, process.stderr):
            if file:
                file.close()

    def run_to_end(self, *command, options=(), session="s", **more):
        """Exit code, output and what is told of its end by --json."""
        more = {"stdout": subprocess.PIPE} | more
        process = self.start(*command, options=["--json", *options], session=session, stderr=subprocess.PIPE, **more)
        output, errors = process.communicate(timeout=PATIENCE_S)
        self.errors = errors.decode(errors="replace")
        told = json.loads(self.errors.splitlines()[-1])
        self.assertEqual(told["status"], process.returncode)
        return process.returncode, output, told

    def ask(self, *words):
        done = subprocess.run([PROGRAM, *map(str, words), "--db", self.database, "--json"], env=environment(),
                              capture_output=True, text=True, timeout=PATIENCE_S)
        return done.returncode, done.stdout

    def progress(self, session="s"):
        code, text = self.ask("status", session)
        return json.loads(text) if code == 0 else None

    def outcome(self, session="s"):
        end = self.progress(session)["outcome"]
        return end["kind"], ": ".join(filter(None, (end["reason"], end["subject"]))), end["error"]

    def state_changes(self):
        return self.progress()["progress"]["stateChanges"]

    def events(self, kind=None, session="s"):
        _, text = self.ask("events", session, "--all", *(("--kind", kind) if kind else ()))
        return [json.loads(line) for line in text.splitlines()]

    def until(self, what, holds):
        deadline = time.monotonic() + PATIENCE_S
        while not (value := holds()):
            self.assertLess(time.monotonic(), deadline, what)
        return value

    def read_until(self, number, wanted):
        """What comes out of a file up to this text, and with it."""
        got, deadline = self.unread.pop(number, b""), time.monotonic() + PATIENCE_S
        while wanted not in got:
            ready, _, _ = select.select([number], [], [], max(0, deadline - time.monotonic()))
            try:
                piece = os.read(number, 65536) if ready else b""
            except OSError:  # a terminal that all have left
                piece = b""
            self.assertTrue(piece, f"no {wanted!r} came, but {got!r}")
            got += piece
        end = got.index(wanted) + len(wanted)
        self.unread[number] = got[end:]
        return got[:end]
