#!/usr/bin/env python3
"""What `cancel --kill` ends, what it names before, and what it refuses: with real processes."""

import ctypes
import http.client
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from server import Server

PROGRAM = os.path.abspath(sys.argv.pop(1))
PATIENCE_S = 60
SESSIONS = "/api/autonomous/sessions"
# An agent that sends its own hooks. It starts what CHILD says, then writes its pid (here) and its child's to the file PIDS, and works for ever.
AGENT = r"""
import http.client, json, os, subprocess, sys, time
host, session, pids = sys.argv[1:4]
time.sleep(0.1)  # As agents, it takes a moment before it says anything.
claimed = os.environ.get("CLAIM", "")
if claimed == "parent":
    claimed = str(os.getppid())
for name in ("PreToolUse", "PostToolUse"):
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("POST", "/api/hooks/claude-code" + ("?pid=" + claimed if claimed else ""),
                       json.dumps({"session_id": session, "hook_event_name": name, "tool_name": "Bash", "tool_use_id": name}))
    connection.getresponse().read()
child = os.environ.pop("CHILD", "")  # A child that is such an agent starts no child.
started = subprocess.Popen(child, shell=True, start_new_session="SETSID" in os.environ, stdout=subprocess.DEVNULL) if child else None
with open(pids + ".new", "w") as file:
    file.write(f"{os.getpid()} {started.pid if started else 0}")
os.rename(pids + ".new", pids)
time.sleep(1000)
"""


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


class KillTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(Server(PROGRAM))
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.agent = self.folder / "agent.py"
        self.agent.write_text(AGENT)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request(method, path, json.dumps(body) if body is not None else None)
        return json.loads(connection.getresponse().read())

    def command(self, *words):
        """The command, in a process group and a session of its own."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WATCHDOG_")}
        token = os.path.join(self.server.folder.name, "w.db-token")
        return subprocess.run([PROGRAM, *words, "--server", f"http://{self.server.host}", "--token-file", token],
                              capture_output=True, text=True, env=environment, timeout=PATIENCE_S, start_new_session=True)

    def kill(self, session, *words):
        return self.command("cancel", session, "--kill", "--grace", "0", *words)

    def line(self, session):
        """The words of a shell that start an agent of this session."""
        return f"{sys.executable} {self.agent} {self.server.host} {session} {self.folder / session}"

    def start(self, script, *shell, environment=None, **more):
        process = subprocess.Popen([*(shell or ("sh", "-c")), script], env=os.environ | (environment or {}), **more)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def pids(self, session):
        """The agent's pid and its child's, as they see them, once both run."""
        file = self.folder / session
        end = time.monotonic() + PATIENCE_S
        while not file.exists():
            self.assertLess(time.monotonic(), end, session)
            time.sleep(0.02)
        agent, child = map(int, file.read_text().split())
        for pid in filter(None, (agent, child)):
            self.addCleanup(self.finish, pid)
        return agent, child

    @staticmethod
    def finish(pid):
        if runs(pid):
            os.kill(pid, signal.SIGKILL)

    def found(self, session, pid=None):
        """The pid that the monitor found last. It looks beside its answers: this waits, for this pid where it is named."""
        end = time.monotonic() + PATIENCE_S
        while True:
            starts = self.ask("GET", f"{SESSIONS}/{session}/events?kind=start&limit=1000")["events"]
            last = next((event["pid"] for event in reversed(starts) if "known_by" in event), None)
            if last is not None and pid in (None, last):
                return last
            self.assertLess(time.monotonic(), end, starts)
            time.sleep(0.02)

    def ended(self, *pids):
        end = time.monotonic() + PATIENCE_S
        for pid in pids:
            while runs(pid):
                self.assertLess(time.monotonic(), end, pid)
                time.sleep(0.02)

    def refused(self, said, *parts):
        self.assertEqual(said.returncode, 1, said)
        for part in ("nothing was ended", *parts):
            self.assertIn(part, said.stderr)

    def test_neighbours_in_the_same_group_and_the_monitor_live_on(self):
        # All are in the group of this test, as the monitor is.
        script = self.start("; ".join(f"CHILD='exec sleep 1000' {self.line(name)} &" for name in "abc").replace("&;", "&") + " wait")
        agents = {name: self.pids(name) for name in "abc"}
        self.assertEqual(len({os.getpgid(pid) for pair in agents.values() for pid in pair} | {os.getpgid(self.server.process.pid)}), 1)
        said = self.kill("b")
        self.assertEqual(said.returncode, 0, said)
        self.ended(*agents["b"])
        told = said.stdout + said.stderr
        for part in (f"process {agents['b'][0]} of ", f"process {agents['b'][1]} of ", "sleep 1000", "agent.py", f"ended process {agents['b'][0]}"):
            self.assertIn(part, told)
        self.assertLess(told.index("ending:"), told.index("ended process"))
        for pid in (*agents["a"], *agents["c"], script.pid, self.server.process.pid):
            self.assertTrue(runs(pid), pid)
            self.assertNotIn(f"process {pid} ", told)

    def test_a_child_with_a_session_of_its_own_ends_too(self):
        self.start("exec " + self.line("s"), environment={"CHILD": "trap '' TERM; sleep 1000 & wait; sleep 1000", "SETSID": "1"})
        agent, child = self.pids("s")
        self.assertNotEqual(os.getsid(child), os.getsid(agent))
        self.assertEqual(self.kill("s").returncode, 0)
        self.ended(agent, child)

    def test_a_shell_with_job_control_and_its_other_jobs_live_on(self):
        for shell in (("bash", "-m", "-c"), ("bash", "--norc", "-i", "-c")):
            with self.subTest(shell=shell):
                session = f"job{len(shell)}"
                job = self.folder / f"{session}-job"
                terminal = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
                script = self.start(f"set -m; sleep 1000 & echo $! >{job}; {self.line(session)} | sleep 1000 & wait", *shell, **terminal)
                agent, _ = self.pids(session)
                neighbour = int(job.read_text())
                self.addCleanup(self.finish, neighbour)
                # The pipe's reader is in the agent's group and not below it.
                group = [int(name) for name in os.listdir("/proc") if name.isdigit() and runs(name) and os.getpgid(int(name)) == os.getpgid(agent)]
                for pid in group:
                    self.addCleanup(self.finish, pid)
                self.assertGreater(len(group), 1)
                self.assertEqual(self.kill(session).returncode, 0)
                self.ended(agent)
                for pid in (script.pid, neighbour, *(set(group) - {agent})):
                    self.assertTrue(runs(pid), pid)

    def test_make_and_its_other_recipes_live_on(self):
        (self.folder / "Makefile").write_text(f"all: agent other\nagent:\n\t-{self.line('s')}\nother:\n\tsleep 1000\n")
        make = self.start("exec make -j2", cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(os.killpg, make.pid, signal.SIGKILL)
        agent, _ = self.pids("s")
        self.assertEqual(self.kill("s").returncode, 0)
        self.ended(agent)
        children = pathlib.Path(f"/proc/{make.pid}/task/{make.pid}/children").read_text().split()
        self.assertTrue(runs(make.pid) and any(map(runs, children)), children)

    def test_the_first_process_of_a_container_ends_with_all_in_it(self):
        words = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]
        tried = subprocess.run([*words, "true"], capture_output=True, text=True)
        if tried.returncode != 0:
            self.skipTest(f"this machine permits no container, so the test of one DID NOT RUN: {tried.stderr.strip()}")
        container = self.start("exec " + self.line("s"), *words, "sh", "-c", environment={"CHILD": "exec sleep 1000"})
        self.assertEqual(self.pids("s")[0], 1, "as it sees itself")
        agent = self.found("s")
        self.addCleanup(self.finish, agent)
        self.assertNotEqual(agent, 1)
        children = [int(pid) for pid in pathlib.Path(f"/proc/{agent}/task/{agent}/children").read_text().split()]
        self.assertTrue(children)
        said = self.kill("s")
        self.assertEqual(said.returncode, 0, said)
        self.assertIn(f"ended process {agent}", said.stdout)
        self.ended(agent, *children)
        self.assertIsNotNone(container.wait(PATIENCE_S))

    def test_a_process_that_only_a_report_names_is_shown_and_not_ended(self):
        victim = self.start("exec sleep 1000")
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        ticks = int(pathlib.Path(f"/proc/{victim.pid}/stat").read_text().rpartition(") ")[2].split()[19])
        facts = {"pid": victim.pid, "start_ticks": ticks, "boot_id": boot, "host": os.uname().nodename}
        events = f"{SESSIONS}/s/events"
        for source, more in (("agent", {}), ("run", {}), ("proxy", {"name": "process"}), ("agent", {"known_by": "run"})):
            with self.subTest(source=source, more=more):
                self.ask("POST", f"{events}?source={source}", {"kind": "start"} | facts | more)
                for words in ((), ("--dry-run",)):
                    self.refused(self.kill("s", *words), f"process {victim.pid} of ", "sleep 1000", "only a report", f"kill {victim.pid}")
        self.ask("POST", SESSIONS, {"sessionId": "created", "pid": victim.pid, "startTicks": ticks, "bootId": boot, "host": os.uname().nodename})
        self.refused(self.kill("created"), "only a report")
        # The process that the monitor found stays the one that is ended.
        self.start("exec " + self.line("found"))
        agent, _ = self.pids("found")
        self.ask("POST", f"{SESSIONS}/found/events", {"kind": "start"} | facts)
        self.assertEqual(self.kill("found").returncode, 0)
        self.ended(agent)
        self.assertTrue(runs(victim.pid))

    def test_a_client_that_names_itself_is_proven_by_its_connection(self):
        program = ("import http.client, json, sys, time; c = http.client.HTTPConnection(sys.argv[1]);"
                   f"c.request('POST', '{SESSIONS}/s/events', json.dumps({{'kind': 'start', 'pid': __import__('os').getpid(), 'start_ticks': 0,"
                   "'boot_id': open('/proc/sys/kernel/random/boot_id').read().strip(), 'host': __import__('os').uname().nodename}));"
                   "c.getresponse().read(); print('sent', flush=True); time.sleep(1000)")
        process = subprocess.Popen([sys.executable, "-c", program, self.server.host], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "sent\n")
        self.found("s", process.pid)
        self.assertEqual(self.kill("s").returncode, 0)
        self.assertEqual(process.wait(PATIENCE_S), -signal.SIGTERM)

    def test_a_process_of_another_session_refuses_the_whole(self):
        self.start("exec " + self.line("outer"), environment={"CHILD": f"exec {self.line('inner')}"})
        outer = self.pids("outer")
        inner = self.pids("inner")
        self.refused(self.kill("outer"), f"process {inner[0]} of ", "session inner")
        for pid in (*outer, inner[0]):
            self.assertTrue(runs(pid))

    def test_a_monitor_below_the_agent_refuses_the_whole(self):
        child = f"exec {PROGRAM} serve --db {self.folder}/other.db --port 0"
        self.start("exec " + self.line("s"), environment={"CHILD": child})
        agent, monitor = self.pids("s")
        end = time.monotonic() + PATIENCE_S
        while b"serve" not in pathlib.Path(f"/proc/{monitor}/cmdline").read_bytes().split(b"\0"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        self.refused(self.kill("s"), f"process {monitor} of ", "monitor")
        self.assertTrue(runs(agent) and runs(monitor))

    def test_an_ancestor_that_a_hook_names_is_not_ended(self):
        # This test is the parent of the agent, of the monitor and of the command.
        self.start("exec " + self.line("s"), environment={"CLAIM": "parent"})
        agent, _ = self.pids("s")
        self.found("s", os.getpid())
        self.refused(self.kill("s"), "would be ended")
        self.assertTrue(runs(agent) and runs(self.server.process.pid))

    @unittest.skipIf(os.getuid(), "only root starts processes of other users, and finds them")
    def test_an_ancestor_of_another_user_is_not_taken_for_the_agent(self):
        # A hook of nobody names this test, from which it comes, and then names itself.
        said = ("import http.client, json, os, sys, time; os.setgid(65534); os.setuid(65534); time.sleep(0.1)\n"
                "for number, pid in enumerate([sys.argv[2], sys.argv[2], str(os.getpid())]):\n"
                "    c = http.client.HTTPConnection(sys.argv[1])\n"
                "    c.request('POST', '/api/hooks/claude-code?pid=' + pid, json.dumps({'session_id': 's', 'hook_event_name': 'PreToolUse',"
                "'tool_name': 'Bash', 'tool_use_id': str(number)}))\n"
                "    c.getresponse().read()\n"
                "print(os.getpid(), flush=True)\n"
                "time.sleep(1000)")
        agent = subprocess.Popen([sys.executable, "-c", said, self.server.host, str(os.getpid())], stdout=subprocess.PIPE, text=True)
        self.addCleanup(agent.stdout.close)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        self.assertEqual(int(agent.stdout.readline()), agent.pid)
        self.found("s", agent.pid)
        events = self.ask("GET", f"{SESSIONS}/s/events?kind=start")["events"]
        self.assertEqual([event["pid"] for event in events if event.get("pid")], [agent.pid])

    def test_an_ancestor_of_the_agent_that_was_found_before_is_not_ended(self):
        shell = self.start(f"{self.line('s')} & wait")
        agent, _ = self.pids("s")
        self.found("s", agent)
        claim = ("import http.client, json, sys; c = http.client.HTTPConnection(sys.argv[1]);"
                 "c.request('POST', '/api/hooks/claude-code?pid=' + sys.argv[2], json.dumps({'session_id': 's', 'hook_event_name': 'PreToolUse',"
                 "'tool_name': 'Bash', 'tool_use_id': 'x'})); c.getresponse().read()")
        subprocess.run([sys.executable, "-c", claim, self.server.host, str(os.getpid())], check=True)
        self.found("s", os.getpid())
        self.refused(self.kill("s"), "would be ended")
        self.assertTrue(runs(agent) and runs(shell.pid))

    def test_a_login_shell_is_not_ended(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvp("bash", ["bash", "--norc", "-i"])
        self.addCleanup(os.close, terminal)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        os.write(terminal, f"CLAIM={pid} {self.line('s')} &\n".encode())
        agent, _ = self.pids("s")
        self.found("s", pid)
        self.refused(self.kill("s"), f"process {pid} of ", "login shell")
        self.assertTrue(runs(agent) and runs(pid))

    def test_a_dry_run_names_all_and_ends_and_cancels_nothing(self):
        self.start("exec " + self.line("s"), environment={"CHILD": "exec sleep 1000"})
        agent, child = self.pids("s")
        said = self.kill("s", "--dry-run")
        self.assertEqual(said.returncode, 0, said)
        for part in (f"process {agent} of ", f"process {child} of ", "agent.py", "sleep 1000", f"started by {agent}"):
            self.assertIn(part, said.stdout)
        answer = json.loads(self.kill("s", "--dry-run", "--json").stdout)
        self.assertEqual({process["pid"] for process in answer["processes"]} & {agent, child}, {agent, child})
        self.assertIsNone(answer["refused"])
        self.assertTrue(runs(agent) and runs(child))
        self.assertEqual(self.ask("GET", f"{SESSIONS}/s/events?kind=cancel")["events"], [])

    def test_a_wrapped_command_ends_with_its_wrapper(self):
        for way in ("--server", "--db"):
            with self.subTest(way=way):
                session = way.strip("-")
                where = f"http://{self.server.host}" if way == "--server" else os.path.join(self.server.folder.name, "w.db")
                environment = {name: value for name, value in os.environ.items() if not name.startswith("WATCHDOG_")}
                # It ignores the cancel, and its own wrapper cannot end it: it is stopped.
                wrapper = subprocess.Popen([PROGRAM, "run", way, where, "--session", session, "--", "sh", "-c", "echo $$; sleep 1000"],
                                           stdout=subprocess.PIPE, env=environment, text=True, start_new_session=True)
                self.addCleanup(wrapper.stdout.close)
                self.addCleanup(wrapper.wait)
                self.addCleanup(wrapper.kill)
                command = int(wrapper.stdout.readline())
                self.addCleanup(self.finish, command)
                end = time.monotonic() + PATIENCE_S
                while "known_by" not in json.dumps(self.ask("GET", f"{SESSIONS}/{session}/events?kind=start")):
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.02)
                os.kill(wrapper.pid, signal.SIGSTOP)
                said = self.kill(session)
                self.assertEqual(said.returncode, 0, said)
                self.assertIn("the wrapper of the session's command", said.stdout)
                self.ended(wrapper.pid, command)


def end_the_rest():
    """Ends the processes that a test left. Each holds the output open while it sleeps, and the runner of the tests reads until that closes."""
    while children := [pid for pid in map(int, pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()) if runs(pid)]:
        for pid in children:
            print("a test left a process:", pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "), file=sys.stderr)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans become children of this process.
    tests = unittest.main(exit=False)
    end_the_rest()
    sys.exit(not tests.result.wasSuccessful())
