#!/usr/bin/env python3
"""Commands meet a monitor that hangs, or a stranger's process, at the monitor's port."""

import http.server
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from server import Server

PROGRAM = sys.argv.pop(1)
ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 60
# A hook gives up after a second; the rest is for a busy machine to start a shell and curl.
HOOK_S = 3
NOBODY = 65534
SECRET = "s3cret-of-this-test-0123456789abcdef"


def hook_commands(home, server):
    """Returns (agent, event, command) of each hook that an install makes, and of the plugin for Claude Code."""
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    for agent in ("claude-code", "codex", "gemini-cli", "cursor", "copilot-cli"):
        done = subprocess.run([PROGRAM, "hooks", "install", agent, "--server", server, "--json"], env=environment, capture_output=True, text=True,
                              check=True, timeout=PATIENCE_S)
        file = json.loads(done.stdout)["agents"][0]["file"]
        for event, command in commands_in(json.loads(pathlib.Path(file).read_text())["hooks"]):
            yield agent, event, command
    for event, command in commands_in(json.loads((ROOT / "clients/claude-code/hooks/hooks.json").read_text())["hooks"]):
        yield "plugin", event, command


def commands_in(hooks):
    for event, entries in hooks.items():
        for entry in entries:
            for handler in entry.get("hooks", [entry]):
                yield event, handler.get("command") or handler["bash"]


class Stopped(unittest.TestCase):
    """A monitor that hangs."""

    def test_costs_each_hook_a_second_at_most(self):
        with tempfile.TemporaryDirectory() as home, Server(PROGRAM) as server:
            url = f"http://{server.host}"
            commands = list(hook_commands(home, url))
            self.assertEqual({agent for agent, _, _ in commands}, {"claude-code", "codex", "gemini-cli", "cursor", "copilot-cli", "plugin"})
            server.process.send_signal(signal.SIGSTOP)
            try:
                environment = {"HOME": home, "PATH": os.environ["PATH"], "WATCHDOG_SERVER": url}
                # All together: they wait for the monitor, not for each other.
                began = time.monotonic()
                running = [(agent, event, subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                           stderr=subprocess.DEVNULL, env=environment)) for agent, event, command in commands[::6]]
                for agent, event, hook in running:
                    hook.stdin.write(json.dumps({"session_id": "s", "hook_event_name": event}).encode())
                    hook.stdin.close()
                for agent, event, hook in running:
                    with self.subTest(agent=agent, event=event):
                        self.assertEqual(hook.wait(PATIENCE_S), 0)
                        self.assertEqual(hook.stdout.read(), b"")
                    hook.stdout.close()
                self.assertLess(time.monotonic() - began, HOOK_S + len(running) * 0.2)
            finally:
                server.process.send_signal(signal.SIGCONT)

    def test_hooks_use_no_proxy_and_no_settings_of_curl(self):
        asked = []

        class Proxy(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                asked.append(self.path)
                self.send_response(403)
                self.end_headers()

            def log_message(self, *_):
                pass

        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        self.addCleanup(proxy.server_close)
        self.addCleanup(proxy.shutdown)
        address = f"http://127.0.0.1:{proxy.server_port}"
        with tempfile.TemporaryDirectory() as home, Server(PROGRAM) as server:
            pathlib.Path(home, ".curlrc").write_text(f'proxy = "{address}"\n')
            url = f"http://{server.host}"
            environment = {"HOME": home, "PATH": os.environ["PATH"], "WATCHDOG_SERVER": url, "http_proxy": address, "ALL_PROXY": address}
            for agent, event, command in hook_commands(home, url):
                if event.lower() != "sessionstart":
                    continue
                with self.subTest(agent):
                    body = json.dumps({"session_id": f"by-{agent}", "hook_event_name": event})
                    subprocess.run(["sh", "-c", command], input=body, text=True, env=environment, check=True, timeout=PATIENCE_S,
                                   stdout=subprocess.DEVNULL)
                    done = subprocess.run([PROGRAM, "sessions", "--json", "--server", url], capture_output=True, text=True, check=True)
                    self.assertIn(f"by-{agent}", done.stdout)
            self.assertEqual(asked, [])


class Stranger:
    """A program of another user that listens, asks for a token, and writes down what it gets."""

    def __enter__(self):
        self.listener = socket.socket()
        self.reader, writer = os.pipe()
        ready, began = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

            class Handler(http.server.BaseHTTPRequestHandler):
                def do(self):
                    os.write(writer, (self.headers.get("Authorization", "none").replace("\n", " ") + "\n").encode())
                    body = b'{"error":{"code":"unauthorized","message":"a token is needed"}}'
                    self.send_response(401)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

                do_GET = do_POST = do_PATCH = do_DELETE = do

                def log_message(self, *_):
                    pass

            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            os.write(began, f"{server.server_port}\n".encode())
            server.serve_forever()
        os.close(writer)
        os.close(began)
        self.url = f"http://127.0.0.1:{int(os.read(ready, 16))}"
        os.close(ready)
        os.set_blocking(self.reader, False)
        return self

    def seen(self):
        try:
            return os.read(self.reader, 1 << 20).decode().split("\n")[:-1]
        except BlockingIOError:
            return []

    def __exit__(self, *_):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        os.close(self.reader)


class Strangers(unittest.TestCase):
    """No token goes to a listener of another user."""

    def commands(self):
        initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
                      "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "watchdog_status", "arguments": {"session": "x"}}}
        lines = "".join(json.dumps(line) + "\n" for line in (initialize, ready, call))
        for words in ("sessions", "status x", "events x", "events x --follow", "explain x", "turns", "alerts", "alerts --ack 1", "audit", "cancel x",
                      "wait x", "check x", "report x", "forget x --yes", "ready", "run -- true", "hooks status", "follow codex --folder . --once"):
            yield shlex.split(words), ""
        yield ["mcp"], lines
        yield ["mcp-proxy", "--", "cat"], lines

    @unittest.skipIf(os.geteuid() != 0, "only root can act as another user")
    def test_get_no_token_from_any_command(self):
        with tempfile.TemporaryDirectory() as home, Stranger() as stranger:
            os.chmod(home, 0o755)
            state = pathlib.Path(home, ".local/state/watchdog")
            state.mkdir(parents=True, mode=0o700)
            file = state / "watchdog.db-token"
            file.write_text(f"act {SECRET}\n")
            file.chmod(0o600)
            base = {"HOME": home, "PATH": os.environ["PATH"]} | {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
            named = tuple(({}, []) for _ in range(1)) + (({"WATCHDOG_TOKEN": SECRET}, []), ({}, ["--token-file", str(file)]))
            asked = 0
            for words, given in self.commands():
                for more, flags in named:
                    if flags and words[0] == "hooks":
                        continue
                    with self.subTest(words=words, named=list(more) + flags):
                        line = [PROGRAM, words[0], "--server", stranger.url, *flags, *words[1:]]
                        child = subprocess.Popen(line, env=base | more, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                                 text=True, cwd=home)
                        try:
                            child.communicate(given, timeout=3)
                        except subprocess.TimeoutExpired:  # it asks again until somebody answers
                            child.kill()
                            child.communicate()
                        seen = stranger.seen()
                        asked += len(seen)
                        self.assertEqual([line for line in seen if line != "none"], [])
            self.assertGreater(asked, 5, "the stranger was asked")


if __name__ == "__main__":
    unittest.main(verbosity=2)
