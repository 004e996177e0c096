#!/usr/bin/env python3
"""OpenTelemetry of a real monitor: the port of its own, and what it exports to a collector and to another monitor.

Usage: otlp_test.py MONITOR
"""

import http.client
import http.server
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from server import Server

MONITOR = sys.argv.pop(1)
CERTIFICATES = pathlib.Path(__file__).parent.parent / "data" / "tls"
RECORDED = pathlib.Path(__file__).parent.parent / "data" / "otlp"
CODEX = "01a202d9-6d73-7250-b7bb-32a518cc6577"
PATIENCE_S = 60


def ask(host, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection(host, timeout=PATIENCE_S)
    text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
    connection.request(method, path, text, {"Content-Type": "application/json"} | (headers or {}))
    response = connection.getresponse()
    content = response.read()
    connection.close()
    try:
        return response.status, json.loads(content or b"null")
    except ValueError:
        return response.status, content


def until(found, what):
    """What `found` returns, as soon as that is true."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError(f"no {what} within {PATIENCE_S} s")


def report(server, session, *events):
    status, answer = ask(server.host, "POST", f"/api/autonomous/sessions/{session}/events", "\n".join(map(json.dumps, events)))
    assert status == 200, answer


def events(server, session):
    return ask(server.host, "GET", f"/api/autonomous/sessions/{session}/events?limit=1000")[1].get("events", [])


def counted(server, state):
    metrics = ask(server.host, "GET", "/metrics")[1].decode()
    line = next(line for line in metrics.splitlines() if line.startswith(f'watchdog_export_items_total{{state="{state}"}}'))
    return int(float(line.split()[-1]))


class OtlpPort(unittest.TestCase):
    def setUp(self):
        self.server = Server(MONITOR, arguments=["--otlp", "0"]).__enter__()
        self.addCleanup(self.server.__exit__)
        line = next(line for line in iter(self.server.process.stdout.readline, "") if line.endswith(" for OTLP\n"))
        self.port = line.split("://")[1].split()[0]

    def test_it_takes_telemetry_and_nothing_else(self):
        for line in RECORDED.joinpath("codex-tools.jsonl").read_text().splitlines():
            line = json.loads(line)
            self.assertEqual(ask(self.port, "POST", line["path"], line["body"])[0], 200)
        self.assertEqual(ask(self.server.host, "GET", f"/api/autonomous/progress/{CODEX}")[1]["agent"], "codex")
        for method, path in (("GET", "/"), ("GET", "/healthz"), ("GET", "/metrics"), ("GET", "/api/autonomous/sessions"),
                             ("POST", "/api/autonomous/sessions"), ("POST", "/api/hooks/codex"), ("GET", "/login")):
            with self.subTest(path=path):
                status, answer = ask(self.port, method, path)
                self.assertEqual(status, 404)
                self.assertIn("/v1/logs", answer["error"]["message"])
        self.assertEqual(ask(self.port, "GET", "/v1/logs")[0], 405)
        self.assertEqual(ask(self.port, "POST", "/v1/else", {})[0], 404)
        self.assertEqual(ask(self.port, "POST", "/v1/logs", {}, {"Origin": "http://elsewhere"})[0], 403)

    def test_a_header_names_the_session_of_a_request(self):
        line = json.loads(RECORDED.joinpath("codex-tools.jsonl").read_text().splitlines()[1])
        self.assertEqual(ask(self.port, "POST", line["path"], line["body"], {"X-Watchdog-Session": "nightly"})[0], 200)
        self.assertIn("user_input", [event["kind"] for event in events(self.server, "nightly")])

    def test_a_span_of_two_hours_ago_shows_progress_of_then(self):
        ago_ms = 7_200_000
        end = time.time_ns() - ago_ms * 1_000_000
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.conversation.id": "late", "gen_ai.tool.name": "readFile",
                      "gen_ai.tool.call.id": "c1"}
        span = {"traceId": "3" * 32, "spanId": "4" * 16, "name": "execute_tool readFile", "kind": 1,
                "startTimeUnixNano": str(end - 1_000_000_000), "endTimeUnixNano": str(end), "status": {"code": 0},
                "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]}
        body = {"resourceSpans": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "copilot-chat"}}]},
                                   "scopeSpans": [{"scope": {"name": "x"}, "spans": [span]}]}]}
        self.assertEqual(ask(self.port, "POST", "/v1/traces", body, {"X-Watchdog-Session": "late"})[0], 200)
        ago = until(lambda: ask(self.server.host, "GET", "/api/autonomous/progress/late")[1]["progress"]["lastChangeAgo"], "change")
        self.assertGreaterEqual(ago, ago_ms - 1_000)
        row = ask(self.server.host, "GET", "/api/autonomous/sessions")[1]["sessions"][0]
        self.assertLessEqual(row["lastChangeAt"], end / 1_000_000 + 1_000)

    def test_a_taken_port_is_said_clearly(self):
        taken = self.port.rpartition(":")[2]
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run([MONITOR, "serve", "--port", "0", "--db", os.path.join(folder, "w.db"), "--otlp", taken],
                                 capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        self.assertIn(f"cannot listen on 127.0.0.1 port {taken}", ran.stderr)
        self.assertIn("--otlp", ran.stderr)

    def test_the_usual_port_needs_no_number(self):
        ran = subprocess.run([MONITOR, "config", "--config", "", "--otlp"], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertRegex(ran.stdout, r"(?m)^monitor\.otlp_port +4318 ", ran.stderr)


class Collector:
    """Takes OTLP in JSON, on loopback. `status`: its answer; `requests`: what came."""

    def __init__(self, status=200, port=0, tls=None):
        self.status, self.port, self.tls, self.requests, self.lock = status, port, tls, [], threading.Lock()

    def __enter__(self):
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            log_message = lambda *_: None

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with collector.lock:
                    collector.requests.append((self.path, dict(self.headers), json.loads(body)))
                self.send_response(collector.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        if self.tls:
            self.server.socket = self.tls.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def all(self, path, *members):
        """The innermost lists of all requests to a path."""
        with self.lock:
            found = [body for at, _, body in self.requests if at == path]
        for member in members:
            found = [item for each in found for item in each[member]]
        return found

    def spans(self):
        return self.all("/v1/traces", "resourceSpans", "scopeSpans", "spans")

    def logs(self):
        return self.all("/v1/logs", "resourceLogs", "scopeLogs", "logRecords")


def told(item):
    return {pair["key"]: pair["value"]["stringValue"] for pair in item["attributes"]}


class Export(unittest.TestCase):
    def start(self, endpoint, headers=None, more=None):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        settings = f'[export.otlp]\nendpoint = "{endpoint}"\n'
        if headers is not None:
            file = pathlib.Path(folder.name, "headers")
            file.write_text(headers)
            file.chmod(0o600)
            settings += f'headers_file = "{file}"\n'
        config = pathlib.Path(folder.name, "watchdog.toml")
        config.write_text(settings)
        server = Server(MONITOR, more, arguments=["--config", str(config)])
        server.__enter__()
        self.addCleanup(server.__exit__)
        return server

    def log(self, server):
        server.log.seek(0)
        return server.log.read()

    def play(self, server, session="s"):
        ask(server.host, "POST", "/api/autonomous/sessions", {"sessionId": session, "agent": "builder", "task": "build it"})
        secret = "sk-ant-api03-" + "x" * 80 + "AA"
        report(server, session, {"kind": "state_change", "type": "plan"},
               {"kind": "tool_call", "name": "shell", "call_id": "c1", "args": {"command": f"curl -H 'x-api-key: {secret}'"}},
               {"kind": "tool_result", "name": "shell", "call_id": "c1", "text": "ok"},
               {"kind": "tool_call", "name": "shell", "call_id": "c2", "args": {"command": "false"}},
               {"kind": "error", "name": "shell", "call_id": "c2", "text": f"it failed with {secret}"},
               {"kind": "end", "outcome": "failed", "reason": "gave_up", "error": f"no way: {secret}"})
        return secret

    def test_a_session_is_a_trace_with_its_calls_and_changes_of_health(self):
        with Collector() as collector:
            server = self.start(collector.url + "/", "# of the collector\nX-Key: secret-of-the-collector\n")
            secret = self.play(server)
            until(lambda: any(span["name"].startswith("invoke_agent") for span in collector.spans()), "span of the session")
            spans = collector.spans()
            by_name = {}
            for span in spans:
                by_name.setdefault(span["name"], []).append(span)
            self.assertEqual(sorted(by_name), ["execute_tool shell", "invoke_agent builder"])
            root, = by_name["invoke_agent builder"]
            self.assertNotIn("parentSpanId", root)
            self.assertEqual(root["status"]["code"], 2)
            self.assertEqual(told(root)["gen_ai.conversation.id"], "s")
            self.assertEqual(told(root)["watchdog.outcome"], "failed")
            self.assertIn("watchdog.health", [event["name"] for event in root["events"]])
            for span in spans:
                self.assertRegex(span["traceId"], "^[0-9a-f]{32}$")
                self.assertRegex(span["spanId"], "^[0-9a-f]{16}$")
                self.assertEqual(span["traceId"], root["traceId"])
                self.assertLessEqual(int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]))
            calls = by_name["execute_tool shell"]
            self.assertEqual({span["parentSpanId"] for span in calls}, {root["spanId"]})
            self.assertEqual([told(span).get("error.type") for span in calls], [None, "tool_error"])
            logs = until(collector.logs, "log record")
            self.assertIn("progressing", [told(record)["watchdog.health"] for record in logs])
            with collector.lock:
                text = json.dumps(collector.requests)
            self.assertNotIn(secret, text)
            self.assertNotIn("curl", text)
            self.assertTrue(all(headers.get("X-Key") == "secret-of-the-collector" for _, headers, _ in collector.requests))
            until(lambda: counted(server, "sent") == len(collector.spans()) + len(collector.logs()), "count of what was sent")
            self.assertEqual(counted(server, "dropped"), 0)

    def test_another_monitor_shows_what_this_one_exports(self):
        with Server(MONITOR) as other:
            server = self.start(f"http://{other.host}")
            self.play(server)
            until(lambda: len(events(other, "s")) == 5, "session in the other monitor")
            self.assertEqual(sorted(event["kind"] for event in events(other, "s")), ["error", "idle", "tool_call", "tool_call", "tool_result"])
            self.assertEqual(ask(other.host, "GET", "/api/autonomous/progress/s")[1]["agent"], "builder")

    def test_a_private_authority_is_trusted_if_a_variable_names_it(self):
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(CERTIFICATES / "cert.pem", CERTIFICATES / "key.pem")
        with Collector(tls=own) as collector:
            trusting = self.start(collector.url, more={"SSL_CERT_FILE": str(CERTIFICATES / "cert.pem")})
            self.play(trusting)
            until(lambda: len(collector.spans()) == 3, "spans over TLS")
            stranger = self.start(collector.url)
            self.play(stranger)
            until(lambda: "export failed" in self.log(stranger), "word about the certificate")
            self.assertEqual((len(collector.spans()), counted(stranger, "sent")), (3, 0))

    def test_an_absent_collector_costs_nothing_and_gets_all_when_it_is_there(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = self.start(f"http://127.0.0.1:{port}")
        self.play(server)
        self.assertEqual(ask(server.host, "GET", "/readyz")[0], 200)
        until(lambda: "export failed" in self.log(server), "word about the absent collector")
        collector = Collector(port=port).__enter__()
        self.addCleanup(collector.__exit__)
        until(lambda: len(collector.spans()) == 3, "spans that waited")
        until(lambda: "export recovered" in self.log(server), "word about the collector")

    def test_refused_spans_are_counted_and_not_sent_again(self):
        with Collector(400) as collector:
            server = self.start(collector.url)
            self.play(server)
            until(lambda: len(collector.spans()) == 3, "refused spans")
            until(lambda: counted(server, "dropped") >= 3, "count of what was dropped")
            self.assertEqual(counted(server, "sent"), 0)

    def test_wrong_settings_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            config, headers = pathlib.Path(folder, "c.toml"), pathlib.Path(folder, "h")
            headers.write_text("no header\n")
            headers.chmod(0o600)
            config.write_text(f'[export.otlp]\nendpoint = "http://127.0.0.1:1"\nheaders_file = "{headers}"\n')
            run = lambda *more: subprocess.run(
                [MONITOR, "serve", "--config", str(config), "--db", os.path.join(folder, "w.db"), *more],
                capture_output=True, text=True, timeout=PATIENCE_S)
            ran = run("--port", "0")
            self.assertEqual((ran.returncode, "line 1 must be" in ran.stderr), (3, True), ran.stderr)
            headers.write_text("X-Key: k\n")
            headers.chmod(0o644)
            self.assertEqual(run("--port", "0").returncode, 3)
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            config.write_text(f'[export.otlp]\nendpoint = "http://localhost:{port}"\n')
            ran = run("--port", str(port))
            self.assertEqual((ran.returncode, "this monitor itself" in ran.stderr), (3, True), ran.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=0)
