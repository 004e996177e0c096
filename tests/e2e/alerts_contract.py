"""What the server promises of alerts: a part of contract_test.py."""

import contextlib
import tempfile

ALERTS = "/api/alerts"
BEAT = {"kind": "heartbeat", "source": "loop"}
CHANNELS = """
[alerts.channels.away]
url = "http://127.0.0.1:9/"
[alerts.channels.log]
type = "log"
"""


@contextlib.contextmanager
def server_with_channels(contract):
    """Another one for a while, which tells people."""
    own = contract.server
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write(CHANNELS)
        config.flush()
        with type(own)(own.program, {**own.more, "WATCHDOG_CONFIG": config.name}) as contract.server:
            try:
                yield
            finally:
                contract.server = own


def alerts_are_told(contract):
    ask, same = contract.ask, contract.tally.same
    newest = lambda query="": ask("GET", f"{ALERTS}?limit=1{query}", status=200)
    with server_with_channels(contract):
        contract.post("stuck", [{"kind": "state_change", "type": "step"}] + 5 * [BEAT])
        told = newest()
        alert = told["alerts"][0]
        same("it is stuck", (alert["sessionId"], alert["health"], alert["kind"]), ("stuck", "stuck", "alert"))
        same("to each channel", [c["name"] for c in alert["channels"]], ["away", "log"])
        same("which are shown", [(c["name"], c["kind"]) for c in told["channels"]], [("away", "webhook"), ("log", "log")])
        while newest()["channels"][0]["state"] == "ok":
            pass
        channel = newest()["channels"][0]
        same("and why it waits", (channel["error"].split(":")[0], channel["oldestUnsentMs"] >= 0), ("http", True))
        for name, sent in (("log", True), ("away", False)):
            tried = ask("POST", f"{ALERTS}/channels/{name}/test", status=200)
            same(f"{name} is tried", (tried["channel"], tried["sent"], bool(tried["answer"])), (name, sent, True))
        missing = ask("POST", f"{ALERTS}/channels/lag/test", status=404, field="channel", fits=True)["error"]["message"]
        same("the nearest is named", missing, 'unknown channel "lag"; did you mean log? Use one of: away, log')
        path = f"{ALERTS}/{alert['alertId']}"
        for body in ("{", "[]", "5"):
            ask("POST", f"{path}/acknowledge", body, status=400)
            ask("POST", f"{path}/snooze", body, status=400)
        ask("POST", f"{path}/acknowledge", {"by": 5}, status=400, field="by")
        ask("POST", f"{path}/acknowledge", {"by": "x" * 4097}, status=422, field="by")
        for minutes, status in ((None, 400), ("5", 400), (1.5, 400), (0, 422), (43201, 422), (-1, 422)):
            ask("POST", f"{path}/snooze", {"minutes": minutes}, status=status, field="minutes")
        for what, body in (("acknowledge", {}), ("snooze", {"minutes": 5})):
            for wrong in ("0", "9999", "x", "1x", "-1", "99999999999999999999"):
                ask("POST", f"{ALERTS}/{wrong}/{what}", body, status=404, field="alertId")
        snoozed = ask("POST", f"{path}/snooze", {"minutes": 5}, status=200)
        same("it waits", (snoozed["snoozedUntil"] > snoozed["at"], snoozed["channels"][0]["state"]), (True, "held"))
        known = ask("POST", f"{path}/acknowledge", {"by": "ann"}, status=200)
        same("somebody knows", known["acknowledged"]["by"], "ann")
        again = ask("POST", f"{path}/acknowledge", status=200)
        same("who was the first", again["acknowledged"], known["acknowledged"])
        contract.post("stuck", {"kind": "state_change", "type": "step"})
        over = newest()["alerts"][0]
        same("it is over", (over["health"], over["kind"]), ("progressing", "recovery"))
        for what, body in (("acknowledge", {}), ("snooze", {"minutes": 5})):
            ask("POST", f"{ALERTS}/{over['alertId']}/{what}", body, status=409, field="alertId", fits=True)
        same("of this session", len(ask("GET", f"{ALERTS}?sessionId=stuck", status=200)["alerts"]), 2)
        same("of no other", ask("GET", f"{ALERTS}?sessionId=none", status=200)["alerts"], [])
        same("those that are held", [a["alertId"] for a in newest("&state=held")["alerts"]], [alert["alertId"]])
        same("in pages", [a["alertId"] for a in contract.pages(f"{ALERTS}?limit=1", "alerts")],
             [over["alertId"], alert["alertId"]])
        ask("GET", f"{ALERTS}?after=-1", status=422, field="after")
        ask("GET", f"{ALERTS}?after=x", status=400, field="after")
    same("without channels", ask("GET", ALERTS, status=200)["channels"], [])
