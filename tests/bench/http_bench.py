#!/usr/bin/env python3
"""What the monitor's answers over HTTP cost, beside servers that do less, and what it costs idle.

Server and client have a core each. A comparison takes both by turns; its ratio is the median of the
pairs' ratios. CPU is user and system time of all threads of a server, from /proc.
"""

import argparse
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PAIRS = 5
SESSIONS = 1_000
SECONDS = 2  # of load in one sample
HOST = "127.0.0.1"
PROGRESS = "/api/autonomous/progress/"
EVENTS = "/api/autonomous/sessions/"
CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, CLIENT_CORE = CORES[0], CORES[-1]
LIVE = {"heartbeatInterval": 3_600_000}  # live to the end of the run without a word

WRK_SCRIPT = """
local all = {}
function init()
  for i = 1, %d do all[i] = wrk.format("GET", "%sagent-" .. i) end
end
function request() return all[math.random(#all)] end
function done(summary)
  local e = summary.errors
  print("done", summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout)
end
""" % (SESSIONS, PROGRESS)

NGINX_CONFIG = """
daemon off;
worker_processes 1;
pid %(dir)s/nginx.pid;
error_log %(dir)s/nginx.log;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path %(dir)s/body;
  proxy_temp_path %(dir)s/proxy;
  fastcgi_temp_path %(dir)s/fastcgi;
  uwsgi_temp_path %(dir)s/uwsgi;
  scgi_temp_path %(dir)s/scgi;
  server {
    listen %(host)s:%(port)d;
    default_type application/json;
    location / { return 200 "%(body)s"; }
  }
}
"""


class Trouble(Exception):
    """A benchmark could not be run."""


class NotMeasured(Exception):
    """Something that a benchmark needs is not on this machine."""


class Table:
    """Prints a line for each finding, as bench.h does, and remembers whether a limit was exceeded."""

    def __init__(self, as_json):
        self.json = as_json
        self.exit_code = 0
        if not as_json:
            print(f"{'':32} {'measured':>13} {'comparator':>13} {'ratio':>7} {'limit':>11}", flush=True)

    @staticmethod
    def number(value, unit):
        if value is None:
            return "-"
        digits = 0 if value >= 1000 else 1 if value >= 100 else 2
        return f"{value:.{digits}f}" + (f" {unit}" if unit else "")

    def add(self, name, unit, measured, comparator=None, ratio=None, at_most=None, at_least=None):
        """The limit, where there is one, is one of the ratio, or of the value if there is none."""
        limited = measured if ratio is None else ratio
        kept = (at_most is None or limited <= at_most) and (at_least is None or limited >= at_least)
        if not kept:
            self.exit_code = max(self.exit_code, 1)
        limit = at_least if at_most is None else at_most
        bound = None if limit is None else "at_least" if at_most is None else "at_most"
        if self.json:
            print(json.dumps({"name": name, "unit": unit, "measured": measured, "comparator": comparator,
                              "ratio": ratio, "bound": bound, "limit": limit, "ok": kept}), flush=True)
            return
        sign = {None: "", "at_most": "<= ", "at_least": ">= "}[bound]
        said = sign + self.number(limit, unit if ratio is None else "")
        verdict = "" if limit is None else "ok" if kept else "EXCEEDED"
        print(f"{name:32} {self.number(measured, unit):>13} {self.number(comparator, unit):>13} "
              f"{self.number(ratio, ''):>7} {said:>11}  {verdict}", flush=True)

    def failed(self, name, why):
        self.exit_code = 2
        print(f"{name}: {why}", file=sys.stderr, flush=True)

    def not_measured(self, name, why):
        self.exit_code = 2
        print(json.dumps({"name": name, "not_measured": why}) if self.json
              else f"{name:32} not measured: {why}", flush=True)


def by_turns(measure, compare):
    """Medians of both and of the ratio, after one round that does not count."""
    pairs = []
    for turn in range(-1, PAIRS):
        first, second = (measure, compare) if turn % 2 == 0 else (compare, measure)
        pair = [first(), second()]
        if turn >= 0:
            pairs.append(pair if turn % 2 == 0 else pair[::-1])
    return (statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs),
            statistics.median(a / b for a, b in pairs))


def tool(name):
    found = shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    if not found:
        raise NotMeasured(f"{name} is not installed")
    return found


def pinned(core):
    return lambda: os.sched_setaffinity(0, {core})


class Server:
    """A server process on a core of its own."""

    def __init__(self, command, port, log):
        self.port = port
        with open(log, "ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, preexec_fn=pinned(SERVER_CORE))
        self.pid = self.process.pid
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1):
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise Trouble(f"{command[0]} does not answer: {pathlib.Path(log).read_text()[-2000:]}")
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def cpu(self):
        """Seconds so far, of its children too."""
        children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        ticks = 0
        for pid in [self.pid, *children]:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def rss_mb(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024 / 1e6


class Client:
    """A connection that stays open."""

    def __init__(self, server):
        self.connection = http.client.HTTPConnection(HOST, server.port, timeout=120)

    def ask(self, method, path, body=None, headers=None):
        self.connection.request(method, path, body, headers or {})
        response = self.connection.getresponse()
        answer = response.read()
        if response.status >= 300:
            raise Trouble(f"{method} {path}: {response.status} {answer[:500]!r}")
        return answer

    def make_session(self, name, lines):
        self.ask("POST", "/api/autonomous/sessions", json.dumps({"sessionId": name, "policy": LIVE}))
        self.ask("POST", f"{EVENTS}{name}/events", "\n".join(lines))


def make_sessions(server, count, lines):
    """agent-1 and so on, over some connections at once: then they share commits."""
    connections = 16

    def make(first):
        client = Client(server)
        for number in range(first, count + 1, connections):
            client.make_session(f"agent-{number}", lines)

    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        list(pool.map(make, range(1, connections + 1)))


def list_all(client, count):
    rows = client.ask("GET", "/api/autonomous/sessions?limit=10000")
    if len(json.loads(rows)["sessions"]) != count:
        raise Trouble("the list is not whole")


@contextlib.contextmanager
def page_stream(server):
    """What an open list in a browser holds, once it has all rows. A thread reads what comes."""
    with socket.create_connection((HOST, server.port), 60) as stream:
        stream.sendall(b"GET /api/autonomous/stream?include=sessions,transitions HTTP/1.1\r\nHost: localhost\r\n\r\n")
        seen = b""
        while b'"complete":true' not in seen:
            seen = seen[-64:] + stream.recv(1 << 20)
        stream.settimeout(None)

        def read():
            while stream.recv(1 << 16):
                pass

        reader = threading.Thread(target=read)
        reader.start()
        yield
        stream.shutdown(socket.SHUT_RDWR)
        reader.join()


def usual_life():
    """50 heartbeats and 20 state changes, as lines."""
    for beat in range(1, 51):
        yield json.dumps({"kind": "heartbeat", "source": "loop", "iteration": beat, "phase": "act"})
        if beat % 5 < 2:
            yield json.dumps({"kind": "state_change", "type": "step", "data": {"iteration": beat}})


def state_changes(count):
    """Lines whose last field is 200 bytes of data."""
    for number in range(count):
        data = {"iteration": number, "file": "src/parser/lexer.cpp", "note": ""}
        data["note"] = "two of nineteen tests still fail ".ljust(200 - len(json.dumps(data)), ".")
        yield json.dumps({"kind": "state_change", "type": "step", "data": data})


def told_calls(batch, count):
    """The same calls of tools as OpenTelemetry's logs and as lines of the monitor's own API."""
    now = 1_000_000 * int(1_000 * time.time())
    text = lambda name, value: {"key": name, "value": {"stringValue": value}}
    records, lines = [], []
    for number in range(count):
        call = f"call_{batch}_{number}"
        arguments = json.dumps({"cmd": f"grep -rn needle{number} src/parser", "yield_time_ms": 10000})
        output = f"src/parser/lexer.cpp:{number}: needle{number} ".ljust(200, ".")
        records.append({
            "timeUnixNano": str(now), "severityNumber": 9, "severityText": "INFO", "attributes": [
                text("event.name", "codex.tool_result"), text("tool_name", "exec_command"), text("call_id", call),
                text("arguments", arguments), text("duration_ms", "5"), text("success", "true"), text("output", output),
                text("event.timestamp", "2026-11-22T10:42:14.367Z"), text("conversation.id", "telemetry"),
                text("app.version", "0.169.0"), text("originator", "codex_exec"), text("terminal.type", "xterm"),
                text("model", "fake-1"), text("slug", "fake-1")]})
        lines.append(json.dumps({"kind": "tool_call", "name": "exec_command", "call_id": call, "args": json.loads(arguments),
                                 "event_id": f"hook:PreToolUse:{call}"}))
        lines.append(json.dumps({"kind": "tool_result", "name": "exec_command", "call_id": call, "text": output,
                                 "event_id": f"hook:PostToolUse:{call}"}))
    resource = {"attributes": [text("service.name", "codex_exec"), text("service.version", "0.169.0")]}
    return json.dumps({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]}), "\n".join(lines)


class Bench:
    def __init__(self, build, table, work):
        self.build, self.table, self.work = build, table, work

    def command(self, port, database):
        return [str(self.build / "bin/watchdog-monitor"), "serve", "--port", str(port), "--db", str(database)]

    def start(self, command_of, name):
        """`command_of` gets the port."""
        with socket.socket() as free:
            free.bind((HOST, 0))
            port = free.getsockname()[1]
        return Server(command_of(port), port, self.work / f"{name}.log")

    def monitor(self, name, before=()):
        return self.start(lambda port: [*before, *self.command(port, self.work / f"{name}.db")], name)

    # --- GET of a session's progress ---

    def load(self, server):
        """CPU seconds a request and requests a second, with 64 connections asking."""
        script = self.work / "get.lua"
        script.write_text(WRK_SCRIPT)
        before = server.cpu()
        said = subprocess.run(
            [tool("wrk"), "-t1", "-c64", f"-d{SECONDS}s", "-s", str(script), f"http://{HOST}:{server.port}"],
            capture_output=True, text=True, check=True, preexec_fn=pinned(CLIENT_CORE)).stdout
        spent = server.cpu() - before
        requests, micros, errors = map(int, re.search(r"^done\s+(\d+)\s+(\d+)\s+(\d+)", said, re.M).groups())
        if errors or not requests:
            raise Trouble(f"{errors} of {requests} requests failed")
        return spent / requests, requests / micros * 1e6

    @contextlib.contextmanager
    def thousand_sessions(self):
        with self.monitor("get") as server:
            make_sessions(server, SESSIONS, list(usual_life()))
            self.body = Client(server).ask("GET", PROGRESS + "agent-1").decode()
            yield server

    def nginx(self, port):
        config = self.work / "nginx.conf"
        body = "x" * len(self.body)
        config.write_text(NGINX_CONFIG % {"dir": self.work, "host": HOST, "port": port, "body": body})
        return [tool("nginx"), "-c", str(config), "-e", str(self.work / "nginx.log")]

    def http_get_cpu(self):
        tool("wrk"), tool("nginx")
        with self.thousand_sessions() as server, self.start(self.nginx, "nginx") as nginx:
            found = by_turns(lambda: 1e6 * self.load(server)[0], lambda: 1e6 * self.load(nginx)[0])
        self.table.add("http_get_cpu", "us", *found, at_most=2.5)

    def http_get_rate(self):
        tool("wrk")
        node_js = [tool("node"), str(pathlib.Path(__file__).with_name("node_server.mjs"))]
        with self.thousand_sessions() as server, \
                self.start(lambda port: [*node_js, str(port), str(SESSIONS)], "node") as node:
            waited = {server: [], node: []}

            def rate(side):
                cpu, wall = self.load(side)
                waited[side].append(wall)
                return 1 / cpu

            found = by_turns(lambda: rate(server), lambda: rate(node))
        self.table.add("http_get_rate", "/s", *found, at_least=2)
        # By the clock, and so of what neighbours on the machine and the client left over.
        ours, theirs = (all[1:] for all in waited.values())
        self.table.add("http_get_rate_wall", "/s", statistics.median(ours), statistics.median(theirs),
                       statistics.median(a / b for a, b in zip(ours, theirs)))

    # --- the same of a long history ---

    def http_get_history(self):
        valgrind, control = tool("valgrind"), tool("callgrind_control")
        with self.monitor("history") as server:
            client = Client(server)
            batch = list(state_changes(1_000))
            client.make_session("short", batch)
            client.make_session("long", batch)
            for _ in range(999):
                client.ask("POST", f"{EVENTS}long/events", "\n".join(batch))
        callgrind = [valgrind, "--tool=callgrind", f"--callgrind-out-file={self.work}/callgrind"]
        with self.monitor("history", callgrind) as server:
            client = Client(server)
            requests = 300
            dumps = 0

            def instructions(session):
                nonlocal dumps
                subprocess.run([control, "-z", str(server.pid)], capture_output=True, check=True)
                for _ in range(requests):
                    client.ask("GET", PROGRESS + session)
                subprocess.run([control, "-d", str(server.pid)], capture_output=True, check=True)
                dumps += 1
                counted = (self.work / f"callgrind.{dumps}").read_text()
                return int(re.search(r"^(?:summary|totals): (\d+)", counted, re.M)[1]) / requests

            found = by_turns(lambda: instructions("long"), lambda: instructions("short"))
        self.table.add("http_get_history", "instr", *found, at_most=1.05)

    # --- POST of many events ---

    def http_ndjson(self):
        batches = 100
        lines = list(state_changes(1_000))
        batch = "\n".join(lines)
        file = self.work / "events.ndjson"
        file.write_text("\n".join([batch] * (batches + 1)) + "\n")
        with self.monitor("ndjson") as server:
            client = Client(server)

            def through_monitor():
                before = server.cpu()
                for _ in range(batches):
                    client.ask("POST", f"{EVENTS}agent/events", batch)
                return 1e6 * (server.cpu() - before) / (batches * len(lines))

            def bare():
                said = subprocess.run([str(self.build / "tests/bench/ndjson_bare"), str(file)], check=True,
                                      capture_output=True, text=True, preexec_fn=pinned(SERVER_CORE))
                return 1e6 * float(said.stdout)

            found = by_turns(through_monitor, bare)
        self.table.add("http_ndjson", "us", *found, at_most=1.4)

    # --- log records of OpenTelemetry ---

    def otlp_logs(self):
        """5,000 records a sample, as many as agents may send in a second, in batches as exporters make them."""
        batches, size = 10, 500
        with self.monitor("otlp") as server:
            client = Client(server)
            made = 0

            def cost(send):
                nonlocal made
                bodies = [told_calls(made + number, size) for number in range(batches)]
                made += batches
                before = server.cpu()
                for logs, lines in bodies:
                    send(logs, lines)
                return 1e6 * (server.cpu() - before) / (batches * size)

            def telemetry(logs, _):
                client.ask("POST", "/v1/logs", logs, {"Content-Type": "application/json"})

            found = by_turns(lambda: cost(telemetry),
                             lambda: cost(lambda _, lines: client.ask("POST", f"{EVENTS}own/events", lines)))
        self.table.add("otlp_logs", "us", *found, at_most=2)

    # --- nothing to do ---

    def idle(self):
        sessions = 10_000
        share = 512  # bytes that a session may have
        with self.monitor("idle") as server:
            Client(server).ask("GET", "/healthz")
            fresh = server.rss_mb()
            make_sessions(server, sessions, list(usual_life())[:2])
            full = server.rss_mb()
        with self.monitor("idle") as server:
            time.sleep(28)  # retention's first round begins when the monitor is 30 s old; later ones every 10 min
            before = server.cpu()
            time.sleep(20)
            with_round = server.cpu() - before
            before = server.cpu()
            time.sleep(20)
            without = server.cpu() - before
            a_round = max(0, with_round - without)
            busy = 100 * (without / 20 + a_round / 600)
            restarted = server.rss_mb()
            client = Client(server)
            before = server.cpu()
            lists = 20  # the kernel counts a processor's time in steps of 10 ms
            for _ in range(lists):
                list_all(client, sessions)
            listing = 1_000 * (server.cpu() - before) / lists
            with contextlib.ExitStack() as open_pages:
                for _ in range(10):
                    open_pages.enter_context(page_stream(server))
                before = server.cpu()
                time.sleep(20)
                watched = 100 * (server.cpu() - before) / 20
        self.table.add("idle_cpu", "%", busy, at_most=0.2)
        self.table.add("idle_retention_round", "ms", 1_000 * a_round)
        self.table.add("idle_cpu_10_pages", "%", watched, at_most=1)
        self.table.add("list_10000_cpu", "ms", listing, at_most=60)
        self.table.add("idle_rss", "MB", full)
        self.table.add("idle_rss_restarted", "MB", restarted)
        self.table.add("idle_rss_no_sessions", "MB", fresh)
        # Beside what the monitor needs without sessions, and 512 B for each of them.
        self.table.add("idle_rss_beside", "MB", full - fresh - sessions * share / 1e6, at_most=30)


def main():
    names = ["http_get_cpu", "http_get_rate", "http_get_history", "http_ndjson", "otlp_logs", "idle"]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path, help="build directory, with the monitor")
    parser.add_argument("--json", action="store_true", help="print a JSON object a line")
    parser.add_argument("--only", choices=names, help="only this one")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {CLIENT_CORE})
    table = Table(arguments.json)
    for name in [arguments.only] if arguments.only else names:
        with tempfile.TemporaryDirectory() as work:
            try:
                getattr(Bench(arguments.build.resolve(), table, pathlib.Path(work)), name)()
            except NotMeasured as why:
                table.not_measured(name, str(why))
            except (Trouble, OSError, subprocess.SubprocessError, http.client.HTTPException) as why:
                table.failed(name, str(why))
    return table.exit_code


if __name__ == "__main__":
    sys.exit(main())
