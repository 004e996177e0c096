"""A model's server that answers each request with the bytes that a test gives it, and shows what came."""

import queue
import re
import socket
import ssl
import threading


class Upstream:
    """Calls `answer(connection, head, body)` for each request, on a thread of its own; gone with the block."""

    def __init__(self, answer, certificate=None):
        self.answer, self.certificate = answer, certificate
        self.requests = queue.Queue()

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        scheme = "https" if self.certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self.listener.getsockname()[1]}"
        self.open = []
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def stop(self):
        """From here on it refuses connections."""
        if self.listener.fileno() >= 0:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()

    def __exit__(self, *_):
        self.stop()
        for connection in self.open:
            connection.close()

    def accept(self):
        context = None
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection, context), daemon=True).start()

    def serve(self, connection, context):
        try:
            if context:
                connection = context.wrap_socket(connection, server_side=True)
            self.open.append(connection)
            head, body = read_message(connection)
            self.requests.put((head, body))
            self.answer(connection, head, body)
        except (OSError, ssl.SSLError, EOFError):
            pass
        finally:
            connection.close()


def read_message(connection):
    """Head and body of a request, as its own framing says."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += more(connection)
    head, _, data = data.partition(b"\r\n\r\n")
    if re.search(rb"\r\ntransfer-encoding: chunked", head, re.I):
        body = b""
        while True:
            while b"\r\n" not in data:
                data += more(connection)
            size, _, data = data.partition(b"\r\n")
            size = int(size, 16)
            while len(data) < size + 2:
                data += more(connection)
            body, data = body + data[:size], data[size + 2:]
            if size == 0:
                return head, body
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
    chunks, size = [data], len(data)
    while length and size < int(length[1]):
        chunks.append(more(connection))
        size += len(chunks[-1])
    return head, b"".join(chunks)


def more(connection):
    data = connection.recv(1 << 20)
    if not data:
        raise EOFError
    return data


def respond(connection, body, status=b"200 OK", headers=b"Content-Type: application/json\r\n"):
    connection.sendall(b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, headers, len(body), body))


def begin_events(connection, headers=b""):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%sTransfer-Encoding: chunked\r\n\r\n" % headers)


def chunk(connection, data):
    connection.sendall(b"%x\r\n%s\r\n" % (len(data), data))
