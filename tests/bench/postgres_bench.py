#!/usr/bin/env python3
"""What a monitor on a real PostgreSQL carries: events a second from many agents, sessions that are judged, growth, and a take-over.

Database, monitor and agents share the machine, and PostgreSQL syncs its log to the disk. CPU is user and system time of
the monitor, and of all processes of PostgreSQL, from /proc.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import pathlib
import re
import signal
import statistics
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).parent.parent / "e2e"))
from http_bench import Table  # noqa: E402
from postgres import SESSIONS, Monitor, Postgres, until  # noqa: E402

AGENTS = 2_000
EVENTS_A_SECOND = 5_000
P99_MS = 100
RUNNING = 50_000
JUDGING_SHARE = 0.10
TAKEN = 20_000
TAKE_OVER_S = 20
GROWTH = 1.25  # Of the cost of an event, from 10³ to 10⁶ events; noise is a tenth.
TICKS = os.sysconf("SC_CLK_TCK")
LIVE = {"heartbeatInterval": 3_600_000}


def cpu_s(pids):
    total = 0
    for pid in pids:
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def family(pid):
    """The process and its children."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


class Client:
    """A kept connection to a monitor."""

    def __init__(self, host, secret):
        self.connection = http.client.HTTPConnection(host, timeout=60)
        self.headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}

    def post(self, path, text):
        self.connection.request("POST", path, text, self.headers)
        response = self.connection.getresponse()
        body = response.read()
        if response.status not in (200, 201):
            raise RuntimeError(f"{response.status}: {body[:200]!r}")


def load(host, secret, agents, rate, seconds, each, out):
    """Sends reports of some agents, `each` events a report, at fixed times. It does not wait for earlier answers. A
    report that is late because the monitor was slow counts from its fixed time."""
    client, times, sent = Client(host, secret), [], 0
    pause, begun = each / rate, time.monotonic() + 1
    while (due := begun + sent * pause) < begun + seconds:
        time.sleep(max(0, due - time.monotonic()))
        agent = agents[sent % len(agents)]
        events = [{"kind": "state_change", "type": "step", "data": {"n": sent, "of": at, "note": "two of nineteen tests fail"}}
                  for at in range(each)]
        client.post(f"{SESSIONS}/{agent}/events", json.dumps(events))
        times.append(time.monotonic() - due)
        sent += 1
    out.put((sent * each, times))


class Bench:
    def __init__(self, build, table):
        self.program, self.table = str(build / "bin/watchdog-monitor"), table

    def __enter__(self):
        self.server = Postgres(("fsync=on", "shared_buffers=256MB", "max_wal_size=4GB"))
        self.monitor = Monitor(self.program, self.server.url())
        return self

    def __exit__(self, *_):
        self.monitor.stop()
        self.server.stop()

    def result(self, name, unit, measured, limit, **more):
        self.table.add(name, unit, measured, at_most=limit)
        for note, value in more.items():
            self.table.add(f"{name}.{note}", "", value)

    def create(self, names, policy=None):
        client = Client(self.monitor.host, self.monitor.secret)
        for name in names:
            client.post(SESSIONS, json.dumps({"sessionId": name, "policy": policy or LIVE}))

    def send(self, rate, seconds, each, agents, senders=8):
        """Returns events a second and the times of reports."""
        queue, workers = multiprocessing.Queue(), []
        for at in range(senders):
            own = agents[at::senders]
            workers.append(multiprocessing.Process(target=load, args=(self.monitor.host, self.monitor.secret, own, rate / senders,
                                                                       seconds, each, queue)))
        begun = time.monotonic() + 1
        for worker in workers:
            worker.start()
        parts = [queue.get() for _ in workers]
        for worker in workers:
            worker.join()
        took = time.monotonic() - begun
        return sum(count for count, _ in parts) / took, sorted(t for _, times in parts for t in times)

    def busy(self):
        return cpu_s([self.monitor.process.pid]), cpu_s(family(self.server.process.pid))

    def postgres_events(self):
        """5,000 durable events a second from 2,000 agents: 500 reports of ten events a second."""
        agents = [f"agent{at}" for at in range(AGENTS)]
        self.create(agents)
        monitor, server = self.busy()
        seconds = 15
        rate, times = self.send(EVENTS_A_SECOND, seconds, 10, agents)
        monitor_s, server_s = (after - before for after, before in zip(self.busy(), (monitor, server)))
        p99 = 1000 * times[int(len(times) * 0.99)]
        events = rate * seconds
        self.result("postgres_report_p99", "ms", p99, P99_MS, median_ms=round(1000 * statistics.median(times), 1),
                    events_per_s=round(rate), monitor_us_per_event=round(1e6 * monitor_s / events, 1),
                    server_us_per_event=round(1e6 * server_s / events, 1))
        self.result("postgres_events_missed", "share", max(0.0, 1 - rate / EVENTS_A_SECOND), 0.05)

    def postgres_judging(self):
        """50,000 running sessions, of which nothing is due: what it costs that they are there."""
        names = [f"s{at}" for at in range(RUNNING)]
        in_parts(create_all, [(self.monitor.host, self.monitor.secret, names[at::4]) for at in range(4)])
        until(lambda: f'"total":{RUNNING}' in json.dumps(self.monitor.ask("GET", "/api/autonomous/summary")[1], separators=(",", ":")),
              "not all are judged", 120)
        time.sleep(3)
        before, begun = self.busy(), time.monotonic()
        time.sleep(20)
        took = time.monotonic() - begun
        monitor, server = (after - earlier for after, earlier in zip(self.busy(), before))
        self.result("postgres_judging_50000", "cores", monitor / took, JUDGING_SHARE, server_cores=round(server / took, 3))

    def postgres_growth(self):
        """The CPU of an event with a million events in the tables, beside that with some thousand."""
        agents = [f"agent{at}" for at in range(200)]
        self.create(agents)

        def cost():
            before = sum(self.busy())
            rate, _ = self.send(4_000, 8, 50, agents, 4)
            return (sum(self.busy()) - before) / (rate * 8) * 1e6

        cost()  # warm
        small = cost()
        size = lambda: int(self.server.run("SELECT coalesce(sum(events), 0) FROM watchdog.heads"))
        while size() < 1_000_000:
            self.send(60_000, 5, 500, agents, 4)
        self.server.run("VACUUM ANALYZE")
        large = statistics.median(cost() for _ in range(3))
        self.result("postgres_growth", "ratio", large / small, GROWTH, small_us=round(small, 1), large_us=round(large, 1), events=size(),
                    bytes_per_event=round(self.monitor_bytes() / size()))

    def postgres_take_over(self):
        """One of three monitors is killed; they judged 20,000 sessions, each with a snapshot and later events. Reports of
        all sessions come in meanwhile."""
        others = [Monitor(self.program, self.server.url()) for _ in range(2)]
        killed, monitors = others[0], [self.monitor, others[1]]
        try:
            until(lambda: all(m.ready()["monitors"] == 3 and m.ready()["shards"] >= 85 for m in [killed, *monitors]), "they do not share")
            names = [f"s{at}" for at in range(TAKEN)]
            in_parts(work_all, [(m.host, m.secret, names[3 * part + at::48]) for at, m in enumerate([killed, *monitors])
                                for part in range(16)])
            judged = lambda of: sum(sessions_of(m.ask("GET", "/metrics")[1]) for m in of)
            until(lambda: judged([killed, *monitors]) == TAKEN, "not all are judged", 120)
            time.sleep(6)  # leases were renewed since
            begun = time.monotonic()
            killed.process.send_signal(signal.SIGKILL)
            shards_after = []
            with Reporting(monitors, names) as reporting:
                def all_are_judged():
                    if not shards_after and sum(m.ready().get("shards", 0) for m in monitors) == 256:
                        shards_after.append(time.monotonic() - begun)
                    return shards_after and judged(monitors) == TAKEN
                until(all_are_judged, "nobody judges some sessions", 120)
                took = time.monotonic() - begun
            self.result("postgres_take_over", "s", took, TAKE_OVER_S, leases_s=round(shards_after[0], 1),
                        reports=len(reporting.times), refused=reporting.refused, slowest_report_ms=round(1000 * max(reporting.times)))
        finally:
            for monitor in others:
                monitor.stop(signal.SIGKILL)

    def monitor_bytes(self):
        return int(self.server.run("SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = "
                                   "c.relnamespace WHERE n.nspname = 'watchdog' AND c.relkind = 'r'"))


def in_parts(target, parts):
    workers = [multiprocessing.Process(target=target, args=part) for part in parts]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def sessions_of(metrics):
    """How many a monitor judges."""
    return sum(int(count) for count in re.findall(r"^watchdog_sessions\{.*\} (\d+)$", metrics, re.MULTILINE))


class Reporting(threading.Thread):
    """Reports of some sessions, to each monitor in turn, with the times until they are answered."""

    def __init__(self, monitors, names):
        super().__init__(daemon=True)
        self.clients = [Client(monitor.host, monitor.secret) for monitor in monitors]
        self.names, self.times, self.refused, self.over = names, [], 0, False

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.join()

    def run(self):
        while not self.over:
            begun, at = time.monotonic(), len(self.times)
            try:
                self.clients[at % len(self.clients)].post(f"{SESSIONS}/{self.names[at * 37 % len(self.names)]}/events",
                                                          '{"kind": "state_change", "type": "step"}')
            except RuntimeError:
                self.refused += 1
            self.times.append(time.monotonic() - begun)
            time.sleep(0.05)


def work_all(host, secret, names):
    """Sessions that did some work since they waited."""
    client = Client(host, secret)
    for name in names:
        client.post(SESSIONS, json.dumps({"sessionId": name, "policy": LIVE, "agent": "coder", "task": "mend the parser"}))
        calls = [[{"kind": "tool_call", "name": "shell", "call_id": f"c{at}", "text": f"make test{at}"},
                  {"kind": "tool_result", "name": "shell", "call_id": f"c{at}", "text": f"{at} of nineteen tests fail"}] for at in range(4)]
        client.post(f"{SESSIONS}/{name}/events", json.dumps([{"kind": "wait", "waiting_for": "approval"}]))
        client.post(f"{SESSIONS}/{name}/events", json.dumps([event for call in calls for event in call]))


def create_all(host, secret, names):
    client = Client(host, secret)
    for name in names:
        client.post(SESSIONS, json.dumps({"sessionId": name, "policy": LIVE, "agent": "coder"}))
        client.post(f"{SESSIONS}/{name}/events", '{"kind": "heartbeat", "source": "loop", "iteration": 1}')


def main():
    names = ["postgres_events", "postgres_judging", "postgres_take_over", "postgres_growth"]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path, help="build directory, with the monitor")
    parser.add_argument("--json", action="store_true", help="print a JSON object a line")
    parser.add_argument("--only", choices=names, help="only this one")
    arguments = parser.parse_args()
    table = Table(arguments.json)
    for name in [arguments.only] if arguments.only else names:
        with Bench(arguments.build.resolve(), table) as bench:
            getattr(bench, name)()
    return table.exit_code


if __name__ == "__main__":
    sys.exit(main())
