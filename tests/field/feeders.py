"""How a case reaches the program. README.md lists the feeders and their keys."""

import collections
import concurrent.futures
import contextlib
import datetime
import glob
import http.client
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zoneinfo

import stand_ins

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from server import Server  # noqa: E402  (its folder is named one line above)

STAND_INS = str(pathlib.Path(__file__).resolve().parent / "stand_ins.py")
SESSIONS = "/api/autonomous/sessions"
PROGRESS = "/api/autonomous/progress"
CLIENTS = pathlib.Path(__file__).resolve().parents[2] / "clients"
FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), "")
Programs = collections.namedtuple("Programs", "monitor agent")


class Broken(Exception):
    """The input did not reach the program, so nothing can be said about it."""


def clean_environment(more=None):
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith(("WATCHDOG_", "OPENAI_", "AGENT_", "CLAUDE_", "GIT_")) and key not in ("EDITOR", "VISUAL", "PAGER")}
    return kept | {"LC_ALL": "C.UTF-8", "WATCHDOG_CONFIG": "", "no_proxy": "*"} | (more or {})


def steps_of(file):
    """The steps of a JSON Lines file. {"repeat": N, …} stands for N steps, or N times its `steps`."""
    with open(file, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            try:
                yield from repeated(json.loads(line), {})
            except ValueError as error:
                raise Broken(f"{file.name}:{number}: {error}") from None


def repeated(step, numbers):
    if "repeat" not in step:
        # {epoch} and {iso} are filled when the step is taken.
        yield step | {"numbers": numbers}
        return
    inner = step.get("steps") or [{key: value for key, value in step.items() if key != "repeat"}]
    for n in range(step["repeat"]):
        for one in inner:
            yield from repeated(one, numbers | {"n": n})


def seconds_of(text):
    """12, "12s", "12m" or "2h"."""
    if isinstance(text, (int, float)):
        return float(text)
    return float(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


class Feeder:
    KEYS = {"takes", "patience"}
    GOES_ON = False  # whether another look may see something else

    def __init__(self, case, programs):
        self.case, self.programs, self.told = case, programs, case.told
        self.closing = contextlib.ExitStack()

    def __enter__(self):
        self.folder = pathlib.Path(self.closing.enter_context(tempfile.TemporaryDirectory(prefix=f"field-{self.case.name[:20]}-")))
        for file in self.case.folder.iterdir():
            if file.name != "case.toml":
                (shutil.copytree if file.is_dir() else shutil.copy)(file, self.folder / file.name)
        return self

    def __exit__(self, *_):
        self.closing.close()

    def own_environment(self, more=None):
        home = {"HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder / "config"), "XDG_STATE_HOME": str(self.folder / "state")}
        return clean_environment(home | self.told.get("environment", {}) | (more or {}))

    def run(self, words, **more):
        more = {"capture_output": True, "text": True, "errors": "backslashreplace", "env": self.own_environment(), "cwd": self.folder,
                "stdin": subprocess.DEVNULL, "timeout": 100} | more
        return subprocess.run(words, **more)

    def progress_in(self, database, session):
        done = self.run([self.programs.monitor, "status", session, "--db", str(database), "--json"])
        return json.loads(done.stdout) if done.returncode == 0 else None

    def kinds_in(self, database, session):
        """How many events of each kind the session has."""
        done = self.run([self.programs.monitor, "events", session, "--db", str(database), "--all", "--json"])
        return dict(collections.Counter(json.loads(line)["kind"] for line in done.stdout.splitlines()))


class Monitor(Feeder):
    """Steps to a monitor that runs: hooks, events, telemetry, transcripts that grow, and requests to a model."""

    GOES_ON = True
    KEYS = Feeder.KEYS | {"agent", "base", "session", "settings", "arguments", "now", "speed", "process", "follow", "transcripts", "environment", "input"}

    def __enter__(self):
        super().__enter__()
        rules = self.case.folder / "upstream.jsonl"
        self.upstream = None
        arguments = ["--no-checks", *self.told.get("arguments", [])]
        if rules.exists():
            self.upstream = stand_ins.Upstream([{key: value for key, value in step.items() if key != "numbers"} for step in steps_of(rules)])
            self.closing.callback(self.upstream.close)
            arguments += ["--upstream", self.upstream.url, "--proxy-port", "0"]
        if "settings" in self.told:
            settings = self.folder / "settings.toml"
            settings.write_text(self.told["settings"].replace("{folder}", str(self.folder)).replace("{upstream}", self.upstream.url if self.upstream else ""))
            settings.chmod(0o600)
            arguments += ["--config", str(settings)]
        writes = self.told.get("follow") or self.told.get("transcripts")
        if writes:
            self.followed = self.folder / {"codex": ".codex/sessions", "claude-code": ".claude/projects"}[writes]
            self.followed.mkdir(parents=True)
        if "follow" in self.told:
            arguments += ["--follow", self.told["follow"]]
        self.replies, self.clients, self.began = {}, [], None
        self.server = self.start(arguments)
        self.proxy_port = self.port_of_proxy() if self.upstream else 0
        self.process = None
        if self.told.get("process"):
            self.process = subprocess.Popen([sys.executable, STAND_INS, "agent", "http://" + self.server.host], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True, start_new_session=True)
            self.closing.callback(self.end_process)
            time.sleep(0.1)  # as agents, it is older than its session
        return self

    def start(self, arguments):
        more = {"HOME": str(self.folder), "WATCHDOG_CONFIG": ""} | self.told.get("environment", {})
        if "speed" in self.told:  # the monitor's clock runs that many times as fast
            if not FAKETIME:
                raise Broken("libfaketime is missing: install the package faketime, as scripts/test does")
            more |= {"LD_PRELOAD": FAKETIME, "FAKETIME": f"+0 x{self.told['speed']}"}
        server = Server(self.programs.monitor, more, arguments)
        try:
            return self.closing.enter_context(server)
        except SystemExit as error:
            raise Broken(f"the monitor did not start: {error}") from None

    def port_of_proxy(self):
        for line in self.server.process.stdout:
            if found := re.search(r"their model at https?://127\.0\.0\.1:(\d+)", line):
                return int(found[1])
        raise Broken("the monitor has no proxy")

    def end_process(self):
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def ask(self, method, path, body=None):
        server = self.server
        connection = http.client.HTTPConnection(server.host, timeout=60)
        try:
            data = body if body is None or isinstance(body, str) else json.dumps(body)
            connection.request(method, path, data, {"Authorization": f"Bearer {server.secret}", "Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def want(self, method, path, body=None):
        status, answer = self.ask(method, path, body)
        if status >= 300:
            raise Broken(f"{method} {path} is answered with {status}: {answer}")
        return answer

    def feed(self, check):
        marks, rights = set(), self.told.get("right", [])
        for step in steps_of(self.case.folder / self.told.get("input", "input.jsonl")):
            if "mark" in step:
                marks.add(step["mark"])
                for right in [right for right in rights if right.get("at") == step["mark"]]:
                    check(right, lambda right=right: self.seen(right))
                continue
            self.pass_until(step.get("at", 0))
            self.take(stand_ins.filled({key: value for key, value in step.items() if key != "numbers"}, step["numbers"]))
        if missing := {right["at"] for right in rights if "at" in right} - marks:
            raise Broken(f"no step has the mark {', '.join(sorted(missing))}")
        if "now" in self.told:
            self.pass_until(self.told["now"])
        at_end = [right for right in rights if "at" not in right]
        for right in sorted(at_end, key=lambda right: "reply" in right):
            if "reply" in right:
                for client in self.clients:
                    client.join()
            check(right, lambda right=right: self.seen(right))

    def pass_until(self, moment):
        """Waits until the monitor's clock is that far from the first step."""
        self.began = self.began or time.monotonic()
        time.sleep(max(0.0, seconds_of(moment) / self.told.get("speed", 1) - (time.monotonic() - self.began)))

    def take(self, step):
        session = step.get("session") if isinstance(step.get("session"), str) else self.told.get("session", "s")
        if "hook" in step:
            agent = step.get("agent", self.told.get("agent", "claude-code"))
            hook = step["hook"] if step.get("bare") else self.told.get("base", {}) | step["hook"]
            if "transcript" in step:
                hook |= {"transcript_path": str(self.followed / step["transcript"])}
            if self.process:
                answer = self.tell({"hook": hook, "agent": agent})
                status, text = answer["status"], answer["text"]
            else:
                # An agent whose events have no name of their own has it in the hook's address.
                named = f"?event={step['event']}" if "event" in step else ""
                status, text = self.ask("POST", f"/api/hooks/{agent}{named}", hook)
            if "name" in step:  # a case looks at the answer
                self.replies[step["name"]] = {"status": status, "text": text if isinstance(text, str) else json.dumps(text)}
            elif status != 200:
                raise Broken(f"the hook {hook.get('hook_event_name')} is answered with {status}: {text}")
        elif "events" in step:
            self.want("POST", f"{SESSIONS}/{session}/events", step["events"])
        elif "create" in step:
            self.want("POST", SESSIONS, step["create"])
        elif "policy" in step:
            self.want("PATCH", f"{SESSIONS}/{session}", {"policy": step["policy"]})
        elif "cancel" in step:
            self.want("POST", f"{SESSIONS}/{step['cancel']}/cancel", {"reason": "enough"})
        elif "otlp" in step:
            self.want("POST", step.get("path", "/v1/traces"), step["otlp"])
        elif "line" in step:
            path = self.followed / step["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(step["line"]) + "\n")
        elif "request" in step:
            self.request(step)
        elif "start" in step:
            self.tell({"start": step["start"]})
        elif "program" in step:
            self.begin_program(step["program"], session)
        elif "leave" in step:
            os.killpg(self.process.pid, signal.SIGKILL) if step["leave"] == "killed" else self.process.stdin.close()
            self.process.wait()
        elif "wait" in step:
            time.sleep(step["wait"])
        else:
            raise Broken(f"unknown step: {', '.join(step)}")

    def begin_program(self, words, session):
        """A program that has a client of this project. It prints a line when it has reported, and ends when its input does."""
        more = {"WATCHDOG_SERVER": "http://" + self.server.host, "WATCHDOG_SESSION": session, "PYTHONPATH": str(CLIENTS / "python"),
                "PYTHONDONTWRITEBYTECODE": "1", "WATCHDOG_CLIENT": (CLIENTS / "javascript" / "watchdog.js").as_uri()}
        program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                   env=self.own_environment(more), start_new_session=True)
        self.closing.callback(program.communicate)
        if not program.stdout.readline():
            raise Broken(f"the program {' '.join(words)} says: {program.communicate()[1][-500:]}")

    def tell(self, step):
        self.process.stdin.write(json.dumps(step) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def request(self, step):
        """A scripted client's request. `beside`: the next step does not wait for it. `direct`: also without the proxy, to compare."""
        def ask():
            def one(port):
                return stand_ins.ask(port, step["request"], step.get("give_up"))

            if not step.get("direct"):
                reply = one(self.proxy_port)
            else:
                with concurrent.futures.ThreadPoolExecutor(2) as pool:
                    reply, direct = pool.map(one, (self.proxy_port, self.upstream.port))
                reply["direct"] = direct
                reply["same"] = (reply["status"], reply["events"]) == (direct["status"], direct["events"])
                reply["same_words"] = (reply["status"], reply["data"]) == (direct["status"], direct["data"])
            self.replies[step.get("name", "last")] = reply

        if step.get("beside"):
            self.clients.append(threading.Thread(target=ask, daemon=True))
            self.clients[-1].start()
        else:
            ask()

    def seen(self, right):
        """What a right is compared with: a client's reply, what the upstream got, or a session."""
        if "reply" in right:
            reply = self.replies.get(right["reply"])
            if not self.upstream:
                return reply
            got = [request["headers"] | {"bytes": request["bytes"]} for request in self.upstream.requests]
            location = (reply or {}).get("headers", {}).get("location", "")
            return reply and reply | {"got": got, "asked": len(got), "stays": f":{self.upstream.port}/" not in location,
                                      "progress_asked": any('"return_progress":true' in request["body"].replace(" ", "") for request in self.upstream.requests)}
        if "words" in right:  # a command of the program
            done = self.run([self.programs.monitor, *right["words"], "--server", "http://" + self.server.host],
                            env=self.own_environment({"WATCHDOG_TOKEN": self.server.secret}))
            return {"exit": done.returncode, "output": done.stdout, "errors": done.stderr}
        session = right.get("session", self.told.get("session", "s"))
        status, document = self.ask("GET", f"{PROGRESS}/{session}")
        # Asked for only where the case names it: a look is repeated ten times a second.
        listed = self.ask("GET", SESSIONS + "?limit=500")[1]["sessions"] if right.keys() & {"listed", "sessions", "row"} else []
        common = {"listed": any(row["sessionId"] == session for row in listed), "sessions": len(listed)}
        if status == 404:  # of interest only where a case asks whether it is there
            return common | {"missing": True} if "listed" in right else None
        alerts = self.ask("GET", "/api/alerts?limit=200")[1]["alerts"] if right.keys() & {"alerts", "alerted"} else []
        alerts = [alert for alert in alerts if alert.get("sessionId") == session]
        events = self.ask("GET", f"{SESSIONS}/{session}/events?limit=1000")[1]["events"] if "kinds" in right else []
        row = next((row for row in listed if row["sessionId"] == session), {})
        until = document.get("waitUntil")
        at = until and datetime.datetime.fromtimestamp(until / 1000, zoneinfo.ZoneInfo(right.get("zone", "UTC")))
        return document | common | {"row": row, "alerts": len(alerts), "alerted": ", ".join(alert["health"] for alert in alerts),
                                    "waits_s": round(until / 1000 - time.time()) if until else None, "waits_at": at and f"{at:%m-%d %a %H:%M}",
                                    "kinds": dict(collections.Counter(event["kind"] for event in events))}


class Replay(Feeder):
    """A recorded run, judged by `replay`."""

    KEYS = Feeder.KEYS | {"input", "arguments", "environment", "prefix"}

    def feed(self, check):
        name = self.told.get("input", "input.jsonl")
        files = name if isinstance(name, list) else [name]
        for file in files:
            text = (self.folder / file).read_bytes()
            if text.startswith(b"#steps\n"):  # lines that repeat
                lines = [{key: value for key, value in stand_ins.filled(step, step["numbers"]).items() if key != "numbers"} for step in steps_of(self.folder / file)]
                text = "".join(json.dumps(line) + "\n" for line in lines).encode()
            (self.folder / file).write_bytes(bytes.fromhex(self.told.get("prefix", "")) + text)
        database = self.folder / "replayed.db"
        done = self.run([self.programs.monitor, "replay", "--json", "--db", str(database), *self.told.get("arguments", []), *files])
        if done.returncode < 0:
            raise Broken(f"replay ended by signal {-done.returncode}: {done.stderr}")
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        wants_table = any("table" in right for right in self.told["right"])
        table = self.run([self.programs.monitor, "replay", *self.told.get("arguments", []), *files]).stdout if wants_table else ""
        common = {"exit": done.returncode, "errors": done.stderr, "rows": len(rows), "table": table}
        for right in self.told["right"]:
            check(right, lambda right=right: self.seen(right, rows, common, database))

    def seen(self, right, rows, common, database):
        at = right.get("row", 1)
        if at > len(rows):
            return common | {"missing": True}
        row = rows[at - 1]
        conclusions = row.get("conclusions") or []
        status = self.progress_in(database, row["session"]) if right.keys() & {"status", "tokens"} else None
        tokens = status and status["budget"] and status["budget"]["tokens"]
        return common | row | {"tokens": tokens, "healths": " ".join(one["health"] for one in conclusions), "reasons": "; ".join(one["reason"] for one in conclusions),
                               "status": status, "kinds": self.kinds_in(database, row["session"]) if "kinds" in right else {},
                               "firsts": {health: next(one["afterMs"] for one in conclusions if one["health"] == health) // 1000
                                          for health in {one["health"] for one in conclusions} if conclusions[0]["afterMs"] is not None}}


class Command(Feeder):
    """A shell command line. $MONITOR and $AGENT are the programs, $DB is a database; it runs in a folder with the case's files."""

    KEYS = Feeder.KEYS | {"command", "runs", "environment", "limit"}

    def feed(self, check):
        for number in range(self.told.get("runs", 1)):
            folder = self.folder / f"run{number}"
            shutil.copytree(self.case.folder, folder)
            more = {"MONITOR": self.programs.monitor, "AGENT": self.programs.agent or "", "DB": str(folder / "w.db"), "HOME": str(folder)}
            done = self.limited(["/bin/bash", "-c", self.told["command"]], folder, self.own_environment(more), self.told.get("limit", 60))
            document = done | {"files": files_of(folder), "lines": len(done["output"].splitlines())}
            for right in self.told["right"]:
                look = document
                if "session" in right:
                    look = document | (self.progress_in(folder / "w.db", right["session"]) or {})
                check(right, lambda look=look: look)

    def limited(self, words, folder, environment, limit):
        began = time.monotonic()
        with subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              start_new_session=True) as process:
            try:
                output, errors = process.communicate(timeout=limit)
                code = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, errors = process.communicate()
                code = None  # it was still running
        return {"exit": code, "output": output.decode(errors="backslashreplace"), "errors": errors.decode(errors="backslashreplace"),
                "seconds": round(time.monotonic() - began, 1)}


def files_of(folder):
    """The case's files after the run: their text, and the number of their lines."""
    told = {}
    for path in folder.iterdir():
        if path.is_file() and path.stat().st_size < 1 << 20 and not path.name.startswith("w.db"):
            text = path.read_text(errors="backslashreplace")
            told[path.name] = {"text": text, "lines": len(text.splitlines())}
    return told


class Agent(Command):
    """The example agent with a scripted model. answers.jsonl has one answer per line: {"text"} or {"calls": [{"name", "args", "id"}]}."""

    KEYS = Feeder.KEYS | {"environment", "limit", "goal", "before"}

    def feed(self, check):
        if not self.programs.agent:
            raise Broken("it needs the example agent as the second argument")
        folder = self.folder / "work"
        shutil.copytree(self.case.folder, folder)
        answers = [{key: value for key, value in step.items() if key != "numbers"} for step in steps_of(self.case.folder / "answers.jsonl")]
        upstream = stand_ins.Upstream([{"answer": self.pieces(answer, at)} for at, answer in enumerate(answers)], in_turn=True)
        self.closing.callback(upstream.close)
        if "before" in self.told:
            subprocess.run(["/bin/bash", "-ec", self.told["before"]], cwd=folder, env=self.own_environment({"HOME": str(folder)}), check=True,
                           capture_output=True, timeout=30)
        more = {"OPENAI_BASE_URL": upstream.url + "/v1", "OPENAI_API_KEY": "none", "WATCHDOG_DB": str(self.folder / "w.db"), "WATCHDOG_SESSION": "s",
                "WATCHDOG_EXEC": str(pathlib.Path(self.programs.agent).parent / "watchdog-exec"),
                "WATCHDOG_TOOLS_CONFIRM_WRITES": "false", "HOME": str(folder)}
        done = self.limited([self.programs.agent, self.told.get("goal", "Do it"), str(folder)], folder, self.own_environment(more | self.told.get("environment", {})),
                            self.told.get("limit", 40))
        asked = upstream.requests
        results = [message.get("content") for message in (json.loads(asked[-1]["body"])["messages"] if asked else ()) if message.get("role") == "tool"]
        if not asked and not any("errors" in right for right in self.told["right"]):
            raise Broken(f"the agent asked no model: {done['errors']}")
        document = done | {"files": files_of(folder), "results": results, "asked": len(asked)}
        if asked:
            document["status"] = self.progress_in(self.folder / "w.db", "s")
        for right in self.told["right"]:
            check(right, lambda: document)

    @staticmethod
    def pieces(answer, number):
        """A streamed chat answer."""
        delta = {"role": "assistant", "content": answer.get("text", "")}
        calls = [{"index": at, "id": call.get("id", f"call_{number}_{at}"), "type": "function",
                  "function": {"name": call["name"], "arguments": json.dumps(call.get("args", {}))}} for at, call in enumerate(answer.get("calls", ()))]
        if calls:
            delta["tool_calls"] = calls
        piece = {"id": f"answer-{number}", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        last = {**piece, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}
        return [{"head": "200 OK"}, {"data": piece}, {"data": last}, {"data": "[DONE]"}]


class Tools(Feeder):
    """`mcp-proxy` before a scripted server of tools. input.jsonl has the client's calls; server.json the server's script."""

    KEYS = Feeder.KEYS | {"arguments", "environment", "http"}

    def feed(self, check):
        server = [sys.executable, STAND_INS, "tools", str(self.folder / "server.json")]
        if self.told.get("http"):
            self.upstream = HttpTools(json.loads((self.folder / "server.json").read_text()))
            self.closing.callback(self.upstream.stop)
            server = [self.upstream.url]
        words = [self.programs.monitor, "mcp-proxy", "--config", "", "--server", "http://127.0.0.1:9", *self.told.get("arguments", [])]
        words += server if self.told.get("http") else ["--", *server]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.own_environment(), cwd=self.folder)
        self.closing.callback(self.end)
        self.odd = []  # lines that are no messages
        self.say({"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}})
        if self.hear(0, 15) is None:
            raise Broken("no answer to initialize")
        self.say({"method": "notifications/initialized"})
        answers = {}
        for number, step in enumerate(steps_of(self.case.folder / "input.jsonl"), 1):
            if "server" in step:
                getattr(self.upstream, step["server"])()
                continue
            if "wait" in step:
                time.sleep(step["wait"])
                continue
            began = time.monotonic()
            meta = {"_meta": {"progressToken": number}} if step.get("asks_progress") else {}
            self.say({"id": number, "method": "tools/call", "params": {"name": step["call"], "arguments": step.get("arguments", {}), **meta}})
            heard = self.hear(number, step.get("within", 30))
            text = json.dumps(heard.get("error")) if heard and "error" in heard else heard and heard["result"]["content"][0]["text"]
            answers[step.get("name", step["call"])] = {"text": text, "is_error": bool(heard and ("error" in heard or heard["result"].get("isError"))),
                                                       "seconds": round(time.monotonic() - began, 1)}
        document = {"answers": answers, "odd": "\n".join(self.odd), "odd_lines": len(self.odd)}
        for right in self.told["right"]:
            check(right, lambda: document)

    def say(self, message):
        self.process.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
        self.process.stdin.flush()

    def hear(self, number, within):
        end = time.monotonic() + within
        while (left := end - time.monotonic()) > 0:
            if b"\n" not in self.__dict__.setdefault("unread", b""):
                if not select.select([self.process.stdout], [], [], left)[0]:
                    return None
                piece = os.read(self.process.stdout.fileno(), 1 << 16)
                if not piece:
                    return None
                self.unread += piece
                continue
            line, _, self.unread = self.unread.partition(b"\n")
            try:
                message = json.loads(line)
            except ValueError:
                self.odd.append(line.decode(errors="backslashreplace"))
                continue
            if isinstance(message, dict) and message.get("id") == number and "method" not in message:
                return message
        return None

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


class HttpTools:
    """A server of tools over HTTP that can die within a call, be away, and come back without its sessions."""

    def __init__(self, script):
        self.script, self.port, self.made, self.listener = script, 0, 0, None
        self.start()
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def start(self):
        import http.server
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def say(self, status, value, headers=()):
                body = json.dumps(value).encode() if value is not None else b""
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                for name, text in headers:
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.say(405, {"error": "no stream"})

            def do_DELETE(self):
                self.say(200, {})

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                session = self.headers.get("Mcp-Session-Id")
                if session and session not in self.server.sessions:
                    return self.say(404, {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}})
                if message.get("method") == "initialize":
                    outer.made += 1
                    self.server.sessions.add(f"session-{outer.made}")
                    return self.say(200, {"jsonrpc": "2.0", "id": message["id"], "result": {
                        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "stand-in", "version": "1"}}},
                        [("Mcp-Session-Id", f"session-{outer.made}")])
                if "id" not in message:
                    return self.say(202, None)
                if message.get("method") != "tools/call":
                    return self.say(200, {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": []}})
                for step in outer.script["tools"][message["params"]["name"]]:
                    if "exit" in step:
                        threading.Thread(target=outer.stop, daemon=True).start()
                        self.close_connection = True
                        return None
                    time.sleep(step.get("wait", 0))
                    if "text" in step:
                        self.say(200, {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": step["text"]}]}})
                return None

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads, allow_reuse_address = True, True

        self.listener = Listener(("127.0.0.1", self.port), Handler)
        self.listener.sessions = set()
        self.port = self.listener.server_port
        threading.Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self):
        if self.listener:
            self.listener.shutdown()
            self.listener.server_close()
            self.listener = None


class Terminal(Feeder):
    """An interactive shell in a terminal of its own. input.jsonl has {"type"} and {"expect", "within"} steps."""

    KEYS = Feeder.KEYS | {"environment"}

    def feed(self, check):
        environment = self.own_environment({"MONITOR": self.programs.monitor, "DB": str(self.folder / "w.db"), "PS1": "ready$ ", "TERM": "xterm", "HISTFILE": ""})
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.folder)
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        self.closing.callback(self.end, process, terminal)
        seen, document = "", {}
        for step in steps_of(self.case.folder / "input.jsonl"):
            if "type" in step:
                os.write(terminal, step["type"].encode())
                continue
            if "wait" in step:
                time.sleep(step["wait"])
                continue
            end, mark = time.monotonic() + step.get("within", 10), ""
            while not re.search(step["expect"], mark) and (left := end - time.monotonic()) > 0:
                if select.select([terminal], [], [], left)[0]:
                    try:
                        mark += os.read(terminal, 1 << 16).decode(errors="backslashreplace")
                    except OSError:
                        break
            seen += mark
            document[step.get("name", step["expect"])] = re.search(step["expect"], mark) is not None
            if step.get("needed") and not document[step.get("name", step["expect"])]:
                raise Broken(f"the terminal did not show {step['expect']}, but {mark!r}")
        for right in self.told["right"]:
            check(right, lambda: document | {"seen": seen})

    @staticmethod
    def end(process, terminal):
        """Ends the shell and its jobs. A wrapper that went on would make its database again."""
        for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError):
                if int(status.read_text().rpartition(")")[2].split()[3]) == process:  # its session
                    os.kill(int(status.parent.name), signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)
        time.sleep(0.1)


FEEDERS = {"monitor": Monitor, "replay": Replay, "command": Command, "agent": Agent, "tools": Tools, "terminal": Terminal}
