#!/usr/bin/env python3
"""Clients that are slow, silent, broken or malicious: what each is answered, and that others are served."""

import contextlib
import http.client
import re
import resource
import socket
import sys
import unittest

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

    def test_a_request_is_never_taken_for_two(self):
        hidden = "GET /readyz HTTP/1.1\r\nHost: HOST\r\n\r\n"
        head = "POST /api/autonomous/sessions HTTP/1.1\r\nHost: HOST\r\n"
        for fields in ("Content-Length: 2\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 2",
                       "Content-Length: 2\r\nContent-Length: 3", "Content-Length: +2", "Content-Length: 2, 3",
                       "Transfer-Encoding: xchunked", "Transfer-Encoding: gzip", "Transfer-Encoding : chunked",
                       "Content-Length : 2", " Content-Length: 2", "Host: other"):
            self.assertEqual(self.statuses(f"{head}{fields}\r\n\r\n{{}}0\r\n\r\n{hidden}"), [400], fields)

    def test_what_is_no_http_is_refused(self):
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
