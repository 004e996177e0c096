#!/usr/bin/env python3
"""Channels of alerts: a real monitor, and receivers that check what their protocols document."""

import email
import email.policy
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

from aiosmtpd.controller import Controller

import receivers
from mails import Mails
from receivers import RECEIVERS, Receivers
from server import Server

PROGRAM = os.path.abspath(sys.argv.pop(1))
TLS = pathlib.Path(__file__).parent.parent / "data" / "tls"
PATIENCE_S = 90
# What an agent may call itself: markup, mentions and line breaks of every receiver, and a text that turns around.
HOSTILE = ("<!channel> @everyone @room **b** [x](http://evil.example) <b>&amp; {{DATE(1)}} `c` # \\n\\\\ "
           "\r\nBcc: evil@example.org\r\n\r\n. \u202eabc")
TASK, FAULT = "the task is Q1-figures", "the error holds argument-42"
SECRETS = [receivers.TOKEN, receivers.MATRIX_TOKEN, receivers.NTFY_TOKEN, "pass:word1", "/slack/T0/secret-path"]


class ChannelsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copy(TLS / "key.pem", self.folder / "key.pem")

    def secret(self, name, text):
        path = self.folder / name
        path.write_text(text + "\n")
        path.chmod(0o600)
        return path

    def settings(self, channels, times="alerts.group_seconds=0,alerts.messages_max=1000"):
        path = self.folder / "watchdog.toml"
        text = ""
        self.times = f"alerts.retry_first_ms=5,alerts.retry_longest_ms=50,{times}"
        for name, fields in channels.items():
            text += f"[alerts.channels.{name}]\n"
            self.times += f",alerts.channels.{name}.timeout_seconds=60"
            text += "".join(f"{key} = {json.dumps(str(value))}\n" for key, value in fields.items())
        path.write_text(text)
        return path

    def webhooks(self, server):
        """One channel of each format."""
        ca = {"ca_file": TLS / "cert.pem"}
        return {
            "slack": ca | {"format": "slack", "url_file": self.secret("slack", server.url + "/slack/T0/secret-path")},
            "discord": ca | {"format": "discord", "url_file": self.secret("discord", server.url + "/discord/1/x")},
            "teams": ca | {"format": "teams", "url_file": self.secret("teams", server.url + "/teams/run?sig=x&sv=1.0")},
            "ntfy": ca | {"format": "ntfy", "url": server.url + "/ntfy/my-topic",
                          "secret_file": self.secret("ntfy", receivers.NTFY_TOKEN)},
            "telegram": ca | {"format": "telegram", "url": server.url, "to": "-1001234",
                              "secret_file": self.secret("telegram", receivers.TOKEN)},
            "matrix": ca | {"format": "matrix", "url": server.url + "/matrix", "to": receivers.ROOM,
                            "secret_file": self.secret("matrix", receivers.MATRIX_TOKEN)},
        }

    def monitor(self, config, **more):
        return self.enterContext(Server(PROGRAM, {"WATCHDOG_INTERNAL_TIMES": self.times} | more, ["--config", config]))

    def post(self, monitor, path, body):
        request = urllib.request.Request(f"http://{monitor.host}{path}", json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return json.load(response)

    def fail_session(self, monitor, session, agent=HOSTILE, parent=None, error=FAULT):
        spec = {"sessionId": session, "agent": agent, "task": TASK}
        self.post(monitor, "/api/autonomous/sessions", spec | ({"parentSessionId": parent} if parent else {}))
        self.post(monitor, f"/api/autonomous/sessions/{session}/events",
                  [{"kind": "end", "outcome": "failed", "reason": "tool_error", "error": error}])

    def alerts(self, monitor):
        with urllib.request.urlopen(f"http://{monitor.host}/api/alerts", timeout=PATIENCE_S) as response:
            return json.load(response)

    def until(self, is_so):
        end = time.monotonic() + PATIENCE_S
        while not is_so():
            self.assertLess(time.monotonic(), end, "it does not come")
            time.sleep(0.05)

    def try_channel(self, config, name, **more):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WATCHDOG_")} | more
        return subprocess.run([PROGRAM, "alerts", "--test", name, "--config", config], text=True, env=environment,
                              capture_output=True, timeout=PATIENCE_S)

    def assert_secretless(self, *texts):
        for text in texts:
            for secret in SECRETS:
                self.assertNotIn(secret, text)

    def test_each_format_is_what_its_receiver_documents(self):
        with Receivers(TLS / "cert.pem", self.folder / "key.pem") as server:
            server.limited = dict.fromkeys(RECEIVERS, 1)
            monitor = self.monitor(self.settings(self.webhooks(server)))
            self.fail_session(monitor, "s-1")
            for name in RECEIVERS:
                with self.subTest(name):
                    text = json.dumps(server.wait(name, 1)[0], ensure_ascii=False)
                    self.assertIn("s-1", text)
                    self.assertIn("/sessions/s-1", text)
                    for content in (TASK, FAULT, "Q1-figures", "argument-42"):
                        self.assertNotIn(content, text, "S-5: no content unless it is enabled")
                    for unruly in ("\u202e", "\r", "@everyone" if name in ("discord", "telegram") else "@@"):
                        self.assertNotIn(unruly, text)
                    (first, _, refused), (second, _, _) = server.got[name][:2]
                    self.assertEqual(refused, 429)
                    self.assertGreaterEqual(second - first, 1.0, "the pause that it asks for")
            self.assertEqual(server.faults, [])
            content = server.taken("discord")[0]["content"]
            self.assertIn(r"\*\*b\*\* \[x\]\(http", content)
            self.assertEqual(server.taken("ntfy")[0]["topic"], "my-topic")
            self.assertEqual(server.taken("ntfy")[0]["priority"], 5)
            self.assertTrue(server.taken("ntfy")[0]["title"].startswith("s-1 (<!channel>"))
            self.assertEqual(server.taken("matrix")[0]["msgtype"], "m.text")
            monitor.log.flush()
            self.assert_secretless(pathlib.Path(monitor.log.name).read_text())

    def test_channels_come_and_go_while_the_monitor_runs(self):
        with Receivers(TLS / "cert.pem", TLS / "key.pem") as server:
            channels = self.webhooks(server)
            config = self.settings({"ntfy": channels["ntfy"]})
            whole = config.read_text()
            config = self.settings({})
            monitor = self.monitor(config)
            names = lambda: [channel["name"] for channel in self.alerts(monitor)["channels"]]
            said = lambda words: words in pathlib.Path(monitor.log.name).read_text()
            self.fail_session(monitor, "before")
            config.write_text(whole)
            self.assertIn("before", server.wait("ntfy", 1)[0]["title"], "a channel that comes gets the open troubles")
            self.until(lambda: names() == ["ntfy"])
            config.write_text(whole + "[alerts]\non = 7\n")  # a mistake changes nothing
            self.until(lambda: said("are not used"))
            self.fail_session(monitor, "after")
            self.assertIn("after", server.wait("ntfy", 2)[1]["title"])
            config.write_text(whole + '[alerts.channels.slack]\nformat = "slack"\nurl_file = "/nowhere"\n')
            self.until(lambda: said("/nowhere"))
            self.fail_session(monitor, "later")
            server.wait("ntfy", 3)
            config.write_text("# no channels\n")
            self.until(lambda: names() == [])
            self.fail_session(monitor, "last")
            config.write_text(whole)
            self.assertIn("last", server.wait("ntfy", 4)[3]["title"])
            self.assertEqual(len(server.taken("ntfy")), 4, "one message for each trouble")

    def test_long_messages_are_cut_to_each_limit(self):
        with Receivers(TLS / "cert.pem", self.folder / "key.pem") as server:
            monitor = self.monitor(self.settings(self.webhooks(server), "alerts.group_seconds=2"))
            for child in range(30):
                self.fail_session(monitor, f"c-{child}", "\"*@{<" * 50, "p")
            for name in RECEIVERS:
                with self.subTest(name):
                    text = json.dumps(server.wait(name, 2)[1], ensure_ascii=False)
                    self.assertIn("children of p", text)
                    if name in ("discord", "telegram"):  # The others have room for all of it.
                        self.assertIn("…", text)
            self.assertEqual(server.faults, [])

    def test_refusals_name_no_secret(self):
        with Receivers(TLS / "cert.pem", self.folder / "key.pem") as server:
            channels = self.webhooks(server)
            config = self.settings(channels)
            for name in channels:
                done = self.try_channel(config, name)
                self.assertEqual(done.returncode, 0, (name, done.stdout, done.stderr))
            self.secret("telegram", "1:wrong-token")
            done = self.try_channel(config, "telegram")
            self.assertEqual((done.returncode, "it answered 401" in done.stdout), (1, True), done.stdout)
            self.assertNotIn("wrong-token", done.stdout + done.stderr)
        done = self.try_channel(config, "slack")
        self.assertEqual(done.returncode, 1)
        self.assert_secretless(done.stdout, done.stderr)

    def test_mail_goes_by_tls_with_a_login(self):
        for implicit in (False, True):
            with self.subTest(implicit=implicit), Mails(implicit) as mails:
                mails.refusals.append("451 later")
                login = self.secret("login", "alerts:pass:word1")
                mail = {"type": "mail", "url": mails.url, "to": "a@example.org, b@example.org", "from": "w@example.org",
                        "secret_file": login, "ca_file": TLS / "cert.pem"}
                monitor = self.monitor(self.settings({"mail": mail}))
                self.fail_session(monitor, "s-1")
                sender, to, content, encrypted = mails.mails.get(timeout=PATIENCE_S)
                self.assertEqual((sender, to, encrypted), ("w@example.org", ["a@example.org", "b@example.org"], True))
                parsed = email.message_from_bytes(content, policy=email.policy.default)
                self.assertEqual(parsed.defects, [])
                self.assertNotIn("Bcc", parsed, "a name must not add a header")
                self.assertTrue(parsed["Subject"].startswith("[watchdog] s-1 (<!channel> @everyone"), parsed["Subject"])
                self.assertEqual([a.addr_spec for a in parsed["To"].addresses], to)
                self.assertEqual(parsed["Auto-Submitted"], "auto-generated")
                text = parsed.get_content()
                self.assertIn("failed: Tool error", text)
                self.assertIn("/sessions/s-1", text)
                self.assertNotIn("Q1-figures", text)
                self.assertTrue(all(len(line) <= 998 for line in content.split(b"\r\n")))
                monitor.log.flush()
                self.assert_secretless(pathlib.Path(monitor.log.name).read_text())

    def test_mail_is_not_sent_in_the_clear_or_to_strangers(self):
        login = self.secret("login", "alerts:pass:word1")
        mail = {"type": "mail", "to": "a@example.org", "secret_file": login, "ca_file": TLS / "cert.pem"}
        plain = Controller(object(), hostname="127.0.0.1", port=0)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            plain.port = free.getsockname()[1]
        plain.start()
        self.addCleanup(plain.stop)
        done = self.try_channel(self.settings({"m": mail | {"url": f"smtp://localhost:{plain.port}"}}), "m")
        self.assertEqual(done.returncode, 1, "a server without STARTTLS gets no password")
        self.assert_secretless(done.stdout, done.stderr)
        with Mails(True) as mails:
            untrusted = {key: value for key, value in mail.items() if key != "ca_file"}
            done = self.try_channel(self.settings({"m": untrusted | {"url": mails.url}}), "m")
            self.assertEqual((done.returncode, mails.mails.empty()), (1, True), done.stdout)
            self.secret("login", "alerts:wrong-password")
            done = self.try_channel(self.settings({"m": mail | {"url": mails.url}}), "m")
            self.assertEqual((done.returncode, mails.mails.empty()), (1, True), done.stdout)
            self.assertNotIn("wrong-password", done.stdout + done.stderr)
            self.secret("login", "alerts:pass:word1")
            done = self.try_channel(self.settings({"m": mail | {"url": mails.url}}), "m")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_desktop_shows_it(self):
        bus = subprocess.Popen(["dbus-daemon", "--session", "--nofork", "--print-address=1"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (bus.kill(), bus.wait(), bus.stdout.close()))
        more = {"DBUS_SESSION_BUS_ADDRESS": bus.stdout.readline().strip()}
        desktop = subprocess.Popen(["/usr/bin/python3", pathlib.Path(__file__).with_name("desktop.py")], text=True,
                                   stdout=subprocess.PIPE, env=os.environ | more)
        self.addCleanup(lambda: (desktop.kill(), desktop.wait(), desktop.stdout.close()))
        self.assertEqual(desktop.stdout.readline(), "ready\n")
        monitor = self.monitor(self.settings({"here": {"type": "desktop", "content": "preview"}}), **more)
        self.fail_session(monitor, "s-1", error=HOSTILE)
        shown = json.loads(desktop.stdout.readline())
        self.assertEqual((shown["app"], shown["urgency"]), ("watchdog-monitor", 2))
        self.assertTrue(shown["summary"].startswith("s-1 (<!channel> @everyone"), shown)
        self.assertIn("&lt;b&gt;&amp;amp;", shown["body"])
        self.assertIn(" # \\n\\\\ ", shown["body"], "backslashes stand for themselves")
        self.assertNotIn("<", shown["body"])


if __name__ == "__main__":
    unittest.main(verbosity=1)
