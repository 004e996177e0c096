#!/usr/bin/env python3
"""The step of action.yml: runs $ACTION_COMMAND as a session until it ends or is stuck.

The script starts a monitor of its own, runs the command under `watchdog-monitor run`, and waits for the session beside it.
When the session is stuck, or the job is cancelled, the script ends the command and all processes that the command started,
and no others. The proof goes to $GITHUB_STEP_SUMMARY.

The script exits with the code of the command. It exits with 1 if the command is stuck, or reported that it did not complete.
The code is 2 if an input is wrong, and 3 if the program is missing. It is 130 or 143 if a signal cancelled the job.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, NoReturn, Optional

Json = Dict[str, Any]
CALLS_SHOWN = 12
TEXT_SHOWN = 160
END_S = 5.0  # The runner kills a cancelled step after 10 s.


def refuse(text: str, code: int) -> NoReturn:
    print(f"::error title=watchdog::{text}")
    sys.exit(code)


def value(name: str, choices: Optional[List[str]] = None) -> str:
    text = os.environ.get(f"ACTION_{name}", "")
    if choices and text not in choices:
        refuse(f"The input {name.lower().replace('_', '-')} is “{text}”; it must be {' or '.join(choices)}.", 2)
    return text


def append(variable: str, text: str) -> None:
    if name := os.environ.get(variable):
        with open(name, "a", encoding="utf-8") as file:
            file.write(text)


def shown(text: Any, most: int = TEXT_SHOWN) -> str:
    """A text of an agent as code within a table's cell: it cannot be markup."""
    words = " ".join((text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)).split())
    cut = words if len(words) <= most else words[:most] + "…"
    return f"<code>{html.escape(cut).replace('|', '&#124;').replace('`', '&#96;')}</code>" if cut else ""


def environment(*hidden: str) -> Dict[str, str]:
    return {key: text for key, text in os.environ.items() if not key.startswith(hidden)}


class Monitor:
    """A monitor for this step, with a database that stays for an artifact."""

    def __init__(self, program: str):
        self.program = program
        self.database = pathlib.Path(tempfile.mkdtemp(prefix="watchdog-", dir=os.environ.get("RUNNER_TEMP") or None)) / "watchdog.db"
        with open(self.database.parent / "log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([program, "serve", "--config", "", "--no-checks", "--port", "0", "--db", str(self.database)],
                                            env=environment("OPENAI_", "WATCHDOG_"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
        assert self.process.stdout
        found = re.match(r"listening on (http\S+)", self.process.stdout.readline())
        if not found:
            self.process.kill()
            refuse(f"{program} does not serve: {(self.database.parent / 'log').read_text(errors='replace').strip()}", 3)
        self.server = found[1]

    def words(self, command: str, *words: str) -> List[str]:
        return [self.program, command, "--config", "", "--server", self.server, *words]

    def ask(self, command: str, *words: str) -> str:
        """Returns what a command of the program prints. Its failure changes nothing: the result of the step does not depend on it."""
        token = ["--token-file", f"{self.database}-token"]
        done = subprocess.run(self.words(command, *token, *words), env=environment("WATCHDOG_"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return done.stdout

    def close(self) -> None:
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        self.process.kill()


def parsed(text: str) -> Json:
    try:
        return dict(json.loads(text))
    except ValueError:
        return {}


def calls_of(monitor: Monitor, session: str) -> List[List[str]]:
    """The last calls of tools, the oldest first: name, arguments, result."""
    calls: Dict[str, List[str]] = {}
    for line in monitor.ask("events", session, "--all", "--json").splitlines():
        event = parsed(line)
        key = str(event.get("call_id") or event.get("seq"))
        if event.get("kind") == "tool_call":
            calls[key] = [shown(event.get("name", "")), shown(event.get("args", "")), ""]
        elif event.get("kind") == "tool_result":
            calls.setdefault(key, [shown(event.get("name", "")), "", ""])[2] = shown(event.get("text") or event.get("error") or "")
    return list(calls.values())[-CALLS_SHOWN:]


def summary_of(monitor: Monitor, session: str, title: str, facts: Dict[str, str]) -> str:
    explained = parsed(monitor.ask("explain", session, "--json"))
    lines = [f"### Agent: {title}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {text} |" for name, text in facts.items() if text]
    changes = explained.get("timeline") or [{}]
    for piece in changes[-1].get("evidence", []):
        event = piece.get("event") or {}
        what = " ".join(str(event.get(key, "")) for key in ("kind", "name", "text")).strip()
        lines.append(f"| evidence, event {piece.get('seq')} | {html.escape(str(piece.get('note', '')))}: {shown(what)} |")
    lines.append("")
    if calls := calls_of(monitor, session):
        lines += [f"The last {len(calls)} calls:", "", "| call | arguments | result |", "|---|---|---|"]
        lines += [f"| {' | '.join(call)} |" for call in calls] + [""]
    if len(changes) > 1:
        lines += ["<details><summary>How its health changed</summary>", "", "| health | reason |", "|---|---|"]
        lines += [f"| {change.get('from')} → {change.get('health')} | {shown(change.get('reason', ''))} |" for change in changes] + ["", "</details>", ""]
    return "\n".join(lines) + "\n"


class Step:
    """The processes that the script started, and the signal that cancelled the job."""

    run: Optional[subprocess.Popen[Any]] = None
    waiting: Optional[subprocess.Popen[str]] = None
    cancelled = 0
    is_stuck = False

    def on_signal(self, number: int, _: Any) -> None:
        self.cancelled = self.cancelled or number
        if self.waiting and self.waiting.poll() is None:
            self.waiting.kill()

    def wait(self) -> Json:
        """Waits until the command ends, is stuck, or is cancelled. Returns what the waiting process printed."""
        assert self.run and self.waiting
        if self.cancelled:  # before there was a process that the handler could end
            self.waiting.kill()
        seen = parsed(self.waiting.communicate()[0])
        self.is_stuck = self.waiting.returncode == 13 and not self.cancelled
        # Without a monitor nothing is known about the command, and it goes on.
        while not self.is_stuck and not self.cancelled and self.run.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.run.wait(0.2)
        return seen


def main() -> int:
    program = shutil.which(value("PROGRAM") or "watchdog-monitor")
    if program is None:
        refuse(f"The program {value('PROGRAM')} is missing. Install watchdog-monitor in an earlier step, or name its path in the input program.", 3)
    if not value("COMMAND").strip():
        refuse("The input command is empty.", 2)
    policy = ["--on-stuck", "fail", "--on-suspect", value("ON_SUSPECT", ["keep", "fail"]), "--on-quiet", value("ON_QUIET", ["keep", "fail"])]
    session = value("SESSION") or f"step-{os.environ.get('GITHUB_RUN_ID', os.getpid())}-{os.urandom(4).hex()}"
    words = ["--session", session, *(["--task", value("TASK")] if value("TASK") else []), *(["--json-events"] if value("JSON_EVENTS", ["true", "false"]) == "true" else [])]
    for expression in filter(None, map(str.strip, value("STATE_CHANGE_ON").splitlines())):
        words += ["--state-change-on", expression]

    step = Step()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, step.on_signal)
    monitor = Monitor(program)
    try:
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", value("COMMAND")]
        step.run = subprocess.Popen(monitor.words("run", *words, "--", *command), env=environment("ACTION_", "WATCHDOG_"), stdin=subprocess.DEVNULL, start_new_session=True)
        step.waiting = subprocess.Popen(monitor.words("wait", session, "--for", "end", "--json", *policy), env=environment("WATCHDOG_"), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        seen = step.wait()
        return finish(monitor, session, step, seen)
    finally:
        monitor.close()


def finish(monitor: Monitor, session: str, step: Step, seen: Json) -> int:
    """Ends what still runs, writes the proof, and returns the exit code."""
    run = step.run
    assert run
    progress = seen.get("progress") if step.is_stuck else None
    progress = progress or parsed(monitor.ask("status", session, "--json"))
    health, reason = str(progress.get("health") or "unknown"), " ".join(str(progress.get("reason") or "").split())
    if run.poll() is None:
        monitor.ask("cancel", session, "--kill", "--grace", "1", "--reason", f"stuck: {reason}" if step.is_stuck else "the job was cancelled")
        try:
            run.wait(END_S)
        except subprocess.TimeoutExpired:
            run.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(END_S)
    code = run.returncode
    if step.is_stuck:
        title, outcome = health, str(seen.get("end") or "stuck")
    elif step.cancelled:
        title, outcome = f"cancelled while it was {health}", "cancelled"
    else:
        title = outcome = (progress.get("outcome") or {}).get("kind") or ("completed" if code == 0 else "failed")
    is_over = not step.is_stuck and not step.cancelled
    facts = {"reason": html.escape(reason), "why the step ended": html.escape(str(seen.get("why") or "")) if step.is_stuck else "", "session": shown(session),
             "task": shown(value("TASK")), "state changes": str((progress.get("progress") or {}).get("stateChanges", "")),
             "exit code of the command": str(code) if is_over else ""}
    append("GITHUB_STEP_SUMMARY", summary_of(monitor, session, title, facts))
    append("GITHUB_OUTPUT", "".join(f"{name}={text}\n" for name, text in (("session", session), ("outcome", outcome), ("reason", reason), ("database", monitor.database))))
    if step.is_stuck:
        print(f"::error title=The agent is {title}::{reason.replace('%', '%25')}", flush=True)
        return 1
    if step.cancelled:
        return 128 + step.cancelled
    return 1 if code is None or code < 0 or (code == 0 and outcome != "completed") else code


if __name__ == "__main__":
    sys.exit(main())
