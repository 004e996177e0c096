"""One observation of what a setting does: programs with that setting, and servers that they talk to.

A probe is a function of a `Trial`. It gives the setting its other value with `trial.set`, starts programs, and returns
what it saw as a word. `settings_effect_test.py` runs each probe without the other value, with it in a file, and with it
in each variable.
"""

import contextlib
import ctypes
import http.client
import http.server
import json
import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

MONITOR, AGENT, TASK_AGENT = (os.path.abspath(sys.argv.pop(1)) for _ in range(3))
TLS = pathlib.Path(__file__).parent.parent / "data" / "tls"
PATIENCE_S = 40
SESSIONS = "/api/autonomous/sessions"
PROGRESS = "/api/autonomous/progress"
# Pauses that users cannot set, at their shortest.
TIMES = ("run.retries=1,run.retry_first_ms=1,alerts.group_seconds=0,alerts.messages_max=1000,alerts.retry_first_ms=5,"
         "monitor.ping_interval_seconds=1,proxy.keep_alive_after_seconds=0,proxy.keep_alive_every_seconds=0,"
         "proxy.look_every_ms=100")
DEFAULT, FILE = "default", "file"  # Sources of a value; any other is the name of a variable.

PROBES = {}


class Probe:
    """What one setting does. `default`, `other`: what is seen without and with its other value."""

    def __init__(self, look, default, other, name="", fault="", only=""):
        self.look, self.seen, self.fault, self.only = look, {False: default, True: other}, fault, only
        self.name = name  # In the place of the * of the key.


def probe(key, default, other, **more):
    """Puts a function into the table. `fault`: why it is known not to hold. `only`: why it has only one source."""

    def put(look):
        assert key not in PROBES, key
        PROBES[key] = Probe(look, default, other, **more)
        return look

    return put


def until(found, what, patience_s=PATIENCE_S):
    """What `found` returns, as soon as that is true."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {patience_s} s: {what() if callable(what) else what}")


def free_port():
    """A port that nobody has, below those that the system gives to others meanwhile."""
    while True:
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", random.randrange(20_000, 32_000)))
            return free.getsockname()[1]


class Fake(http.server.ThreadingHTTPServer):
    """A server that keeps what it is asked. `answer(handler, body)` replies to a POST; without it, all get {}."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answer=None, tls=False):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.asked, self.changed = answer, [], threading.Condition()
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, *_):
        """The client is gone, or does not trust the certificate: the probe sees that elsewhere."""

    def posts(self):
        return [request for request in self.asked if request["method"] == "POST"]

    def wait(self, holds=lambda request: True, patience_s=PATIENCE_S):
        """The first such request; None: there was none."""
        with self.changed:
            self.changed.wait_for(lambda: any(map(holds, self.asked)), patience_s)
            return next(filter(holds, self.asked), None)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, value, status=200, content="application/json"):
        body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", content)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def take(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        with self.server.changed:
            self.server.asked.append({"method": self.command, "path": self.path, "headers": self.headers, "text": body})
            self.server.changed.notify_all()
        return body

    def do_GET(self):
        self.take()
        if self.server.answer and self.path != "/version":
            return self.say({}, 404)
        self.say({"version": "0.9.1"})  # as vLLM, which works on several requests at once

    def do_POST(self):
        body = self.take()
        self.server.answer(self, json.loads(body)) if self.server.answer else self.say({})

    do_PUT = do_POST

    def is_left(self, seconds):
        """Whether the client hangs up within this time."""
        return bool(select.select([self.connection], [], [], seconds)[0])


def chat(name="m"):
    return {"model": name, "stream": True, "messages": [{"role": "user", "content": "hi"}]}


HANGS = """import socket, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    connection = server.accept()[0]
    if connection.recv(65536).startswith(b"POST"):
        print("asked", flush=True)
        kept = connection
    else:
        connection.sendall(b"HTTP/1.1 404 Not Found\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n")
        connection.close()
"""


class HangingModel:
    """A model server that keeps a request, and that stops then."""

    def __init__(self, trial):
        self.process = subprocess.Popen([sys.executable, "-c", HANGS], stdout=subprocess.PIPE, text=True)
        trial.stack.callback(lambda: (self.process.kill(), self.process.wait(), self.process.stdout.close()))
        self.pid, self.url = self.process.pid, f"http://127.0.0.1:{self.process.stdout.readline().strip()}"

    def hang(self, monitor):
        """Stops it at a request of the session `one`, and returns when the monitor knows. Gives the list of the statuses that the client gets."""
        proxy, answers = monitor.proxy(), []
        threading.Thread(target=lambda: answers.append(monitor.ask("POST", "/s/one/v1/chat/completions", chat(), host=proxy)[0]),
                         daemon=True).start()
        self.process.stdout.readline()
        time.sleep(0.3)
        self.process.send_signal(signal.SIGSTOP)
        hung = lambda: [event for event in monitor.ask("GET", f"{SESSIONS}/one/events?kind=evidence")[1].get("events", [])
                        if event["state"] == "hung"]
        until(hung, lambda: monitor.ask("GET", f"{SESSIONS}/one/events"))
        return answers


def model(*steps, check='{"status":"B","reason":"it does the same again"}'):
    """A model that does these steps in turn, and the last one again and again.

    A step is a text to say, a call (NAME, ARGUMENTS), or a number of seconds to be silent before the word "late".
    """
    lock, count = threading.Lock(), [0]

    def answer(handler, asked):
        delta, finish = {"content": check}, "stop"
        if "response_format" not in asked:
            with lock:
                step = steps[min(count[0], len(steps) - 1)]
                count[0] += 1
            if isinstance(step, tuple) and not asked.get("tools"):
                step = "no tool is left"
            if isinstance(step, (int, float)):
                if handler.is_left(step):
                    return
                step = "late"
            delta = {"content": step}
            if isinstance(step, tuple):
                call = {"name": step[0], "arguments": json.dumps(step[1])}
                delta, finish = {"tool_calls": [{"index": 0, "id": f"call{count[0]}", "type": "function", "function": call}]}, "tool_calls"
        pieces = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
                  {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
                  {"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 5}}]
        text = "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces)
        handler.say(text + "data: [DONE]\n\n", content="text/event-stream")

    return answer


class Trial:
    """One observation, in a folder of its own."""

    def __init__(self, key, source, stack):
        self.key, self.source, self.stack = key, source, stack
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="settings-")))
        self.base = {"monitor.db": str(self.folder / "w.db"), "monitor.port": 0, "proxy.port": 0, "proxy.probe": False}
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith(("WATCHDOG_", "OPENAI_", "XDG_", "AGENT_", "AUTONOMOUS_"))}
        self.environment |= {"HOME": str(self.folder), "WATCHDOG_INTERNAL_TIMES": TIMES, "LC_ALL": "C.UTF-8", "no_proxy": "*"}
        self.is_set, self.fakes = source != DEFAULT, []

    def set(self, value, **base):
        """The setting's other value. Keys of `base` are in the file either way, with __ for dots."""
        self.base |= {key.replace("__", "."): item for key, item in base.items()}
        if self.source == FILE:
            self.base[self.key] = value
        elif self.is_set:
            text = value if isinstance(value, str) else json.dumps(value)
            self.environment[self.source] = text

    def secret(self, name, text):
        path = self.folder / name
        path.write_text(text + "\n")
        path.chmod(0o600)
        return str(path)

    def certificate(self):
        """Files that a server can use: the certificate and its key."""
        shutil.copy(TLS / "key.pem", self.folder / "key.pem")
        (self.folder / "key.pem").chmod(0o600)
        return str(TLS / "cert.pem"), str(self.folder / "key.pem")

    def fake(self, answer=None, tls=False):
        self.fakes.append(self.stack.enter_context(Fake(answer, tls)))
        return self.fakes[-1]

    def requests(self):
        """What its servers were asked, for the message of a failure."""
        return [[f"{asked['method']} {asked['path']} {asked['text'][:100]}" for asked in fake.asked] for fake in self.fakes]

    def settled(self):
        """The environment of a program with all settings."""
        path = self.folder / "watchdog.toml"
        path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in self.base.items()))
        return self.environment | {"WATCHDOG_CONFIG": str(path)}

    def command(self, *words, program=MONITOR, **more):
        return subprocess.run([program, *map(str, words)], env=self.settled() | more, cwd=self.folder, capture_output=True,
                              text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, check=False)

    # -- the example agent

    def agent(self, *steps, model_url=None):
        """Runs it to its end, as which it says "OUTCOME, REASON", or what it refuses."""
        self.work = self.folder / "work"
        self.work.mkdir()
        self.model = self.fake(model(*steps))
        self.base.setdefault("model.base_url", model_url or self.model.url)
        self.ran = self.command("what is in here?", self.work, program=AGENT, WATCHDOG_SESSION="agent")
        end = re.search(r"^agent: (.*?)\. ", self.ran.stderr, re.M)
        return end[1] if end else f"exit code {self.ran.returncode}: {self.ran.stderr.strip()}"

    def task_agent(self, *words):
        """What the agent with phases and tasks prints."""
        ran = self.command(*words, program=TASK_AGENT)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def events(self, kind=None, session="agent"):
        ran = self.command("events", session, "--all", "--json", "--db", self.folder / "w.db", *(["--kind", kind] if kind else []))
        return [json.loads(line) for line in ran.stdout.splitlines()]

    # -- the monitor

    def serve(self, *words):
        self.monitor = self.stack.enter_context(Monitor(self, words))
        return self.monitor

    def hook(self):
        """A receiver of alerts on the channel `hook`."""
        receiver = self.fake()
        self.base["alerts.channels.hook.url"] = receiver.url
        return receiver


class Monitor:
    """A monitor that runs with the settings of a trial."""

    def __init__(self, trial, words):
        self.trial, self.words, self.lines = trial, words, []

    def __enter__(self):
        self.log = open(self.trial.folder / "log", "a+", encoding="utf-8")
        self.start()
        return self

    def start(self):
        die_with_parent = lambda libc=ctypes.CDLL(None): libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        self.process = subprocess.Popen([MONITOR, "serve", *self.words], env=self.trial.settled(), stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, preexec_fn=die_with_parent, cwd=self.trial.folder)
        self.url = self.line("listening on http").split()[2]
        self.host, self.is_https = self.url.split("://")[1], self.url.startswith("https")

    def line(self, text):
        """The line of its output with this text; fails at the end of the output."""
        for line in self.process.stdout:
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"it does not say {text!r} but {self.lines} and {self.said()}")

    def said(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()

    def restart(self):
        self.__exit__()
        self.__enter__()

    def ask(self, method, path, body=None, headers=None, host=None):
        maker = http.client.HTTPConnection
        if self.is_https:
            maker = lambda *a, **k: http.client.HTTPSConnection(*a, **k, context=ssl.create_default_context(cafile=TLS / "cert.pem"))
        with contextlib.closing(maker(host or self.host, timeout=PATIENCE_S)) as connection:
            text = body if body is None or isinstance(body, str) else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"} | (headers or {}))
            answer = connection.getresponse()
            content = answer.read().decode()
        return answer.status, json.loads(content) if content.startswith(("{", "[")) else content

    def report(self, session, *events):
        status, answer = self.ask("POST", f"{SESSIONS}/{session}/events", list(events))
        assert status == 200, answer

    def progress(self, session):
        return self.ask("GET", f"{PROGRESS}/{session}")[1]

    def health(self, session, *wanted, patience_s=PATIENCE_S):
        """Its health, as soon as it is one of these, and in the end whatever it is."""
        with contextlib.suppress(AssertionError):
            until(lambda: self.progress(session).get("health") in wanted, wanted, patience_s)
        return self.progress(session).get("health")

    def fail_session(self, session, **spec):
        self.ask("POST", SESSIONS, {"sessionId": session, "agent": "tester"} | spec)
        self.report(session, {"kind": "end", "outcome": "failed", "reason": "tool_error", "error": "it broke"})

    def loop_session(self, session, calls, tool="read", args=lambda number: {"path": "a"}, text="the same"):
        """The same call and result, again and again."""
        events = []
        for number in range(calls):
            call = {"name": tool, "call_id": f"c{number}"}
            events += [call | {"kind": "tool_call", "args": args(number)}, call | {"kind": "tool_result", "text": text}]
        self.report(session, *events)

    def proxy(self):
        """The address that agents use as their model's."""
        return re.search(r"127\.0\.0\.1:\d+", self.line("their model at"))[0]

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()
