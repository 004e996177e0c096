#!/usr/bin/python3
"""This version fits what was released before, and what was released before fits this version.

Usage: compatible_test.py BUILD
       compatible_test.py --record FOLDER    what tests/data/released/VERSION keeps of the C library of this source

abidiff compares the C interface with that of each released version. With WATCHDOG_FULL=1 the library of that version,
compiled from its revision, also writes into a file that this version made. It compiles for a minute.
"""

import http.client
import json
import os
import pathlib
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
RELEASED = SOURCE / "tests/data/released"
HEADER = SOURCE / "libwatchdog/include/watchdog.h"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests/e2e"))

from server import Server  # noqa: E402

API = "/api/autonomous"
# The versions whose C interface was recorded on this kind of processor.
VERSIONS = sorted(path for path in RELEASED.iterdir() if (path / f"libwatchdog-{platform.machine()}.abi").exists())
CONFLICTING, CHANGED = 8, 4  # bits of what abidiff exits with


def run(*words, **more):
    return subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, check=False, **more)


def out(*words, **more):
    done = run(*words, **more)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))} exited with {done.returncode}:\n{done.stdout}")
    return done.stdout


def described_interface(folder):
    """The C interface alone as a library with debugging information: a second to compile. What it calls is left undefined."""
    library, description = folder / "interface.so", folder / "interface.abi"
    out(os.environ.get("CXX", "c++"), "-std=c++20", "-g", "-O0", "-fPIC", "-shared", "-I", "libwatchdog/include", "-I", "libwatchdog/src",
        "-Wl,--version-script=libwatchdog/watchdog.map", "libwatchdog/src/report/watchdog.cpp", "-o", library, cwd=SOURCE)
    out("abidw", "--headers-dir", "libwatchdog/include", "--drop-private-types", "--exported-interfaces-only", "--no-comp-dir-path", "--no-corpus-path",
        "--no-show-locs", "--no-elf-needed", "--out-file", description, library, cwd=SOURCE)
    return description


def record(folder):
    with tempfile.TemporaryDirectory() as work:
        shutil.copyfile(described_interface(pathlib.Path(work)), folder / f"libwatchdog-{platform.machine()}.abi")
    shutil.copyfile(HEADER, folder / "watchdog.h")


def constants(header):
    """The numbers that a program was compiled with."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    return dict(re.findall(r"\b(WATCHDOG_\w+) (?:= )?(-?\w+)(?=[,\s}])", text))


class Interface(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.now = described_interface(pathlib.Path(cls.folder.name))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def compare(self, was):
        return run("abidiff", "--no-added-syms", was, self.now)

    def changed(self, was, old, new):
        text = was.read_text()
        self.assertRegex(text, old)
        file = pathlib.Path(self.folder.name, "changed.abi")
        file.write_text(re.sub(old, new, text))
        return self.compare(file).returncode

    def test_each_released_function_is_as_it_was(self):
        self.assertTrue(VERSIONS)
        for version in VERSIONS:
            with self.subTest(version=version.name):
                done = self.compare(version / f"libwatchdog-{platform.machine()}.abi")
                self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_difference_would_be_noticed(self):
        was = VERSIONS[-1] / f"libwatchdog-{platform.machine()}.abi"
        self.assertTrue(self.changed(was, r"watchdog_flush\b", "watchdog_flushed") & CONFLICTING, "a function that is gone")
        long, short = (re.search(rf"<type-decl name='{name}'.* id='([\w-]+)'", was.read_text())[1] for name in ("long int", "int"))
        iteration = rf"(<parameter type-id=')(?:{long}|[\w-]+)(' name='iteration')"
        self.assertTrue(self.changed(was, iteration, rf"\g<1>{short}\g<2>") & CHANGED, "a parameter with another type")

    def test_each_released_constant_is_as_it_was(self):
        now = constants(HEADER)
        for version in VERSIONS:
            was = constants(version / "watchdog.h")
            self.assertEqual(was["WATCHDOG_CONFLICT"], "-2")
            self.assertEqual({name: now.get(name) for name in was}, was, version.name)

    def test_the_library_exports_what_is_described(self):
        described = set(re.findall(r"<elf-symbol name='(\w+)'", self.now.read_text()))
        exported = {line.split()[-1].split("@")[0] for line in out("nm", "-D", "--defined-only", LIBRARY).splitlines()} - {"LIBWATCHDOG_0"}
        self.assertEqual(described, exported)


def previous_agent(version, work):
    """tests/report/agent.c of that version, linked with the library of that version."""
    revision = (version / "revision").read_text().split()[0]
    if run("git", "cat-file", "-e", f"{revision}^{{commit}}", cwd=SOURCE).returncode != 0:
        raise unittest.SkipTest(f"this copy of the repository has no revision {revision}")
    tree = work / revision
    agent = tree / "agent"
    if not agent.exists():
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        with subprocess.Popen(["git", "archive", revision], cwd=SOURCE, stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", tree], stdin=archive.stdout, check=True)
        out("cmake", "-S", tree, "-B", tree / "build", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DCMAKE_UNITY_BUILD=ON", "-G", "Ninja",
            "-DWATCHDOG_AGENT=OFF", "-DWATCHDOG_MONITOR=OFF", "-DWATCHDOG_TESTS=OFF")
        out("cmake", "--build", tree / "build", "--target", "watchdog_progress")
        out("cc", "-c", tree / "tests/report/agent.c", "-I", tree / "libwatchdog/include", "-o", tree / "agent.o")
        out(os.environ.get("CXX", "c++"), tree / "agent.o", tree / "build/libwatchdog/libwatchdog_progress.a", "-lsqlite3", "-o", agent)
    return agent


@unittest.skipUnless(os.environ.get("WATCHDOG_FULL"), "WATCHDOG_FULL=1 runs it; it compiles for a minute")
class PreviousWriter(unittest.TestCase):
    """An agent of the previous version and a monitor of this one share a file. The monitor made the file."""

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.server.host, timeout=60)
        connection.request(method, API + path, body, {"Authorization": f"Bearer {self.server.secret}", "Content-Type": "application/x-ndjson"})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        self.assertLess(response.status, 300, f"{method} {path}: {content[:500]}")
        return json.loads(content)

    def facts(self, session):
        run(MONITOR, "wait", "--for", "end", "--server", f"http://{self.server.host}", session, env={**os.environ, "WATCHDOG_TOKEN": self.server.secret})
        progress = self.ask("GET", f"/progress/{session}")
        # Heartbeats are written when there is time; they are counted.
        steps = [{name: event.get(name) for name in ("kind", "type", "name", "content", "callId", "outcome")}
                 for event in self.ask("GET", f"/sessions/{session}/events?limit=100")["events"] if event["kind"] != "heartbeat"]
        return progress["progress"]["stateChanges"], progress["progress"]["heartbeats"], progress["state"], steps

    def check(self, old):
        self.server = server = Server(MONITOR)
        server.__enter__()
        self.addCleanup(server.__exit__)
        file = pathlib.Path(server.folder.name, "w.db")
        environment = {**os.environ, "LD_LIBRARY_PATH": str(LIBRARY.parent)}
        new = BUILD / "tests/previous/agent"
        # The source of the old agent, because that of the new one may report more.
        out("cc", old.parent / "tests/report/agent.c", "-I", HEADER.parent, LIBRARY, "-o", new)

        # Both write into the file while the monitor has it open.
        with sqlite3.connect(file) as database:
            schema = database.execute("PRAGMA user_version").fetchone()
        out(new, file, "by-new", env=environment)
        out(old, file, "by-old")
        self.assertEqual(self.facts("by-old"), self.facts("by-new"))
        changes = self.facts("by-old")[0]
        self.assertGreater(changes, 0)

        # The old program continues what the new one began, and sees what the new one asks for.
        self.ask("POST", "/sessions/begun-by-new/events", '{"kind":"state_change","type":"begin"}')
        with subprocess.Popen([old, file, "begun-by-new", "cancel"], stdout=subprocess.PIPE, text=True) as agent:
            self.ask("POST", "/sessions/begun-by-new/cancel", "{}")
            self.assertEqual((agent.communicate(timeout=60)[0], agent.returncode), ("ok\n", 0))
        self.assertEqual(self.facts("begun-by-new")[0], 1 + changes)
        self.assertEqual(self.ask("GET", "/progress/begun-by-new")["state"], "cancelled")

        # The monitor ends. The old program writes alone. The next monitor reads everything.
        before = self.facts("by-new")
        server.process.terminate()
        self.assertEqual(server.process.wait(60), 0)
        out(old, file, "alone")
        server.process.stdout.close()
        server.start()
        self.assertEqual(self.facts("alone"), before)
        self.assertEqual(self.facts("by-new"), before)
        with sqlite3.connect(file) as database:
            self.assertEqual(database.execute("PRAGMA user_version").fetchone(), schema)
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])

    def test_the_previous_version_writes_into_the_newest_file(self):
        (BUILD / "tests/previous").mkdir(parents=True, exist_ok=True)
        for version in VERSIONS:
            with self.subTest(version=version.name):
                self.check(previous_agent(version, BUILD / "tests/previous"))


if sys.argv[1] == "--record":
    record(pathlib.Path(sys.argv[2]))
else:
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    MONITOR, LIBRARY = BUILD / "bin/watchdog-monitor", BUILD / "libwatchdog/libwatchdog.so.0"
    unittest.main()
