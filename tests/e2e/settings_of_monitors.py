"""What the settings of the monitor and its proxy do: each is a probe of `watchdog-monitor serve`."""

import contextlib
import http.client
import json
import os
import socket
import threading
import time

from mails import Mails
from settings_trial import PATIENCE_S, PROGRESS, SESSIONS, TLS, HangingModel, chat, free_port, model, probe, until
from upstream import chunk

NO_VARIABLE = "a rule of a tool is a table, and an environment variable holds one value"
UNASKED = 0.3  # Seconds in which nothing comes.


def wait_for(found, trial):
    """Waits for what the other value brings, and only a moment if it is not set. Returns what `found` returns."""
    with contextlib.suppress(AssertionError):
        until(found, "", PATIENCE_S if trial.is_set else UNASKED)
    return found()


def wait_for_default(found, trial):
    """The same for what comes only without the other value."""
    with contextlib.suppress(AssertionError):
        until(found, "", UNASKED if trial.is_set else PATIENCE_S)


# -- [checks]


@probe("checks.enabled", default=202, other=503)
def checks_enabled(trial):
    server = trial.fake(model(""))
    trial.set(False, checks__base_url=server.url)
    monitor = trial.serve()
    monitor.report("s", {"kind": "state_change", "type": "step"})
    return monitor.ask("POST", "/api/autonomous/check-status", {"sessionId": "s"})[0]


@probe("checks.on_suspicion", default="asks by itself", other="does not ask")
def checks_on_suspicion(trial):
    server = trial.fake(model(""))
    trial.set(False, checks__base_url=server.url)
    monitor = trial.serve()
    monitor.loop_session("s", 3)
    monitor.health("s", "suspect")
    wait_for_default(server.posts, trial)
    return "asks by itself" if server.posts() else "does not ask"


def checked(trial, server):
    """The request of a check."""
    monitor = trial.serve()
    monitor.report("s", {"kind": "state_change", "type": "step"})
    monitor.ask("POST", "/api/autonomous/check-status", {"sessionId": "s", "checkId": "c"})
    until(lambda: monitor.ask("GET", "/api/autonomous/check-status/c")[1].get("state") != "pending", "the check does not end")
    return server.posts()


@probe("checks.model", default="default", other="judge")
def checks_model(trial):
    server = trial.fake(model(""))
    trial.set("judge", checks__base_url=server.url)
    return json.loads(checked(trial, server)[0]["text"])["model"]


@probe("checks.base_url", default="model.base_url", other="checks.base_url")
def checks_base_url(trial):
    agents, own = trial.fake(model("")), trial.fake(model(""))
    trial.set(own.url, model__base_url=agents.url)
    return "checks.base_url" if checked(trial, own) else "model.base_url" if agents.posts() else "neither"


# -- [policy]


@probe("policy.heartbeatInterval", default="progressing", other="silent")
def policy_heartbeat_interval(trial):
    trial.set(100)
    monitor = trial.serve()
    monitor.report("s", {"kind": "state_change", "type": "step"})
    for _ in range(4):
        monitor.report("s", {"kind": "heartbeat", "source": "sidecar"})
        time.sleep(0.1)
    return monitor.health("s", "silent", "dead", patience_s=5 if trial.is_set else 1)


@probe("policy.stuckThreshold", default="progressing", other="stuck")
def policy_stuck_threshold(trial):
    trial.set(2)
    monitor = trial.serve()
    monitor.report("s", {"kind": "state_change", "type": "step"},
                   *({"kind": "heartbeat", "source": "loop", "iteration": number} for number in range(1, 4)))
    return monitor.health("s", "progressing", "stuck")


@probe("policy.callIdleMax", default="progressing", other="stuck")
def policy_call_idle_max(trial):
    trial.set(1_000)
    monitor = trial.serve()
    monitor.report("s", {"kind": "state_change", "type": "step"},
                   {"kind": "tool_call", "name": "build", "call_id": "c", "args": {}})
    time.sleep(1.2)
    monitor.report("s", *({"kind": "heartbeat", "source": "loop", "iteration": number} for number in range(1, 8)))
    return monitor.health("s", "progressing", "stuck")


@probe("policy.tools.*.use", default="looping", other="progressing", name="peek", only=NO_VARIABLE)
def policy_use(trial):
    trial.set("exempt")
    monitor = trial.serve()
    monitor.loop_session("s", 5, "peek")
    return monitor.health("s", "looping", "progressing")


@probe("policy.tools.*.identity", default="progressing", other="looping", name="peek", only=NO_VARIABLE)
def policy_identity(trial):
    trial.set(["path"])
    monitor = trial.serve()
    monitor.loop_session("s", 5, "peek", lambda number: {"path": "a", "request": f"{number} {'xyzuvw'[number]}" * 3})
    return monitor.health("s", "looping", "progressing")


# -- [privacy]


@probe("privacy.patterns", default="order ZEBRA-12345678", other="order [redacted]")
def privacy_patterns(trial):
    trial.set(["ZEBRA-[0-9]{8}"])
    monitor = trial.serve()
    monitor.report("s", {"kind": "message", "role": "assistant", "text": "order ZEBRA-12345678"})
    return monitor.ask("GET", f"{SESSIONS}/s/events")[1]["events"][0]["text"]


# -- [alerts]


def alerted(receiver, last="fence"):
    """The sessions whose alerts came, in their order, up to the last one's."""
    come = lambda: [alert["sessionId"] for request in receiver.posts() for alert in json.loads(request["text"])["alerts"]]
    until(lambda: last in come(), lambda: f"no alert about {last}: {come()}")
    return come()


def alerted_with(trial, value, *events, comes_first=None, **others):
    """Reports these events of `waits`, and then the failure of `fence`. `comes_first`: once there is an alert."""
    receiver = trial.hook()
    trial.set(value, **others)
    monitor = trial.serve()
    monitor.report("waits", {"kind": "state_change", "type": "step"}, *events)
    if trial.is_set if comes_first is None else comes_first:
        receiver.wait()
    monitor.fail_session("fence")
    return alerted(receiver)


@probe("alerts.on", default=["fails", "fence"], other=["fence"])
def alerts_on(trial):
    receiver = trial.hook()
    trial.set(["incomplete"])
    monitor = trial.serve()
    monitor.fail_session("fails")
    monitor.report("fence", {"kind": "end", "outcome": "incomplete", "reason": "budget_exhausted"})
    return alerted(receiver)


@probe("alerts.hold_seconds", default=["sticks", "fence"], other=["fence", "sticks"])
def alerts_hold_seconds(trial):
    receiver = trial.hook()
    trial.set(2)
    monitor = trial.serve()
    monitor.report("sticks", {"kind": "state_change", "type": "step"}, *({"kind": "heartbeat", "source": "loop"} for _ in range(6)))
    monitor.health("sticks", "stuck")
    monitor.fail_session("fence")
    return alerted(receiver, "sticks" if trial.is_set else "fence")


@probe("alerts.blocked_seconds", default=["fence"], other=["waits", "fence"])
def alerts_blocked_seconds(trial):
    return alerted_with(trial, 0, {"kind": "wait", "waiting_for": "build"})


@probe("alerts.needs_input_seconds", default=["waits", "fence"], other=["fence"])
def alerts_needs_input_seconds(trial):
    return alerted_with(trial, 3600, {"kind": "wait", "waiting_for": "approval"}, comes_first=not trial.is_set)


@probe("alerts.idle_seconds", default=["fence"], other=["waits", "fence"])
def alerts_idle_seconds(trial):
    return alerted_with(trial, 0, {"kind": "idle"}, alerts__on=["idle", "failed"])


def message(trial):
    """A monitor that sends an alert about a session that failed."""
    monitor = trial.serve()
    monitor.fail_session("s", task="count the zebras")
    return monitor


@probe("alerts.channels.*.content", default=False, other=True, name="hook")
def channel_content(trial):
    receiver = trial.hook()
    trial.set("preview")
    message(trial)
    return "count the zebras" in receiver.wait()["text"]


@probe("alerts.channels.*.type", default="webhook", other="log", name="hook")
def channel_type(trial):
    receiver = trial.fake()
    trial.base["alerts.channels.hook.type"] = "webhook"
    if not trial.is_set:
        trial.base["alerts.channels.hook.url"] = receiver.url
    trial.set("log")
    monitor = message(trial)
    until(lambda: receiver.posts() or "failed: " in monitor.said(), monitor.said)
    return "webhook" if receiver.posts() else "log"


@probe("alerts.channels.*.url", default="first", other="second", name="hook")
def channel_url(trial):
    first, second = trial.hook(), trial.fake()
    trial.set(second.url)
    message(trial)
    until(lambda: first.posts() or second.posts(), "no alert")
    return "first" if first.posts() else "second"


@probe("alerts.channels.*.url_file", default="first", other="second", name="hook")
def channel_url_file(trial):
    first, second = trial.fake(), trial.fake()
    trial.base["alerts.channels.hook.url_file"] = trial.secret("first", first.url)
    trial.set(trial.secret("second", second.url))
    message(trial)
    until(lambda: first.posts() or second.posts(), "no alert")
    return "first" if first.posts() else "second"


@probe("alerts.channels.*.format", default="alerts", other="text", name="hook")
def channel_format(trial):
    receiver = trial.hook()
    trial.set("slack")
    message(trial)
    return "alerts" if "alerts" in json.loads(receiver.wait()["text"]) else "text"


@probe("alerts.channels.*.secret_file", default="not signed", other="signed", name="hook")
def channel_secret_file(trial):
    receiver = trial.hook()
    trial.set(trial.secret("secret", "a-key-that-signs"))
    message(trial)
    signed = any("signature" in header.lower() for header in receiver.wait()["headers"])
    return "signed" if signed else "not signed"


@probe("alerts.channels.*.to", default="-1001", other="-2002", name="hook")
def channel_to(trial):
    receiver = trial.hook()
    trial.base |= {"alerts.channels.hook.format": "telegram", "alerts.channels.hook.to": "-1001",
                   "alerts.channels.hook.secret_file": trial.secret("bot", "123456:AAE-token_of_a_bot")}
    trial.set("-2002")
    message(trial)
    return json.loads(receiver.wait()["text"])["chat_id"]


@probe("alerts.channels.*.from", default="a@example.org", other="w@example.org", name="hook")
def channel_from(trial):
    mails = trial.stack.enter_context(Mails(implicit=True))
    trial.set("w@example.org", **{
        "alerts.channels.hook.type": "mail", "alerts.channels.hook.url": mails.url, "alerts.channels.hook.to": "a@example.org",
        "alerts.channels.hook.secret_file": trial.secret("login", "alerts:pass:word1"),
        "alerts.channels.hook.ca_file": str(TLS / "cert.pem")})
    message(trial)
    return mails.mails.get(timeout=PATIENCE_S)[0]


@probe("alerts.channels.*.ca_file", default="not trusted", other="trusted", name="hook")
def channel_ca_file(trial):
    receiver = trial.fake(tls=True)
    trial.base["alerts.channels.hook.url"] = receiver.url
    trial.set(str(TLS / "cert.pem"))
    monitor = message(trial)
    until(lambda: receiver.posts() or "certificate" in monitor.said(), monitor.said)
    return "trusted" if receiver.posts() else "not trusted"


@probe("alerts.channels.*.command", default="first", other="second", name="hook")
def channel_command(trial):
    words = lambda name: ["sh", "-c", f"cat > {trial.folder / name}"]
    trial.base |= {"alerts.channels.hook.type": "command", "alerts.channels.hook.command": words("first")}
    trial.set(words("second"))
    message(trial)
    return until(lambda: [name for name in ("first", "second") if (trial.folder / name).exists()], "no program runs")[0]


# -- [monitor]


def is_open(port, address="127.0.0.1"):
    with socket.socket() as client:
        return client.connect_ex((address, port)) == 0


@probe("monitor.db", default="w.db", other="other.db")
def monitor_db(trial):
    trial.set(str(trial.folder / "other.db"))
    monitor = trial.serve()
    monitor.report("s", {"kind": "state_change", "type": "step"})
    return " ".join(path.name for path in trial.folder.glob("*.db"))


@probe("monitor.bind", default="127.0.0.1", other="127.0.0.2")
def monitor_bind(trial):
    trial.set("127.0.0.2")
    monitor = trial.serve()
    port = int(monitor.host.rpartition(":")[2])
    return " ".join(address for address in ("127.0.0.1", "127.0.0.2") if is_open(port, address))


@probe("monitor.port", default="another port", other="that port")
def monitor_port(trial):
    port = free_port()
    trial.set(port)
    trial.serve()
    return "that port" if is_open(port) else "another port"


@probe("monitor.otlp_port", default="no telemetry", other=200)
def monitor_otlp_port(trial):
    port = free_port()
    trial.set(port)
    monitor = trial.serve()
    if not is_open(port):
        return "no telemetry"
    return monitor.ask("POST", "/v1/traces", {"resourceSpans": []}, host=f"127.0.0.1:{port}")[0]


@probe("monitor.token_file", default="w.db-token", other="own-token")
def monitor_token_file(trial):
    trial.set(str(trial.folder / "own-token"))
    trial.serve()
    return " ".join(path.name for path in trial.folder.glob("*-token"))


def scheme(trial, value, other, companion):
    trial.set(value)
    if trial.is_set:
        trial.base[other] = companion
    return trial.serve().url.split(":")[0]


@probe("monitor.tls_cert", default="http", other="https")
def monitor_tls_cert(trial):
    certificate, key = trial.certificate()
    return scheme(trial, certificate, "monitor.tls_key", key)


@probe("monitor.tls_key", default="http", other="https")
def monitor_tls_key(trial):
    certificate, key = trial.certificate()
    return scheme(trial, key, "monitor.tls_cert", certificate)


@probe("monitor.behind_proxy", default=200, other=401)
def monitor_behind_proxy(trial):
    trial.set(True)
    return trial.serve().ask("GET", PROGRESS)[0]


@probe("monitor.hosts", default=403, other=200)
def monitor_hosts(trial):
    trial.set(["monitor.example"])
    return trial.serve().ask("GET", PROGRESS, headers={"Host": "monitor.example"})[0]


@probe("monitor.public_url", default=False, other=True)
def monitor_public_url(trial):
    receiver = trial.hook()
    trial.set("https://monitor.example/")
    message(trial)
    return "https://monitor.example/sessions/s" in receiver.wait()["text"]


def sessions(monitor):
    return [session["sessionId"] for session in monitor.ask("GET", PROGRESS)[1]["sessions"]]


def fill(monitor, session):
    """A session that ended, and of which more than a megabyte is stored."""
    monitor.ask("POST", SESSIONS, {"sessionId": session, "content": "full"})
    for _ in range(16):
        monitor.report(session, {"kind": "state_change", "type": "step", "data": os.urandom(50_000).hex()})
    monitor.report(session, {"kind": "end"})


@probe("monitor.retention_days", default=["young"], other=[])
def monitor_retention_days(trial):
    """The limit of bytes only makes the first look come soon: it drops the session `old`."""
    trial.set(0, monitor__retention_bytes=1_000_000)
    monitor = trial.serve()
    monitor.report("young", {"kind": "state_change", "type": "step"})
    fill(monitor, "old")
    monitor.report("young", {"kind": "end"})
    until(lambda: "old" not in sessions(monitor) and (not trial.is_set or not sessions(monitor)), lambda: sessions(monitor))
    return sessions(monitor)


@probe("monitor.retention_bytes", default=["old"], other=[])
def monitor_retention_bytes(trial):
    trial.set(1_000_000)
    monitor = trial.serve()
    fill(monitor, "old")
    wait_for(lambda: not sessions(monitor), trial)
    return sessions(monitor)


@probe("monitor.log_format", default="text", other="json")
def monitor_log_format(trial):
    trial.set("json")
    monitor = trial.serve()
    line = until(lambda: monitor.said().splitlines(), "it logs nothing")[0]
    return "json" if line.startswith("{") else "text"


@probe("monitor.ping_url", default="no ping", other="a ping")
def monitor_ping_url(trial):
    receiver = trial.fake()
    trial.set(receiver.url + "/ping")
    trial.serve()
    return "a ping" if wait_for(lambda: receiver.asked, trial) else "no ping"


# -- [export.otlp]


def exported(trial, receiver):
    """The request with a session's trace."""
    monitor = trial.serve()
    monitor.report("s", {"kind": "state_change", "type": "step"}, {"kind": "end"})
    return wait_for(lambda: [asked for asked in receiver.posts() if asked["path"] == "/v1/traces"], trial)


@probe("export.otlp.endpoint", default="no trace", other="a trace")
def export_endpoint(trial):
    receiver = trial.fake()
    trial.set(receiver.url)
    return "a trace" if exported(trial, receiver) else "no trace"


@probe("export.otlp.headers_file", default="key of the file", other="another key")
def export_headers_file(trial):
    receiver = trial.fake()
    trial.base |= {"export.otlp.endpoint": receiver.url, "export.otlp.headers_file": trial.secret("first", "X-Key: key of the file")}
    trial.set(trial.secret("second", "X-Key: another key"))
    exported(trial, receiver)
    return receiver.wait(lambda asked: asked["path"] == "/v1/traces")["headers"]["X-Key"]


# -- [proxy]


@probe("proxy.upstream", default="no proxy", other="a proxy")
def proxy_upstream(trial):
    port = free_port()
    trial.set(trial.fake(model("hi")).url, proxy__port=port)
    trial.serve()
    return "a proxy" if is_open(port) else "no proxy"


@probe("proxy.port", default="another port", other="that port")
def proxy_port(trial):
    port = free_port()
    trial.set(port, proxy__upstream=trial.fake(model("hi")).url)
    trial.serve()
    return "that port" if is_open(port) else "another port"


@probe("proxy.keep_alive", default="comments", other="nothing")
def proxy_keep_alive(trial):
    """The server writes some pieces, and then none until the client got a comment, or for two seconds."""
    commented = threading.Event()

    def answer(handler, body):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for _ in range(4):
            chunk(handler.connection, b'data: {"choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}\n\n')
            time.sleep(0.15)
        commented.wait(2 if trial.is_set else PATIENCE_S)
        chunk(handler.connection, b"data: [DONE]\n\n")
        handler.wfile.write(b"0\r\n\r\n")

    trial.set("off", proxy__upstream=trial.fake(answer).url, proxy__probe=True)
    with contextlib.closing(http.client.HTTPConnection(trial.serve().proxy(), timeout=PATIENCE_S)) as connection:
        connection.request("POST", "/v1/chat/completions", json.dumps(chat()))
        for line in connection.getresponse():
            if line.startswith(b":"):
                commented.set()
    return "comments" if commented.is_set() else "nothing"


@probe("proxy.assume_working_seconds", default="nothing", other="comments")
def proxy_assume_working(trial):
    """The server, which is not asked, says nothing until the client got a comment, or for two seconds."""
    commented = threading.Event()

    def answer(handler, body):
        commented.wait(PATIENCE_S if trial.is_set else 2)
        model("hi")(handler, body)

    trial.set(600, proxy__upstream=trial.fake(answer).url, proxy__probe=False)
    with contextlib.closing(http.client.HTTPConnection(trial.serve().proxy(), timeout=PATIENCE_S)) as connection:
        connection.request("POST", "/v1/chat/completions", json.dumps(chat()))
        for line in connection.getresponse():
            if line.startswith(b":"):
                commented.set()
    return "comments" if commented.is_set() else "nothing"


@probe("proxy.on_hung", default="waits", other=504)
def proxy_on_hung(trial):
    server = HangingModel(trial)
    trial.set("fail", proxy__upstream=server.url, proxy__probe=True)
    answers = server.hang(trial.serve())
    return wait_for(lambda: answers, trial)[0] if trial.is_set else "answers" if answers else "waits"


def questions(trial, server, name="m"):
    """The questions to the server while a request is open. The server answers that once there is one."""
    monitor = trial.serve()
    monitor.ask("POST", "/v1/chat/completions", chat(name), host=monitor.proxy())
    return [asked for asked in server.asked if asked["method"] == "GET"]


def patient(patience_s=PATIENCE_S):
    """A model that answers after it was asked about its state."""
    def answer(handler, body):
        handler.server.wait(lambda asked: asked["method"] == "GET", patience_s)
        model("hi")(handler, body)
    return answer


@probe("proxy.allowed_origins", default=403, other=200)
def allowed_origins(trial):
    server = trial.fake(model("hi"))
    trial.set(["http://page.example"], proxy__upstream=server.url, proxy__probe=False)
    monitor = trial.serve()
    return monitor.ask("POST", "/s/one/v1/chat/completions", chat(), host=monitor.proxy(), headers={"Origin": "http://page.example"})[0]


@probe("proxy.probe", default="asks", other="does not ask")
def proxy_probe(trial):
    server = trial.fake(patient(UNASKED if trial.is_set else PATIENCE_S))
    trial.set(False, proxy__upstream=server.url, proxy__probe=True)
    return "asks" if questions(trial, server) else "does not ask"


@probe("proxy.api_key_file", default=None, other="Bearer key-of-the-server")
def proxy_api_key_file(trial):
    server = trial.fake(patient())
    trial.set(trial.secret("key", "key-of-the-server"), proxy__upstream=server.url, proxy__probe=True)
    return questions(trial, server)[0]["headers"]["Authorization"]


@probe("proxy.upstreams.*.api_key_file", default=None, other="Bearer key-of-the-other", name="other")
def upstream_api_key_file(trial):
    server = trial.fake(patient())
    trial.set(trial.secret("key", "key-of-the-other"), proxy__upstream="http://127.0.0.1:1", proxy__upstreams__other__url=server.url,
              proxy__upstreams__other__models=["large"], proxy__probe=True)
    return questions(trial, server, "large")[0]["headers"]["Authorization"]


def answering(trial):
    """Which server answers a request for the model `large`."""
    monitor = trial.serve()
    return monitor.ask("POST", "/v1/chat/completions", chat("large"), host=monitor.proxy())[1]


def named(name):
    return lambda handler, body: handler.say(name)


@probe("proxy.upstreams.*.url", default="second", other="third", name="other")
def upstream_url(trial):
    servers = [trial.fake(named(name)).url for name in ("first", "second", "third")]
    trial.set(servers[2], proxy__upstream=servers[0], proxy__upstreams__other__models=["large"])
    trial.base.setdefault("proxy.upstreams.other.url", servers[1])
    return answering(trial)


@probe("proxy.upstreams.*.models", default="first", other="second", name="other")
def upstream_models(trial):
    servers = [trial.fake(named(name)).url for name in ("first", "second")]
    trial.set(["lar*"], proxy__upstream=servers[0], proxy__upstreams__other__url=servers[1])
    trial.base.setdefault("proxy.upstreams.other.models", ["small"])
    return answering(trial)
