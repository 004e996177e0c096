#!/usr/bin/env python3
"""Links in messages by which people answer alerts: they act once, expire, and are not forged."""

import hashlib
import hmac
import http.client
import json
import pathlib
import sys
import tempfile
import time
import unittest
import urllib.parse

from receivers import Receivers
from server import Server

PROGRAM = sys.argv.pop(1)
TLS = pathlib.Path(__file__).parent.parent / "data" / "tls"
PATIENCE_S = 90
DAY_MS = 86_400_000


class AnswersTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.hooks = self.enterContext(Receivers(TLS / "cert.pem", TLS / "key.pem"))
        token = self.folder / "ntfy-token"
        token.write_text("tk_secretofntfy")
        token.chmod(0o600)
        config = self.folder / "watchdog.toml"
        config.write_text(f"""
[monitor]
public_url = "https://monitor.example/"
hosts = ["monitor.example"]
[alerts.channels.slack]
format = "slack"
url = "{self.hooks.url}/slack/T0"
ca_file = "{TLS / 'cert.pem'}"
[alerts.channels.phone]
format = "ntfy"
url = "{self.hooks.url}/ntfy/topic"
secret_file = "{token}"
ca_file = "{TLS / 'cert.pem'}"
""")
        times = "alerts.group_seconds=0,alerts.messages_max=1000"
        self.server = self.enterContext(Server(PROGRAM, {"WATCHDOG_INTERNAL_TIMES": times}, ["--config", config]))

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        connection.request(method, path, body, {"Host": "monitor.example", **headers})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def trouble(self, session):
        """The links of the message about a session that failed: {label: path}."""
        count = len(self.hooks.taken("slack"))
        events = [{"kind": "end", "outcome": "failed", "reason": "tool_error"}]
        self.assertEqual(self.ask("POST", f"/api/autonomous/sessions/{session}/events", json.dumps(events))[0], 200)
        slack = self.hooks.wait("slack", count + 1)[-1]["attachments"][0]["actions"]
        phone = self.hooks.wait("ntfy", count + 1)[-1]["actions"]
        self.assertEqual([a["text"] for a in slack], ["Open", "Acknowledge", "Snooze for an hour"])
        self.assertEqual([a["label"] for a in phone], [a["text"] for a in slack])
        for action in slack + phone:
            self.assertTrue(action["url"].startswith("https://monitor.example/"), action)
        return {a["text"]: urllib.parse.urlsplit(a["url"]).path for a in slack}

    def alerts(self):
        return {a["sessionId"]: a for a in json.loads(self.ask("GET", "/api/alerts")[1])["alerts"]}

    def trail(self):
        answer = self.ask("GET", "/api/audit", Authorization=f"Bearer {self.server.secret}")[1]
        return [(e["actor"], e["action"], e["target"], e["outcome"]) for e in json.loads(answer)["audit"]]

    def signed(self, act, alert, until, session):
        key = pathlib.Path(self.server.folder.name, "w.db-link-key")
        self.assertEqual(key.stat().st_mode & 0o777, 0o600)
        text = f"watchdog alert link 1\n{act}\n{alert}\n{until}\n{session}"
        mac = hmac.new(key.read_text().strip().encode(), text.encode(), hashlib.sha256).hexdigest()
        return f"/answer/{act}.{alert}.{until}.{mac}"

    def test_a_link_acts_once_and_only_by_its_button(self):
        link = self.trouble("s-1")["Acknowledge"]
        for _ in range(3):  # As previews do.
            status, page = self.ask("GET", link)
            self.assertEqual((status, f'action="{link}"' in page), (200, True), page)
            self.assertEqual(self.ask("HEAD", link)[0], 200)
        self.assertIsNone(self.alerts()["s-1"]["acknowledged"])
        own = {"Origin": "https://monitor.example", "Sec-Fetch-Site": "same-origin"}
        self.assertEqual(self.ask("POST", link, "", **{"Origin": "https://evil.example"})[0], 403)
        self.assertEqual(self.ask("POST", link, "", **own)[0], 200)
        self.assertEqual(self.alerts()["s-1"]["acknowledged"]["by"], "link")
        self.assertEqual(self.ask("POST", link, "", **own)[0], 409)
        self.assertEqual(self.ask("GET", link)[0], 409)
        alert = str(self.alerts()["s-1"]["alertId"])
        # A refusal is answered before it is in the trail.
        while len(self.trail()) < 2:
            pass
        self.assertEqual(self.trail(), [("link", "acknowledge", alert, "ok"), ("link", "acknowledge", alert, "409")])

    def test_a_used_link_stays_used_after_a_crash(self):
        links = self.trouble("s-1")
        self.assertEqual(self.ask("POST", links["Snooze for an hour"])[0], 200)
        until = self.alerts()["s-1"]["snoozedUntil"]
        self.assertAlmostEqual(until / 1000, time.time() + 3_600, delta=600)
        self.server.crash()
        self.server.start()
        self.assertEqual(self.ask("POST", links["Snooze for an hour"])[0], 409)
        self.assertEqual(self.ask("POST", links["Acknowledge"])[0], 409, "the alert was answered")
        self.assertEqual(self.alerts()["s-1"]["snoozedUntil"], until)
        self.assertEqual(self.ask("POST", self.trouble("s-2")["Acknowledge"])[0], 200, "with the same key")

    def test_links_expire_and_cannot_be_changed(self):
        link = self.trouble("s-1")["Acknowledge"]
        self.trouble("s-2")
        one, other = (self.alerts()[s]["alertId"] for s in ("s-1", "s-2"))
        now = int(time.time() * 1000)
        act, alert, until, mac = link.removeprefix("/answer/").split(".")
        self.assertEqual((act, int(alert), link), ("acknowledge", one, self.signed(act, alert, until, "s-1")))
        self.assertTrue(now < int(until) <= now + DAY_MS)
        self.assertEqual(self.ask("POST", self.signed(act, one, now - 1_000, "s-1"))[0], 410, "expired")
        forged = [f"/answer/{act}.{alert}.{int(until) + 1}.{mac}", f"/answer/snooze.{alert}.{until}.{mac}",
                  f"/answer/{act}.{other}.{until}.{mac}", f"/answer/{act}.{alert}.{until}.{'0' * 64}",
                  f"/answer/{act}.{alert}.{until}.{mac[:-1]}", f"/answer/{act}.{alert}.{until}.{mac}0",
                  f"/answer/{act}.{alert}.{until}.{mac.upper()}" if mac.upper() != mac else link + "x",
                  f"/answer/{act}.-1.{until}.{mac}", f"/answer/{act}.{alert}..{mac}", "/answer/x", "/answer/....",
                  self.signed(act, one, until, "s-2"), self.signed(act, 99, until, "s-1"), link + "%00"]
        for path in forged:
            for method in ("GET", "POST"):
                self.assertIn(self.ask(method, path)[0], (400, 404), (method, path))
        self.assertIsNone(self.alerts()["s-1"]["acknowledged"])
        self.assertEqual(self.trail(), [("link", "acknowledge", str(one), "410")], "strangers do not fill it")
        self.assertEqual(self.ask("POST", link)[0], 200)

    def test_without_a_public_url_there_are_no_links(self):
        with Server(PROGRAM) as plain:
            self.server = plain
            self.assertEqual(self.ask("GET", "/answer/acknowledge.1.1." + "0" * 64, Host="localhost")[0], 404)
            self.assertFalse(pathlib.Path(plain.folder.name, "w.db-link-key").exists())


if __name__ == "__main__":
    unittest.main(verbosity=1)
