#!/usr/bin/env python3
"""What a cancel does to agents that know nothing of it: through the proxy, and to their processes."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from server import Server
from upstream import Upstream, respond

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
# An agent: does what its standard input says, a word and its JSON a line, and says "done" after each.
AGENT = r"""
import http.client, json, os, subprocess, sys
kept = {}
def post(host, path, body, headers={}, keep=True):
    connection = kept.setdefault(host, http.client.HTTPConnection(host, timeout=60)) if keep else http.client.HTTPConnection(host, timeout=60)
    connection.request("POST", path, json.dumps(body), headers)
    return connection.getresponse().read().decode()
if len(sys.argv) > 1:
    print(post(*json.loads(sys.argv[1])))
    sys.exit()
for line in sys.stdin:
    word, _, rest = line.partition(" ")
    if word == "post":        # by itself
        print(post(*json.loads(rest)))
    elif word == "helper":    # by a program of its own for each
        print(subprocess.run([sys.executable, "-c", os.environ["AGENT"], rest], capture_output=True, text=True).stdout.strip())
    elif word == "shell":     # by a command, with what follows on its standard input
        command, body = json.loads(rest)
        print(subprocess.run(["sh", "-c", command], input=body, capture_output=True, text=True).stdout.strip())
    print("done", flush=True)
"""
SESSIONS = "/api/autonomous/sessions"
PROGRESS = "/api/autonomous/progress"


class Agent:
    """A process that a test tells what to do; gone with the block."""

    def __enter__(self):
        environment = os.environ | {"AGENT": AGENT, "no_proxy": "*"}
        self.process = subprocess.Popen([sys.executable, "-c", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment, start_new_session=True)
        time.sleep(0.1)  # As agents, it takes a moment before it says anything.
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def begin(self, word, *what):
        self.process.stdin.write(f"{word} {json.dumps(what)}\n")
        self.process.stdin.flush()

    def do(self, word, *what):
        """What it says of it."""
        self.begin(word, *what)
        said = ""
        while (line := self.process.stdout.readline()) != "done\n":
            assert line, "the agent is gone"
            said += line
        return said

    def kill(self):
        self.process.kill()
        self.process.wait()

    def leave(self):
        self.process.stdin.close()
        self.process.wait()


class CancelTest(unittest.TestCase):
    def setUp(self):
        self.upstream_waits = threading.Event()
        self.upstream = self.enterContext(Upstream(self.answer))
        self.server = self.enterContext(Server(PROGRAM, None, ["--upstream", self.upstream.url, "--proxy-port", "0", "--no-probe"]))
        for line in self.server.process.stdout:
            if found := re.search(r"their model at https?://127\.0\.0\.1:(\d+)/v1", line):
                self.port = int(found[1])
                break

    def answer(self, connection, head, body):
        if b"upgrade: websocket" in head.lower():
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            while piece := connection.recv(65_536):
                connection.sendall(piece)
            return
        if b"too many" in body:
            return respond(connection, b'{"error":{"message":"too many"}}', status=b"429 Too Many Requests")
        if b"wait" in body:
            self.upstream_waits.set()
            connection.recv(1)  # until the client is gone
        if b"call a tool" in body:
            return respond(connection, b'{"choices":[{"message":{"tool_calls":[{"id":"c1","type":"function","function":{"name":"build","arguments":"{}"}}]},'
                                       b'"finish_reason":"tool_calls"}]}')
        respond(connection, b'{"id":"resp_1","choices":[{"message":{"content":"ok"},"finish_reason":"stop"}],"status":"completed",'
                            b'"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]}]}')

    def ask(self, method, path, body=None, status=200):
        """Of the monitor."""
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Authorization": f"Bearer {self.server.secret}"})
        answer = connection.getresponse()
        text = answer.read()
        self.assertEqual(answer.status, status, text)
        return json.loads(text)

    def model(self, path, body, session=None):
        """Status and body of what the proxy answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("POST", path, json.dumps(body), {"X-Session-Id": session} if session else {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def until(self, session, holds):
        end = time.monotonic() + PATIENCE_S
        while True:
            connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
            connection.request("GET", f"{PROGRESS}/{session}")
            answer = connection.getresponse()
            document = json.loads(answer.read())
            connection.close()
            if answer.status == 200 and holds(document):
                return document
            self.assertLess(time.monotonic(), end, document)
            time.sleep(0.05)

    def cancel(self, session):
        self.ask("POST", f"{SESSIONS}/{session}/cancel", {"by": "ann", "reason": "enough"})

    def test_a_cancelled_sessions_next_request_is_denied_in_its_clients_own_form(self):
        message = lambda told: told["error"]["message"]
        talk = [{"role": "user", "content": "hi"}]
        for path, body, text in (("/v1/chat/completions", {"messages": talk}, message), ("/v1/responses", {"input": "hi"}, message),
                                 ("/v1/messages", {"messages": talk}, message), ("/api/chat", {"messages": talk}, lambda told: told["error"]),
                                 ("/v1beta/models/m:generateContent", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, message)):
            for streams in (False, True):
                with self.subTest(path=path, streams=streams):
                    session = re.sub(r"[/:]", "-", f"s{path}-{streams}")
                    body = {"model": "m", "stream": streams} | body
                    if "generateContent" in path and streams:
                        path, body = path.replace(":g", ":streamG") + "?alt=sse", {"contents": body["contents"]}
                    self.assertEqual(self.model(path, body, session)[0], 200)
                    self.assertEqual(self.model(path, body, "other")[0], 200)
                    self.until(session, lambda document: True)
                    self.cancel(session)
                    asked = self.upstream.requests.qsize()
                    for _ in range(2):  # Trying again does not help.
                        status, told = self.model(path, body, session)
                        self.assertEqual(status, 400)
                        self.assertIn("cancelled by ann: enough", text(told))
                        if path == "/v1/messages":
                            self.assertEqual((told["type"], told["error"]["type"]), ("error", "cancelled"))
                        if "enerateContent" in path:
                            self.assertEqual((told["error"]["code"], told["error"]["status"]), (400, "INVALID_ARGUMENT"))
                    self.assertEqual(self.upstream.requests.qsize(), asked, "the server is not asked")
                    self.assertEqual(self.model(path, body, "other")[0], 200)
                    outcome = self.until(session, lambda document: document["outcome"])["outcome"]
                    self.assertEqual((outcome["kind"], outcome["subject"], outcome["error"]), ("cancelled", "ann", "enough"))

    def test_a_session_known_by_the_answer_it_goes_on_from_is_denied_too(self):
        session = self.model("/v1/responses", {"model": "m", "input": "hi"})
        self.assertEqual(session[0], 200)
        found = None
        end = time.monotonic() + PATIENCE_S
        while not found:
            self.assertLess(time.monotonic(), end)
            found = self.ask("GET", f"{PROGRESS}?lifecycle=idle")["sessions"]
        self.cancel(found[0]["sessionId"])
        status, told = self.model("/v1/responses", {"model": "m", "input": "more", "previous_response_id": "resp_1"})
        self.assertEqual((status, told["error"]["type"]), (400, "cancelled"))

    def test_an_embeddings_request_passes_in_a_cancelled_session(self):
        self.assertEqual(self.model("/v1/chat/completions", {"model": "m", "messages": []}, "s")[0], 200)
        self.until("s", lambda document: True)
        self.cancel("s")
        self.assertEqual(self.model("/v1/embeddings", {"model": "m", "input": "x"}, "s")[0], 200)

    def test_an_open_websocket_of_a_cancelled_session_is_cut_and_no_other_begins(self):
        ask = ("GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nSession-Id: %s\r\nUser-Agent: codex_exec/0.169.0\r\n"
               "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n")

        def open_one(session):
            connection = self.enterContext(socket.create_connection(("127.0.0.1", self.port), PATIENCE_S))
            connection.sendall((ask % session).encode())
            return connection, connection.recv(65_536)

        connection, came = open_one("ws")
        self.assertIn(b" 101 ", came)
        other, _ = open_one("other")
        self.until("ws", lambda document: True)
        self.cancel("ws")
        try:
            self.assertEqual(connection.recv(1), b"")
        except ConnectionResetError:
            pass  # As it may be.
        outcome = self.until("ws", lambda document: document["outcome"])["outcome"]
        self.assertEqual((outcome["kind"], outcome["subject"]), ("cancelled", "ann"))
        other.sendall(b"on")
        self.assertEqual(other.recv(2), b"on")

    def test_a_websocket_of_a_cancelled_session_is_denied(self):
        self.assertEqual(self.model("/v1/chat/completions", {"model": "m", "messages": []}, "s")[0], 200)
        self.until("s", lambda document: True)
        self.cancel("s")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/responses", headers={"X-Session-Id": "s", "Connection": "Upgrade", "Upgrade": "websocket"})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 400)
        self.assertIn("cancelled by ann: enough", json.loads(answer.read())["error"]["message"])
        self.assertEqual(self.until("s", lambda document: document["outcome"])["outcome"]["kind"], "cancelled")

    # Sessions whose processes the monitor knows.

    def proxied(self, text, session, messages=()):
        """A request of a session through the proxy."""
        body = {"model": "m", "tools": [{"type": "function", "function": {"name": "build"}}],
                "messages": [*messages, {"role": "user", "content": text}]}
        return f"127.0.0.1:{self.port}", "/v1/chat/completions", body, {"X-Session-Id": session}

    def hook(self, name, session, agent="claude-code", **more):
        return self.server.host, f"/api/hooks/{agent}", {"session_id": session, "hook_event_name": name} | more

    def pids(self, session):
        return [event["pid"] for event in self.ask("GET", f"{SESSIONS}/{session}/events?limit=1000")["events"] if "pid" in event]

    def dead(self, session):
        return self.until(session, lambda document: document["health"] == "dead")

    def test_a_killed_agent_of_the_proxy_is_dead_and_what_it_was_doing_is_known(self):
        with Agent() as agent:
            agent.do("post", *self.proxied("hi", "s"))
            agent.do("post", *self.proxied("call a tool", "s"))
            self.until("s", lambda document: document["tools"] and self.pids("s"))
            self.assertEqual(self.pids("s"), [agent.process.pid])
            agent.kill()
            self.assertEqual([tool["name"] for tool in self.dead("s")["tools"]], ["build"])

    def test_an_agent_killed_within_its_first_request_is_dead(self):
        with Agent() as agent:
            agent.begin("post", *self.proxied("wait", "s"))
            self.upstream_waits.wait(PATIENCE_S)
            self.until("s", lambda document: True)
            agent.kill()
            self.dead("s")

    def codex(self, text, session):
        host, path, body, headers = self.proxied(text, session)
        return host, path, body, headers | {"User-Agent": "codex_exec/0.169.0"}

    def test_a_coding_agent_killed_in_the_call_of_its_first_answer_is_dead(self):
        with Agent() as agent:
            agent.do("post", *self.codex("call a tool", "s"))
            self.until("s", lambda document: document["tools"] and self.pids("s"))
            agent.kill()
            self.dead("s")

    def fails(self, text, reason):
        """An agent that closes its connection and ends as soon as it is refused."""
        with Agent() as agent:
            agent.do("post", *self.codex(text, "s"), False)
            agent.leave()
            outcome = self.until("s", lambda document: document["outcome"])["outcome"]
            self.assertEqual((outcome["kind"], outcome["reason"]), ("failed", reason), outcome)

    def test_a_coding_agent_that_was_refused_and_ended_has_failed(self):
        self.fails("too many", "rate_limited")

    def test_a_coding_agent_that_found_no_server_and_ended_has_failed(self):
        self.upstream.stop()
        self.fails("hi", "connection_refused")

    def test_programs_that_ask_once_are_nobodys_agent(self):
        with Agent() as agent:
            for text in ("hi", "call a tool", "call a tool again"):
                agent.do("helper", *self.proxied(text, "s"))
            self.until("s", lambda document: document["tools"])
            self.assertEqual(self.pids("s"), [])

    def test_an_agent_that_leaves_after_its_answer_is_not_dead_and_may_come_back(self):
        with Agent() as agent:
            for _ in range(2):
                agent.do("post", *self.proxied("hi", "s"))
            self.until("s", lambda document: self.pids("s"))
            agent.leave()
            self.assertEqual(self.until("s", lambda document: document["outcome"])["outcome"]["kind"], "completed")
        with Agent() as agent:
            agent.do("post", *self.proxied("hi", "s"))
            self.until("s", lambda document: document["attempt"] == 2 and not document["outcome"])

    def test_a_killed_agent_whose_hooks_are_commands_is_dead(self):
        with Agent() as agent:
            command = f"curl -s --data-binary @- 'http://{self.server.host}/api/hooks/codex?session=&pid='$PPID"
            for name in ("SessionStart", "UserPromptSubmit", "PreToolUse"):
                body = json.dumps({"session_id": "s", "hook_event_name": name, "prompt": "go", "tool_name": "Bash", "tool_use_id": "t1"})
                self.assertEqual(agent.do("shell", command, body), "{}\n")
            self.until("s", lambda document: self.pids("s") == [agent.process.pid] and document["tools"])
            agent.kill()
            self.assertEqual([tool["name"] for tool in self.dead("s")["tools"]], ["Bash"])
        with Agent() as agent:
            for name in ("SessionStart", "UserPromptSubmit"):
                body = json.dumps({"session_id": "s", "hook_event_name": name, "prompt": "go"})
                agent.do("shell", command, body)
            self.until("s", lambda document: document["health"] != "dead" and self.pids("s")[-1] == agent.process.pid)

    def test_a_killed_agent_that_sends_its_hooks_itself_is_dead(self):
        with Agent() as agent:
            for name in ("SessionStart", "UserPromptSubmit", "PreToolUse"):
                agent.do("post", *self.hook(name, "s", prompt="go", tool_name="Bash", tool_use_id="t1"))
            self.until("s", lambda document: self.pids("s") == [agent.process.pid])
            agent.kill()
            self.dead("s")

    def test_a_process_started_for_one_hook_is_not_taken_for_the_agent(self):
        with Agent() as agent:
            for name in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"):
                agent.do("helper", *self.hook(name, "s", prompt="go", tool_name="Bash", tool_use_id="t1"))
            self.assertEqual(self.pids("s"), [])

    def test_a_process_that_the_hook_does_not_come_from_is_not_believed(self):
        with Agent() as agent:
            host, path, body = self.hook("PreToolUse", "s", tool_name="Bash", tool_use_id="t1")
            for pid in (os.getpid(), agent.process.pid, 2**31 - 1):
                connection = http.client.HTTPConnection(host, timeout=PATIENCE_S)
                connection.request("POST", f"{path}?pid={pid}", json.dumps(body | {"tool_use_id": str(pid)}))
                self.assertEqual(connection.getresponse().status, 200)
                connection.close()
            # This very process began before the session, and sent them.
            self.assertEqual(set(self.pids("s")) - {os.getpid()}, set())

    def test_a_cancelled_agent_that_is_gone_is_cancelled(self):
        with Agent() as agent:
            agent.do("post", *self.proxied("hi", "s"))
            agent.do("post", *self.proxied("call a tool", "s"))
            self.until("s", lambda document: self.pids("s"))
            self.cancel("s")
            agent.kill()
            outcome = self.until("s", lambda document: document["outcome"])["outcome"]
            self.assertEqual((outcome["kind"], outcome["subject"]), ("cancelled", "ann"))

    def command(self, *words):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WATCHDOG_")}
        token = os.path.join(self.server.folder.name, "w.db-token")
        return subprocess.run([PROGRAM, *words, "--server", f"http://{self.server.host}", "--token-file", token],
                              capture_output=True, text=True, env=environment, timeout=PATIENCE_S)

    def test_kill_ends_the_agent_and_what_it_started_after_the_grace_time(self):
        with Agent() as agent:
            child = int(agent.do("shell", "sleep 1000 >/dev/null 2>&1 & echo $!", ""))
            agent.do("post", *self.proxied("hi", "s"))
            agent.do("post", *self.proxied("call a tool", "s"))
            self.until("s", lambda document: self.pids("s"))
            said = self.command("cancel", "s", "--kill", "--grace", "0.1")
            self.assertEqual(said.returncode, 0, said)
            self.assertIn(f"ended process {agent.process.pid}", said.stdout + said.stderr)
            self.assertEqual(agent.process.wait(PATIENCE_S), -signal.SIGTERM)
            end = time.monotonic() + PATIENCE_S
            while os.path.exists(f"/proc/{child}") and "State:\tZ" not in pathlib.Path(f"/proc/{child}/status").read_text():
                self.assertLess(time.monotonic(), end)
            self.assertEqual(self.until("s", lambda document: document["outcome"])["outcome"]["kind"], "cancelled")

    def test_kill_waits_for_an_agent_that_leaves_by_itself(self):
        with Agent() as agent:
            for _ in range(2):
                agent.do("post", *self.proxied("call a tool", "s"))
            self.until("s", lambda document: self.pids("s"))
            leaves = threading.Timer(0.3, agent.leave)
            leaves.start()
            said = self.command("cancel", "s", "--kill", "--grace", str(PATIENCE_S))
            leaves.join()
            self.assertEqual((said.returncode, agent.process.returncode), (0, 0), said)
            self.assertIn("has left by itself", said.stdout + said.stderr)

    def test_kill_does_not_hit_another_process_of_the_same_number(self):
        with Agent() as agent:
            own = f"{SESSIONS}/reused/events"
            boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            self.ask("POST", SESSIONS, {"sessionId": "reused"}, status=201)
            self.ask("POST", own, {"kind": "start", "pid": agent.process.pid, "start_ticks": 1, "boot_id": boot, "host": os.uname().nodename})
            self.ask("POST", own, {"kind": "message"})
            said = self.command("cancel", "reused", "--kill", "--grace", "0")
            self.assertIn("has left by itself", said.stdout + said.stderr)
            self.assertIsNone(agent.process.poll())
            self.ask("POST", own, {"kind": "start"})
            self.ask("POST", SESSIONS, {"sessionId": "far"}, status=201)
            self.ask("POST", f"{SESSIONS}/far/events", {"kind": "start", "pid": agent.process.pid, "start_ticks": 1, "boot_id": "x", "host": "far"})
            self.ask("POST", f"{SESSIONS}/far/events", {"kind": "message"})
            said = self.command("cancel", "far", "--kill", "--grace", "0")
            self.assertEqual(said.returncode, 1)
            self.assertIn("on another machine: far", said.stderr)
            self.assertIsNone(agent.process.poll())

    def test_kill_ends_the_newest_of_the_processes_that_a_session_had(self):
        with Agent() as agent:
            own = f"{SESSIONS}/restarted/events"
            facts = pathlib.Path(f"/proc/{agent.process.pid}/stat").read_text().rpartition(")")[2].split()
            here = {"kind": "start", "boot_id": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip(), "host": os.uname().nodename}
            self.ask("POST", SESSIONS, {"sessionId": "restarted"}, status=201)
            self.ask("POST", own, here | {"pid": 2**22, "start_ticks": 1})  # long gone
            agent.do("post", self.server.host, own, here | {"pid": agent.process.pid, "start_ticks": int(facts[19])})
            said = self.command("cancel", "restarted", "--kill", "--grace", "0")
            self.assertEqual(said.returncode, 0, said)
            self.assertIn(f"ended process {agent.process.pid}", said.stdout + said.stderr)
            self.assertEqual(agent.process.wait(PATIENCE_S), -signal.SIGTERM)

    def test_where_nothing_reaches_the_agent_the_answer_says_so(self):
        host, path, body = self.hook("", "notify", "codex")
        connection = http.client.HTTPConnection(host, timeout=PATIENCE_S)
        connection.request("POST", path, json.dumps({"type": "agent-turn-complete", "thread-id": "notify", "turn-id": "1", "input-messages": ["go"]}))
        connection.getresponse().read()
        connection.close()
        reach = lambda session: self.ask("POST", f"{SESSIONS}/{session}/cancel", {})["reach"]
        self.ask("POST", f"{SESSIONS}/notify/events", {"kind": "user_input"})
        self.assertEqual(reach("notify"), "nothing")
        with Agent() as agent:
            agent.do("post", *self.hook("PreToolUse", "hooked", tool_name="Bash", tool_use_id="t1"))
            self.assertEqual(reach("hooked"), "hooks")
        self.model("/v1/chat/completions", {"model": "m", "messages": []}, "relayed")
        self.until("relayed", lambda document: True)
        self.assertEqual(reach("relayed"), "proxy")
        self.ask("POST", SESSIONS, {"sessionId": "reports"}, status=201)
        self.ask("POST", f"{SESSIONS}/reports/events", {"kind": "message"})
        self.assertEqual(reach("reports"), "report")
        said = self.command("cancel", "reports", "--kill")
        self.assertEqual(said.returncode, 1)
        self.assertIn("is not known", said.stderr)


if __name__ == "__main__":
    unittest.main()
