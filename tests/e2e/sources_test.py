#!/usr/bin/env python3
"""By which way each report came, through each way into the real monitor.

Usage: sources_test.py MONITOR
"""

import datetime
import http.client
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

from server import Server
from upstream import Upstream, respond

PROGRAM = os.path.abspath(sys.argv.pop(1))
DATA = pathlib.Path(__file__).parent.parent / "data"
PATIENCE_S = 60
SESSIONS = "/api/autonomous/sessions"
STEP = {"kind": "state_change", "type": "step"}
ANSWER = b'{"id":"c1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'


def copy_of_transcript(name, to):
    """As if its lines had been written a minute ago: older ones are left out."""
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=1)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", then.strftime("%Y-%m-%dT%H:%M:%S.000Z"), (DATA / "transcripts" / name).read_text())
    to.write_text(text)


class CodeDatabase:
    """What opencode writes of a session, as far as it is read, as if it were a minute ago."""

    def __init__(self, folder):
        folder.mkdir(parents=True)
        lines = (DATA / "transcripts" / "opencode.jsonl").read_text()
        first = int(re.search(r'"created":(\d{13})', lines)[1])
        moved = re.sub(r"\b17960139\d{5}\b", lambda found: str(int(found[0]) - first + int(time.time() * 1000) - 100_000), lines)
        self.events = [json.loads(line) for line in moved.splitlines()]
        self.session = self.events[0]["data"]["sessionID"]
        self.connection = sqlite3.connect(folder / "opencode.db", isolation_level=None)
        self.connection.executescript("""
            PRAGMA journal_mode = WAL;
            CREATE TABLE session (id text PRIMARY KEY, time_updated integer NOT NULL);
            CREATE TABLE event_sequence (aggregate_id text PRIMARY KEY, seq integer NOT NULL, owner_id text);
            CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL, data text NOT NULL);
            CREATE UNIQUE INDEX event_aggregate_seq_idx ON event (aggregate_id, seq);""")

    def write(self, begin, end):
        for number, event in list(enumerate(self.events))[begin:end]:
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.execute("INSERT OR REPLACE INTO session VALUES (?, ?)", (self.session, int(time.time() * 1000)))
            self.connection.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)",
                                    (event["id"], self.session, number, event["type"], json.dumps(event["data"])))
            self.connection.execute("INSERT OR REPLACE INTO event_sequence VALUES (?, ?, NULL)", (self.session, number))
            self.connection.execute("COMMIT")


def clean_environment(**more):
    return {k: v for k, v in os.environ.items() if not k.startswith(("WATCHDOG_", "OPENAI_"))} | more


class Sources(unittest.TestCase):
    arguments = ()

    def setUp(self):
        self.server = self.enterContext(Server(PROGRAM, arguments=self.arguments))
        self.folder = pathlib.Path(self.server.folder.name)
        self.where = ("--server", f"http://{self.server.host}")

    def ask(self, method, path, body=None, host=None, **headers):
        connection = http.client.HTTPConnection(host or self.server.host, timeout=PATIENCE_S)
        connection.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body),
                           {"Content-Type": "application/json", "Authorization": f"Bearer {self.server.secret}"} | headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, json.loads(content or b"null")

    def post(self, path, body, **headers):
        status, answer = self.ask("POST", path, body, **headers)
        self.assertIn(status, (200, 201), answer)
        return answer

    def run_program(self, *words, code=0, text=None, **more):
        done = subprocess.run([PROGRAM, *map(str, words)], input=text, capture_output=True, text=True, timeout=PATIENCE_S,
                              env=clean_environment(WATCHDOG_TOKEN=self.server.secret, **more))
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def sources(self, session):
        """Of the progress document, and the same as by its events."""
        document = self.ask("GET", f"/api/autonomous/progress/{session}")[1]
        self.assertNotIn("error", document)
        told = {}
        for source in document["sources"]:
            self.assertLessEqual(source["firstAt"], source["lastAt"])
            told[source["source"]] = source["reports"]
        counted = {}
        for event in self.ask("GET", f"{SESSIONS}/{session}/events?limit=1000")[1]["events"]:
            if not event.get("late"):
                counted[event["origin"]] = counted.get(event["origin"], 0) + event.get("count", 1)
        # A report between the two answers is in the second alone.
        self.assertLessEqual(set(told), set(counted))
        return list(told)

    def until_heard(self, session, source):
        with self.subTest(session=session, source=source):
            connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
            connection.request("GET", f"/api/autonomous/stream?include=sessions")
            stream = connection.getresponse()
            while line := stream.readline():
                if line.startswith(b"data:") and session in line.decode():
                    if self.ask("GET", f"/api/autonomous/progress/{session}")[0] == 200 and source in self.sources(session):
                        break
            else:
                self.fail(f"{session} was not heard by {source}")
            stream.close()
            connection.close()


class OfOneMonitor(Sources):
    def test_the_api(self):
        self.post(f"{SESSIONS}/plain/events", STEP)
        self.post(SESSIONS, {"sessionId": "made", "process": {"pid": os.getpid()}})
        self.post(f"{SESSIONS}/made/events", STEP)
        self.assertEqual((self.sources("plain"), self.sources("made")), (["agent"], ["agent"]))

    def test_a_client_cannot_claim_an_origin_in_an_event(self):
        claimed = STEP | {"origin": "hooks", "by": "hooks", "source": "hooks"}
        self.post(f"{SESSIONS}/claims/events", claimed)
        self.assertEqual(self.sources("claims"), ["agent"])
        for source in ("hooks", "otlp", "monitor", "unknown", "Agent"):
            status, answer = self.ask("POST", f"{SESSIONS}/claims/events?source={source}", STEP)
            self.assertEqual((status, answer["error"]["field"]), (422, "source"), answer)
        self.assertEqual(self.sources("claims"), ["agent"])

    def test_hooks_and_what_follows_from_them(self):
        self.post("/api/hooks/codex", {"session_id": "hooked", "hook_event_name": "UserPromptSubmit", "prompt": "build it"})
        self.assertEqual(self.sources("hooked"), ["hooks"])
        self.post(f"{SESSIONS}/hooked/events", STEP)
        self.assertEqual(self.sources("hooked"), ["hooks", "agent"])

    def test_telemetry(self):
        line = json.loads(DATA.joinpath("otlp", "codex-tools.jsonl").read_text().splitlines()[1])
        self.post(line["path"], line["body"], **{"X-Watchdog-Session": "measured"})
        self.assertEqual(self.sources("measured"), ["otlp"])

    def test_the_monitor_and_people(self):
        self.post(f"{SESSIONS}/asked/events", STEP)
        self.assertEqual(self.ask("PATCH", f"{SESSIONS}/asked", {"policy": {"stuckThreshold": 9}})[0], 200)
        self.post(f"{SESSIONS}/asked/cancel", {"by": "ann", "reason": "enough"})
        self.assertEqual(self.sources("asked"), ["agent", "monitor"])
        said = self.run_program("status", "asked", *self.where)
        self.assertRegex(said, r"\n  heard from +agent \d+ m?s ago\n")

    def test_a_transcript(self):
        for agent, name in (("codex", "codex-tools.jsonl"), ("claude-code", "claude-code.jsonl")):
            folder = self.folder / agent
            folder.mkdir()
            copy_of_transcript(name, folder / f"rollout-{name}")
            self.run_program("follow", agent, folder, "--once", *self.where,
                             WATCHDOG_DB=str(self.folder / "positions" / "w.db"))
        found = [row["sessionId"] for row in self.ask("GET", SESSIONS)[1]["sessions"]]
        self.assertGreaterEqual(len(found), 2)
        self.assertEqual({tuple(self.sources(session)) for session in found}, {("transcript",)})

    def test_a_wrapped_command(self):
        self.run_program("run", "--session", "wrapped", "--state-change-on", "^step", *self.where, "--", "sh", "-c", "echo step 1")
        self.assertEqual(self.sources("wrapped"), ["run"])
        self.run_program("run", "--session", "wrapped-file", "--db", self.folder / "w.db", "--", "sh", "-c", "echo step 1")
        self.assertEqual(self.sources("wrapped-file"), ["run"])

    def test_the_tool_of_mcp(self):
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "report", "arguments": {"session": "agents", "kind": "progress", "text": "the parser works"}}}
        self.post(f"{SESSIONS}/agents/events", STEP)
        self.assertTrue(self.post("/mcp", call)["result"]["structuredContent"]["stored"])
        self.assertEqual(self.sources("agents"), ["agent", "mcp"])
        said = self.run_program("status", "agents", *self.where)
        self.assertRegex(said, r"\n  heard from +agent \d+ m?s ago, MCP \d+ m?s ago\n")

    def test_the_tool_of_mcp_on_standard_input(self):
        begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "report", "arguments": {"session": "piped", "kind": "progress"}}}
        program = subprocess.Popen([PROGRAM, "mcp", *self.where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env=clean_environment(WATCHDOG_TOKEN=self.server.secret))
        for message in (begin, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call):
            program.stdin.write(json.dumps(message) + "\n")
            program.stdin.flush()
        while "result" not in (answer := json.loads(program.stdout.readline())) or answer.get("id") != 2:
            self.assertNotIn("error", answer)
        program.communicate(timeout=PATIENCE_S)
        self.assertEqual(self.sources("piped"), ["mcp"])


class OfTheProxy(Sources):
    def setUp(self):
        self.upstream = self.enterContext(Upstream(lambda connection, head, body: respond(connection, ANSWER)))
        self.arguments = ("--upstream", self.upstream.url, "--proxy-port", "0", "--no-probe")
        super().setUp()

    def request_through(self, host, session):
        status, _ = self.ask("POST", f"/s/{session}/v1/chat/completions",
                             {"model": "m", "messages": [{"role": "user", "content": "hi"}]}, host=host)
        self.assertEqual(status, 200)

    def test_the_proxy_of_the_monitor_and_one_of_its_own(self):
        for line in iter(self.server.process.stdout.readline, ""):
            if found := re.search(r"their model at http://(127\.0\.0\.1:\d+)/v1", line):
                break
        self.request_through(found[1], "inside")
        self.until_heard("inside", "proxy")
        proxy = subprocess.Popen([PROGRAM, "proxy", "--upstream", self.upstream.url, "--port", "0", *self.where],
                                 stdout=subprocess.PIPE, text=True, env=clean_environment(WATCHDOG_TOKEN=self.server.secret))
        self.addCleanup(proxy.stdout.close)
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.send_signal, signal.SIGTERM)
        host = proxy.stdout.readline().split("://")[1].split("/")[0].strip()
        self.request_through(host, "outside")
        self.until_heard("outside", "proxy")
        for session in ("inside", "outside"):
            self.assertEqual([name for name in self.sources(session) if name != "monitor"], ["proxy"])


class OfAFollowingMonitor(Sources):
    def test_transcripts_that_the_monitor_follows(self):
        home = self.folder / "codex"
        (home / "sessions").mkdir(parents=True)
        session = "01a202cc-15e8-7451-8b63-9a029cff292d"
        with Server(PROGRAM, {"CODEX_HOME": str(home), "HOME": str(self.folder)}, ["--follow", "codex"]) as self.server:
            copy_of_transcript("codex-tools.jsonl", home / "sessions" / f"rollout-{session}.jsonl")
            self.until_heard(session, "transcript")

    def kinds(self, session):
        kinds = [event["kind"] for event in self.ask("GET", f"{SESSIONS}/{session}/events?limit=1000")[1].get("events", [])]
        return {kind: kinds.count(kind) for kind in set(kinds)}

    def until(self, session, kind, count):
        end = time.monotonic() + PATIENCE_S
        while (kinds := self.kinds(session)).get(kind) != count:
            self.assertLess(time.monotonic(), end, kinds)
            time.sleep(0.1)
        return kinds

    def test_the_database_of_opencode_while_it_writes_and_over_a_restart(self):
        database = CodeDatabase(self.folder / "data" / "opencode")
        session = database.session
        environment = {"HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder / "data")}
        with Server(PROGRAM, environment, ["--follow", "opencode"]) as self.server:
            self.assertNotIn("tool_call", self.kinds(session))
            running = next(at for at, event in enumerate(database.events) if '"running"' in json.dumps(event))
            database.write(0, running + 1)
            self.until(session, "tool_call", 1)
            self.assertEqual(self.ask("GET", f"/api/autonomous/progress/{session}")[1]["tools"][0]["name"], "bash")
            self.server.crash()
            database.write(running + 1, 30)
            self.server.start()
            self.until(session, "tool_call", 2)
            database.write(30, len(database.events))
            kinds = self.until(session, "idle", 1)
        self.assertEqual({kind: kinds.get(kind) for kind in ("user_input", "tool_call", "tool_result", "error", "message")},
                         {"user_input": 1, "tool_call": 3, "tool_result": 2, "error": 1, "message": 1})

    def test_a_chat_of_gemini_cli_in_both_of_its_forms(self):
        chats = self.folder / ".gemini" / "tmp" / "project" / "chats"
        chats.mkdir(parents=True)
        session = "e397ffbe-b8d3-4c1b-a504-1d5097f4fbb8"
        copy_of_transcript("gemini-cli.jsonl", self.folder / "recorded")
        lines = (self.folder / "recorded").read_text().splitlines()
        messages = {}
        for line in map(json.loads, lines):
            if "type" in line:
                messages[line["id"]] = line
        facts = {"sessionId": "whole-chat", "projectHash": "p", "startTime": "2026-11-30T04:36:22.084Z"}
        with Server(PROGRAM, {"HOME": str(self.folder)}, ["--follow", "gemini-cli"]) as self.server:
            for count in range(len(messages)):
                text = json.dumps(facts | {"messages": list(messages.values())[:count + 1]})
                for part in (text[:len(text) // 2], text):
                    (chats / "session-whole.json").write_text(part)
                    time.sleep(0.02)
                with (chats / "session-lines.jsonl").open("a") as chat:
                    chat.write("\n".join(lines[count * len(lines) // len(messages):(count + 1) * len(lines) // len(messages)]) + "\n")
            for each in (session, "whole-chat"):
                kinds = self.until(each, "message", 1)
                self.assertEqual({kind: kinds.get(kind) for kind in ("user_input", "tool_call", "tool_result")},
                                 {"user_input": 1, "tool_call": 3, "tool_result": 3})
                self.assertEqual(self.sources(each), ["transcript"])


if __name__ == "__main__":
    unittest.main(verbosity=int(os.environ.get("VERBOSE", "1")), argv=sys.argv)
