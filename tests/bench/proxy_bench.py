#!/usr/bin/env python3
"""What the proxy adds to an answer, beside the same client straight at the server, and beside nginx.

A proxy has one core, its clients and the model's server the other. The server is a stand-in that
answers at once: what is measured is the way there and back.
"""

import argparse
import asyncio
import contextlib
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from http_bench import CLIENT_CORE, HOST, NotMeasured, Server, Table, Trouble, by_turns, tool

SECONDS = 3  # of load in one sample
STREAMS = 1_000
BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"Say something, please."}]}'
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Session-Id: %s\r\nContent-Length: %d\r\n\r\n"
BEGIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

NGINX = """
daemon off;
worker_processes 1;
pid %(dir)s/%(name)s.pid;
error_log %(dir)s/%(name)s.log;
events { worker_connections 4096; }
http {
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path %(dir)s/%(name)s-body;
  proxy_temp_path %(dir)s/%(name)s-proxy;
  fastcgi_temp_path %(dir)s/fastcgi;
  uwsgi_temp_path %(dir)s/uwsgi;
  scgi_temp_path %(dir)s/scgi;
  %(more)s
  server {
    listen %(host)s:%(port)d backlog=4096;
    default_type application/json;
    location / { %(does)s }
  }
}
"""
ANSWER = '{\\"choices\\":[{\\"message\\":{\\"role\\":\\"assistant\\",\\"content\\":\\"Something.\\"},\\"finish_reason\\":\\"stop\\"}]}'
WRK = """
function done(summary)
  local e = summary.errors
  print("done", summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout)
end
"""
WRK_POST = WRK + """
wrk.method = "POST"
wrk.body = '%s'
wrk.headers["Content-Type"] = "application/json"
""" % BODY.replace(b'"stream":true,', b"").decode()


def free_port():
    with socket.create_server((HOST, 0)) as found:
        return found.getsockname()[1]


class Stamps:
    """Answers each request with a stream of events that say when they were written."""

    def __init__(self, events, pause):
        self.events, self.pause = events, pause

    def __enter__(self):
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()

        async def serve():
            server = await asyncio.start_server(self.answer, HOST, 0, backlog=4096)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()

        self.loop.create_task(serve())
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        ready.wait()
        return self

    def __exit__(self, *_):
        async def end():
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self.loop)

    async def answer(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(len(BODY))
                writer.write(BEGIN)
                for _ in range(self.events):
                    if writer.is_closing():
                        return
                    if self.pause:
                        await asyncio.sleep(self.pause)
                    event = b"data: %020d\n\n" % time.perf_counter_ns()
                    writer.write(b"%x\r\n%s\r\n" % (len(event), event))
                writer.write(b"0\r\n\r\n")
                await writer.drain()


def stream_once(port, count):
    """Milliseconds to the first byte, and those that each event took."""
    with socket.create_connection((HOST, port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began = time.perf_counter_ns()
        connection.sendall(HEAD % (b"bench", len(BODY)) + BODY)
        first, data, took = None, b"", []
        while len(took) < count:
            data += connection.recv(65_536)
            now = time.perf_counter_ns()
            first = first or now - began
            while (at := data.find(b"data: ")) >= 0 and len(data) >= at + 26:
                took.append((now - int(data[at + 6:at + 26])) / 1e6)
                data = data[at + 26:]
        return first / 1e6, took


def p99(values):
    return sorted(values)[int(len(values) * .99)]


class Bench:
    def __init__(self, build, table, work):
        self.build, self.table, self.work = build, table, work

    def nginx(self, name, port, does, more=""):
        config = self.work / f"{name}.conf"
        config.write_text(NGINX % {"dir": self.work, "name": name, "host": HOST, "port": port, "does": does, "more": more})
        return [tool("nginx"), "-p", str(self.work), "-e", str(self.work / f"{name}.log"), "-c", str(config)]

    def proxy(self, upstream):
        port = free_port()
        return Server([str(self.build / "bin/watchdog-monitor"), "serve", "--config", "", "--db", str(self.work / f"{port}.db"), "--port", "0",
                       "--proxy-port", str(port), "--upstream", f"http://{HOST}:{upstream}"], port, self.work / "log")

    def rate(self):
        """Requests a second."""
        scripts = {"/v1/chat/completions": self.work / "post.lua", "/v1/models": self.work / "get.lua"}
        for script, text in zip(scripts.values(), (WRK_POST, WRK)):
            script.write_text(text)
        back = free_port()
        command = self.nginx("back", back, f'return 200 "{ANSWER}";')
        behind = subprocess.Popen(["taskset", "-c", str(CLIENT_CORE), *command])

        def load(port, path):
            said = subprocess.run([tool("wrk"), "-t1", "-c32", f"-d{SECONDS}s", "-s", str(scripts[path]), f"http://{HOST}:{port}{path}"],
                                  capture_output=True, text=True, check=True).stdout
            done = said[said.index("done"):].split()
            if int(done[3]):
                raise Trouble(f"{done[3]} requests failed")
            return int(done[1]) / (int(done[2]) / 1e6)

        plain = "proxy_pass http://127.0.0.1:%d;" % back
        # With connections that are kept, which is not how nginx is set up unless somebody does.
        kept = 'proxy_pass http://back; proxy_http_version 1.1; proxy_set_header Connection "";'
        chat, models = scripts
        # A request for a generation always has a connection of its own; only the others share some.
        ways = [("proxy_rate", chat, plain, .5), ("proxy_rate_kept", chat, kept, None),
                ("proxy_rate_get", models, plain, None), ("proxy_rate_get_kept", models, kept, .6)]
        try:
            for name, path, does, limit in ways:
                port = free_port()
                more = "upstream back { server 127.0.0.1:%d; keepalive 64; }" % back
                with Server(self.nginx("front", port, does, more), port, self.work / "front"), self.proxy(back) as own:
                    found = by_turns(lambda: load(own.port, path), lambda: load(port, path))
                self.table.add(name, "/s", *found, at_least=limit)
        finally:
            behind.terminate()
            behind.wait()

    def latency(self):
        """What comes on top of the same client's straight way."""
        def measured(events, pause, turns):
            firsts, chunks = {"own": [], "bare": []}, {"own": [], "bare": []}
            with Stamps(events, pause) as server, self.proxy(server.port) as own:
                for turn in range(turns):
                    for way, port in (("own", own.port), ("bare", server.port)):
                        first, took = stream_once(port, events)
                        if turn > turns / 10:
                            firsts[way].append(first)
                            chunks[way].extend(took)
            return firsts, chunks

        _, chunks = measured(100, .002, 22)
        firsts, _ = measured(1, 0, 440)
        for name, found in (("proxy_first_byte", firsts), ("proxy_chunk", chunks)):
            for kind, of, limit in (("median", statistics.median, 1), ("p99", p99, 3)):
                own_ms, bare_ms = of(found["own"]), of(found["bare"])
                self.table.add(f"{name}_{kind}", "ms", own_ms, bare_ms)
                self.table.add(f"{name}_{kind}_added", "ms", own_ms - bare_ms, at_most=limit)

    def memory(self):
        """Of streams that are open, each of another session."""
        with Stamps(1_000_000, 1) as server, self.proxy(server.port) as own, contextlib.ExitStack() as open_streams:
            stream_once(own.port, 1)
            time.sleep(2)
            before = own.rss_mb()
            for number in range(STREAMS):
                connection = open_streams.enter_context(socket.create_connection((HOST, own.port)))
                connection.sendall(HEAD % (b"stream-%d" % number, len(BODY)) + BODY)
                open_streams.enter_context(contextlib.closing(connection))
                connection.recv(1)
            time.sleep(10)
            self.table.add("proxy_stream_memory", "KiB", (own.rss_mb() - before) * 1e6 / 1024 / STREAMS, at_most=64)


def main():
    names = ["rate", "latency", "memory"]
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
            except (Trouble, OSError, ValueError, subprocess.SubprocessError) as why:
                table.failed(name, str(why))
    return table.exit_code


if __name__ == "__main__":
    sys.exit(main())
