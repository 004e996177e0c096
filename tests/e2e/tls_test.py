#!/usr/bin/env python3
"""HTTPS of a real monitor."""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest

from server import Server

PROGRAM = sys.argv.pop(1)
FILES = pathlib.Path(__file__).parent.parent / "data" / "tls"
PATIENCE_S = 60


class TlsTest(unittest.TestCase):
    def setUp(self):
        own = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("cert.pem", "key.pem"):
            shutil.copy(FILES / name, own / name)
            os.chmod(own / name, 0o600)  # as the monitor wants its key
        self.server = self.enterContext(Server(PROGRAM, arguments=["--tls-cert", own / "cert.pem", "--tls-key", own / "key.pem"]))
        self.context = ssl.create_default_context(cafile=FILES / "cert.pem")

    def connection(self):
        made = http.client.HTTPSConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S, context=self.context)
        self.addCleanup(made.close)
        return made

    def test_one_connection_answers_many_requests(self):
        connection = self.connection()
        for path, status in (("/healthz", 200), ("/nothing", 404), ("/api/autonomous/progress", 200)) * 5:
            connection.request("GET", path)
            response = connection.getresponse()
            self.assertEqual((response.status, bool(response.read())), (status, True))
        body = json.dumps([{"kind": "state_change", "type": "t", "data": "x" * 1_000}] * 500)
        connection.request("POST", "/api/autonomous/sessions/a/events", body)
        self.assertEqual(json.load(connection.getresponse())["accepted"], 500)

    def test_browsers_are_directed_to_use_only_tls(self):
        for host, expected in (("127.0.0.1", "max-age=31536000"), ("monitor.example:1", "max-age=31536000"), ("localhost:3000", None)):
            for path, status in (("/healthz", 200), ("/", 401), ("/nothing", 404), ("/api/autonomous/stream", 200)):
                connection = self.connection()
                connection.request("GET", path, headers={"Host": host, "Authorization": f"Bearer {self.server.secret}"})
                self.assertEqual(connection.getresponse().getheader("Strict-Transport-Security"), expected, (host, path))
        with Server(PROGRAM) as plain:
            connection = http.client.HTTPConnection(plain.host, timeout=PATIENCE_S)
            connection.request("GET", "/healthz")
            self.assertIsNone(connection.getresponse().getheader("Strict-Transport-Security"), "nobody may say so in the clear")

    def test_streams_and_ends_with_a_good_bye(self):
        connection = self.connection()
        connection.request("GET", "/api/autonomous/stream")
        response = connection.getresponse()
        self.assertEqual(response.readline(), b"event: snapshot\n")
        other = self.connection()
        other.request("POST", "/api/autonomous/sessions/a/events", json.dumps({"kind": "heartbeat"}))
        self.assertEqual(other.getresponse().status, 200)
        while response.readline() != b"event: event\n":
            pass
        raw = self.context.wrap_socket(socket.create_connection(("127.0.0.1", self.server.port)), server_hostname="localhost",
                                       suppress_ragged_eofs=False)
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        received = b""
        while piece := raw.recv(4096):  # a connection that is cut would raise
            received += piece
        self.assertIn(b"200 OK", received)
        raw.close()

    def test_a_client_with_no_tls_or_an_old_version_is_not_answered(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_S) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):
                self.assertNotIn(b"HTTP", plain.recv(4096))
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with socket.create_connection(("127.0.0.1", self.server.port)) as below, self.assertRaises(OSError):
            old.wrap_socket(below)

    def test_commands_ask_it_if_they_trust_it(self):
        url = f"https://127.0.0.1:{self.server.port}"
        def ask(*more):
            return subprocess.run([PROGRAM, "sessions", "--json", "--server", url, *more], capture_output=True, text=True, check=False)
        trusting = ask("--ca-file", FILES / "cert.pem")
        self.assertEqual((trusting.returncode, trusting.stderr), (0, ""))
        stranger = ask()
        self.assertEqual(stranger.returncode, 4)
        self.assertIn("certificate", stranger.stderr)
        self.assertEqual(ask("--ca-file", "/nowhere.pem").returncode, 3)

    def test_handshakes_that_do_not_end_keep_nobody_out(self):
        for _ in range(1_200):
            self.addCleanup(socket.create_connection(("127.0.0.1", self.server.port)).close)
        connection = self.connection()
        connection.request("GET", "/healthz")
        self.assertEqual(connection.getresponse().status, 200)


if __name__ == "__main__":
    unittest.main()
