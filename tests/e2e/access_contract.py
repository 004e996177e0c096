"""Who may do what, as the server promises it: a part of contract_test.py."""

import json
import pathlib
import time
from concurrent import futures

from otlp_contract import JSON, TRACE, logs_of

SESSIONS = "/api/autonomous/sessions"
NOBODY = {"Authorization": None}


def cookie_of(contract, path, body, status, scheme="http"):
    """Logs in as a browser does; the cookie that it will send."""
    response, _ = contract.send("POST", path, body.encode(), NOBODY | {"Origin": f"{scheme}://{contract.server.host}"}, None)
    contract.tally.same(f"POST {path} logs in", response.status, status)
    return response.getheader("Set-Cookie").split(";")[0]


def access_is_decided(contract):
    """On loopback: reading and reporting are open, acting is not; a login is for this server's own pages."""
    ask, same = contract.ask, contract.tally.same
    own = {"Origin": f"http://{contract.server.host}"}
    cancel = f"{SESSIONS}/guarded/cancel"
    secret = contract.server.secret
    ask("POST", f"{SESSIONS}/guarded/events", {"kind": "message"}, status=200, headers=NOBODY)
    ask("POST", cancel, {"reason": "no"}, status=401, headers=NOBODY, fits=True)
    ask("POST", cancel, {"reason": "no"}, status=401, headers={"Authorization": "Bearer " + "x" * 64}, fits=True)
    same("nobody was asked to stop", ask("POST", f"{SESSIONS}/guarded/events", {"kind": "message"}, status=200)["directive"], None)
    ask("GET", "/api/audit", status=401, headers=NOBODY)
    same("what a stranger may", ask("GET", "/api/access", status=200, headers=NOBODY),
         {"scopes": ["read", "report"], "name": None, "tokenNeeded": True, "proxyUrl": None})
    same("what the owner may", ask("GET", "/api/access", status=200),
         {"scopes": ["read", "report", "act"], "name": "user", "tokenNeeded": False, "proxyUrl": None})

    ask("POST", "/api/login", {"token": secret}, status=204, headers=NOBODY | own)
    ask("POST", "/login", f"token={secret}", status=303, headers=NOBODY | own)
    for path, body, status in (("/login", f"a=b&token={secret[:10]}%{ord(secret[10]):x}{secret[11:]}", 303),
                               ("/api/login", f'{{"token": "{secret}"}}', 204)):
        cookie = NOBODY | {"Cookie": f"other=1; {cookie_of(contract, path, body, status)}"}
        same("the browser is known", ask("GET", "/api/access", status=200, headers=cookie)["name"], "user")
        ask("POST", cancel, {}, status=200, headers=cookie | own)
        ask("POST", cancel, {}, status=200, headers=cookie | {"Sec-Fetch-Site": "same-origin"})
        for page in ({}, {"Origin": "http://elsewhere.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}):
            ask("POST", cancel, {}, status=403, headers=cookie | page, fits=True)
        ask("GET", "/api/audit", status=403, headers=cookie | {"Origin": "http://elsewhere.example"})
        ask("GET", "/api/audit", status=200, headers=cookie)
        ask("POST", cancel, {}, status=401, headers={k: v + "0" if v else v for k, v in cookie.items()} | own, fits=True)
    response, _ = contract.send("POST", "/api/logout", None, cookie | own, 0)
    same("logged out", (response.status, "=; Path=/; Max-Age=0" in response.getheader("Set-Cookie")), (204, True))
    ask("POST", "/api/logout", status=204)
    for wrong, status in (({}, 400), ({"token": ""}, 400), ({"token": 5}, 400), ("{", 400)):
        ask("POST", "/api/login", wrong, status=status, field="token" if wrong != "{" else None, headers=NOBODY | own)

    acts = ask("GET", "/api/audit?limit=1000", status=200)["audit"]
    # Of refused acts the trail has ten, and one more each minute.
    mine = [(a["actor"], a["action"], a["outcome"]) for a in acts if a["target"] == "guarded" and a["outcome"] == "ok"]
    same("every act is in the trail", mine, [("user", "cancel", "ok")] * 4)
    same("and each login", sum(a["action"] == "login" for a in acts), 4)
    same("by whom it was cancelled", contract.ask("GET", "/api/autonomous/progress/guarded", status=200)["cancel"]["by"], "user")
    of_it = ask("GET", "/api/audit?limit=1000&sessionId=guarded", status=200)["audit"]
    same("and those on a session alone", (of_it[:4], {a["target"] for a in of_it}), ([a for a in acts if a["target"] == "guarded"][:4], {"guarded"}))
    same("and none on another", ask("GET", "/api/audit?sessionId=nobody", status=200), {"audit": [], "next": None})
    # The monitor may write a refused act to the trail a moment after its answer.
    same("pages make the whole trail", contract.pages("/api/audit?limit=3", "audit")[:len(acts)], acts)

    # Ten wrong tokens at once. Then only random ones are looked at, and the monitor's own is one.
    guess = lambda number: contract.send("POST", "/api/login", b'{"token": "wrong %d"}' % number, NOBODY | own, None)[0].status
    same("wrong tokens are refused, and then not looked at", {guess(number) for number in range(20)}, {401, 429})
    ask("POST", "/api/login", {"token": "wrong"}, status=429, headers=NOBODY | own)
    ask("POST", "/login", "token=wrong", status=429, headers=NOBODY | own)
    before = len(ask("GET", "/api/audit?limit=1000", status=200)["audit"])
    ask("POST", "/api/login", {"token": secret}, status=204, headers=NOBODY | own)
    ask("POST", "/login", f"token={secret}", status=303, headers=NOBODY | own)
    ask("POST", cancel, {}, status=200)
    trail = [(a["actor"], a["action"], a["outcome"]) for a in ask("GET", "/api/audit?limit=1000", status=200)["audit"]]
    same("the burst is in the trail, once", trail.count(("local", "logins_refused", "429")), 1)
    same("and who came in after it", trail[before:], [("user", "login", "ok")] * 2 + [("user", "cancel", "ok")])


def guesses_are_counted(contract):
    """Each operation counts the wrong tokens of an address, and no answer shows what is not compared."""
    chosen, same = "correct-horse-battery", contract.tally.same
    tokens = pathlib.Path(contract.server.folder.name, "w.db-token")
    tokens.write_text(f"{tokens.read_text()}chosen read,report,act {chosen}\n")
    bearer = lambda secret, address: {"Authorization": f"Bearer {secret}", "X-Forwarded-For": address}
    readyz = lambda secret, address: contract.send("GET", "/readyz", None, bearer(secret, address), None)[0].status
    end = time.monotonic() + 30
    while readyz(chosen, "127.1.0.1") != 200 and time.monotonic() < end:  # The file is read every second.
        time.sleep(0.1)
    for number, operation in enumerate(contract.specification.operations):
        address, target = f"127.2.{number}.1", operation.sample()
        logs_in = operation.path in ("/login", "/api/login") and operation.method == "POST"

        def status(secret):
            if not logs_in:
                return contract.send(operation.method, target, None, bearer(secret, address), 0)[0].status
            body = f"token={secret}" if operation.path == "/login" else json.dumps({"token": secret})
            return contract.send(operation.method, target, body.encode(), {"Authorization": None, "X-Forwarded-For": address}, None)[0].status

        wrong = {status(f"wrong-token-{attempt}") for attempt in range(10)}
        needs_token = operation.node.get("security") != [] or operation.path == "/api/access" or logs_in
        same(f"{operation}: ten wrong tokens are looked at", wrong & {429}, set())
        beyond = [status("one-more-wrong-token"), status(chosen)]
        same(f"{operation}: then a right one gets the answer of a wrong one", beyond, [429, 429] if needs_token else beyond[:1] * 2)
        same(f"{operation}: they count everywhere", [readyz(chosen, address), readyz(contract.server.secret, address)], [429, 200])
        same(f"{operation}: they count for this address alone", readyz(chosen, f"127.3.{number}.1"), 200)
        same(f"{operation}: a random token is always looked at", status(contract.server.secret) in (401, 429), False)


def token_is_asked_for(contract):
    """Behind a proxy, or on an address that others reach: nothing is open but what needs to be."""
    ask, own = contract.ask, {"Origin": f"https://{contract.server.host}"}
    ask("POST", f"{SESSIONS}/sample/events", {"kind": "message"}, status=200)
    ask("POST", "/v1/logs", logs_of("traced", TRACE), status=200, headers=JSON)
    ask("POST", "/api/autonomous/check-status", {"sessionId": "sample", "checkId": "sample"}, status=202)
    for operation in contract.specification.operations:
        method, target = operation.method, operation.sample()
        if operation.node.get("security") != []:
            ask(method, target, status=401, headers=NOBODY)
            ask(method, target, status=401, headers=NOBODY, length=100_000)
        elif method == "GET":
            ask(method, target, status=200, headers=NOBODY)
        elif operation.body:
            ask(method, target, status=413, headers=NOBODY, length=100_000)
        elsewhere = {"Host": "here.example", "Origin": "http://elsewhere.example"}
        ask(method, target, status=200 if method == "GET" and operation.path != "/mcp" else 403, headers=elsewhere)
    ask("POST", "/api/login", {"token": "wrong"}, status=401, headers=NOBODY | own)
    ask("POST", "/login", "token=wrong", status=401, headers=NOBODY | own)
    ask("GET", "/nothing", status=401, headers=NOBODY)
    ask("GET", "/nothing", status=404)
    for wrong in ("Bearer " + "x" * 64, contract.server.secret, "Basic " + contract.server.secret):
        ask("GET", "/readyz", status=401, headers={"Authorization": wrong})
    far = {"X-Forwarded-For": "198.51.100.7, 203.0.113.9"}
    answers = []
    while not answers or answers[-1].status != 429 and len(answers) < 1_000:
        # At once: on a busy machine one after the other may take as long as the limit allows.
        with futures.ThreadPoolExecutor(10) as crowd:
            answers += [answer for answer, *_ in crowd.map(lambda _: contract.send("GET", "/api/access", None, far, None), range(10))]
        answers.sort(key=lambda answer: answer.status)
    contract.tally.same("another machine's requests are limited", (answers[0].status, answers[-1].status), (200, 429))
    contract.tally.same("it is told until when", answers[-1].getheader("Retry-After"), "1")
    logins = lambda: sum(entry["action"] == "login" for entry in ask("GET", "/api/audit?limit=1000", status=200)["audit"])
    before = logins()  # The monitor may write a refused act to the trail a moment later.
    cookie_of(contract, "/api/login", f'{{"token": "{contract.server.secret}"}}', 204, scheme="https")
    contract.tally.same("logins are in the trail", logins(), before + 1)
