#!/usr/bin/env python3
"""Nothing that an agent, a server, a file or a command line says steers a terminal, whichever command shows it."""

import contextlib
import http.server
import json
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import threading
import time
import unicodedata
import unittest
import urllib.request

from server import Server

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60

# Controls, and characters that change direction, lines or nothing that anybody sees. A line feed and a tab end lines and cells.
UNSAFE = [chr(point) for point in range(0x110000) if unicodedata.category(chr(point)) in ("Cc", "Cf", "Zl", "Zp") and chr(point) not in "\n\t"]
SHORT = "a\x1b[2Jb\x1b]0;title\x07c\x9b31md\u202ee\u2028f\x85g\u2066h\u200bi\U000E0041j\x1b[31mk"
LONG = SHORT + "".join(UNSAFE)
OWN_COLOURS = re.compile(r"\x1b\[(0|32|1;31|33|34|7)m")


class NothingSteers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(PROGRAM))
        cls.url = f"http://127.0.0.1:{cls.server.port}"
        cls.environment = {**os.environ, "WATCHDOG_TOKEN": cls.server.secret, "TZ": "UTC"}
        cls.database = os.path.join(cls.server.folder.name, "w.db")
        cls.post("/api/autonomous/sessions", {"sessionId": "evil", "agent": SHORT, "task": LONG, "labels": {"key": SHORT}})
        for event in ({"kind": "heartbeat", "source": "loop", "iteration": 1, "phase": SHORT},
                      {"kind": "state_change", "type": "step", "data": {SHORT: [LONG]}},
                      {"kind": "message", "name": SHORT, "text": LONG},
                      {"kind": "tool_call", "name": SHORT, "call_id": SHORT, "turn_id": SHORT, "args": {"text": LONG}},
                      {"kind": "tool_progress", "call_id": SHORT, "text": SHORT, "elapsed_ms": 5},
                      {"kind": "error", "name": SHORT, "text": LONG},
                      {"kind": "wait", "waiting_for": SHORT, "provider": SHORT, "until_ms": 4102444800000}):
            cls.report("evil", event)
        cls.post("/api/autonomous/sessions", {"sessionId": "ended", "agent": SHORT})
        cls.report("ended", {"kind": "end", "outcome": "failed", "reason": "error", "error": LONG})
        cls.post("/api/autonomous/sessions", {"sessionId": "stuck", "agent": SHORT, "policy": {"stuckThreshold": 3}})
        for iteration in range(9):
            cls.report("stuck", {"kind": "heartbeat", "source": "loop", "iteration": iteration, "phase": SHORT})
        cls.post("/api/autonomous/sessions/evil/cancel", {"reason": LONG})

    @classmethod
    def post(cls, path, body):
        asked = urllib.request.Request(cls.url + path, json.dumps(body).encode(), {"Authorization": f"Bearer {cls.server.secret}"})
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    @classmethod
    def report(cls, session, event):
        answer = cls.post(f"/api/autonomous/sessions/{session}/events", [event])
        assert answer.get("accepted", 1) == 1, (event["kind"], answer)

    def run_it(self, *words):
        return subprocess.run([PROGRAM, *words], capture_output=True, check=False, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                              env=self.environment, cwd=self.server.folder.name)

    def assertSafe(self, text, of):
        text = text.decode()  # bytes that are not UTF-8 are unsafe as well
        self.assertEqual(sorted({f"U+{ord(c):04X}" for c in text if c in set(UNSAFE)}), [], of)

    def on_terminal(self, words, until):
        """What the program writes to a terminal until it ends, or until a text came and it was told to quit."""
        child, terminal = pty.fork()
        if child == 0:
            os.execve(PROGRAM, [PROGRAM, *words], {**self.environment, "TERM": "xterm", "COLUMNS": "200"})
        seen, patient_until = b"", time.monotonic() + PATIENCE_S
        while True:
            self.assertLess(time.monotonic(), patient_until, seen[-2000:])
            if until and until in seen:
                os.write(terminal, b"q")
                until = None
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                break
        os.close(terminal)
        os.waitpid(child, 0)
        return seen

    def test_the_texts_are_there_and_safe(self):
        shown = {"status": ["evil"], "sessions": [], "events": ["evil"], "explain": ["evil"], "turns": [], "alerts": [], "audit": [],
                 "report": [], "recovery": [], "config": [],
                 "bundle": ["evil", "-o", os.path.join(self.server.folder.name, "evil.tar"), "--force"]}
        for where in (("--server", self.url), ("--db", self.database)):
            for command, words in shown.items():
                for form in ((), ("--json",)):
                    with self.subTest(command, where=where, form=form):
                        # No command but these asks somebody.
                        more = () if command == "config" else where
                        said = self.run_it(command, *words, *form, *more)
                        self.assertEqual((said.returncode, said.stderr), (0, b""))
                        self.assertSafe(said.stdout, command)
        said = self.run_it("events", "evil", "--server", self.url).stdout.decode()
        self.assertIn("\\u202e", said)
        said = self.run_it("status", "evil", "--server", self.url).stdout.decode()
        self.assertIn("task             a<U+001B>[2Jb", said)
        self.assertIn("<U+202E>", said)

    def test_json_means_the_same(self):
        said = self.run_it("status", "evil", "--json", "--server", self.url)
        found = json.loads(said.stdout)
        # PostgreSQL cannot keep a zero.
        self.assertEqual((found["task"], found["agent"]), (LONG.replace("\0", "\ufffd"), SHORT))
        said = self.run_it("sessions", "--json", "--server", self.url)
        self.assertEqual({json.loads(line)["agent"] for line in said.stdout.splitlines()}, {SHORT})

    def test_a_failed_wait_is_safe(self):
        for words in (("ended",), ("ended", "--json"), ("stuck", "--on-stuck", "fail"), ("ended", "--for", "end")):
            with self.subTest(words):
                said = self.run_it("wait", *words, "--server", self.url)
                self.assertNotEqual(said.returncode, 0)
                self.assertSafe(said.stdout + said.stderr, words)
                self.assertSafe(self.run_it("wait", *words, "--db", self.database).stderr, words)

    def test_a_command_line_is_safe(self):
        for words in ((SHORT,), ("status", SHORT), ("status", SHORT, "--db", self.database), ("status", "--" + SHORT), ("events", "evil", "--after", SHORT),
                      ("events", "evil", "--kind", SHORT), ("sessions", "--health", SHORT), ("sessions", "--label", SHORT),
                      ("cancel", "--turn", SHORT), ("cancel", "ended", "--reason", SHORT), ("wait", SHORT), ("wait", "evil", "--for", SHORT),
                      ("status", "evil", "--server", SHORT), ("status", "evil", "--db", SHORT), ("config", "--config", SHORT),
                      ("config", "--bind", SHORT), ("serve", "--config", SHORT), ("alerts", "--test", SHORT), ("doctor", "--upstream", SHORT),
                      ("backup", SHORT, "--db", SHORT), ("replay", SHORT), ("proxy", "--upstream", SHORT),
                      ("forget", SHORT, "--yes"), ("check", SHORT), ("run", "--state-change-on", SHORT + "(", "--", "true"),
                      ("run", "--session", SHORT, "--", "true"), ("run", "--", SHORT), ("status", "evil", "--token-file", SHORT),
                      ("run", "--server", self.url, "--name", SHORT, "--json", "--", "true"), ("completion", SHORT)):
            with self.subTest(words):
                more = () if any(word.startswith("--") for word in words) or words[0] not in ("status", "check", "forget", "wait") \
                    else ("--server", self.url)
                if words[0] == "wait":
                    more += ("--must-exist",)
                said = self.run_it(*words, *more)
                self.assertSafe(said.stdout + said.stderr, words)

    def test_an_evil_server_is_shown_safely(self):
        class Evil(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = json.dumps({"error": {"code": "x", "message": "no\nwatchdog-monitor: all is well" + LONG}}, ensure_ascii=False).encode()
                self.send_response(409)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        evil = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
        threading.Thread(target=evil.serve_forever, daemon=True).start()
        self.addCleanup(evil.server_close)
        self.addCleanup(evil.shutdown)
        for words in (("status", "x"), ("sessions",), ("events", "x"), ("cancel", "x"), ("wait", "x"), ("turns",), ("check", "x"), ("alerts",)):
            with self.subTest(words):
                said = self.run_it(*words, "--server", f"http://127.0.0.1:{evil.server_port}")
                self.assertNotEqual(said.returncode, 0)
                self.assertSafe(said.stdout + said.stderr, words)
                self.assertNotIn(b"\nwatchdog-monitor: all", said.stderr, "an answer forges no line")
                self.assertIn(b"U+202E", said.stderr)

    def test_a_terminal_gets_no_escape_but_our_colours(self):
        for words, coloured in ((("status", "stuck"), True), (("sessions",), True), (("explain", "stuck"), True), (("wait", "ended"), False)):
            with self.subTest(words):
                seen = self.on_terminal([*words, "--server", self.url], None).replace(b"\r\n", b"\n")
                self.assertEqual(b"\x1b[1;31m" in seen, coloured)
                text = OWN_COLOURS.sub("", seen.decode()).replace("\r\x1b[K", "")  # the line that wait draws again and again
                self.assertSafe(text.encode(), words)

    def test_the_live_list_draws_what_is_its_own(self):
        seen = self.on_terminal(["watch", "--server", self.url], b"<U+001").decode(errors="replace").replace("\r", "")
        text = OWN_COLOURS.sub("", seen)
        for own in ("\x1b[?1049h", "\x1b[?25l", "\x1b[H", "\x1b[K", "\x1b[J", "\x1b[?25h", "\x1b[?1049l"):
            text = text.replace(own, "")
        self.assertSafe(text.encode(), "watch")

    def test_a_log_is_safe(self):
        for log_format in ("text", "json"):
            with self.subTest(log_format):
                folder = pathlib.Path(self.server.folder.name, "a\u202eb\u2028c\u200b")  # controls are refused
                with contextlib.suppress(FileExistsError):
                    folder.mkdir(mode=0o700)
                process = subprocess.Popen([PROGRAM, "serve", "--port", "0", "--log-format", log_format, "--db", folder / "x.db"],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment)
                self.addCleanup(process.kill)
                self.assertIn(b"listening", process.stdout.readline())
                process.terminate()
                out, err = process.communicate(timeout=PATIENCE_S)
                self.assertSafe(out + err, log_format)
                self.assertRegex(err, rb"U\+202E|\\\\?u202e")


unittest.main()
