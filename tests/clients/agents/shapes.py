"""What each agent sends: events of hooks with their members, headers of requests to the model, names in telemetry.

`shapes/AGENT.json` keeps it for the version that was looked at last. A difference is news about the agent and no fault.
"""

import gzip
import http.server
import json
import pathlib
import subprocess
import tempfile
import threading

from scripted_model import ScriptedModel

KEPT = pathlib.Path(__file__).resolve().parent / "shapes"
PATIENCE_S = 120
SCRIPT = [("shell", "echo one"), ("shell", "ls /no/such/directory"), "It is done."]


class Recorder:
    """Answers all reports with success, and keeps the names in them."""

    def __enter__(self):
        self.hooks, self.telemetry = {}, set()
        recorder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                try:
                    recorder.keep(self.path, json.loads(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body))
                except ValueError:
                    recorder.telemetry.add(f"{self.path}: not JSON")
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # Of clients that go away.
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def keep(self, path, document):
        if "/api/hooks/" in path:
            event = document.get("hook_event_name") or document.get("hookName") or document.get("type") or "without a name"
            members = document.get("properties", document)
            self.hooks.setdefault(event, set()).update(members if isinstance(members, dict) else ())
            return
        self.telemetry.update(names_of(document))


def names_of(value):
    """Names of spans, logs, metrics and attributes, wherever they are."""
    if isinstance(value, list):
        return {name for one in value for name in names_of(one)}
    if not isinstance(value, dict):
        return set()
    found = {name for one in value.values() for name in names_of(one)}
    if "key" in value:
        found.add(value["key"])
        if value["key"] == "event.name":
            found.add("event " + value.get("value", {}).get("stringValue", ""))
    if "spanId" in value and "name" in value:
        found.add("span " + value["name"])
    if "name" in value and any(kind in value for kind in ("sum", "gauge", "histogram")):
        found.add("metric " + value["name"])
    return found


def shape_of(name, make, packages, program):
    """What an agent sends in one run with two calls, one of which fails."""
    with tempfile.TemporaryDirectory(prefix="shape-") as folder, ScriptedModel(SCRIPT) as model, Recorder() as recorder:
        agent = make(packages, folder, program, recorder.url, model.url, "all")
        command = [str(word) for word in agent.command("Please do what is to be done.", False)]
        try:
            subprocess.run(command, cwd=agent.project, env=agent.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            pass  # The names that came until then are kept.
        return {"hooks": {event: sorted(members) for event, members in sorted(recorder.hooks.items())},
                "headers": sorted(model.headers), "telemetry": sorted(recorder.telemetry)}


def lines_of(shape):
    """One line for each name."""
    lines = {f"hook {event}" for event in shape["hooks"]}
    lines |= {f"hook {event}: {member}" for event, members in shape["hooks"].items() for member in members}
    return lines | {f"header {name}" for name in shape["headers"]} | {f"telemetry {name}" for name in shape["telemetry"]}


def compare(name, make, packages, program, version, keep):
    """Prints the names that came or went since the kept version. With `keep` the new ones are kept."""
    now = shape_of(name, make, packages, program)
    if not now["headers"]:
        print(f"{name} {version}: it asked its model nothing within {PATIENCE_S} s, so its names are not compared")
        return
    file = KEPT / f"{name}.json"
    was = json.loads(file.read_text()) if file.exists() else {"version": "none", "hooks": {}, "headers": [], "telemetry": []}
    old, new = lines_of(was), lines_of(now)
    print(f"{name} {version}, compared with {was['version']}: {len(new - old)} new, {len(old - new)} gone")
    for sign, lines in (("+", new - old), ("-", old - new)):
        for line in sorted(lines):
            print(f"  {sign} {line}")
    if keep:
        KEPT.mkdir(exist_ok=True)
        file.write_text(json.dumps({"version": version} | now, indent=1) + "\n")
