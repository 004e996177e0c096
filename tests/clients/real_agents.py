#!/usr/bin/env python3
"""Real coding agents against a model that says what is written here, watched in each way: what a monitor says of them is true.

Usage: real_agents.py MONITOR NODE_MODULES [--only AGENT/WAY/STAGE] [--jobs N] [--once] [--verbose]
Any part of --only may be `*`. Prints a table of what was seen. What is known to be wrong is in KNOWN_WRONG, which may only shrink.
"""

import argparse
import concurrent.futures
import ctypes
import fnmatch
import http.client
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "agents"), str(HERE.parent / "e2e")]

from agents import AGENTS  # noqa: E402
from scripted_model import Refuse, ScriptedModel  # noqa: E402
from server import Server  # noqa: E402

WITHIN_S = 5  # of what happened
DEAD_WITHIN_S = 10
PATIENCE_S = 100  # with a machine that is busy

FAILING = ("shell", "ls /no/such/directory")
HELD = ("shell", "touch started; while [ -e held ]; do sleep 0.1; done")

RESTING = {"your_turn", "idle", "completed"}  # By the proxy alone it is idle: the client may be a program.
TROUBLE = {"suspect", "stuck", "looping", "dead", "silent", "needs_input", "failed", "incomplete", "cancelled"}


class Wrong(Exception):
    """What the monitor says is not so."""


class Gone(Exception):
    """The agent did not do what the test needs of it: this says nothing of the monitor."""


class Stage:
    """One agent, in one way, at one thing. `seen`: each state with its time, as far as the API showed it."""

    def __init__(self, options, name, way):
        self.options, self.name, self.way = options, name, way
        self.seen, self.ended = [], None
        self.also = {}  # Further checks of this run, by name.

    def run(self, stage):
        """What is to be checked, by name."""
        script, hold, check, interactive = STAGES[stage]
        with tempfile.TemporaryDirectory(prefix="agent-") as folder, ScriptedModel(script, hold) as self.model:
            upstream = self.model.url
            if stage == "refused":
                self.model.__exit__()
            proxied = self.way in ("proxy", "both", "all")
            arguments = ["--upstream", upstream, "--proxy-port", "0", "--no-probe"] if proxied else []
            with Server(self.options.monitor, arguments=arguments) as self.server:
                to = upstream
                if arguments:
                    for line in self.server.process.stdout:
                        if found := re.search(r"their model at (https?://127\.0\.0\.1:\d+)/v1", line):
                            to = found[1]
                            break
                self.agent = AGENTS[self.name](self.options.packages, folder, self.options.monitor, f"http://{self.server.host}", to, self.way)
                (self.agent.project / "held").touch()
                watching = threading.Thread(target=self.watch, daemon=True)
                self.start(interactive)
                watching.start()
                try:
                    yield stage, lambda: check(self)
                    yield from self.also.items()
                finally:
                    self.finish()
                    watching.join()

    # The agent's process.

    def start(self, interactive):
        command = [str(word) for word in self.agent.command("Please do what is to be done.", interactive)]
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
        """The agent, not the command that it runs."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

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

    def document(self):
        """Of the one session that this run is; None: nothing came yet."""
        found = [one for one in self.ask("GET", "/api/autonomous/sessions")["sessions"] if not one.get("parentSessionId")]
        if len(found) > 1:
            raise Wrong("one run is several sessions: " + ", ".join(one["sessionId"] for one in found))
        return self.ask("GET", f"/api/autonomous/progress/{found[0]['sessionId']}") if found else None

    def watch(self):
        while self.ended is None:
            try:
                document = self.document()
            except (OSError, http.client.HTTPException, Wrong, RuntimeError):
                document = None
            if document and (not self.seen or self.seen[-1][1] != document["state"]):
                self.seen.append((time.monotonic(), document["state"], document["reason"]))
            time.sleep(0.1)

    def becomes(self, states, within=WITHIN_S, **more):
        """Waits for it; a state that is right must be there by then and stay for a moment."""
        end = time.monotonic() + within
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


def looping(stage):
    stage.until(stage.model.reached.is_set, "the sixth call")
    try:
        stage.becomes({"looping"})
    finally:
        stage.model.released.set()
    stage.exits()
    stage.also["loop kept"] = lambda: stage.becomes(RESTING | {"incomplete"},
                                                      wasted_calls=lambda document: re.search(r"loop|repeat|wasted", texts(document), re.I))
    return "looping by call 6"


def finished(stage):
    stage.exits()
    stage.never(TROUBLE)
    stage.rested_only_at_the_end()
    return stage.becomes(RESTING)


def counted(stage):
    """Whoever reports them: each call, result and prompt is there once."""
    stage.exits()

    def count():
        document = stage.document()
        if not document:
            return {}
        events = stage.ask("GET", f"/api/autonomous/sessions/{document['sessionId']}/events?limit=1000")["events"]
        return {kind: sum(event["kind"] == kind for event in events) for kind in ("tool_call", "tool_result", "user_input")}

    def heard():
        """Requests with telemetry, by the first digit of their status."""
        connection = http.client.HTTPConnection(stage.server.host, timeout=PATIENCE_S)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        found = re.findall(r'^watchdog_http_requests_total\{group="telemetry",code="(\d)xx"\} (\d+)', text, re.M)
        return {status: int(number) for status, number in found if int(number) > 0}

    loses = stage.name in LOSES_LAST and stage.way == "telemetry"
    end = time.monotonic() + (LOST_AFTER_S if loses else PATIENCE_S)
    while "2" not in heard() or count().get("tool_result") != 2:
        if time.monotonic() > end:
            if loses and (found := count()).get("tool_result") == found.get("tool_call") == 1:
                return f"1 of 2 calls: {stage.name} did not send the other"
            sessions = [(one["sessionId"], one.get("parentSessionId")) for one in stage.ask("GET", "/api/autonomous/sessions")["sessions"]]
            raise Wrong(f"{heard()} requests with telemetry, {count()}, sessions {sessions}")
        time.sleep(0.2)
    found = count()
    if found["tool_call"] != 2 or found["user_input"] > 1:
        raise Wrong(f"counted {found}")
    stage.never(TROUBLE)
    return f"{found['tool_call']} calls, {found['user_input']} prompts"


def refusing(cause):
    def check(stage):
        if cause != "refused":
            stage.until(lambda: stage.model.asked, "its question")
        try:
            stage.process.wait(8 if stage.model.asked else 12)
            states = {"needs_input", "failed"} | ({"incomplete"} if stage.way == "hooks" else set())
        except subprocess.TimeoutExpired:
            states = {"needs_input", "waiting"}  # It tries again by itself, for ever.
        tells = {}
        if stage.way != "hooks":  # They do not tell what the server said, but for some agents.
            tells["its_cause"] = lambda document: re.search(CAUSES[cause], texts(document), re.I)
        if cause == "quota" and stage.way != "hooks":
            states |= {"waiting"}
            tells["its_end"] = lambda document: document["outcome"] or 3500e3 < (document["waitUntil"] or 0) - time.time() * 1000 < 3700e3
        return stage.becomes(states, **tells)
    return check


# On a busy machine they end before their exporter has sent its last spans.
LOSES_LAST = {"opencode"}
LOST_AFTER_S = 20

# Patterns of the words that show a person the cause of a failure.
CAUSES = {"401": r"401|login|log in|authenticat|api key", "429": r"429|quota|rate.?limit|too many", "quota": r"429|quota",
          "refused": r"refused|unreachable|connect"}


def killed(stage):
    stage.until((stage.agent.project / "started").exists, "the call")
    time.sleep(0.3)
    stage.kill()
    return stage.becomes({"dead"}, DEAD_WITHIN_S)


def interrupted(stage):
    stage.until((stage.agent.project / "started").exists, "the call")
    time.sleep(1)
    stage.agent.escape(stage.process, stage.terminal)
    return stage.becomes({"your_turn", "idle"}, calls_closed=lambda document: not document["tools"])


def cancelled(stage):
    stage.until(stage.model.reached.is_set, "the third call")
    document = stage.document()
    if not document:
        raise Wrong("no session")
    stage.ask("POST", f"/api/autonomous/sessions/{document['sessionId']}/cancel", {"by": "test", "reason": "enough"})
    before = len(list(stage.agent.project.glob("call-*")))
    stage.model.released.set()
    stage.exits()
    after = len(list(stage.agent.project.glob("call-*")))
    if after - before > 1:
        raise Wrong(f"it made {after - before} further calls")
    return stage.becomes({"cancelled"})


def varied(stage):
    stage.exits()
    if len(stage.model.asked) < len(VARIED):
        raise Gone(f"it made {len(stage.model.asked)} calls only: {stage.tail()}")
    stage.never(TROUBLE | {"waiting"})
    stage.rested_only_at_the_end()
    return stage.becomes(RESTING)


def work(n):
    """Thirty calls of somebody who gets somewhere: looks, changes, tests, with a failure here and there."""
    return [
        ("shell", f"echo 'int part_{n}() {{ return {n * n}; }}' > part_{n}.c"),
        ("read", f"part_{n}.c"),
        ("shell", f"sed -i 's/{n * n}/{n * n + 1}/' part_{n}.c && grep -n return part_{n}.c"),
        ("shell", f"test -e part_{n + 1}.c || {{ echo part_{n + 1}.c is still missing; exit 1; }}"),
        ("shell", "ls | wc -l; wc -c part_*.c | tail -1"),
    ]


VARIED = [call for n in range(6) for call in work(n)] + ["All six parts are there."]
CALLS = [("shell", f"touch call-{n}; echo call {n} of many") for n in range(6)]

# By stage: the model's script, the step before which the model waits, the check, and whether the agent runs in a terminal.
STAGES = {
    "loop": ([FAILING] * 12 + ["It is not there."], 6, looping, False),
    "finished": ([("shell", "echo one"), ("shell", "echo two"), "It is done."], None, finished, False),
    "401": ([Refuse(401, "the API key is not valid")], None, refusing("401"), False),
    "429": ([Refuse(429, "too many requests")], None, refusing("429"), False),
    "quota": ([Refuse(429, "the quota of today is used up", Retry_After="3600")], None, refusing("quota"), False),
    "refused": (["unheard"], None, refusing("refused"), False),
    "kill": ([HELD, "It is done."], None, killed, False),
    "interrupt": ([HELD, "It is done."], None, interrupted, True),
    "cancel": (CALLS + ["It is done."], 3, cancelled, False),
    "varied": (VARIED, None, varied, False),
    "counted": ([("shell", "echo one"), ("shell", "echo two"), "It is done."], None, counted, False),
}
AGAIN = {"loop kept": "loop"}  # The run that such a cell is of.

# Nobody reports these: an interrupt in the proxy alone; in codex' hooks that it waits for its quota or for the network.
LEFT_OUT = {(agent, "proxy", "interrupt") for agent in AGENTS} | {("codex", "hooks", "quota"), ("codex", "hooks", "refused")}
# Telemetry is about what it counts, and that it counts nothing twice.
LEFT_OUT |= {(agent, way, stage) for agent in AGENTS for way in AGENTS[agent].WAYS for stage in STAGES
             if (way in ("telemetry", "all")) != (stage == "counted")}

# The cells that the monitor still judges wrongly, as "AGENT/WAY/STAGE". Remove a cell as soon as it is right.
KNOWN_WRONG = set()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("monitor", type=os.path.abspath)
    parser.add_argument("packages", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--only", default="*/*/*")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--once", action="store_true", help="try nothing again")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    wanted = [(agent, way, stage) for agent in AGENTS for stage in STAGES for way in AGENTS[agent].WAYS
              if (agent, way, stage) not in LEFT_OUT and fnmatch.fnmatch(f"{agent}/{way}/{stage}", options.only)]
    if options.only == "*/*/*" and not os.environ.get("WATCHDOG_FULL"):
        wanted = one_way_each(wanted)
    # The long ones first.
    wanted.sort(key=lambda case: case[2] not in ("refused", "429", "quota", "varied", "loop"))

    def one(case):
        agent, way, stage = case
        began, run = time.monotonic(), Stage(options, agent, way)
        results = []
        for name, check in run.run(stage):
            wrong = None
            try:
                result = check()
                word = result["state"] if isinstance(result, dict) else result
            except Wrong as error:
                wrong = word = str(error)
            except Gone as error:
                wrong = word = f"NOT TRIED: {error}"
            took = time.monotonic() - began
            print(f"{'wrong' if wrong else 'right'}  {agent}/{way}/{name}  {took:.1f} s  {word}", flush=True)
            results.append(((agent, way, name), (wrong, word)))
        if options.verbose:
            for at, state, reason in run.seen:
                print(f"    {at - began:6.1f} s  {state}: {reason}")
        return results

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        cells = dict(cell for cells in pool.map(one, wanted) for cell in cells)
    # A machine that is busy makes everything late: what was not as it should be is tried again with nothing beside it.
    for case in dict.fromkeys((agent, way, AGAIN.get(stage, stage)) for agent, way, stage in news(cells) if not options.once):
        print("again:", "/".join(case))
        cells |= dict(one(case))
    return tell(cells)


def one_way_each(cases):
    """Each agent and stage once, always in the same way, so that each way occurs: a quarter of the time."""
    ways = {}
    for agent, way, stage in cases:
        ways.setdefault((agent, stage), []).append(way)
    agents, stages = list(AGENTS), list(STAGES)
    chosen = [(agent, found[(agents.index(agent) + stages.index(stage)) % len(found)], stage) for (agent, stage), found in ways.items()]
    print(f"{len(chosen)} of {len(cases)} cells: each agent and stage once. WATCHDOG_FULL=1 runs all.", flush=True)
    return chosen


def news(cells):
    """What is not as KNOWN_WRONG says."""
    return [case for case, (wrong, _) in cells.items() if bool(wrong) != ("/".join(case) in KNOWN_WRONG)]


def tell(cells):
    """The table, and what is not as KNOWN_WRONG says."""
    columns = [(agent, way) for agent in AGENTS for way in AGENTS[agent].WAYS if any(case[:2] == (agent, way) for case in cells)]
    print("\n| stage |" + "".join(f" {agent} {way} |" for agent, way in columns))
    print("|---" * (len(columns) + 1) + "|")
    for stage in dict.fromkeys([*STAGES, *(case[2] for case in cells)]):
        if any(case[2] == stage for case in cells):
            row = (cells.get((*column, stage)) for column in columns)
            print(f"| {stage} |" + "".join(f" {'–' if cell is None else ('✗ ' if cell[0] else '') + cell[1][:40].replace('|', '/')} |" for cell in row))
    for case in news(cells):
        print("/".join(case), "is wrong:" if cells[case][0] else "is right now: take it out of KNOWN_WRONG", cells[case][0] or "")
    return 1 if news(cells) else 0


if __name__ == "__main__":
    sys.exit(main())
