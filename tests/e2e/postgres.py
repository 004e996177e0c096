"""A real PostgreSQL in a temporary directory, and monitors that share it: for tests and benchmarks."""

import ctypes
import glob
import http.client
import http.server
import json
import os
import pathlib
import pwd
import signal
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE_S = 60
PROGRAMS = next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)), "")
PROGRESS = "/api/autonomous/progress"
SESSIONS = "/api/autonomous/sessions"
die_with_parent = lambda libc=ctypes.CDLL(None): libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def until(true, why, patience_s=PATIENCE_S, every_s=0.05):
    """Waits for what another process does."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(every_s)
    raise AssertionError(why() if callable(why) else why)


def percentiles(times):
    """The middle one, and the one below which 99 % are, in ms."""
    times = sorted(times)
    return [round(1000 * times[min(len(times) - 1, int(len(times) * part))]) for part in (0.5, 0.99)]


class Postgres:
    """A server in a temporary directory, as an unprivileged user, on a socket of its own."""

    INITDB = ()  # more options

    def __init__(self, settings=(), environment=None):
        if not PROGRAMS:
            sys.exit("there is no PostgreSQL on this machine: install the package postgresql, as scripts/test does")
        self.folder = tempfile.TemporaryDirectory()
        self.settings, self.environment = settings, environment
        self.user = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder.name, nobody.pw_uid, nobody.pw_gid)
            self.user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self.data = os.path.join(self.folder.name, "data")
        self.log = open(os.path.join(self.folder.name, "log"), "w+")
        self.initialize()
        self.start()

    def initialize(self):
        subprocess.run([f"{PROGRAMS}/initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                        "--locale=C.UTF-8", "--no-sync", *self.INITDB], check=True, stdout=subprocess.DEVNULL, cwd="/", **self.user)

    def start(self):
        command = [f"{PROGRAMS}/postgres", "-D", self.data, "-k", self.folder.name]
        for setting in ("listen_addresses=", "fsync=off", *self.settings):
            command += ["-c", setting]
        self.process = subprocess.Popen(command, stderr=self.log, cwd="/", env=self.environment, preexec_fn=die_with_parent,
                                        **self.user)
        until(lambda: subprocess.run([f"{PROGRAMS}/pg_isready", "-q", "-h", self.folder.name]).returncode == 0,
              "PostgreSQL does not start")

    def end(self, number=signal.SIGQUIT):
        self.process.send_signal(number)
        self.process.wait()

    def crash(self):
        self.end()
        self.start()

    def url(self, database="postgres"):
        return f"postgresql:///{database}?user=postgres&host={self.folder.name}"

    def run(self, sql, database="postgres"):
        return subprocess.run([f"{PROGRAMS}/psql", "-qAtX", "-h", self.folder.name, "-U", "postgres", database, "-c", sql],
                              check=True, capture_output=True, text=True).stdout.strip()

    def stop(self):
        self.end()
        self.log.close()
        self.folder.cleanup()


class Monitor:
    """A monitor, on a machine of its own as far as its files go."""

    def __init__(self, program, database, arguments=(), settings="", environment=None):
        self.program = program
        self.home = tempfile.TemporaryDirectory()
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("WATCHDOG_", "XDG_", "OPENAI_"))}
        # Messages are not grouped: each alert shows by itself when it is sent, and by whom.
        self.environment |= {"HOME": self.home.name, "no_proxy": "*", "WATCHDOG_INTERNAL_TIMES": "alerts.messages_max=1000"}
        self.environment |= environment or {}
        self.log = open(os.path.join(self.home.name, "log"), "w+")
        command = [program, "serve", "--db", database, "--port", "0", *arguments]
        if settings:
            config = pathlib.Path(self.home.name, "settings.toml")
            config.write_text(settings)
            command += ["--config", str(config)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True, env=self.environment,
                                        preexec_fn=die_with_parent)
        line = self.process.stdout.readline()
        if not line.startswith("listening on http"):
            sys.exit(f"{program} says: {line} {self.said()}")
        self.host = line.split("://")[1].strip()
        self.secret = pathlib.Path(self.home.name, ".local/state/watchdog/server-token").read_text().split()[-1]

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def ask(self, method, path, body=None, patience_s=PATIENCE_S):
        connection = http.client.HTTPConnection(self.host, timeout=patience_s)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        return response.status, json.loads(text) if text.startswith(("{", "[")) else text

    def ready(self):
        return self.ask("GET", "/readyz")[1]

    def report(self, session, kind="state_change", name=None, **members):
        """As agents do: again until it is acknowledged."""
        event = {"kind": kind, "event_id": f"{session}-{time.monotonic_ns()}", **members}
        if kind == "state_change":
            event["type"] = name or "step"
        elif name:
            event["name"] = name
        return until(lambda: (lambda answer: answer if answer[0] in (200, 201, 202) else None)(
            self.ask("POST", f"{SESSIONS}/{session}/events", event)), f"{session} cannot report")

    def progress(self, session):
        return self.ask("GET", f"{PROGRESS}/{session}")[1]

    def command(self, *words):
        return subprocess.run([self.program, *words], capture_output=True, text=True,
                              env=self.environment | {"WATCHDOG_SERVER": f"http://{self.host}", "WATCHDOG_TOKEN": self.secret})

    def records(self, path="/api/autonomous/stream"):
        """The records of a stream, as (kind, data)."""
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE_S)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.secret}"})
        response = connection.getresponse()
        kind = None
        for line in iter(response.readline, b""):
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                yield kind, json.loads(value)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait()
        self.process.stdout.close()
        text = self.said()
        self.log.close()
        self.home.cleanup()
        return text


class Hook(http.server.ThreadingHTTPServer):
    """A webhook that keeps what came: (the path, the alerts)."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.daemon_threads = True
        self.came = []
        self.hanging = set()  # paths of which no request is answered
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def settings(self, path):
        return f'[alerts.channels.hook]\nurl = "http://127.0.0.1:{self.server_port}/{path}"\n'

    def handle_error(self, *_):
        """Who sent it is gone: of no interest here."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path = self.path.strip("/")
            self.server.came.append((path, body))
            while path in self.server.hanging:
                time.sleep(0.05)
            self.send_response(204)
            self.end_headers()
