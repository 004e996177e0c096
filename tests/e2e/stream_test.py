#!/usr/bin/env python3
"""Server-sent events of a real monitor: everything once and in order, whatever happens to either side."""

import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import socket
import sys
import threading
import time
import unittest
import unittest.mock

from server import Server

PROGRAM = sys.argv.pop(1)
SEED = int(os.environ.get("WATCHDOG_SEED", time.time_ns() % 2**31))
SESSIONS = "/api/autonomous/sessions"
STREAM = "/api/autonomous/stream"
PATIENCE_S = 60


class Reader:
    """One stream, record by record."""

    def __init__(self, server, path, cursor=None, headers=None):
        headers = {"Last-Event-ID": cursor} if cursor else headers or {}
        self.connection = http.client.HTTPConnection(server.host, timeout=PATIENCE_S)
        self.connection.request("GET", path, headers=headers)
        self.response = self.connection.getresponse()
        self.cursor = cursor

    def __iter__(self):
        return self

    def __next__(self):
        """(kind, data); ends when the server hangs up."""
        kind = data = None
        while True:
            try:
                line = self.response.readline()
            except OSError:
                line = b""
            if not line.endswith(b"\n"):
                raise StopIteration
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "id":
                self.cursor = value
            elif name == "data":
                data = json.loads(value)
            elif not name and kind:
                return kind, data

    def until(self, condition):
        for kind, data in self:
            if condition(kind, data):
                return data
        raise AssertionError("the stream ended")

    def close(self):
        self.response.close()
        self.connection.close()


def post(server, path, body):
    with contextlib.closing(http.client.HTTPConnection(server.host, timeout=PATIENCE_S)) as connection:
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"null")


def say(server, session, *events):
    status, answer = post(server, f"{SESSIONS}/{session}/events", list(events))
    assert status == 200, answer
    return answer


def change(number):
    return {"kind": "state_change", "type": "step", "data": {"n": number}}


def numbers(records):
    return [data["data"]["n"] for kind, data in records if kind == "event" and data["kind"] == "state_change"]


class StreamTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Server(PROGRAM))
        print(f"WATCHDOG_SEED={SEED}", file=sys.stderr)
        self.random = random.Random(SEED)

    def open(self, path=STREAM, cursor=None):
        reader = Reader(self.server, path, cursor)
        self.addCleanup(reader.close)
        return reader

    def test_first_how_things_are_then_what_happens(self):
        say(self.server, "old", change(1))
        reader = self.open()
        kind, data = next(reader)
        self.assertEqual((kind, data["complete"], data["resumed"], data["missed"]), ("snapshot", True, False, False))
        self.assertEqual([(row["sessionId"], row["health"]) for row in data["sessions"]], [("old", "progressing")])
        say(self.server, "new", {"kind": "heartbeat", "iteration": 4}, change(2))
        event = reader.until(lambda kind, data: kind == "event" and data["kind"] == "state_change")
        self.assertEqual((event["sessionId"], event["data"]), ("new", {"n": 2}))
        self.assertEqual(reader.until(lambda kind, data: kind == "transition" and data["health"] == "progressing")["sessionId"], "new")
        self.assertEqual(reader.until(lambda kind, data: kind == "session")["iteration"], 4)

    def test_secrets_are_shown_to_nobody(self):
        secret = "hunter2" + "forever"
        reader = self.open()
        say(self.server, "a", {"kind": "state_change", "type": "login", "data": {"password": secret}},
            {"kind": "tool_call", "name": "shell", "args": {"command": f"psql postgres://me:{secret}@db/x"}},
            {"kind": "end", "outcome": "failed", "reason": "denied", "error": f"password={secret} was refused"})
        told = []
        reader.until(lambda kind, data: told.append(json.dumps(data)) or kind == "session" and data["lifecycle"] == "failed")
        self.assertIn("[redacted]", "".join(told))
        self.assertNotIn(secret, "".join(told))

    def test_a_session_that_was_only_created_is_reported(self):
        reader = self.open()
        next(reader)
        self.assertEqual(post(self.server, SESSIONS, {"sessionId": "made"})[0], 201)
        row = reader.until(lambda kind, data: kind == "session")
        self.assertEqual((row["sessionId"], row["health"], row["heartbeats"]), ("made", "unknown", None))

    def test_the_stream_of_one_session_reports_that_session_alone(self):
        say(self.server, "a", change(1))
        reader = self.open(f"{SESSIONS}/a/stream")
        self.assertEqual(next(reader)[1]["sessions"][0]["progress"]["stateChanges"], 1)
        say(self.server, "b", change(2))
        say(self.server, "a", change(3))
        said = []
        reader.until(lambda kind, data: said.append(data["sessionId"]) or kind == "session" and data["progress"]["stateChanges"] == 2)
        self.assertEqual(set(said), {"a"})

    def test_a_session_that_ended_is_reported_as_ended(self):
        say(self.server, "a", change(1))
        reader, own = self.open(), self.open(f"{SESSIONS}/a/stream")
        next(reader), next(own)
        say(self.server, "a", {"kind": "end", "outcome": "failed", "reason": "broke", "error": "no disk"})
        row = reader.until(lambda kind, data: kind == "session" and data["lifecycle"] == "failed")
        self.assertEqual((row["outcome"], row["reason"]), ("failed", "Broke: no disk"))
        document = own.until(lambda kind, data: kind == "session" and data["lifecycle"] == "failed")
        self.assertEqual(document["outcome"]["error"], "no disk")

    def test_a_stream_goes_on_from_any_of_its_ids(self):
        for n in range(30):
            say(self.server, f"s{n % 3}", {"kind": "heartbeat"}, change(n))
        whole = self.open(f"{STREAM}?after=0.0&include=events,transitions")
        told, cursors = [], []
        while numbers(told)[-1:] != [29]:
            told.append(next(whole))
            cursors.append(whole.cursor)
        for _ in range(20):
            at = self.random.randrange(1, len(told))
            again = self.open(f"{STREAM}?include=events,transitions", cursors[at])
            self.assertEqual(next(again)[1], {**next(iter([told[0][1]])), "now": unittest.mock.ANY})
            rest = [next(again) for _ in told[at + 1:]]
            self.assertCountEqual([json.dumps(record) for record in rest], [json.dumps(record) for record in told[at + 1:]])
            again.close()

    def test_an_id_of_another_file_is_said_to_be_missed(self):
        say(self.server, "a", change(1))
        kind, data = next(self.open(f"{STREAM}?include=events", "99999.5"))
        self.assertEqual((kind, data["resumed"], data["missed"]), ("snapshot", False, True))

    def test_nothing_is_lost_or_repeated_when_the_monitor_is_killed(self):
        """Listeners come back with what they heard last; agents say again what was not acknowledged."""
        last, rounds = 400, 6
        stop_at = sorted(self.random.sample(range(20, last - 20), rounds))
        told = {"s0": [], "s1": [], None: []}
        newest = {"s0": last, "s1": last - 1, None: last}

        def listen(session):
            path = (f"{SESSIONS}/{session}/stream" if session else STREAM) + "?include=events,transitions"
            cursor = "0.0"
            while numbers(told[session][-1:]) != [newest[session]]:
                try:
                    reader = Reader(self.server, path, cursor)
                    for record in reader:
                        told[session].append(record)
                        cursor = reader.cursor or cursor
                        if numbers([record]) == [newest[session]]:
                            break
                    reader.close()
                except OSError:
                    time.sleep(0)  # it is not up again yet

        for session in ("s0", "s1"):
            say(self.server, session, {"kind": "heartbeat"})
        threads = [threading.Thread(target=listen, args=(session,)) for session in told]
        for thread in threads:
            thread.start()
        for n in range(1, last + 1):
            if n in stop_at:
                self.server.crash()
                self.server.start()
            say(self.server, f"s{n % 2}", {**change(n), "event_id": f"e{n}"})
        for thread in threads:
            thread.join(PATIENCE_S)
            self.assertFalse(thread.is_alive())
        self.assertEqual(numbers(told[None]), list(range(1, last + 1)))
        self.assertEqual(numbers(told["s0"]), list(range(2, last + 1, 2)))
        self.assertEqual(numbers(told["s1"]), list(range(1, last, 2)))
        for session, records in told.items():
            changes = [data["id"] for kind, data in records if kind == "transition"]
            self.assertEqual(changes, sorted(set(changes)), session)

    def test_a_slow_reader_gets_everything_and_delays_nobody(self):
        slow = socket.create_connection((self.server.host.split(":")[0], self.server.port))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.addCleanup(slow.close)
        slow.sendall(f"GET {STREAM}?include=events HTTP/1.1\r\nHost: {self.server.host}\r\n\r\n".encode())
        quick = self.open(f"{STREAM}?include=events")
        next(quick)
        pages, each = 30, 500
        for page in range(pages):
            say(self.server, "s", *[{**change(page * each + n), "data": {"n": page * each + n, "text": "x" * 150}} for n in range(each)])
        count = pages * each
        got = quick.until(lambda kind, data: kind == "event" and data["data"]["n"] == count - 1)
        self.assertEqual(got["sessionId"], "s")
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # else the rest takes a minute
        received = slow.makefile("rb")
        seen = []
        for line in received:
            if line.startswith(b"data: ") and b'"state_change"' in line:
                seen.append(json.loads(line[6:])["data"]["n"])
                if seen[-1] == count - 1:
                    break
        self.assertEqual(seen, list(range(count)))

    def test_a_monitor_that_is_asked_to_stop_closes_its_streams_and_exits(self):
        readers = [self.open() for _ in range(20)]
        for reader in readers:
            next(reader)
        self.server.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.process.wait(PATIENCE_S), 0)
        for reader in readers:
            self.assertEqual(list(reader), [])

    def test_too_many_streams_are_refused_and_room_is_made_by_who_leaves(self):
        readers = [self.open(f"{STREAM}?include=events") for _ in range(512)]
        for reader in readers:
            next(reader)
        with contextlib.closing(Reader(self.server, STREAM)) as refused:
            self.assertEqual(refused.response.status, 503)
        readers[7].close()
        while True:
            with contextlib.closing(Reader(self.server, STREAM)) as again:
                if again.response.status == 200:
                    break


class CredentialTest(unittest.TestCase):
    """A stream lasts as long as the token or login that opened it. Tokens count as they are in the file now."""

    def setUp(self):
        self.server = self.enterContext(Server(PROGRAM, arguments=["--behind-proxy"]))
        self.file = os.path.join(self.server.folder.name, "w.db-token")

    def write(self, text, said="are in force"):
        """Returns when the monitor says what it makes of it. Asking it with a token that is not known yet would count as wrong."""
        os.truncate(self.server.log.name, 0)
        with open(self.file + "-new", "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(text)
        os.rename(self.file + "-new", self.file)
        self.until_said(said)

    def ask(self, method, path, headers, body=None):
        with contextlib.closing(http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)) as connection:
            connection.request(method, path, body and json.dumps(body), headers)
            response = connection.getresponse()
            response.read()
            return response

    def until_said(self, words):
        end = time.monotonic() + PATIENCE_S
        while words not in pathlib.Path(self.server.log.name).read_text(encoding="utf-8"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def lets_in(self, headers):
        return self.ask("GET", "/readyz", headers).status == 200

    def open(self, headers):
        reader = Reader(self.server, STREAM, headers=headers)
        self.addCleanup(reader.close)
        self.assertEqual(reader.response.status, 200)
        self.assertEqual(next(reader)[0], "snapshot")
        return reader

    def test_it_ends_with_what_opened_it(self):
        ann, ben, eve = ({"Authorization": f"Bearer {letter * 32}"} for letter in "abe")
        self.write(f"ann read,report,act {'a' * 32}\nben read {'b' * 32}\n")
        self.assertTrue(self.lets_in(ann) and self.lets_in(ben))
        self.assertFalse(self.lets_in({"Authorization": f"Bearer {self.server.secret}"}), "the first token is withdrawn")
        cookie = self.ask("POST", "/api/login", {}, {"token": "a" * 32}).getheader("Set-Cookie").partition(";")[0]
        by_cookie = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
        streams = {"ann": self.open(ann), "login": self.open(by_cookie)}
        bens = self.open(ben)

        def all_hear(number):
            self.assertEqual(self.ask("POST", f"{SESSIONS}/s/events", ann, change(number)).status, 200)
            for reader in streams.values():
                reader.until(lambda kind, data: kind == "event" and data.get("data") == {"n": number})

        all_hear(1)
        self.write(f"ann read,report,act {'a' * 32}\neve read {'e' * 32}\n")
        list(bens)  # ends
        self.assertFalse(self.lets_in(ben))
        self.assertTrue(self.lets_in(eve))
        all_hear(2)
        for broken in ("half a", f"ann read,report,act {'a' * 32}\nann read {'n' * 32}\n"):
            self.write(broken, "stay in force")
            all_hear(3)
        self.write(f"ann read,report,act {'n' * 32}\n")
        for reader in streams.values():
            list(reader)  # ends
        self.assertFalse(self.lets_in(ann) or self.lets_in(by_cookie) or self.lets_in(eve))
        os.truncate(self.server.log.name, 0)
        os.remove(self.file)
        self.until_said("are in force")
        made = pathlib.Path(self.file).read_text(encoding="utf-8").split()[-1]
        self.assertTrue(self.lets_in({"Authorization": f"Bearer {made}"}))


if __name__ == "__main__":
    unittest.main()
