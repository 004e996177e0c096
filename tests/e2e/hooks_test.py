#!/usr/bin/env python3
"""`hooks install | remove | status` on the files of a home directory: bytes, modes, links, backups, tokens, exit codes."""

import http.client
import json
import os
import pathlib
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from hook_files import FILES, IN_PROJECT
from server import Server
from specification import Specification

PROGRAM = sys.argv.pop(1)
DONE, FAILED, USAGE, REFUSED, NOT_FOUND = 0, 1, 2, 3, 5
MCP_FILES = {"claude-code": ".claude.json", "codex": ".codex/config.toml", "gemini-cli": ".gemini/settings.json",
             "opencode": ".config/opencode/opencode.json", "cursor": ".cursor/mcp.json", "copilot-cli": ".copilot/mcp-config.json"}
MCP_IN_PROJECT = {"claude-code": ".mcp.json", "codex": ".codex/config.toml", "gemini-cli": ".gemini/settings.json",
                  "opencode": "opencode.json", "cursor": ".cursor/mcp.json", "copilot-cli": ".github/mcp.json"}
BEFORE = ".before-watchdog"
SCHEMAS = pathlib.Path(__file__).resolve().parent.parent.parent / "schemas"
RECORDED = pathlib.Path(__file__).resolve().parent.parent / "data" / "hooks"
SECRET = "report-" + "r" * 30

AS_PEOPLE_HAVE_THEM = {
    "comments": b'{\n  // mine\n  "theme": "dark", // not light\n  /* later */\n}\n',
    "other hooks": b'{"hooks": {"Stop": [{"matcher": "", "hooks": [{"type": "command", "command": "say done", "timeout": 5}]}],},}\n',
    "carriage returns": b'{\r\n\t"permissions": {\r\n\t\t"allow": ["Bash(ls)"]\r\n\t}\r\n}\r\n',
    "no line end": b'{"a":1}',
    "a byte order mark": b'\xef\xbb\xbf{\n}\n',
    "empty": b"",
    "blank": b" \n",
    "only a comment": b"// nothing",
    "empty hooks": b'{"hooks":{\n}}',
}


class Hooks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hooks-")
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name).resolve()
        (self.home / "bin").mkdir()
        self.environment = {"HOME": str(self.home), "PATH": f"{self.home}/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}

    def run_hooks(self, *words, code=DONE):
        said = subprocess.run([PROGRAM, "hooks", *map(str, words)], capture_output=True, text=True, check=False, timeout=60,
                              stdin=subprocess.DEVNULL, env=self.environment)
        self.assertEqual(said.returncode, code, said.stdout + said.stderr)
        self.assertNotIn(SECRET, said.stdout + said.stderr)
        return said

    def one(self, *words, code=DONE):
        """What --json says of a single agent."""
        agents = json.loads(self.run_hooks(*words, "--json", code=code).stdout)["agents"]
        self.assertEqual(len(agents), 1)
        return agents[0]

    def put(self, name, content):
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def tree(self):
        return {str(path.relative_to(self.home)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
                for path in self.home.rglob("*") if path.is_file()}

    def test_a_removal_gives_back_the_bytes_and_the_modes(self):
        for agent in ("claude-code", "codex", "gemini-cli", "cursor", "copilot-cli"):
            for what, content in AS_PEOPLE_HAVE_THEM.items():
                if b"Stop" in content and agent in ("cursor", "copilot-cli"):
                    continue  # The form of other agents.
                with self.subTest(f"{agent}: {what}"):
                    path = self.put(FILES[agent], content)
                    path.chmod(0o640)
                    before = self.tree()
                    self.assertEqual(self.one("install", agent)["change"], "installed")
                    self.assertEqual((path.parent / (path.name + BEFORE)).read_bytes(), content)
                    installed = self.tree()
                    self.assertEqual(self.one("install", agent)["change"], None)
                    self.assertEqual(self.tree(), installed, "a second install changes nothing")
                    self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o640)
                    self.assertEqual(self.one("status", agent)["hooks"], "present")
                    self.assertEqual(self.one("remove", agent)["change"], "removed")
                    self.assertEqual(self.tree(), before)
                    path.unlink()

    def test_the_mcp_server_is_registered_and_taken_out_again(self):
        servers = b'{\n  // mine\n  "mcpServers": {"other": {"command": "x"}}\n}\n'
        contents = {"codex": b'model = "m"\r\n[mcp_servers.other]\r\ncommand = "x"\r\n', "opencode": b'{"mcp": {}}'}
        for agent, file in MCP_FILES.items():
            with self.subTest(agent):
                before = contents.get(agent, servers)
                path = self.put(file, before)
                diff = self.run_hooks("install", agent, "--mcp", "--dry-run").stdout
                self.assertIn("watchdog", diff)
                self.assertEqual(path.read_bytes(), before)
                made = self.one("install", agent, "--mcp")
                self.assertEqual((made["change"], made["hooks"], made["file"]), ("installed", "present", str(path)))
                self.assertEqual(pathlib.Path(made["backup"]).read_bytes(), before)
                self.assertIn(b"watchdog-monitor", path.read_bytes())
                self.assertIsNone(self.one("install", agent, "--mcp")["change"])
                self.assertEqual(self.one("status", agent, "--mcp", "--server", "http://127.0.0.1:9")["hooks"], "elsewhere")
                self.assertEqual(self.one("remove", agent, "--mcp")["change"], "removed")
                self.assertEqual(path.read_bytes(), before)
                path.unlink()
                self.one("install", agent, "--mcp")
                self.one("remove", agent, "--mcp")
                self.assertFalse(path.exists())
        for agent, file in MCP_IN_PROJECT.items():
            self.one("install", agent, "--mcp", "--project", self.home)
            self.assertTrue((self.home / file).exists(), agent)

    def test_hooks_and_the_mcp_server_share_a_file(self):
        before = b'{\n  "theme": "dark"\n}\n'
        path = self.put(MCP_FILES["gemini-cli"], before)
        for first, second in (([], ["--mcp"]), (["--mcp"], [])):
            self.one("install", "gemini-cli")
            self.one("install", "gemini-cli", "--mcp")
            self.one("remove", "gemini-cli", *first)
            self.assertEqual(self.one("status", "gemini-cli", *second)["hooks"], "present")
            self.one("remove", "gemini-cli", *second)
            self.assertEqual(path.read_bytes(), before)

    def test_another_mcp_server_of_the_name_stays(self):
        path = self.put(".cursor/mcp.json", b'{"mcpServers": {"watchdog": {"command": "dog"}}}')
        self.assertIn("Rename it", self.run_hooks("install", "cursor", "--mcp", code=REFUSED).stderr)
        self.assertIn(b'"dog"', path.read_bytes())

    def test_a_file_that_was_missing_is_deleted_again(self):
        for files, scope in ((FILES, ()), (IN_PROJECT, ("--project", "project"))):
            (self.home / "project").mkdir(exist_ok=True)
            scope = tuple(self.home / word if word == "project" else word for word in scope)
            for agent, name in files.items():
                with self.subTest(f"{agent} {scope}"):
                    path = (self.home / "project" if scope else self.home) / name
                    report = self.one("install", agent, *scope)
                    self.assertEqual((report["file"], report["change"], report["backup"]), (str(path), "installed", None))
                    self.assertEqual(self.one("status", agent, *scope)["hooks"], "present")
                    self.assertEqual(self.one("remove", agent, *scope)["change"], "removed")
                    self.assertFalse(path.exists())

    def test_a_change_after_the_install_stays(self):
        path = self.put(FILES["claude-code"], b'{"theme": "dark"}')
        self.run_hooks("install", "claude-code")
        path.write_bytes(path.read_bytes().replace(b'"dark"', b'"light"'))
        self.run_hooks("remove", "claude-code")
        self.assertEqual(path.read_bytes(), b'{"theme": "light"}')

    def test_a_link_stays_a_link(self):
        real = self.put("dots/settings.json", b"{}\n")
        link = self.home / FILES["claude-code"]
        link.parent.mkdir()
        link.symlink_to("../dots/settings.json")
        self.run_hooks("install", "claude-code")
        self.assertTrue(link.is_symlink())
        self.assertIn("SessionStart", json.loads(real.read_text())["hooks"])
        self.run_hooks("remove", "claude-code")
        self.assertTrue(link.is_symlink())
        self.assertEqual(real.read_bytes(), b"{}\n")

    def test_no_backup_is_written_through_a_link(self):
        for arguments, file, backup in ((("claude-code",), FILES["claude-code"], BEFORE), (("claude-code", "--mcp"), MCP_FILES["claude-code"], BEFORE + "-mcp")):
            with self.subTest(file):
                path = self.put(file, b'{"x": "$(touch owned)"}')
                mine = self.put("mine", b"# as it was\n")
                link = path.parent / (path.name + backup)
                link.symlink_to(mine)
                for target in (mine, self.home / "missing"):
                    link.unlink()
                    link.symlink_to(target)
                    before = self.tree()
                    for action in ("install", "remove"):
                        self.assertIn("is a link to", self.run_hooks(action, *arguments, code=REFUSED).stderr)
                    self.assertEqual(self.tree(), before)
                path.unlink()

    def test_a_refused_file_stays_as_it_is(self):
        for what, content, why in (
                ("broken", b'{\n  "a": 1\n  "b": 2\n}\n', f"{self.home}/{FILES['gemini-cli']}:3: a comma is missing"),
                ("not UTF-8", b'{"a": "\xff"}', "not UTF-8"),
                ("another type", b'{"hooks": []}', '"hooks" must be an object'),
                ("an array", b"[]", "must be an object"),
                ("too long", b'{"a": "' + b"x" * (16 << 20) + b'"}', "16777216")):
            with self.subTest(what):
                self.put(FILES["gemini-cli"], content)
                before = self.tree()
                for action in ("install", "remove", "status"):
                    said = self.run_hooks(action, "gemini", code=REFUSED).stderr
                    self.assertIn(why, said)
                    self.assertIn(FILES["gemini-cli"], said)
                self.assertEqual(self.tree(), before)

    def test_a_read_only_file_is_refused(self):
        path = self.put(FILES["cursor"], b'{"version": 1}')
        path.chmod(0o444)
        self.assertIn("chmod u+w", self.run_hooks("install", "cursor", code=REFUSED).stderr)
        self.assertEqual(path.read_bytes(), b'{"version": 1}')
        self.assertEqual(sorted(one.name for one in path.parent.iterdir()), ["hooks.json"])

    def test_a_folder_in_the_place_of_the_file_is_refused(self):
        (self.home / FILES["codex"]).mkdir(parents=True)
        self.assertIn("hooks.json", self.run_hooks("install", "codex", code=REFUSED).stderr)

    def test_another_program_in_the_place_of_the_plugin_stays(self):
        path = self.put(FILES["opencode"], b"export const Mine = 1;\n")
        self.run_hooks("install", "opencode", code=REFUSED)
        self.run_hooks("remove", "opencode", code=REFUSED)
        self.assertEqual(path.read_bytes(), b"export const Mine = 1;\n")

    def test_a_dry_run_prints_a_diff_and_changes_nothing(self):
        path = self.put(FILES["claude-code"], b'{\n  "theme": "dark"\n}\n')
        before = self.tree()
        diff = self.run_hooks("install", "claude-code", "--dry-run").stdout
        self.assertEqual(self.tree(), before)
        subprocess.run(["patch", "-s", str(path)], input=diff, text=True, check=True)
        patched = path.read_bytes()
        path.write_bytes(before[FILES["claude-code"]][0])
        self.run_hooks("install", "claude-code")
        self.assertEqual(path.read_bytes(), patched)
        self.assertIn('-    "SessionStart"', self.run_hooks("remove", "claude-code", "--dry-run").stdout)

    def test_without_names_it_takes_the_programs_on_the_path(self):
        self.assertIn("no program of a known agent", self.run_hooks("install", code=NOT_FOUND).stderr)
        for program in ("codex", "cursor-agent"):
            (self.home / "bin" / program).write_text("#!/bin/sh\n")
            (self.home / "bin" / program).chmod(0o755)
        said = self.run_hooks("install").stdout
        self.assertIn("codex: installed 11 hooks in", said)
        self.assertIn("Trust all", said)
        self.assertTrue((self.home / FILES["cursor"]).exists())
        self.assertFalse((self.home / FILES["gemini-cli"]).exists())
        state = {one["agent"]: one for one in json.loads(self.run_hooks("status", "--json").stdout)["agents"]}
        self.assertEqual({name: one["hooks"] for name, one in state.items()},
                         dict.fromkeys(FILES, "absent") | {"codex": "present", "cursor": "present"})
        self.assertEqual(state["codex"]["program"], str(self.home / "bin/codex"))
        self.assertEqual(len(state["codex"]["untrusted"]), 11)
        self.assertIsNone(state["gemini-cli"]["program"])

    def test_status_names_another_server_and_an_install_moves_the_hooks(self):
        self.run_hooks("install", "codex", "opencode", "--server", "http://far.example:8000/")
        for agent in ("codex", "opencode"):
            report = self.one("status", agent)
            self.assertEqual((report["hooks"], report["server"]), ("elsewhere", "http://far.example:8000"))
            self.assertEqual(self.one("install", agent)["change"], "updated")
            self.assertEqual(self.one("status", agent)["server"], "http://127.0.0.1:3000")

    def test_names_in_a_project_neither_forge_a_line_nor_steer_the_terminal(self):
        folder = self.home / "a\nforged\x1b]0;x\x07\u202e"
        folder.mkdir()
        where = ("codex", "--project", folder)
        said = [self.run_hooks(action, *where) for action in ("install", "install", "status")]
        (folder / IN_PROJECT["codex"]).write_text("{", encoding="utf-8")
        said += [self.run_hooks(action, *where, code=REFUSED) for action in ("status", "install")]
        for text in (one.stdout + one.stderr for one in said):
            self.assertIn("forged", text)
            self.assertFalse([line for line in text.splitlines() if line.startswith("forged")], text)
            self.assertNotRegex(text, "[\x1b\x07\u202e]")

    def test_variables_of_the_agents_name_their_folders(self):
        self.environment |= {"CODEX_HOME": str(self.home / "c"), "CLAUDE_CONFIG_DIR": str(self.home / "d"),
                             "COPILOT_HOME": str(self.home / "e"), "XDG_CONFIG_HOME": str(self.home / "f")}
        self.run_hooks("install", *FILES)
        for name in ("c/hooks.json", "d/settings.json", "e/hooks/watchdog.json", "f/opencode/plugin/watchdog.js"):
            self.assertTrue((self.home / name).exists(), name)

    def test_misuse_is_named(self):
        for words in (["install", "codx"], ["instal"], [], ["install", "codex", "--server", "http://a/$(id)"],
                      ["install", "codex", "--server", "ftp://a"], ["install", "codex", "--user", "--project", "."]):
            self.run_hooks(*words, code=USAGE)
        self.run_hooks("install", "codex", "--project", self.home / "none", code=NOT_FOUND)

    def test_a_token_reaches_the_monitor_and_nobody_else(self):
        with Server(PROGRAM, arguments=["--behind-proxy"]) as server:  # Then each request needs a token.
            tokens = pathlib.Path(server.folder.name, "w.db-token")
            with tokens.open("a", encoding="utf-8") as more:
                more.write(f"bot report {SECRET}\n")
            self.run_hooks("install", "claude-code", "opencode", "--server", f"http://{server.host}", "--token-file", tokens)
            header, = self.home.glob(".config/watchdog/hooks-*.header")
            self.assertEqual(stat.S_IMODE(header.stat().st_mode), 0o600)
            self.assertEqual(header.read_text(), f"Authorization: Bearer {SECRET}\n")
            for agent in ("claude-code", "opencode"):
                text = (self.home / FILES[agent]).read_text()
                self.assertNotIn(SECRET, text)
                self.assertIn(str(header), text)
            hooks = json.loads((self.home / FILES["claude-code"]).read_text())["hooks"]
            event = {"session_id": "hooked", "hook_event_name": "UserPromptSubmit", "prompt": "Go"}
            command = hooks["UserPromptSubmit"][0]["hooks"][0]["command"]
            end = time.monotonic() + 20
            said = b""
            while said != b"{}" and time.monotonic() < end:  # The monitor reads the new token within seconds.
                said = subprocess.run(command, shell=True, input=json.dumps(event).encode(), capture_output=True, check=True,
                                      env=self.environment).stdout
                time.sleep(0.1)
            self.assertEqual(said, b"{}")
            status = self.one("status", "claude-code", "--server", f"http://{server.host}", "--token-file", tokens)
            self.assertLess(status["lastSessionMs"], 60_000)
            self.assertLess(status["lastHeardMs"], 60_000)
            self.assertIsNone(self.one("status", "codex", "--server", f"http://{server.host}", "--token-file", tokens)["lastHeardMs"])
            # A second install without the option keeps the token.
            report = self.one("install", "claude-code", "--server", f"http://{server.host}")
            self.assertIsNone(report["change"])
            tokens.chmod(0o644)
            self.run_hooks("install", "codex", "--token-file", tokens, code=REFUSED)

    def commands_in(self, agent):
        """The shell commands of an installed agent, by its events; the plugin of opencode runs with node."""
        path = self.home / FILES[agent]
        if agent == "opencode":
            module = path.with_suffix(".mjs")
            shutil.copy(path, module)
            # It reports what opencode says; here the events are in the input of the command.
            script = (f"import {{ Watchdog }} from {json.dumps(str(module))}; import {{ readFileSync }} from 'fs'; "
                      "const hooks = await Watchdog({ client: {} }); await hooks.event({ event: JSON.parse(readFileSync(0)) });")
            return {"session.created": f"node --input-type=module -e {shlex.quote(script)}"}
        found = {}
        for event, entries in json.loads(path.read_text())["hooks"].items():
            handler = entries[0]["hooks"][0] if "hooks" in entries[0] else entries[0]
            found[event] = handler.get("bash") or handler["command"]
        return found

    def first_hook_of(self, agent):
        """As recorded: the event's name, what the agent sends, and the session."""
        line = json.loads((RECORDED / f"{agent}.jsonl").read_text().splitlines()[0])
        hook = line["hook"]
        return hook.get("hook_event_name") or hook["type"], json.dumps(hook), line["session"]

    def test_a_hook_gets_a_token_that_reports_and_does_nothing_else(self):
        operations = Specification(SCHEMAS).operations
        reports = {"POST /api/autonomous/sessions", "PATCH /api/autonomous/sessions/{sessionId}",
                   "POST /api/autonomous/sessions/{sessionId}/events", "POST /api/hooks/{agent}", "POST /v1/logs", "POST /v1/traces",
                   "POST /v1/metrics", "GET /api/autonomous/traces/{trace}", "POST /mcp", "GET /mcp", "DELETE /mcp",
                   "POST /api/autonomous/check-status"}
        with Server(PROGRAM, arguments=["--behind-proxy"]) as server:  # Then each request needs a token.
            url, tokens = f"http://{server.host}", pathlib.Path(server.folder.name, "w.db-token")
            self.environment["WATCHDOG_DB"] = str(tokens.with_name("w.db"))

            def answer(operation, secret):
                connection = http.client.HTTPConnection(server.host, timeout=60)
                self.addCleanup(connection.close)
                connection.request(operation.method, operation.sample(), "", {"Authorization": f"Bearer {secret}"})
                return connection.getresponse().status

            secrets = set()
            for agent in FILES:
                with self.subTest(agent):
                    header_of = lambda: next(self.home.glob(".config/watchdog/hooks-*.header"))
                    self.run_hooks("install", agent, "--server", url, "--token-file", tokens)
                    secret = header_of().read_text().split()[-1]
                    secrets.add(secret)
                    self.assertNotIn(secret, tokens.read_text())
                    self.assertNotIn(secret, (self.home / FILES[agent]).read_text())
                    self.assertEqual(stat.S_IMODE(header_of().stat().st_mode), 0o600)
                    event, sent, session = self.first_hook_of(agent)
                    report = lambda: subprocess.run(self.commands_in(agent)[event], shell=True, input=sent, capture_output=True,
                                                    text=True, check=True, env=self.environment)
                    said = report()
                    known = {"Authorization": f"Bearer {server.secret}"}
                    connection = http.client.HTTPConnection(server.host, timeout=60)
                    self.addCleanup(connection.close)
                    connection.request("GET", f"/api/autonomous/progress/{session}", headers=known)
                    self.assertEqual(connection.getresponse().status, 200, said.stdout + said.stderr)
                    # Hooks that an earlier version installed have the token that acts. They go on, until the next install.
                    header_of().write_text(f"Authorization: Bearer {server.secret}\n")
                    said = report()
                    self.assertNotIn("refused", said.stdout + said.stderr)
                    self.run_hooks("install", agent, "--server", url)
                    self.assertEqual(header_of().read_text().split()[-1], secret)
            self.assertEqual(len(secrets), 1)
            secret = secrets.pop()
            let_in = {str(one) for one in operations if answer(one, secret) != 403 and one.node.get("security") != []}
            self.assertEqual(let_in, reports)
            acts = [one for one in operations if one.path.endswith(("/cancel", "/forget", "/abort", "/abort-tool/{toolId}", "/snooze"))]
            self.assertGreater(len(acts), 4)
            self.assertEqual({answer(one, secret) for one in acts}, {403})
            # A copy of the file without the one beside it has no such token.
            copied = pathlib.Path(shutil.copy(tokens, self.home / "copied"))
            copied.chmod(0o600)
            said = self.run_hooks("install", "codex", "--server", url, "--token-file", copied, code=REFUSED)
            self.assertIn("hooks report TOKEN", said.stderr)
            beside = tokens.with_name("w.db-token-report")
            self.assertEqual(stat.S_IMODE(beside.stat().st_mode), 0o600)
            self.run_hooks("install", "codex", "--server", url, "--token-file", beside)

    def test_an_agent_that_works_on_after_its_end_has_a_session_that_goes_on(self):
        with Server(PROGRAM) as server:
            self.run_hooks("install", "copilot-cli", "--server", f"http://{server.host}")
            commands = self.commands_in("copilot-cli")
            connection = http.client.HTTPConnection(server.host, timeout=60)
            self.addCleanup(connection.close)

            def state():
                connection.request("GET", "/api/autonomous/progress/s")
                return json.loads(connection.getresponse().read()).get("state")

            hooks = (("SessionStart", {}, "unknown"), ("UserPromptSubmit", {"prompt": "Go"}, "starting"), ("Stop", {}, "your_turn"),
                     ("SessionEnd", {"reason": "complete"}, "completed"),
                     ("UserPromptSubmit", {"prompt": "<system_notification>\nShell command completed\n</system_notification>"}, "starting"),
                     ("Stop", {}, "your_turn"), ("SessionEnd", {"reason": "complete"}, "completed"))
            for second, (event, more, then) in enumerate(hooks):
                sent = {"hook_event_name": event, "session_id": "s", "timestamp": f"2026-11-27T14:24:{second + 10}.000Z", "cwd": "/src"}
                subprocess.run(commands[event], shell=True, input=json.dumps(sent | more), text=True, check=True, capture_output=True, env=self.environment)
                end = time.monotonic() + 20
                while (seen := state()) != then and time.monotonic() < end:
                    time.sleep(0.05)
                self.assertEqual(seen, then, f"after event {second + 1}, {event}")

    def test_whatever_name_a_session_was_given_no_report_is_lost(self):
        # The clients for Python and JavaScript make the same ids of these names.
        names = {"nightly": "nightly", "my run": "my-run", 'a"b$c`d\\e': "a-b-c-d-e", "f&g=h#i?j%k/../l": "f-g-h-i-j-k-..-l", "x" * 200: "x" * 128}
        with Server(PROGRAM) as server:
            for agent in FILES:
                self.run_hooks("install", agent, "--server", f"http://{server.host}")
                event, sent, _ = self.first_hook_of(agent)
                for name, session in names.items():
                    with self.subTest(agent=agent, name=name):
                        subprocess.run(self.commands_in(agent)[event], shell=True, input=sent, capture_output=True, text=True, check=True,
                                       env=self.environment | {"WATCHDOG_SESSION": f"{agent[0]}{name}"})
                        connection = http.client.HTTPConnection(server.host, timeout=60)
                        self.addCleanup(connection.close)
                        connection.request("GET", f"/api/autonomous/progress/{agent[0]}{session}"[:len("/api/autonomous/progress/") + 128])
                        self.assertEqual(connection.getresponse().status, 200)

    def test_a_monitor_with_certificates_of_its_own_is_trusted(self):
        files = pathlib.Path(__file__).parent.parent / "data" / "tls"
        own = self.home / "tls"
        own.mkdir(parents=True)
        for name in ("cert.pem", "key.pem"):
            shutil.copy(files / name, own / name)
            (own / name).chmod(0o600)
        with Server(PROGRAM, arguments=["--tls-cert", own / "cert.pem", "--tls-key", own / "key.pem"]) as server:
            url = f"https://{server.host}"
            event = json.dumps({"session_id": "trusted", "hook_event_name": "UserPromptSubmit", "prompt": "Go"}).encode()
            def sent():
                hooks = json.loads((self.home / FILES["claude-code"]).read_text())["hooks"]
                return subprocess.run(hooks["UserPromptSubmit"][0]["hooks"][0]["command"], shell=True, input=event,
                                      capture_output=True, check=True, env=self.environment).stdout
            self.run_hooks("install", "claude-code", "--server", url)
            self.assertEqual(sent(), b"", "nobody vouches for the monitor")
            self.run_hooks("install", "claude-code", "--server", url, "--ca-file", own / "key.pem", code=REFUSED)
            self.run_hooks("install", "claude-code", "--server", url, "--ca-file", own / "cert.pem")
            self.assertEqual(sent(), b"{}")
            # A second install, and the status, find the copy.
            self.assertIsNone(self.one("install", "claude-code", "--server", url)["change"])
            status = self.one("status", "claude-code", "--server", url)
            self.assertEqual(status["hooks"], "present")

    def test_two_installs_at_once_leave_one_whole_file(self):
        self.put(FILES["claude-code"], AS_PEOPLE_HAVE_THEM["comments"])
        def install():
            subprocess.run([PROGRAM, "hooks", "install", "claude-code"], env=self.environment, capture_output=True, check=False)
        threads = [threading.Thread(target=install) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.one("status", "claude-code")["hooks"], "present")
        self.assertEqual(sorted(os.listdir(self.home / ".claude")), ["settings.json", "settings.json" + BEFORE])


if __name__ == "__main__":
    unittest.main()
