"""A real agent repeats one failing call, and three rules act on it: it is nudged once, refused twice, then cancelled.

What the agent made of each act is read from its next requests to the model, and not from what the monitor says that it did.
"""

import pathlib
import re
import subprocess
import tarfile

from stage import PATIENCE_S, Wrong, texts

RULES = """
[recovery.rules.tell]
on = ["looping"]
step = "nudge"
at_most = 1
[recovery.rules.deny]
on = ["looping"]
step = "refuse"
at_most = 2
[recovery.rules.stop]
on = ["looping"]
step = "cancel"
"""
COMMAND = "echo again | tee -a runs; ls /no/such/directory"  # Each run leaves a line.
SCRIPT = [("shell", COMMAND)] * 14 + ["It is not there."]

SENTENCE = rf"watchdog-monitor \(a local monitor that the user installed\): the last (\d+) calls of \w+ `{re.escape(COMMAND)}` gave the same result"
NUDGED = re.compile(rf"{SENTENCE}\.")
REFUSED = re.compile(rf"{SENTENCE}, so this one was not run\.")
CANCELLED = re.compile(r"cancelled by rule stop: the last \d+ calls")

ALL_STEPS = (("tell", "nudge"), ("deny", "refuse"), ("deny", "refuse"), ("stop", "cancel"))
# The first of these steps that an agent takes, where that is not the first.
BEGINS_WITH = {"copilot": 1, "opencode": 3}
# No answer before a call ends their turn. Each further call is denied until their model ends it. A proxy refuses its next request.
DENIES_ON = {"codex", "copilot"}


def acted(stage):
    """Each step is taken once as often as its rule allows, in order, at consecutive calls."""
    stage.exits()
    steps = ALL_STEPS[BEGINS_WITH.get(stage.name, 0):]
    session = stage.becomes({"cancelled"})["sessionId"]
    recorded(stage, session, steps)
    calls = calls_at_acts(stage, session)
    if calls != list(range(calls[0], calls[0] + len(steps))):
        raise Wrong(f"it acted at the calls {calls}")
    requests = {done: texts(body) for (done, _), body in zip(stage.model.asked, stage.model.requests)}
    for act, (_, step) in enumerate(steps):
        SHOWN[step](stage, requests, calls[act])
    # A nudge comes after a call that ran, or with one that runs.
    allowed = calls[0] - (steps[0][1] == "refuse")
    runs = len((stage.agent.project / "runs").read_text().splitlines())
    if runs != allowed:
        raise Wrong(f"its command ran {runs} times, not {allowed}")
    bundled(stage, session)
    return ", ".join(step for _, step in steps)


def recorded(stage, session, steps):
    """One row for each act. Whether the session recovered is written later, as a `trial`."""
    rows = [(row["actor"], row["action"], row["target"], row["outcome"].partition(" (")[0])
            for row in stage.ask("GET", "/api/audit")["audit"] if row["action"] != "trial"]
    if rows != [(f"rule:{rule}", step, session, "ok: looping") for rule, step in steps]:
        raise Wrong(f"the log has {rows}")


def calls_at_acts(stage, session):
    """The number of calls that began before each act."""
    calls, found = 0, []
    for event in stage.events(session):
        calls += event["kind"] == "tool_call"
        if re.match(r"rule \w+ did ", event.get("text") or ""):
            found.append(calls)
    return found


def shows_nudge(_, requests, calls):
    """It is in the next request, and in none before."""
    shown = [done for done, text in sorted(requests.items()) if NUDGED.search(text)]
    if not shown or shown[0] != calls:
        raise Wrong(f"nudged after call {calls}; the requests with {shown} results show it")
    if int(NUDGED.search(requests[calls])[1]) not in (calls, calls - 1):
        raise Wrong(f"of {calls} calls it says: {NUDGED.search(requests[calls])[0]}")


def shows_refusal(_, requests, calls):
    """The next request has the reason once more than the one before."""
    before, after = (len(REFUSED.findall(requests.get(done, ""))) for done in (calls - 1, calls))
    if after != before + 1:
        raise Wrong(f"refused call {calls}; the requests before and after it say so {before} and {after} times")


def shows_cancel(stage, requests, calls):
    """It asks its model nothing more, or it asks with a denial."""
    denies_on = stage.name in DENIES_ON and stage.way == "hooks"
    if not denies_on and max(requests) >= calls:
        raise Wrong(f"cancelled at call {calls}, and it asked {max(requests) - calls + 1} times more")
    if denies_on and not CANCELLED.search(requests.get(calls, "")):
        raise Wrong(f"cancelled at call {calls}; the next request does not say so")


SHOWN = {"nudge": shows_nudge, "refuse": shows_refusal, "cancel": shows_cancel}


def bundled(stage, session):
    """The evidence can be had afterwards, and names the cancel."""
    file = stage.agent.home / "evidence.tar"
    token = pathlib.Path(stage.server.folder.name, "w.db-token")
    done = subprocess.run([stage.options.monitor, "bundle", session, "-o", file, "--server", f"http://{stage.server.host}", "--token-file", token],
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        raise Wrong(f"no bundle: {done.stderr.strip()}")
    with tarfile.open(file) as archive:
        names = [name for name in archive.getnames() if name.endswith("README.md")]
        readme = archive.extractfile(names[0]).read().decode()
    if not re.search(r"^- cancelled by: rule stop: the last \d+ calls", readme, re.M):
        raise Wrong(f"the bundle does not name the cancel: {readme[:600]}")
