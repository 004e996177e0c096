#!/usr/bin/env python3
"""The proxy of tool servers, between a client's pipe and a real server process. The limits of its clients.

Usage: mcp_proxy_test.py MONITOR
"""

import http.client
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from otlp_contract import TRACE, logs_of
from server import Server

PROGRAM = os.path.abspath(sys.argv.pop(1))
TOOLS = (sys.executable, str(pathlib.Path(__file__).parent / "tool_server.py"))
PATIENCE_S = 60
SESSIONS = "/api/autonomous/sessions"
NOBODY = ("--server", "http://127.0.0.1:9")


class Client:
    """Speaks through the proxy, a line at a time."""

    def __init__(self, *arguments, environment=None, tools=TOOLS):
        between = () if tools[0].startswith("http") else ("--",)
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("WATCHDOG_", "CLAUDE_"))}
        self.process = subprocess.Popen([PROGRAM, "mcp-proxy", *arguments, *between, *tools], env=clean | (environment or {}),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.number = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()
        for file in (self.process.stdin, self.process.stdout, self.process.stderr):
            file.close()

    def say(self, text):
        self.process.stdin.write((text if isinstance(text, str) else json.dumps({"jsonrpc": "2.0", **text})).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self):
        return json.loads(self.process.stdout.readline())

    def begin(self, name="a-client"):
        self.say({"id": "begin", "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}})
        answer = self.hear()
        self.say({"method": "notifications/initialized"})
        return answer

    def call(self, tool, meta=None, **arguments):
        self.number += 1
        params = {"name": tool, "arguments": arguments} | ({"_meta": meta} if meta else {})
        self.say({"id": self.number, "method": "tools/call", "params": params})
        return self.number

    def text_of(self, number):
        answer = self.hear()
        assert answer.get("id") == number, answer
        return answer["result"]["content"][0]["text"]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(PATIENCE_S)


class Proxied(unittest.TestCase):
    def client(self, *arguments, **more):
        return self.enterContext(Client(*arguments, **more))

    def test_calls_go_through_without_a_monitor(self):
        client = self.client(*NOBODY)
        self.assertEqual(client.begin()["result"]["serverInfo"]["name"], "tools")
        self.assertIn("watchdog-", client.text_of(client.call("meta")))
        self.assertEqual(client.text_of(client.call("meta", {"progressToken": 5})), '{"progressToken": 5}')
        self.assertEqual(client.end(), 0)

    def test_a_long_call_that_moves_is_left_alone_and_its_progress_is_swallowed(self):
        client = self.client(*NOBODY, "--deadline", "2")
        client.begin()
        began = time.monotonic()
        self.assertEqual(client.text_of(client.call("work", steps=10)), "worked")
        self.assertGreater(time.monotonic() - began, 2.5)

    def test_progress_that_the_client_asked_for_reaches_it(self):
        client = self.client(*NOBODY)
        client.begin()
        number = client.call("work", {"progressToken": "t"}, steps=3)
        told = [client.hear() for _ in range(3)]
        self.assertEqual([note["params"]["progress"] for note in told], [1, 2, 5])
        self.assertEqual({note["params"]["progressToken"] for note in told}, {"t"})
        self.assertEqual(client.text_of(number), "worked")

    def test_a_stuck_call_is_given_up_and_wedges_no_other(self):
        client = self.client(*NOBODY, "--deadline", "2")
        client.begin()
        stuck = client.call("hang")
        for _ in range(20):
            self.assertIn("watchdog-", client.text_of(client.call("meta")))
        words = client.text_of(stuck)
        self.assertRegex(words, r'^\[TIMEOUT\] Tool "hang" made no progress for 2s \(ran 2\.\ds\)\.\nEffects: unknown - ')
        self.assertIn("State: still running", words)
        self.assertIn("watchdog-", client.text_of(client.call("meta")))
        client.end()
        self.assertIn(f"cancelled {stuck}", client.process.stderr.read().decode())

    def test_a_late_result_is_dropped(self):
        client = self.client(*NOBODY, "--deadline", "1")
        client.begin()
        self.assertIn("[TIMEOUT]", client.text_of(client.call("late", seconds=2)))
        time.sleep(1.5)
        self.assertIn("watchdog-", client.text_of(client.call("meta")))

    def test_a_busy_server_is_not_given_up(self):
        client = self.client(*NOBODY, "--deadline", "4")
        client.begin()
        self.assertEqual(client.text_of(client.call("burn", seconds=9)), "burned")

    def test_a_dead_server_answers_and_begins_again(self):
        client = self.client(*NOBODY)
        before = client.begin()["result"]["serverInfo"]["version"]
        stuck, dead = client.call("hang"), client.call("die")
        answers = {answer["id"]: answer["result"] for answer in (client.hear(), client.hear())}
        self.assertEqual(set(answers), {stuck, dead})
        for answer in answers.values():
            self.assertTrue(answer["isError"])
            self.assertIn("exited with code 3 before it answered. Effects: unknown", answer["content"][0]["text"])
        self.assertNotEqual(client.text_of(client.call("pid")), before)
        client.say({"id": "p", "method": "ping"})
        self.assertEqual(client.hear(), {"jsonrpc": "2.0", "id": "p", "result": {}})

    def test_a_server_that_hangs_on_is_ended_only_if_the_owner_chose_so(self):
        client = self.client(*NOBODY, "--deadline", "1", "--kill-after", "1")
        before = client.begin()["result"]["serverInfo"]["version"]
        self.assertIn("[TIMEOUT]", client.text_of(client.call("hang")))
        until = time.monotonic() + PATIENCE_S
        while (after := client.text_of(client.call("pid"))) == before and time.monotonic() < until:
            time.sleep(0.3)
        self.assertNotEqual(after, before)

    def test_a_server_that_cannot_start_ends_the_proxy(self):
        client = self.client(*NOBODY, tools=("/nonexistent/server",))
        self.assertEqual(client.process.wait(PATIENCE_S), 127)
        self.assertIn("/nonexistent/server cannot be started: No such file", client.process.stderr.read().decode())
        client = self.client(*NOBODY, tools=("sh", "-c", "exit 7"))
        self.assertEqual(client.process.wait(PATIENCE_S), 7)

    def test_hostile_bytes_are_dropped_or_refused(self):
        client = self.client(*NOBODY)
        client.begin()
        number = client.call("noise", bytes=3_000_000)
        self.assertEqual(len(client.text_of(number)), 3_000_000)
        client.say("{")
        self.assertEqual(client.hear()["error"]["message"], "not JSON")
        client.say('{"jsonrpc":"2.0","id":1,"method":"x","params":"' + "x" * 33_600_000 + '"}')
        self.assertIn("at most 33554432 bytes", client.hear()["error"]["message"])
        number = client.call("noise", bytes=33_600_000)
        self.assertIn("sent more than 33554432 bytes", client.text_of(number))
        self.assertIn("watchdog-", client.text_of(client.call("meta")))

    def test_signals_reach_the_server(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            client = self.client(*NOBODY)
            client.begin()
            client.process.send_signal(number)
            self.assertEqual(client.process.wait(PATIENCE_S), 128 + number)

    def test_a_server_that_ignores_the_end_of_its_input_is_ended(self):
        client = self.client(*NOBODY, tools=("sh", "-c", 'read line; echo "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":\\"begin\\",\\"result\\":{}}"; sleep 1000'))
        client.begin()
        began = time.monotonic()
        self.assertEqual(client.end(), 128 + signal.SIGTERM)
        self.assertGreater(time.monotonic() - began, 5)


class HttpTools(http.server.BaseHTTPRequestHandler):
    """A tool server that speaks streamable HTTP; its one session can be forgotten."""
    protocol_version = "HTTP/1.1"
    seen = []
    session = "s1"
    gone = threading.Event()
    version = "2025-11-25"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(405)

    do_DELETE = do_GET

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        message = json.loads(text)
        self.seen.append((message, dict(self.headers)))
        if "id" not in message:
            return self.answer(202)
        result = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "ok"}]}}
        if message["method"] == "initialize":
            result["result"] = {"protocolVersion": self.version, "capabilities": {}, "serverInfo": {"name": "web", "version": "1"}}
            return self.answer(200, json.dumps(result, indent=1).encode(), Content_Type="application/json", Mcp_Session_Id=self.session)
        if self.headers["Mcp-Session-Id"] not in (None, self.session):
            return self.answer(404)
        tool = message.get("params", {}).get("name")
        if tool == "down":
            return self.answer(503, b"busy")
        if tool == "plain":
            return self.answer(200, json.dumps(result, indent=1).encode(), Content_Type="application/json")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        token = message["params"].get("_meta", {}).get("progressToken")
        if tool == "hang":
            self.wfile.flush()
            self.connection.settimeout(PATIENCE_S)
            self.gone.set() if self.connection.recv(1) == b"" else None
            return None
        for step in range(3):
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": step + 1}}
            self.wfile.write(f"event: message\ndata: {json.dumps(note)}\n\n".encode())
        if tool != "cut":
            self.wfile.write(f"data: {json.dumps(result)}\n\n".encode())
        return None


class ProxiedUrl(unittest.TestCase):
    def setUp(self):
        HttpTools.seen, HttpTools.session, HttpTools.gone, HttpTools.version = [], "s1", threading.Event(), "2025-11-25"
        self.tools = http.server.ThreadingHTTPServer(("127.0.0.1", 0), HttpTools)
        self.tools.daemon_threads = True
        threading.Thread(target=self.tools.serve_forever, daemon=True).start()
        self.addCleanup(self.tools.server_close)
        self.addCleanup(self.tools.shutdown)
        self.url = f"http://127.0.0.1:{self.tools.server_port}/mcp"

    def client(self, *arguments, **environment):
        return self.enterContext(Client(*NOBODY, *arguments, tools=(self.url,), environment=environment))

    def test_calls_progress_and_headers(self):
        client = self.client("--header", "Authorization: Bearer $SECRET", SECRET="abc")
        self.assertEqual(client.begin()["result"]["serverInfo"]["name"], "web")
        self.assertEqual(client.text_of(client.call("plain")), "ok")
        number = client.call("stream", {"progressToken": "t"})
        self.assertEqual([client.hear()["params"]["progress"] for _ in range(3)], [1, 2, 3])
        self.assertEqual(client.text_of(number), "ok")
        self.assertEqual(client.text_of(client.call("stream")), "ok")
        self.assertEqual([message["method"] for message, _ in HttpTools.seen],
                         ["initialize", "notifications/initialized", "tools/call", "tools/call", "tools/call"])
        for _, headers in HttpTools.seen[1:]:
            self.assertEqual((headers["Mcp-Session-Id"], headers["MCP-Protocol-Version"], headers["Authorization"]),
                             ("s1", "2025-11-25", "Bearer abc"))
        self.assertEqual(client.end(), 0)

    def test_a_stateless_client(self):
        client = self.client()
        number = client.call("plain", {"io.modelcontextprotocol/protocolVersion": "2026-07-28"})
        self.assertEqual(client.text_of(number), "ok")
        headers = HttpTools.seen[0][1]
        self.assertEqual((headers["MCP-Protocol-Version"], headers["Mcp-Method"], headers["Mcp-Name"]),
                         ("2026-07-28", "tools/call", "plain"))

    def test_no_member_of_a_message_becomes_a_header_line(self):
        HttpTools.version = "2025-06-18\r\nX-From-Server: 1"
        client = self.client()
        client.begin()
        self.assertEqual(client.text_of(client.call("plain")), "ok")
        client.text_of(client.call("plain", {"io.modelcontextprotocol/protocolVersion": "2026-07-28\r\nX-From-Client: 1"}))
        client.text_of(client.call("plain\r\nX-From-Name: 1", {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}))
        self.assertGreater(len(HttpTools.seen), 3)
        for _, headers in HttpTools.seen:
            self.assertEqual([name for name in headers if name.startswith("X-From")], [])

    def test_a_stuck_call_is_closed_and_cancelled(self):
        client = self.client("--deadline", "1")
        client.begin()
        stuck = client.call("hang")
        self.assertEqual(client.text_of(client.call("plain")), "ok")
        self.assertIn("[TIMEOUT]", client.text_of(stuck))
        self.assertTrue(HttpTools.gone.wait(PATIENCE_S), "the connection is closed")
        self.assertEqual(client.text_of(client.call("plain")), "ok")
        cancels = [message["params"]["requestId"] for message, _ in HttpTools.seen if message["method"] == "notifications/cancelled"]
        self.assertEqual(cancels, [stuck])

    def test_a_lost_answer_is_an_error_and_is_not_asked_again(self):
        client = self.client()
        client.begin()
        for tool, why in (("down", "HTTP status 503. Effects: unknown"), ("cut", "ended its answer before the result. Effects: unknown")):
            self.assertIn(why, client.text_of(client.call(tool)))
        self.assertEqual([message["params"]["name"] for message, _ in HttpTools.seen if message["method"] == "tools/call"], ["down", "cut"])
        client.say({"id": "l", "method": "tools/list", "params": {"name": "down"}})
        self.assertIn("HTTP status 503", client.hear()["error"]["message"])

    def test_a_forgotten_session_begins_again(self):
        client = self.client()
        client.begin()
        HttpTools.session = "s2"
        lost = client.text_of(client.call("plain"))
        self.assertIn("the tool server does not know its session any more. Effects: none - it did not begin. It may be repeated.", lost)
        self.assertEqual(client.text_of(client.call("plain")), "ok")
        self.assertEqual(HttpTools.seen[-1][1]["Mcp-Session-Id"], "s2")

    def test_no_server_is_an_error(self):
        self.tools.server_close()
        client = self.client()
        client.say({"id": 1, "method": "tools/list"})
        self.assertIn("the tool server did not answer: ", client.hear()["error"]["message"])

    def test_a_malformed_header_is_refused(self):
        for header in ("x", ": y", "X: "):
            client = self.client("--header", header)
            self.assertEqual(client.process.wait(PATIENCE_S), 2, header)


class Reported(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Server(PROGRAM))
        self.where = ("--server", f"http://{self.server.host}")

    def get(self, path):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.server.secret}"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def events(self, session):
        return [(event["kind"], event.get("name")) for event in self.get(f"{SESSIONS}/{session}/events")["events"]
                if event["kind"] != "observer"]

    def test_calls_belong_to_the_session_of_the_environment(self):
        with Client(*self.where, "--deadline", "1", environment={"WATCHDOG_SESSION": "mine"}) as client:
            client.begin()
            client.text_of(client.call("meta"))
            client.text_of(client.call("fail"))
            client.text_of(client.call("hang"))
            client.end()
        calls = [event for event in self.events("mine")]
        self.assertEqual(calls, [("tool_call", "meta"), ("tool_result", "meta"), ("tool_call", "fail"), ("error", "fail"),
                                 ("tool_call", "hang"), ("tool_timeout", "hang")])
        document = self.get("/api/autonomous/progress/mine")
        self.assertEqual([source["source"] for source in document["sources"]], ["mcp"])
        self.assertNotEqual(document["state"], "completed", "the session is the agent's")

    def test_the_agents_hooks_and_the_proxy_count_a_call_once(self):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)

        def hook(event, **more):
            connection.request("POST", "/api/hooks/claude-code", json.dumps({
                "hook_event_name": event, "session_id": "joined", "tool_name": "mcp__tools__meta", "tool_input": {},
                "tool_use_id": "toolu_1", **more}), {"Content-Type": "application/json", "Authorization": f"Bearer {self.server.secret}"})
            response = connection.getresponse()
            response.read()
            self.assertEqual(response.status, 200)

        hook("PreToolUse")
        with Client(*self.where, environment={"CLAUDE_CODE_SESSION_ID": "joined"}) as client:
            client.begin()
            client.text_of(client.call("meta", {"claudecode/toolUseId": "toolu_1"}))
            client.end()
        hook("PostToolUse", tool_response="x")
        kinds = [kind for kind, _ in self.events("joined")]
        self.assertEqual((kinds.count("tool_call"), kinds.count("tool_result")), (1, 1), self.events("joined"))

    def tell(self, session, trace):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        connection.request("POST", "/v1/logs", json.dumps(logs_of(session, trace)), {"Content-Type": "application/json"})
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def calls(self, session):
        return [event for event in self.events(session) if event[0] != "user_input"]

    def test_a_call_joins_the_session_that_telemetry_of_its_trace_names(self):
        meta = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        self.tell("told", TRACE)
        with Client(*self.where) as client:
            client.begin()
            client.text_of(client.call("meta", meta))
            client.text_of(client.call("fail", meta))
            client.end()
        self.assertEqual([row["sessionId"] for row in self.get(SESSIONS)["sessions"]], ["told"], "the proxy needs none of its own")
        self.assertEqual(self.calls("told"), [("tool_call", "meta"), ("tool_result", "meta"), ("tool_call", "fail"), ("error", "fail")])
        self.assertNotEqual(self.get("/api/autonomous/progress/told")["state"], "completed", "the session is the agent's")

    def test_a_result_follows_its_call_whatever_telemetry_tells_meanwhile(self):
        meta = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        with Client(*self.where, "--deadline", "2") as client:
            client.begin("some-agent")
            stuck = client.call("hang", meta)
            end = time.monotonic() + PATIENCE_S
            while not self.get(SESSIONS)["sessions"] and time.monotonic() < end:
                time.sleep(0.05)
            self.tell("told", TRACE)
            client.text_of(stuck)
            client.text_of(client.call("meta", meta))
            client.end()
        self.assertEqual(self.calls("told"), [("tool_call", "meta"), ("tool_result", "meta")])
        own, = [row for row in self.get(SESSIONS)["sessions"] if row["sessionId"] != "told"]
        self.assertEqual((own["agent"], own["state"]), ("some-agent", "completed"))
        self.assertEqual([kind for kind, _ in self.events(own["sessionId"])], ["start", "tool_call", "tool_timeout", "idle", "end"])

    def test_a_named_session_is_surer_than_a_trace(self):
        meta = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        self.tell("told", TRACE)
        for environment, more, session in (({"WATCHDOG_SESSION": "mine"}, {}, "mine"), ({"WATCHDOG_SESSION": "my run"}, {}, "my-run"),
                                           ({}, {"threadId": "codex"}, "codex"),
                                           ({"CLAUDE_CODE_SESSION_ID": "claude"}, {}, "claude")):
            with Client(*self.where, environment=environment) as client:
                client.begin()
                client.text_of(client.call("meta", meta | more))
                client.end()
            self.assertEqual(self.calls(session), [("tool_call", "meta"), ("tool_result", "meta")])
        self.assertEqual(self.calls("told"), [])

    def test_without_a_name_the_proxy_has_a_session_of_its_own(self):
        with Client(*self.where) as client:
            client.begin("some-agent")
            client.text_of(client.call("meta"))
            client.end()
        row, = self.get(SESSIONS)["sessions"]
        self.assertEqual((row["agent"], row["state"]), ("some-agent", "completed"))
        self.assertEqual([kind for kind, _ in self.events(row["sessionId"])], ["start", "tool_call", "tool_result", "idle", "end"])


class LimitsOfClients(unittest.TestCase):
    def test_the_doctor_names_the_limits_of_mcp_clients(self):
        home = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, text in ((".claude.json", '{"mcpServers": {"build": {"command": "x", "timeout": 90000}}}'),
                           (".claude/settings.json", '{"env": {"CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": "0"}}'),
                           (".codex/config.toml", "[mcp_servers.web]\ntool_timeout_sec = 45\n")):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
        environment = {"HOME": str(home), "PATH": str(home), "MCP_TOOL_TIMEOUT": "7000", "COLUMNS": "300", "LANG": "C.UTF-8"}

        def said(*options):
            return subprocess.run([PROGRAM, "doctor", *options], env=environment, capture_output=True, text=True, check=True).stdout

        found = {(row["client"], row["server"], row["setting"]): (row["ms"], row["setBy"])
                 for row in json.loads(said("--json"))["toolLimitsHere"]}
        self.assertEqual(found["claude-code", "build", "timeout of the server"], (90_000, str(home / ".claude.json")))
        self.assertEqual(found["claude-code", None, "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT"], (0, str(home / ".claude/settings.json")))
        self.assertEqual(found["claude-code", None, "MCP_TOOL_TIMEOUT"], (7_000, "$MCP_TOOL_TIMEOUT"))
        self.assertEqual(found["claude-code", None, "MCP_TIMEOUT"], (30_000, None))
        self.assertEqual(found["codex", "web", "tool_timeout_sec"], (45_000, str(home / ".codex/config.toml")))
        self.assertEqual({client for client, _, _ in found}, {"claude-code", "codex"})
        self.assertRegex(said(), r"codex +web +tool_timeout_sec: the call fails +45 s +unknown +")


if __name__ == "__main__":
    unittest.main()
