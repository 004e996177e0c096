#!/usr/bin/env python3
"""Where each command finds the monitor and the database: a flag, the environment, the settings file, the default."""

import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
REFUSED, UNREACHABLE = 3, 4
SESSION = "moved-1"

# Commands whose place is elsewhere: by their argument, or they start a monitor or nothing.
ELSEWHERE = {
    "config": "reads settings alone", "demo": "has a database of its own", "copy": "names both databases",
    "completion": "prints a script", "man": "prints a page", "replay": "judges files", "self-check": "is tested with the settings",
    "service": "writes unit files", "doctor": "asks a model server", "watch": "is tested on a terminal",
    "check": "asks a model"}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Moved(unittest.TestCase):
    """A settings file that moves the database and the port, and nothing else says where they are."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        (cls.home / ".config/watchdog").mkdir(parents=True)
        cls.port = free_port()
        cls.database = cls.home / "elsewhere" / "own.db"
        cls.settings = cls.home / ".config/watchdog/watchdog.toml"
        cls.settings.write_text(f'[monitor]\ndb = "{cls.database}"\nport = {cls.port}\n')
        cls.environment = {"HOME": str(cls.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "WATCHDOG_SANITIZE"):
            if name in os.environ:
                cls.environment[name] = os.environ[name]
        cls.monitor = subprocess.Popen([PROGRAM, "serve"], env=cls.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        cls.addClassCleanup(cls.folder.cleanup)
        cls.addClassCleanup(cls.monitor.stdout.close)
        cls.addClassCleanup(cls.monitor.wait)
        cls.addClassCleanup(cls.monitor.kill)
        line = cls.monitor.stdout.readline()
        assert line.startswith(f"listening on http://127.0.0.1:{cls.port}"), line
        # A command that looks at the usual place instead finds this session.
        usual = dict(cls.environment, WATCHDOG_CONFIG="", WATCHDOG_DB=str(cls.home / ".local/state/watchdog/watchdog.db"))
        for session, environment in ((SESSION, cls.environment), ("usual-1", usual)):
            subprocess.run([PROGRAM, "run", "--config", str(cls.settings) if environment is cls.environment else "", "--session", session,
                            "--", "true"], env=environment, check=True, timeout=PATIENCE_S)

    def run_it(self, *words, given=None, code=0, more=None):
        done = subprocess.run([PROGRAM, *map(str, words)], env=self.environment | (more or {}), input=given, capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, code, done)
        return done.stdout

    def test_every_command_finds_both(self):
        shown = {
            "sessions": lambda: self.run_it("sessions", "--json"),
            "status": lambda: self.run_it("status", SESSION, "--json"),
            "events": lambda: self.run_it("events", SESSION, "--json") and SESSION,
            "explain": lambda: self.run_it("explain", SESSION, "--json"),
            "bundle": lambda: self.run_it("bundle", SESSION, "-o", "-"),
            "wait": lambda: self.run_it("wait", SESSION, "--json"),
            "audit": lambda: self.run_it("audit", "--json") + SESSION,  # it only has to answer
            "alerts": lambda: self.run_it("alerts", "--json") + SESSION,
            "recovery": lambda: self.run_it("recovery", "--json") + SESSION,
            "turns": lambda: self.run_it("turns", "--json") + SESSION,
            "report": lambda: self.run_it("report", "--json") + SESSION,
            "cancel": self.cancelled,
            "answer": lambda: self.run_it("answer", SESSION, code=5) + SESSION,  # it asks nothing; another monitor would not know it
            "forget": self.forgotten,
            "ready": lambda: self.run_it("ready", "--json").replace(str(self.port), SESSION),
            "run": self.ran,
            "backup": self.backed_up,
            "predict": lambda: self.run_it("predict", "explain", SESSION, "--json", code=5) or SESSION,
            "env": lambda: self.run_it("env", "codex").replace(str(self.port), SESSION),
            "activity": lambda: self.run_it("activity", SESSION),
            "hooks": lambda: self.run_it("hooks", "install", "claude-code", "--dry-run").replace(str(self.port), SESSION),
            "follow": self.followed,
            "mcp": self.served_by_mcp,
            "mcp-proxy": self.proxied_tools,
            "proxy": self.proxied,
            "serve": lambda: SESSION,  # it listens there: see setUpClass
        }
        self.assertEqual(set(re.findall(r"^  ([a-z][\w-]*) ", self.run_it("--help"), re.MULTILINE)), set(shown) | set(ELSEWHERE))
        for command, look in shown.items():
            with self.subTest(command):
                said = look()
                self.assertIn(SESSION, said)
                self.assertNotIn("usual-1", said)

    def events_of(self, session):
        return self.run_it("events", session, "--json")

    def cancelled(self):
        self.run_it("run", "--session", "cancelled-1", "--", "true")
        return self.run_it("cancel", "cancelled-1", code=REFUSED) + SESSION  # it ended already, so the monitor knows it

    def forgotten(self):
        self.run_it("run", "--session", "forgotten-1", "--", "true")
        self.run_it("forget", "forgotten-1", "--yes")
        return self.run_it("events", "forgotten-1", code=5) + SESSION

    def ran(self):
        self.run_it("run", "--session", "ran-1", "--", "true")
        return self.events_of("ran-1") and SESSION

    def backed_up(self):
        copy = self.home / "copy.db"
        said = self.run_it("backup", copy)
        self.assertIn(str(self.database), said)
        self.assertIn(str(copy), said)
        return self.run_it("sessions", "--db", copy, "--json")

    def followed(self):
        folder = self.home / "transcripts"
        (folder / "p").mkdir(parents=True)
        line = {"type": "user", "sessionId": "followed-1", "uuid": "u1", "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
                "message": {"role": "user", "content": "hello"}}
        (folder / "p" / "followed-1.jsonl").write_text(json.dumps(line) + "\n")
        self.run_it("follow", "claude-code", folder, "--once")
        return self.events_of("followed-1") and SESSION

    def served_by_mcp(self):
        calls = [{"jsonrpc": "2.0", "id": 1, "method": "initialize",
                  "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
                 {"jsonrpc": "2.0", "method": "notifications/initialized"},
                 {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                  "params": {"name": "agent", "arguments": {"session": SESSION}}}]
        return self.run_it("mcp", given="".join(json.dumps(call) + "\n" for call in calls))

    def proxied_tools(self):
        server = ("import json, sys\nfor line in sys.stdin:\n    call = json.loads(line)\n    if 'id' in call:\n        result = "
                  "{'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 's', 'version': '1'}} "
                  "if call['method'] == 'initialize' else {'content': [{'type': 'text', 'text': 'done'}]}\n"
                  "        print(json.dumps({'jsonrpc': '2.0', 'id': call['id'], 'result': result}), flush=True)\n")
        calls = [{"jsonrpc": "2.0", "id": 1, "method": "initialize",
                  "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
                 {"jsonrpc": "2.0", "method": "notifications/initialized"},
                 {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "look", "arguments": {}}}]
        self.run_it("mcp-proxy", "--", sys.executable, "-c", server, given="".join(json.dumps(call) + "\n" for call in calls),
                    more={"WATCHDOG_SESSION": "tools-1"})
        return self.events_of("tools-1") and SESSION

    def proxied(self):
        model = socket.create_server(("127.0.0.1", 0))
        def answer():
            connection, _ = model.accept()
            connection.recv(65536)
            body = json.dumps({"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]})
            connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            connection.close()
        threading.Thread(target=answer, daemon=True).start()
        proxy = subprocess.Popen([PROGRAM, "proxy", "--upstream", f"http://127.0.0.1:{model.getsockname()[1]}", "--port", "0", "--no-probe"],
                                 env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = proxy.stdout.readline().split()[-1]
            subprocess.run(["curl", "-s", "--noproxy", "*", f"{url}/s/proxied-1/v1/chat/completions", "-d",
                            json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]})], check=True, timeout=PATIENCE_S,
                           stdout=subprocess.DEVNULL)
            proxy.send_signal(signal.SIGTERM)
            proxy.wait(PATIENCE_S)
        finally:
            proxy.kill()
            proxy.wait()
            proxy.stdout.close()
            model.close()
        return self.events_of("proxied-1") and SESSION

    def test_a_flag_and_the_environment_come_first(self):
        usual = self.home / ".local/state/watchdog/watchdog.db"
        self.assertIn("usual-1", self.run_it("sessions", "--db", usual, "--json"))
        self.assertIn("usual-1", self.run_it("sessions", "--json", more={"WATCHDOG_DB": str(usual)}))
        nobody = f"http://127.0.0.1:{free_port()}"
        self.run_it("sessions", "--server", nobody, code=UNREACHABLE)
        self.run_it("sessions", more={"WATCHDOG_SERVER": nobody}, code=UNREACHABLE)
        other = self.home / "other.toml"
        other.write_text(f"[monitor]\nport = {free_port()}\n")
        self.run_it("sessions", "--config", other, code=UNREACHABLE)
        self.assertIn(SESSION, self.run_it("sessions", "--json", "--config", self.settings))

    def test_settings_with_a_mistake_are_refused_where_they_are_needed(self):
        wrong = self.home / "wrong.toml"
        wrong.write_text("[monitor]\nprot = 3\n")
        self.run_it("sessions", "--config", wrong, code=REFUSED)
        self.assertIn(SESSION, self.run_it("sessions", "--json", "--config", wrong, "--server", f"http://127.0.0.1:{self.port}"))


class Passwords(unittest.TestCase):
    """A password in a URL is refused by every command, and nothing repeats it."""

    URLS = ("postgresql://me:hunter-two@127.0.0.1:1/db", "postgres://me:hunter-two@127.0.0.1:1/db?x=1",
            "postgresql://me@127.0.0.1:1/db?password=hunter-two", "postgresql://127.0.0.1:1/db?a=b&pass%77ord=hunter-two",
            "postgresql://me@127.0.0.1:1/db?sslpassword=hunter-two")

    def commands(self, url, file, settings):
        settings.write_text(f'[monitor]\ndb = "{url}"\n')
        for words in ("serve --port 0", "sessions", "status x", "events x", "explain x", "turns", "alerts", "audit", "recovery", "cancel x", "answer x", "wait x", "check x",
                      "report x", "forget x --yes", f"backup {file}", "run -- true", "predict train", "follow codex", "mcp", "watch",
                      "mcp-proxy -- true", "proxy --upstream http://127.0.0.1:1"):
            name, *more = shlex.split(words)
            yield [name, "--db", url, *more], {}
            yield [name, *more], {"WATCHDOG_DB": url}
        yield ["copy", "--from", url, "--to", file], {}
        yield ["copy", "--from", file, "--to", url], {}
        for words in ("config", "config --json", "config --check", "self-check", "self-check --json", "serve --port 0", f"backup {file}", "run -- true",
                      "service install --dry-run"):
            name, *more = shlex.split(words)
            yield [name, "--config", str(settings), *more], {}

    def test_no_command_takes_or_prints_one(self):
        with tempfile.TemporaryDirectory() as folder:
            home = pathlib.Path(folder)
            environment = {"HOME": folder, "PATH": os.environ["PATH"]}
            environment |= {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
            for url in self.URLS:
                for words, more in self.commands(url, str(home / "file.db"), home / "s.toml"):
                    # A sanitizer makes each start slow: one form of the URL says what the others do.
                    if os.environ.get("WATCHDOG_SANITIZE") and url != self.URLS[0]:
                        continue
                    with self.subTest(words=words, more=more):
                        done = subprocess.run([PROGRAM, *words], env=environment | more, stdin=subprocess.DEVNULL, capture_output=True,
                                              text=True, timeout=PATIENCE_S, check=False)
                        self.assertNotIn("hunter-two", done.stdout + done.stderr)
                        self.assertNotEqual(done.returncode, 0, done)
            left = [path for path in home.rglob("*") if path.is_file() and path.name != "s.toml" and b"hunter-two" in path.read_bytes()]
            self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
