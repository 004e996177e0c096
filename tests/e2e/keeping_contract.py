"""What the server promises of what it keeps and counts: a part of contract_test.py."""

SESSIONS = "/api/autonomous/sessions"
FORGET = "/api/autonomous/forget"


def sessions_are_forgotten(contract):
    ask, same = contract.ask, contract.tally.same
    end = {"kind": "end"}
    for name in ("erased", "erased2", "erased3"):
        ask("POST", SESSIONS, {"sessionId": name}, status=201)
    one = f"{SESSIONS}/erased/forget"
    ask("POST", one, status=409, field="sessionId")
    for body, field in (("{", None), ("[1]", None), ({"force": 1}, "force"), ({"dryRun": "yes"}, "dryRun")):
        ask("POST", one, body, status=400, field=field)
        ask("POST", FORGET, body, status=400, field=field)
    for body, field in (({}, "sessions"), ({"sessions": []}, "sessions"), ({"sessions": "erased"}, "sessions"),
                        ({"sessions": [1]}, "sessions"), ({"endedBefore": "now"}, "endedBefore"),
                        ({"endedBefore": 1.5}, "endedBefore")):
        ask("POST", FORGET, body, status=400, field=field)
    contract.post("erased", end)
    contract.post("erased2", end)
    ask("POST", FORGET, {"sessions": ["erased", "nobody"]}, status=404, field="sessionId")
    ask("POST", FORGET, {"sessions": ["erased", "erased3"]}, status=409, field="sessionId")
    which = {"sessions": ["erased2", "erased"], "endedBefore": None}
    same("only said", ask("POST", FORGET, which | {"dryRun": True}, status=200)["forgotten"], False)
    ask("GET", "/api/autonomous/progress/erased", status=200)
    same("one is gone", ask("POST", one, {"force": None}, status=200), {"forgotten": True, "sessions": ["erased"]})
    ask("POST", one, {}, status=404, field="sessionId")
    ask("GET", f"{SESSIONS}/erased/events", status=404, field="sessionId")
    same("so are many", ask("POST", FORGET, {"sessions": ["erased2", "erased3"], "force": True}, status=200)["sessions"], ["erased2", "erased3"])
    same("none is as old", ask("POST", FORGET, {"endedBefore": 1}, status=200), {"forgotten": True, "sessions": []})


def bundles_are_made(contract):
    ask = contract.ask
    ask("POST", SESSIONS, {"sessionId": "saved"}, status=201)
    one = f"{SESSIONS}/saved/bundle"
    for target in (one, f"{one}?git=0"):
        text = ask("GET", target, status=200)
        contract.tally.check("it is an archive", [] if text and text.startswith("watchdog-saved/README.md\0") else [f"it begins with {text and text[:40]!r}"])
    ask("GET", f"{one}?git=2", status=422, field="git")
    ask("GET", f"{one}?contents=1", status=400, field="contents", fits="unread")
    ask("GET", f"{SESSIONS}/nobody/bundle", status=404, field="sessionId")
    ask("POST", one, {}, status=405)


def work_is_counted(contract):
    ask = contract.ask

    def counted(name):
        lines = ask("GET", "/metrics", status=200).splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    before = {name: counted(name) for name in ('watchdog_events_total{kind="message"}', "watchdog_heartbeats_total ",
                                               "watchdog_duplicate_events_total ", "watchdog_late_events_total ")}
    once = {"kind": "message", "event_id": "once"}
    contract.post("counted", [once, once, {"kind": "heartbeat"}, {"kind": "heartbeat"}, {"kind": "end"}, {"kind": "message"}])
    for (name, was), more in zip(before.items(), (2, 2, 1, 1)):
        contract.tally.same(f"{name} rises", counted(name), was + more)
