"""What the settings of the proxy's budgets do: each is a probe of `watchdog-monitor serve`."""

from settings_trial import PROGRESS, probe, until

ANSWER = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}],
          "usage": {"prompt_tokens": 1_000, "completion_tokens": 1_000, "prompt_tokens_details": {"cached_tokens": 1_000}}}
LARGE = 1_000_000_000
REFUSED = "the budget mine is used up"


def refusal(trial, second="one"):
    """Whether the second request is refused, as a word. The first one spends 2,000 tokens of the model `m`."""
    trial.base.setdefault("proxy.upstream", trial.fake(lambda handler, body: handler.say(ANSWER)).url)
    trial.base.setdefault("proxy.probe", False)
    trial.base.setdefault("proxy.budgets.mine.tokens", LARGE)
    trial.base.setdefault("proxy.budgets.mine.refuse", True)
    monitor = trial.serve()
    proxy = monitor.proxy()

    def ask(session, text):
        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        return monitor.ask("POST", f"/s/{session}/v1/chat/completions", body, host=proxy)

    status, answer = ask("one", "Begin.")
    assert status == 200, answer
    # The answer is charged a moment later, and then its session rests.
    until(lambda: monitor.ask("GET", f"{PROGRESS}/one")[1].get("health") == "idle", monitor.said)
    status, answer = ask(second, "Go on.")
    if status == 200:
        return "answered"
    assert status == 400 and REFUSED in answer["error"]["message"], answer
    return "refused"


def cost_of(trial, **prices):
    """The same with a budget of money, of which a request costs more if it has the price."""
    trial.base.setdefault("proxy.budgets.mine.cost", 0.5)
    trial.base.setdefault("proxy.prices.all.models", ["m"])
    for key, price in prices.items():
        trial.base.setdefault(f"proxy.prices.all.{key}", price)
    return refusal(trial)


@probe("proxy.budgets.*.per", default="answered", other="refused", name="mine")
def budget_per(trial):
    trial.base["proxy.budgets.mine.tokens"] = 1_000
    trial.set("day")
    return refusal(trial, second="two")


@probe("proxy.budgets.*.tokens", default="answered", other="refused", name="mine")
def budget_tokens(trial):
    trial.base["proxy.budgets.mine.cost"] = LARGE
    trial.base["proxy.prices.all.models"] = ["m"]
    trial.set(1_000)
    return refusal(trial)


@probe("proxy.budgets.*.cost", default="answered", other="refused", name="mine")
def budget_cost(trial):
    trial.base["proxy.prices.all.output_per_million"] = 1_000
    trial.base["proxy.prices.all.models"] = ["m"]
    trial.set(0.5)
    return refusal(trial)


@probe("proxy.budgets.*.refuse", default="answered", other="refused", name="mine")
def budget_refuse(trial):
    trial.base["proxy.budgets.mine.tokens"] = 1_000
    trial.base["proxy.budgets.mine.refuse"] = False
    trial.set(True)
    return refusal(trial)


@probe("proxy.prices.*.models", default="answered", other="refused", name="all")
def price_models(trial):
    trial.base["proxy.prices.all.models"] = ["other-*"]
    trial.set(["m*"])
    return cost_of(trial, output_per_million=1_000)


@probe("proxy.prices.*.input_per_million", default="answered", other="refused", name="all")
def price_input(trial):
    trial.set(1_000)
    return cost_of(trial)


@probe("proxy.prices.*.cached_per_million", default="refused", other="answered", name="all")
def price_cached(trial):
    """All of the prompt was cached, so the other price makes it cheap."""
    trial.set(1)
    return cost_of(trial, input_per_million=1_000)


@probe("proxy.prices.*.output_per_million", default="answered", other="refused", name="all")
def price_output(trial):
    trial.set(1_000)
    return cost_of(trial)
