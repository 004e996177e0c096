#!/usr/bin/env python3
"""Any character in any text of a report leaves every list, search and page readable, with each engine of the store.

A run sends all of Unicode, each control character in each text member of each kind of event, and what is no Unicode.
"""

import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import sys
import unittest
import urllib.parse

import jsonschema

from postgres import Monitor, Postgres
from server import Server
from specification import Specification

PROGRAM = sys.argv.pop(1)
SCHEMAS = pathlib.Path(__file__).resolve().parent.parent.parent / "schemas"
SEED = int(os.environ.get("WATCHDOG_SEED", random.randrange(1 << 32)))
PATIENCE_S = 60
SESSIONS = "/api/autonomous/sessions"
CHUNK = 60  # The shortest text member has 64 characters.
CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
PROPERTIES = ("agent", "task", "title")
# No text of JSON, or no text of UTF-8. A program in C sends what it finds in a file.
NO_UNICODE = (rb"half \ud800 a pair", rb"turned \udc00\ud800 round", b"raw \xff\xfe", b"overlong \xc0\x80", b"half \xed\xa0\x80 raw")


def chunks_of_unicode():
    """All characters but the surrogates, in texts of one length."""
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    return ["".join(every[at:at + CHUNK]) for at in range(0, len(every), CHUNK)]


def odd_texts():
    """Texts that every member gets."""
    controls = ["".join(f"{c}x" for c in CONTROLS[at:at + CHUNK // 2]) for at in range(0, len(CONTROLS), CHUNK // 2)]
    return [*controls, "\0", "a\0b", "\\u0000", "\\", '"', "%00", "\u2028\u2029\ufeff\ufffe\uffff", "\u202e\u2066", "'; --", "</script>"]


def strings_in(value):
    if isinstance(value, str):
        yield value
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings_in(member)
    yield from value if isinstance(value, dict) else ()


class Texts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.specification = Specification(SCHEMAS)
        event = cls.specification.file("event.schema.json")
        takes = lambda node: all(jsonschema.Draft202012Validator(node | {"$defs": event["$defs"]}).is_valid(text) for text in ("one", "two"))
        cls.members = [name for name, node in event["properties"].items() if name != "kind" and takes(node)]
        cls.kinds = event["properties"]["kind"]["examples"]

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Authorization": f"Bearer {self.secret}"} | (headers or {}))
            response = connection.getresponse()
            if response.getheader("Content-Type") == "text/event-stream":
                return response.status, response.readline() + response.readline()
            return response.status, response.read()

    def report(self, session, events):
        """Bytes as they are, one event per line; returns the status."""
        return self.ask("POST", f"{SESSIONS}/{session}/events", b"\n".join(events))[0]

    def fields(self):
        """Kinds and members that the monitor takes together."""
        found = []
        for kind in self.kinds:
            for member in self.members:
                event = {"kind": kind, member: "x"} | ({"type": "t"} if kind == "state_change" and member != "type" else {})
                event |= {"name": "n"} if kind in ("limit", "turn") and member != "name" else {}
                if self.report("probe", [json.dumps(event).encode()]) == 200:
                    found.append((event, member))
        return found

    def send_all(self):
        """Returns the sessions, by the text of which each has its properties."""
        random_ = random.Random(SEED)
        fields, sessions = self.fields(), {}
        self.assertGreater(len(fields), 150)
        self.assertEqual({member for _, member in fields}, set(self.members), "each text member was taken")
        left = chunks_of_unicode()
        random_.shuffle(left)
        texts = [[text] * len(fields) for text in odd_texts()]
        while left:
            texts.append([left.pop() if left else "" for _ in fields])
        for number, own in enumerate(texts):
            session = f"s{number}"
            sessions[session] = own[0]
            made = {"sessionId": session, "labels": {"odd": own[0]}} | {name: f"needle-{number}- {own[0]}" for name in PROPERTIES}
            self.assertEqual(self.ask("POST", SESSIONS, json.dumps(made))[0], 201)
            events = [json.dumps(event | {member: text}, ensure_ascii=bool(number % 2)).encode(errors="surrogatepass")
                      for (event, member), text in zip(fields, own) if event["kind"] != "end"]
            events += [json.dumps(event | {member: text}).encode() for (event, member), text in zip(fields, own) if event["kind"] == "end"]
            if self.report(session, events) != 200:  # One has a form of its own, so each goes alone.
                answers = {self.report(session, [event]) for event in events}
                self.assertLessEqual(answers, {200, 400, 422}, f"{own[0]!r} seed {SEED}")
        for number, raw in enumerate(NO_UNICODE):
            session = f"raw{number}"
            for event, member in fields:
                text = json.dumps(event | {member: "HERE"}).encode().replace(b"HERE", raw)
                self.assertIn(self.report(session, [text]), (200, 400, 422), (raw, event, SEED))
        return sessions

    def read(self, path, statuses=(200,)):
        status, body = self.ask("GET", path)
        self.assertIn(status, statuses, f"{path} seed {SEED}: {body[:300]!r}")
        text = body.decode()
        # The format of an archive fills its blocks with these.
        self.assertFalse("\0" in text and not path.endswith("/bundle"), path)
        if not text.startswith(("{", "[")):
            return text
        value = json.loads(text)
        for one in strings_in(value):
            self.assertNotIn("\0", one, path)
        return value

    def pages(self, path, member):
        """All pages of a list."""
        found, after = [], None
        while True:
            page = self.read(path + ("&" if "?" in path else "?") + "limit=37" + (f"&after={after}" if after else ""))
            found += page[member]
            after = page["next"]
            if after is None:
                return found

    def read_all(self, sessions):
        """Asks each route that lists or searches; returns what each session's events say."""
        for path, member in ((SESSIONS, "sessions"), ("/api/autonomous/progress", "sessions")):
            ids = {row["sessionId"] for row in self.pages(path, member)}
            self.assertLessEqual(sessions.keys(), ids, f"{path} seed {SEED}")
            for number in random.Random(SEED).sample(range(len(sessions)), 10):
                found = self.pages(f"{path}?search=needle-{number}-", member)
                self.assertEqual([row["sessionId"] for row in found], [f"s{number}"], f"{path} seed {SEED}")
            for text in (*odd_texts(), "x\0", *random.Random(SEED).sample(chunks_of_unicode(), 20)):
                quoted = urllib.parse.quote(text)
                for query in (f"search={quoted}", f"q={quoted}", f"agent={quoted}", f"label=odd:{quoted}", f"label={quoted}:x"):
                    self.read(f"{path}?{query}&limit=1000", (200, 400, 422))
        alone = [operation for operation in self.specification.operations
                 if operation.method == "GET" and not re.search(r"{(?!sessionId)", operation.path) and operation.path != "/mcp"]
        told = {}
        for operation in alone:
            if "{" not in operation.path:
                self.read(operation.sample(), (200, 404))
        some = [*random.Random(SEED).sample(sorted(sessions), 12), *list(sessions)[:len(odd_texts())], *sorted(ids - sessions.keys())]
        for session in some:
            for operation in alone:
                if "{" in operation.path and not operation.path.endswith("/wait"):
                    self.read(operation.path.replace("{sessionId}", session), (200, 404))
            events = self.pages(f"{SESSIONS}/{session}/events", "events")
            told[session] = sorted(json.dumps({k: v for k, v in event.items() if not k.endswith(("_ms", "seq", "tick", "At", "at"))},
                                              sort_keys=True) for event in events)
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "agents", "arguments": {"limit": 50}}}
        status, body = self.ask("POST", "/mcp", json.dumps(call), {"Content-Type": "application/json"})
        self.assertEqual((status, "error" in json.loads(body)), (200, False), body[:300])
        return told

    def test_any_character_in_any_text_leaves_every_list_readable(self):
        told = {}
        with Server(PROGRAM) as server:
            self.host, self.secret = server.host, server.secret
            sessions = self.send_all()
            told["file"] = self.read_all(sessions)
            server.crash()
            server.start()
            self.host = server.host
            self.assertTrue(self.read_all(sessions) == told["file"], "after a restart")
        database = Postgres()
        self.addCleanup(database.stop)
        for run in ("first", "again"):
            monitor = Monitor(PROGRAM, database.url())
            self.addCleanup(monitor.stop)
            self.host, self.secret = monitor.host, monitor.secret
            if run == "first":
                sessions = self.send_all()
            told[run] = self.read_all(sessions)
            differ = [session for session in told["file"] if told[run].get(session) != told["file"][session]]
            self.assertEqual(differ, [], f"both engines tell the same, {run}, seed {SEED}")


if __name__ == "__main__":
    unittest.main()
