"""What the settings of agents do: each is a probe of the example agent, whose model is scripted.

The example agent has neither phases with names nor a tool for tasks. For those settings `task_agent.cpp` is an agent.
"""

import json

from settings_trial import FILE, TLS, model, probe

LIST = ("list_files", {})
DONE = "It is done."
LONG = 20  # Seconds of work that a limit ends much sooner.


def shell(command):
    return "shell", {"command": command}


def first_request(trial):
    return json.loads(trial.model.posts()[0]["text"])


# -- [model]


@probe("model.base_url", default="nobody is asked", other="the server is asked")
def base_url(trial):
    server = trial.fake(model(DONE))
    trial.set(server.url)
    trial.base.setdefault("model.base_url", "")
    trial.agent(DONE)
    return "the server is asked" if server.posts() else "nobody is asked"


@probe("model.name", default="default", other="large")
def name(trial):
    trial.set("large")
    trial.agent(DONE)
    return first_request(trial)["model"]


@probe("model.api_key", default=None, other="Bearer key-of-the-test")
def api_key(trial):
    trial.set("key-of-the-test")
    end = trial.agent(DONE)
    if trial.source == FILE:  # It refuses secrets, and names the key.
        return "Bearer key-of-the-test" if "model.api_key must not be in this file" in end else end
    return trial.model.posts()[0]["headers"]["Authorization"]


@probe("model.api_key_file", default=None, other="Bearer key-of-the-file")
def api_key_file(trial):
    trial.set(trial.secret("key", "key-of-the-file"))
    trial.agent(DONE)
    return trial.model.posts()[0]["headers"]["Authorization"]


@probe("model.ca_file", default="is not trusted", other="is trusted")
def ca_file(trial):
    server = trial.fake(model(DONE), tls=True)
    trial.set(str(TLS / "cert.pem"))
    trial.agent(DONE, model_url=server.url)
    return "is trusted" if server.posts() else "is not trusted"


# -- [run]


@probe("run.max_iterations", default="completed, task_complete", other="incomplete, max_iterations_reached")
def max_iterations(trial):
    trial.set(2)
    return trial.agent(LIST, ("list_files", {"path": "."}), ("shell", {"command": "ls"}), DONE)


@probe("run.on_confirmed_stuck", default="incomplete, max_iterations_reached", other="failed, confirmed_stuck")
def on_confirmed_stuck(trial):
    trial.set("fail")
    return trial.agent(LIST)


# -- [budget]


@probe("budget.steps", default="completed, task_complete", other="incomplete, budget_exhausted: steps")
def steps(trial):
    trial.set(2)
    return trial.agent(LIST, ("list_files", {"path": "."}), ("read_file", {"path": "x"}), DONE)


@probe("budget.tool_calls", default="completed, task_complete", other="incomplete, budget_exhausted: tool_calls")
def tool_calls(trial):
    trial.set(1)
    return trial.agent(LIST, ("list_files", {"path": "."}), ("read_file", {"path": "x"}), DONE)


@probe("budget.tokens", default="completed, task_complete", other="incomplete, budget_exhausted: tokens")
def tokens(trial):
    trial.set(60)
    return trial.agent(LIST, ("list_files", {"path": "."}), ("read_file", {"path": "x"}), DONE)


@probe("budget.cost", default="accepted", other="refused")
def cost(trial):
    trial.set(1)
    trial.agent(DONE)
    return "refused" if trial.ran.returncode != 0 and "budget.cost" in trial.ran.stderr else "accepted"


@probe("budget.duration_seconds", default="completed, task_complete", other="incomplete, budget_time")
def duration(trial):
    trial.set(1, budget__enforce_time=True)
    return trial.agent(LONG if trial.is_set else 1.2)


@probe("budget.enforce_time", default="completed, task_complete", other="incomplete, budget_time")
def enforce_time(trial):
    trial.set(True, budget__duration_seconds=1)
    return trial.agent(LONG if trial.is_set else 1.2)


# -- [migration]


@probe("migration.status_based", default="completed, task_complete", other="cancelled, legacy_time_limit")
def status_based(trial):
    trial.set("0", migration__task_ms=50)
    return trial.agent(LONG if trial.is_set else 0.2)


@probe("migration.tool_ms", default="completed, task_complete", other="cancelled, legacy_time_limit")
def tool_ms(trial):
    trial.set(50, migration__status_based="0", tools__confirm_writes=False)
    return trial.agent(shell(f"sleep {LONG if trial.is_set else 0.2}"), DONE)


@probe("migration.task_ms", default=[], other=["task"])
def task_ms(trial):
    trial.set(50, migration__status_based="compare")
    trial.agent(0.2)
    return [event["limit"] for event in trial.events("limit") if event["limit"] != "began"]


def phase(trial, name):
    trial.set(50, migration__status_based="0")
    return trial.task_agent("phase", name).strip()


@probe("migration.planning_ms", default="completed, task_complete", other="cancelled, legacy_time_limit")
def planning_ms(trial):
    return phase(trial, "planning")


@probe("migration.implementation_ms", default="completed, task_complete", other="cancelled, legacy_time_limit")
def implementation_ms(trial):
    return phase(trial, "implementation")


@probe("migration.deployment_ms", default="completed, task_complete", other="cancelled, legacy_time_limit")
def deployment_ms(trial):
    return phase(trial, "deployment")


# -- [task_tool]


def ended_task(trial, step_ms=0):
    """What ended a task that wants to take 25 steps; None: nothing did."""
    return json.loads(trial.task_agent("task", "review", step_ms)).get("ended_by")


def first_step_of(trial, stage):
    """The step of a task of 20 steps after which its budget is at this stage."""
    trial.base["task_tool.agents.review.max_steps"] = 20
    text = json.loads(trial.task_agent("task", "review", 0))["text"]
    return text.rpartition("\n")[2].split().index(stage) + 1


@probe("task_tool.default_timeout_seconds", default=None, other="time")
def task_default_timeout(trial):
    trial.set(1, task_tool__agents__review__max_steps=100, budget__enforce_time=True)
    return ended_task(trial, 60)


@probe("task_tool.agents.*.max_steps", default=None, other="steps", name="review")
def task_max_steps(trial):
    trial.set(2, task_tool__agents__review__default_timeout_seconds=100)
    return ended_task(trial)


@probe("task_tool.agents.*.default_timeout_seconds", default=None, other="time", name="review")
def task_timeout(trial):
    trial.set(1, task_tool__agents__review__max_steps=100, budget__enforce_time=True)
    return ended_task(trial, 60)


@probe("task_tool.budget.wrap_up_threshold_percent", default=14, other=6)
def wrap_up_threshold(trial):
    trial.set(30)
    return first_step_of(trial, "low")


@probe("task_tool.budget.warn_threshold_percent", default=16, other=15)
def warn_threshold(trial):
    trial.set(75)
    return first_step_of(trial, "warn")


@probe("task_tool.budget.timeout_force_exit_percent", default=18, other=17)
def force_exit_threshold(trial):
    trial.set(85)
    return first_step_of(trial, "finalize")


# -- [tools]


def result_of(trial):
    """What the tool call's result says to the model."""
    return [message["content"] for message in json.loads(trial.model.posts()[-1]["text"])["messages"] if message["role"] == "tool"][0]


def ended_by(trial):
    """What ends a command that takes 1.2 s, or with a limit of 1 s much longer."""
    trial.set(1, tools__confirm_writes=False)
    trial.agent(shell(f"sleep {LONG if trial.is_set else 1.2}; echo over"), DONE)
    result = result_of(trial)
    return "at its limit" if "timeout" in result.lower() else "by itself" if "over" in result else result


@probe("tools.profile", default=120_000, other=30_000)
def profile(trial):
    trial.set("interactive")
    trial.base["tools.confirm_writes"] = False
    trial.agent(shell("echo"), DONE)
    return trial.events("tool_call")[0]["deadline_ms"]


@probe("tools.timeout_seconds", default="by itself", other="at its limit")
def timeout_seconds(trial):
    return ended_by(trial)


@probe("tools.timeouts.*", default="by itself", other="at its limit", name="shell")
def timeout_of_tool(trial):
    return ended_by(trial)


@probe("tools.confirm_writes", default="nothing is written", other="the file is written")
def confirm_writes(trial):
    trial.set(False)
    trial.agent(("write_file", {"path": "new.txt", "content": "x"}), DONE)
    return "the file is written" if (trial.work / "new.txt").exists() else "nothing is written"


@probe("tools.artifacts", default=False, other=True)
def artifacts(trial):
    kept = trial.folder / "kept"
    trial.set(str(kept), tools__confirm_writes=False)
    trial.agent(shell("seq 30000"), DONE)
    return any(path.is_file() for path in kept.rglob("*"))
