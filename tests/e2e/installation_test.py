#!/usr/bin/env python3
"""`service`, `self-check` and `alerts setup`: what an installation gets, and what is wrong with it."""

import json
import os
import pathlib
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import termios
import time
import unittest

from receivers import Receivers
from server import Server

PROGRAM = os.path.abspath(sys.argv.pop(1))
TLS = pathlib.Path(__file__).parent.parent / "data" / "tls"
PATIENCE_S = 90


class Installation(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.config = self.home / ".config" / "watchdog" / "watchdog.toml"
        tools = self.home / "bin"
        tools.mkdir()
        self.environment = {"HOME": str(self.home), "PATH": f"{tools}:/usr/bin:/bin"}

    def run_it(self, *words, **more):
        return subprocess.run([PROGRAM, *map(str, words)], text=True, capture_output=True, timeout=PATIENCE_S,
                              env=self.environment, stdin=subprocess.DEVNULL, **more)

    def settings(self, text):
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(text)


class ServiceTest(Installation):
    def setUp(self):
        super().setUp()
        self.units = self.home / ".config" / "systemd" / "user"
        self.log = self.home / "systemctl.log"

    def systemctl(self, code):
        """What systemd would be asked. A systemd of the user does not run where tests run."""
        tool = self.home / "bin" / "systemctl"
        tool.write_text(f'#!/bin/sh\necho "$*" >>{self.log}\nexit {code}\n')
        tool.chmod(0o755)

    def test_units_are_written_enabled_and_removed(self):
        self.systemctl(0)
        self.settings("[monitor]\nport = 4567\n")
        done = self.run_it("service", "install", "--user")
        self.assertEqual(done.returncode, 0, done.stderr)
        service = (self.units / "watchdog-monitor.service").read_text()
        self.assertIn(f'ExecStart="{PROGRAM}" serve', service)
        self.assertIn("ListenStream=127.0.0.1:4567\n", (self.units / "watchdog-monitor.socket").read_text())
        asked = self.log.read_text().splitlines()
        self.assertEqual(asked, ["--user daemon-reload",
                                 "--user enable --now watchdog-monitor.socket watchdog-monitor.service"])
        status = json.loads(self.run_it("service", "status", "--json").stdout)
        self.assertEqual([u["state"] for u in status["units"]], ["present", "present"])
        self.assertIn("as it was", self.run_it("service", "install").stdout)
        self.settings("[monitor]\nport = 4568\n")
        self.assertEqual(self.run_it("service", "status").returncode, 5, "outdated")
        self.assertEqual(self.run_it("service", "remove").returncode, 0)
        self.assertEqual(list(self.units.iterdir()), [])
        self.assertIn("--user disable --now watchdog-monitor.socket watchdog-monitor.service", self.log.read_text())

    def test_without_systemd_the_units_are_there_all_the_same(self):
        self.systemctl(1)
        done = self.run_it("service", "install")
        self.assertEqual((done.returncode, "systemctl --user enable --now" in done.stdout), (0, True), done)
        self.assertEqual(len(list(self.units.iterdir())), 2)

    def test_units_of_others_stay(self):
        self.systemctl(0)
        self.units.mkdir(parents=True)
        (self.units / "watchdog-monitor.service").write_text("[Service]\nExecStart=/mine\n")
        self.assertEqual(self.run_it("service", "install").returncode, 3)
        self.assertEqual(self.run_it("service", "remove").returncode, 3)
        self.assertEqual((self.units / "watchdog-monitor.service").read_text(), "[Service]\nExecStart=/mine\n")

    def test_printed_units_pass_systemds_own_check(self):
        config = self.home / 'a "b" %h$HOME.toml'
        config.write_text("")
        done = self.run_it("service", "install", "--print", "--config", config)
        self.assertEqual((done.returncode, self.units.exists()), (0, False), done.stderr)
        analyze = shutil.which("systemd-analyze")
        if not analyze:
            self.skipTest("there is no systemd-analyze")
        self.systemctl(0)
        self.assertEqual(self.run_it("service", "install", "--config", config).returncode, 0)
        checked = subprocess.run([analyze, "verify", "--user", "--man=no", *map(str, sorted(self.units.iterdir()))],
                                 text=True, capture_output=True, timeout=PATIENCE_S,
                                 env=self.environment | {"XDG_RUNTIME_DIR": str(self.home)})
        self.assertNotIn("watchdog-monitor", checked.stdout + checked.stderr)


class SelfCheckTest(Installation):
    def check(self, *words):
        done = self.run_it("self-check", "--json", *words)
        result = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if result["ok"] else 1, done.stderr)
        return {row["name"]: row for row in result["checks"]}

    def test_a_fresh_machine_has_warnings_and_no_problem(self):
        rows = self.check("--db", self.home / "w.db", "--port", "1")
        self.assertEqual({row["state"] for row in rows.values()} - {"ok", "warning"}, set(), rows)
        for name in ("database", "tokens", "alerts", "port", "unit"):
            self.assertEqual((name, rows[name]["state"], bool(rows[name]["toDo"])), (name, "warning", True))

    def test_a_running_monitor_is_seen(self):
        with Server(PROGRAM) as server:
            rows = self.check("--db", pathlib.Path(server.folder.name, "w.db"), "--port", server.port)
            for name in ("settings", "database", "tokens", "port", "helper"):
                self.assertEqual(rows[name]["state"], "ok", rows[name])
            self.assertRegex(rows["database"]["detail"], r"version \d\.\d")

    def test_each_mistake_is_named(self):
        database = self.home / "w.db"
        with Server(PROGRAM) as server:
            shutil.copy(pathlib.Path(server.folder.name, "w.db-token"), self.home / "w.db-token")
        (self.home / "w.db-token").chmod(0o644)
        database.write_text("no database at all " * 50)
        database.chmod(0o644)
        unit = self.home / ".config/systemd/user/watchdog-monitor.service"
        unit.parent.mkdir(parents=True)
        unit.write_text('[Service]\nExecStart="/nowhere/watchdog-monitor" serve\n')
        self.settings('[alerts.channels.x]\nurl_file = "/nowhere/url"\n')
        claude = self.home / "bin" / "claude"
        claude.write_text("#!/bin/sh\n")
        claude.chmod(0o755)
        with Receivers(TLS / "cert.pem", TLS / "key.pem") as other:
            rows = self.check("--db", database, "--port", other.server.server_port)
        for name in ("database", "tokens", "alerts", "unit"):
            self.assertEqual((name, rows[name]["state"]), (name, "problem"), rows)
        self.assertEqual(rows["agent claude-code"]["state"], "warning", rows)
        self.assertIn("hooks install claude-code", rows["agent claude-code"]["toDo"])
        self.settings("[monitor]\nprot = 1\n")
        self.assertEqual(self.check()["settings"]["state"], "problem")


class SetupTest(Installation):
    def setUp(self):
        super().setUp()
        self.hooks = self.enterContext(Receivers(TLS / "cert.pem", TLS / "key.pem"))

    def test_flags_alone_write_a_channel_and_try_it(self):
        before = "# mine\n[monitor]\nport = 4567   # why\n"
        self.settings(before)
        self.config.chmod(0o640)
        token = self.home / "token"
        token.write_text("tk_secretofntfy\n")
        token.chmod(0o600)
        words = ["alerts", "setup", "--kind", "ntfy", "--name", "phone", "--url", self.hooks.url + "/ntfy/topic",
                 "--secret-file", token, "--ca-file", TLS / "cert.pem"]
        done = self.run_it(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len(self.hooks.taken("ntfy")), 1)
        text = self.config.read_text()
        self.assertTrue(text.startswith(before), text)
        self.assertIn('[alerts.channels.phone]\nformat = "ntfy"\n', text)
        self.assertEqual(self.config.stat().st_mode & 0o777, 0o640)
        self.assertEqual(pathlib.Path(f"{self.config}.before-setup").read_text(), before)
        again = self.run_it(*words)
        self.assertEqual((again.returncode, self.config.read_text()), (3, text), again.stderr)

    def test_a_wrong_channel_changes_nothing(self):
        self.settings("# mine\n")
        for words in (["--kind", "ntfy", "--url", "https://ntfy.sh"], ["--kind", "telegram", "--to", "1"],
                      ["--kind", "mail", "--url", "smtps://h", "--to", "x"], ["--kind", "slack", "--name", "a.b"]):
            done = self.run_it("alerts", "setup", "--no-test", *words)
            self.assertEqual((words, done.returncode), (words, 3), done.stderr)
            self.assertEqual(self.config.read_text(), "# mine\n")
            self.assertEqual([p.name for p in self.config.parent.iterdir() if "alerts-" in p.name], [])

    def test_without_a_terminal_it_says_what_to_give(self):
        done = self.run_it("alerts", "setup")
        self.assertEqual((done.returncode, "--kind" in done.stderr, self.config.exists()), (2, True, False))

    def wait_for_hidden_input(self, terminal):
        """Until the terminal shows nothing of what is typed."""
        end = time.monotonic() + PATIENCE_S
        while termios.tcgetattr(terminal)[3] & termios.ECHO:
            self.assertLess(time.monotonic(), end, "the secret would be shown")
            time.sleep(0.01)

    def test_on_a_terminal_it_asks_and_hides_secrets(self):
        self.settings("")
        parent, child = pty.openpty()
        self.addCleanup(os.close, parent)
        process = subprocess.Popen([PROGRAM, "alerts", "setup", "--ca-file", TLS / "cert.pem", "--url", self.hooks.url],
                                   stdin=child, stdout=child, stderr=child, env=self.environment, start_new_session=True)
        os.close(child)
        said = b""

        def expect(text):
            nonlocal said
            while text not in said:
                ready, _, _ = select.select([parent], [], [], PATIENCE_S)
                self.assertTrue(ready, (text, said))
                try:
                    said += os.read(parent, 4_096)
                except OSError:  # It has ended.
                    self.assertIn(text, said)
            said = said[said.index(text) + len(text):]

        expect(b"kind of channel")
        expect(b": ")
        os.write(parent, b"telegram\n")
        expect(b"id of the chat")
        expect(b": ")
        os.write(parent, b"-1001234\n")
        expect(b"may messages hold texts of sessions")
        expect(b": ")
        os.write(parent, b"\n")
        expect(b"token of the bot")
        expect(b": ")
        self.wait_for_hidden_input(parent)
        os.write(parent, b"123456:AAE-secret_token_of_a_bot\n")
        expect(b"sent: it answered 200")
        self.assertNotIn(b"AAE-secret", said)
        self.assertEqual(process.wait(PATIENCE_S), 0)
        secret = self.config.parent / "alerts-telegram-secret_file"
        self.assertEqual((secret.read_text(), secret.stat().st_mode & 0o777), ("123456:AAE-secret_token_of_a_bot\n", 0o600))
        self.assertNotIn("AAE-secret", self.config.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=1)
