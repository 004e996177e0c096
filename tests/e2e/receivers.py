"""Receivers of alerts that check each request against what their protocol documents.

One HTTPS server plays all webhooks. Each function gets a request and returns the reply of the real service: an error
where the real one would refuse. `limits` holds the replies to send first, by name.
"""

import http.server
import json
import re
import ssl
import threading
import time
import urllib.parse

TOKEN = "123456:AAE-secret_token_of_a_bot"
MATRIX_TOKEN = "syt_secret_of_matrix"
NTFY_TOKEN = "tk_secretofntfy"
ROOM = "!room:example.org"


def settings_with_a_phone(folder, receivers, alerts):
    """A file of settings with a channel of ntfy, and with a URL for people. `alerts`: the lines of its section."""
    token, config = folder / "ntfy-token", folder / "watchdog.toml"
    token.write_text(NTFY_TOKEN)
    token.chmod(0o600)
    config.write_text(f"""
[monitor]
public_url = "https://monitor.example/"
hosts = ["monitor.example"]
[alerts]
{alerts}
[alerts.channels.phone]
format = "ntfy"
url = "{receivers.url}/ntfy/topic"
secret_file = "{token}"
ca_file = "{receivers.certificate}"
""")
    return config


def exactly(body, needed, allowed=()):
    """The fields of an object: no fewer, no others."""
    missing, others = set(needed) - set(body), set(body) - set(needed) - set(allowed)
    if missing or others:
        raise ValueError(f"fields missing: {missing}, unknown: {others}")


def limit(text, most):
    if not 1 <= len(text.encode("utf-16-le")) // 2 <= most:
        raise ValueError(f"has {len(text)} characters, at most {most}")


def web_url(text):
    if urllib.parse.urlsplit(text).scheme not in ("http", "https"):
        raise ValueError(f"no URL: {text}")


def slack(request, body):
    exactly(body, {"text"}, {"unfurl_links", "attachments"})
    limit(body["text"], 40_000)
    # Only our own link may look like one; & stands for itself only as an entity.
    rest = re.sub(r"\n<https?://[^|>\s]+\|Open the monitor>$", "", body["text"])
    if re.search(r"[<>]|&(?!amp;|lt;|gt;)", rest):
        raise ValueError("unescaped: " + rest)
    for attachment in body.get("attachments", []):
        exactly(attachment, {"fallback", "actions"})
        for action in attachment["actions"]:
            exactly(action, {"type", "text", "url"})
            web_url(action["url"])
    return 200, {}, "ok"


def discord(request, body):
    exactly(body, {"content"}, {"flags", "allowed_mentions", "username"})
    limit(body["content"], 2_000)
    if body.get("allowed_mentions") != {"parse": []}:
        raise ValueError("somebody could be mentioned")
    return 204, {}, ""


def teams(request, body):
    exactly(body, {"type", "attachments"})
    if body["type"] != "message" or len(body["attachments"]) != 1 or request["bytes"] > 28_000:
        raise ValueError("no message of one card of at most 28 KB")
    attachment = body["attachments"][0]
    exactly(attachment, {"contentType", "content"}, {"contentUrl"})
    if attachment["contentType"] != "application/vnd.microsoft.card.adaptive":
        raise ValueError("no adaptive card")
    card = attachment["content"]
    exactly(card, {"type", "version", "body"}, {"$schema", "actions"})
    if card["type"] != "AdaptiveCard" or card["version"] not in ("1.2", "1.3", "1.4", "1.5"):
        raise ValueError("no card of a version that Teams shows")
    for block in card["body"]:
        exactly(block, {"type", "inlines"})
        for run in block["inlines"]:
            exactly(run, {"type", "text"}, {"weight"})
            if (block["type"], run["type"]) != ("RichTextBlock", "TextRun") or "{{" in run["text"]:
                raise ValueError("text that is interpreted")
    for action in card.get("actions", []):
        exactly(action, {"type", "title", "url"})
        web_url(action["url"])
    return 202, {}, ""


def ntfy(request, body):
    if request["path"] != "/ntfy/" or request["headers"].get("Authorization") != f"Bearer {NTFY_TOKEN}":
        return 403, {}, json.dumps({"code": 40301, "http": 403, "error": "forbidden"})
    exactly(body, {"topic"}, {"message", "title", "tags", "priority", "click", "actions"})
    if not re.fullmatch(r"[-_A-Za-z0-9]{1,64}", body["topic"]):
        raise ValueError("topic invalid")
    if len(body["message"].encode()) > 4_096 or body["priority"] not in range(1, 6) or len(body.get("actions", [])) > 3:
        raise ValueError("above a limit")
    for action in body.get("actions", []):
        exactly(action, {"action", "label", "url"}, {"clear"})
        web_url(action["url"])
    return 200, {}, json.dumps({"id": "x", "event": "message", "topic": body["topic"]})


def telegram(request, body):
    if request["path"] != f"/bot{TOKEN}/sendMessage":
        return 401, {}, json.dumps({"ok": False, "error_code": 401, "description": "Unauthorized"})
    exactly(body, {"chat_id", "text"}, {"disable_notification", "link_preview_options"})
    exactly(body["link_preview_options"], {"is_disabled"})
    limit(body["text"], 4_096)
    if body["chat_id"] != "-1001234":
        return 400, {}, json.dumps({"ok": False, "error_code": 400, "description": "Bad Request: chat not found"})
    return 200, {}, json.dumps({"ok": True, "result": {"message_id": 1}})


def matrix(request, body):
    path = re.fullmatch(r"/matrix/_matrix/client/v3/rooms/([^/]+)/send/m\.room\.message/([^/]+)", request["path"])
    if not path or request["method"] != "PUT" or urllib.parse.unquote(path[1]) != ROOM:
        return 404, {}, json.dumps({"errcode": "M_UNRECOGNIZED", "error": "no such path"})
    if request["headers"].get("Authorization") != f"Bearer {MATRIX_TOKEN}":
        return 401, {}, json.dumps({"errcode": "M_UNKNOWN_TOKEN", "error": "unknown token"})
    if path[2] != request["headers"]["Idempotency-Key"]:
        raise ValueError("the transaction is not the message")
    exactly(body, {"msgtype", "body", "m.mentions"})
    if body["msgtype"] not in ("m.text", "m.notice") or body["m.mentions"] != {} or request["bytes"] > 65_536:
        raise ValueError("no plain message that mentions nobody")
    return 200, {}, json.dumps({"event_id": "$x"})


RECEIVERS = {"slack": slack, "discord": discord, "teams": teams, "ntfy": ntfy, "telegram": telegram, "matrix": matrix}
# How each says that it gets too much: by a header, or by its own member.
TOO_MANY = {
    "slack": ({"Retry-After": "1"}, "rate_limited"),
    "discord": ({}, json.dumps({"message": "You are being rate limited.", "retry_after": 1.2, "global": False})),
    "teams": ({"Retry-After": "1"}, ""),
    "ntfy": ({"Retry-After": "1"}, json.dumps({"code": 42901, "http": 429, "error": "limit reached"})),
    "telegram": ({}, json.dumps({"ok": False, "error_code": 429, "description": "Too Many Requests: retry after 1",
                                 "parameters": {"retry_after": 1}})),
    "matrix": ({}, json.dumps({"errcode": "M_LIMIT_EXCEEDED", "error": "Too many", "retry_after_ms": 1_100})),
}


class Receivers:
    """The server. `got[NAME]` has (time, body, status) of each request. `certificate`: the file that its clients trust."""

    def __init__(self, certificate, key):
        self.certificate = certificate
        self.got = {name: [] for name in RECEIVERS}
        self.limited = dict.fromkeys(RECEIVERS, 0)  # Replies of 429 that each gives first.
        self.faults = []
        self.changed = threading.Condition()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                name = "telegram" if self.path.startswith("/bot") else self.path.split("/")[1]
                status, headers, text = outer.take(name, self, raw)
                self.send_response(status)
                for header, value in headers.items():
                    self.send_header(header, value)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            do_POST = do_PUT = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://localhost:{self.server.server_port}"

    def take(self, name, handler, raw):
        request = {"path": handler.path, "method": handler.command, "headers": handler.headers, "bytes": len(raw)}
        body = None
        try:
            if handler.headers["Content-Type"] != "application/json":
                raise ValueError("no JSON by its type")
            body = json.loads(raw)
            reply = RECEIVERS[name](request, body)
            if handler.command != ("PUT" if name == "matrix" else "POST"):
                reply = 405, {}, ""
        except (ValueError, KeyError, TypeError) as fault:
            reply = 400, {}, f"refused: {fault!r}"
        with self.changed:
            if reply[0] // 100 != 2:
                self.faults.append((name, reply))
            elif self.limited[name] > 0:
                self.limited[name] -= 1
                reply = 429, *TOO_MANY[name]
            self.got[name].append((time.monotonic(), body, reply[0]))
            self.changed.notify_all()
        return reply

    def taken(self, name):
        return [body for _, body, status in self.got[name] if status // 100 == 2]

    def wait(self, name, count, patience_s=90):
        """The bodies that the receiver took, once there are so many."""
        with self.changed:
            done = self.changed.wait_for(lambda: len(self.taken(name)) >= count, patience_s)
            assert done, f"{name} took {len(self.taken(name))} of {count}; faults: {self.faults}"
            return self.taken(name)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
