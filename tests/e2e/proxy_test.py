#!/usr/bin/env python3
"""What passes through the proxy: bytes as they are, whoever misbehaves."""

import contextlib
import gzip
import http.client
import json
import os
import pathlib
import queue
import random
import re
import signal
import socket
import sys
import threading
import time
import unittest

import endless
from server import Server, memory
from upstream import Upstream, begin_events, chunk, more, read_message, respond

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
TLS = pathlib.Path(__file__).parent.parent / "data" / "tls"
CHAT = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'


def post(path, body, headers=b"", close=True):
    end = b"Connection: close\r\n" if close else b""
    return b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s%sContent-Length: %d\r\n\r\n%s" % (path, headers, end, len(body), body)


def get(path, headers=b"Connection: close\r\n"):
    return b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n" % (path, headers)


class ProxyTest(unittest.TestCase):
    def begin(self, answer, *arguments, more_environment=None, certificate=None):
        self.upstream = self.enterContext(Upstream(answer, certificate))
        self.begin_before(self.upstream.url, *arguments, more_environment=more_environment)

    def begin_before(self, url, *arguments, more_environment=None):
        arguments = ["--upstream", url, "--proxy-port", "0", "--no-probe", *arguments]
        self.server = self.enterContext(Server(PROGRAM, more_environment, arguments))
        for line in self.server.process.stdout:
            if found := re.search(r"their model at https?://127\.0\.0\.1:(\d+)/v1", line):
                self.port = int(found[1])
                return

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        return connection

    def ask(self, request):
        """All that comes until the connection is closed."""
        connection = self.connect()
        connection.sendall(request)
        return self.all_of(connection)

    @staticmethod
    def all_of(connection):
        pieces = []
        while piece := connection.recv(1 << 20):
            pieces.append(piece)
        return b"".join(pieces)

    def ask_broken(self, request):
        """Until the connection is closed or reset."""
        with contextlib.suppress(ConnectionResetError):
            self.ask(request)

    def response(self, request):
        head, _, body = self.ask(request).partition(b"\r\n\r\n")
        return int(head.split()[1]), head, body

    def events(self, session):
        asked = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        asked.request("GET", f"/api/autonomous/sessions/{session}/events")
        return asked.getresponse().read().decode()

    def eventually(self, holds):
        """The reports of a request follow it a little later."""
        end = time.monotonic() + PATIENCE_S
        while not holds() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertTrue(holds())

    def log(self):
        self.server.log.flush()
        return pathlib.Path(self.server.log.name).read_text()

    def test_bodies_of_any_kind_arrive_as_they_are_in_both_directions(self):
        seed = random.randrange(2**32)
        print("seed", seed)
        rng = random.Random(seed)

        def answer(connection, head, body):
            way = head.split()[1].rpartition(b"/")[2]
            if way == b"length":
                respond(connection, body, headers=b"X-One: 1\r\nx-one:  2 \r\nContent-Type: a/b\r\n")
            elif way == b"chunks":
                connection.sendall(b"HTTP/1.1 203 Odd Reason\r\nTransfer-Encoding: chunked\r\n\r\n")
                at = 0
                while at < len(body):
                    size = min(rng.choice((1, 7, 4096, 70_000)), len(body) - at)
                    chunk(connection, body[at:at + size])
                    at += size
                connection.sendall(b"0\r\n\r\n")
            else:
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + body)

        self.begin(answer)
        for path in (b"/x/", b"/v1/chat/completions/../", b"/s/one/x/"):
            for way in (b"length", b"chunks", b"close"):
                for size in (0, 1, 5_000, 300_000):
                    body = rng.randbytes(size)
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
                    connection.request("POST", (path + way).decode(), body if rng.random() < .5 else iter([body] if body else []))
                    response = connection.getresponse()
                    self.assertEqual(response.read(), body, (path, way, size))
                    self.assertEqual(response.reason, "Odd Reason" if way == b"chunks" else "OK")
                    self.assertEqual(self.upstream.requests.get()[1], body)
                    if way == b"length":
                        self.assertEqual(response.headers.get_all("x-one"), ["1", "2"])
                    connection.close()

    def test_a_request_goes_up_with_its_own_headers_and_no_others(self):
        self.begin(lambda connection, head, body: respond(connection, b"{}"))
        self.ask(post(b"/v1/chat/completions?x=%2F1", CHAT, b"authorization: Bearer k\r\nX-B: 1\r\nx-b: 2\r\nX-Watchdog-Session: s1\r\n"))
        head, body = self.upstream.requests.get()
        self.assertEqual(head.replace(self.upstream.url[7:].encode(), b"SERVER"),
                         b"POST /v1/chat/completions?x=%2F1 HTTP/1.1\r\nHost: SERVER\r\nauthorization: Bearer k\r\n"
                         b"X-B: 1\r\nx-b: 2\r\nAccept-Encoding: identity\r\nContent-Length: " + str(len(CHAT)).encode())
        self.assertEqual(body, CHAT)

    def test_each_piece_comes_before_the_next_is_written(self):
        seen = queue.Queue()

        def answer(connection, head, body):
            begin_events(connection)
            for number in range(20):
                chunk(connection, b"data: %d\n\n" % number)
                self.assertEqual(seen.get(timeout=PATIENCE_S), number)
            connection.sendall(b"0\r\n\r\n")

        self.begin(answer)
        connection = self.connect()
        connection.sendall(post(b"/v1/chat/completions", CHAT))
        got = b""
        for number in range(20):
            while b"data: %d\n\n" % number not in got:
                got += more(connection)
            seen.put(number)
        self.assertTrue((got + self.all_of(connection)).endswith(b"0\r\n\r\n"))

    def test_a_client_that_hangs_up_takes_the_servers_connection_with_it(self):
        gone = queue.Queue()

        def answer(connection, head, body):
            if b"streams" in head:
                begin_events(connection)
                chunk(connection, b"data: 1\n\n")
            try:
                gone.put(connection.recv(1))
            except ConnectionResetError:  # the proxy had not read all of the answer
                gone.put(b"")

        self.begin(answer)
        for path in (b"/v1/chat/completions", b"/streams/v1/chat/completions"):
            connection = self.connect()
            connection.sendall(post(path, CHAT))
            self.upstream.requests.get(timeout=PATIENCE_S)
            if b"streams" in path:
                more(connection)
            connection.close()
            self.assertEqual(gone.get(timeout=PATIENCE_S), b"")

    def test_a_client_that_does_not_read_stops_the_server_from_writing(self):
        size = 100_000_000
        blocked = threading.Event()

        def answer(connection, head, body):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            connection.settimeout(.5)  # Longer than any piece takes that somebody reads.
            sent, block = 0, os.urandom(1 << 20)
            while sent < size:
                try:
                    sent += connection.send(block[:size - sent])
                except TimeoutError:
                    blocked.set()

        self.begin(answer)
        connection = self.connect()
        connection.sendall(get(b"/big"))
        self.assertTrue(blocked.wait(PATIENCE_S))
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        self.assertLess(int(re.search(r"VmRSS:\s+(\d+)", status)[1]), memory(150), "kB; nothing piles up")
        self.assertGreater(len(self.all_of(connection)), size)

    def test_a_prompt_of_100_megabytes_passes(self):
        self.begin(lambda connection, head, body: respond(connection, str(hash(body)).encode()))
        body = b'{"model":"m","prompt":"' + b"x" * 100_000_000 + b'"}'
        status, _, answer = self.response(post(b"/v1/completions", body))
        self.assertEqual((status, answer), (200, str(hash(body)).encode()))

    def test_an_unreachable_server_is_reported_in_the_clients_own_format(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            url = "http://127.0.0.1:%d" % free.getsockname()[1]
        self.begin_before(url)
        for path, message in ((b"/v1/chat/completions", lambda told: told["error"]["message"]),
                              (b"/v1/messages", lambda told: told["error"]["message"]),
                              (b"/api/chat", lambda told: told["error"]),
                              (b"/v1/models", lambda told: told["error"]["message"])):
            status, _, body = self.response(post(path, CHAT))
            self.assertEqual(status, 502)
            self.assertIn("cannot be reached", message(json.loads(body)))

    def test_an_answer_that_is_not_http_is_reported_as_an_error(self):
        answers = {b"/garbage": b"\0\1\2 garbage\r\n\r\n", b"/version": b"HTTP/3.0 200 OK\r\n\r\n",
                   b"/lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                   b"/header": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000,
                   b"/upgrade": b"HTTP/1.1 101 Switching Protocols\r\n\r\n", b"/nothing": b"",
                   b"/interim": b"HTTP/1.1 102 Processing\r\n\r\n" * 100}
        self.begin(lambda connection, head, body: connection.sendall(answers[head.split()[1]]))
        for path in answers:
            status, _, body = self.response(get(path))
            self.assertEqual(status, 502, path)
            self.assertIn("server", json.loads(body)["error"]["message"] if path != b"/header" else "server")

    def test_framing_without_end_is_refused(self):
        """On paths whose bodies are looked into, and on those whose bodies pass as they come."""
        self.begin(lambda connection, head, body: respond(connection, b"{}"))
        for path in (b"/v1/chat/completions", b"/v1/files"):
            head = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n" % path
            endless.assert_bounded(self, self.server, self.connect, head)
        self.assertEqual(self.response(get(b"/v1/models"))[0], 200)

    def test_an_answer_whose_framing_has_no_end_is_given_up(self):
        came = {}

        def answer(connection, head, body):
            start, again = endless.FRAMINGS[head.split()[1][1:].decode().replace("-", " ")]
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + start)
            with contextlib.suppress(OSError):
                for _ in range(2_500):
                    connection.sendall(again)
                came[head] = True

        self.begin(answer)
        before = endless.status_bytes(self.server, "VmHWM")
        for name in endless.FRAMINGS:
            self.ask_broken(get(b"/" + name.replace(" ", "-").encode()))
        self.assertEqual(came, {}, "all of it was read")
        self.assertLess(endless.status_bytes(self.server, "VmHWM") - before, 32 * 2**20)

    def test_an_answer_in_an_unknown_coding_is_not_passed_on(self):
        codings = [b"gzip, chunked", b"chunked;q=1", b"gzip", b"chunked, chunked"]
        self.begin(lambda connection, head, body: connection.sendall(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n2\r\n{}\r\n0\r\n\r\n" % codings[int(head.split()[1][1:])]))
        for at, coding in enumerate(codings):
            self.assertEqual(self.response(get(b"/%d" % at))[0], 502, coding)

    def test_an_answer_that_breaks_off_does_not_look_whole(self):
        ends = {b"/short": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
                b"/chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
                b"/last": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
                b"/bomb": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + b"x" * 10_000_000,
                b"/size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n"}
        self.begin(lambda connection, head, body: connection.sendall(ends[head.split()[1]]))
        for path in ends:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
            connection.request("GET", path.decode())
            with self.assertRaises((http.client.HTTPException, ConnectionError), msg=path):
                response = connection.getresponse()
                response.read()
                if response.status == 502:  # Broken so early that there was time to say so.
                    raise http.client.HTTPException
            connection.close()
        # Within a stream of events, the proxy reports the break as an event.
        self.upstream.answer = lambda connection, head, body: (begin_events(connection), chunk(connection, b"data: 1\n\n"))
        body = self.ask(post(b"/v1/chat/completions", CHAT))
        self.assertIn(b'data: {"error":{"message":"the model server broke off', body)
        self.assertTrue(body.endswith(b"0\r\n\r\n"))

    def test_more_than_was_announced_is_not_taken_for_another_answer(self):
        self.begin(lambda connection, head, body: connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"))
        connection = self.connect()
        connection.sendall(get(b"/a", b"") + get(b"/b"))
        self.assertEqual(re.findall(rb"\r\n\r\n(ok|wrong)", self.all_of(connection)), [b"ok", b"ok"])

    def test_an_answer_that_nobody_asked_for_ends_a_kept_connection(self):
        for certificate in (None, (TLS / "cert.pem", TLS / "key.pem")):
            with self.subTest(certificate=certificate):
                opened, may_send, sent = [], threading.Event(), threading.Event()

                def answer(connection, head, body):
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # Each answer arrives before the next request.
                    opened.append(connection)
                    number = b"%d" % len(opened)
                    respond(connection, number)
                    read_message(connection)  # Kept connections are used again, also after session tickets of TLS.
                    respond(connection, number)
                    may_send.wait(PATIENCE_S)
                    respond(connection, b"wrong")
                    sent.set()
                    read_message(connection)

                self.begin(answer, certificate=certificate, more_environment={"WATCHDOG_PROXY_CA_FILE": str(TLS / "cert.pem")})
                models = get(b"/v1/models")
                self.assertEqual([self.response(models)[2] for _ in range(2)], [b"1", b"1"])
                may_send.set()
                self.assertTrue(sent.wait(PATIENCE_S))
                self.assertEqual(self.response(models)[2], b"2")

    def test_bad_requests_are_refused_before_anybody_is_asked(self):
        self.begin(lambda connection, head, body: respond(connection, b"{}"))
        for request, status in ((b"BAD\r\n\r\n", 400), (b"GET http://x/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
                                (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
                                (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
                                (b"GET / HTTP/1.1\r\n\r\n", 400),
                                (post(b"/v1/x", b"", b"Origin: http://evil.example\r\n"), 403),
                                (post(b"/v1/x", b"", b"Sec-Fetch-Site: cross-site\r\n"), 403),
                                (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
                                (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
                                (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", 400),
                                (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n", 400),
                                (b"CONNECT a:1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
                                (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", 403),
                                (b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", 431)):
            self.assertEqual(self.response(request)[0], status, request[:60])
        self.assertTrue(self.upstream.requests.empty())

    def test_trailers_become_no_headers(self):
        trailers = b"Authorization: Bearer x\r\nX-Forwarded-For: 6.6.6.6\r\nUpgrade: websocket\r\n"
        self.begin(lambda connection, head, body: connection.sendall(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Set-Cookie\r\n\r\n2\r\n{}\r\n0\r\nSet-Cookie: a=1\r\n\r\n"))
        came = self.ask(b"POST /v1/x HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\n" + trailers + b"\r\n")
        head = self.upstream.requests.get(timeout=PATIENCE_S)[0].lower()
        for name in (b"authorization", b"x-forwarded-for", b"websocket"):
            self.assertNotIn(name, head)
        self.assertIn(b" 200 ", came)
        self.assertNotIn(b"set-cookie", came.lower())

    def test_a_websocket_passes_unread_and_that_is_said(self):
        def answer(connection, head, body):
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                               b"Sec-WebSocket-Accept: yes\r\n\r\nfirst")
            while piece := connection.recv(65_536):
                connection.sendall(piece[::-1])

        self.begin(answer)
        ask = get(b"/v1/responses", b"Session-Id: ws\r\nUser-Agent: codex_exec/0.169.0\r\nConnection: Upgrade\r\n"
                                    b"Upgrade: websocket\r\nSec-WebSocket-Key: k\r\n")
        connection = self.connect()
        connection.sendall(ask)
        came = b""
        while not came.endswith(b"first"):
            came += connection.recv(65_536)
        self.assertIn(b" 101 ", came)
        self.assertIn(b"Sec-WebSocket-Accept: yes\r\n", came)
        head = self.upstream.requests.get(timeout=PATIENCE_S)[0].lower()
        for line in (b"upgrade: websocket", b"connection: upgrade", b"sec-websocket-key: k"):
            self.assertEqual(head.count(line), 1, head)
        for size in (1, 1_000, 1_000_000):
            sent = random.randbytes(size)
            threading.Thread(target=connection.sendall, args=(sent,), daemon=True).start()
            back = b""
            while len(back) < size:
                back += connection.recv(65_536)
            # Each piece comes back turned round, whatever its size was.
            self.assertEqual(sorted(back), sorted(sent))
        connection.close()
        while "a WebSocket passes through unread" not in (shown := self.events("ws")):
            time.sleep(0.05)
        self.assertNotIn("tool_call", shown)

    def test_an_api_that_passes_unread_is_named(self):
        self.begin(lambda connection, head, body: respond(connection, b"{}"))
        for headers in (b"", b"X-Watchdog-Session: own\r\n"):
            self.assertEqual(self.response(post(b"/api/v1/chat", CHAT, headers))[0], 200)
        self.eventually(lambda: "/api/v1/chat of LM Studio pass through unread" in self.events("own"))
        self.assertEqual(self.log().count("/api/v1/chat of LM Studio pass through unread"), 1)

    def test_a_websocket_that_the_server_refuses_is_an_answer(self):
        self.begin(lambda connection, head, body: connection.sendall(
            b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\n{}"))
        ask = get(b"/v1/responses", b"Connection: Upgrade, close\r\nUpgrade: websocket\r\n")
        status, _, body = self.response(ask)
        self.assertEqual((status, body), (426, b"{}"))

    def test_clients_that_stall_keep_nobody_out(self):
        self.begin(lambda connection, head, body: respond(connection, b"{}"))
        for text in (b"", b"POST", post(b"/v1/chat/completions", CHAT)[:-5],
                     b"POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"):
            for _ in range(50):
                self.connect().sendall(text)
        self.assertEqual(self.response(get(b"/x"))[0], 200)

    def test_two_clients_of_one_session_get_their_own_answers(self):
        both = threading.Barrier(2, timeout=PATIENCE_S)

        def answer(connection, head, body):
            both.wait()
            respond(connection, body)

        self.begin(answer)
        bodies = [json.dumps({"messages": [{"role": "user", "content": text}]}).encode() for text in ("one", "two")]
        got = {}

        def ask(body):
            got[body] = self.response(post(b"/v1/chat/completions", body, b"X-Session-Id: same\r\n"))[2]

        threads = [threading.Thread(target=ask, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(got, {body: body for body in bodies})

    def test_a_request_joins_the_session_that_telemetry_of_its_trace_names(self):
        self.begin(lambda connection, head, body: respond(connection, b"{}"))
        trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        text = lambda name, value: {"key": name, "value": {"stringValue": value}}
        record = {"traceId": trace, "spanId": "00f067aa0ba902b7", "timeUnixNano": str(time.time_ns()),
                  "attributes": [text("event.name", "claude_code.user_prompt"), text("session.id", "told")]}
        logs = {"resourceLogs": [{"resource": {"attributes": [text("service.name", "claude-code")]},
                                  "scopeLogs": [{"logRecords": [record]}]}]}
        told = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        told.request("POST", "/v1/logs", json.dumps(logs), {"Content-Type": "application/json"})
        self.assertEqual(told.getresponse().status, 200)
        self.response(post(b"/v1/chat/completions", CHAT, b"traceparent: 00-%s-00f067aa0ba902b7-01\r\n" % trace.encode()))
        self.eventually(lambda: '"origin":"proxy"' in self.events("told"))

    def test_connections_are_used_again_also_for_requests_that_came_early(self):
        def answer(connection, head, body):
            if head.startswith(b"HEAD"):
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            elif b"/none" in head:
                connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
            else:
                respond(connection, head.split()[1])

        self.begin(answer)
        head = b"HEAD /h HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        out = self.ask(get(b"/a", b"") + head + get(b"/none", b"") + post(b"/c", b"xyz", close=False) + get(b"/d"))
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", out), [b"200", b"200", b"204", b"200", b"200"])
        self.assertIn(b"Content-Length: 1000\r\n\r\nHTTP/1.1 204", out)
        self.assertTrue(out.endswith(b"/d"))

    def test_only_requests_that_generate_nothing_share_a_connection(self):
        opened, left = [], queue.Queue()

        def answer(connection, head, body):
            opened.append(connection)
            number = b"%d" % len(opened)
            with contextlib.suppress(EOFError):
                while True:
                    respond(connection, number)
                    read_message(connection)
            left.put(number)

        self.begin(answer)
        models, chat = get(b"/v1/models"), post(b"/v1/chat/completions", CHAT)
        asked = [models, get(b"/health"), chat, post(b"/v1/other", b"{}"), models, chat, models]
        self.assertEqual([self.response(one)[2] for one in asked], [b"1", b"1", b"2", b"3", b"1", b"4", b"1"])
        # The others close with their answer, and this one when nobody uses it.
        self.assertEqual(sorted(left.get(timeout=PATIENCE_S) for _ in range(4)), [b"1", b"2", b"3", b"4"])
        self.assertEqual(self.response(models)[2], b"5")

    def test_a_request_on_a_kept_connection_goes_again_only_before_its_answer(self):
        seen = []

        def answer(connection, head, body):
            seen.append(head.split()[1])
            respond(connection, b"whole")
            head, _ = read_message(connection)  # the second on this connection
            seen.append(head.split()[1])
            if head.split()[1] == b"/cut":
                connection.sendall(b"HTTP/1.1 2")

        self.begin(answer)
        self.assertEqual(self.response(get(b"/a"))[2], b"whole")
        self.assertEqual(self.response(get(b"/b"))[2], b"whole")
        self.assertEqual(seen, [b"/a", b"/b", b"/b"])
        self.assertEqual(self.response(get(b"/cut"))[0], 502)
        self.assertEqual(seen[3:], [b"/cut"])

    def test_a_client_that_wants_to_be_asked_for_its_body_is(self):
        self.begin(lambda connection, head, body: respond(connection, body))
        connection = self.connect()
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 2\r\n\r\n")
        self.assertTrue(more(connection).startswith(b"HTTP/1.1 100 "))
        connection.sendall(b"{}")
        self.assertTrue(self.all_of(connection).endswith(b"\r\n\r\n{}"))
        self.assertNotIn(b"xpect", self.upstream.requests.get()[0])

    def test_old_clients_get_streams_that_end_with_the_connection(self):
        def answer(connection, head, body):
            begin_events(connection)
            chunk(connection, b"data: 1\n\n")
            connection.sendall(b"0\r\n\r\n")

        self.begin(answer)
        out = self.ask(b"POST /v1/chat/completions HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s" % (len(CHAT), CHAT))
        self.assertTrue(out.endswith(b"\r\n\r\ndata: 1\n\n"))

    def test_a_client_behind_a_proxy_needs_a_token_that_is_not_passed_on(self):
        self.begin(lambda connection, head, body: respond(connection, b"{}"), "--behind-proxy")
        token = self.server.secret.encode()
        self.assertEqual(self.response(get(b"/v1/models"))[0], 401)
        self.assertEqual(self.response(get(b"/t/wrong-token-of-somebody/v1/models"))[0], 401)
        # The client's own key is the model server's.
        bearer = b"Authorization: Bearer %s\r\nConnection: close\r\n" % token
        self.assertEqual(self.response(get(b"/v1/models", bearer))[0], 401)
        self.assertEqual(self.response(get(b"/t/%s/v1/models" % token))[0], 200)
        named = b"X-Watchdog-Token: %s\r\nConnection: close\r\n" % token
        self.assertEqual(self.response(get(b"/v1/models", named))[0], 200)
        while not self.upstream.requests.empty():
            self.assertNotIn(token, b"".join(self.upstream.requests.get()))

    def test_guesses_at_the_proxy_count_for_their_client_and_at_each_port(self):
        self.begin(lambda connection, head, body: respond(connection, b"{}"), "--behind-proxy")
        chosen, tokens = b"correct-horse-battery", pathlib.Path(self.server.folder.name, "w.db-token")
        tokens.write_text(f"{tokens.read_text()}ann read,report {chosen.decode()}\n")

        def status(token, address):
            forwarded = b"X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 7.7.7.7, %s\r\nConnection: close\r\n" % address
            return self.response(get(b"/t/%s/v1/models" % token, forwarded))[0]

        end = time.monotonic() + PATIENCE_S
        while status(chosen, b"10.0.0.1") != 200 and time.monotonic() < end:  # The monitor reads the file every second.
            time.sleep(0.1)
        self.assertEqual({status(b"a-wrong-token-%d" % number, b"10.0.0.2") for number in range(10)}, {401})
        self.assertEqual([status(token, b"10.0.0.2") for token in (chosen, b"a-wrong-token-10", self.server.secret.encode())], [429, 429, 200])
        self.assertEqual(status(chosen, b"10.0.0.3"), 200)
        asked = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        self.addCleanup(asked.close)
        asked.request("GET", "/readyz", headers={"Authorization": f"Bearer {chosen.decode()}", "X-Forwarded-For": "10.0.0.2"})
        self.assertEqual(asked.getresponse().status, 429)

    def test_models_have_servers_of_their_own(self):
        with Upstream(lambda connection, head, body: respond(connection, b'"small"')) as small:
            folder = self.enterContext(__import__("tempfile").TemporaryDirectory())
            config = pathlib.Path(folder, "w.toml")
            config.write_text(f'[proxy.upstreams.small]\nurl = "{small.url}/v1"\nmodels = ["tiny", "qwen*:1b"]\n')
            self.begin(lambda connection, head, body: respond(connection, b'"large"'), "--config", str(config))
            for model, server in (("tiny", b'"small"'), ("qwen3:1b", b'"small"'), ("qwen3:70b", b'"large"'), ("", b'"large"')):
                body = json.dumps({"messages": [], "model": model}).encode()
                self.assertEqual(self.response(post(b"/v1/chat/completions", body))[2], server, model)
            self.assertEqual(self.response(get(b"/v1/models"))[2], b'"large"')

    def test_a_server_behind_tls_is_asked_only_if_it_is_trusted(self):
        certificate = (TLS / "cert.pem", TLS / "key.pem")
        answer = lambda connection, head, body: respond(connection, b"{}")
        self.begin(answer, certificate=certificate)
        status, _, body = self.response(post(b"/v1/chat/completions", CHAT))
        self.assertEqual(status, 502)
        self.assertIn("certificate is refused", json.loads(body)["error"]["message"])
        self.begin_before(self.upstream.url, more_environment={"WATCHDOG_PROXY_CA_FILE": str(TLS / "cert.pem")})
        self.assertEqual(self.response(post(b"/v1/chat/completions", CHAT))[0], 200)

    def test_pages_of_other_sites_read_no_answers_unless_their_origin_is_named(self):
        def answer(connection, head, body):
            respond(connection, b"{}", headers=b"Access-Control-Allow-Origin: *\r\nACCESS-control-Expose-Headers: X\r\nX-Kept: 1\r\n")

        # A browser keeps the answer to an image's request, which names no origin, and may give it to a page that asks again for its text.
        self.begin(answer, more_environment={"WATCHDOG_PROXY_ALLOWED_ORIGINS": "http://front.lan:8000"})
        for origin, asked, permitted in ((b"http://evil.example", 403, False), (b"http://front.lan:8000", 200, True), (b"", 200, False)):
            header = b"Origin: %s\r\n" % origin if origin else b""
            status, head, _ = self.response(get(b"/v1/models", header + b"Connection: close\r\n"))
            self.assertEqual((status, b"access-control" in head.lower()), (200, permitted), origin)
            self.assertIn(b"X-Kept: 1", head)
            status, head, body = self.response(post(b"/v1/chat/completions", CHAT, header))
            self.assertEqual((status, b"access-control" in head.lower()), (asked, permitted), origin)
            if asked == 403:
                self.assertIn(b"proxy.allowed_origins", body)
        # A page that may read answers may read the proxy's own, too.
        self.upstream.stop()
        for origin, permitted in ((b"http://front.lan:8000", True), (b"", False)):
            status, head, _ = self.response(post(b"/v1/chat/completions", CHAT, b"Origin: %s\r\n" % origin if origin else b""))
            self.assertEqual((status, b"Access-Control-Allow-Origin: http://front.lan:8000" in head), (502, permitted))

    def test_the_monitors_login_stays_here(self):
        self.begin(lambda connection, head, body: respond(connection, b"{}"))
        for cookies, kept in ((b"a=1; watchdog-%d=secret; b=2" % self.server.port, b"a=1; b=2"), (b"Watchdog-1=secret", None)):
            for request in (get(b"/v1/models", b"Cookie: %s\r\nConnection: close\r\n" % cookies),
                            post(b"/v1/chat/completions", CHAT, b"Cookie: %s\r\n" % cookies)):
                self.assertEqual(self.response(request)[0], 200)
                head, _ = self.upstream.requests.get(timeout=PATIENCE_S)
                self.assertNotIn(b"secret", head)
                self.assertEqual(re.findall(rb"\r\nCookie: ([^\r]*)", head), [kept] if kept else [])

    def test_a_token_in_the_referrer_stays_here(self):
        self.begin(lambda connection, head, body: respond(connection, b"{}"))
        for referrer, kept in ((b"http://a.lan/t/secret/ui/", []), (b"http://a.lan/ui/", [b"http://a.lan/ui/"])):
            self.assertEqual(self.response(get(b"/v1/models", b"Referer: %s\r\nConnection: close\r\n" % referrer))[0], 200)
            self.assertEqual(re.findall(rb"\r\nReferer: ([^\r]*)", self.upstream.requests.get(timeout=PATIENCE_S)[0]), kept)

    def test_the_offer_of_another_protocol_is_passed_over_and_the_request_answered(self):
        self.begin(lambda connection, head, body: respond(connection, b"{}"))
        for offer in (b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", b"Upgrade: TLS/1.2\r\n", b"Upgrade: h2c, foo/2\r\n"):
            # `close` ends the wait for the answer's end: without it the connection stays open for the next request.
            offers = offer + b"Connection: Upgrade, HTTP2-Settings, close\r\n"
            for request in (get(b"/v1/models", offers), post(b"/v1/chat/completions", CHAT, offers, close=False)):
                self.assertEqual(self.response(request)[::2], (200, b"{}"), offer)
                head = self.upstream.requests.get(timeout=PATIENCE_S)[0].lower()
                self.assertNotIn(b"upgrade", head)
                self.assertNotIn(b"http2-settings", head)

    def test_a_redirect_to_the_server_itself_stays_behind_the_proxy(self):
        def answer(connection, head, body):
            path = head.split()[1]
            if path.endswith(b"/"):
                return respond(connection, b'{"choices":[{"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}')
            place = b"http://" + re.search(rb"\r\nHost: ([^\r]*)", head)[1] + path + b"/" if b"other" not in path else b"http://other.lan/v1"
            return respond(connection, b"", b"307 Temporary Redirect", b"LOCATION: %s\r\n" % place)

        self.begin(answer)
        for path, place in ((b"/v1/models", b"/v1/models/"), (b"/s/led/v1/models", b"/s/led/v1/models/"), (b"/v1/other", b"http://other.lan/v1")):
            self.assertIn(b"LOCATION: %s\r\n" % place, self.response(get(path))[1] + b"\r\n")
        place = re.search(rb"LOCATION: ([^\r]*)", self.response(post(b"/s/led/v1/chat/completions", CHAT))[1])[1]
        self.assertEqual(place, b"/s/led/v1/chat/completions/")
        self.assertIn(b'"ok"', self.response(post(place, CHAT))[2])
        self.eventually(lambda: "HTTP 307" in self.events("led"))

    def test_a_large_request_goes_to_the_server_of_its_model_byte_by_byte(self):
        with Upstream(lambda connection, head, body: respond(connection, b"%d" % hash(body))) as small:
            folder = self.enterContext(__import__("tempfile").TemporaryDirectory())
            config = pathlib.Path(folder, "w.toml")
            config.write_text(f'[proxy.upstreams.small]\nurl = "{small.url}/v1"\nmodels = ["tiny"]\n')
            self.begin(lambda connection, head, body: respond(connection, b"%d" % hash(body)), "--config", str(config))
            begin = lambda size: b'{"messages":[{"role":"user","content":"' + b"x" * size + b'"}]'
            first = b'{"model":"tiny",' + begin(16 << 20)[1:] + b"}"
            last = begin(40 << 20) + b',"model":"tiny"}'
            other = begin(16 << 20) + b',"model":"huge"}'
            for body, server in ((first, small), (last, small), (other, self.upstream)):
                self.assertEqual(self.response(post(b"/v1/chat/completions", body))[2], b"%d" % hash(body))
                self.assertEqual(server.requests.get(timeout=PATIENCE_S)[1], body)
            # In chunks, too, whose length is not known before the end.
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
            connection.request("POST", "/v1/chat/completions", iter([first[at:at + 1_000_000] for at in range(0, len(first), 1_000_000)]))
            self.assertEqual(connection.getresponse().read(), b"%d" % hash(first))
            connection.close()

    def test_packed_requests_are_read_and_stay_as_they_are(self):
        self.begin(lambda connection, head, body: respond(connection, b'{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}'))
        packed = gzip.compress(b'{"model":"m","messages":[{"role":"user","content":"Name an apple"}]}')
        self.ask(post(b"/v1/chat/completions", packed, b"Content-Encoding: gzip\r\nX-Watchdog-Session: packed\r\n"))
        head, body = self.upstream.requests.get(timeout=PATIENCE_S)
        self.assertEqual(body, packed)
        self.assertIn(b"Content-Encoding: gzip", head)
        self.eventually(lambda: "Name an apple" in self.events("packed"))
        self.ask(post(b"/v1/chat/completions", b"\x28\xb5\x2f\xfd", b"Content-Encoding: zstd\r\nX-Watchdog-Session: odd\r\n"))
        self.eventually(lambda: "compressed by zstd" in self.events("odd"))

    def test_no_secret_is_kept(self):
        self.begin(lambda connection, head, body: respond(connection, b'{"choices":[{"message":{"content":"ok"}}]}'))
        secret = b"sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"
        self.ask(post(b"/v1/chat/completions", CHAT, b"Authorization: Bearer %s\r\nCookie: c=%s\r\nX-Api-Key: %s\r\nX-Session-Id: kept\r\n" % ((secret,) * 3)))
        self.server.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.process.wait(PATIENCE_S), 0)
        folder = pathlib.Path(self.server.folder.name)
        for file in folder.rglob("*"):
            if file.is_file():
                self.assertNotIn(secret, file.read_bytes(), file)

    def test_an_answer_that_is_open_is_finished_before_the_monitor_ends(self):
        go_on = threading.Event()

        def answer(connection, head, body):
            begin_events(connection)
            chunk(connection, b"data: 1\n\n")
            go_on.wait(PATIENCE_S)
            chunk(connection, b"data: 2\n\n")
            connection.sendall(b"0\r\n\r\n")

        self.begin(answer)
        connection = self.connect()
        connection.sendall(post(b"/v1/chat/completions", CHAT))
        got = b""
        while b"data: 1" not in got:
            got += more(connection)
        self.server.process.send_signal(signal.SIGTERM)
        while True:  # Nobody is let in any more, but who is in stays.
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S).close()
            except ConnectionError:
                break
        self.assertIsNone(self.server.process.poll())
        go_on.set()
        self.assertIn(b"data: 2", self.all_of(connection))
        self.assertEqual(self.server.process.wait(PATIENCE_S), 0)


if __name__ == "__main__":
    unittest.main()
