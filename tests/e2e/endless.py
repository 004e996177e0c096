"""Chunked bodies whose framing has no end, and what a server makes of them."""

import contextlib
import pathlib
import re
import select

# By name: the bytes that begin the framing, and the bytes that come again and again after them.
FRAMINGS = {"extension": (b"2;a=b", b";a=b" * 10_000), "size": (b"2" + b" " * 9, b" " * 40_000),
            "last extension": (b"2\r\n{}\r\n0;a=b", b";a=b" * 10_000), "trailer": (b"2\r\n{}\r\n0\r\nX: ", b"x" * 40_000),
            "trailer's name": (b"2\r\n{}\r\n0\r\n", b"x" * 40_000), "trailers": (b"2\r\n{}\r\n0\r\n", b"X: yyyyyyyy\r\n" * 4_000)}
SENT_MAX = 100 * 2**20


def status_bytes(server, field):
    """What the kernel says of a monitor's memory."""
    text = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024


def send_until_answered(connection, again, sent_max=SENT_MAX):
    """How many bytes went before an answer came."""
    sent = 0
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while sent < sent_max and not select.select([connection], [], [], 0)[0]:
            sent += connection.send(again)
    return sent


def assert_bounded(test, server, connect, head):
    """Each framing is refused, and takes no memory."""
    for name, (start, again) in FRAMINGS.items():
        before = status_bytes(server, "VmHWM")
        connection = connect()
        connection.sendall(head + start)
        sent = send_until_answered(connection, again)
        test.assertIn(connection.recv(12), (b"HTTP/1.1 431", b"HTTP/1.1 400"), name)
        test.assertLess(sent, SENT_MAX, name)
        test.assertLess(status_bytes(server, "VmHWM") - before, 16 * 2**20, name)
