"""What is checked at each stage. A check returns what is right, or raises Wrong."""

import http.client
import re
import signal
import subprocess
import time

from scripts import VARIED
from stage import DEAD_WITHIN_S, PATIENCE_S, RESTING, TROUBLE, Gone, Wrong, texts


def looping(stage):
    stage.until(stage.model.reached.is_set, "the sixth call")
    try:
        stage.becomes({"looping"})
    finally:
        stage.model.released.set()
    stage.exits()
    stage.also["loop kept"] = lambda: stage.becomes(RESTING | {"incomplete"},
                                                      wasted_calls=lambda document: re.search(r"loop|repeat|wasted", texts(document), re.I))
    return "looping by call 6"


def finished(stage):
    stage.exits()
    stage.never(TROUBLE)
    stage.rested_only_at_the_end()
    return stage.becomes(RESTING)


def counted(stage):
    """Each call, result and prompt is there once, in each way of reporting."""
    stage.exits()

    def count():
        document = stage.document()
        if not document:
            return {}
        events = stage.events(document["sessionId"])
        return {kind: sum(event["kind"] == kind for event in events) for kind in ("tool_call", "tool_result", "user_input")}

    def heard():
        """Requests with telemetry, by the first digit of their status."""
        connection = http.client.HTTPConnection(stage.server.host, timeout=PATIENCE_S)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        found = re.findall(r'^watchdog_http_requests_total\{group="telemetry",code="(\d)xx"\} (\d+)', text, re.M)
        return {status: int(number) for status, number in found if int(number) > 0}

    loses = stage.name in LOSES_LAST and stage.way == "telemetry"
    end = time.monotonic() + (LOST_AFTER_S if loses else PATIENCE_S)
    while "2" not in heard() or count().get("tool_result") != 2:
        if time.monotonic() > end:
            if loses and (found := count()).get("tool_result") == found.get("tool_call") == 1:
                return f"1 of 2 calls: {stage.name} did not send the other"
            sessions = [(one["sessionId"], one.get("parentSessionId")) for one in stage.sessions()]
            raise Wrong(f"{heard()} requests with telemetry, {count()}, sessions {sessions}")
        time.sleep(0.2)
    found = count()
    if found["tool_call"] != 2 or found["user_input"] > 1:
        raise Wrong(f"counted {found}")
    stage.never(TROUBLE)
    return f"{found['tool_call']} calls, {found['user_input']} prompts"


def refusing(cause):
    def check(stage):
        if cause != "refused":
            stage.until(lambda: stage.model.asked, "its question")
        try:
            stage.process.wait(8 if stage.model.asked else 12)
            states = {"needs_input", "failed"} | ({"incomplete"} if stage.way == "hooks" else set())
        except subprocess.TimeoutExpired:
            states = {"needs_input", "waiting"}  # It tries again by itself, for ever.
        tells = {}
        if stage.way != "hooks":  # They do not tell what the server said, but for some agents.
            tells["its_cause"] = lambda document: re.search(CAUSES[cause], texts(document), re.I)
        if cause == "quota" and stage.way != "hooks":
            states |= {"waiting"}
            tells["its_end"] = lambda document: document["outcome"] or 3500e3 < (document["waitUntil"] or 0) - time.time() * 1000 < 3700e3
        return stage.becomes(states, **tells)
    return check


# Patterns of the words that show a person the cause of a failure.
CAUSES = {"401": r"401|login|log in|authenticat|api key", "429": r"429|quota|rate.?limit|too many", "quota": r"429|quota",
          "refused": r"refused|unreachable|connect"}

# On a busy machine they end before their exporter has sent its last spans.
LOSES_LAST = {"opencode"}
LOST_AFTER_S = 20


def killed(stage):
    stage.until((stage.agent.project / "started").exists, "the call")
    time.sleep(0.3)
    stage.kill()
    return stage.becomes({"dead"}, DEAD_WITHIN_S)


def interrupted(stage):
    stage.until((stage.agent.project / "started").exists, "the call")
    time.sleep(1)
    stage.agent.escape(stage.process, stage.terminal)
    return stage.becomes({"your_turn", "idle"}, calls_closed=lambda document: not document["tools"])


def cancelled(stage):
    stage.until(stage.model.reached.is_set, "the third call")
    document = stage.document()
    if not document:
        raise Wrong("no session")
    stage.ask("POST", f"/api/autonomous/sessions/{document['sessionId']}/cancel", {"by": "test", "reason": "enough"})
    before = len(list(stage.agent.project.glob("call-*")))
    stage.model.released.set()
    stage.exits()
    after = len(list(stage.agent.project.glob("call-*")))
    if after - before > 1:
        raise Wrong(f"it made {after - before} further calls")
    return stage.becomes({"cancelled"})


def varied(stage):
    stage.exits()
    if len(stage.model.asked) < len(VARIED):
        raise Gone(f"it made {len(stage.model.asked)} calls only: {stage.tail()}")
    stage.never(TROUBLE | {"waiting"})
    stage.rested_only_at_the_end()
    return stage.becomes(RESTING)


def refused_once(stage):
    """The next request would be answered. Some programs do not send it."""
    stage.exits()
    if sum(done == 1 for done, _ in stage.model.asked) > 1:
        stage.never(TROUBLE)
        return stage.becomes(RESTING)
    return stage.becomes({"failed", "needs_input", "incomplete"}, its_cause=lambda document: re.search(CAUSES["429"], texts(document), re.I))


def asked_a_question(stage):
    """It ends with a question. By all ways but the transcripts of a program that a person must look at, it rests, and shows the question."""
    stage.exits()
    stage.never(TROUBLE - {"needs_input"})
    return stage.becomes(RESTING | {"needs_input"}, question=lambda document: "Which of the two" in texts(document))


def of_two(stage):
    """A parent and its subagent: two sessions, and each call once."""
    stage.exits()
    stage.never(TROUBLE)
    found = stage.becomes(RESTING)
    if not stage.model.asked_children:
        raise Gone("its subagent asked nothing")
    children = [one for one in stage.sessions() if one.get("parentSessionId")]
    if len(children) != 1 or children[0]["parentSessionId"] != found["sessionId"]:
        raise Wrong(f"{len(children)} children: {[(one['sessionId'], one['parentSessionId'], one['title']) for one in children]}")
    calls = lambda session: sum(event["kind"] == "tool_call" for event in stage.events(session))
    counted = calls(found["sessionId"]), calls(children[0]["sessionId"])
    if counted != (2, 1):
        raise Wrong(f"{counted} calls of the parent and of the child, not (2, 1)")
    child = stage.ask("GET", f"/api/autonomous/progress/{children[0]['sessionId']}")
    if child["state"] not in RESTING:
        raise Wrong(f"its subagent is {child['state']}: {child['reason']}")
    return found | {"state": f"{found['state']}, child {child['title'][:30]}"}


def in_background(stage):
    """A command that runs on. What a program does with it at the end of its answer is its own affair."""
    stage.exits()
    stage.never(TROUBLE)
    return stage.becomes(RESTING)


def approval(stage):
    """In a terminal: it asks before it runs a command, and gets its permission."""
    stage.until(lambda: any(done == 0 for done, _ in stage.model.asked), "its first question to the model")
    stage.becomes({"needs_input"}, 20)
    stage.also["approved"] = lambda: approved(stage)
    return "needs_input"


def approved(stage):
    """While the tool runs, nobody is needed. The monitor looks at processes every two seconds, and takes one of that age for the command."""
    began = stage.agent.project / "begun"
    end = time.monotonic() + 20
    while not began.exists():
        if time.monotonic() > end:
            raise Gone(f"the command did not begin: {stage.tail()}")
        stage.type(stage.agent.APPROVE)
        time.sleep(1)
    working = stage.becomes({"progressing", "starting", "slow"}, 8)
    if (stage.agent.project / "over").exists():
        raise Wrong("the command ended before it was seen to run")
    return working


def interrupted_by_signal(stage):
    """Ctrl-C in a program without a terminal of its own: a person did that, and needs no alert."""
    stage.until((stage.agent.project / "started").exists, "the call")
    time.sleep(1)
    stage.signal_group(signal.SIGINT)
    stage.exits()
    found = stage.becomes(RESTING | {"cancelled", "incomplete"}, DEAD_WITHIN_S, nobody_needed=lambda document: document["attention"] != "needs_you")
    if "needs_you" in stage.claimed:
        raise Wrong("needs_you meanwhile")
    return found


def gave_up(stage):
    """The client goes while it waits for the model: nothing is complete."""
    stage.until(stage.model.reached.is_set, "its question to the model")
    time.sleep(2)
    stage.signal_group(signal.SIGTERM)
    stage.exits()
    time.sleep(3)
    return stage.becomes({"dead", "failed", "incomplete", "cancelled", "idle", "your_turn", "needs_input", "waiting"}, DEAD_WITHIN_S,
                         no_complete_answer=lambda document: not re.search(r"answer is complete|task complete", texts(document), re.I))


def resumed(stage):
    """The same session goes on in another process."""
    stage.exits()
    first = stage.becomes(RESTING)
    asked = len(stage.model.asked)
    stage.agent.resumed = True
    stage.start(False, "And now the rest, please.")
    stage.exits()
    if len(stage.model.asked) == asked:
        raise Gone(f"it asked nothing: {stage.tail()}")
    second = stage.becomes(RESTING)
    if second["sessionId"] != first["sessionId"]:
        raise Wrong(f"{first['sessionId']} became {second['sessionId']}")
    # One that came before its session began again is stored as late and has no effect; it is stored once more after that.
    prompts = sum(event["kind"] == "user_input" and not event.get("late") for event in stage.events(second["sessionId"]))
    if prompts != 2 and stage.way != "proxy":
        raise Wrong(f"{prompts} prompts of a person, not 2")
    return second


def compacted(stage):
    """The conversation becomes too long, and its program shortens it. The session goes on, and the compaction counts once."""
    stage.exits()
    stage.never(TROUBLE)
    found = stage.becomes(RESTING)
    kinds = [event["kind"] for event in stage.events(found["sessionId"])]
    if not stage.model.summaries:
        raise Gone(f"it did not shorten its conversation: {stage.model.asked}: {stage.tail()}")
    if kinds.count("compaction") != 1 or kinds.count("tool_call") != stage.model.called:
        raise Wrong(f"{kinds.count('compaction')} compactions, {kinds.count('tool_call')} of {stage.model.called} calls")
    return found


def survived(stage):
    """The model is silent for longer than the limit of the client: through the proxy the client waits, without it it gives up."""
    code = stage.exits(stage.row.hold_s + PATIENCE_S)
    tries = sum(done == 0 for done, _ in stage.model.asked)
    if stage.way == "hooks":
        return f"without the proxy: {tries} tries, exit code {code}"
    if tries != 1 or code != 0:
        raise Wrong(f"it gave up: {tries} tries, exit code {code}: {stage.tail()}")
    stage.never(TROUBLE)
    return stage.becomes(RESTING)
