#!/usr/bin/env python3
"""What other users, other roles, other callers and cloned projects of the same machine cannot do to a monitor."""

import http.client
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from hook_files import IN_PROJECT
from postgres import PROGRAMS, Postgres
from server import Server

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
NOBODY = 65534
IS_ROOT = os.geteuid() == 0
only_root = unittest.skipIf(not IS_ROOT, "only root can act as another user")


def serve(environment, *words, **more):
    return subprocess.run([PROGRAM, "serve", "--port", "0", *map(str, words)], env=environment, capture_output=True, text=True, timeout=PATIENCE_S,
                          check=False, **more)


class OtherUsers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="neighbours-")
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name).resolve()
        self.environment = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

    @only_root
    def test_a_state_folder_of_another_user_is_refused_and_nothing_in_it_changes(self):
        state = self.home / ".local/state/watchdog"
        state.mkdir(parents=True)
        target = self.home / "passwd"
        target.write_text("root:x:0:0\n")
        target.chmod(0o644)
        (state / "watchdog.db").symlink_to(target)
        os.chown(state, NOBODY, NOBODY)
        said = serve(self.environment)
        self.assertNotEqual(said.returncode, 0, said)
        self.assertIn(str(state), said.stderr)
        self.assertEqual((stat.S_IMODE(target.stat().st_mode), target.read_text()), (0o644, "root:x:0:0\n"))
        self.assertEqual([path.name for path in state.iterdir()], ["watchdog.db"])

    def test_without_a_home_no_folder_is_made_where_everybody_may_write(self):
        before = {path.name for path in pathlib.Path("/tmp").iterdir()}
        said = serve({"PATH": "/usr/bin:/bin"}, cwd=self.home)
        self.assertNotEqual(said.returncode, 0, said)
        self.assertIn("HOME", said.stderr)
        self.assertNotIn(".local", {path.name for path in pathlib.Path("/tmp").iterdir()} - before)
        self.assertEqual(list(self.home.iterdir()), [])

    def test_a_program_of_the_same_user_cannot_read_the_monitors_memory(self):
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if IS_ROOT else {}
        program = PROGRAM
        if IS_ROOT:  # A program that nobody can start
            program = shutil.copy(PROGRAM, self.home / "watchdog-monitor")
            for path in (self.home, pathlib.Path(program)):
                os.chown(path, NOBODY, NOBODY)
        monitor = subprocess.Popen([program, "serve", "--port", "0", "--db", self.home / "w.db"], env=self.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **user)
        other = subprocess.Popen(["sleep", "1000"], **user)
        for process in (monitor, other):
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
        self.addCleanup(monitor.stdout.close)
        self.assertIn("listening on", monitor.stdout.readline())
        reads = lambda pid: subprocess.run(["cat", f"/proc/{pid}/environ"], capture_output=True, check=False, **user).returncode
        self.assertEqual(reads(other.pid), 0)
        self.assertNotEqual(reads(monitor.pid), 0, "it would write a core, too")

    def test_programs_that_run_and_mcp_proxy_start_get_no_token(self):
        environment = self.environment | {"WATCHDOG_TOKEN": "z" * 40}
        with Server(PROGRAM) as server:
            said = subprocess.run([PROGRAM, "run", "--server", f"http://{server.host}", "--", "env"], env=environment, capture_output=True,
                                  text=True, timeout=PATIENCE_S, check=False)
            self.assertIn("WATCHDOG_SESSION=", said.stdout)
            self.assertNotIn("z" * 40, said.stdout)
            seen = self.home / "seen"
            subprocess.run([PROGRAM, "mcp-proxy", "--server", f"http://{server.host}", "--", "sh", "-c", f"env > {seen}"], env=environment,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False)
            self.assertIn("HOME=", seen.read_text())
            self.assertNotIn("z" * 40, seen.read_text())

    def test_an_install_does_not_follow_the_links_of_a_project_out_of_it(self):
        for agent, file in IN_PROJECT.items():
            for at in range(1, len(pathlib.Path(file).parts) + 1):  # A link to the file, or to each folder on its way.
                with self.subTest(f"{agent}: {at}"):
                    project, outside = self.home / f"{agent}{at}", self.home / f"{agent}{at}-outside"
                    link = project.joinpath(*pathlib.Path(file).parts[:at])
                    link.parent.mkdir(parents=True)
                    is_file = at == len(pathlib.Path(file).parts)
                    outside.write_text("{}") if is_file else outside.mkdir()
                    link.symlink_to(outside)
                    said = subprocess.run([PROGRAM, "hooks", "install", agent, "--project", project], env=self.environment,
                                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
                    self.assertNotEqual(said.returncode, 0, said)
                    self.assertEqual(outside.read_text() if is_file else list(outside.iterdir()), "{}" if is_file else [])


@unittest.skipIf(not PROGRAMS, "this machine has no PostgreSQL")
class OtherRoles(unittest.TestCase):
    def test_a_schema_of_another_role_is_refused(self):
        with tempfile.TemporaryDirectory() as home:
            database = Postgres()
            self.addCleanup(database.stop)
            database.run("CREATE ROLE evil; CREATE ROLE mon LOGIN; CREATE SCHEMA watchdog AUTHORIZATION evil; GRANT ALL ON SCHEMA watchdog TO mon")
            said = serve({"HOME": home, "PATH": "/usr/bin:/bin"}, "--db", database.url().replace("user=postgres", "user=mon"))
            self.assertNotEqual(said.returncode, 0, said)
            self.assertIn("belongs to another role", said.stderr)
            self.assertEqual(database.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'watchdog'"), "0")


class OtherCallers(unittest.TestCase):
    def test_no_session_has_a_name_that_leads_elsewhere_in_a_url(self):
        with Server(PROGRAM) as server:
            connection = http.client.HTTPConnection(server.host, timeout=PATIENCE_S)
            self.addCleanup(connection.close)
            for name in (".", ".."):
                for method, path, body in (("POST", "/api/autonomous/sessions", {"sessionId": name}),
                                           ("POST", f"/api/autonomous/sessions/{name}/events", {"kind": "message"}),
                                           ("POST", f"/api/autonomous/sessions/%2e{name[1:]}/events", {"kind": "message"})):
                    connection.request(method, path, json.dumps(body))
                    response = connection.getresponse()
                    response.read()
                    self.assertIn(response.status, (400, 404, 422), path)
            connection.request("GET", "/api/autonomous/sessions")
            self.assertEqual(json.loads(connection.getresponse().read())["sessions"], [])

    def test_hooks_that_begin_a_session_again_erase_nothing_of_it(self):
        # A start and a resume in one folder erase a session that nobody used. Each program that reports can send them.
        with Server(PROGRAM) as server:
            def post(path, body):
                connection = http.client.HTTPConnection(server.host, timeout=PATIENCE_S)
                connection.request("POST", path, json.dumps(body))
                self.assertLess(connection.getresponse().status, 300)
                connection.close()

            def hook(session, event="SessionStart", **more):
                post("/api/hooks/claude-code", {"session_id": session, "hook_event_name": event, "cwd": "/orchard"} | more)

            def there():
                connection = http.client.HTTPConnection(server.host, timeout=PATIENCE_S)
                connection.request("GET", "/api/autonomous/sessions")
                names = {row["sessionId"] for row in json.loads(connection.getresponse().read())["sessions"]}
                connection.close()
                return names

            post("/api/autonomous/sessions/reported/events", [{"kind": "message", "text": "apples"}, {"kind": "end", "outcome": "completed"}])
            for event in ({"event": "UserPromptSubmit", "prompt": "Count apples"}, {"event": "Stop"}, {"event": "SessionEnd", "reason": "other"}):
                hook("ended", **event)
            for session in ("reported", "ended", "unused"):
                hook(session, source="startup")
            hook("resumed", source="resume")
            end = time.monotonic() + PATIENCE_S
            while "unused" in there():
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)
            self.assertEqual(there(), {"reported", "ended", "resumed"})

    def test_a_caller_that_acts_in_the_name_of_another_is_named_as_well(self):
        with Server(PROGRAM) as server:
            tokens = pathlib.Path(server.folder.name, "w.db-token")
            tokens.write_text(tokens.read_text() + f"bob read,report,act {'b' * 30}\n")

            def ask(secret, method, path, body=None):
                connection = http.client.HTTPConnection(server.host, timeout=PATIENCE_S)
                self.addCleanup(connection.close)
                connection.request(method, path, json.dumps(body) if body is not None else None, {"Authorization": f"Bearer {secret}"})
                return json.loads(connection.getresponse().read())

            end = time.monotonic() + PATIENCE_S
            while ask("b" * 30, "GET", "/api/access")["name"] != "bob" and time.monotonic() < end:  # The file is read every second.
                time.sleep(0.1)
            rows = ((server.secret, {}, "user"), (server.secret, {"by": "ann"}, "ann"), ("b" * 30, {}, "bob"), ("b" * 30, {"by": "bob"}, "bob"),
                    ("b" * 30, {"by": "ann"}, "ann (token of bob)"))
            for number, (secret, said, by) in enumerate(rows):
                session = f"/api/autonomous/sessions/s{number}"
                ask(secret, "POST", f"{session}/events", {"kind": "message"})
                ask(secret, "POST", f"{session}/cancel", said)
                self.assertEqual(ask(secret, "GET", f"/api/autonomous/progress/s{number}")["cancel"]["by"], by)

    def test_nobody_ends_the_mcp_sessions_of_others_by_making_many(self):
        with Server(PROGRAM) as server:
            tokens = pathlib.Path(server.folder.name, "w.db-token")
            tokens.write_text(tokens.read_text() + f"ann read {'a' * 30}\n")
            begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}
            connection = http.client.HTTPConnection(server.host, timeout=PATIENCE_S)
            self.addCleanup(connection.close)

            def ask(message, **headers):
                connection.request("POST", "/mcp", json.dumps(message), {"Content-Type": "application/json"} | headers)
                response = connection.getresponse()
                response.read()
                return response

            ann = {"Authorization": "Bearer " + "a" * 30}
            name = lambda: connection.request("GET", "/api/access", headers=ann) or json.loads(connection.getresponse().read())["name"]
            end = time.monotonic() + PATIENCE_S
            while name() != "ann" and time.monotonic() < end:  # The monitor reads the file every second.
                time.sleep(0.1)
            session = ask(begin, **ann).getheader("Mcp-Session-Id")
            first = ask(begin).getheader("Mcp-Session-Id")
            for _ in range(1_100):
                ask(begin)
            ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            self.assertEqual(ask(ping, **ann, **{"Mcp-Session-Id": session}).status, 200)
            self.assertEqual(ask(ping, **{"Mcp-Session-Id": first}).status, 404, "the caller with the most has lost its own")


if __name__ == "__main__":
    unittest.main()
