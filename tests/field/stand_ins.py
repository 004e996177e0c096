"""Programs around the monitor that a case scripts: a model's server, an agent's process, a server of tools.

As a program: stand_ins.py agent URL | stand_ins.py tools SCRIPT
"""

import gzip
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time


def filled(value, numbers):
    """Puts numbers into texts: {n}, {n+1}, {n*7}, {n%5}, {epoch+60} and {iso}."""
    if isinstance(value, dict):
        return {key: filled(inner, numbers) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, numbers) for inner in value]
    if not isinstance(value, str):
        return value

    def put(match):
        name, sign, other = match[1], match[2], int(match[3] or 0)
        if name == "iso":
            return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".000Z"
        number = int(time.time()) if name == "epoch" else numbers.get(name)
        if number is None:
            return match[0]
        return str({None: number, "+": number + other, "-": number - other, "*": number * other, "%": number % (other or 1)}[sign])

    pattern = r"\{(n|count|epoch|iso)(?:([-+*%])(\d+))?\}"
    text = re.sub(pattern, put, value)
    if re.fullmatch(pattern, value) and text.isdigit():  # nothing but a number: it stays one
        return int(text)
    return re.sub(r"\{(\w)\^(\d+)\}", lambda match: match[1] * int(match[2]), text)  # {x^1000}: a long text


class Upstream:
    """A model's server that answers by rules: the first whose `when` is in the request, and whose `path` is its path. `in_turn`: each
    prompt gets the next one, and the last again and again."""

    def __init__(self, rules, in_turn=False):
        self.rules, self.in_turn, self.requests, self.lock = rules, in_turn, [], threading.Lock()
        self.counts = [0] * len(rules)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            while self.answer(connection):
                pass
        except (OSError, EOFError):
            pass
        finally:
            connection.close()

    def answer(self, connection):
        """Answers one request. Whether the connection goes on."""
        method, path, headers, body = read_request(connection)
        text = body.decode(errors="replace")
        with self.lock:
            rule, count = self.chosen(method, path, text)
            if method == "POST":
                self.requests.append({"path": path, "headers": headers, "body": text, "bytes": len(body)})
        if rule is None:
            reply(connection, "404 Not Found", b'{"detail":"Not Found"}')
            return True
        goes_on = Answer(connection, headers).play(filled(rule["answer"], {"count": count, "n": count}))
        return goes_on and headers.get("connection", "").lower() != "close"


    def chosen(self, method, path, text):
        """The rule for a request, and how often it was chosen. A rule without a path answers prompts only, not the monitor's questions."""
        rules = list(enumerate(self.rules))
        if self.in_turn:
            rules = rules[min(len(self.requests), len(rules) - 1):]
        for at, rule in rules:
            if rule.get("path", path) == path and rule.get("when", "") in text and rule.get("method", method if "path" in rule else "POST") == method:
                self.counts[at] += 1
                return rule, self.counts[at]
        return None, 0


class Answer:
    """Plays the steps of an answer."""

    def __init__(self, connection, asked):
        self.connection, self.asked, self.is_chunked, self.packer = connection, asked, False, None

    def play(self, steps):
        for step in steps:
            if "json" in step:
                reply(self.connection, step.get("status", "200 OK"), json.dumps(step["json"]).encode(), step.get("headers", ()),
                      step.get("type", "application/json"))
                return True
            if "text" in step and "head" not in step and not self.is_chunked and "raw" not in step:
                reply(self.connection, step.get("status", "200 OK"), step["text"].encode(), step.get("headers", ()), step.get("type", "text/plain"))
                return True
            if "head" in step:
                self.begin(step)
            elif "wait" in step:
                if self.is_gone(step["wait"]):
                    return False
            elif "raw" in step:
                self.connection.sendall(step["raw"].encode())
            elif "end" in step:
                return self.finish(step["end"])
            else:
                self.send(step)
        return self.finish("whole")

    def is_gone(self, seconds):
        """Waits, but not for a client that has left."""
        self.connection.settimeout(seconds)
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b"" or time.sleep(seconds) is not None
        except TimeoutError:
            return False
        except OSError:
            return True
        finally:
            self.connection.settimeout(60)

    def begin(self, step):
        self.is_chunked = step.get("chunked", True)
        kind = step.get("type", "text/event-stream")
        head = [f"{step.get('version', 'HTTP/1.1')} {step['head']}"] + ([f"Content-Type: {kind}"] if kind else [])
        head += [line.replace("{host}", self.asked.get("host", "")) for line in step.get("headers", ())]
        head += ["Transfer-Encoding: chunked"] if self.is_chunked else []
        self.connection.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
        if any("gzip" in line for line in step.get("headers", ())):
            self.packer = __import__("zlib").compressobj(wbits=31)

    def send(self, step):
        """One piece: `data` is an event, `event` names it, `lines` are sent as they are."""
        if "lines" in step:
            text = step["lines"]
        else:
            data = step["data"] if isinstance(step["data"], str) else json.dumps(step["data"])
            text = (f"id: {step['id']}\n" if "id" in step else "") + (f"event: {step['event']}\n" if "event" in step else "") + f"data: {data}\n\n"
            text = text[:step["cut"]] if "cut" in step else text
            text = text.replace("\n", "\r\n") if step.get("crlf") else text
        piece = text.encode()
        if self.packer:
            piece = self.packer.compress(piece) + self.packer.flush(__import__("zlib").Z_SYNC_FLUSH)
        for part in [piece[at:at + 1] for at in range(len(piece))] if step.get("bytewise") else [piece]:
            self.connection.sendall(b"%x\r\n%s\r\n" % (len(part), part) if self.is_chunked else part)

    def finish(self, how):
        if how == "hold":  # it says no more and stays
            return self.is_gone(60)
        if how == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if how == "close" or not self.is_chunked:
            return False
        rest = self.packer.flush() if self.packer else b""
        self.connection.sendall((b"%x\r\n%s\r\n" % (len(rest), rest) if rest else b"") + b"0\r\n\r\n")
        return True


def read_request(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        data += more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "chunked" in headers.get("transfer-encoding", ""):
        whole = b""
        while True:
            while b"\r\n" not in body:
                body += more(connection)
            size, _, body = body.partition(b"\r\n")
            while len(body) < int(size, 16) + 2:
                body += more(connection)
            whole, body = whole + body[:int(size, 16)], body[int(size, 16) + 2:]
            if int(size, 16) == 0:
                body = whole
                break
    while len(body) < int(headers.get("content-length", 0)):
        body += more(connection)
    method, path, _ = first.split(" ")
    return method, path, headers, body


def more(connection):
    data = connection.recv(1 << 20)
    if not data:
        raise EOFError
    return data


def reply(connection, status, body, headers=(), kind="application/json"):
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
    connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def ask(port, request, give_up=None, patience=60):
    """Sends a request as a scripted client does; the answer as a document. `give_up`: it leaves after these seconds."""
    body = request.get("body", "")
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    if "pad" in request:  # a large body: spaces in front of its last brace
        data = data[:-1] + b" " * request["pad"] + data[-1:]
    if request.get("packed") == "gzip":
        data = gzip.compress(data)
    head = [f"{request.get('method', 'POST')} {request['path']} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
    head += [f"{name}: {value}" for name, value in ({"Content-Type": "application/json", "Connection": "close"} | request.get("headers", {})).items()]
    head += ["Content-Encoding: gzip"] if request.get("packed") else []
    head += [f"Content-Length: {len(data)}"] if data else []
    began, got, ended = time.monotonic(), b"", "open"
    end = began + (give_up or patience)
    pieces = 0
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.settimeout(60)
        connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + data)
        while (left := end - time.monotonic()) > 0 and pieces < request.get("pieces", 1 << 30):
            connection.settimeout(left)
            try:
                piece = connection.recv(1 << 20)
            except TimeoutError:
                break
            except OSError as error:
                ended = type(error).__name__
                break
            if not piece:
                ended = "closed"
                break
            got += piece
            pieces += 1
            if is_complete(got):
                ended = "complete"
                break
    first, _, rest = got.partition(b"\r\n\r\n")
    lines = first.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    is_whole = True
    if "chunked" in headers.get("transfer-encoding", ""):
        rest, is_whole = unchunked(rest)
    elif "content-length" in headers:
        is_whole = len(rest) == int(headers["content-length"])
    text = rest
    if headers.get("content-encoding") == "gzip":
        try:
            text = gzip.decompress(rest)
        except (OSError, EOFError) as error:
            text = f"cannot be unpacked: {error}".encode()
    text = text.decode(errors="backslashreplace")
    return {"status": int(lines[0].split(" ")[1]) if lines[0].startswith("HTTP/") else 0, "headers": headers, "text": text, "ended": ended,
            "whole": is_whole, "seconds": round(time.monotonic() - began, 1), "data": said(text), "events": events_of(text)}


def is_complete(data):
    """Whether the head says that the message ends here."""
    head, blank, body = data.partition(b"\r\n\r\n")
    if length := re.search(rb"\ncontent-length: *(\d+)", head, re.I):
        return bool(blank) and len(body) >= int(length[1])
    return b"chunked" in head.lower() and body.endswith(b"0\r\n\r\n") and unchunked(body)[1]


def unchunked(data):
    whole = b""
    while b"\r\n" in data:
        size, _, data = data.partition(b"\r\n")
        count = int(size, 16)
        if count == 0:
            return whole, True
        whole, data = whole + data[:count], data[count + 2:]
    return whole, False


def events_of(text):
    """The events of a stream as strict parsers see them: an empty line ends one, a comment is none, and the name of the last is kept."""
    events = []
    for block in re.split(r"\r?\n\r?\n", text):
        lines = [line for line in re.split(r"\r?\n", block) if line and not line.startswith(":")]
        if lines:
            events.append("\n".join(lines))
    return events


def said(text):
    """The words of a streamed chat answer."""
    words = ""
    for event in events_of(text):
        for line in event.split("\n"):
            if line.startswith("data: {"):
                try:
                    value = json.loads(line[6:])
                    words += "".join(choice.get("delta", {}).get("content") or "" for choice in value.get("choices", ()))
                except (ValueError, AttributeError):
                    pass
    return words


def be_agent(url):
    """An agent's process: sends the hooks that it is given, as its own, and starts children."""
    host = url.split("://")[1]
    children = []
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for line in sys.stdin:
        step = json.loads(line)
        if "hook" in step:
            connection = http.client.HTTPConnection(host, timeout=30)
            connection.request("POST", f"/api/hooks/{step['agent']}?pid={os.getpid()}", json.dumps(step["hook"]))
            response = connection.getresponse()
            print(json.dumps({"status": response.status, "text": response.read().decode()}), flush=True)
            connection.close()
            continue
        if "start" in step:
            children.append(subprocess.Popen(step["start"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        print(json.dumps({"status": 200, "text": ""}), flush=True)
    for child in children:
        child.kill()


def be_tools(path):
    """A server of tools on standard input and output. Its script names what it says at its start and how each tool acts."""
    with open(path, encoding="utf-8") as file:
        script = json.load(file)
    lock = threading.Lock()

    def write(text):
        with lock:
            sys.stdout.write(text)
            sys.stdout.flush()

    def say(message):
        text = json.dumps({"jsonrpc": "2.0", **message}, indent=script.get("indent"))
        write(script.get("before_each", "") + text + script.get("line_end", "\n"))

    def act(call):
        token = call["params"].get("_meta", {}).get("progressToken")
        due = time.monotonic()
        for step in script["tools"][call["params"]["name"]]:
            for count in range(step.get("times", 1)):
                due += step.get("wait", 0)  # at an even pace, however long a message took
                time.sleep(max(0.0, due - time.monotonic()))
                if "print" in step:
                    write(filled(step["print"], {"n": count}))
                if "progress" in step and token is not None:
                    params = filled(step["progress"], {"n": count})
                    params = {key: int(value) if str(value).isdigit() else value for key, value in params.items()}
                    say({"method": "notifications/progress", "params": {"progressToken": token, **params}})
                if "text" in step:
                    say({"id": call["id"], "result": {"content": [{"type": "text", "text": step["text"]}]}})
                if "exit" in step:
                    os._exit(step["exit"])

    write(script.get("banner", ""))
    for line in sys.stdin:
        if not line.strip():
            continue
        message = json.loads(line)
        if message.get("method") == "initialize":
            say({"id": message["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                                 "serverInfo": {"name": "stand-in", "version": "1"}}})
        elif message.get("method") == "tools/call":
            threading.Thread(target=act, args=(message,), daemon=True).start()
        elif "id" in message and "method" in message:
            say({"id": message["id"], "result": {"tools": []} if message["method"] == "tools/list" else {}})


if __name__ == "__main__":
    {"agent": be_agent, "tools": be_tools}[sys.argv[1]](sys.argv[2])
