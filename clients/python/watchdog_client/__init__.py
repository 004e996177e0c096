"""Reports an agent's progress to watchdog-monitor, and waits for sessions. One file, Python >= 3.9, standard library only.

    from watchdog_client import Reporter

    with Reporter("my-run", agent="planner") as watchdog:          # ends completed, or failed with the exception
        for iteration in range(25):
            if watchdog.cancelled:
                break
            watchdog.heartbeat(iteration, "reflection")
            with watchdog.tool("search", {"query": "stuck"}) as call:
                call.result = search("stuck")
            watchdog.state_change("plan_generated", {"steps": 4})

A thread of the reporter sends the reports: no call waits for the monitor or raises. If the monitor is absent, slow or
restarting, reports are queued. They are lost only when the queue is full (`dropped`): heartbeats first, the end never.
Unacknowledged reports are sent again with the same `event_id`, so nothing counts twice.

    watchdog_client.wait("my-run")                        # until it completes; raises WaitFailed once it cannot
    watchdog_client.wait("my-run", "health=blocked")
    watchdog_client.wait("my-run", lambda progress: progress["iteration"] == 7)

In asyncio write `async with Reporter(…)`, `await wait_async(…)`; a cancel cancels the task. `@wrap` reports each call of a function.

The defaults are $WATCHDOG_SERVER (default http://127.0.0.1:3000; empty: report nothing) and $WATCHDOG_SESSION, which
`watchdog-monitor run` sets for the command that it wraps, and $WATCHDOG_TOKEN, which you set.
"""

from __future__ import annotations

import atexit
import codecs
import collections
import collections.abc
import contextlib
import contextvars
import functools
import hashlib
import http.client
import inspect
import itertools
import json
import logging
import operator
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import urllib.parse
import weakref
from typing import (TYPE_CHECKING, Any, AsyncIterator, Callable, Deque, Dict, Generator, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Set, Tuple,
                    TypeVar, Union, cast, overload)

if TYPE_CHECKING:
    import asyncio


__all__ = ["Reporter", "ToolCall", "Cancelled", "Monitor", "WaitFailed", "MonitorError", "wait", "wait_async", "wrap"]

Json = Dict[str, Any]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Result = TypeVar("_Result")

_log = logging.getLogger("watchdog_client")
_QUEUE_MAX = 10_000  # events
_QUEUE_BYTES_MAX = 8 << 20
_BATCH_MAX = 500  # events
_BATCH_BYTES_MAX = 1 << 20
_CONTENT_MAX = 64 << 10  # characters of arguments, results, data; beyond that the digest of the whole goes along
_TEXT_MAX = 1 << 20  # characters of a text that are read for its digest; a longer one is opaque
_DATA_MAX = (4000, 256 << 10)  # values and characters of data that are read; beyond that it is opaque
_DEPTH_MAX = 50
_WHOLE_MAX = 2**53
_NAME_MAX = 256  # bytes
_COALESCE_MIN = 256  # pending events; below that each heartbeat is sent on its own
_HEARTBEAT_LINGER_S = 0.05
_COUNT_LINGER_S = 1.0
_ANSWER_S = 30.0  # without a byte of an answer the connection is given up, not the report
_RETRY_S = (0.1, 5.0)
_REFUSED_S = 30.0
_EXIT_S = 2.0
_NOBODY_S = 0.2  # of a process: what its exits wait for a monitor that has never been there
_LISTEN_S = 2.0  # between two looks for a cancel that somebody would obey
_LINGER_S = 1.0  # of the thread after the last session ended


# --- Words of schemas/event.schema.json, written by scripts/docs --generate
_every_kind = "kind event_id seq ts_ms name call_id text result_hash expect_quiet_ms".split()
_kinds = {
    "start": "pid start_ticks boot_id host",
    "heartbeat": "phase iteration source counters",
    "state_change": "type data",
    "tool_call": "turn_id args args_hash deadline_ms",
    "tool_result": "",
    "error": "",
    "message": "",
    "wait": "until_ms provider waiting_for",
    "idle": "",
    "user_input": "",
    "compaction": "",
    "opinion": "status confidence seen_seq state",
    "chant": "",
    "retry": "",
    "budget": "stage axis max_pressure current_step max_steps steps_remaining step_pressure elapsed_seconds remaining_seconds "
        "time_pressure time_enforced elapsed_ms duration_ms tool_calls max_tool_calls tokens max_tokens cost max_cost",
    "limit": "limit limit_value reached enforced",
    "turn": "tool_calls parent_turn_id depth reason",
    "tool_progress": "elapsed_ms value total output_bytes accepted",
    "tool_timeout": "elapsed_ms limit_kind limit_ms still_running",
    "evidence": "state done left_ms total",
    "resume": "waiting_for",
    "end": "outcome reason subject error",
}
# --- end of the words


# --- Making events ---------------------------------------------------------------------------------------------------

def _unprintable(value: Any) -> str:
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _is_short(value: Any, room: _Room, depth: int = 0) -> bool:
    """Whether data of Python itself are short enough to be printed whole. Of other objects nobody knows."""
    if isinstance(value, (str, bytes, bytearray)):
        room.cut(value)
    elif isinstance(value, collections.abc.Mapping):
        return all(_is_short(one, room, depth + 1) for pair in room.take(value.items()) for one in pair) and room.whole
    elif isinstance(value, (list, tuple, set, frozenset, collections.deque)) and depth < _DEPTH_MAX:
        return all(_is_short(one, room, depth + 1) for one in room.take(value)) and room.whole
    elif isinstance(value, BaseException) and depth < _DEPTH_MAX:
        return _is_short((value.args, vars(value)), room, depth + 1)
    return room.whole


def _shortly(value: Any) -> str:
    """As `repr` prints it, or a part of large data."""
    with contextlib.suppress(Exception):
        if not _is_short(value, _Room(*_DATA_MAX)):
            data = value.args if isinstance(value, BaseException) else value
            return f"{type(value).__name__}: {_json(_plain(data, _Room(*_DATA_MAX)))[:_CONTENT_MAX]}…"
    return _unprintable(value)


# A text that may be that of another value too: an address, `<…>` that describes an object, something left out. An enumeration's
# member and a class are exact.
_VAGUE = re.compile(r"\bat 0x[0-9a-fA-F]+|(?:^|[=\[({,:]\s*)<(?!class '|enum '|\w+\.\w+: )\w|(?:^|[\[({,\s])(?:\.\.\.|…)(?:$|[\])},\s])")
_ARRAY_MAX = 1 << 20  # bytes


def _opaque(text: str) -> str:
    """The text with a word that no other report has. Letters alone: the monitor takes numbers for noise."""
    return f"{text} (opaque {''.join(chr(97 + byte % 26) for byte in os.urandom(12))})"


def _printed(value: Any) -> str:
    """As a text. If other values may have the same text it is opaque."""
    text = _unprintable(value)
    if len(text) > _TEXT_MAX:
        return _opaque(text[:_CONTENT_MAX])
    if getattr(type(value), "__repr__") is not object.__repr__ and text and not _VAGUE.search(text) or re.search(r"</\w+>$", text):
        return text
    return _opaque(text)


def _printed_error(error: Optional[BaseException]) -> str:
    """With its causes. An address in it is noise: the same error comes again."""
    parts: List[str] = []
    while error is not None and len(parts) < 8:
        text = _shortly(error)
        if not error.args and vars(error):
            text += f" {_shortly(vars(error))}"
        parts.append(f"{type(error).__name__}: {text}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return ", caused by ".join(parts)


class _Room:
    """How much of a value is read. A value that is larger is cut and opaque, because a report must not delay the agent."""

    __slots__ = ("values", "characters", "whole")

    def __init__(self, values: int, characters: int):
        self.values, self.characters, self.whole = values, characters, True

    def cut(self, text: Any) -> Any:
        """A part of a text or of bytes."""
        if len(text) > self.characters:
            text, self.whole = text[:self.characters], False
        self.characters -= len(text)
        return text

    def take(self, items: Iterable[Any]) -> Iterator[Any]:
        """The first items of a container."""
        for item in items:
            if self.values <= 0 or self.characters <= 0:
                self.whole = False
                return
            self.values -= 1
            yield item


def _plain(value: Any, room: _Room, depth: int = 0) -> Any:
    """The value as data that JSON has a form for."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return room.cut(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else repr(value)
    if depth >= _DEPTH_MAX:
        return _opaque(f"<{type(value).__name__}>")
    if isinstance(value, dict):
        return {_plain_key(key, room): _plain(item, room, depth + 1) for key, item in room.take(value.items())}
    if isinstance(value, (list, tuple)):
        return [_plain(item, room, depth + 1) for item in room.take(value)]
    return _plain(_as_data(value, room), room, depth + 1)


def _plain_key(key: Any, room: _Room) -> str:
    if not isinstance(key, str):
        key = str(key) if type(key) is int else _json(key) if key is None or isinstance(key, (bool, int)) else _printed(key)
    return str(room.cut(key))


def _as_data(value: Any, room: Optional[_Room] = None) -> Any:
    """A value that JSON has no form for: as data if it has any, else as a text."""
    room = room or _Room(*_DATA_MAX)
    kind = type(value)
    try:
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(room.cut(value)).decode("utf-8", "backslashreplace")
        if isinstance(value, BaseException):
            return _printed_error(value)
        fields = getattr(kind, "__dataclass_fields__", None)
        if fields:
            data = {name: getattr(value, name) for name, field in fields.items() if field.repr}
            return data if len(data) == len(fields) else {**data, "…": _printed(object())}  # Its author hides a part.
        if isinstance(value, collections.abc.Mapping):
            return dict(room.take(value.items()))
        if isinstance(value, (set, frozenset)):
            order = _Room(*_DATA_MAX)
            return sorted(room.take(value), key=lambda one: _unprintable(one) if type(one) is int or _is_short(one, order) else type(one).__name__)
        if isinstance(value, collections.deque):
            return list(room.take(value))
        if kind is types.SimpleNamespace:
            return vars(value)
        size = getattr(value, "size", 0)  # of arrays and tables
        for name in ("model_dump", "to_dict", "tolist"):  # of pydantic and others; pandas; arrays
            method = getattr(kind, name, None)  # of the class: a mock has every attribute
            if method is not None and getattr(value, "nbytes", 0) <= _ARRAY_MAX and not (isinstance(size, int) and size > _ARRAY_MAX):
                data = method(value)
                if isinstance(data, (dict, list, str, int, float)):
                    return data
    except Exception:  # It cannot say, so its text must do.
        pass
    return _printed(value)


_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_as_data, separators=(",", ":")).encode


_quoted: Callable[[str], str] = getattr(json.encoder, "encode_basestring")


def _content(key: str, value: Any, digest_key: str) -> Dict[str, str]:
    """A field that may be large: cut, with the digest of the whole beside it. As JSON."""
    if isinstance(value, str) and len(value) <= _CONTENT_MAX:
        return {key: _quoted(value)}
    room = _Room(1, _TEXT_MAX) if isinstance(value, str) else _Room(*_DATA_MAX)
    try:
        data = _plain(value, room)
        text = data if isinstance(data, str) else _json(data)
    except Exception:  # It changes meanwhile, or it is a number of a million digits.
        data = text = _opaque(f"<{type(value).__name__}>")
    if len(text) <= _CONTENT_MAX and room.whole:
        return {key: _quoted(text) if isinstance(data, str) else text}
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16) if room.whole else None
    size = f"{len(value) if isinstance(value, str) else len(text)} characters" if room.whole or isinstance(value, str) else "cut"
    return {key: _quoted(f"{text[:_CONTENT_MAX]}… ({size})"),
            digest_key: _quoted(digest.hexdigest() if digest else os.urandom(16).hex())}  # of another value, if it is unknown


def _now_ms() -> int:
    return time.time_ns() // 10**6


def _name(value: Any) -> str:
    text = (value if isinstance(value, str) else _shortly(value))[:_NAME_MAX]
    if len(text) * 4 <= _NAME_MAX:
        return text
    return text.encode("utf-8", "replace")[:_NAME_MAX].decode("utf-8", "ignore")


def _whole(value: Any) -> Optional[int]:
    """The whole number that a value is: also True, 2.0, a Decimal, or of numpy. None: it is not whole, or no monitor has room for it."""
    try:
        number = operator.index(value)
    except TypeError:
        number = int(value)
        if number != value:
            return None
    return number if abs(number) <= _WHOLE_MAX else None


_fields_of = {kind: dict.fromkeys(own.split() + _every_kind) for kind, own in _kinds.items()}


def _wrong_word(kind: Any, fields: Iterable[str]) -> Optional[Tuple[str, str]]:
    """Finds the first word that no monitor understands. Returns it, and what to say about it."""
    own = _fields_of.get(kind) if isinstance(kind, str) else None
    wrong = [_name(kind)] if own is None else [field for field in fields if field not in own]
    if not wrong:
        return None
    word = wrong[0]
    what, right = ("kind of event", list(_kinds)) if own is None else (f"field of the event {kind}", list(own))
    import difflib  # Only a mistake needs it.
    near = [one for one in right if word and one.startswith(word)] or difflib.get_close_matches(word, right, 1)
    return word, (f'"{word}" is not a {what}, and a monitor ignores it. ' + (f'Did you mean "{near[0]}"? ' if near else "") +
                  f"The right words are {', '.join(right)}.")


def _process_facts() -> Json:
    """The process that runs the session, so that a monitor on this machine notices its death."""
    facts: Json = {"pid": os.getpid(), "host": socket.gethostname()}
    with contextlib.suppress(OSError, ValueError, IndexError):  # no /proc
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as stat:
            facts["start_ticks"] = int(stat.read().rpartition(")")[2].split()[19])
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot:
            facts["boot_id"] = boot.read().strip()
    return facts


# --- Talking to the monitor ------------------------------------------------------------------------------------------

class MonitorError(Exception):
    """The monitor answered with an error. `status` is that of HTTP."""

    def __init__(self, status: int, message: str, line: Optional[int] = None, retry_after_s: float = 0):
        super().__init__(f"{status} {message}")
        self.status = status  #: Status of HTTP.
        self.line = line  #: Number of the report that was refused, from 1, if the monitor says it.
        self.retry_after_s = retry_after_s  #: Seconds after which to ask again.


class _Connection:
    """One connection, opened when needed. Use from one thread at a time."""

    def __init__(self, server: str, token: str):
        self._server = server
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http: Optional[http.client.HTTPConnection] = None
        self._socket: Optional[socket.socket] = None  # of the answer; the connection forgets it if the server will close it

    def close(self) -> None:
        if self._http:
            self._http.close()
            self._http = self._socket = None

    def open(self, method: str, path: str, body: Optional[bytes] = None, timeout_s: float = _ANSWER_S,
             headers: Mapping[str, str] = {}) -> http.client.HTTPResponse:
        """The head of an answer. Asks twice where the server may have closed an idle connection: all requests may be repeated."""
        for fresh in (self._http is None, True):
            url = urllib.parse.urlsplit(self._server if "://" in self._server else f"http://{self._server}")
            if self._http is None:
                make = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
                self._http = make(url.netloc.rpartition("@")[2], timeout=timeout_s)
            try:
                self._http.request(method, url.path.rstrip("/") + path, body, {**self._headers, **headers})
                self._socket = self._http.sock
                return self._http.getresponse()
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if fresh or isinstance(error, socket.timeout):
                    raise
            except BaseException:
                self.close()
                raise
        raise AssertionError("unreachable")

    def ask(self, method: str, path: str, body: Optional[bytes] = None, timeout_s: float = _ANSWER_S) -> Any:
        response = self.open(method, path, body, timeout_s)
        try:
            text = response.read()
        except BaseException:
            self.close()
            raise
        if response.status < 300:
            with contextlib.suppress(ValueError):
                return json.loads(text or b"null")
            raise MonitorError(502, "the answer is not from a watchdog-monitor")
        raise _error_of(response, text)

    def interrupt(self) -> None:
        """Makes a read in another thread end. Thread-safe."""
        reading = self._socket
        with contextlib.suppress(OSError, AttributeError):
            reading.shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]


def _error_of(response: http.client.HTTPResponse, text: bytes) -> MonitorError:
    message, line = text[:200].decode("utf-8", "replace"), None
    with contextlib.suppress(ValueError, KeyError, TypeError):
        error = json.loads(text)["error"]
        message, line = str(error["message"]), error.get("line")
    after = 0.0
    with contextlib.suppress(ValueError):
        after = float(response.headers.get("Retry-After", "0"))
    return MonitorError(response.status, message, line, after)


_sessions = "/api/autonomous/sessions"


def _settings(server: Optional[str], token: Optional[str]) -> Tuple[str, str]:
    if server is None:
        server = os.environ.get("WATCHDOG_SERVER", "http://127.0.0.1:3000")
    return server, os.environ.get("WATCHDOG_TOKEN", "") if token is None else token


# --- Reporting -------------------------------------------------------------------------------------------------------

class Cancelled(BaseException):
    """Raised after somebody asked the agent to stop. Within `with Reporter(…)` it ends the session as cancelled.

    Like asyncio.CancelledError it is not an Exception: `except Exception` around a tool must not swallow it.
    """


def _is_cancel(error: Optional[BaseException]) -> bool:
    """Of this module, asyncio, trio or anyio, or by Ctrl-C."""
    return isinstance(error, KeyboardInterrupt) or (not isinstance(error, Exception) and
                                                    any(kind.__name__ in ("Cancelled", "CancelledError") for kind in type(error).__mro__))


class ToolCall:
    """One call of a tool, as `Reporter.tool` returns it: a block for `with` or `async with`, or a decorator of a function."""

    name: str  #: Name of the tool.
    call_id: str  #: Id of the call, which its result has as well.
    turn_id: Optional[str]  #: Id of the turn that the call belongs to.
    result: Any  #: What the call returned. Set it in the block.

    def __init__(self, reporter: Reporter, name: str, arguments: Any, call_id: Optional[str], turn_id: Optional[str], deadline_s: Optional[float]):
        self._reporter, self._arguments, self.name, self.turn_id = reporter, arguments, name, turn_id
        self.call_id = call_id or f"call-{os.urandom(6).hex()}"
        self.result = None
        self._accepted, self._deadline_s, self._moved = 0, deadline_s, time.monotonic()

    def __enter__(self) -> ToolCall:
        self._moved = time.monotonic()
        self._reporter.tool_call(self.name, self._arguments, self.call_id, turn_id=self.turn_id, deadline_s=self._deadline_s)
        return self

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        if error is None or isinstance(error, GeneratorExit):  # The caller needs no more values. The call has not failed.
            self._reporter.tool_result(self.name, self.result, self.call_id)
        else:
            self._reporter.tool_error(self.name, error, self.call_id)

    async def __aenter__(self) -> ToolCall:
        return self.__enter__()

    async def __aexit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        self.__exit__(kind, error, trace)

    def __call__(self, function: _Function) -> _Function:
        return self._reporter.wrap(function, name=self.name)

    def progress(self, text: str = "", value: Optional[float] = None, total: Optional[float] = None) -> None:
        """Reports that the call made progress. Its deadline starts again."""
        self._accepted += 1
        self._moved = time.monotonic()
        self._reporter.report("tool_progress", name=self.name, call_id=self.call_id, text=text, value=value, total=total,
                              accepted=self._accepted)

    @property
    def aborted(self) -> bool:
        """Whether somebody asked this call, its turn or the session to stop, or its deadline passed without progress."""
        if self._deadline_s is not None and time.monotonic() - self._moved >= self._deadline_s:
            return True
        aborts = self._reporter.aborts
        return self._reporter.cancelled or any(
            abort.get("toolId") == self.call_id or (abort.get("toolId") is None and abort.get("turnId") == self.turn_id)
            for abort in aborts if self.turn_id)


class _Pending(NamedTuple):
    rank: int  # What goes first when the queue is full: heartbeats, then what is neither a change nor an end.
    text: bytes
    phase: Any = None


_BEAT, _REST, _CHANGE, _END = range(4)
_ranks = {"heartbeat": _BEAT, "state_change": _CHANGE, "start": _END, "end": _END}


class Reporter:
    """Reports one session. Only `flush` and `close` wait for the monitor, and only `check` raises.

    A wrong report harms no agent: an unknown kind of event or field is logged once as a warning, which Python writes to standard
    error. A refused report and a hint of the monitor are logged likewise. `strict=True` is for tests: these mistakes are
    ValueErrors. A call with a wrong word raises one. A mistake that the monitor finds is raised by the next report, `flush`,
    `close` or end of the `with` block.

    Thread-safe. After a fork, or in a process of `multiprocessing`, the child has an empty queue and reports to the same session with
    a thread of its own. Only the process that made a reporter ends its session, or a child that outlives that process.

    Without a name the session is $WATCHDOG_SESSION. If a reporter of this process, or of the process that started it, has that open
    already, this one reports to a child session. The child has a name of its own. A `with` block keeps its session from being ended by another
    reporter of the same name.

    In asyncio write `async with`: a cancel then cancels the task, and other tasks run while the block ends.

    `interval_s`: seconds between two sidecar heartbeats. None: the policy's heartbeatInterval, else 10. 0: never. A cancel comes
    with the answer to each report, and within 2 s to a silent agent that would notice it: by `on_cancel`, `async with`, or by
    looking at `cancelled`. `on_cancel` and `on_abort` are called in the client's thread and must return soon.

    `exit_s`: seconds that the process may wait at its exit until all reports are sent. None: no limit. With up to 2 s, it waits 0.2 s
    where every connection was refused. `signals`: SIGTERM ends the session as cancelled, and then the process.
    """

    def __init__(self, session: Optional[str] = None, *, agent: Optional[str] = None, task: Optional[str] = None,
                 labels: Optional[Mapping[str, str]] = None, parent: Optional[str] = None,
                 policy: Optional[Json] = None, content: Optional[str] = None, server: Optional[str] = None,
                 token: Optional[str] = None, interval_s: Optional[float] = None, exit_s: Optional[float] = 2.0,
                 queue_max: int = _QUEUE_MAX, on_cancel: Optional[Callable[[Json], None]] = None,
                 on_abort: Optional[Callable[[Json], None]] = None, title: Optional[str] = None, strict: bool = False,
                 signals: bool = False):
        self._server, self._token = _settings(server, token)
        self._strict = strict
        wanted = session or os.environ.get("WATCHDOG_SESSION") or f"{agent or 'agent'}-{_now_ms():x}-{os.urandom(3).hex()}"
        self.session: str = _session_id(str(wanted))  #: Id of the session.
        tags = self._valid("labels", labels, dict, "a mapping of texts")
        usual = self._valid("policy", policy, lambda one: {"heartbeatInterval": float(one.get("heartbeatInterval") or 10_000)}, "a mapping, with a heartbeatInterval in ms")
        every_s = self._seconds("interval_s", interval_s)
        self._interval_s = max(0.0, (usual or {"heartbeatInterval": 10_000})["heartbeatInterval"] / 1000 if every_s is None else every_s)
        self._exit_s = None if exit_s is None else self._seconds("exit_s", exit_s)
        if self._exit_s is None and exit_s is not None:
            self._exit_s = _EXIT_S
        self._queue_max = max(self._valid("queue_max", queue_max, _whole, "a number of events") or _QUEUE_MAX, 16)
        self._owner, self._ended, self._closed, self._in_block = os.getpid(), False, False, False
        self.dropped: int = 0  #: Number of reports lost because the queue was full.
        self._begin()
        _tell_children()
        self._of_environment = not session and "WATCHDOG_SESSION" in os.environ
        with _registry_lock:
            if not session and _is_open(self._server, self.session):
                parent = parent or self.session
                self.session = _session_id(f"{self.session[:80]}-{str(agent or 'agent')[:32]}-{os.urandom(4).hex()}")
                self._of_environment = False
            _reporters.add(self)
        spec = {"agent": agent, "task": task, "title": title, "labels": tags, "parentSessionId": parent, "policy": policy, "content": content}
        self._spec = {key: value for key, value in spec.items() if value}
        self._on_cancel, self._on_abort = on_cancel, on_abort
        self._listens = bool(on_cancel or on_abort)
        self._tasks: List[Tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []  # of `async with` blocks
        self._outer: List[contextvars.Token[Optional[Reporter]]] = []
        self._mistake: Optional[str] = None  # that the monitor found, and that nobody has raised yet
        self.cancel: Optional[Json] = None  #: `{"by", "reason", "at"}` after somebody asked the agent to stop.
        self.aborts: List[Json] = []  #: `[{"turnId", "toolId", "by", "reason", "at"}]`: turns and calls that must stop.
        self.rejected: int = 0  #: Number of reports that the monitor refused.
        self._totals: Dict[str, float] = {}
        _tell_children()
        self._report("start", **_process_facts())
        if signals:
            self._end_with_signals()

    def _begin(self) -> None:
        """Begins with an empty queue, as a forked child does as well."""
        with _registry_lock:
            self._sender = _senders.setdefault((self._server, self._token), _Sender(self._server, self._token))
        self._lock, self._wake = self._sender.lock, self._sender.wake
        self._queue: Deque[_Pending] = collections.deque()
        self._bytes = 0
        self._flight: List[_Pending] = []
        self._batch_max = _BATCH_MAX
        self._made = False
        self._due = self._next_beat = self._next_look = float("inf")
        self._not_before = 0.0  # The monitor refuses reports of this session until then.
        self._counted = False
        self._reported_dropped = self.dropped
        self._ids = itertools.count()
        self._id_prefix = f"{_now_ms():012x}-{os.urandom(4).hex()}-"
        self._complained = ""

    # The reports of agents.

    def heartbeat(self, iteration: Optional[int] = None, phase: Optional[str] = None,
                  counters: Optional[Mapping[str, float]] = None, source: str = "loop",
                  expect_quiet_s: Optional[float] = None) -> None:
        """Reports one iteration of the agent's loop. `counters` are running totals (tokens, bytes, items) within an operation."""
        self._raise_mistake()
        if type(iteration) is int and -_WHOLE_MAX <= iteration <= _WHOLE_MAX and type(phase) is str and len(phase) <= 64 and source == "loop" and not counters and expect_quiet_s is None:
            # The usual one, by hand: a third of the time.
            return self._put(_BEAT, f'{{"kind":"heartbeat","source":"loop","iteration":{iteration},"phase":{_quoted(phase)},'
                                    f'"event_id":"{self._id_prefix}{next(self._ids):08x}","ts_ms":{_now_ms()}}}', phase)
        whole = self._valid("iteration", iteration, _whole, "a whole number")
        self._report("heartbeat", source=source, iteration=whole, phase=phase, counters=counters or None,
                     expect_quiet_ms=self._milliseconds("expect_quiet_s", expect_quiet_s))

    def state_change(self, name: str, content: Any = None) -> None:
        """Reports progress. Put what is new into `content`: the same content again is not progress."""
        self.report("state_change", type=name, data=content)

    def count(self, **more: float) -> None:
        """Adds to running totals (`count(tokens=1)`), sent once a second. They show that the current operation works."""
        try:
            for name, number in more.items():
                self._totals[name] = self._totals.get(name, 0) + number
            with self._wake:
                self._counted = True
                self._rouse(time.monotonic() + _COUNT_LINGER_S)
        except Exception as error:
            self._complain(f"a count was lost: {error!r}")

    def tool(self, name: str, arguments: Any = None, *, call_id: Optional[str] = None, turn_id: Optional[str] = None,
             deadline_s: Optional[float] = None) -> ToolCall:
        """Reports a tool call around a block. An exception in the block is reported as the error of the call, and raised again.

        As a decorator it reports each call of the function, with its arguments and its result: `@watchdog.tool("search")`.

        `deadline_s`: seconds that it may last without `progress`. After them `aborted` is True, and the session's page says so. The
        block is not interrupted: look at `aborted` in it.
        """
        return ToolCall(self, name, arguments, call_id, turn_id, self._seconds("deadline_s", deadline_s))

    @overload
    def wrap(self, function: _Function, *, name: Optional[str] = None) -> _Function: ...

    @overload
    def wrap(self, function: None = None, *, name: Optional[str] = None) -> Callable[[_Function], _Function]: ...

    def wrap(self, function: Optional[Callable[..., Any]] = None, *, name: Optional[str] = None) -> Any:
        """Returns the function, with each of its calls reported as a call of a tool. See `watchdog_client.wrap`."""
        return _wrap(function, name, lambda: self)

    @staticmethod
    def current() -> Optional[Reporter]:
        """Returns the reporter of the innermost `with` block of this task or thread, else the only open one of the process, else None."""
        found = _current.get()
        if found is not None and not found._ended and not found._closed:
            return found
        with _registry_lock:
            others = [one for one in _reporters if not one._ended and not one._closed]
        return others[0] if len(others) == 1 else None

    def tool_call(self, name: str, arguments: Any = None, call_id: Optional[str] = None, *, turn_id: Optional[str] = None,
                  deadline_s: Optional[float] = None) -> None:
        """Reports that a call of a tool begins."""
        deadline_ms = self._milliseconds("deadline_s", deadline_s)
        self.report("tool_call", name=name, args=arguments, call_id=call_id, turn_id=turn_id, deadline_ms=deadline_ms)

    def tool_result(self, name: str, result: Any = None, call_id: Optional[str] = None) -> None:
        """Reports what a call returned."""
        self.report("tool_result", name=name, text=result, call_id=call_id)

    def tool_error(self, name: str, error: Any, call_id: Optional[str] = None) -> None:
        """Reports that a call failed."""
        self.report("error", name=name, text=error, call_id=call_id)

    def message(self, role: str, text: str) -> None:
        """Reports a message of a conversation: of the role user, assistant or system."""
        self.report("message", name=role, text=text)

    def wait_for(self, what: str, text: Optional[str] = None, until: Optional[float] = None) -> None:
        """Reports that the agent waits on purpose: for input, approval, quota, backend, … `until`: its end, in seconds since
        1970, if it is known."""
        self.report("wait", waiting_for=what, text=text, until_ms=self._milliseconds("until", until))

    def report(self, kind: str, **fields: Any) -> None:
        """Reports any event of event.schema.json: turn, budget, user_input, idle, retry, opinion, …"""
        self._raise_mistake()
        wrong = _wrong_word(kind, fields)
        if wrong:
            if self._strict:
                raise ValueError(wrong[1])
            self._say_wrong(wrong[1], wrong[0])
        self._report(kind, **fields)

    def _valid(self, what: str, value: Any, convert: Callable[[Any], Any], right: str) -> Any:
        """None if the value is wrong: the report goes without it."""
        if value is None:
            return None
        with contextlib.suppress(Exception):
            converted = convert(value)
            if converted is not None:
                return converted
        text = f"{what} is {_shortly(value)[:100]}, and must be {right}. It is left out."
        if self._strict:
            raise ValueError(text)
        self._say_wrong(text)
        return None

    def _seconds(self, what: str, value: Any) -> Optional[float]:
        seconds: Optional[float] = self._valid(what, value, lambda one: float(one) if abs(float(one)) < 1e12 else None, "a number of seconds")
        return seconds

    def _milliseconds(self, what: str, value: Any) -> Optional[int]:
        seconds = self._seconds(what, value)
        return None if seconds is None else int(seconds * 1000)

    def _report(self, kind: str, **fields: Any) -> None:
        try:
            event: Dict[str, str] = {}  # each as JSON
            for key, value in fields.items():
                if value is None:
                    continue
                if key in ("args", "data", "text"):
                    event.update(_content(key, value, "args_hash" if kind == "tool_call" else "result_hash"))
                elif key in ("name", "type", "call_id", "turn_id", "waiting_for", "provider", "reason", "phase", "host"):
                    event[key] = _quoted(_name(value))
                else:
                    event[key] = _json(value)
        except Exception as error:
            return self._complain(f"a report was lost: {error!r}")
        self._push(kind, event, fields.get("phase"))

    # How it ends. The first end counts.

    def completed(self) -> None:
        """Ends the session: its work is done."""
        self.end("completed")

    def failed(self, error: Any = None, reason: Optional[str] = None) -> None:
        """Ends the session: it could not do its work."""
        self.end("failed", reason, error)

    def incomplete(self, reason: str) -> None:
        """Ends the session: a part of its work is done."""
        self.end("incomplete", reason)

    def end(self, outcome: str, reason: Optional[str] = None, error: Any = None) -> None:
        """Ends the session. `outcome`: completed, failed, incomplete or cancelled."""
        if not self._ended and not self._is_mine():
            self._ended = True
            if outcome != "completed":
                what = " ".join(str(part) for part in (outcome, reason, error) if part is not None)
                self._report("message", name="watchdog", text=f"process {os.getpid()} reports no more: {what}")
        elif not self._ended:
            text = None if error is None else (error if isinstance(error, str) else _shortly(error))[:8000]
            if self._counted:
                self._beat()
            who = (self.cancel or {}).get("by") if outcome == "cancelled" and reason is None else None
            self._report("end", outcome=outcome, reason=reason, subject=who, error=text)
            self._ended = True
            _tell_children()

    def _is_mine(self) -> bool:
        """Whether this reporter may end its session: no other process does it, and no block of another reporter."""
        return ((self._owner == os.getpid() or not _is_alive(self._owner)) and
                not _is_open(self._server, self.session, besides=self, in_block=True))

    def __enter__(self) -> Reporter:
        self._in_block = True
        self._outer.append(_current.set(self))
        _tell_children()
        return self

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        self._end_block(error)
        try:
            self._leave()
        except ValueError:
            if error is None:  # else the block's own is the cause
                raise

    async def __aenter__(self) -> Reporter:
        """As `with`, and a cancel cancels the task that entered."""
        import asyncio
        task = asyncio.current_task()
        if task:
            with self._wake:
                self._tasks.append((asyncio.get_running_loop(), task))
                self._listens = True
                self._listen()
        return self.__enter__()

    async def __aexit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        """As `with`, and other tasks run while it waits for the monitor."""
        import asyncio
        current = asyncio.current_task()
        with self._wake:
            self._tasks[:] = [entry for entry in self._tasks if entry[1] is not current]
        self._end_block(error)
        try:
            if self._unsent() and self._server:
                await _in_thread(self._leave)
            else:
                self._leave()
        except ValueError:
            if error is None:
                raise

    def _end_block(self, error: Optional[BaseException]) -> None:
        if self._outer:
            with contextlib.suppress(ValueError):  # A generator is left in another context than that in which it began.
                _current.reset(self._outer.pop())
        if _is_cancel(error):
            asked = self.cancel is not None or isinstance(error, Cancelled)
            self.end("cancelled", "interrupted" if isinstance(error, KeyboardInterrupt) else None if asked else "task_cancelled")
        elif isinstance(error, GeneratorExit):
            self.end("cancelled" if self.cancelled else "incomplete", None if self.cancelled else "left_early")
        elif error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
            self.end("cancelled" if self.cancelled else "completed")
        else:
            short = _is_short(error, _Room(*_DATA_MAX))
            self.failed(f"{type(error).__name__}: {error if short and str(error) else _shortly(error)}")

    def _end_with_signals(self) -> None:
        """SIGTERM ends the session as cancelled, if nothing else in the process handles it."""
        def on_signal(number: int, frame: Any) -> None:
            with contextlib.suppress(Exception):
                self.end("cancelled", "SIGTERM")
                self._leave()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, on_signal)

    # Being asked to stop.

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked the agent to stop."""
        self._listens = True
        return self.cancel is not None

    def check(self) -> None:
        """Raises `Cancelled` if somebody asked the agent to stop."""
        self._listens = True
        if self.cancel is not None:
            raise Cancelled(f"{self.cancel.get('by')}: {self.cancel.get('reason')}")

    # Waiting until all reports are sent.

    def flush(self, timeout_s: Optional[float] = None) -> bool:
        """Waits until the monitor has acknowledged all reports. False: that took longer than `timeout_s`."""
        delivered = self._wait_for_delivery(timeout_s)
        self._raise_mistake()
        return delivered

    def close(self, timeout_s: Optional[float] = None) -> bool:
        """Like `flush`; then takes no more reports. Does not end the session."""
        return self._close(timeout_s)

    async def aflush(self, timeout_s: Optional[float] = None) -> bool:
        """`flush` for asyncio: other tasks run meanwhile."""
        return await _in_thread(self.flush, timeout_s)

    async def aclose(self, timeout_s: Optional[float] = None) -> bool:
        """`close` for asyncio: other tasks run meanwhile."""
        return await _in_thread(self.close, timeout_s)

    def _unsent(self) -> int:
        return len(self._queue) + len(self._flight) + self._counted

    def _wait_for_delivery(self, timeout_s: Optional[float], leaves: bool = False) -> bool:
        sender = self._sender
        with self._wake:
            if not self._server:
                return True
            if not self._unsent() or sender.thread is threading.current_thread():
                return not self._unsent()
            begin, tries = time.monotonic(), sender.tries
            if leaves:  # One more try, at once.
                sender.not_before = self._not_before = 0.0
            self._rouse(0)
            waited_for_nobody = False
            while self._unsent() and not self._closed:
                now = time.monotonic()
                until = float("inf") if timeout_s is None else begin + timeout_s
                if leaves and sender.waited_in_vain and not sender.reached:
                    until = min(until, begin + _NOBODY_S)
                if leaves and sender.tries > tries and sender.is_nobody_there():
                    waited_for_nobody = True
                    until = min(until, begin + sender.nobody_s)
                if now >= until:
                    break
                self._wake.wait(min(until - now, threading.TIMEOUT_MAX))
            if waited_for_nobody:
                sender.nobody_s = max(0.0, sender.nobody_s - (time.monotonic() - begin))
            if leaves and self._unsent():
                sender.waited_in_vain = True
            return not self._unsent()

    def _close(self, timeout_s: Optional[float], leaves: bool = False) -> bool:
        try:
            delivered = self._wait_for_delivery(timeout_s, leaves)
            if not delivered and not self._closed and self._sender.thread is not threading.current_thread():
                with contextlib.suppress(Exception):
                    _log.warning("%s: %d reports were not delivered to %s: %s", self.session, self._unsent(), self._server,
                                 self._sender.trouble or "it has not answered yet")
            self._raise_mistake()
            return delivered
        finally:
            with self._wake:
                self._closed = True
                if self._not_before > time.monotonic():
                    self._queue.clear()
                    self._flight.clear()
                self._wake.notify_all()
            _tell_children()

    def _leave(self, spent_s: float = 0.0) -> bool:
        """Closes as an exit does."""
        timeout_s = None if self._exit_s is None else max(0.0, self._exit_s - spent_s)
        return self._close(timeout_s, leaves=self._exit_s is not None and self._exit_s <= _EXIT_S)

    # The queue.

    def _push(self, kind: str, event: Dict[str, str], phase: Any = None) -> None:
        if not self._server:
            return
        try:
            event["kind"] = _json(kind)
            event.setdefault("event_id", f'"{self._id_prefix}{next(self._ids):08x}"')
            event.setdefault("ts_ms", f"{_now_ms()}")
            self._put(_ranks.get(kind, _REST), "{" + ",".join(f"{_quoted(key)}:{value}" for key, value in event.items()) + "}", phase)
        except Exception as error:  # An agent does not fail because of its watchdog.
            self._complain(f"a report was lost: {error!r}")

    def _put(self, rank: int, event: str, phase: Any) -> None:
        if not self._server or self._closed:
            return
        text = event.encode("utf-8", "replace")
        with self._lock:
            queue = self._queue
            if rank == _BEAT and len(queue) > _COALESCE_MIN and queue[-1].rank == _BEAT and queue[-1].phase == phase:
                self._bytes -= len(queue.pop().text)
            queue.append(_Pending(rank, text, phase))
            self._bytes += len(text)
            if len(queue) > self._queue_max or self._bytes > _QUEUE_BYTES_MAX:
                self._shed()
            if rank != _BEAT:
                self._rouse(0)
            elif self._due == float("inf"):
                self._rouse(time.monotonic() + _HEARTBEAT_LINGER_S)

    def _shed(self) -> None:
        """Makes room. Drops heartbeats first, then other events, then the oldest changes. Ends stay."""
        before = len(self._queue)
        for rank in (_BEAT, _REST, _CHANGE):
            kept: Deque[_Pending] = collections.deque()
            count, size = len(self._queue), self._bytes
            for item in self._queue:
                if item.rank == rank and (count > self._queue_max * 3 // 4 or size > _QUEUE_BYTES_MAX * 3 // 4):
                    count, size = count - 1, size - len(item.text)
                else:
                    kept.append(item)
            self._queue, self._bytes = kept, size
        self.dropped += before - len(self._queue)

    def _rouse(self, due: float) -> None:
        """With the lock held: the thread is to look then."""
        if not self._server or self._closed:
            return
        due = max(due, time.monotonic())  # In the order in which they came.
        if due < self._due:
            self._due = due
        try:
            self._sender.take(self)
        except RuntimeError as error:  # Too many threads, or the interpreter ends: the next report tries again.
            self._due = float("inf")
            self._complain(f"no thread: {error}")

    def _beat(self) -> None:
        self._counted = False
        self.heartbeat(counters=dict(self._totals), source="sidecar")

    # The thread.

    def _when(self) -> float:
        """When the thread must do something for this session. Infinity: never again, if no more is reported."""
        due = self._due if self._queue or self._flight or self._counted else float("inf")
        if not self._closed:
            due = min(due, self._next_beat, self._next_look)
        return max(due, self._not_before)

    def _serve(self) -> None:
        """In the thread: sends one batch."""
        with self._wake:
            now = time.monotonic()
            self._due = float("inf")
            looks = now >= self._next_look
            if now >= self._next_beat:
                self._next_beat = now + (self._interval_s or float("inf"))
                self._counted = True
            if self._ended:
                self._counted, self._next_beat, self._next_look = False, float("inf"), float("inf")
            elif self._counted:
                self._beat()
                self._due = float("inf")
        if not self._claim() and not looks:
            return
        pause = self._send()
        with self._wake:
            if pause == 0:
                self._sender.failures = 0
                self._listen()
            else:
                self._sender.failed(pause)
                if self._closed:
                    self._queue.clear()
                    self._flight.clear()
            self._due = time.monotonic() if self._queue or self._flight else float("inf")
            self._wake.notify_all()

    def _listen(self) -> None:
        """With the lock held: an empty batch asks for a cancel, if somebody would obey it."""
        listens = self._listens and self._interval_s and self.cancel is None and not self._ended
        self._next_look = time.monotonic() + min(_LISTEN_S, self._interval_s) if listens else float("inf")

    def _claim(self) -> bool:
        """Whether there is something to send. A batch stays as it is until it is acknowledged."""
        lost = self.dropped - self._reported_dropped
        if lost and not self._flight:
            self._reported_dropped = self.dropped
            self.message("watchdog", f"{lost} reports were dropped: the monitor did not take them in time")
        with self._wake:
            size = 0
            while self._queue and len(self._flight) < self._batch_max and size + len(self._queue[0].text) <= _BATCH_BYTES_MAX:
                item = self._queue.popleft()
                self._bytes -= len(item.text)
                size += len(item.text)
                self._flight.append(item)
            return bool(self._flight)

    def _send(self) -> float:
        """0 if something was settled, else at least how many seconds to wait."""
        sender = self._sender
        sender.tries += 1
        try:
            if not self._made:
                self._make_session()
            part = self._flight[:self._batch_max]
            body = b"[" + b",".join(item.text for item in part) + b"]"
            answer = sender.connection.ask("POST", f"{_sessions}/{self.session}/events", body)
            sender.reached, sender.trouble = True, ""
            with self._wake:
                del self._flight[:len(part)]
            self._batch_max = min(_BATCH_MAX, self._batch_max * 2)
            self._complained = ""
            self._obey((answer or {}).get("directive") or {})
            if (answer or {}).get("hint"):
                self._found_wrong(f"the monitor hints: {answer['hint']}")
            return 0
        except MonitorError as error:
            sender.reached, sender.trouble = True, f"it answers {error}"
            if error.status in (400, 413, 422) and self._flight:
                return self._reject(error)
            self._complain(f"{self._server} refuses reports: {error}")
            if error.status < 500 and error.status not in (408, 429):
                self._not_before = time.monotonic() + max(error.retry_after_s, _REFUSED_S)
            return max(error.retry_after_s, 0.01)
        except Exception as error:
            sender.trouble, sender.refused = f"{error!r}", isinstance(error, (ConnectionRefusedError, socket.gaierror, ValueError, http.client.InvalidURL))
            self._complain(f"{self._server} cannot be reached, reports wait: {error!r}")
            return 0.01

    def _make_session(self) -> None:
        if self._spec:
            try:
                body = _json({"sessionId": self.session, **self._spec}).encode("utf-8", "replace")
                self._sender.connection.ask("POST", _sessions, body)
            except MonitorError as error:
                if error.status not in (400, 409, 413, 422):
                    raise
                if error.status != 409:  # Else somebody made it before, for example a wrapper.
                    self._found_wrong(f"the session has no properties: {error}")
        self._made = True

    def _reject(self, error: MonitorError) -> float:
        """One event of the batch is bad: finds out which, and goes on without it."""
        part = min(len(self._flight), self._batch_max)
        named = error.line if isinstance(error.line, int) and 1 <= error.line <= part else None
        if named is None and part > 1:
            self._batch_max = part // 2
            return 0
        with self._wake:
            del self._flight[(named or 1) - 1]
        self.rejected += 1
        self._found_wrong(f"a report was not understood: {error}")
        return 0

    def _obey(self, directive: Json) -> None:
        aborts: List[Json] = directive.get("aborts") or []
        known, self.aborts = self.aborts, aborts
        for abort in self.aborts:
            if abort not in known:
                self._call(self._on_abort, abort)
        if directive.get("cancel") and self.cancel is None:
            self.cancel = directive["cancel"]
            for loop, task in list(self._tasks):
                self._call(lambda _: loop.call_soon_threadsafe(self._cancel_task, task), self.cancel)
            self._call(self._on_cancel, self.cancel)

    def _cancel_task(self, task: asyncio.Task[Any]) -> None:
        """In the task's loop."""
        if any(one is task for _, one in self._tasks):  # else it has left the block meanwhile
            task.cancel()

    def _call(self, callback: Optional[Callable[[Json], Any]], what: Optional[Json]) -> None:
        try:
            if callback and what:
                callback(what)
        except (Exception, Cancelled):
            _log.exception("a callback failed")

    def _found_wrong(self, what: str) -> None:
        """The monitor found a mistake, in the thread."""
        if not self._strict:
            self._say_wrong(what)
        elif self._mistake is None:
            self._mistake = what

    def _raise_mistake(self) -> None:
        if self._mistake is not None and self._sender.thread is not threading.current_thread():
            mistake, self._mistake = self._mistake, None
            raise ValueError(mistake)

    def _say_wrong(self, what: str, word: Optional[str] = None) -> None:
        """Says it once in this process: also if the monitor says again what this client has said about a word."""
        with _registry_lock:
            if what in _said or len(_said) >= _SAID_MAX:
                return
            if word is None and any(re.search(rf"[\"'`]{re.escape(known)}[\"'`]", what) for known in _said.values() if known):
                return
            _said[what] = word
        with contextlib.suppress(Exception):
            _log.warning("%s: %s", self.session, what)

    def _complain(self, what: str) -> None:
        """Says it once, until things are well again."""
        kind = what.partition(":")[0]
        if kind != self._complained:
            self._complained = kind
            with contextlib.suppress(Exception):
                _log.warning("%s: %s", self.session, what)


async def _in_thread(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Runs it in a thread that keeps neither the loop nor the process from ending."""
    import asyncio
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()

    def settle(act: Callable[[Any], None], what: Any) -> None:
        if not done.cancelled():
            act(what)

    def run() -> None:
        act: Callable[[Any], None] = done.set_result
        try:
            what: Any = function(*arguments)
        except BaseException as error:
            act, what = done.set_exception, error
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(settle, act, what)

    threading.Thread(target=contextvars.copy_context().run, args=[run], name="watchdog-wait", daemon=True).start()
    return await done


_current: contextvars.ContextVar[Optional[Reporter]] = contextvars.ContextVar("watchdog", default=None)


@overload
def wrap(function: _Function, *, name: Optional[str] = None) -> _Function: ...


@overload
def wrap(function: None = None, *, name: Optional[str] = None) -> Callable[[_Function], _Function]: ...


def wrap(function: Optional[Callable[..., Any]] = None, *, name: Optional[str] = None) -> Any:
    """Returns the function, with each of its calls reported as a call of a tool, to `Reporter.current()`.

    The report has the arguments by name, and the result or the error. The function may be a plain one, a coroutine
    function, or a generator of either kind, whose result is the list of its values. Also a decorator: `@wrap` or `@wrap(name="search")`.
    """
    return _wrap(function, name, Reporter.current)


_VALUES_MAX = 1000  # of a generator


class _Values:
    """The values of a generator so far, as the result of its call."""

    def __init__(self, call: Optional[ToolCall]):
        self._call, self._said = call, time.monotonic()
        self._list: List[Any] = []
        if call:
            call.result = self._list

    def add(self, value: Any) -> None:
        if self._call is None:
            return
        if len(self._list) < _VALUES_MAX:
            self._list.append(value)
        else:
            self._call.result = [*self._list, _opaque("…")]
        if time.monotonic() - self._said >= 1:  # at most one report per second
            self._said = time.monotonic()
            self._call.progress()


def _wrap(function: Optional[Callable[..., Any]], name: Optional[str], reporter_of: Callable[[], Optional[Reporter]]) -> Any:
    if function is None:
        return lambda one: _wrap(one, name, reporter_of)
    made: Callable[..., Any] = function
    tool = name or getattr(made, "__name__", None) or type(made).__name__
    signature: Optional[inspect.Signature] = None
    with contextlib.suppress(TypeError, ValueError):  # Some built-in functions have none.
        signature = inspect.signature(made)

    def begin(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        reporter = reporter_of()
        return reporter.tool(tool, _arguments(signature, args, kwargs)) if reporter else contextlib.nullcontext()

    async def run_async(*args: Any, **kwargs: Any) -> Any:
        with begin(args, kwargs) as call:
            result = await made(*args, **kwargs)
            if call:
                call.result = result
            return result

    async def stream_async(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        with begin(args, kwargs) as call:
            values, source = _Values(call), made(*args, **kwargs)
            try:
                async for value in source:
                    values.add(value)
                    yield value
            finally:
                await source.aclose()

    def stream(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with begin(args, kwargs) as call:
            values, source = _Values(call), made(*args, **kwargs)
            try:
                value = next(source)
                while True:
                    values.add(value)
                    try:
                        sent = yield value
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        value = source.throw(error)
                    else:
                        value = next(source) if sent is None else source.send(sent)
            except StopIteration as end:
                return end.value
            finally:
                source.close()

    def run(*args: Any, **kwargs: Any) -> Any:
        with begin(args, kwargs) as call:
            result = made(*args, **kwargs)
            if call:
                call.result = result
            return result

    if inspect.iscoroutinefunction(made) or inspect.iscoroutinefunction(getattr(made, "__call__", None)):
        return functools.wraps(made)(run_async)
    if inspect.isasyncgenfunction(made):
        return functools.wraps(made)(stream_async)
    return functools.wraps(made)(stream if inspect.isgeneratorfunction(made) else run)


def _arguments(signature: Optional[inspect.Signature], args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """By name, as the function sees them."""
    if signature:
        with contextlib.suppress(TypeError):  # The call itself will say it.
            found: Dict[str, Any] = {}
            for index, (name, value) in enumerate(signature.bind(*args, **kwargs).arguments.items()):
                if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                    found.update(value)
                elif index or name not in ("self", "cls"):
                    found[name] = value
            return found
    return {"arguments": list(args), **kwargs}


class _Sender:
    """Sends the reports of all sessions of this process to one monitor, with one thread and one connection.

    The thread ends after the last session. It holds a reporter only while that has unsent reports: a reporter that
    nobody refers to reports no more sidecar heartbeats.
    """

    def __init__(self, server: str, token: str):
        self.lock = threading.RLock()  # Signal handlers report as well.
        self.wake = threading.Condition(self.lock)
        self.connection = _Connection(server, token)
        self.thread: Optional[threading.Thread] = None
        self.unsent: Set[Reporter] = set()
        self.open: weakref.WeakSet[Reporter] = weakref.WeakSet()
        self.sleeps_until = 0.0
        self.failures, self.not_before = 0, 0.0
        self.tries, self.reached, self.refused = 0, False, False
        self.trouble = ""
        self.nobody_s = _NOBODY_S
        self.waited_in_vain = False  # at an exit

    def is_nobody_there(self) -> bool:
        """Whether every connection was refused, from the first one on."""
        return self.refused and not self.reached

    def take(self, reporter: Reporter) -> None:
        """With the lock held: has something to send."""
        self.unsent.add(reporter)
        if self.thread is None:
            thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
            _flush_at_exit()
            self.thread = thread
            try:
                thread.start()
            except BaseException:
                self.thread = None
                raise
        if reporter not in self.open:
            self.open.add(reporter)
            reporter._next_beat = time.monotonic() + reporter._interval_s if reporter._interval_s else float("inf")
        if reporter._due < self.sleeps_until:
            self.wake.notify_all()

    def failed(self, pause_s: float) -> None:
        """With the lock held: the next try is later."""
        self.failures += 1
        longest = min(_RETRY_S[1], _RETRY_S[0] * 2 ** min(self.failures, 8))
        self.not_before = time.monotonic() + max(pause_s, longest * random.uniform(0.5, 1))

    def _run(self) -> None:
        while True:
            reporter = self._next()
            if reporter is None:
                return
            try:
                reporter._serve()
            except Exception as error:  # A mistake of this client harms no agent and no other session.
                reporter._complain(f"reports were lost: {error!r}")
                reporter._flight.clear()
            del reporter

    def _next(self) -> Optional[Reporter]:
        """Waits for the work of a session. None: no session is left."""
        idle_since = time.monotonic()
        with self.wake:
            while True:
                now, due = time.monotonic(), float("inf")
                first: Optional[Reporter] = None
                for one in {*self.unsent, *self.open}:
                    when = one._when()
                    if when == float("inf"):
                        self.unsent.discard(one)
                        if one._ended or one._closed:
                            self.open.discard(one)
                    elif one._due == float("inf"):
                        self.unsent.discard(one)
                    if when < due:
                        due, first = when, one
                one = None  # type: ignore[assignment]
                if not self.unsent and not self.open:
                    if now >= idle_since + _LINGER_S:
                        self.connection.close()
                        self.thread = None
                        return None
                    due = idle_since + _LINGER_S
                else:
                    idle_since = now
                    due = max(due, self.not_before)
                if first is not None and due <= now:
                    return first
                first = None  # It may be collected meanwhile.
                self.sleeps_until = due
                self.wake.wait(min(due - now, threading.TIMEOUT_MAX))
                self.sleeps_until = 0.0


_SAID_MAX = 100
_said: Dict[str, Optional[str]] = {}  # mistakes, with the word that is wrong
_reporters: weakref.WeakSet[Reporter] = weakref.WeakSet()
_senders: Dict[Tuple[str, str], _Sender] = {}  # by server and token
_registry_lock = threading.RLock()  # of all three
_Open = Tuple[int, str, str, bool]  # process, server, session, whether in a `with` block
_of_parents: Tuple[_Open, ...] = ()  # what the process that started this one had open
_finalizer_of = 0  # process


def _session_id(wanted: str) -> str:
    return re.sub(r"[^A-Za-z0-9._:@-]", "-", wanted)[:128]


def _is_alive(process: int) -> bool:
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{process}/stat", "rb") as stat:
        return stat.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")  # else its parent has not asked for its end yet
    if not hasattr(os, "fork"):  # On Windows the next call would send a signal.
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _all_open(besides: Optional[Reporter] = None) -> Iterator[_Open]:
    """The sessions that reporters of this process and its parents have open."""
    with _registry_lock:
        mine = list(_reporters)
    for one in mine:
        if one is not besides and not one._ended and not one._closed:
            yield one._owner, one._server, one.session, one._in_block
    yield from _of_parents


def _is_open(server: str, session: str, besides: Optional[Reporter] = None, in_block: bool = False) -> bool:
    return any(one[1:3] == (server, session) and one[3] >= in_block and (one[0] == os.getpid() or _is_alive(one[0]))
               for one in _all_open(besides))


def _of_starter() -> Tuple[_Open, ...]:
    """A program that an agent starts has $WATCHDOG_SESSION of the agent, which has that open."""
    process, _, session = os.environ.get("WATCHDOG_REPORTER", "").partition(" ")
    return ((int(process), _settings(None, None)[0], session, True),) if process.isdigit() and int(process) != os.getpid() else ()


def _tell_children() -> None:
    """A child that `multiprocessing` starts as a new program gets a copy of its parent's `_config`, and nothing else of this module."""
    global _of_parents
    with contextlib.suppress(Exception), _registry_lock:
        of_environment = [one.session for one in _reporters if one._of_environment and one._owner == os.getpid() and not one._ended and not one._closed]
        if of_environment:
            os.environ["WATCHDOG_REPORTER"] = f"{os.getpid()} {of_environment[0]}"
        elif os.environ.get("WATCHDOG_REPORTER", "").startswith(f"{os.getpid()} "):
            del os.environ["WATCHDOG_REPORTER"]
    with contextlib.suppress(Exception):
        import multiprocessing.process
        config = multiprocessing.process.current_process()._config  # type: ignore[attr-defined]
        told = config.get("watchdog", ())
        if told and told[0] != os.getpid():
            _of_parents = told[1]
        config["watchdog"] = (os.getpid(), tuple(_all_open()))


def _flush_at_exit() -> None:
    """Children in `multiprocessing` leave without `atexit`."""
    global _finalizer_of
    is_child = getattr(sys.modules.get("multiprocessing.process"), "parent_process", lambda: None)()
    util = sys.modules.get("multiprocessing.util")
    if is_child and util and _finalizer_of != os.getpid():
        _finalizer_of = os.getpid()
        util.Finalize(None, _at_exit, exitpriority=100)


def _after_fork() -> None:
    global _registry_lock
    _registry_lock = threading.RLock()
    _senders.clear()
    for reporter in list(_reporters):
        reporter._begin()


def _at_exit() -> None:
    begin = time.monotonic()
    for reporter in list(_reporters):
        with contextlib.suppress(Exception):
            reporter._leave(time.monotonic() - begin)


_of_parents = _of_starter()
codecs.lookup("idna")  # For names of hosts. A child that is forked while a thread imports it could never look one up.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)


# --- Waiting ---------------------------------------------------------------------------------------------------------

_healths = ("unknown", "starting", "progressing", "slow", "suspect", "stuck", "looping", "blocked", "silent", "dead", "idle")
_goals = ("completed", "failed", "incomplete", "cancelled", "end", "state-change(=.+)?", f"health=({'|'.join(_healths)})")


class WaitFailed(AssertionError):
    """The session cannot become what was expected. The text says what was expected, how the session was last, why, and what happened.

    `end`: ended, dead, stuck, user_cancelled_stuck, no_session, interrupted, unavailable or refused.
    """

    def __init__(self, end: str, why: str, text: str, progress: Optional[Json]):
        super().__init__(text)
        self.end = end  #: Why the wait is over, as one word.
        self.why = why  #: Why, as a sentence.
        self.progress = progress  #: The newest progress document, or None.


Awaited = Union[str, Callable[[Json], object]]


class Monitor:
    """A monitor. Thread-safe."""

    server: str  #: URL of the monitor.
    token: str  #: Token that requests show, or an empty text.

    def __init__(self, server: Optional[str] = None, token: Optional[str] = None):
        self.server, self.token = self._server, self._token = _settings(server, token)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Sends any request. Errors: MonitorError, OSError."""
        connection = _Connection(self._server, self._token)
        try:
            return connection.ask(method, path, None if body is None else _json(body).encode("utf-8", "replace"))
        finally:
            connection.close()

    def progress(self, session: str) -> Json:
        """Returns the session's progress document."""
        return cast(Json, self.ask("GET", f"/api/autonomous/progress/{session}"))

    def events(self, session: str, kind: str = "", after: int = 0) -> Iterator[Json]:
        """Yields the session's events, the oldest first."""
        while True:
            page = self.ask("GET", f"{_sessions}/{session}/events?after={after}&limit=1000&kind={kind}")
            yield from page["events"]
            if page["next"] is None:
                return
            after = page["next"]

    def cancel(self, session: str, reason: str = "", by: str = "") -> Json:
        """Asks the agent to stop. Needs a token."""
        return cast(Json, self.ask("POST", f"{_sessions}/{session}/cancel", {"reason": reason, "by": by}))

    def wait(self, session: str, for_: Awaited = "completed", *, on_stuck: Union[str, Callable[[Json], object]] = "fail",
             further_max: int = 3, after: int = 0, process: Optional[subprocess.Popen[Any]] = None,
             seen: Optional[Callable[[Json], None]] = None) -> Json:
        """Returns the session's progress document when the session reaches the wanted state, however long that takes.

        Raises `WaitFailed` as soon as the session cannot become that: it ended otherwise, is dead, or stays stuck or
        looping for `further_max` more iterations. Raises ValueError if `for_` is invalid. The call also waits
        for a monitor that restarts, and for a session that does not exist yet.

        `for_`: completed, failed, incomplete, cancelled, end, health=NAME, state-change, state-change=TYPE, or a function
        of the progress document. The function is called at once, with each change, and once a second while something is
        reported. `on_stuck`: fail, keep (go on), or a function that says whether to go on. `process`: the process that
        reports; if it exits without ending the session, the wait fails. `after`: only changes after this event count
        (progress["lastSeq"] of an earlier wait). `seen` gets each new progress document.
        """
        __tracebackhide__ = True
        return _Wait(self, session, for_, on_stuck, further_max, after, process, seen).run()

    async def wait_async(self, session: str, for_: Awaited = "completed", *, on_stuck: Union[str, Callable[[Json], object]] = "fail",
                         further_max: int = 3, after: int = 0, process: Optional[subprocess.Popen[Any]] = None,
                         seen: Optional[Callable[[Json], None]] = None) -> Json:
        """`wait` for asyncio: other tasks run meanwhile, and a cancel of the task ends the wait. Functions are called in a thread."""
        __tracebackhide__ = True
        waiting = _Wait(self, session, for_, on_stuck, further_max, after, process, seen)
        try:
            return await _in_thread(waiting.run)
        finally:
            waiting.stop()


def wait(session: str, for_: Awaited = "completed", *, server: Optional[str] = None, token: Optional[str] = None, **how: Any) -> Json:
    """Like `Monitor.wait`, with the monitor of the environment."""
    __tracebackhide__ = True
    return Monitor(server, token).wait(session, for_, **how)


async def wait_async(session: str, for_: Awaited = "completed", *, server: Optional[str] = None, token: Optional[str] = None, **how: Any) -> Json:
    """Like `Monitor.wait_async`, with the monitor of the environment."""
    __tracebackhide__ = True
    return await Monitor(server, token).wait_async(session, for_, **how)


class _Raised(Exception):
    """By a function of the caller: nothing that another try would help with."""


def _call(function: Callable[[Json], Any], progress: Json) -> Any:
    try:
        return function(progress)
    except Exception as error:
        raise _Raised(error) from None


_LAST_LOOK_S = 2.0
_waits: List[_Wait] = []


def _say_interrupted(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class _Wait:
    """Asks the monitor again and again whether the wait is over; the monitor answers late, and its cursor keeps the state."""

    def __init__(self, monitor: Monitor, session: str, for_: Awaited, on_stuck: Union[str, Callable[[Json], object]],
                 further_max: int, after: int, process: Optional[subprocess.Popen[Any]], seen: Optional[Callable[[Json], None]]):
        if not re.fullmatch(r"[A-Za-z0-9._:@-]{1,128}", session):
            raise ValueError(f"{session!r} is not a session id: 1 to 128 characters of A-Z a-z 0-9 . _ : @ -")
        if not callable(for_) and not re.fullmatch("|".join(_goals), for_, re.DOTALL):
            raise ValueError(f"nobody can wait for {for_!r}: it is completed, failed, incomplete, cancelled, end, health=NAME, "
                             "state-change, state-change=TYPE or a function of the progress document")
        if not callable(on_stuck) and on_stuck not in ("fail", "keep"):
            raise ValueError(f"on_stuck is fail, keep or a function, not {on_stuck!r}")
        if not monitor._server:
            raise ValueError("no monitor to ask: $WATCHDOG_SERVER is empty")
        self._server, self._session, self._on_stuck = monitor._server, session, on_stuck
        self._process, self._seen, self._condition = process, seen, for_ if callable(for_) else None
        self._expected = for_ if isinstance(for_, str) else getattr(for_, "__name__", "a condition")
        self._query: Json = {"for": for_ if isinstance(for_, str) else "condition", "onStuck": "ask" if callable(on_stuck) else on_stuck,
                       "furtherMax": further_max, "after": after, "tell": "changes" if seen or callable(for_) else "over", "timeoutMs": 0}
        self._progress: Optional[Json] = None
        self._gone, self._over, self._stopped = threading.Event(), threading.Event(), False
        self._connection, self._last_connection = (_Connection(monitor._server, monitor._token) for _ in range(2))

    def run(self) -> Json:
        __tracebackhide__ = True
        if self._process:
            threading.Thread(target=self._watch_process, daemon=True).start()
        restore = self._on_sigterm()
        _waits.append(self)
        try:
            failures, reached = 0, False
            while True:
                gone, after_s = self._gone.is_set(), 0.0
                if self._stopped:
                    raise self._failure("interrupted", "the wait was stopped")
                try:
                    if self._look(gone):
                        return self._progress or {}
                    reached, failures = True, 0
                    if self._query["tell"] == "changes":
                        self._gone.wait(0.05)  # Frequent changes cost no more answers than this.
                    continue
                except MonitorError as error:
                    after_s = error.retry_after_s
                    if error.status in (400, 401, 403, 404, 422) or not (reached or error.status in (429, 503)):
                        raise self._refused(error) from None
                except _Raised as error:
                    raise error.args[0] from None
                except (OSError, http.client.HTTPException) as error:
                    if not reached and isinstance(error, (ConnectionRefusedError, socket.gaierror, http.client.InvalidURL)):
                        raise self._failure("unavailable", f"no monitor answers at {self._server} ({error}): start one with "
                                                           "`watchdog-monitor serve`, or name it by $WATCHDOG_SERVER") from None
                if gone:
                    raise self._process_failure()
                if not self._gone.is_set():
                    failures += 1
                    self._gone.wait(max(after_s, min(2.0, 0.05 * 2 ** min(failures, 6)) * random.uniform(0.5, 1)))
        except KeyboardInterrupt:
            self.say_interrupted("SIGINT")
            raise
        finally:
            _waits.remove(self)
            restore()
            self._over.set()
            self._connection.close()
            self._last_connection.close()

    def _ask(self, last: bool) -> Json:
        """`last`: how it is now, with what happened."""
        query = urllib.parse.urlencode({**self._query, "tell": "now"} if last else self._query)
        connection = self._last_connection if last else self._connection
        answer = connection.ask("GET", f"{_sessions}/{self._session}/wait?{query}", timeout_s=_LAST_LOOK_S if last else _ANSWER_S)
        if not isinstance(answer, dict) or answer.get("sessionId") != self._session:
            raise MonitorError(502, "the answer is not from a watchdog-monitor")
        return answer

    def _look(self, last: bool) -> bool:
        """True if the session is as it is waited for; raises once it will not be."""
        __tracebackhide__ = True
        answer = self._ask(last)
        self._query["cursor"] = answer["cursor"]
        self._query.pop("timeoutMs", None)  # The first answer is at once.
        progress = answer["progress"]
        if progress:
            self._progress = progress
            if self._seen:
                _call(self._seen, progress)
        if answer["came"] or (self._condition and progress and _call(self._condition, progress)):
            return True
        if answer["end"] == "stuck" and callable(self._on_stuck):
            if not _call(self._on_stuck, progress):
                raise self._failure("user_cancelled_stuck", answer["why"] + "; the person who was asked chose not to continue", answer)
        elif answer["end"]:
            raise self._failure(answer["end"], answer["why"], answer)
        if last:
            raise self._process_failure(answer)
        return False

    def stop(self) -> None:
        """Ends the wait from another thread."""
        self._stopped = True
        self._gone.set()
        self._connection.interrupt()
        self._last_connection.interrupt()

    def _watch_process(self) -> None:
        self._process.wait()  # type: ignore[union-attr]
        self._gone.set()
        self._connection.interrupt()
        while not self._over.wait(0.1):  # It may just have been opened.
            self._connection.interrupt()

    def _process_failure(self, answer: Optional[Json] = None) -> WaitFailed:
        code = self._process.returncode  # type: ignore[union-attr]
        how = f"was ended by signal {-code}" if code < 0 else f"exited with {code}"
        if self._progress is None:
            return self._failure("no_session", f"its process {how} without having reported anything", answer)
        return self._failure("dead", f"its process {how}, and the session has not ended", answer)

    def _refused(self, error: MonitorError) -> WaitFailed:
        hint = ". It is older than this client, which needs watchdog-monitor 0.2.0 or newer" if error.status == 404 else ""
        return self._failure("refused", f"the monitor at {self._server} refuses the wait: {error}{hint}")

    def _failure(self, end: str, why: str, answer: Optional[Json] = None) -> WaitFailed:
        """The error of a failed wait, with what happened: the first and the last of it."""
        last = (answer or {}).get("last") or (f"{self._progress['lifecycle']}, {self._progress['health']}" if self._progress else
                                              "there was no such session")
        lines = [f"session {self._session}: {why}", f"  expected  {self._expected}", f"  last      {last}", f"  ended as  {end}"]
        timeline = (answer or {}).get("timeline")
        if timeline:
            first, entries = timeline["first"], [*timeline["first"], *timeline["last"]]
            lines.append(f"  timeline  {len(entries) + timeline['omitted']} entries, {timeline['heartbeats']} heartbeats besides")
            told = [f"{(entry['at'] - entries[0]['at']) / 1000:10.3f} s  {entry['text']}" for entry in entries]
            if timeline["omitted"]:
                told.insert(len(first), f"         …  {timeline['omitted']} omitted")
            lines += told
        return WaitFailed(end, why, "\n".join(lines), self._progress)

    def say_interrupted(self, signal_name: str) -> None:
        """Says what was waited for, and how that is now."""
        answer = None
        with contextlib.suppress(MonitorError, OSError, http.client.HTTPException):
            answer = self._ask(last=True)
        _say_interrupted(str(self._failure("interrupted", f"this process was asked to end ({signal_name})", answer)))

    def _on_sigterm(self) -> Callable[[], None]:
        """An outer limit ends this process: then say first what was waited for."""
        if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
            return lambda: None

        def on_signal(number: int, frame: Any) -> None:
            self.say_interrupted("SIGTERM")
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        signal.signal(signal.SIGTERM, on_signal)
        return lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL)  # type: ignore[return-value]
