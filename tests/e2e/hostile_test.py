#!/usr/bin/env python3
"""Clients that are slow, silent, broken or malicious: what each is answered, and that others are served."""

import contextlib
import gzip
import http.client
import json
import os
import re
import resource
import select
import socket
import sys
import time
import unittest

import endless
from server import Server

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60


class HostileTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Server(PROGRAM))

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        return connection

    def say(self, text):
        """Everything that a raw request is answered until the server hangs up."""
        connection = self.connect()
        connection.sendall(text if isinstance(text, bytes) else text.replace("HOST", self.server.host).encode())
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as answer:
            return answer.read()

    def statuses(self, text):
        return [int(status) for status in re.findall(rb"HTTP/1.1 (\d{3}) [^\r]*\r\n", self.say(text))]

    def chunked_head(self):
        return f"POST /api/autonomous/sessions HTTP/1.1\r\nHost: {self.server.host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()

    def is_served(self):
        with contextlib.closing(http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)) as connection:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200

    def test_requests_that_do_not_end_keep_nobody_out(self):
        for text in (b"", b"G", b"GET /healthz HTTP/1.1\r\nHo", b"POST /api/autonomous/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"):
            for _ in range(100):
                self.connect().sendall(text)
        self.assertTrue(self.is_served())

    def test_ten_thousand_idle_connections_keep_nobody_out(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        count = min(10_000, hard - 500)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 500), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        idle = [self.connect() for _ in range(count)]
        self.assertTrue(self.is_served())
        self.assertEqual(idle[0].recv(1), b"", "the one that idled longest had to go")
        self.assertEqual(count, 10_000, "as many as this test is about")

    def test_one_that_is_being_served_does_not_have_to_go(self):
        stream = self.connect()
        stream.sendall(f"GET /api/autonomous/stream HTTP/1.1\r\nHost: {self.server.host}\r\n\r\n".encode())
        self.assertIn(b"200", stream.recv(100))
        for _ in range(1_100):
            self.connect()
        self.assertTrue(self.is_served())
        stream.settimeout(0.05)
        with self.assertRaises(TimeoutError):
            while stream.recv(65_536):
                pass

    def test_half_open_connections_are_answered(self):
        self.assertEqual(self.statuses("GET /healthz HTTP/1.1\r\nHost: HOST\r\n\r\n"), [200])

    def test_pipelined_requests_are_answered_in_order(self):
        request = "GET {} HTTP/1.1\r\nHost: HOST\r\n\r\n"
        paths = ["/healthz", "/nothing", "/api/autonomous/progress?limit=x", "/readyz"] * 20
        self.assertEqual(self.statuses("".join(request.format(path) for path in paths)), [200, 404, 400, 200] * 20)

    def test_headers_that_are_too_large_are_refused(self):
        for headers in ("A: " + "x" * 17_000, "\r\n".join(f"H{n}: {'x' * 90}" for n in range(200))):
            self.assertEqual(self.statuses(f"GET /healthz HTTP/1.1\r\nHost: HOST\r\n{headers}\r\n\r\n"), [431])
        self.assertEqual(self.statuses(f"GET /{'x' * 17_000} HTTP/1.1\r\nHost: HOST\r\n\r\n"), [431])

    def test_chunks_that_are_none_are_refused(self):
        head = "POST /api/autonomous/sessions HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n"
        for body in ("x\r\n{}\r\n0\r\n\r\n", "-2\r\n{}\r\n0\r\n\r\n", "2\r\n{}}\r\n0\r\n\r\n", "fffffffffffffffff\r\n{}\r\n0\r\n\r\n"):
            self.assertEqual(self.statuses(head + body), [400], body)
        self.assertEqual(self.statuses(head + "2\r\n{}\r\n0\r\n\r\n"), [201])

    def test_framing_without_end_is_refused(self):
        endless.assert_bounded(self, self.server, self.connect, self.chunked_head())
        self.assertTrue(self.is_served())

    def test_framing_of_a_usual_size_is_understood(self):
        head = "POST /api/autonomous/sessions HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n"
        for body in (f"2;a=\"{'b' * 8_000}\"\r\n{{}}\r\n0\r\n\r\n", f"2\r\n{{}}\r\n0\r\nX: {'y' * 8_000}\r\nZ: z\r\n\r\n"):
            self.assertEqual(self.statuses(head + body), [201], body[:20])

    def test_a_body_in_tiny_chunks_is_not_read_beyond_its_limit(self):
        connection = self.connect()
        connection.sendall(self.chunked_head())
        sent = endless.send_until_answered(connection, b"1\r\n \r\n" * 20_000)
        self.assertEqual(connection.recv(12), b"HTTP/1.1 413")
        self.assertLess(sent, 48 * 2**20)  # its limit and what the kernel holds

    def test_a_request_for_which_no_memory_is_left_fails_alone(self):
        if os.environ.get("WATCHDOG_SANITIZE"):
            return  # a sanitizer ends the program where an allocation fails
        self.assertTrue(self.is_served())
        pid = self.server.process.pid
        limit = endless.status_bytes(self.server, "VmSize") + 40 * 2**20
        resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))
        answers = []
        connections = [self.connect() for _ in range(12)]
        head = f"POST /api/autonomous/sessions HTTP/1.1\r\nHost: {self.server.host}\r\nContent-Length: {15 * 2**20}\r\n\r\n".encode()
        for connection in connections:
            connection.sendall(head + b"{" * 5_000)
        self.assertTrue(self.is_served())
        for connection in connections:
            if select.select([connection], [], [], 0.5)[0]:
                with contextlib.suppress(ConnectionResetError):
                    answers.append(connection.recv(12))
            connection.close()
        self.assertGreater(len(answers), 0, "there was memory for all")
        self.assertEqual(set(answers), {b"HTTP/1.1 503"})
        self.assertTrue(self.is_served())
        self.assertEqual(self.statuses("POST /api/autonomous/sessions HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\n\r\n{}"), [201])
        self.assertIsNone(self.server.process.poll())

    def test_a_body_of_countless_tiny_things_takes_little_memory_and_time(self):
        size = 12 * 2**20

        def many(unit, begin, end):
            return (begin + unit * (size // len(unit)) + end).encode()

        def field(number, content):
            length, left = b"", len(content)
            while not length or left:
                length, left = length + bytes([left & 127 | (128 if left > 127 else 0)]), left >> 7
            return bytes([number << 3 | 2]) + length + content

        records = field(1, field(2, b"\x12\0" * (size // 2)))
        long_value = field(1, field(1, b"service.name") + field(2, field(1, b"x" * 100_000)))
        copied = field(1, field(1, long_value) + field(2, b"\x12\0" * 3_000))
        protobuf, packed = {"Content-Type": "application/x-protobuf"}, {"Content-Encoding": "gzip"}
        objects = '{"a":{}},'
        sessions = "/api/autonomous/sessions"
        for path, body, headers in (
                ("/v1/logs", records, protobuf), ("/v1/traces", gzip.compress(records), protobuf | packed),
                ("/v1/logs", copied, protobuf), ("/v1/logs", gzip.compress(bytes(100 * 2**20)), protobuf | packed),
                ("/v1/logs", gzip.compress(many("0,", '{"a":[', "0]}")), packed), ("/v1/traces", many(objects, '{"a":[', "0]}"), {}),
                (sessions, many(objects, '{"task":[', "0]}"), {}),
                (f"{sessions}/s/events", many('{"kind":"idle"},', "[", '{"kind":"idle"}]'), {}),
                (f"{sessions}/s/events", many('{"kind":"idle"}\n', "", ""), {}),
                ("/api/autonomous/check-status", many(objects, '{"sessionId":[', "0]}"), {}),
                ("/api/hooks/codex", many(objects, '{"session_id":"x","hook_event_name":"Stop","a":[', "0]}"), {})):
            before, began = endless.status_bytes(self.server, "VmHWM"), time.monotonic()
            with contextlib.closing(http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)) as connection:
                connection.request("POST", path, body, {"Content-Type": "application/json"} | headers)
                response = connection.getresponse()
                self.assertEqual(response.status, 413, (path, body[:40], response.read()[:300]))
            if not os.environ.get("WATCHDOG_SANITIZE"):
                self.assertLess(endless.status_bytes(self.server, "VmHWM") - before, 160 * 2**20, (path, body[:40]))
            self.assertLess(time.monotonic() - began, PATIENCE_S)
        self.assertTrue(self.is_served())

    def test_long_pages_hold_nobody_up_and_take_little_memory(self):
        sessions, count, size = "/api/autonomous/sessions", 120, 95_000
        texts = [f"{number:06}" + "\u00e9" * (size // 2) for number in range(count)]
        with contextlib.closing(http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)) as connection:
            def ask(path, body=None):
                connection.request("POST" if body else "GET", path, body and json.dumps(body))
                response = connection.getresponse()
                text = response.read()
                self.assertLess(response.status, 300, text)
                return response, text

            ask(sessions, {"sessionId": "s", "content": "full"})
            for at in range(0, count, 20):
                ask(f"{sessions}/s/events", [{"kind": "message", "text": text} for text in texts[at:at + 20]])
            socket_before = connection.sock
            for cursor, order in (("after", 1), ("before", -1)):
                found, place = [], 0 if order == 1 else 2**62
                while place is not None:
                    response, text = ask(f"{sessions}/s/events?kind=message&limit=1000&{cursor}={place}")
                    self.assertEqual(response.getheader("Transfer-Encoding"), "chunked")
                    self.assertLessEqual(len(text), 4 * 2**20 + 1_000)
                    page = json.loads(text)
                    found += [event["text"] for event in page["events"]]
                    place = page["next"]
                self.assertEqual(found, texts[::order], cursor)
            self.assertIs(connection.sock, socket_before, "one connection for all of them")
        request = f"GET {sessions}/s/events?limit=1000 HTTP/1.1\r\nHost: HOST\r\n\r\n"
        self.assertEqual(self.say(request.replace("GET", "HEAD")).count(b"\r\n\r\n"), 1)
        head, _, body = self.say(request.replace("HTTP/1.1", "HTTP/1.0")).partition(b"\r\n\r\n")
        self.assertNotIn(b"chunked", head)
        self.assertGreater(len(json.loads(body)["events"]), 10)
        before = endless.status_bytes(self.server, "VmHWM")
        slow = [self.connect() for _ in range(60)]
        for connection in slow:
            connection.sendall(request.replace("HOST", self.server.host).encode())
        for connection in slow:
            self.assertEqual(connection.recv(12), b"HTTP/1.1 200")
        with contextlib.closing(http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)) as connection:
            connection.request("GET", sessions)
            self.assertEqual(len(json.loads(connection.getresponse().read())["sessions"]), 1)
        self.assertLess(endless.status_bytes(self.server, "VmHWM") - before, 96 * 2**20)  # whole pages are 240 MiB

    def test_a_chunked_body_is_refused_as_soon_as_it_is_too_long(self):
        for size, again in ((2**20, b"%x\r\n" % 2**20 + b" " * 2**20 + b"\r\n"), (2**34, b"%x\r\n" % 2**34 + b" " * 2**20)):
            connection = self.connect()
            connection.sendall(self.chunked_head())
            sent = endless.send_until_answered(connection, again)
            self.assertEqual(connection.recv(12), b"HTTP/1.1 413", size)
            self.assertLess(sent, 32 * 2**20)  # its limit and what the kernel holds

    def test_a_request_is_never_taken_for_two(self):
        hidden = "GET /readyz HTTP/1.1\r\nHost: HOST\r\n\r\n"
        head = "POST /api/autonomous/sessions HTTP/1.1\r\nHost: HOST\r\n"
        for fields in ("Content-Length: 2\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 2",
                       "Content-Length: 2\r\nContent-Length: 3", "Content-Length: +2", "Content-Length: 2, 3",
                       "Transfer-Encoding: xchunked", "Transfer-Encoding: gzip", "Transfer-Encoding : chunked",
                       "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked;q=1", "Transfer-Encoding: chunked, chunked",
                       "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", "Transfer-Encoding: identity, chunked",
                       "Transfer-Encoding: chunked,", "Transfer-Encoding: ",
                       "Content-Length : 2", " Content-Length: 2", "Host: other"):
            self.assertEqual(self.statuses(f"{head}{fields}\r\n\r\n{{}}0\r\n\r\n{hidden}"), [400], fields)
        old = head.replace("HTTP/1.1", "HTTP/1.0") + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
        self.assertEqual(self.statuses(old), [400])

    def test_a_request_that_is_not_http_is_refused(self):
        for text in ("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "HELO there\r\n\r\n", "GET /healthz\r\n\r\n",
                     "GET /healthz HTTP/9.9\r\nHost: HOST\r\n\r\n", "GET  /healthz HTTP/1.1\r\nHost: HOST\r\n\r\n",
                     "GET /healthz HTTP/1.1\r\nHost: HOST\r\nA\0B: x\r\n\r\n"):
            self.assertEqual(self.statuses(text), [400], text)
        self.assertTrue(self.is_served())

    def test_paths_lead_nowhere_but_to_what_is_there(self):
        for path in ("/../../etc/passwd", "/assets/../../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd",
                     "//etc/passwd", "/assets/x/..%5c..%5cetc%5cpasswd", "/api/autonomous/progress/..%2f..%2fetc%2fpasswd"):
            self.assertEqual(self.statuses(f"GET {path} HTTP/1.1\r\nHost: HOST\r\n\r\n"), [404], path)
        self.assertEqual(self.statuses("GET /%00 HTTP/1.1\r\nHost: HOST\r\n\r\n"), [404])
        self.assertEqual(self.statuses("GET /%zz HTTP/1.1\r\nHost: HOST\r\n\r\n"), [400])


if __name__ == "__main__":
    unittest.main()
