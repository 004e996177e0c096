#!/usr/bin/env python3
"""The route on which clients wait, of a real monitor: the ends of a wait, and events between two requests."""

import contextlib
import http.client
import json
import selectors
import socket
import sys
import threading
import time
import unittest

from server import Server

PROGRAM = sys.argv.pop(1)
SESSIONS = "/api/autonomous/sessions"
PATIENCE_S = 60
WAITS = 1000
LIVES = {  # What happened to a session, and how a wait for each goal ends then: met, None for not yet, or an end.
    "runs": ([{"kind": "state_change", "type": "plan"}],
             {"completed": None, "end": None, "health=progressing": "met", "health=dead": None, "state-change=plan": "met",
              "state-change=tool_call": None, "condition": None}),
    "completes": ([{"kind": "state_change", "type": "plan"}, {"kind": "end", "outcome": "completed"}],
                  {"completed": "met", "failed": "ended", "end": "met", "health=progressing": "ended", "state-change": "met",
                   "state-change=other": "ended", "condition": "ended"}),
    "fails": ([{"kind": "end", "outcome": "failed"}], {"completed": "ended", "failed": "met", "end": "met", "state-change": "ended"}),
    "halts": ([{"kind": "end", "outcome": "incomplete"}], {"completed": "ended", "incomplete": "met"}),
    "stops": ([{"kind": "end", "outcome": "cancelled"}], {"completed": "ended", "cancelled": "met"}),
    "calls": ([{"kind": "tool_call", "name": "t", "call_id": "1"}, {"kind": "tool_result", "name": "t", "call_id": "1"}],
              {"state-change": "met", "state-change=tool_call": "met", "state-change=plan": None}),
    "asks": ([{"kind": "wait", "waiting_for": "approval"}], {"health=blocked": "met", "completed": None}),
    "": ([], {"completed": None, "health=unknown": None, "end": None}),  # a session that does not exist
}


class Waits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(PROGRAM))

    def setUp(self):
        self.session = self.id().rpartition(".")[2]

    def ask(self, method, path, body=None, server=None):
        with contextlib.closing(http.client.HTTPConnection((server or self.server).host, timeout=PATIENCE_S)) as connection:
            connection.request(method, path, body and json.dumps(body))
            response = connection.getresponse()
            self.assertEqual(response.status, 200, text := response.read())
            return json.loads(text)

    def say(self, *events, session=None, server=None):
        return self.ask("POST", f"{SESSIONS}/{session or self.session}/events", list(events), server)

    def wait(self, query="", session=None, server=None):
        return self.ask("GET", f"{SESSIONS}/{session or self.session}/wait?{query or 'tell=over'}", server=server)

    def spin(self, *iterations):
        for iteration in iterations:
            self.say({"kind": "heartbeat", "iteration": iteration})

    def test_each_goal_ends_as_the_session_does(self):
        for life, (events, goals) in LIVES.items():
            session = f"{life or 'nobody'}"
            for event in events:
                self.say(event, session=session)
            for goal, end in goals.items():
                with self.subTest(f"{life} {goal}"):
                    answer = self.wait(f"for={goal}&timeoutMs=0", session)
                    self.assertEqual("met" if answer["came"] else answer["end"], end, answer)
                    self.assertEqual(answer["timeline"] is not None, end == "ended")

    def test_an_event_between_two_requests_counts(self):
        self.say({"kind": "state_change", "type": "begun"})
        states = (("for=health=blocked", [{"kind": "wait", "waiting_for": "approval"}, {"kind": "state_change", "type": "on"}], "met"),
                  ("for=state-change=on", [{"kind": "state_change", "type": "on"}, {"kind": "heartbeat"}], "met"),
                  ("for=failed", [{"kind": "end", "outcome": "failed"}, {"kind": "start"}, {"kind": "state_change", "type": "again"}], "met"),
                  ("for=completed", [{"kind": "end", "outcome": "failed"}, {"kind": "start"}, {"kind": "state_change", "type": "again"}], "ended"))
        for query, events, end in states:
            seq = self.wait("tell=now")["progress"]["lastSeq"]
            cursor = self.wait(f"{query}&after={seq}&timeoutMs=0")["cursor"]
            for event in events:
                self.say(event)
            with self.subTest(query):
                answer = self.wait(f"{query}&after={seq}&cursor={cursor}")
                self.assertEqual("met" if answer["came"] else answer["end"], end, answer)
                self.assertEqual(answer["progress"]["lifecycle"], "running")
        self.assertEqual(self.wait("tell=changes&cursor=absent&timeoutMs=0", "late-" + self.session[:9])["cursor"], "absent", "nothing came")

    def test_a_session_that_came_and_went_between_two_requests_is_seen(self):
        cursor = self.wait("timeoutMs=0")["cursor"]
        self.say({"kind": "start"}, {"kind": "end", "outcome": "completed"}, {"kind": "start"})
        self.assertTrue(self.wait(f"cursor={cursor}")["came"])

    def test_trouble_is_counted_over_many_requests(self):
        self.say({"kind": "state_change", "type": "begun"})
        iteration = 0
        while self.wait("timeoutMs=0&onStuck=keep")["progress"]["health"] != "stuck":
            self.spin(iteration)
            iteration += 1
        cursor = self.wait("timeoutMs=0")["cursor"]
        for further in range(1, 6):
            self.spin(iteration + further)
            answer = self.wait(f"timeoutMs=0&furtherMax=5&onStuck=ask&cursor={cursor}")
            self.assertEqual(answer["end"], "stuck" if further == 5 else None, (further, answer))
            cursor = answer["cursor"]
        self.assertIn("5 further iterations (limit 5)", answer["why"])
        self.assertIsNone(self.wait(f"timeoutMs=0&furtherMax=5&onStuck=ask&cursor={cursor}")["end"], "it was forgiven")
        self.assertEqual(self.wait("timeoutMs=0&furtherMax=5")["end"], "stuck", "trouble that began before a wait counts")
        self.say({"kind": "state_change", "type": "free"}, {"kind": "state_change", "type": "freer"})
        self.assertIsNone(self.wait(f"timeoutMs=0&furtherMax=1&cursor={cursor}")["end"], "it is taken back")

    def test_each_change_is_shown_on_request(self):
        self.say({"kind": "state_change", "type": "begun"})
        answer = self.wait("for=condition&tell=changes")
        for number in range(3):
            teller = threading.Thread(target=self.say, args=[{"kind": "heartbeat", "iteration": number}])
            teller.start()
            answer = self.wait(f"for=condition&tell=changes&cursor={answer['cursor']}")
            teller.join()
            self.assertEqual((answer["progress"]["iteration"], answer["end"]), (number, None))

    def test_an_erased_session_ends_the_wait(self):
        self.say({"kind": "end", "outcome": "failed"})
        cursor = self.wait("timeoutMs=0&for=failed")["cursor"]
        with contextlib.closing(http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)) as connection:
            connection.request("POST", f"{SESSIONS}/{self.session}/forget", "{}", {"Authorization": f"Bearer {self.server.secret}"})
            self.assertEqual(connection.getresponse().status, 200)
        answer = self.wait(f"cursor={cursor}")
        self.assertEqual((answer["end"], answer["progress"]), ("no_session", None))

    def test_a_restart_between_two_requests_changes_nothing(self):
        with Server(PROGRAM) as server:
            self.say({"kind": "state_change", "type": "begun"}, server=server)
            cursor = self.wait("timeoutMs=0", server=server)["cursor"]
            self.say({"kind": "end", "outcome": "completed"}, server=server)
            self.say({"kind": "start"}, server=server)
            server.crash()
            server.start()
            self.assertTrue(self.wait(f"cursor={cursor}", server=server)["came"])

    def test_a_stop_of_the_monitor_answers_waits_at_once(self):
        with Server(PROGRAM) as server:
            self.say({"kind": "state_change", "type": "begun"}, server=server)
            connection = http.client.HTTPConnection(server.host, timeout=PATIENCE_S)
            connection.request("GET", f"{SESSIONS}/{self.session}/wait")
            response = connection.getresponse()  # Its head comes before its body.
            server.process.terminate()
            answer = json.loads(response.read())
            connection.close()
            self.assertEqual((answer["came"], answer["end"]), (False, None))
            self.assertEqual(server.process.wait(PATIENCE_S), 0)

    def test_a_thousand_wait_at_once_and_one_more_is_refused(self):
        with Server(PROGRAM) as server, contextlib.ExitStack() as stack:
            poll = selectors.DefaultSelector()
            for number in range(WAITS):
                own = f"s{number}" if number % 2 else "all"
                client = stack.enter_context(socket.create_connection(server.host.split(":")))
                client.sendall(f"GET {SESSIONS}/{own}/wait HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
                head = client.recv(4096)
                self.assertTrue(head.startswith(b"HTTP/1.1 " + (b"200" if number < WAITS - 1 else b"503")), (number, head))
                if number < WAITS - 1:  # The listener of all waits counts as well.
                    poll.register(client, selectors.EVENT_READ, own)
            began = time.monotonic()
            for own in ["all", *(f"s{number}" for number in range(1, WAITS, 2))]:
                if own != f"s{WAITS - 1}":
                    self.say({"kind": "end", "outcome": "completed"}, session=own, server=server)
            told, left = time.monotonic(), len(poll.get_map())
            while left:
                for key, _ in poll.select(PATIENCE_S):
                    self.assertIn(b'"came":true', key.fileobj.recv(65536), key.data)
                    poll.unregister(key.fileobj)
                    left -= 1
            print(f"{WAITS - 1} waits: 500 sessions ended in {told - began:.2f} s, all answered {time.monotonic() - told:.2f} s later")

    def test_a_client_that_hangs_up_leaves_its_place(self):
        with Server(PROGRAM) as server:
            def status(query, client):
                client.sendall(f"GET {SESSIONS}/s/wait?{query} HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
                return client.recv(4096).split()[1]
            with contextlib.ExitStack() as stack:
                connect = lambda: stack.enter_context(socket.create_connection(server.host.split(":")))
                self.assertEqual({status("for=end", connect()) for _ in range(WAITS - 1)}, {b"200"})
                self.assertEqual(status("timeoutMs=0", connect()), b"503")
            with contextlib.closing(http.client.HTTPConnection(server.host, timeout=PATIENCE_S)) as client:
                refused = 503
                while refused == 503:
                    client.request("GET", f"{SESSIONS}/s/wait?timeoutMs=0")
                    with client.getresponse() as response:
                        refused = response.status
                        response.read()
                self.assertEqual(refused, 200)


if __name__ == "__main__":
    unittest.main()
