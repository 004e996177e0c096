#!/usr/bin/env python3
"""Every command of the real program: help, JSON, exit codes; and those that live in a terminal."""

import contextlib
import fcntl
import http.server
import json
import os
import pathlib
import pty
import queue
import re
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest
import unittest.mock
import urllib.request

from fake_model import Model
from server import Server

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
DONE, FAILED, USAGE, REFUSED, UNREACHABLE, NOT_FOUND, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


def run(*words, **more):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                          stdin=subprocess.DEVNULL, **more)


def commands():
    return re.findall(r"^  ([a-z][\w-]*) ", run("--help").stdout, re.MULTILINE)


class OfThemselves(unittest.TestCase):
    """What needs no monitor."""

    def test_each_says_what_it_does_and_how_it_ends(self):
        self.assertGreater(len(commands()), 20)
        for command in commands():
            with self.subTest(command):
                said = run(command, "--help")
                self.assertEqual((said.returncode, said.stderr), (DONE, ""))
                self.assertIn(f"Usage: watchdog-monitor {command}", said.stdout)
                self.assertRegex(said.stdout, r"Exit codes?:")
                self.assertEqual(run(command, "--no-such-option").returncode, USAGE)

    def test_help_fits_into_80_columns_and_names_each_value(self):
        for command in [(), *((command,) for command in commands())]:
            with self.subTest(command):
                text = run(*command, "--help").stdout
                self.assertEqual([line for line in text.splitlines() if len(line) > 80], [])
                self.assertNotRegex(text, r"--[a-z-]+ (INT|UINT|FLOAT)\b", "a type says nothing of what is wanted")
                self.assertLessEqual(set(re.findall(r"(--[a-z-]+) TEXT\b", text)), {"--search", "--reason", "--task"})
        serve = run("serve", "--help").stdout
        for group in ("Storage", "Network", "Access", "Proxy", "Model checks"):
            self.assertIn(f"\n{group}:\n", serve)
        self.assertIn("one of: unknown, starting, progressing,", " ".join(run("sessions", "--help").stdout.split()))

    def refused(self, *words, **more):
        """What is said on standard error about words that are refused as misuse."""
        said = run(*words, **more)
        self.assertEqual((said.returncode, said.stdout), (USAGE, ""), words)
        self.assertTrue(said.stderr.startswith("watchdog-monitor: "), said.stderr)
        return said.stderr

    def test_an_unknown_word_is_named_with_the_nearest_and_all_that_are_allowed(self):
        for words, wrong, near, allowed in (
                (["stauts"], 'command "stauts"', "status", ["sessions", "wait"]),
                (["session"], 'command "session"', "sessions", ["status"]),
                (["sessions", "--helth", "stuck"], 'option "--helth"', "--health", ["--agent", "--json"]),
                (["status", "--jsno"], 'option "--jsno"', "--json", ["--server"]),
                (["serve", "--prot=1"], 'option "--prot"', "--port", []),
                (["sessions", "--health", "stuk"], 'health "stuk"', "stuck", ["looping", "progressing"]),
                (["sessions", "--state", "idle,stuk"], 'state "stuk"', "stuck", ["looping", "needs_input"]),
                (["sessions", "--lifecycle", "runing"], 'lifecycle "runing"', "running", ["completed"]),
                (["events", "x", "--kind", "hartbeat"], 'kind "hartbeat"', "heartbeat", ["state_change"]),
                (["wait", "x", "--for", "complete"], 'goal "complete"', "completed", ["state-change"]),
                (["wait", "x", "--for", "health=stuk"], 'health "stuk"', "stuck", ["silent"]),
                (["wait", "x", "--on-stuck", "kep"], 'answer "kep"', "keep", ["ask", "fail"]),
                (["replay", "x", "--pace", "recorder"], 'pace "recorder"', "recorded", ["max"]),
                (["completion", "bsh"], 'shell "bsh"', "bash", [])):
            with self.subTest(words):
                said = self.refused(*words)
                self.assertIn(f"unknown {wrong}; did you mean {near}?", said)
                for word in allowed:
                    self.assertIn(word, said)
        said = self.refused("xyzzy")
        self.assertIn('unknown command "xyzzy"; use one of: ', said)
        self.assertNotIn("did you mean", said)
        for command in commands():
            self.assertIn(command, said)

    def test_a_number_that_is_none_is_named_with_its_range(self):
        for words, option, range_ in (
                (["sessions", "--limit", "x"], "--limit", "an integer from 1 to"), (["sessions", "--limit", "0"], "--limit", "from 1 to"),
                (["watch", "--limit", "99999999999999999999"], "--limit", "from 1 to 10000"), (["turns", "--limit", "1.5"], "--limit", "from 1 to 1000"),
                (["events", "x", "--after", "-1"], "--after", "of 0 or more"), (["alerts", "--ack", ""], "--ack", "of 1 or more"),
                (["alerts", "--snooze", "1", "x"], "--snooze", "of 1 or more"), (["forget", "--ended-before", "soon"], "--ended-before", "a number of 0 or more"),
                (["forget", "--ended-before", "nan"], "--ended-before", "a number of 0 or more"), (["replay", "t", "--first-calls", "0"], "--first-calls", "from 1"),
                (["sessions", "--label", "team"], "--label", "KEY:VALUE"), (["serve", "--port", "x"], "--port", "0 to 65535")):
            with self.subTest(words):
                said = self.refused(*words)
                self.assertIn(option, said)
                self.assertIn(range_, said)
                self.assertNotIn("e+308", said)

    def test_a_missing_or_extra_argument_is_named_with_the_usage(self):
        for words, wrong, usage in ((["status"], "session or --last is missing", "status [OPTION]... [session]"),
                                    (["status", "a", "b"], 'unexpected argument "b"', "status [OPTION]... [session]"),
                                    (["sessions", "--limit"], "--limit needs a value", "sessions [OPTION]..."),
                                    (["run", "--"], "command is missing", "run [OPTION]... command..."),
                                    (["cancel"], "session, --last or --turn is missing", "cancel [OPTION]... [session]"),
                                    (["cancel", "--call", "c"], "--call needs --turn", "cancel"),
                                    (["status", "x", "--server", "http://a", "--db", "b"], "cannot be combined with", "status"),
                                    (["backup"], "file is missing", "backup"),
                                    (["config", "--write"], "--write needs --sample", "config")):
            with self.subTest(words):
                said = self.refused(*words)
                self.assertIn(wrong, said)
                self.assertIn(f"Usage: watchdog-monitor {usage}", said)

    def test_an_option_can_be_empty_in_each_form(self):
        for words in (["--config", ""], ["--config="], ["--config=", "--name=x"], ["--name", "x", "--config="]):
            said = run("run", *words, "--", "echo", "--config=")
            self.assertEqual((said.returncode, said.stdout), (0, "--config=\n"), said.stderr)
        self.assertEqual(run("run", "--config=", "echo", "a=").stdout, "a=\n")
        self.assertIn('unknown option "--nope"', self.refused("run", "--nope=", "--", "true"))

    def test_version_as_json_names_what_the_program_is_made_of(self):
        for words in (["--version", "--json"], ["--json", "--version"]):
            said = run(*words)
            self.assertEqual((said.returncode, said.stderr), (DONE, ""))
            versions = json.loads(said.stdout)
            self.assertEqual(list(versions), ["version", "commit", "compiler", "sqlite", "openssl", "schema", "detector"])
            self.assertEqual(versions["version"], run("--version").stdout.strip())
            for name in ("sqlite", "openssl", "schema", "detector"):
                self.assertRegex(versions[name], r"^\d+(\.\d+)*[a-z]*$", name)
            self.assertRegex(versions["compiler"], r"^\w+ \d+")
            self.assertRegex(versions["commit"] or "0" * 40, r"^[0-9a-f]{40}(-dirty)?$")
        self.assertIn("--json needs --version", self.refused("--json"))
        self.assertIn("--json needs --version", self.refused("--json", "sessions"))

    def test_helper_programs_say_what_they_are(self):
        folder = pathlib.Path(PROGRAM).parent
        helpers = sorted(path for path in folder.glob("watchdog-*") if path.name not in ("watchdog-monitor", "watchdog-monitor-static") and os.access(path, os.X_OK))
        self.assertEqual([path.name for path in helpers], ["watchdog-demo-agent", "watchdog-demo-model", "watchdog-example-agent", "watchdog-exec",
                                                           "watchdog-stranger", "watchdog-unruly-agent"])
        version = run("--version").stdout
        for helper in helpers:
            with self.subTest(helper.name):
                ask = lambda *words: subprocess.run([helper, *words], capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                                                    stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]})
                said = ask("--help")
                self.assertEqual((said.returncode, said.stderr), (DONE, ""))
                self.assertTrue(said.stdout.startswith(f"Usage: {helper.name}"), said.stdout)
                said = ask("--version")
                self.assertEqual((said.returncode, said.stdout, said.stderr), (DONE, f"{helper.name} {version}", ""))
                said = ask("--no-such-option")
                self.assertEqual((said.returncode, said.stdout), (USAGE, ""))
                self.assertIn(f"Usage: {helper.name}", said.stderr)

    def test_a_sample_of_the_settings_is_written_where_they_are_looked_for(self):
        with tempfile.TemporaryDirectory() as home:
            environment = {"PATH": os.environ["PATH"], "HOME": home}
            expected = pathlib.Path(home, ".config", "watchdog", "watchdog.toml")
            said = run("config", "--sample", "--write", env=environment)
            self.assertEqual((said.returncode, said.stderr), (DONE, ""))
            self.assertIn(str(expected), said.stdout)
            self.assertEqual(expected.read_text(), run("config", "--sample").stdout)
            self.assertEqual(run("config", "--check", env=environment).stdout, f"{expected}: settings are valid\n")
            expected.write_text("# mine\n")
            said = run("config", "--sample", "--write", env=environment)
            self.assertEqual((said.returncode, expected.read_text()), (REFUSED, "# mine\n"), "it is not written over")
            self.assertIn("exists", said.stderr)
            for more, place in (({"XDG_CONFIG_HOME": home + "/xdg"}, "xdg/watchdog/watchdog.toml"), ({"WATCHDOG_CONFIG": home + "/a/b.toml"}, "a/b.toml")):
                self.assertEqual(run("config", "--sample", "--write", env=environment | more).returncode, DONE)
                self.assertTrue(pathlib.Path(home, place).is_file())
            self.assertEqual(run("config", "--sample", "--write", "--config", home + "/c/d.toml", env=environment).returncode, DONE)
            self.assertTrue(pathlib.Path(home, "c/d.toml").is_file())
            pathlib.Path(home, "plain").touch()
            said = run("config", "--sample", "--write", "--config", home + "/plain/d.toml", env=environment)
            self.assertEqual(said.returncode, REFUSED)
            self.assertIn("plain", said.stderr)

    def test_an_unusable_file_or_address_is_named_with_its_option(self):
        with tempfile.TemporaryDirectory() as folder:
            for words in ("status x", "sessions", "events x", "cancel x", "turns", "forget x --yes"):
                said = run(*words.split(), "--db", folder + "/none.db")
                self.assertEqual((said.returncode, said.stdout), (NOT_FOUND, ""), words)
                self.assertIn(folder + "/none.db. Name it with --db FILE, or ask a monitor with --server URL\n", said.stderr)
                self.assertEqual(os.listdir(folder), [], "nothing was made")
            said = run("backup", "/proc/nowhere/copy.db", "--db", folder + "/none.db")
            self.assertEqual(said.returncode, NOT_FOUND)
        said = run("sessions", "--server", "nonsense")
        self.assertEqual(said.returncode, REFUSED)
        self.assertIn("--server: ", said.stderr)
        self.assertIn("WATCHDOG_SERVER: ", run("sessions", env={**os.environ, "WATCHDOG_SERVER": "nonsense"}).stderr)
        self.assertIn("--upstream: ", run("doctor", "--upstream", "nonsense").stderr)
        said = run("replay", "/nowhere/trace.jsonl")
        self.assertEqual((said.returncode, said.stdout), (NOT_FOUND, ""))

    def test_the_demo_opens_the_proxy_that_its_options_name(self):
        asked = queue.Queue()

        class Upstream(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                asked.put(self.path)
                self.send_error(503)

            def log_message(self, *_):
                pass

        upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        self.addCleanup(upstream.server_close)
        self.addCleanup(upstream.shutdown)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with tempfile.TemporaryDirectory() as folder:
            demo = subprocess.Popen([PROGRAM, "demo", "--port", "0", "--token-file", folder + "/token", "--proxy-port", str(port),
                                     "--upstream", f"http://127.0.0.1:{upstream.server_port}"], stdout=subprocess.PIPE, text=True)
            self.addCleanup(demo.stdout.close)
            self.addCleanup(demo.kill)
            line = next(line for line in demo.stdout if "agents reach" in line)
            self.assertIn(f"http://127.0.0.1:{port}/v1", line)
            self.assertTrue(asked.get(timeout=PATIENCE_S).endswith("/chat/completions"))
            demo.terminate()
            demo.stdout.read()
            self.assertEqual(demo.wait(timeout=PATIENCE_S), DONE)

    def test_a_demo_that_ends_early_leaves_no_agent(self):
        # Its agents hold its standard output, so the end of that is their end.
        for end in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(end), tempfile.TemporaryDirectory() as folder:
                demo = subprocess.Popen([PROGRAM, "demo", "--port", "0", "--token-file", folder + "/token"], stdout=subprocess.PIPE, text=True)
                self.addCleanup(demo.stdout.close)
                self.addCleanup(demo.kill)
                self.assertIn("http://", demo.stdout.readline())
                demo.send_signal(end)
                demo.stdout.read()
                self.assertEqual(demo.wait(timeout=PATIENCE_S), DONE)

    def test_man_reads_the_manual_page(self):
        page = run("man").stdout
        for command in commands():
            self.assertIn("\n.SS " + command.replace("-", "\\-"), page)
        laid_out = subprocess.run(["groff", "-Kutf8", "-man", "-Tutf8", "-ww", "-P-cbou"], input=page, capture_output=True, text=True, check=False)
        self.assertEqual((laid_out.returncode, laid_out.stderr), (0, ""))
        self.assertIn("--on-stuck", laid_out.stdout.replace("‐", "-").replace("−", "-"))

    def complete(self, *words, environment=None):
        script = ('source <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _watchdog_monitor; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        said = subprocess.run(["bash", "-c", script, PROGRAM, PROGRAM, *words], capture_output=True, text=True, check=True, env=environment)
        self.assertEqual(said.stderr, "")
        return said.stdout.split()

    def test_bash_completes_commands_options_and_their_words(self):
        self.assertEqual(sorted(self.complete("")), sorted([*commands(), "--help", "--version"]))
        self.assertEqual(self.complete("sess"), ["sessions"])
        self.assertIn("--on-stuck", self.complete("wait", "--"))
        self.assertEqual(sorted(self.complete("wait", "--on-stuck", "")), ["ask", "fail", "keep"])
        self.assertEqual(self.complete("completion", "--h"), ["--help"])
        self.assertEqual(sorted(self.complete("completion", "")), ["bash", "fish", "zsh"])

    def fish(self, line):
        """The words and their help, as fish offers them."""
        script = f'"$argv[1]" completion fish | source; complete -C {shlex.quote(line)}'
        environment = os.environ | {"PATH": f"{os.path.dirname(os.path.abspath(PROGRAM))}:{os.environ['PATH']}"}
        said = subprocess.run(["fish", "-N", "-c", script, PROGRAM], capture_output=True, text=True, check=True, env=environment)
        self.assertEqual(said.stderr, "")
        return dict((line.split("\t") + [""])[:2] for line in said.stdout.splitlines())

    def test_fish_completes_commands_options_and_their_words(self):
        self.assertLessEqual(set(commands()), set(self.fish("watchdog-monitor ")))
        self.assertIn("--on-stuck", self.fish("watchdog-monitor wait --on"))
        self.assertGreater(len(self.fish("watchdog-monitor wait --on")["--on-stuck"]), 10, "its help")
        self.assertEqual(set(self.fish("watchdog-monitor wait --on-stuck ")), {"ask", "fail", "keep"})
        self.assertEqual(set(self.fish("watchdog-monitor completion ")), {"bash", "fish", "zsh"})

    def zsh(self, line):
        """What zsh shows for a line and the tabulator key."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        child, terminal = pty.fork()
        if child == 0:
            os.environ.update(PS1="", TERM="dumb", ZDOTDIR=folder.name, COLUMNS="200")
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.kill, child, signal.SIGKILL)
        self.addCleanup(os.close, terminal)

        def read_until(word):
            seen = ""
            while word not in seen:
                ready, _, _ = select.select([terminal], [], [], PATIENCE_S)
                self.assertTrue(ready, f"zsh shows only {seen!r}")
                seen += os.read(terminal, 65536).decode(errors="replace")
            return seen
        # The mark is written in two parts, so that the echo of the line does not hold it.
        os.write(terminal, (f"autoload -U compinit; compinit -u -D; source <({shlex.quote(PROGRAM)} completion zsh); "
                            "zstyle ':completion:*' list-prompt ''; LISTMAX=1000; unsetopt beep; print rea''dy\n").encode())
        read_until("ready")
        os.write(terminal, line.encode() + b"\t\t")
        return read_until

    def test_zsh_completes_commands_options_and_their_words(self):
        for line, word in (("watchdog-monitor ", "sessions"), ("watchdog-monitor wait --on-st", "--on-stuck="),
                           ("watchdog-monitor wait --on-stuck ", "keep"), ("watchdog-monitor completion ", "fish")):
            with self.subTest(line):
                self.zsh(line)(word)

    def test_env_prints_what_an_agent_needs(self):
        url = "http://watch.example:3000"
        for agent in ("claude-code", "codex", "gemini-cli", "copilot", "vscode", "opencode"):
            with self.subTest(agent):
                said = run("env", agent, "--server", url + "/")
                self.assertEqual(said.returncode, DONE)
                self.assertIn(url, said.stdout)
                self.assertIn("Authorization=Bearer", said.stderr)
                shown = json.loads(run("env", agent, "--server", url, "--json").stdout)
                self.assertEqual((shown["agent"], shown["server"]), (agent, url))
                self.assertTrue(shown["variables"] or shown["text"])
        text = run("env", "claude-code", "--server", "http://127.0.0.1:3000").stdout
        script = text + "printenv OTEL_EXPORTER_OTLP_ENDPOINT"
        self.assertEqual(subprocess.run(["sh", "-c", script], text=True, capture_output=True).stdout, "http://127.0.0.1:3000\n")
        said = run("env", "codx")
        self.assertEqual(said.returncode, USAGE)
        self.assertIn("codex", said.stderr)
        self.assertEqual(run("env", "codex", "--server", "ftp://x").returncode, REFUSED)
        self.assertEqual(run("env", "codex", "--db", "x.db").returncode, REFUSED)

    def test_where_nobody_answers_is_said(self):
        for command in ("status x", "sessions", "events x", "explain x", "turns", "alerts", "cancel x", "check x", "report", "watch --json",
                        "wait x"):
            with self.subTest(command):
                said = run(*command.split(), "--server", "http://127.0.0.1:1")
                self.assertEqual(said.returncode, UNREACHABLE)
                self.assertIn("127.0.0.1:1", said.stderr)
                self.assertEqual(said.stdout if command != "wait x" else "", "")
        self.assertEqual(run("status", "x", "--server", "ftp://x").returncode, REFUSED)
        self.assertEqual(run("status", "x", "--server", "http://a", "--db", "b").returncode, USAGE)

    def test_the_doctor_needs_a_server_that_answers(self):
        # This machine's own hooks are no matter here.
        self.enterContext(unittest.mock.patch.dict(os.environ, CODEX_HOME="/nowhere"))
        for upstream, code in (("http://127.0.0.1:1", UNREACHABLE), ("ftp://x", USAGE)):
            said = run("doctor", "--upstream", upstream)
            self.assertEqual((said.returncode, said.stdout), (code, ""))
            self.assertIn("http://", said.stderr)
        self.assertEqual(run("doctor", "--upstream", "http://127.0.0.1:1", "--key-file", "/nowhere").returncode, USAGE)
        said = run("doctor", "--upstream", "http://127.0.0.1:1", "--json")
        self.assertEqual((said.returncode, json.loads(said.stdout)["reachable"]), (UNREACHABLE, False))

    def test_the_doctor_shows_the_ways_in_that_are_set_up(self):
        home = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, text in ((".claude/settings.json", '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": '
                            '"curl -s http://far:1/api/hooks/claude-code"}]}]}}'), (".codex/config.toml", "[otel]\nexporter = { otlp-grpc = {} }\n"),
                           ("bin/claude", "")):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(text)
        (home / "bin/claude").chmod(0o755)
        (home / ".claude/projects").mkdir()
        self.enterContext(unittest.mock.patch.dict(os.environ, HOME=str(home), PATH=str(home / "bin"),
                                                   ANTHROPIC_BASE_URL="http://127.0.0.1:3001", CLAUDE_CODE_ENABLE_TELEMETRY="0"))
        for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR"):
            os.environ.pop(name, None)
        said = run("doctor", "--json")
        self.assertEqual(said.returncode, DONE)
        agents = {agent["agent"]: agent for agent in json.loads(said.stdout)["agents"]}
        claude = {"agent": "claude-code", "program": str(home / "bin/claude"), "hooks": 1, "hooksServer": "http://far:1", "telemetry": False,
                  "telemetryIsGrpc": False, "baseUrl": "http://127.0.0.1:3001", "transcripts": str(home / ".claude/projects")}
        self.assertEqual(agents["claude-code"], claude)
        self.assertTrue(agents["codex"]["telemetry"])
        self.assertEqual((agents["codex"]["program"], agents["codex"]["hooks"], agents["codex"]["transcripts"]), (None, 0, None))
        self.assertIn("1 to http://far:1", run("doctor").stdout)
        for variables, grpc in (({}, True), ({"GEMINI_TELEMETRY_OTLP_PROTOCOL": "http"}, False)):
            with unittest.mock.patch.dict(os.environ, variables, GEMINI_TELEMETRY_ENABLED="1"):
                agents = {agent["agent"]: agent for agent in json.loads(run("doctor", "--json").stdout)["agents"]}
                self.assertEqual((agents["gemini-cli"]["telemetryIsGrpc"], agents["codex"]["telemetryIsGrpc"]), (grpc, True), variables)
        self.assertIn("over HTTP only", run("doctor").stdout)

    def test_the_doctor_says_which_hooks_codex_skips(self):
        trusted = "sha256:ab539d46dfeb4d00b592ae9ea0abe3bd88f10faa1ad1fa0e2f2f4440fc132c7c"  # by Codex 0.169
        hook = [{"hooks": [{"type": "command", "command": "curl http://127.0.0.1:3000/api/hooks/codex"}]}]
        home = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(unittest.mock.patch.dict(os.environ, CODEX_HOME=str(home)))
        (home / "hooks.json").write_text(json.dumps({"hooks": {"Stop": hook, "PreToolUse": hook}}))
        (home / "config.toml").write_text(f'[hooks.state."{home}/hooks.json:stop:0:0"]\ntrusted_hash = "{trusted}"\n')
        found = json.loads(run("doctor", "--upstream", "http://127.0.0.1:1", "--json").stdout)["codexHooks"]
        self.assertEqual((found["reporting"], found["untrusted"]), (["PreToolUse", "Stop"], ["PreToolUse"]))
        self.assertIn("SessionEnd", found["missing"])
        said = run("doctor", "--upstream", "http://127.0.0.1:1").stdout
        self.assertRegex(said, r"not trusted +PreToolUse\n")
        self.assertIn("Trust all", said)


class WithAMonitor(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Server(PROGRAM))
        self.where = ("--server", f"http://127.0.0.1:{self.server.port}")
        self.report("runs", {"kind": "heartbeat", "source": "loop", "iteration": 1, "phase": "plan"},
                    {"kind": "state_change", "type": "planned", "data": {"steps": 2}})

    def report(self, session, *events):
        asked = urllib.request.Request(f"{self.where[1]}/api/autonomous/sessions/{session}/events", json.dumps(events).encode())
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            self.assertEqual(answer.status, 200)

    def environment(self, **more):
        return {**os.environ, "WATCHDOG_TOKEN": self.server.secret, **more}

    def test_each_gives_json(self):
        objects = {"status runs": 1, "sessions": 1, "events runs": 2, "explain runs": 1, "turns": 0, "alerts": 1, "report": 1,
                   "wait runs --for health=progressing": 1, "recovery": 1}
        for command, count in objects.items():
            with self.subTest(command):
                said = run(*command.split(), "--json", *self.where)
                self.assertEqual((said.returncode, said.stderr), (DONE, ""))
                self.assertEqual([type(json.loads(line)) for line in said.stdout.splitlines()], [dict] * count)
        said = run("config", "--json")
        self.assertIn("settings", json.loads(said.stdout))
        said = run("cancel", "runs", "--json", *self.where, env=self.environment())
        self.assertEqual((said.returncode, json.loads(said.stdout)["sessionId"]), (DONE, "runs"))
        said = run("audit", "--json", *self.where, env=self.environment())
        self.assertEqual(said.returncode, DONE)
        self.assertIn("cancel", said.stdout)

    def test_the_activity_of_the_model_server_is_shown(self):
        self.report("runs", {"kind": "evidence", "call_id": "r", "state": "reading", "done": 41216, "total": 61440, "left_ms": 118000})
        said = run("status", "runs", *self.where)
        self.assertIn("model server     reads the prompt: 41,216 of 61,440 tokens, about 2 min left\n", said.stdout)

    def test_the_doctor_tells_what_it_found_and_which_limits_bite(self):
        said = run("doctor", "--upstream", self.where[1] + "/v1", "--json")
        self.assertEqual((said.returncode, said.stderr), (DONE, ""))
        found = json.loads(said.stdout)
        self.assertEqual((found["url"], found["kind"], found["reachable"]), (self.where[1], "unknown", True))
        self.assertIn("bodyTimeout", [limit["name"] for limit in found["clientLimits"]])
        measured = {limit["client"]: limit["measured"] for limit in found["clientLimits"]}
        self.assertRegex(measured["Codex"], r"^Codex \d+\.\d+")
        self.assertIsNone(measured["LangChain"])
        said = run("doctor", "--upstream", self.where[1])
        self.assertEqual(said.returncode, DONE)
        for words in ("prompt progress", "What to change", "stream_chunk_timeout"):
            self.assertIn(words, said.stdout)

    def test_a_list_reports_that_entries_are_not_shown(self):
        for number in range(4):
            self.report(f"more-{number}", *[{"kind": "state_change", "type": "step"}] * 3)
        for words, note in ((("sessions", "--limit", 2), "3 more sessions are not shown; use --limit 5, "),
                            (("sessions", "--limit", 4), "1 more session is not shown; use --limit 5, "),
                            (("sessions", "--limit", 2, "--search", "more"), "2 more sessions are not shown; use --limit 4, "),
                            (("events", "more-0", "--limit", 2), "later events are not shown; use --all, or --after ")):
            with self.subTest(words):
                said = run(*words, *self.where)
                self.assertEqual((said.returncode, said.stderr), (DONE, ""))
                self.assertIn("\n" + note, said.stdout)
                said = run(*words, "--json", *self.where)
                self.assertIn("watchdog-monitor: " + note, said.stderr)
                self.assertNotIn("not shown", said.stdout)
        for words in (("sessions", "--limit", 5), ("sessions",), ("sessions", "--limit", 4, "--search", "more"), ("events", "more-0", "--limit", 3),
                      ("events", "more-0", "--kind", "state_change", "--limit", 3)):
            said = run(*words, *self.where)
            self.assertEqual((said.returncode, said.stderr), (DONE, ""))
            self.assertNotIn("not shown", said.stdout, words)
        for number in range(3):
            run("cancel", f"more-{number}", *self.where, env=self.environment())
        said = run("audit", "--limit", 1, *self.where, env=self.environment())
        self.assertRegex(said.stdout, r"\n\d+ earlier acts are not shown; use --all\n$")

    def test_a_token_is_found_beside_the_database_of_the_monitor_that_is_asked(self):
        with tempfile.TemporaryDirectory() as home:
            bare = {"PATH": os.environ["PATH"], "HOME": home}
            said = run("cancel", "runs", *self.where, env=bare)
            self.assertEqual((said.returncode, said.stderr), (DONE, ""))
            said = run("audit", *self.where, env=bare)
            self.assertIn("cancel", said.stdout)
            # A token of another monitor is in the usual place: it is not this one's.
            usual = pathlib.Path(home, ".local", "share", "watchdog")
            usual.mkdir(parents=True, mode=0o700)
            pathlib.Path(usual, "watchdog.db-token").write_text("x" * 43 + "\n")
            pathlib.Path(usual, "watchdog.db-token").chmod(0o600)
            for _ in range(30):  # none of these is a wrong token that would count
                self.assertEqual(run("audit", *self.where, env=bare).returncode, DONE)
            # If the user names a token, the command tries no other one.
            said = run("audit", *self.where, env=bare | {"WATCHDOG_TOKEN": "y" * 43})
            self.assertEqual((said.returncode, said.stdout), (REFUSED, ""))
            self.assertIn("--token-file FILE", said.stderr)
            self.assertIn(os.path.join(self.server.folder.name, "w.db-token"), said.stderr)

    def test_a_file_that_another_user_names_is_not_read(self):
        """A server of another user names a file of ours: its secret must not go there."""
        own = str(os.getuid())
        # Only root can start a server as somebody else; whose port it is is a test of its own.
        servers = [(own, ["None", "Bearer " + "z" * 43])] + ([("65534", ["None"])] if own == "0" else [])
        with tempfile.TemporaryDirectory() as home:
            secret = pathlib.Path(home, "mine-token")
            secret.write_text("z" * 43 + "\n")
            secret.chmod(0o600)
            script = ("import http.server, json, os, sys\n"
                      "class Evil(http.server.BaseHTTPRequestHandler):\n"
                      "  def do_POST(self):\n"
                      "    print(self.headers.get('Authorization'), flush=True)\n"
                      "    body = json.dumps({'error': {'code': 'refused', 'message': 'no', 'tokenFile': sys.argv[1]}}).encode()\n"
                      "    self.send_response(401); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)\n"
                      "  def log_message(self, *_): pass\n"
                      "os.setuid(int(sys.argv[2]))\n"
                      "server = http.server.HTTPServer(('127.0.0.1', 0), Evil)\n"
                      "print(server.server_port, flush=True)\n"
                      "server.serve_forever()\n")
            for user, shown in servers:
                with self.subTest(user):
                    server = subprocess.Popen([sys.executable, "-c", script, secret, user], stdout=subprocess.PIPE, text=True)
                    self.addCleanup(server.wait)
                    self.addCleanup(server.stdout.close)
                    self.addCleanup(server.kill)
                    where = f"http://127.0.0.1:{server.stdout.readline().strip()}"
                    said = run("cancel", "runs", "--server", where, env={"PATH": os.environ["PATH"], "HOME": home})
                    # A process of another user is not taken for a monitor.
                    self.assertEqual(said.returncode, REFUSED if user == own else UNREACHABLE, said.stderr)
                    server.terminate()
                    self.assertEqual(server.stdout.read().split("\n")[:-1], shown)

    def test_a_missing_session_or_token_is_reported(self):
        for command in ("status", "events", "explain", "cancel", "events --follow"):
            with self.subTest(command):
                said = run(*command.split(), "nobody", *self.where, env=self.environment())
                self.assertEqual((said.returncode, said.stdout), (NOT_FOUND, ""))
                self.assertIn("nobody", said.stderr)
        said = run("cancel", "runs", *self.where, "--token-file", "/nowhere")
        self.assertEqual(said.returncode, NOT_FOUND)
        said = run("cancel", "runs", *self.where, env=self.environment(WATCHDOG_TOKEN="wrong"))
        self.assertEqual(said.returncode, REFUSED)
        self.assertIn("token", said.stderr)

    def test_a_check_that_cannot_be_made_fails_and_says_why(self):
        said = run("check", "runs", *self.where)
        self.assertEqual((said.returncode, said.stdout), (UNREACHABLE, ""))
        self.assertIn("model", said.stderr)

    def test_a_check_is_waited_for_and_told(self):
        model = Model()
        self.addCleanup(model.server_close)
        self.addCleanup(model.shutdown)
        self.server.crash()
        self.server.more = {"OPENAI_BASE_URL": model.url, "WATCHDOG_CHECKS_BASE_URL": model.url,
                            "WATCHDOG_CHECKS_ON_SUSPICION": "false"}
        self.server.start()
        for session, goal in (("a", "loops"), ("b", "is not allowed")):
            asked = urllib.request.Request(f"{self.where[1]}/api/autonomous/sessions",
                                           json.dumps({"sessionId": session, "task": goal}).encode())
            urllib.request.urlopen(asked, timeout=PATIENCE_S).close()
            self.report(session, {"kind": "state_change", "type": "step"})
        said = run("check", "a", *self.where)
        self.assertEqual(said.returncode, DONE)
        self.assertRegex(said.stdout, r"done: it is stuck in a loop.*\n  reads the same file again\n$")
        said = run("check", "a", "--json", *self.where)
        self.assertEqual((said.returncode, json.loads(said.stdout)["status"]), (DONE, "B"))
        self.assertEqual(run("check", "b", *self.where).returncode, FAILED)
        said = run("check", "a", "--no-wait", "--json", *self.where)
        self.assertEqual((said.returncode, json.loads(said.stdout)["sessionId"]), (DONE, "a"))

    def test_completion_knows_the_sessions(self):
        self.report("other", {"kind": "start"})
        environment = {**os.environ, "WATCHDOG_SERVER": self.where[1]}
        self.assertEqual(sorted(OfThemselves.complete(self, "status", "", environment=environment)), ["other", "runs"])

    def lines(self, *words):
        process = subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, text=True, bufsize=1)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def test_events_are_followed_over_a_restart(self):
        following = self.lines("events", "runs", "--follow", "--json", *self.where)
        took = lambda: json.loads(following.stdout.readline())
        self.assertEqual([took()["kind"], took()["kind"]], ["heartbeat", "state_change"])
        self.report("runs", {"kind": "state_change", "type": "second"})
        self.assertEqual(took()["type"], "second")
        self.server.crash()
        self.server.start()
        self.report("runs", {"kind": "state_change", "type": "third"})
        self.assertEqual(took()["type"], "third")
        following.send_signal(signal.SIGINT)
        self.assertEqual(following.wait(), -signal.SIGINT)

    def test_events_of_a_file_are_followed(self):
        following = self.lines("events", "runs", "--follow", "--kind", "state_change", "--db", os.path.join(self.server.folder.name, "w.db"))
        self.assertIn("planned", following.stdout.readline())
        self.report("runs", {"kind": "heartbeat", "source": "loop"}, {"kind": "state_change", "type": "second"})
        self.assertIn("second", following.stdout.readline())

    def test_watch_shows_each_row_when_it_changes(self):
        watching = self.lines("watch", "--json", *self.where)
        self.assertEqual(json.loads(watching.stdout.readline())["sessionId"], "runs")
        self.report("later", {"kind": "start"})
        self.assertEqual(json.loads(watching.stdout.readline())["sessionId"], "later")

    def screen(self, columns, *words):
        """What a command writes to a terminal of so many columns."""
        child, terminal = pty.fork()
        if child == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.execve(PROGRAM, [PROGRAM, *words, *self.where], self.environment(TERM="xterm", NO_COLOR="1"))
        text = b""
        with contextlib.suppress(OSError):
            while piece := os.read(terminal, 65536):
                text += piece
        os.close(terminal)
        os.waitpid(child, 0)
        return text.decode().replace("\r", "").splitlines()

    def test_lists_fit_into_80_columns(self):
        agent = "an agent with quite a long name, as people give them"
        asked = urllib.request.Request(f"{self.where[1]}/api/autonomous/sessions",
                                       json.dumps({"sessionId": "01M82H6AY8PQSF3B4ZRQ1ANC79", "agent": agent}).encode())
        urllib.request.urlopen(asked, timeout=PATIENCE_S).close()
        self.report("01M82H6AY8PQSF3B4ZRQ1ANC79", {"kind": "end", "outcome": "failed", "reason": "error", "error": "so many words " * 20})
        narrow = self.screen(80, "sessions")
        self.assertEqual([line for line in narrow if len(line) > 80], [])
        text = "\n".join(narrow)
        self.assertRegex(text, r"(?m)^failed +\S+ s +.*01M82H6AY8PQSF3B4ZRQ1ANC79$")
        self.assertIn("so many words so many words", text, "the reason is not what is cut")
        self.assertNotIn(f" {agent} ", text)
        self.assertTrue(all(agent in line for line in self.screen(250, "sessions") if "01M82" in line))
        self.assertIn(agent, run("sessions", *self.where).stdout, "what is not a terminal gets everything")

    def test_the_live_list_obeys_its_keys_and_gives_the_terminal_back(self):
        self.assertEqual(run("watch", *self.where).returncode, USAGE, "there is no terminal")
        child, terminal = pty.fork()
        if child == 0:
            os.execve(PROGRAM, [PROGRAM, "watch", *self.where], self.environment(TERM="xterm"))
        self.addCleanup(os.close, terminal)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 100, 0, 0))
        seen = ""

        def until(text):
            nonlocal seen
            patient_until = time.monotonic() + PATIENCE_S
            while text not in seen:
                self.assertLess(time.monotonic(), patient_until, f"{text!r} does not come: {seen[-2000:]!r}")
                select.select([terminal], [], [], 1)
                with contextlib.suppress(OSError):
                    seen += os.read(terminal, 65536).decode(errors="replace")
            seen = seen.split(text, 1)[1]

        def press(keys):
            os.write(terminal, keys.encode())

        until("\x1b[?1049h")
        until("0 need you, of 1 session; by state")
        until("runs")
        press("s")
        until("by session")
        press("/nob\r")
        until('with "nob"')
        press("/")
        until("/nob_")
        press("\x1b")
        until("enter: open")
        press("\r")
        until("planned")
        press("\x1b")
        until("enter: open")
        press("c")
        until("Ask runs to stop?")
        press("y")
        until("cancel requested")
        press("q")
        until("\x1b[?1049l")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), DONE)
        flags = termios.tcgetattr(terminal)[3]
        self.assertTrue(flags & termios.ICANON and flags & termios.ECHO)


unittest.main()
