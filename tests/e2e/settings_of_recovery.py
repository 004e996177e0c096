"""What the settings of recovery do: each is a probe of `watchdog-monitor serve`."""

import json
import time

from settings_trial import SESSIONS, HangingModel, probe, until


@probe("recovery.on_ready", default="runs nothing", other="runs for s")
def recovery_on_ready(trial):
    ran = trial.folder / "ran"
    trial.set(["sh", "-c", f"echo $WATCHDOG_SESSION > {ran}.new; mv {ran}.new {ran}"])
    trial.base["recovery.on_ready_labels"] = ["team:mine"]
    return ran_after_wait(trial, trial.serve(), ran) if trial.is_set else "runs nothing"


def ran_after_wait(trial, monitor, ran):
    """What the command says of a session that waits too long, if the owner named its label."""
    monitor.ask("POST", SESSIONS, {"sessionId": "s", "labels": {"team": "mine"}})
    over = int(time.time() * 1000) - 25_000
    monitor.report("s", {"kind": "wait", "waiting_for": "quota", "provider": "anthropic", "until_ms": over})
    until(lambda: ran.exists() or "does not know" in monitor.said(), monitor.said)
    return f"runs for {ran.read_text().strip()}" if ran.exists() else "runs nothing"


@probe("recovery.on_ready_labels", default="runs nothing", other="runs for s")
def on_ready_labels(trial):
    ran = trial.folder / "ran"
    trial.set(["team:mine"], recovery__on_ready=["sh", "-c", f"echo $WATCHDOG_SESSION > {ran}.new; mv {ran}.new {ran}"])
    return ran_after_wait(trial, trial.serve(), ran)


def told(trial, monitor=None, **more):
    """What a looping agent behind hooks hears of the rule: `told`, `denied` or nothing."""
    # The file defines a rule only if it sets a key of it.
    trial.base.setdefault("recovery.rules.mine.at_most", 1)
    monitor, heard = monitor or trial.serve(), []
    for number in range(10):
        of = {"session_id": "s", "tool_name": "Bash", "tool_use_id": f"t{number}", "tool_input": {"command": "make"}} | more
        for event in ("PreToolUse", "PostToolUse"):
            _, answer = monitor.ask("POST", "/api/hooks/claude-code", of | {"hook_event_name": event, "tool_response": "2 failed"})
            own = answer.get("hookSpecificOutput", {})
            heard += ["told"] if "additionalContext" in own else ["denied"] if "permissionDecision" in own else []
            if own.get("permissionDecision") == "deny":
                break
    return " ".join(heard) or "nothing"


@probe("recovery.rules.*.on", default="told", other="nothing", name="mine")
def rule_on(trial):
    trial.set(["stuck"])
    return told(trial)


@probe("recovery.rules.*.step", default="told", other="denied", name="mine")
def rule_step(trial):
    trial.set("refuse")
    return told(trial)


@probe("recovery.rules.*.command", default="told", other="runs for s", name="mine")
def rule_command(trial):
    ran = trial.folder / "ran"
    if not trial.is_set:
        return told(trial)
    trial.base["recovery.rules.mine.step"] = "command"
    trial.set(["sh", "-c", f"cat > {ran}.new; mv {ran}.new {ran}"])
    heard = told(trial)
    until(ran.exists, f"its command ran, after the agent heard {heard}")
    return f"runs for {json.loads(ran.read_text())['sessionId']}"


@probe("recovery.rules.*.agent", default="told", other="nothing", name="mine")
def rule_agent(trial):
    trial.set("codex")
    return told(trial)


@probe("recovery.rules.*.label", default="told", other="nothing", name="mine")
def rule_label(trial):
    trial.set("cwd:/elsewhere")
    return told(trial, cwd="/src")


@probe("recovery.rules.*.at_most", default="denied", other="denied denied", name="mine")
def rule_at_most(trial):
    trial.base["recovery.rules.mine.step"] = "refuse"
    trial.set(2)
    return told(trial)


@probe("recovery.rules.*.dry_run", default="told", other="nothing", name="mine")
def rule_dry_run(trial):
    trial.set(True)
    return told(trial)


@probe("recovery.rules.*.hold_out", default=0, other="some", name="mine")
def rule_hold_out(trial):
    """Whether a verdict is held out depends on its session, so there are some."""
    trial.base.setdefault("recovery.rules.mine.at_most", 1)
    trial.set(0.5)
    monitor = trial.serve()
    held_out = sum(told(trial, monitor, session_id=f"s{number}") == "nothing" for number in range(8))
    return "some" if 0 < held_out < 8 else held_out


@probe("recovery.bundle_git", default="asks git", other="leaves it out")
def recovery_bundle_git(trial):
    trial.set(False)
    monitor = trial.serve()
    monitor.ask("POST", SESSIONS, {"sessionId": "s"})
    archive = monitor.ask("GET", f"{SESSIONS}/s/bundle")[1]
    return "leaves it out" if "it was left out on request" in archive else "asks git" if "folder is not known" in archive else archive


@probe("recovery.diagnose", default="keeps nothing", other="keeps what it printed")
def recovery_diagnose(trial):
    server = HangingModel(trial)
    trial.set(["echo", "look at {pid}"], proxy__upstream=server.url, proxy__probe=True)
    monitor = trial.serve()
    server.hang(monitor)
    kept = lambda: f"look at {server.pid}" in monitor.ask("GET", f"{SESSIONS}/one/bundle")[1]
    until(kept, monitor.said) if trial.is_set else time.sleep(3)
    return "keeps what it printed" if kept() else "keeps nothing"
