#!/usr/bin/env python3
"""Budgets of the owner: agents that nobody changes spend tokens, are noticed, and are refused only if the owner said so."""

import contextlib
import http.client
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

from server import Server
from upstream import Upstream, respond

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
TOKENS = 600  # Of each answer.
USAGE = {"prompt_tokens": TOKENS - 1, "completion_tokens": 1}
OPENAI = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}], "usage": USAGE}
ANTHROPIC = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn",
             "usage": {"input_tokens": TOKENS - 1, "output_tokens": 1}}
GOOGLE = {"candidates": [{"index": 0, "content": {"parts": [{"text": "Done."}]}, "finishReason": "STOP"}],
          "usageMetadata": {"promptTokenCount": TOKENS - 1, "candidatesTokenCount": 1}}
OLLAMA = {"model": "m", "message": {"role": "assistant", "content": "Done."}, "done": True, "done_reason": "stop",
          "prompt_eval_count": TOKENS - 1, "eval_count": 1}
# API → path, body, answer, where a client of it looks for the message of an error.
APIS = {
    "openai": ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "Go"}]}, OPENAI, lambda of: of["error"]["message"]),
    "responses": ("/v1/responses", {"model": "m", "input": "Go"},
                  {"object": "response", "status": "completed", "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}],
                   "usage": {"input_tokens": TOKENS - 1, "output_tokens": 1}}, lambda of: of["error"]["message"]),
    "anthropic": ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Go"}]}, ANTHROPIC, lambda of: of["error"]["message"]),
    "google": ("/v1beta/models/m:generateContent", {"contents": [{"role": "user", "parts": [{"text": "Go"}]}]}, GOOGLE, lambda of: of["error"]["message"]),
    "ollama": ("/api/chat", {"model": "m", "stream": False, "messages": [{"role": "user", "content": "Go"}]}, OLLAMA, lambda of: of["error"]),
}


class ProxyBudgetTest(unittest.TestCase):
    def begin(self, *settings, answer=OPENAI):
        self.answers = 0

        def reply(connection, head, body):
            self.answers += 1
            respond(connection, json.dumps(answer).encode())
        self.upstream = self.enterContext(Upstream(reply))
        self.server = Server(PROGRAM, arguments=["--upstream", self.upstream.url, "--proxy-port", "0", "--no-probe"])
        more = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "watchdog.toml")
        more.write_text("\n".join(settings) + "\n")
        self.server.arguments += ["--config", str(more)]
        self.config = more
        self.enterContext(self.server)
        self.find_port()

    def find_port(self):
        for line in self.server.process.stdout:
            if found := re.search(r"their model at https?://127\.0\.0\.1:(\d+)/v1", line):
                self.port = int(found[1])
                return

    def restart(self):
        self.server.crash()
        self.server.start()
        self.find_port()

    def ask(self, session="one", api="openai", **headers):
        """The status and the body of the answer."""
        path, body, *_ = APIS[api]
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)) as link:
            link.request("POST", f"/s/{session}{path}", json.dumps(body), {"Content-Type": "application/json"} | headers)
            answer = link.getresponse()
            return answer.status, json.loads(answer.read())

    def get(self, path):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)) as link:
            link.request("GET", path, headers={"Authorization": f"Bearer {self.server.secret}"})
            return json.loads(link.getresponse().read())

    def until(self, found, what=""):
        end = time.monotonic() + PATIENCE_S
        while not (value := found()):
            self.assertLess(time.monotonic(), end, what() if callable(what) else what)
            time.sleep(0.05)
        return value

    def events(self, session="one"):
        return self.get(f"/api/autonomous/sessions/{session}/events").get("events", [])

    def notices(self, session="one"):
        return [event["text"] for event in self.events(session) if event["kind"] == "message" and event["name"] == "notification"]

    def spend(self, session="one", api="openai"):
        """Returns after the answer was charged."""
        before = len([event for event in self.events(session) if event["kind"] == "idle"])
        status, body = self.ask(session, api)
        self.assertEqual(status, 200, body)
        self.until(lambda: len([event for event in self.events(session) if event["kind"] == "idle"]) > before, lambda: self.events(session))

    def run_it(self, *words):
        return subprocess.run([PROGRAM, *words, "--server", f"http://127.0.0.1:{self.server.port}"], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False, env={"WATCHDOG_TOKEN": self.server.secret, "HOME": self.server.folder.name, "PATH": "/usr/bin:/bin"}).stdout

    def test_notices_come_at_70_and_90_percent_and_nothing_is_refused_by_default(self):
        self.begin("[proxy.budgets.small]", "tokens = 2500")
        for _ in range(6):
            self.spend()
        self.assertEqual(self.answers, 6)
        self.assertEqual(self.notices(), [f"the budget small is used to {percent} %: {used} of 2,500 tokens of this session"
                                          for percent, used in ((72, "1,800"), (96, "2,400"), (120, "3,000"))])
        budget = self.get("/api/autonomous/progress/one")["budget"]
        self.assertEqual((budget["tokens"], budget["maxTokens"]), (3_000, 2_500))
        self.server.log.seek(0)
        self.assertIn("the budget small is used to 72 %: 1,800 of 2,500 tokens of this session (session one)", self.server.log.read())

    def test_a_request_after_the_limit_is_refused_in_the_form_of_each_api(self):
        for api, (_, _, _, message_of) in APIS.items():
            with self.subTest(api=api):
                self.begin("[proxy.budgets.small]", "tokens = 1000", "refuse = true", answer=APIS[api][2])
                self.spend(api=api)
                self.spend(api=api)
                status, body = self.ask(api=api)
                self.assertEqual(status, 400, body)
                self.assertIn("the budget small is used up: 1,200 of 1,000 tokens of this session. The monitor refuses further requests, "
                              "because its owner set proxy.budgets.small.refuse", message_of(body))
                self.assertEqual(self.answers, 2, "the server did not get it")
                self.assertEqual(self.ask("another", api)[0], 200, "another session has a budget of its own")

    def test_a_path_with_escapes_is_counted_and_refused_as_the_path_that_it_means(self):
        self.begin("[proxy.budgets.daily]", 'per = "day"', f"tokens = {TOKENS}", "refuse = true")
        def ask(path):
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)) as link:
                link.request("POST", f"/s/one{path}", json.dumps(APIS["openai"][1]), {"Content-Type": "application/json"})
                answer = link.getresponse()
                answer.read()
                return answer.status
        paths = ("/v1/chat%2Fcompletions", "/v1/%63hat/completions", "/v1/chat/completion%73?x=%2F")
        self.assertEqual(ask(paths[0]), 200)
        self.until(lambda: ask(paths[1]) == 400, "the first answer is not counted")
        taken = self.answers
        self.assertEqual([ask(path) for path in paths], [400, 400, 400])
        self.assertEqual(self.answers, taken, "a refused request does not reach the model server")

    def test_a_refused_agent_waits_and_needs_its_owner(self):
        self.begin("[proxy.budgets.small]", "tokens = 500", "refuse = true")
        self.spend()
        self.assertEqual(self.ask()[0], 400)
        progress = self.until(lambda: (found := self.get("/api/autonomous/progress/one"))["health"] == "blocked" and found,
                              lambda: self.get("/api/autonomous/progress/one"))
        self.assertIn("the budget small is used up", json.dumps(progress))
        self.assertNotIn("model server at", progress["reason"])
        self.assertIn("budget small is used up", self.run_it("status", "one"))

    def test_a_crash_of_the_monitor_gives_nothing_back(self):
        self.begin("[proxy.budgets.daily]", 'per = "day"', "tokens = 1000", "refuse = true")
        self.spend()
        self.spend("two")
        counts = pathlib.Path(self.server.folder.name, "w.db-spending")
        self.until(lambda: counts.exists() and '"tokens":1200' in counts.read_text(), "the counts are saved within a second or two")
        self.assertEqual(counts.stat().st_mode & 0o777, 0o600)
        self.restart()
        status, body = self.ask("three")
        self.assertEqual(status, 400, body)
        self.assertRegex(body["error"]["message"], r"1,200 of 1,000 tokens today\. The monitor refuses further requests until [0-9]{2}:[0-9]{2}, because")
        self.config.write_text(self.config.read_text().replace("1000", "5000"))
        self.restart()
        self.assertEqual(self.ask("three")[0], 200, "the owner raised the limit")

    def test_counts_that_cannot_be_read_begin_again_and_are_said(self):
        self.begin("[proxy.budgets.daily]", 'per = "day"', "tokens = 1000", "refuse = true")
        self.spend()
        counts = pathlib.Path(self.server.folder.name, "w.db-spending")
        self.until(counts.exists)
        time.sleep(1.5)  # it is saved once a second
        counts.write_text("{")
        self.restart()
        self.assertEqual(self.ask()[0], 200)
        self.server.log.seek(0)
        self.assertIn("budgets begin again, because their counts cannot be read: ", self.server.log.read())

    def test_mistakes_in_the_settings_are_refused_with_their_names(self):
        for lines, words in ((["[proxy.budgets.b]", "refuse = true"], "proxy.budgets.b has no limit"),
                             (["[proxy.budgets.b]", "cost = 3.0"], "proxy.budgets.b.cost needs prices"),
                             (["[proxy.budgets.b]", "tokens = 0"], "proxy.budgets.b.tokens"),
                             (["[proxy.budgets.b]", "tokens = 5", 'per = "hour"'], "proxy.budgets.b.per"),
                             (["[proxy.prices.p]", "input_per_million = 5.0"], "proxy.prices.p.models is missing")):
            with self.subTest(lines=lines):
                path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "c.toml")
                path.write_text("\n".join(lines) + "\n")
                ran = subprocess.run([PROGRAM, "config", "--config", path], capture_output=True, text=True, check=False)
                self.assertNotEqual(ran.returncode, 0)
                self.assertIn(words, ran.stderr)


if __name__ == "__main__":
    unittest.main()
