#!/usr/bin/env python3
"""The evidence bundle of a session: the route, the command, and what git may be asked."""

import http.client
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

from server import Server

PROGRAM = sys.argv.pop(1)
PATIENCE_S = 60
DONE, USAGE, REFUSED, NOT_FOUND = 0, 2, 3, 5
SESSION = "5e551011-1111-4222-8333-444444444444"
SECRET = "ghp_" + "Ab3dEf6hIj" * 3 + "Kl9mNo"
NAMES = ["README.md", "session.json", "explain.json", "events.jsonl", "processes.txt", "git.txt"]


class Bundle(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Server(PROGRAM))
        self.url = f"http://127.0.0.1:{self.server.port}"
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.shop = self.folder / "my shop"
        self.shop.mkdir()
        # The agent's hooks share a connection, whose other end is this process.
        self.agent = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        self.addCleanup(self.agent.close)

    def hook(self, event, **more):
        body = {"hook_event_name": event, "session_id": SESSION, "cwd": str(self.shop)} | more
        self.agent.request("POST", "/api/hooks/claude-code", json.dumps(body), {"Content-Type": "application/json"})
        answer = self.agent.getresponse()
        self.assertEqual((answer.status, answer.read() and 1), (200, 1))

    def work(self):
        """A session that reads a file with a secret in its name, and whose process is found."""
        self.hook("UserPromptSubmit", prompt="Mend the gate")
        # A process that is younger than the first report is not taken for the agent.
        for number in range(3):
            self.hook("PreToolUse", tool_name="Bash", tool_use_id=f"t{number}", tool_input={"command": f"curl -H 'Authorization: Bearer {SECRET}' x"})
            time.sleep(0.05)

    def run_it(self, *words, place=None, **more):
        place = place or ("--server", self.url)
        return subprocess.run([PROGRAM, *map(str, words), *place], capture_output=True, check=False, timeout=PATIENCE_S,
                              stdin=subprocess.DEVNULL, cwd=self.folder, env=os.environ | {"WATCHDOG_TOKEN": self.server.secret} | more)

    def files_of(self, archive):
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            self.assertEqual({pathlib.Path(name).parent.name for name in tar.getnames()}, {"watchdog-5e551011"})
            return {pathlib.Path(one.name).name: tar.extractfile(one).read().decode() for one in tar.getmembers()}

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.shop, check=True, capture_output=True)

    def test_it_is_saved_and_says_what_is_in_it(self):
        self.work()
        said = self.run_it("bundle", "5e55")
        self.assertEqual((said.returncode, said.stderr), (DONE, b""))
        lines = said.stdout.decode().splitlines()
        name = "watchdog-my-shop-5e551011.tar"
        self.assertRegex(lines[0], f"^{name}: [0-9,]+ bytes$")
        self.assertEqual([line.split()[0] for line in lines[2:8]], NAMES)
        file = self.folder / name
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        files = self.files_of(file.read_bytes())
        self.assertEqual(list(files), NAMES)
        self.assertNotIn(SECRET, "".join(files.values()))
        self.assertIn("- call: Bash for ", files["README.md"])
        self.assertEqual(json.loads(files["session.json"])["sessionId"], SESSION)
        self.assertEqual(json.loads(files["explain.json"])["session"], SESSION)
        kinds = [json.loads(line)["kind"] for line in files["events.jsonl"].splitlines()]
        self.assertEqual(kinds.count("tool_call"), 3)

    def test_no_file_is_replaced_unless_it_is_asked_for(self):
        self.work()
        file = self.folder / "own.tar"
        file.write_text("mine")
        said = self.run_it("bundle", SESSION, "-o", file)
        self.assertEqual((said.returncode, file.read_text()), (REFUSED, "mine"))
        self.assertIn(b"it exists and stays as it is. Use --force", said.stderr)
        elsewhere = self.folder / "elsewhere"
        (self.folder / "link.tar").symlink_to(elsewhere)
        self.assertEqual(self.run_it("bundle", SESSION, "-o", self.folder / "link.tar").returncode, REFUSED)
        self.assertFalse(elsewhere.exists())
        said = self.run_it("bundle", SESSION, "-o", self.shop, "--force")
        self.assertEqual(said.returncode, REFUSED)
        self.assertIn(b"it is not a regular file", said.stderr)
        said = self.run_it("bundle", SESSION, "-o", file, "--force", "--json")
        self.assertEqual(said.returncode, DONE, said.stderr)
        shown = json.loads(said.stdout)
        self.assertEqual((shown["session"], shown["file"], shown["bytes"]), (SESSION, str(file), file.stat().st_size))
        self.assertEqual([one["name"] for one in shown["files"]], NAMES)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["link.tar", "my shop", "own.tar"])

    def test_it_goes_to_standard_output_and_comes_from_a_file_of_the_store(self):
        self.work()
        here = self.files_of(self.run_it("bundle", "--last", "-o", "-").stdout)
        database = pathlib.Path(self.server.folder.name, "w.db")
        there = self.files_of(self.run_it("bundle", SESSION, "-o", "-", place=("--db", database)).stdout)
        self.assertEqual(list(there), list(here))
        self.assertEqual(there["events.jsonl"], here["events.jsonl"])
        self.assertEqual(self.run_it("bundle", SESSION, "-o", "-", "--json").returncode, USAGE)
        self.assertEqual(self.run_it("bundle").returncode, USAGE)
        self.assertEqual(self.run_it("bundle", "nobody").returncode, NOT_FOUND)

    def test_it_shows_the_process_that_the_monitor_found_and_what_changed(self):
        if shutil.which("git") is None:
            self.skipTest("git is not installed")
        self.git("init", "-q", ".")
        (self.shop / "gate.py").write_text("open\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "first")
        (self.shop / "gate.py").write_text("shut\n")
        trap = self.folder / "ran"
        self.git("config", "core.fsmonitor", f"touch '{trap}'")
        self.work()
        files = self.files_of(self.run_it("bundle", SESSION, "-o", "-").stdout)
        self.assertIn(f"\n{os.getpid()}  ", files["processes.txt"])
        self.assertIn("\ngit status --porcelain\n M gate.py\n", files["git.txt"])
        self.assertIn(" gate.py | 2 +-\n", files["git.txt"])
        self.assertFalse(trap.exists())
        files = self.files_of(self.run_it("bundle", SESSION, "-o", "-", "--no-git").stdout)
        self.assertEqual(files["git.txt"], "Git was not asked: it was left out on request.\n")

    def test_a_look_at_a_trouble_is_kept_until_the_session_is_forgotten(self):
        """The agent is a process of its own here, and is gone when the bundle is made."""
        script = ("import json, os, signal, sys, time, http.client\nhost, folder, session = sys.argv[1:]\n"
                  "link = http.client.HTTPConnection(host)\ndef hook(name, **more):\n"
                  "    link.request('POST', '/api/hooks/claude-code', json.dumps({'hook_event_name': name, 'session_id': session, 'cwd': folder} | more))\n"
                  "    link.getresponse().read()\ntime.sleep(0.1)\nhook('SessionStart', source='startup')\nhook('UserPromptSubmit', prompt='Mend it')\n"
                  "for number in range(12):\n    of = {'tool_name': 'Bash', 'tool_use_id': f't{number}', 'tool_input': {'command': 'make'}}\n"
                  "    hook('PreToolUse', **of)\n    hook('PostToolUse', **of, tool_response='2 failed')\ntime.sleep(600)\n")
        agent = subprocess.Popen([sys.executable, "-c", script, f"127.0.0.1:{self.server.port}", str(self.shop), SESSION])
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        looks = pathlib.Path(self.server.folder.name, "w.db-looks")

        def until(found):
            end = time.monotonic() + PATIENCE_S
            while not (value := found()):
                self.assertLess(time.monotonic(), end, list(looks.glob("*")))
                time.sleep(0.1)
            return value

        look = until(lambda: next(looks.glob("*.txt"), None) if looks.exists() else None)
        self.assertRegex(look.name, f"^{SESSION}~looping-[0-9]+.txt$")
        self.assertEqual((looks.stat().st_mode & 0o777, look.stat().st_mode & 0o777), (0o700, 0o600))
        agent.kill()
        agent.wait()
        for place in (None, ("--db", pathlib.Path(self.server.folder.name, "w.db"))):
            files = self.files_of(self.run_it("bundle", SESSION, "-o", "-", place=place).stdout)
            seen = files[f"at-{look.name.partition('~')[2]}"]
            self.assertIn(f"\n{agent.pid}  python3", seen)
        self.server.crash()
        self.server.start()
        time.sleep(1)
        self.assertTrue(look.exists(), "a restart keeps it")
        self.assertEqual(self.run_it("forget", SESSION, "--force", "--yes").returncode, DONE)
        self.assertEqual(list(looks.glob("*")), [])

    def test_git_is_not_asked_about_a_folder_that_a_reporter_names(self):
        said = subprocess.run(["git", "init", "-q", str(self.shop)], check=False, capture_output=True)
        self.assertEqual(said.returncode, DONE)
        self.agent.request("POST", "/api/autonomous/sessions", json.dumps({"sessionId": "claimed", "labels": {"cwd": str(self.shop)}}))
        self.agent.getresponse().read()
        self.agent.request("GET", "/api/autonomous/sessions/claimed/bundle")
        answer = self.agent.getresponse()
        self.assertEqual(answer.getheader("Content-Disposition"), 'attachment; filename="watchdog-my-shop-claimed.tar"')
        with tarfile.open(fileobj=io.BytesIO(answer.read())) as tar:
            text = tar.extractfile("watchdog-claimed/git.txt").read().decode()
        self.assertRegex(text, "^Git was not asked: the monitor has not found the agent's process on this machine")

    def claim(self, session, source, pid, name="process", user=None):
        """A reporter of this user says that a process is the session's, and which folder it works in."""
        said = ("import http.client, json, os, pathlib, sys\n"
                "port, session, source, name, pid, folder, user = sys.argv[1:]\n"
                "if user: os.setgid(int(user)); os.setuid(int(user))\n"
                "def post(path, body):\n"
                "    c = http.client.HTTPConnection('127.0.0.1', int(port)); c.request('POST', path, json.dumps(body)); return c.getresponse().status\n"
                "process = {'pid': int(pid), 'start_ticks': int(pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(') ')[2].split()[19]),\n"
                "           'boot_id': pathlib.Path('/proc/sys/kernel/random/boot_id').read_text().strip(), 'host': os.uname().nodename}\n"
                "post('/api/autonomous/sessions', {'sessionId': session, 'labels': {'cwd': folder}})\n"
                "sys.exit(post(f'/api/autonomous/sessions/{session}/events?source={source}', {'kind': 'start', 'name': name} | process) != 200)\n")
        subprocess.run([sys.executable, "-c", said, str(self.server.port), session, source, name, str(pid), str(self.shop), user or ""], check=True)

    def text_of(self, session, file):
        self.agent.request("GET", f"/api/autonomous/sessions/{session}/bundle")
        answer = self.agent.getresponse()
        archive = answer.read()
        if answer.status == 404:
            return ""
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            return next(tar.extractfile(one).read().decode() for one in tar.getmembers() if one.name.endswith("/" + file))

    def test_a_reporter_cannot_say_that_the_monitor_found_a_process(self):
        subprocess.run(["git", "init", "-q", str(self.shop)], check=True, capture_output=True)
        bystander = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(bystander.wait)
        self.addCleanup(bystander.kill)
        unknown = "^Git was not asked: the monitor has not found the agent's process on this machine"
        for source in ("agent", "run", "mcp", "transcript"):
            self.claim(f"of-{source}", source, bystander.pid)
            self.assertRegex(self.text_of(f"of-{source}", "git.txt"), unknown, source)
        # A proxy finds the processes of its clients, and sends what it finds.
        self.claim("of-proxy", "proxy", bystander.pid)
        self.assertIn("git status", self.text_of("of-proxy", "git.txt"))
        if os.getuid() == 0:
            self.claim("of-a-stranger", "proxy", bystander.pid, user="65534")
            self.assertRegex(self.text_of("of-a-stranger", "git.txt"), unknown)

    def test_no_report_puts_another_process_into_a_session_of_run(self):
        wrapper = subprocess.Popen([PROGRAM, "run", "--session", "wrapped", "--server", self.url, "--", "sleep", "1000"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=os.environ | {"WATCHDOG_TOKEN": self.server.secret})
        self.addCleanup(wrapper.wait)
        self.addCleanup(wrapper.terminate)
        bystander = subprocess.Popen(["sleep", "1001"])
        self.addCleanup(bystander.wait)
        self.addCleanup(bystander.kill)
        end = time.monotonic() + PATIENCE_S
        while f"\n{wrapper.pid}  " not in self.text_of("wrapped", "processes.txt"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        for source in ("agent", "run", "transcript"):
            for name in ("", "process"):
                self.claim("wrapped", source, bystander.pid, name)
                self.assertIn(f"\n{wrapper.pid}  ", self.text_of("wrapped", "processes.txt"), (source, name))


if __name__ == "__main__":
    unittest.main()
