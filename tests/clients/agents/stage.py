"""One run of a coding agent: its monitor, its model, its process, and what the monitor said of it."""

import copy
import ctypes
import http.client
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import tempfile
import threading
import time

from scripted_model import ScriptedModel
from server import Server

WITHIN_S = 5  # of what happened
DEAD_WITHIN_S = 10
PATIENCE_S = 100  # with a machine that is busy

RESTING = {"your_turn", "idle", "completed"}  # By the proxy alone it is idle: the client may be a program.
TROUBLE = {"suspect", "stuck", "looping", "dead", "silent", "needs_input", "failed", "incomplete", "cancelled"}


class Wrong(Exception):
    """What the monitor says is not so."""


class Gone(Exception):
    """The agent did not do what the test needs of it: this says nothing of the monitor."""


class Stage:
    """One agent, in one way, at one thing. `seen`: each state with its time, as far as the API showed it."""

    def __init__(self, options, agents, name, way, row):
        self.options, self.agents, self.name, self.way, self.row = options, agents, name, way, row
        self.seen, self.ended, self.claimed = [], None, set()
        self.also = {}  # Further checks of this run, by name.

    def run(self, stage):
        """What is to be checked, by name."""
        row = self.row
        with tempfile.TemporaryDirectory(prefix="agent-") as folder, \
                ScriptedModel(copy.deepcopy(row.script), row.hold, row.hold_s, child=row.child, grows=row.grows) as self.model:
            if stage == "refused":
                self.model.__exit__()
            proxied = self.way in ("proxy", "both", "all", "run")
            arguments = ["--upstream", self.model.url, "--proxy-port", "0", "--no-probe"] if proxied else []
            arguments += ["--follow"] if self.way == "transcripts" else []
            if row.rules:
                config = pathlib.Path(folder, "watchdog.toml")
                config.write_text(row.rules)
                arguments += ["--config", config]
            home = pathlib.Path(folder, "home")
            more = row.settings | {"CODEX_HOME": str(home / "codex"), "CLAUDE_CONFIG_DIR": str(home / ".claude")}
            if self.way == "transcripts":
                more |= {"GEMINI_CLI_HOME": str(home), "XDG_DATA_HOME": str(home / "data")}
            with Server(self.options.monitor, more, arguments) as self.server:
                to = self.proxy() if proxied else self.model.url
                self.agent = self.agents[self.name](self.options.packages, folder, self.options.monitor, f"http://{self.server.host}", to, self.way,
                                                    row.asks, row.limit_s)
                (self.agent.project / "held").touch()
                watching = threading.Thread(target=self.watch, daemon=True)
                self.start(row.terminal)
                watching.start()
                try:
                    yield stage, lambda: row.check(self)
                    yield from self.also.items()
                finally:
                    self.finish()
                    watching.join()

    def proxy(self):
        """Its address, as the monitor prints it."""
        for line in self.server.process.stdout:
            if found := re.search(r"their model at (https?://127\.0\.0\.1:\d+)/v1", line):
                return found[1]
        raise Gone("the monitor printed no address of its proxy")

    # The agent's process.

    def start(self, interactive, prompt="Please do what is to be done."):
        command = [str(word) for word in self.agent.command(prompt, interactive)]
        if self.way == "run":
            command = [self.options.monitor, "run", "--server", f"http://{self.server.host}", "--", *command]
        self.said = open(self.agent.home / "said", "w+b")
        die_with_parent = lambda libc=ctypes.CDLL(None): libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        self.terminal = None
        given = {"stdin": subprocess.DEVNULL, "stdout": self.said, "stderr": self.said}
        if interactive:
            self.terminal, theirs = pty.openpty()
            given = dict.fromkeys(given, theirs)
            self.agent.environment |= {"LINES": "40", "COLUMNS": "120"}
        self.process = subprocess.Popen(command, cwd=self.agent.project, env=self.agent.environment, start_new_session=True,
                                        preexec_fn=die_with_parent, **given)
        if interactive:
            os.close(theirs)
            threading.Thread(target=self.be_terminal, daemon=True).start()

    def be_terminal(self):
        """Answers what programs ask a terminal before they draw."""
        answers = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62;22c", b"\x1b[0c": b"\x1b[?62;22c", b"\x1b[?u": b"\x1b[?0u"}
        try:
            while piece := os.read(self.terminal, 1 << 16):
                self.said.write(piece)
                for question, answer in answers.items():
                    for _ in range(piece.count(question)):
                        os.write(self.terminal, answer)
        except (OSError, ValueError):
            pass  # It is over.

    def exits(self, within=PATIENCE_S):
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise Gone(f"it did not end within {within} s: {self.tail()}") from None

    def kill(self):
        """The agent, and no command that has a group of its own."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def signal_group(self, number):
        """As a terminal sends it: to the agent and what shares its group."""
        os.killpg(self.process.pid, number)

    def type(self, keys):
        os.write(self.terminal, keys)

    def finish(self):
        self.ended = time.monotonic()
        self.model.released.set()
        (self.agent.project / "held").unlink(missing_ok=True)
        if self.process.poll() is None:
            self.kill()
        if self.terminal is not None:
            os.close(self.terminal)
        self.said.close()

    def tail(self):
        self.said.flush()
        return (self.agent.home / "said").read_bytes()[-300:].decode(errors="replace").strip()

    def until(self, condition, what, within=PATIENCE_S):
        end = time.monotonic() + within
        while not (value := condition()):
            if time.monotonic() > end or (self.process.poll() is not None and not condition()):
                raise Gone(f"{what}: not within {within} s; the agent says: {self.tail()}")
            time.sleep(0.05)
        return value

    # Requests to the monitor.

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body and json.dumps(body),
                               {"Authorization": f"Bearer {self.server.secret}", "Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read()
            if response.status >= 300:
                raise RuntimeError(f"{method} {path}: {response.status} {content[:300]}")
            return json.loads(content or "null")
        finally:
            connection.close()

    def sessions(self):
        return self.ask("GET", "/api/autonomous/sessions")["sessions"]

    def events(self, session):
        return self.ask("GET", f"/api/autonomous/sessions/{session}/events?limit=1000")["events"]

    def document(self):
        """Of the one session that this run is; None: nothing came yet."""
        found = [one for one in self.sessions() if not one.get("parentSessionId")]
        if len(found) > 1:
            raise Wrong("one run is several sessions: " + ", ".join(one["sessionId"] for one in found))
        return self.ask("GET", f"/api/autonomous/progress/{found[0]['sessionId']}") if found else None

    def watch(self):
        """Keeps each state, and each value of `attention` (`claimed`)."""
        while self.ended is None:
            try:
                document = self.document()
            except (OSError, http.client.HTTPException, Wrong, RuntimeError):
                document = None
            if document and (not self.seen or self.seen[-1][1] != document["state"]):
                self.seen.append((time.monotonic(), document["state"], document["reason"]))
            self.claimed |= {document["attention"]} if document else set()
            time.sleep(0.1)

    def becomes(self, states, within=WITHIN_S, **more):
        """Waits for it; a state that is right must be there by then and stay for a moment."""
        end = time.monotonic() + within + self.agent.LATE_S.get(self.way, 0)
        while True:
            document = self.document()
            state = document["state"] if document else "no session"
            if state in states and all(test(document) for test in more.values()):
                return document
            if time.monotonic() > end:
                lacks = [name for name, test in more.items() if document and not test(document)]
                raise Wrong(f"{state}" + (f" without {', '.join(lacks)}" if state in states else "") +
                            (f": {document['reason']}" if document else ""))
            time.sleep(0.1)

    def never(self, states):
        for _, state, reason in self.seen:
            if state in states:
                raise Wrong(f"{state} meanwhile: {reason}")

    def rested_only_at_the_end(self):
        last_asked = self.model.asked[-1][1]
        for at, state, reason in self.seen:
            if at < last_asked and state in RESTING:
                raise Wrong(f"{state} while it worked: {reason}")


def texts(value):
    """All that a document says in words, of any depth."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return "\n".join(filter(None, map(texts, value)))
    return value if isinstance(value, str) else ""
