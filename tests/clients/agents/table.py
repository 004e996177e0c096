"""The stage table: each scenario, its check, and the cells of which a way cannot know what happens.

A cell is AGENT/WAY/STAGE. It is right if its check returns. `cannot_know` names those that nobody reports, and why.
"""

import dataclasses
import fnmatch
import typing

import checks
import recovery
from scripted_model import CHILD, Once, Refuse, Slow
from scripts import CALLS, FAILING, HELD, VARIED

DONE = "It is done."
ASKED = ("asked", "touch begun; sleep 20; touch over")


@dataclasses.dataclass
class Row:
    """A scenario. `hold`: the step before which the model waits, at most `hold_s` seconds. `terminal`: the agent has one. `asks`: it asks
    before it runs a command. `limit_s`: its time limit, where that can be set. `child`: what the model says to a subagent. `grows`: tokens of the prompt
    with each result. `rules`: a settings file for the monitor."""

    script: list
    check: typing.Callable
    hold: int | None = None
    hold_s: float = 20
    terminal: bool = False
    asks: bool = False
    limit_s: int = 300
    child: tuple = (("shell", "echo of the child"), "The child is done.")
    grows: int = 50
    settings: dict = dataclasses.field(default_factory=dict)
    rules: str = ""


STAGES = {
    "loop": Row([FAILING] * 12 + ["It is not there."], checks.looping, hold=6),
    "finished": Row([("shell", "echo one"), ("shell", "echo two"), DONE], checks.finished),
    "401": Row([Refuse(401, "the API key is not valid")], checks.refusing("401")),
    "429": Row([Refuse(429, "too many requests")], checks.refusing("429")),
    "quota": Row([Refuse(429, "the quota of today is used up", Retry_After="3600")], checks.refusing("quota")),
    "refused": Row(["unheard"], checks.refusing("refused")),
    "kill": Row([HELD, DONE], checks.killed),
    "interrupt": Row([HELD, DONE], checks.interrupted, terminal=True),
    "cancel": Row(CALLS + [DONE], checks.cancelled, hold=3),
    "varied": Row(VARIED, checks.varied),
    "counted": Row([("shell", "echo one"), ("shell", "echo two"), DONE], checks.counted),
    "rules": Row(recovery.SCRIPT, recovery.acted, rules=recovery.RULES),
}

# Those that scripts/agents runs as well: they take half a minute each, or a program that only it gets.
MORE_STAGES = {
    "sleeper": Row([("shell", "sleep 25; echo awake"), DONE], checks.finished),
    "slow": Row([Slow(20)], checks.finished),
    "silence": Row([("shell", "echo one"), DONE], checks.finished, hold=1, hold_s=25),
    "429 once": Row([("shell", "echo one"), Once(Refuse(429, "too many requests"), ("shell", "echo two")), DONE], checks.refused_once),
    "question": Row([("shell", "echo one"), "Both ways are open. Which of the two shall I take?"], checks.asked_a_question),
    "subagent": Row([("child", f"Please do {CHILD}."), ("shell", "sleep 6"), DONE], checks.of_two),
    "background": Row([("background", "sleep 6; echo awake"), ("shell", "echo two"), DONE], checks.in_background),
    "approval": Row([ASKED, DONE], checks.approval, terminal=True, asks=True),
    "ctrl-c": Row([HELD, DONE], checks.interrupted_by_signal),
    "gave up": Row([DONE], checks.gave_up, hold=0, hold_s=60),
    "resume": Row([("shell", "echo one"), DONE, DONE], checks.resumed),
    # The prompt outgrows each context: the program sums the conversation up. Then it goes on with fewer results, or none.
    "compaction": Row([Once(("shell", f"echo {n}"), DONE) for n in range(4)] + [DONE], checks.compacted, grows=40_000),
    # The proxy sends its first keep-alive after 10 s.
    "limit": Row([DONE], checks.survived, hold=0, hold_s=45, limit_s=15, settings={"WATCHDOG_PROXY_ASSUME_WORKING_SECONDS": "600"}),
}
SLOW_STAGES = {
    # The limits of Claude Code are fixed, that of Gemini CLI is 60 s: real time.
    "long limit": Row([DONE], checks.survived, hold=0, hold_s=330, settings={"WATCHDOG_PROXY_ASSUME_WORKING_SECONDS": "600"}),
}
AGAIN = {"loop kept": "loop", "approved": "approval"}  # The run that such a cell is of.

# The ways of all stages, and those whose stages are named. Telemetry is about what it counts, and that it counts nothing twice.
WAYS = ("hooks", "proxy", "both")
MORE_WAYS = {"telemetry": ("counted",), "all": ("counted",), "run": ("finished", "loop"),
             "transcripts": ("finished", "loop", "401", "interrupt", "cancel", "varied", "question", "subagent", "sleeper", "resume", "compaction")}

# Cells whose way cannot know them. The first pattern that fits counts.
CANNOT_KNOW = {
    "*/proxy/interrupt": "a request that did not come is seen by nobody",
    "*/proxy/approval": "the proxy sees a call, and not that its program asks a person first",
    "*/proxy/rules": "a rule acts by its answer to a hook",
    "*/transcripts/cancel": "a file cannot make an agent stop",
    "codex/hooks/quota": "Codex has no hook for a request that failed",
    "codex/hooks/refused": "Codex has no hook for a request that failed",
    "*/proxy/ctrl-c": "the end of a process does not say who ended it",
    "copilot/*/interrupt": "Copilot CLI calls no hook when a person interrupts it",
    "copilot/hooks/question": "its hooks do not carry the text of an answer",
    "opencode/hooks/limit": "without the proxy opencode tries again for longer than the test waits",
    "opencode/hooks/question": "its plugin does not carry the text of an answer",
    "copilot/hooks/ctrl-c": "Copilot CLI says `complete` for an end by Ctrl-C as well, and exits with 0",
    "copilot/both/ctrl-c": "neither its hooks nor the end of its process say who ended it",
    "copilot/proxy/subagent": "Copilot CLI does not name the session that a subagent's request belongs to",
    "gemini/both/ctrl-c": "neither its hooks nor the end of its process say who ended it",
    "gemini/hooks/ctrl-c": "Gemini CLI gives the same reason for each end of a session",
    "gemini/transcripts/401": "Gemini CLI writes no line about a request that failed",
    "gemini/*/subagent": "Gemini CLI names no subagent, neither in hooks nor in requests",
    "gemini/*/compaction": "Gemini CLI shortens what is before its newest prompt: nothing, in a run with one prompt",
    "copilot/transcripts/*": "the monitor does not read its transcripts",
    "copilot/*/limit": "Copilot CLI has no limit that can be set, up to 330 s",
    "gemini/*/limit": "its limit of 60 s is fixed: see the stage `long limit`",
}

# The cells that the monitor still judges wrongly, as "AGENT/WAY/STAGE". Remove a cell as soon as it is right.
KNOWN_WRONG = set()


def cannot_know(cell):
    """Why nobody can say what happens there; None: somebody can."""
    return next((why for pattern, why in CANNOT_KNOW.items() if fnmatch.fnmatch("/".join(cell), pattern)), None)


def cells_of(agents, stages, ways):
    """All of them, without those of which a way has no part."""
    for name, agent in agents.items():
        for stage in stages:
            for way in ways if agent.WAYS is None else agent.WAYS:
                if way in WAYS and stage != "counted" or stage in MORE_WAYS.get(way, ()):
                    yield name, way, stage
