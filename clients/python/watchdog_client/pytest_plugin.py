"""A pytest fixture: a test's agent reports to a session of its own, and the test waits for it without sleeping.

    def test_the_agent_finishes(watchdog):
        watchdog.start([sys.executable, "agent.py"])     # its environment names the session; ended with the test
        progress = watchdog.wait()                       # until it completes, however long it takes
        assert progress["progress"]["stateChanges"] > 3

    def test_it_asks_before_it_deploys(watchdog):
        with watchdog.reporter(agent="deployer") as reporter:    # an agent within the test's process
            threading.Thread(target=deploy, args=[reporter]).start()
            watchdog.wait("health=blocked")

pytest finds the plug-in where the package is installed. Beside a copy of the package and of pytest_watchdog.py, write
`pytest_plugins = ["pytest_watchdog"]` into conftest.py.

A wait that fails, fails the test. It says what was expected, how the session was last, why, and what happened. It says so as
well if SIGTERM or Ctrl-C ends pytest. The fixture starts a monitor of its own for the test session, unless --watchdog-server or
$WATCHDOG_SERVER names one. The program is --watchdog-program, else $WATCHDOG_PROGRAM, else the one in PATH. Without a
program it uses a monitor at http://127.0.0.1:3000. Without that as well, the first test fails and the others are skipped.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

import pytest
import watchdog_client
from watchdog_client import Awaited, Json, Monitor, MonitorError, Reporter

_NOTICE_S = 5.0  # until a wait says that nobody reports
_END_S = 5.0  # that a group of processes may take after SIGTERM


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class WatchdogFixture:
    """A session for one test. While the test runs, its environment names the session and the monitor."""

    def __init__(self, name: str, server: Optional[str] = None, token: Optional[str] = None, say: Callable[[str], None] = _print):
        self.session: str = re.sub(r"[^A-Za-z0-9._:@-]+", "-", name)[-100:] + "-" + os.urandom(4).hex()  #: Id of the session.
        self.monitor: Monitor = Monitor(server, token)  #: The monitor.
        self._say = say
        self._processes: List[subprocess.Popen[Any]] = []
        self._groups: List[int] = []
        self._reporters: List[Reporter] = []

    @property
    def environment(self) -> Dict[str, str]:
        """The environment of a process that reports to this session."""
        return {**os.environ, "WATCHDOG_SESSION": self.session, "WATCHDOG_SERVER": self.monitor.server}

    def start(self, command: Sequence[str], **how: Any) -> subprocess.Popen[Any]:
        """Starts the agent. A wait fails if the agent exits without ending its session. The end of the test ends its process group."""
        how.setdefault("start_new_session", hasattr(os, "killpg"))
        process = subprocess.Popen(command, env={**self.environment, **how.pop("env", {})}, **how)
        self._processes.append(process)
        if how["start_new_session"]:
            self._groups.append(process.pid)
        return process

    def reporter(self, **how: Any) -> Reporter:
        """Returns a reporter of this session, for an agent in the test's process."""
        settings: Dict[str, Any] = {"server": self.monitor.server, "token": self.monitor.token, **how}
        self._reporters.append(Reporter(self.session, **settings))
        return self._reporters[-1]

    def wait(self, for_: Awaited = "completed", **how: Any) -> Json:
        """Like `watchdog_client.wait`."""
        __tracebackhide__ = True
        how.setdefault("process", self._processes[-1] if self._processes else None)
        with self._notice(for_):
            return self.monitor.wait(self.session, for_, **how)

    async def wait_async(self, for_: Awaited = "completed", **how: Any) -> Json:
        """Like `watchdog_client.wait_async`."""
        __tracebackhide__ = True
        how.setdefault("process", self._processes[-1] if self._processes else None)
        with self._notice(for_):
            return await self.monitor.wait_async(self.session, for_, **how)

    def progress(self) -> Json:
        """Returns the session's progress document."""
        return self.monitor.progress(self.session)

    def events(self, kind: str = "") -> List[Json]:
        """Returns the session's events, the oldest first."""
        return list(self.monitor.events(self.session, kind))

    def close(self) -> None:
        """Ends what the test started."""
        self.end_processes()
        for reporter in self._reporters:
            reporter.close(2)

    def end_processes(self, patience_s: Optional[float] = None) -> None:
        """Ends the groups of the started processes: by SIGTERM, and by SIGKILL what is left."""
        for process in self._processes:
            _signal(process, self._groups, "SIGTERM")
        until = time.monotonic() + (_END_S if patience_s is None else patience_s)
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
            while _signal(process, self._groups, "") and time.monotonic() < until:  # those that it started
                time.sleep(0.01)
            if _signal(process, self._groups, ""):  # else its number may be another's by now
                _signal(process, self._groups, "SIGKILL")
            process.wait()

    @contextlib.contextmanager
    def _notice(self, for_: Awaited) -> Iterator[None]:
        """Says after some seconds that nobody has reported."""
        def look() -> None:
            try:
                self.progress()
            except MonitorError as error:
                if error.status == 404:
                    what = for_ if isinstance(for_, str) else getattr(for_, "__name__", "a condition")
                    self._say(f"still waiting for {what} of {self.session}: nobody reports; agents must see WATCHDOG_SESSION and WATCHDOG_SERVER")
            except Exception:
                pass

        timer = threading.Timer(_NOTICE_S, look)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _signal(process: subprocess.Popen[Any], groups: Sequence[int], name: str) -> bool:
    """Sends a signal to the group of a process, or to it alone. An empty name asks whether any process is left."""
    try:
        if process.pid in groups:
            os.killpg(process.pid, getattr(signal, name, 0))
            return any(_is_running(pid, process.pid) for pid in _pids()) if not name else True
        if name:
            process.terminate() if name == "SIGTERM" else process.kill()
    except OSError:
        return False
    return process.poll() is None


def _pids() -> List[str]:
    with contextlib.suppress(OSError):
        return [name for name in os.listdir("/proc") if name.isdigit()]
    return []


def _is_running(pid: str, group: int) -> bool:
    with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{pid}/stat", "rb") as stat:
        state, _, its_group = stat.read().rpartition(b")")[2].split()[:3]
        return int(its_group) == group and state not in (b"Z", b"X")
    return False


class _OwnMonitor:
    """A monitor for this test session, with a database that goes with it."""

    def __init__(self, program: str):
        self._folder = tempfile.TemporaryDirectory(prefix="watchdog-pytest-")
        place = pathlib.Path(self._folder.name)
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("WATCHDOG_", "OPENAI_"))}
        command = [program, "serve", "--config", "", "--no-checks", "--port", "0", "--db", str(place / "w.db")]
        # The shell ends it with this process, however that ends: nobody writes into its input. Its database is not needed any more.
        guard = 'trap "" INT TERM; "$@" & monitor=$!; read -r _; kill -KILL "$monitor"; wait "$monitor"'
        with open(place / "log", "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(["sh", "-c", guard, "sh", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                             env=environment, start_new_session=True, encoding="utf-8")
        assert self._process.stdout
        said = self._process.stdout.readline()
        found = re.match(r"listening on (http\S+)", said)
        if not found:
            log_text = (place / "log").read_text(encoding="utf-8", errors="replace")
            self.close()
            raise RuntimeError(f"{program} does not serve: {said}{log_text}")
        self.server = found[1]
        self.token = (place / "w.db-token").read_text(encoding="utf-8").split()[-1]

    def close(self) -> None:
        if self._process.stdin and self._process.stdout:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
        self._folder.cleanup()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("watchdog")
    group.addoption("--watchdog-server", metavar="URL", help="monitor of the fixture watchdog (default: $WATCHDOG_SERVER, else one for this run)")
    group.addoption("--watchdog-program", metavar="FILE", help="program that the fixture starts (default: $WATCHDOG_PROGRAM, else watchdog-monitor)")
    group.addoption("--watchdog-missing", choices=["fail", "skip"], default="fail",
                    help="without a monitor: fail the first test that needs it and skip the others, or skip all (default: fail)")


def _option(config: pytest.Config, name: str) -> Optional[str]:
    """The value of an option. Without one, or if another plug-in keeps pytest from adding it, None."""
    found: Optional[str] = getattr(config.option, name, None)
    return found


_missing: List[str] = []  # why no monitor was found, once a test has failed for it


@pytest.fixture(scope="session")
def watchdog_monitor(pytestconfig: pytest.Config) -> Iterator[Optional[Monitor]]:
    """The monitor of the tests: the one that was named, else one that this test session starts, else a running one. None: no monitor was found."""
    server = _option(pytestconfig, "watchdog_server") or os.environ.get("WATCHDOG_SERVER")
    if server:
        yield Monitor(server)
        return
    wanted = _option(pytestconfig, "watchdog_program") or os.environ.get("WATCHDOG_PROGRAM") or "watchdog-monitor"
    # A virtual environment that is not activated is not in PATH.
    program = shutil.which(wanted) or shutil.which(wanted, path=sysconfig.get_path("scripts"))
    if program is None:
        usual = Monitor()
        try:
            usual.ask("GET", "/api/autonomous/sessions?limit=1")
            yield usual
        except (MonitorError, OSError):
            yield None
        return
    own = _OwnMonitor(program)
    try:
        yield Monitor(own.server, own.token)
    finally:
        own.close()


@pytest.fixture
def watchdog(request: pytest.FixtureRequest, watchdog_monitor: Optional[Monitor], monkeypatch: pytest.MonkeyPatch) -> Iterator[WatchdogFixture]:
    """A session for this test, with a monitor."""
    if watchdog_monitor is None:
        why = "the program watchdog-monitor is missing. Install it, or name it by --watchdog-program, or a monitor by --watchdog-server"
        if _missing or _option(request.config, "watchdog_missing") == "skip":
            pytest.skip(why)
        _missing.append(why)
        pytest.fail(why, pytrace=False)
    say = _through_capture(request.config)
    fixture = WatchdogFixture(request.node.name, watchdog_monitor.server, watchdog_monitor.token, say)
    monkeypatch.setenv("WATCHDOG_SESSION", fixture.session)
    monkeypatch.setenv("WATCHDOG_SERVER", watchdog_monitor.server)
    monkeypatch.setattr(watchdog_client, "_say_interrupted", say)
    with _ended_with_sigterm(fixture):
        yield fixture
        fixture.close()


def _through_capture(config: pytest.Config) -> Callable[[str], None]:
    """Prints on the standard error of pytest, which its capture hides from the program that it runs."""
    def say(text: str) -> None:
        capture = config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            with contextlib.suppress(OSError):
                os.write(2, f"\n{text}\n".encode("utf-8", "replace"))
    return say


@contextlib.contextmanager
def _ended_with_sigterm(fixture: WatchdogFixture) -> Iterator[None]:
    """An outer limit that ends pytest also ends what the test started, and hears what it waited for."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    owner = os.getpid()

    def on_signal(number: int, frame: Any) -> None:
        if os.getpid() == owner:  # else a child that was forked
            for waiting in watchdog_client._waits:
                waiting.say_interrupted("SIGTERM")
            fixture.end_processes(1.0)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
