#!/usr/bin/env python3
"""The real programs on a disk that forgets everything unsynced: what was acknowledged survives each cut, and nobody needs help.

Each scenario runs once, on a disk that records its operations. The files that survive a cut after any operation follow from the record
(forgetful_disk.py); each cut that is tried puts its files into a folder, where the program starts again. 300 cuts; with WATCHDOG_FULL
10,000. WATCHDOG_SEED chooses the same cuts again of a run that does the same.

Usage: power_test.py MONITOR RECORDING_DISK REPORTER AGENT_FILES
"""

import collections
import concurrent.futures
import contextlib
import faulthandler
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid

from forgetful_disk import Cut, Disk, ForgetfulDisk, cuts, write_files

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from mounts import MS_BIND, mount, own_mounts, unmount  # noqa: E402
from postgres import PROGRAMS, Postgres, die_with_parent  # noqa: E402

PROGRAM, DISK, REPORTER, AGENT_FILES = (os.path.abspath(sys.argv.pop(1)) for _ in range(4))
FULL = bool(os.environ.get("WATCHDOG_FULL"))
SEED = int(os.environ.get("WATCHDOG_SEED") or random.randrange(2**31))
PATIENCE_S = 60
SESSIONS = "/api/autonomous/sessions"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
EXAMPLES = HERE.parent / "data/predict/examples.jsonl"
IS_ROOT = os.getuid() == 0
NO_DISK = ""  # why this process can make none
SETTLED = ["note", "settle"]
TALLY = collections.Counter()


def setUpModule():
    global NO_DISK
    NO_DISK = own_mounts(as_root=True)
    if not NO_DISK:
        try:
            with Disk(DISK):
                return
        except OSError as error:
            NO_DISK = str(error).strip()
    print(f"NOT IN A CLEAN DEBIAN: this process may not make a disk that forgets ({NO_DISK}), so no power was lost", file=sys.stderr)


def tearDownModule():
    if TALLY:
        print(f"seed {SEED}:", ", ".join(f"{count} {word}" for word, count in sorted(TALLY.items())), file=sys.stderr)


@contextlib.contextmanager
def another_boot():
    """The machine started again, as the programs see it."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(f"{uuid.uuid4()}\n")
        file.flush()
        mount(file.name, BOOT_ID, None, MS_BIND, None)
        try:
            yield
        finally:
            unmount(BOOT_ID)


def environment(home):
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("WATCHDOG_", "XDG_", "OPENAI_"))} | {"HOME": str(home)}


def command(home, *words, program=PROGRAM):
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S, env=environment(home),
                          stdin=subprocess.DEVNULL, cwd=home, preexec_fn=die_with_parent)


class Monitor:
    """A monitor on FOLDER/w.db, at the usual place below a home, or on a server; killed with the block."""

    def __init__(self, folder, home=None, server=None):
        self.home = home or folder
        self.words = [] if home else ["--db", server or f"{folder}/w.db", "--config", ""]
        state = pathlib.Path(self.home, ".local/state/watchdog")
        self.tokens = state / "watchdog.db-token" if home else state / "server-token" if server else pathlib.Path(folder, "w.db-token")

    def __enter__(self):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([PROGRAM, "serve", "--port", "0", *self.words], stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env=environment(self.home), preexec_fn=die_with_parent)
        line = self.process.stdout.readline()
        if not line.startswith("listening on http"):
            self.__exit__()
            raise AssertionError(f"it does not start: {line}{self.said}")
        self.host = line.split("://")[1].strip()
        self.secret = self.tokens.read_text().split()[-1]
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.seek(0)
        self.said = self.log.read()
        self.log.close()

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"} | (headers or {}))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def report(self, session, events):
        return self.ask("POST", f"{SESSIONS}/{session}/events", events)


def steps(session, numbers, text="done"):
    return [{"kind": "state_change", "type": f"step {number}", "data": f"{text} {number}" * 5, "event_id": f"{session}-{number}"}
            for number in numbers]


class Load:
    """Agents that report to a monitor, and notes on the disk what was acknowledged. `sent`: all that they tried, by session."""

    def __init__(self, disk, monitor, seed):
        self.disk, self.monitor, self.random = disk, monitor, random.Random(seed)
        self.sent = collections.defaultdict(list)

    def report(self, session, events):
        self.sent[session] += events
        status, _ = self.monitor.report(session, events)
        if status == 200:
            self.disk.note(session=session, stored=[event["event_id"] for event in events])
        return status

    def singles(self, session, count):
        for event in steps(session, range(count)):
            self.report(session, [event])

    def batches(self, session, count):
        first = 0
        for _ in range(count):
            size = self.random.randint(5, 40)
            self.report(session, steps(session, range(first, first + size)))
            first += size

    def failures(self, count):
        """Sessions that fail; every second one is forgotten."""
        for number in range(count):
            session = f"fails-{number}"
            self.report(session, steps(session, range(3), planted(session)) +
                        [{"kind": "end", "outcome": "failed", "error": "it broke", "event_id": f"{session}-end"}])
            if number % 2:
                self.forget(session)

    def forget(self, session):
        self.disk.note(forgetting=session)
        status, answer = self.monitor.ask("POST", "/api/autonomous/forget", {"sessions": [session]})
        if status == 200:
            self.disk.note(forgotten=session)
        else:
            raise AssertionError(answer)

    def run(self, *works):
        with concurrent.futures.ThreadPoolExecutor(len(works)) as pool:
            for begun in [pool.submit(*work) for work in works]:
                begun.result()


def stored(database):
    """Session → ids of events → how many are stored."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=PATIENCE_S)
    try:
        found = {name: collections.Counter() for name, in connection.execute("SELECT name FROM sessions")}
        for name, event in connection.execute("SELECT sessions.name, event_id FROM events JOIN sessions ON sessions.id = session "
                                              "WHERE event_id IS NOT NULL"):
            found[name][event] += 1
        return found
    finally:
        connection.close()


def integrity(database):
    connection = sqlite3.connect(database, timeout=PATIENCE_S)
    try:
        return connection.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        connection.close()


def promised(cut):
    """Session → ids of events that were acknowledged; without sessions that somebody began to forget."""
    events = collections.defaultdict(set)
    for note in cut.notes:
        if "stored" in note:
            events[note["session"]].update(note["stored"])
    for session in cut.facts("forgetting"):
        events.pop(session, None)
    return events


def check_store(cut, database):
    """What is wrong with a database that a monitor has open."""
    found = stored(database)
    lost = [event for session, events in promised(cut).items() for event in events - set(found.get(session, ()))]
    doubled = [event for events in found.values() for event, count in events.items() if count > 1]
    back = [session for session in cut.facts("forgotten") if session in found]
    halves = [session for session in cut.facts("forgetting") if session in found and not found[session]]
    return [f"{word}: {len(names)}, for example {sorted(names)[0]}"
            for word, names in (("lost", lost), ("stored twice", doubled), ("back", back), ("half forgotten", halves)) if names]


def check_monitor(cut, folder, sent, home=None):
    """It starts without help, has all that it acknowledged, takes the rest again, and keeps its token. Gives what is wrong."""
    root = pathlib.Path(folder)
    database = root / ("home/.local/state/watchdog/watchdog.db" if home else "w.db")
    with Monitor(root, root / "home" if home else None) as monitor:
        wrong = check_store(cut, database)
        tokens = cut.facts("token")
        if tokens and promised(cut) and monitor.secret != tokens[-1]:
            wrong.append("the token was replaced")
        gone = set(cut.facts("forgetting"))
        for session, events in sent.items():
            if session not in gone:
                status, answer = monitor.report(session, events)
                if status != 200:
                    wrong.append(f"it does not take reports: {status} {answer}")
        found = stored(database)
        again = [event["event_id"] for session, events in sent.items() if session not in gone
                 for event in events if found.get(session, {}).get(event["event_id"]) != 1]
        if again:
            wrong.append(f"not stored once when sent again: {again[:3]}")
        wrong += [f"bytes of {session}" for session in cut.facts("forgotten") if not is_without(database, planted(session))]
    if (state := integrity(database)) != "ok":
        wrong.append(state)
    return wrong


def planted(session):
    return f"only in {session}:"


def is_without(database, text):
    """What a cut left of a forgotten session in the log goes soon after the start."""
    end = time.monotonic() + 20
    while any(text.encode() in path.read_bytes() for path in (database, database.with_name(database.name + "-wal"))):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def mcp(monitor, method, name, arguments):
    of = "io.modelcontextprotocol/"
    meta = {f"{of}protocolVersion": "2026-07-28", f"{of}clientCapabilities": {"extensions": {f"{of}tasks": {}}}}
    _, answer = monitor.ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": arguments | {"_meta": meta}},
                            {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method,
                             "Mcp-Name": name})
    return answer.get("result") or answer


class SyncingPostgres(Postgres):
    """One that syncs, with its data in a given folder."""

    INITDB = ("--wal-segsize=1",)

    def __init__(self, data):
        self.given = pathlib.Path(data)
        super().__init__(("fsync=on", "min_wal_size=2MB", "max_wal_size=8MB", "shared_buffers=8MB"))

    def initialize(self):
        self.given.parent.chmod(0o711)
        if not self.given.exists():
            super().initialize()
            shutil.copytree(self.data, self.given)
        self.data = str(self.given)
        for place in (self.given, *self.given.rglob("*")) if self.user else ():
            os.chown(place, self.user["user"], self.user["group"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class DiskTest(unittest.TestCase):
    """What the disk forgets, on which all else here rests."""

    OLD, NEW = b"a" * 1024, b"b" * 1024

    def left(self, operations, kind="min", seed=0, **more):
        disk = ForgetfulDisk(**more)
        for operation in operations:
            disk.apply(operation)
        return {path: data for path, (_, data) in disk.survivors(kind, seed).items()}

    def test_a_file_needs_two_syncs(self):
        made = [["make", 1, 3, 0o100600, "file"], ["write", 3, 0, self.OLD]]
        synced = [*made, ["sync", 3]]
        whole = {"file": self.OLD}
        self.assertEqual([self.left(made, kind) for kind in ("min", "data", "meta", "zeros")], [{}, {}, {"file": b""}, {"file": bytes(1024)}])
        self.assertEqual((self.left(synced), self.left(synced, "meta"), self.left(synced, rule="ext4")), ({}, whole, whole))
        named = [*synced, ["syncdir", 1]]
        self.assertEqual((self.left(named), self.left(named, ignores_syncs=True)), (whole, {}))
        again = [*named, ["write", 3, 0, self.NEW]]
        self.assertEqual([self.left(again, kind)["file"] for kind in ("min", "data", "meta", "zeros")], [self.OLD, self.NEW, self.OLD, self.OLD])
        torn = {self.left(again, "random", seed)["file"] for seed in range(100)}
        self.assertEqual(torn, {one * 512 + other * 512 for one in (b"a", b"b") for other in (b"a", b"b")})

    def test_a_rename_needs_a_sync_of_the_folder(self):
        made = [["make", 1, 3, 0o40700, "from"], ["make", 1, 4, 0o40700, "to"], ["syncdir", 1], ["make", 3, 5, 0o100600, "draft"],
                ["write", 5, 0, self.OLD], ["sync", 5], ["rename", 3, 4, "draft", "file"]]
        folders = {"from": None, "to": None}
        self.assertEqual((self.left(made), self.left(made, "meta")), (folders, folders | {"to/file": self.OLD}))
        self.assertEqual(self.left([*made, ["syncdir", 4]]), folders | {"to/file": self.OLD})
        removed = [*made, ["syncdir", 4], ["remove", 4, "file"]]
        self.assertEqual((self.left(removed), self.left(removed, "meta")), (folders | {"to/file": self.OLD}, folders))


class PowerTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        if NO_DISK:
            self.skipTest(NO_DISK)
        self.random = random.Random(f"{SEED} {self.id()}")

    def disk(self):
        return Disk(DISK)

    def cuts(self, operations, count, **more):
        return cuts(operations, count * 10_000 // 300 if FULL else count, self.random, **more)

    def each(self, all_cuts, check):
        """Runs the check with a folder of each cut's files. Fails if any finds anything."""
        wrong = self.wrong(all_cuts, check)
        self.assertEqual(wrong[:5], [], f"{len(wrong)} cuts; WATCHDOG_SEED={SEED}")

    def try_all(self, operations, count, check):
        """Cuts of a scenario, from where its disk was settled. The same check finds a disk that ignores syncs."""
        begin = operations.index(SETTLED) + 1 if SETTLED in operations else 0
        self.each(self.cuts(operations, count, begin=begin), check)
        disk = ForgetfulDisk(ignores_syncs=True)
        for operation in operations:
            disk.apply(operation)
        self.assertEqual(len(self.wrong([Cut(disk, len(operations), "min", 0)], check)), 1, "this check finds nothing")

    def wrong(self, all_cuts, check):
        found, waiting = [], set()

        def try_cut(cut):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    cut.write(folder)
                    faults = check(cut, folder)
                except (AssertionError, OSError, sqlite3.Error, http.client.HTTPException, subprocess.SubprocessError) as error:
                    faults = [f"{type(error).__name__}: {error}"]
                if faults:
                    found.append(f"{self._testMethodName}: {cut}: {'; '.join(faults)}")

        with another_boot(), concurrent.futures.ThreadPoolExecutor(3) as pool:
            for cut in all_cuts:
                TALLY["cuts"] += 1
                waiting.add(pool.submit(try_cut, cut))
                if len(waiting) > 4:
                    done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                    for one in done:
                        one.result()
            for one in waiting:
                one.result()
        return found

    def run_load(self, disk):
        """A run with agents of all kinds. Gives what they sent."""
        with Monitor(disk.folder) as monitor:
            disk.note(token=monitor.secret)
            load = Load(disk, monitor, SEED)
            load.run((load.singles, "single", 60), (load.singles, "other", 60), (load.batches, "batch", 12), (load.failures, 8))
        return load.sent

    def test_load(self):
        with self.disk() as disk:
            sent = self.run_load(disk)
            operations = disk.operations()
        TALLY["acknowledged events"] += sum(len(events) for events in sent.values())
        self.try_all(operations, 70, lambda cut, folder: check_monitor(cut, folder, sent))
        # The same checks find a disk that breaks its promise.
        broken = [cut for cut in cuts(operations, 10, self.random, begin=len(operations) // 2, ignores_syncs=True)
                  if cut.kind in ("min", "data", "meta")]
        wrong = self.wrong(broken, lambda cut, folder: check_monitor(cut, folder, sent))
        self.assertEqual(len(wrong), len(broken), wrong)
        self.assertTrue(any("lost: " in fault for fault in wrong), wrong)

    def test_first_start(self):
        with self.disk() as disk:
            home = disk.folder / "home"
            home.mkdir()
            disk.settle()
            with Monitor(disk.folder, home) as monitor:
                disk.note(token=monitor.secret)
                load = Load(disk, monitor, SEED)
                load.singles("first", 6)
            operations = disk.operations()
        self.try_all(operations, 40, lambda cut, folder: check_monitor(cut, folder, load.sent, home=True))

    def test_recovery_from_a_cut(self):
        with self.disk() as disk:
            sent = self.run_load(disk)
            operations = disk.operations()
        for first in self.cuts(operations, 3, begin=len(operations) // 2):
            with self.disk() as disk:
                first.write(disk.folder)
                for note in first.notes:
                    disk.note(**note)
                disk.settle()
                with another_boot(), Monitor(disk.folder) as monitor:
                    load = Load(disk, monitor, SEED)
                    load.sent = sent
                    load.singles("second", 10)
                again = disk.operations()
            begin = again.index(SETTLED) + 1
            self.each(cuts(again, 12, self.random, begin=begin), lambda cut, folder: check_monitor(cut, folder, sent))

    def test_no_room(self):
        """The disk is full for a while; the power fails before, meanwhile and after."""
        with self.disk() as disk, Monitor(disk.folder) as monitor:
            disk.note(token=monitor.secret)
            load = Load(disk, monitor, SEED)
            load.singles("before", 5)
            disk.leave_room(64 << 10)
            refused = [load.report("meanwhile", steps("meanwhile", range(first, first + 20))) for first in range(0, 400, 20)]
            self.assertIn(503, refused)
            disk.leave_room(64 << 20)
            end = time.monotonic() + PATIENCE_S
            while load.report("after", steps("after", range(5))) != 200:
                self.assertLess(time.monotonic(), end, "it does not take reports again")
                time.sleep(0.1)
            operations = disk.operations()
        sent = {session: list({event["event_id"]: event for event in events}.values()) for session, events in load.sent.items()}
        self.try_all(operations, 20, lambda cut, folder: check_monitor(cut, folder, sent))

    def test_library(self):
        """An agent that writes into the database itself: what it flushed is there."""
        with self.disk() as disk:
            with subprocess.Popen([REPORTER, disk.folder / "w.db", "agent", "40"], stdout=subprocess.PIPE, text=True) as process:
                for line in process.stdout:
                    disk.note(flushed=int(line))
            self.assertEqual(process.returncode, 0)
            operations = disk.operations()

        def check(cut, folder):
            with Monitor(folder):
                connection = sqlite3.connect(f"file:{folder}/w.db?mode=ro", uri=True)
                found = collections.Counter(name for name, in connection.execute("SELECT name FROM events WHERE kind = 2"))
                connection.close()
            wrong = [name for name, count in found.items() if count != 1]
            return wrong + [f"lost: n{number}" for number in cut.facts("flushed") if f"n{number}" not in found]

        self.try_all(operations, 24, check)

    def test_wrapped_command(self):
        """The end of a command is stored before its wrapper ends."""
        with self.disk() as disk:
            for number in range(3):
                done = command(disk.folder, "run", "--session", f"run-{number}", "--db", disk.folder / "w.db", "--", "echo", "done")
                self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)
                disk.note(ended=f"run-{number}")
            operations = disk.operations()

        def check(cut, folder):
            with Monitor(folder) as monitor:
                found = {name: monitor.ask("GET", f"/api/autonomous/progress/{name}")[1] for name in cut.facts("ended")}
                return [f"{name}: {document}" for name, document in found.items() if document.get("lifecycle") != "completed"]

        self.try_all(operations, 12, check)

    def test_forget_in_a_file(self):
        with self.disk() as disk:
            with Monitor(disk.folder) as monitor:
                load = Load(disk, monitor, SEED)
                for session in ("stays", "goes"):
                    load.report(session, steps(session, range(200), planted(session)))
            disk.settle()
            disk.note(forgetting="goes")
            done = command(disk.folder, "forget", "goes", "--force", "--yes", "--db", disk.folder / "w.db")
            self.assertEqual(done.returncode, 0, done.stderr)
            disk.note(forgotten="goes")
            operations = disk.operations()
        self.try_all(operations, 20, lambda cut, folder: check_monitor(cut, folder, load.sent))

    def test_backup(self):
        with self.disk() as disk, Monitor(disk.folder) as monitor:
            load = Load(disk, monitor, SEED)
            for part in range(2):
                load.report("kept", steps("kept", range(part * 50, part * 50 + 50)))
                done = command(disk.folder, "backup", disk.folder / f"copy-{part}", "--db", disk.folder / "w.db")
                self.assertEqual(done.returncode, 0, done.stderr)
                disk.note(backup=part)
            operations = disk.operations()

        def check(cut, folder):
            wrong = check_monitor(cut, folder, load.sent) if cut.count % 2 else []
            for part in range(2):
                copy = pathlib.Path(folder, f"copy-{part}")
                if copy.exists():
                    found = stored(copy)["kept"]
                    if integrity(copy) != "ok" or len(found) < 50 * (part + 1):
                        wrong.append(f"backup {part} has {len(found)} events, {integrity(copy)}")
                elif part in cut.facts("backup"):
                    wrong.append(f"backup {part} is gone")
                else:
                    again = command(folder, "backup", copy, "--db", f"{folder}/w.db")
                    if again.returncode != 0 and "stored" in json.dumps(cut.notes):
                        wrong.append(again.stderr)
            return wrong

        self.try_all(operations, 20, check)

    def test_tasks_of_mcp(self):
        """A wait that a client was given is known after each cut."""
        with self.disk() as disk, Monitor(disk.folder) as monitor:
            load = Load(disk, monitor, SEED)
            for number in range(6):
                load.report(f"s{number}", steps(f"s{number}", [1]))
                task = mcp(monitor, "tools/call", "wait", {"name": "wait", "task": {},
                                                           "arguments": {"session": f"s{number}", "until": "state-change=x"}})
                disk.note(task=task["taskId"])
            operations = disk.operations()

        def check(cut, folder):
            with Monitor(folder) as monitor:
                found = {task: mcp(monitor, "tasks/get", task, {"taskId": task}) for task in cut.facts("task")}
                return [f"{task}: {answer}" for task, answer in found.items() if answer.get("status") != "working"]

        self.try_all(operations, 16, check)

    def test_transcripts(self):
        """`follow` reports each line once, however often the power fails."""
        with tempfile.TemporaryDirectory() as transcripts, self.disk() as disk:
            session = "3f0e0000-aaaa-4bbb-8ccc-0123456789ab"
            now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
            lines = [{"timestamp": now, "cwd": "/", "version": "2.1.0", "type": "user", "uuid": f"u{number}", "sessionId": session,
                      "message": {"role": "user", "content": f"prompt {number}"}} for number in range(60)]
            pathlib.Path(transcripts, f"{session}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            follow = lambda folder: command(folder, "follow", "claude-code", transcripts, "--once", "--db", f"{folder}/w.db")
            self.assertEqual(follow(disk.folder).returncode, 0)
            disk.note(read=True)
            operations = disk.operations()

            def check(cut, folder):
                count = lambda: [events for events, in sqlite3.connect(f"{folder}/w.db").execute(
                    "SELECT count(*) FROM events WHERE content LIKE '%prompt %' GROUP BY content")]
                wrong = []
                if cut.facts("read") and count() != [1] * 60:
                    wrong.append(f"lines after the end: {count()}")
                if (again := follow(folder)).returncode != 0:
                    wrong.append(again.stderr)
                if count() != [1] * 60:
                    wrong.append(f"lines: {count()}")
                return wrong

            self.try_all(operations, 16, check)

    def test_agent_files(self):
        """Numbers of tool calls, stored outputs, checkpoints."""
        with self.disk() as disk, tempfile.TemporaryDirectory() as work:
            done = command("/", "use", disk.folder, f"{work}/file", program=AGENT_FILES)
            self.assertEqual(done.returncode, 0, done.stdout)
            operations = disk.operations()
            one_at_a_time = threading.Lock()

            def check(cut, folder):
                lines = [" ".join([word, *note[word]]) for note in cut.notes for word in note]
                with one_at_a_time:
                    looked = subprocess.run([AGENT_FILES, "look", folder, f"{work}/file"], input="\n".join(lines), text=True,
                                            capture_output=True, timeout=PATIENCE_S)
                return [looked.stdout + looked.stderr] if looked.stdout or looked.returncode else []

            self.try_all(operations, 40, check)

    def test_postgresql(self):
        """Its own syncs are on the disk, too. What a monitor acknowledged is in its tables, and what `copy` wrote."""
        if not PROGRAMS or not IS_ROOT:
            self.skipTest("PostgreSQL is not installed, or another user of this machine cannot run it")
        events = "SELECT s.name || ' ' || event_id FROM watchdog.events e JOIN watchdog.sessions s ON s.id = e.session WHERE event_id IS NOT NULL"
        with self.disk() as disk, tempfile.TemporaryDirectory() as elsewhere:
            pathlib.Path(disk.place.name).chmod(0o711)
            with Monitor(elsewhere) as monitor:
                self.assertEqual(monitor.report("copied", steps("copied", range(100)))[0], 200)
            with SyncingPostgres(disk.folder / "data") as server:
                server.run("CREATE DATABASE copied")
                disk.settle()
                with Monitor(elsewhere, server=server.url()) as monitor:
                    load = Load(disk, monitor, SEED)
                    load.run((load.singles, "single", 20), (load.batches, "batch", 3))
                done = command(elsewhere, "copy", "--from", f"{elsewhere}/w.db", "--to", server.url("copied"))
                self.assertEqual(done.returncode, 0, done.stderr)
                disk.note(copied=100)
                operations = disk.operations()

        def check(cut, folder):
            pathlib.Path(folder, "data", "postmaster.pid").unlink(missing_ok=True)  # a start of the machine does so
            with SyncingPostgres(f"{folder}/data") as server, tempfile.TemporaryDirectory() as home:
                is_there = server.run("SELECT to_regclass('watchdog.events')")
                found = collections.Counter(server.run(events).split("\n") if is_there else ())
                wrong = [f"lost: {session} {event}" for session, ids in promised(cut).items() for event in ids if f"{session} {event}" not in found]
                wrong += [f"stored twice: {event}" for event, count in found.items() if count > 1]
                if cut.facts("copied") and server.run("SELECT count(*) FROM watchdog.events", "copied") != "100":
                    wrong.append("copied rows are gone")
                with Monitor(home, server=server.url()) as monitor:
                    for session, ids in load.sent.items():
                        if (answer := monitor.report(session, ids))[0] != 200:
                            wrong.append(str(answer))
                return wrong

        self.try_all(operations, 6, check)

    def check_files(self, words, before, count):
        """A command that writes files: each is as before or as after, and as after once the command is done. It can run again."""
        with self.disk() as disk:
            write_files({path: (0o700 if text is None else 0o600, text if text is None else text.encode()) for path, text in before.items()},
                        disk.folder)
            disk.settle()
            done = command(disk.folder, *words)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            disk.note(done=True)
            operations = disk.operations()
        disk = ForgetfulDisk()
        for operation in operations:
            disk.apply(operation)
        disk.settle()
        after = {path: data for path, (_, data) in disk.survivors("min").items()}
        old = {path: text if text is None else text.encode() for path, text in before.items()}
        drafts = re.compile(r"(^|/)\.[^/]+\.[0-9a-f]{12}\.new$")

        def check(cut, folder):
            wrong = []
            for path in sorted(old | after | cut.files):
                found = cut.files.get(path, (0, "absent"))[1]
                fine = [after.get(path, "absent")] + ([] if cut.facts("done") else [old.get(path, "absent")])
                if found not in fine and not drafts.search(path):
                    wrong.append(f"{path}: {found[:200] if found else found}")
            again = command(folder, *words)
            if again.returncode not in (0, 3):
                wrong.append(again.stdout + again.stderr)
            return wrong

        self.try_all(operations, count, check)

    def test_settings(self):
        """New files, and files that exist."""
        settings = {".config": None, ".config/watchdog": None, ".config/watchdog/watchdog.toml": "# mine\n[monitor]\nport = 4567\n"}
        self.check_files(("config", "--sample", "--write"), {}, 8)
        for before in ({}, settings):
            self.check_files(("alerts", "setup", "--no-test", "--kind", "ntfy", "--name", "phone", "--url", "http://127.0.0.1:1/x"), before, 6)

    def test_hooks(self):
        hooks = {".claude": None, ".claude/settings.json": '{"model": "opus"}\n'}
        for before, words in ((hooks, ()), ({".claude": None}, ()), (hooks, ("--mcp",))):
            self.check_files(("hooks", "install", "claude-code", *words), before, 6)

    def test_prediction(self):
        self.check_files(("predict", "train", "--examples", EXAMPLES, "--db", "w.db"), {}, 6)


if __name__ == "__main__":
    if not FULL:
        faulthandler.dump_traceback_later(840, exit=True)  # its children end with it
    unittest.main()
