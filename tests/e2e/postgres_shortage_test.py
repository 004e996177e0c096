#!/usr/bin/env python3
"""Three monitors under load on a PostgreSQL that has no room, no connection, or only slow ones, or newer tables.

With WATCHDOG_FULL each of it lasts longer.
"""

import asyncio
import os
import subprocess
import sys
import threading
import time
import unittest

from mounts import mount, own_mounts, unmount
from postgres import PROGRAMS, Monitor, Postgres, until
from under_load import FULL, PROGRAM, TAKE_OVER_S, UnderLoad

NO_DISKS = ""  # why this process can make none


def setUpModule():
    global NO_DISKS
    NO_DISKS = own_mounts()


class OnSmallDisks(Postgres):
    """Its tables and its log are on disks of their own, which can be filled."""

    SIZES = {"data": 80, "wal": 16}  # MB
    INITDB = ("--wal-segsize=1",)

    def __init__(self):
        super().__init__(("min_wal_size=2MB", "max_wal_size=4MB", "wal_keep_size=0"))

    def initialize(self):
        owner = "".join(f",{name}={number}" for name, number in (("uid", self.user.get("user")), ("gid", self.user.get("group")))
                        if number is not None)
        for name, size in self.SIZES.items():
            os.mkdir(self.disk(name))
            mount("tmpfs", self.disk(name), "tmpfs", 0, f"size={size}m,mode=0700{owner}")
        self.INITDB += (f"--waldir={self.disk('wal')}/log",)
        super().initialize()

    def disk(self, name):
        return os.path.join(self.folder.name, name)

    def fill(self, name):
        with open(os.path.join(self.disk(name), "ballast"), "ab", 0) as file:
            try:
                while True:
                    file.write(bytes(1 << 12))
            except OSError:
                pass
        try:
            while name == "wal":
                self.run("SELECT pg_switch_wal()")
        except subprocess.CalledProcessError:
            pass  # it found no room for the next part of its log

    def make_room(self, name):
        os.unlink(os.path.join(self.disk(name), "ballast"))
        try:
            self.process.wait(3)
        except subprocess.TimeoutExpired:
            return
        self.start()

    def stop(self):
        self.end()
        for name in self.SIZES:
            unmount(self.disk(name))
        super().stop()


class Relay:
    """Passes bytes between monitors and PostgreSQL with a delay and a limit of bytes a second."""

    def __init__(self, server):
        self.socket = os.path.join(server.folder.name, ".s.PGSQL.5432")
        self.delay_s, self.bytes_per_s, self.stalled = 0, 1e9, False
        self.begun = threading.Event()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=lambda: self.loop.run_until_complete(self.serve()), daemon=True).start()
        self.begun.wait()
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres?sslmode=disable&gssencmode=disable"

    async def serve(self):
        server = await asyncio.start_server(self.connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self.begun.set()
        await server.serve_forever()

    async def connect(self, reader, writer):
        try:
            there = await asyncio.open_unix_connection(self.socket)
            await asyncio.gather(self.read(reader, there[1]), self.read(there[0], writer))
        except OSError:
            writer.close()

    async def read(self, reader, writer):
        passed = asyncio.Queue()
        writing = asyncio.ensure_future(self.write(passed, writer))
        try:
            while data := await reader.read(1 << 14):
                passed.put_nowait((self.loop.time() + self.delay_s, data))
        except OSError:
            pass
        passed.put_nowait((self.loop.time() + self.delay_s, b""))
        await writing

    async def write(self, passed, writer):
        while True:
            due, data = await passed.get()
            await asyncio.sleep(max(0, due - self.loop.time(), len(data) / self.bytes_per_s))
            while self.stalled:
                await asyncio.sleep(0.05)
            if not data:
                break
            try:
                writer.write(data)
                await writer.drain()
            except OSError:
                break
        writer.close()


class Shortage(UnderLoad):
    def server_of(self, made):
        self.addCleanup(made.stop)
        return made

    def test_no_room_is_left(self):
        if NO_DISKS:
            print(f"NOT IN A CLEAN DEBIAN: this process may not make a small disk ({NO_DISKS}), so PostgreSQL was never full", file=sys.stderr)
            self.skipTest(NO_DISKS)
        server = self.server_of(OnSmallDisks())
        self.start(server)
        for name in server.SIZES:
            time.sleep(2)
            if name == "wal":  # a standby is gone, and what it lacks is kept for it
                server.run("SELECT pg_create_physical_replication_slot('standby', true)")
            self.say(f"the disk of {name} is full")
            server.fill(name)
            # A full log ends PostgreSQL, which may come back for a moment.
            self.until_each_says(("No space left on device",) if name == "data" else
                                 ("No space left on device", "server closed the connection", "No such file", "Connection refused",
                                  "recovery mode", "starting up", "shutting down"))
            time.sleep(60 if FULL else 5)
            server.make_room(name)
            self.say("there is room again")
            self.report_failure(name)
            until(lambda: self.shards() == 256, "nobody judges some sessions")
        server.run("SELECT pg_drop_replication_slot('standby')")
        self.check()

    def test_connections_are_slow(self):
        server = self.server_of(Postgres())
        relays = [Relay(server) for _ in range(3)]
        self.start(server, *(relay.url for relay in relays))
        time.sleep(2)
        self.say("all answers take 100 ms more")
        for relay in relays:
            relay.delay_s = 0.05
        self.report_failure("late")
        time.sleep(60 if FULL else 10)
        self.say("one monitor gets them 400 ms late, and 100 kB in a second")
        relays[0].delay_s, relays[0].bytes_per_s = 0.2, 100_000
        before = sum(len(agent.acknowledged) for agent in self.agents)
        self.report_failure("slow")
        time.sleep(60 if FULL else 20)
        count = sum(len(agent.acknowledged) for agent in self.agents) - before
        self.say(f"{count} reports came through")
        self.assertGreater(count, 10, "a slow monitor stops the others")  # a busy machine under a sanitizer has some 16
        for relay in relays:
            relay.delay_s, relay.bytes_per_s = 0, 1e9
        until(lambda: self.shards() == 256, "nobody judges some sessions")

        self.say("nothing comes through to one monitor")
        self.stopped = self.monitors[0]
        relays[0].stalled = True
        begun = time.monotonic()
        self.report_failure("stalled")
        until(lambda: sum(self.ready(monitor)[1].get("shards", 0) for monitor in self.monitors[1:]) == 256,
              "nobody takes over", TAKE_OVER_S + 5)
        took = time.monotonic() - begun
        self.say(f"taken over after {took:.1f} s")
        self.assertLess(took, TAKE_OVER_S + 1)
        self.until_each_says(("Its leases ended: other monitors judge",), self.monitors[:1])
        self.assertIn("watchdog_lease_late 1\n", self.monitors[0].ask("GET", "/metrics")[1])
        time.sleep(60 if FULL else 3)
        relays[0].stalled, self.stopped = False, None
        back = lambda ready: ready.get("lease") == "held" and ready["shards"] > 0
        until(lambda: self.shards() == 256 and back(self.monitors[0].ready()), "it does not come back")
        self.say("it is back")
        self.assertRegex(self.monitors[0].ask("GET", "/metrics")[1], "watchdog_step_downs_total [1-9]")
        self.check()

    def test_no_connection_is_left(self):
        server = self.server_of(Postgres(("max_connections=30",)))
        server.run("CREATE ROLE watchdog LOGIN")
        server.run("CREATE ROLE taker LOGIN")
        server.run("GRANT CREATE ON DATABASE postgres TO watchdog")
        self.start(server, f"postgresql:///postgres?user=watchdog&host={server.folder.name}")
        time.sleep(2)
        self.say("no connection is left")
        server.run("ALTER ROLE watchdog CONNECTION LIMIT 0")
        server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'watchdog'")
        takers = []
        self.addCleanup(lambda: [taker.kill() or taker.wait() for taker in takers])

        def all_taken():
            """Those that came before the monitors' connections ended, come again."""
            takers[:] = [taker for taker in takers if taker.poll() is None]
            while len(takers) < 27:  # and 3 are for superusers
                takers.append(subprocess.Popen([f"{PROGRAMS}/psql", "-qAtX", "-h", server.folder.name, "-U", "taker", "postgres", "-c",
                                                "SELECT pg_sleep(1000)"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            return server.run("SELECT count(*) FROM pg_stat_activity WHERE usename = 'taker'") == "27"

        until(all_taken, "there are connections")
        server.run("ALTER ROLE watchdog CONNECTION LIMIT -1")
        self.until_each_says(("too many clients", "connection slots are reserved"))
        time.sleep(60 if FULL else 3)
        server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'taker'")
        for taker in takers:
            taker.wait()
        self.say("there are connections again")
        self.report_failure("exhausted")
        self.check()

    def test_monitors_are_older_than_the_tables(self):
        server = self.server_of(Postgres())
        self.start(server)
        time.sleep(2)
        self.say("a newer monitor adds to the tables")
        added = "".join(f"ALTER TABLE {table} ADD COLUMN later TEXT;" for table in (
            "sessions", "heads", "events", "transitions", "snapshots", "alert_states", "alerts", "deliveries", "leases", "monitors", "turn"))
        server.run("SET search_path TO watchdog; BEGIN; LOCK TABLE turn IN ACCESS EXCLUSIVE MODE; "
                   f"{added} CREATE TABLE later (one BIGINT); UPDATE meta SET value = 1999 WHERE key = 'schema'; COMMIT")
        self.report_failure("minor")
        # And it says more of itself than these know.
        tally = '{"healths": [%s], "states": [%s], "blockedOnPeople": 0}' % (",".join([f"[{','.join('0' * 40)}]"] * 12), ",".join("1" * 40))
        server.run(f"INSERT INTO watchdog.monitors (name, until_ms, tally, later) SELECT 'newer', clock_ms + 4000, '{tally}', 'x' "
                   "FROM watchdog.turn")
        self.monitors[0].stop()
        self.monitors.pop(0)
        self.add_monitor()  # an older one may still be started
        until(lambda: self.shards() == 256, "nobody judges some sessions")
        for monitor in self.monitors:
            self.assertEqual(monitor.ask("GET", "/api/autonomous/summary")[0], 200)
        time.sleep(60 if FULL else 3)

        self.say("a newer monitor changes the tables in another way")
        server.run("UPDATE watchdog.meta SET value = 2000 WHERE key = 'schema'")
        turns = int(server.run("SELECT number FROM watchdog.turn"))
        self.until_each_says(("its schema is version 2.0",))
        refused = subprocess.run([PROGRAM, "serve", "--db", server.url(), "--port", "0"], capture_output=True, text=True, check=False,
                                 env={"HOME": self.monitors[0].home.name})
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("its schema is version 2.0", refused.stderr)
        time.sleep(60 if FULL else 3)
        self.assertLessEqual(int(server.run("SELECT number FROM watchdog.turn")), turns + 3, "older monitors still write")
        self.say("the tables are back")
        server.run("UPDATE watchdog.meta SET value = 1999 WHERE key = 'schema'")
        self.report_failure("major")
        self.check()


if __name__ == "__main__":
    unittest.main()
