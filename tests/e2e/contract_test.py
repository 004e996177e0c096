#!/usr/bin/env python3
"""Holds a real server to schemas/openapi.yaml.

Every answer must be documented for its route: status, content type, headers, no field that its schema does not name.
In the end every documented route and status has come up; only 503 and 507 need a broken disk. Reports fit schemas too.
"""

import argparse
import contextlib
import copy
import functools
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import traceback
import urllib.parse

from access_contract import access_is_decided, guesses_are_counted, token_is_asked_for
from alerts_contract import alerts_are_told
from fake_model import Model
from hooks_contract import hooks_are_told
from keeping_contract import bundles_are_made, sessions_are_forgotten, work_is_counted
from mcp_contract import mcp_is_spoken
from otlp_contract import a_trace_is_known, telemetry_is_taken
from page_contract import pages_are_served
from process_facts import facts_of
from server import Server
from specification import METHODS, Specification, empty_members, lint, objects_in
from stream_contract import rows_and_streams_are_told
from turns_contract import turns_are_told

JSON_TYPE = "application/json"
PATIENCE_S = 30
BODY_MAX, EVENT_MAX, HEADERS_MAX = 16 * 1024 * 1024, 1024 * 1024, 16 * 1024
SESSIONS = "/api/autonomous/sessions"
PROGRESS = "/api/autonomous/progress"
STATUS = "/api/chat/autonomous/status"
CHECK = "/api/autonomous/check-status"


class Tally:
    def __init__(self, verbose):
        self.verbose, self.passed, self.failed = verbose, 0, 0

    def check(self, name, faults):
        self.passed += not faults
        self.failed += bool(faults)
        if faults or self.verbose:
            print(f"{'FAILED' if faults else 'ok    '} {name}", *faults, sep="\n    ", flush=True)

    def same(self, name, got, wanted):
        self.check(name, [] if got == wanted else [f"is {got!r}, not {wanted!r}"])


class Contract:
    """Asks, and holds every answer to the specification."""

    def __init__(self, specification, tally):
        self.specification, self.tally, self.server = specification, tally, None
        self.closed = set()  # Objects of answers of which it was tried that their schema lets nothing new pass.
        self.seen = set()  # Operations and their statuses that came up.

    def send(self, method, target, body, headers, length):
        length = len(body) if length is None and body is not None else length
        bearer = f"Bearer {self.server.secret}"
        headers = {"Host": self.server.host, "Content-Length": length, "Authorization": bearer} | (headers or {})
        with contextlib.closing(http.client.HTTPConnection(self.server.host, timeout=PATIENCE_S)) as connection:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name in (name for name, value in headers.items() if value is not None):
                connection.putheader(name, str(headers[name]))
            connection.endheaders(body)
            response = connection.getresponse()
            if response.getheader("Content-Type") == "text/event-stream":
                return response, b"" if method == "HEAD" else response.readline()  # it does not end
            return response, response.read()

    def ask(self, method, target, body=None, *, status, field=None, line=None, headers=None,
            length=None, fits=None, count=True):
        """One exchange; returns the answer's body. `body`: JSON value, or text or bytes as they are.
        `length`: what Content-Length says instead. `fits`: whether the request is as the file
        documents; None: if and only if it is accepted; "unread": it is refused whatever it says.
        `count`: False for one of many alike, counted only if it fails."""
        sent = json.dumps(body) if body is not None and not isinstance(body, (str, bytes)) else body
        sent = sent.encode() if isinstance(sent, str) else sent
        shown = f" {headers}" if headers else ""
        shown += "" if sent is None else " " + sent[:60].decode(errors="replace").replace("\n", "↵")
        name = f"{method} {target[:120]}{shown} → {status}{f' {field}' if field else ''}"
        try:
            response, received = self.send(method, target, sent, headers, length)
        except (OSError, http.client.HTTPException) as error:
            self.tally.check(name, [f"no answer: {error!r}"])
            return None
        got = f"status {response.status}: {received[:300].decode(errors='replace')}"
        faults = [] if response.status == status else [got]
        value = self.read_body(response, received, method, faults)
        documented = self.documented(method, target, response, faults)
        kept = "Cache-Control" in (documented or {}).get("headers", {})
        faults += [] if kept or response.getheader("Cache-Control") == "no-store" else ["it may be cached"]
        if documented and value is not None:
            faults += self.body_faults(documented, response, value)
        if status >= 400 and isinstance(value, dict):
            error = value.get("error", {})
            faults += [f"{key} is {error.get(key)!r}, not {wanted!r}: {error.get('message')}"
                       for key, wanted in (("field", field), ("line", line)) if error.get(key) != wanted]
        if status in (200, 201, 400, 422) and fits != "unread":
            faults += self.request_faults(method, target, sent, status, field, fits)
        if faults or count:
            self.tally.check(name, faults)
        return value

    @staticmethod
    def read_body(response, received, method, faults):
        faults += [] if response.getheader("X-Content-Type-Options") == "nosniff" else ["it may be sniffed"]
        faults += ["HEAD is answered with a body"] if method == "HEAD" and received else []
        try:
            text = received.decode()
            return json.loads(text) if text and response.getheader("Content-Type") == JSON_TYPE else text or None
        except ValueError as error:
            faults.append(f"the body is no JSON: {error}: {received[:300]!r}")
            return None

    def documented(self, method, target, response, faults):
        """The response that the file has for this status on this route."""
        status, operations = str(response.status), self.specification.at(target)
        own = [o for o in operations if o.method == ("GET" if method == "HEAD" else method)]
        faults += ["405 for a method that is documented"] if own and status == "405" else []
        if not operations:
            # Not in the file: one answer for every method, unless the gate is closed.
            faults += [] if status in ("401", "404") else ["this route is not documented"]
            return {"content": {JSON_TYPE: {"schema": self.specification.file("error.schema.json")}}}
        for operation in own or operations:
            if status not in operation.responses:
                faults.append(f"{status} is not documented for {operation}")
                return None
            self.seen.add((operation, status))
        found = (own or operations)[0].responses[status]
        for header, node in found.get("headers", {}).items():
            wrong = self.specification.faults_of(response.getheader(header), node["schema"])
            faults += [f"header {header}: {fault}" for fault in wrong]
        if found["content"] and response.getheader("Content-Type") not in found["content"]:
            faults.append(f"content type {response.getheader('Content-Type')} is not documented")
        if status == "405":
            allowed = {word.strip() for word in response.getheader("Allow", "").split(",")}
            faults += [] if allowed == {o.method for o in operations} else [f"Allow is {allowed}"]
        return found

    def body_faults(self, documented, response, value):
        """What is wrong with the body; also whether its schema would have noticed a field too many."""
        media = documented["content"].get(response.getheader("Content-Type"), {"schema": True})
        faults = self.specification.faults_of(value, media["schema"]) + empty_members(value)
        # The messages of another protocol have schemas of their own.
        strange = None if faults or "McpMessage" in json.dumps(media["schema"]) else copy.deepcopy(value)
        for place, node in list(objects_in(strange)):
            if (id(documented), place) in self.closed:
                continue
            self.closed.add((id(documented), place))
            node["undocumented"] = 1
            if not self.specification.faults_of(strange, media["schema"]):
                faults.append(f"the schema would let an undocumented field pass at {place or 'the top'}")
            del node["undocumented"]
        return faults

    def request_faults(self, method, target, sent, status, field, fits):
        operation = next((o for o in self.specification.at(target) if o.method == method), None)
        if not operation:
            return []
        faults, wrong = [], []
        given = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(target).query))
        for name, node in operation.query.items():
            if name in given:
                number = node["schema"].get("type") == "integer" and re.fullmatch(r"-?\d+", given[name])
                value = int(given[name]) if number else given[name]
                wrong += self.specification.faults_of(value, node["schema"])
            elif node.get("required"):
                wrong.append(f"parameter {name} is missing")
        faults += [f"parameter {name} is not documented" for name in given.keys() - operation.query.keys()]
        if operation.body and sent:
            wrong += self.sent_faults(operation, sent)
        elif operation.body and operation.body.get("required"):
            wrong.append("the body is missing")
        if fits is None:
            fits = status < 300 or (field in ("sessionId", "checkId") and f"{{{field}}}" in operation.path)
        if fits:
            return faults + [f"the request is not as documented: {fault}" for fault in wrong]
        return faults + ([] if wrong else ["refused, although the request is as documented"])

    def sent_faults(self, operation, sent):
        content, texts = operation.body["content"], [sent]
        schema, faults = content[JSON_TYPE]["schema"], []
        if re.match(rb"\s*\{.*\}\s*\n\s*\{", sent) and "application/x-ndjson" in content:
            schema, texts = self.specification.file("event.schema.json"), sent.split(b"\n")
        for text in texts:
            try:
                faults += self.specification.faults_of(json.loads(text), schema) if text.strip() else []
            except ValueError as error:
                faults.append(f"no JSON: {error}")
        return faults

    def post(self, session, events):
        return self.ask("POST", f"{SESSIONS}/{session}/events", events, status=200)

    def until(self, session, what, holds):
        """Asks for the progress document until it is as expected; each on the way must be right."""
        held, deadline, failed = False, time.monotonic() + PATIENCE_S, self.tally.failed
        while not held and self.tally.failed == failed and time.monotonic() < deadline:
            document = self.ask("GET", f"{PROGRESS}/{session}", status=200, count=False)
            held = bool(document and holds(document))
        self.tally.check(f"{session} is {what}", [] if held else [json.dumps(document)])

    def pages(self, target, member):
        """The members of all pages together."""
        whole, after = [], 0
        while after is not None:
            page = self.ask("GET", f"{target}&after={after}", status=200)
            whole, after = whole + page[member], page["next"]
        return whole


def sweep_routes(contract):
    """What holds for every route alike: the gate, the limits, other methods, HEAD, parameters."""
    ask, specification = contract.ask, contract.specification
    _ = contract.post("sample", {"kind": "message"}), contract.post("over", {"kind": "end"})
    ask("POST", CHECK, {"sessionId": "sample", "checkId": "sample"}, status=202)
    for operation in specification.operations:
        method, target = operation.method, operation.sample()
        more = target + ("&" if "?" in target else "?")
        ask(method, more + "x=%zz", status=400, fits="unread")
        if operation.path.startswith("/api/"):
            ask(method, more + "nothing=1", status=400, field="nothing", fits="unread")
        for name in operation.query:  # one letter less, and it is named
            said = ask(method, f"{more}{name[:-1] or 'qq'}=1", status=400, field=name[:-1] or "qq", fits="unread")["error"]["message"]
            contract.tally.same(f"{operation} names {name}", len(name) < 4 or f"did you mean {name}?" in said, True)
        ask(method, target, headers={"X-Filler": "x" * HEADERS_MAX}, status=431)
        if operation.body:
            ask(method, target, length=BODY_MAX + 1, status=413)
        gated = "403" in operation.responses
        ask(method, target, headers={"Host": None}, status=400 if gated else 200, fits="unread")
        ask(method, target, headers={"Host": "elsewhere.example"}, status=403 if gated else 200)
        if operation.path == "/mcp" and method == "GET":
            continue  # it answers only to a session of its protocol
        if method == "GET":
            ask("HEAD", target, status=200)
        for headers in ({"Origin": "http://elsewhere.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            ask(method, target, headers=headers, status=200 if method == "GET" else 403)
        for name, schema in ((name, node["schema"]) for name, node in operation.query.items()):
            for value in [] if (operation.body or {}).get("required") else schema.get("enum", [schema["maximum"]] if "maximum" in schema else []):
                ask(method, f"{more}{name}={value}", status=200)
            for value, status in wrong_values(schema) if {"enum", "maximum"} & schema.keys() else []:
                ask(method, f"{more}{name}={value}", status=422 if "enum" in schema else status, field=name)
        taken = {o.method for o in specification.at(target)}
        for other in METHODS:
            if other not in taken and not (other == "HEAD" and "GET" in taken):
                ask(other, target, status=405)


def wrong_values(schema):
    """What a field refuses, and with which status: 400 for a wrong type, 422 for a wrong value."""
    types = schema.get("type", "")
    if "enum" in schema:
        yield from ((5, 400), ("nonsense", 422))
    elif "string" in types:
        yield from ((5, 400), ("a b", 422), ("x" * 129, 422)) if "pattern" in schema else ((5, 400),)
        if schema.get("maxLength", EVENT_MAX) < EVENT_MAX:
            yield "x" * (schema["maxLength"] + 1), 422
    elif "integer" in types:
        yield from (("x", 400), (1.5, 400), (schema["maximum"] + 1, 422))
        if schema["minimum"] > -2**63:
            yield schema["minimum"] - 1, 422
    elif "number" in types:
        yield from (("x", 400), (schema["maximum"] * 1.5, 422), (schema["minimum"] - 0.25, 422))
    elif "object" in types or "boolean" in types or "anyOf" in schema:
        yield from (([1], 400), ("x", 400))


def sweep_for_undocumented(contract):
    """Nothing answers beside the documented paths: before, behind and near them."""
    specification = contract.specification
    near = {"/metrics", "/version", "/events", "/sessions", "/openapi.yaml", "/schemas", "/index.html",
            "/api/turns", "/api/turns/active", "/api/turns/x/abort", "/api/autonomous/stream"}
    for path in specification.root["paths"]:
        parts = re.sub(r"{\w+}", "sample", path).strip("/").split("/")
        near |= {"/" + "/".join(parts[:count]) for count in range(1, len(parts))}
        near.add("/" + "/".join(parts + ["more", "still"]).lstrip("/"))
    for path in sorted(near):
        if not specification.at(path):
            for method in METHODS:
                contract.ask(method, path, status=404)
    page = contract.ask("GET", "/", status=200)
    links = re.findall(r'(?:href|src|action)="(/[^"]*)"', page) or ["no link at all"]
    contract.tally.check("the page's links are documented", [link for link in links if not specification.at(link)])
    with socket.create_connection(contract.server.host.split(":"), timeout=PATIENCE_S) as client:
        client.sendall(b"nonsense\r\n\r\n")
        head, _, body = b"".join(iter(lambda: client.recv(65536), b"")).partition(b"\r\n\r\n")
    faults = specification.faults_of(json.loads(body), specification.file("error.schema.json"))
    contract.tally.check("no HTTP is answered with 400", faults if b" 400 " in head[:20] else [repr(head)])


def sessions_are_made(contract):
    ask, same = contract.ask, contract.tally.same
    for body in (None, "", "{}", {"sessionId": "", "pid": None, "labels": None, "policy": None, "content": None}):
        made = ask("POST", SESSIONS, body, status=201)
        same("the server chooses an id", bool(re.fullmatch(r"[0-9A-Z]{26}", made["sessionId"])), True)
    own_page = {"Origin": f"http://{contract.server.host}", "Sec-Fetch-Site": "same-origin"}
    ask("POST", SESSIONS, {"sessionId": "own"}, status=201, headers=own_page)
    whole = {"sessionId": "whole", "parentSessionId": "own", "agent": "coder", "task": "repair 100% of it",
             "labels": {"team": "a:b"}, "content": "full", "pid": 4000000, "startTicks": 1,
             "bootId": "elsewhere", "host": "elsewhere", "more": 1,
             "policy": {"heartbeatInterval": 100, "stuckThreshold": 10000, "silenceIntervals": 1,
                        "callIdleMax": 604800000, "enableConcurrentChecks": False}}
    same("created", ask("POST", SESSIONS, whole, status=201), {"sessionId": "whole", "created": True})
    for again in (whole, {k: whole[k] for k in reversed(whole) if k not in ("pid", "host")}):
        same("repeated", ask("POST", SESSIONS, again, status=200)["created"], False)
    same("its process is told once", len(ask("GET", f"{SESSIONS}/whole/events?kind=start", status=200)["events"]), 1)
    same("a refusal quotes no session", "coder" in json.dumps(ask("POST", SESSIONS, whole | {"agent": "other"}, status=409, field="sessionId")), False)
    for query in ("agent=coder", "parent=own", "ancestor=own", "label=team:a:b", "q=100%25", "q=CODER", "agent=coder&q=whole"):
        found = ask("GET", f"{PROGRESS}?{query}", status=200)["sessions"]
        same(f"{query} finds it", [document["sessionId"] for document in found], ["whole"])
    for query in ("label=none", "label=:none"):
        ask("GET", f"{PROGRESS}?{query}", status=400, field="label")
    for body in ("{", "[]", "null", "5", b'{"agent":"\xff"}', '{"task":' + "[" * 64 + "]" * 64 + "}"):
        ask("POST", SESSIONS, body, status=400)
    for name, schema in contract.specification.file("session.schema.json")["properties"].items():
        for value, status in wrong_values(schema):
            ask("POST", SESSIONS, {name: value}, status=status, field=name)
    ask("POST", SESSIONS, {"labels": {"a": 1}}, status=400, field="labels")
    for labels in ({str(i): "" for i in range(65)}, {"": "x"}, {"x" * 257: ""}, {"x": "x" * 257}):
        ask("POST", SESSIONS, {"labels": labels}, status=422, field="labels")
    ask("POST", SESSIONS, {"pid": 1.0}, status=400, field="pid", fits=True)
    ask("POST", SESSIONS, {"agent": "ä" * 200}, status=422, field="agent", fits=True)


def policies_change(contract):
    ask, own = contract.ask, f"{SESSIONS}/own"
    thresholds = contract.specification.file("policy.schema.json")["properties"]
    for name, schema in thresholds.items():
        for value, status in wrong_values(schema):
            ask("POST", SESSIONS, {"policy": {name: value}}, status=status, field=name)
            ask("PATCH", own, {"policy": {name: value}}, status=status, field=name)
        if "object" in schema["type"]:
            continue
        for value in (schema.get("minimum", False), schema.get("maximum", True)):
            # A threshold that must not be above another one gets room.
            room = {"slowDeviations": "suspectDeviations", "slowMin": "suspectMin"}.get(name)
            lower = {other: low for low, other in (("slowDeviations", "suspectDeviations"), ("slowMin", "suspectMin"))}
            if room:
                ask("PATCH", own, {"policy": {room: thresholds[room]["maximum"]}}, status=200)
            if name in lower:
                ask("PATCH", own, {"policy": {lower[name]: thresholds[lower[name]]["minimum"]}}, status=200)
            changed = ask("PATCH", own, {"policy": {name: value}}, status=200)
            contract.tally.same(f"{name} changed", changed["policy"][name], value)
    kept = ask("PATCH", own, {"policy": {"stuckThreshold": 7, "callIdleMax": None}}, status=200)
    contract.tally.same("only what is given changes", kept["policy"] | {"stuckThreshold": 7}, kept["policy"])
    patterns = ask("PATCH", own, {"policy": {"patterns": {"R1": {"stuck": 9}}}}, status=200)["policy"]
    contract.tally.same("one bound changes", patterns["patterns"], kept["policy"]["patterns"] | {"R1": {"suspect": 3, "stuck": 9}})
    tools = {"build": {"use": "poll"}, "search": {"use": "ordinary", "identity": ["query"]}}
    ruled = ask("PATCH", own, {"policy": {"tools": tools}}, status=200)["policy"]
    contract.tally.same("tools get rules", ruled["tools"], tools)
    gone = ask("PATCH", own, {"policy": {"tools": {"build": {}}}}, status=200)["policy"]
    contract.tally.same("and lose them", list(gone["tools"]), ["search"])
    impossible = [({"patterns": {"R1": {"suspect": 10}}}, "patterns.R1.suspect"), ({"patterns": {"R2": {"suspect": 1}}}, "patterns.R2.suspect"),
                  ({"slowDeviations": 9, "suspectDeviations": 3}, "slowDeviations"), ({"slowMin": 9, "suspectMin": 3}, "slowMin")]
    for policy, field in impossible:
        ask("PATCH", own, {"policy": policy}, status=422, field=field, fits=True)
        ask("POST", SESSIONS, {"policy": policy}, status=422, field=field, fits=True)
    for policy, field, status in (({"patterns": {"R99": {}}}, "patterns.R99", 422), ({"patterns": {"R1": 5}}, "patterns.R1", 400),
                                  ({"tools": {"x": 1}}, "tools.x", 400), ({"tools": {"x": {"use": "never"}}}, "tools.x", 422),
                                  ({"tools": {"x": {"identity": "q"}}}, "tools.x.identity", 400), ({"tools": {"": {}}}, "tools", 422)):
        ask("PATCH", own, {"policy": policy}, status=status, field=field)
    for body in ("{}", '{"policy":null}', '{"policy":[]}'):
        ask("PATCH", own, body, status=400, field="policy")
    for body, field, words in (({"polcy": {}}, "polcy", 'unknown field "polcy"; did you mean policy?'),
                               ({"policy": {}, "task": "x"}, "task", 'unknown field "task"; use one of: policy'),
                               ({"stuckThreshold": 7}, "stuckThreshold", "stuckThreshold belongs into the object policy"),
                               ({"policy": {"stuckTreshold": 7}}, "stuckTreshold", "did you mean stuckThreshold?"),
                               ({"policy": {"tool": {}}}, "tool", "tools?"), ({"policy": {"more": 1}}, "more", 'unknown threshold "more"')):
        said = ask("PATCH", own, body, status=422, field=field, fits="unread")["error"]["message"]
        contract.tally.same(f"{body} is named: {said}", words in said, True)
    for body in ("", "{", "[]"):
        ask("PATCH", own, body, status=400)
    ask("PATCH", f"{SESSIONS}/none", {"policy": {}}, status=404, field="sessionId")


EVERY_KIND = [
    {"kind": "start", "pid": 4000000, "start_ticks": 1, "boot_id": "elsewhere", "host": "x", "event_id": "e1"},
    {"kind": "heartbeat", "source": "loop", "iteration": 1, "phase": "plan", "counters": {"a": 1, "b": 0.5}, "ts_ms": 5},
    {"kind": "heartbeat", "source": "loop", "iteration": 2, "phase": "plan", "event_id": "e2"},
    *({"kind": "heartbeat", "source": "loop", "iteration": iteration, "phase": "plan"} for iteration in (3, 4)),
    *({"kind": "heartbeat", "source": source} for source in ("sidecar", "relay", "unsaid", None)),
    {"kind": "state_change", "type": "plan_generated", "data": {"steps": [1, 2]}},
    {"kind": "state_change", "name": "edited", "text": "a file", "seq": "any"},
    {"kind": "tool_call", "name": "sh", "args": {"do": "make"}, "args_hash": "a", "call_id": "c", "deadline_ms": 9},
    {"kind": "tool_call", "name": "sh", "args": "make all", "deadline_ms": 0},
    {"kind": "tool_call", "args": ["x" * 400]},
    {"kind": "tool_result", "name": "sh", "text": "ok " * 200, "result_hash": "r", "call_id": "c"},
    {"kind": "error", "name": "sh", "text": {"code": 1}},
    {"kind": "message", "name": "user", "text": "password=abcdefgh"},
    {"kind": "wait", "waiting_for": "a person", "text": "why", "until_ms": 1795806400000, "provider": "anthropic"},
    {"kind": "wait", "name": "backend"},
    *({"kind": kind, "text": ""} for kind in ("message", "user_input", "compaction", "idle", "chant", "retry")),
    {"kind": "opinion", "status": "B", "confidence": 0.5, "seen_seq": 3, "text": "I go in circles"},
    {"kind": "opinion", "expect_quiet_ms": 60000},
    {"kind": "budget"},
    {"kind": "budget", "name": "update", "current_step": 15, "max_steps": 30, "elapsed_seconds": 45,
     "remaining_seconds": 255, "time_pressure": 15, "step_pressure": 50.0, "stage": "nominal", "axis": "steps",
     "tool_calls": 3, "max_tool_calls": 9, "tokens": 5, "max_tokens": 8, "cost": 0.5, "max_cost": 2},
    {"kind": "budget", "name": "subagent_step_progress", "call_id": "child", "elapsed_seconds": 1,
     "steps_remaining": 0, "time_enforced": True, "elapsed_ms": 1500, "duration_ms": 2000, "max_pressure": 75},
    {"kind": "limit", "limit": "tool", "limit_value": 30000, "reached": 30001, "enforced": False},
    {"kind": "turn", "name": "turn_start", "call_id": "t"},
    {"kind": "turn", "name": "turn_start", "call_id": "u", "parent_turn_id": "t", "depth": 1},
    {"kind": "tool_call", "name": "sh", "args": {}, "call_id": "d", "turn_id": "u"},
    {"kind": "tool_progress", "name": "sh", "call_id": "d", "text": "half", "elapsed_ms": 5000, "value": 1.5,
     "total": 3, "output_bytes": 7, "accepted": 1},
    {"kind": "tool_progress"},
    {"kind": "tool_timeout", "name": "sh", "call_id": "d", "text": "[TIMEOUT] sh", "limit_kind": "hard",
     "limit_ms": 6000, "elapsed_ms": 6001, "still_running": True},
    {"kind": "tool_timeout"},
    {"kind": "evidence", "call_id": "r", "state": "reading", "done": 41216, "total": 61440, "left_ms": 118000,
     "text": "the prompt moves"},
    *({"kind": "evidence", "state": state} for state in ("hung", "over")),
    {"kind": "turn", "name": "turn_abort", "call_id": "u", "reason": "timeout"},
    {"kind": "turn", "name": "turn_end", "call_id": "u", "reason": "aborted", "tool_calls": 1},
    {"kind": "end", "outcome": "failed", "reason": "error", "error": "no disk"},
    {"kind": "message", "text": "late"},
    *({"kind": kind} for kind in ("start", "end", "start", "message"))]


def events_are_taken(contract):
    ask, same, post = contract.ask, contract.tally.same, contract.post
    events, transitions = f"{SESSIONS}/kinds/events", f"{SESSIONS}/kinds/transitions"
    receipt = {"accepted": 0, "duplicates": 0, "late": 0, "ignored": 0, "hint": None, "directive": None}
    same("every kind", post("kinds", EVERY_KIND) | {"hint": None}, receipt | {"accepted": len(EVERY_KIND), "late": 1})
    same("ids again", post("kinds", [EVERY_KIND[0], EVERY_KIND[2]]), receipt | {"duplicates": 2})
    unknown = [{"kind": kind} for kind in ("policy", "cancel", "exited", "observer", "gap", "dream")]
    same("kinds that agents do not have", post("kinds", [*unknown, {"kind": "idle"}]) | {"hint": None}, receipt | {"accepted": 1, "ignored": 6})
    for kind, near in (("heartbeet", "heartbeat"), ("statechange", "state_change"), ("tool_cal", "tool_call"), ("observer", None)):
        for target in (events, f"{SESSIONS}/no-kinds/events"):
            for body, line in (({"kind": kind}, None), ([{"kind": kind}] * 2, 1), (f'\n{{"kind":"{kind}"}}\n\n{{"kind":"x"}}', 2)):
                said = ask("POST", target, body, status=422, field="kind", line=line, fits="unread")["error"]["message"]
                words = f'unknown kind "{kind}"; ' + (f"did you mean {near}? Use" if near else "use") + " one of: start, heartbeat, "
                same(f"{kind} is named", said[:len(words)], words)
    ask("GET", f"{PROGRESS}/no-kinds", status=404, field="sessionId")
    lines = '{"kind":"idle"}\r\n\n {"kind":"dream"}\n{"kind":"message","event_id":"e1"}\n'
    same("lines", post("kinds", lines), receipt | {"accepted": 1, "ignored": 1, "duplicates": 1})
    same("one over several lines", post("kinds", '{"kind":\n"idle"}'), receipt | {"accepted": 1})
    same("none", post("kinds", "[]"), receipt)
    ask("POST", f"{events}?create=0", {"kind": "idle"}, status=200)
    ask("PATCH", f"{SESSIONS}/kinds", {"policy": {"stuckThreshold": 3}}, status=200)
    whole = ask("GET", f"{events}?limit=1000", status=200)["events"]
    same("pages make the whole", contract.pages(f"{events}?limit=7", "events"), whole)
    same("neighbours share an event", [e["count"] for e in whole if e["kind"] == "heartbeat"], [1, 1, 2, 1, 1, 2])
    same("late ones are marked", [e["text"] for e in whole if "late" in e], ["late"])
    same("secrets are not kept", [e["text"] for e in whole if e.get("name") == "user"], ["password=[redacted]"])
    changes = ask("GET", f"{events}?kind=state_change", status=200)["events"]
    same("of one kind", [event["type"] for event in changes], ["plan_generated", "edited"])
    contract.until("kinds", "read to its end", lambda d: d["lastSeq"] == whole[-1]["seq"])
    healths = contract.pages(f"{transitions}?limit=2", "transitions")
    same("from health to health", ["unknown"] + [t["health"] for t in healths[:-1]], [t["from"] for t in healths])
    for route in ("events", "transitions"):
        ask("GET", f"{SESSIONS}/none/{route}", status=404, field="sessionId")


def events_are_refused(contract):
    """Nothing of a batch with a mistake is stored, not even the session."""
    events = f"{SESSIONS}/refused/events"
    refuse = lambda body, status, **more: contract.ask("POST", events, body, status=status, **more)
    for body in ("", "{", "5", '"x"', b'{"kind":"message","text":"\xff"}', '{"kind":"idle"} {"kind":"idle"}'):
        refuse(body, 400)
    refuse('{"kind":"tool_call","args":' + "[" * 64 + "]" * 64 + "}", 400, fits=True)
    refuse('{"kind":"heartbeat","counters":{"a":1e999}}', 400, fits=True)
    refuse("[1]", 400, line=1)
    refuse('{"kind":"idle"}\n\n{"kind":', 400, line=3)
    refuse('{"kind":"idle"}\n{"kind":"heartbeat","iteration":"x"}\n', 400, field="iteration", line=2)
    refuse('{"kind":"idle"}\n{"kind":"heartbeat","source":"me"}', 422, field="source", line=2)
    for name, schema in contract.specification.file("event.schema.json")["properties"].items():
        for value, status in wrong_values(schema):
            only = re.match(r"Of an? (\w+)", schema["description"])
            event = {"kind": only[1] if only else "message", name: value}
            refuse(event, status, field=name)
            refuse([{"kind": "idle"}, event], status, field=name, line=2)
    for event in ({}, {"kind": None}, {"kind": ""}, {"kind": "state_change"}, {"kind": "state_change", "type": ""}):
        refuse(event, 400, field="type" if event.get("kind") else "kind")
    refuse({"kind": "limit"}, 400, field="limit")
    refuse({"kind": "turn", "call_id": "t"}, 400, field="name")
    refuse({"kind": "turn", "name": "turn_pause", "call_id": "t"}, 422, field="name")
    refuse({"kind": "turn", "name": "turn_end"}, 400, field="call_id")
    refuse({"kind": "evidence"}, 400, field="state")
    refuse({"kind": "evidence", "state": "asleep"}, 422, field="state")
    refuse('{"kind":"tool_progress","value":1e999}', 400)
    refuse({"kind": "heartbeat", "counters": {"a": "1"}}, 400, field="counters")
    for counters in ({str(i): i for i in range(17)}, {"x" * 65: 1}):
        refuse({"kind": "heartbeat", "counters": counters}, 422, field="counters")
    refuse({"kind": "heartbeat", "iteration": 1.0}, 400, field="iteration", fits=True)
    refuse({"kind": "message", "name": "ä" * 129}, 422, field="name", fits=True)
    large = {"kind": "message", "text": "x" * (EVENT_MAX + 1)}
    refuse(large, 413, line=1)
    refuse([{"kind": "idle"}, large], 413, line=2)
    refuse('{"kind":"idle"}\n' + json.dumps(large), 413, line=2)
    for query, body in (("?create=0", {"kind": "idle"}), ("", [])):
        contract.ask("POST", events + query, body, status=404, field="sessionId")
    contract.ask("GET", f"{PROGRESS}/refused", status=404, field="sessionId")
    contract.ask("POST", f"{SESSIONS}/a%20b/events", {"kind": "idle"}, status=422, field="sessionId")


def a_life_is_told(contract):
    ask, same, until = contract.ask, contract.tally.same, contract.until
    say = lambda events: contract.post("life", events)
    in_short = lambda: ask("GET", f"{STATUS}?sessionId=life", status=200)
    cancel = f"{SESSIONS}/life/cancel"
    ask("POST", SESSIONS, {"sessionId": "life"}, status=201)
    until("life", "unknown", lambda d: d["health"] == "unknown" and d["lastSeq"] == 0)
    say({"kind": "heartbeat", "source": "loop", "iteration": 1, "phase": "plan"})
    until("life", "starting", lambda d: d["health"] == "starting" and d["alive"] and d["currentPhase"] == "plan")
    say({"kind": "tool_call", "name": "shell", "call_id": "c1"})
    until("life", "in a call", lambda d: [call["callId"] for call in d["tools"]] == ["c1"])
    say({"kind": "error", "call_id": "c1", "text": "no"})
    until("life", "progressing", lambda d: d["health"] == "progressing" and d["progress"]["lastChange"] == "tool_call")
    say({"kind": "wait", "waiting_for": "a person"})
    until("life", "blocked", lambda d: d["health"] == "blocked" and d["waitingFor"] == "a person")
    ask("POST", SESSIONS, {"sessionId": "child", "parentSessionId": "life"}, status=201)
    contract.post("child", {"kind": "wait"})
    until("life", "explained", lambda d: d["explainedBy"] and d["explainedBy"]["sessionId"] == "child")
    say([{"kind": "heartbeat", "source": "loop", "iteration": i} for i in range(2, 9)])
    until("life", "stuck", lambda d: d["stuck"] and d["stuckBy"] == "F1" and len(d["evidence"]) == 2)
    same("in short", in_short(), {"sessionId": "life", "status": "running", "iteration": 8, "error": None})
    for body in ("{", "[]"):
        ask("POST", cancel, body, status=400)
    for field in ("reason", "by"):
        ask("POST", cancel, {field: 5}, status=400, field=field)
        ask("POST", cancel, {field: "x" * 4097}, status=422, field=field)
    asked = ask("POST", cancel, {"reason": "enough", "by": "ann"}, status=200)
    same("asked to stop", [asked[key] for key in ("ok", "sessionId", "ended", "reach")], [True, "life", False, "report"])
    told = say({"kind": "message"})["directive"]
    same("told to stop", (told["cancel"]["by"], told["cancel"]["reason"]), ("ann", "enough"))
    until("life", "asked to stop", lambda d: d.get("cancel") == told["cancel"])
    same("told no more", say({"kind": "end", "outcome": "failed", "error": "stopped"})["directive"], None)
    until("life", "cancelled", lambda d: d["lifecycle"] == "cancelled" and d["outcome"]["error"] == "enough")
    same("in short, cancelled", in_short(), {"sessionId": "life", "status": "cancelled", "iteration": 8, "error": None})
    ask("POST", cancel, status=409, field="sessionId")
    ask("PATCH", f"{SESSIONS}/life", {"policy": {}}, status=409, field="sessionId")
    same("late", say({"kind": "message"})["late"], 1)
    say({"kind": "start"})
    until("life", "in its next attempt", lambda d: d["attempt"] == 2 and not d["outcome"] and not d["cancel"])
    for target in (f"{PROGRESS}/none", f"{STATUS}?sessionId=none"):
        ask("GET", target, status=404, field="sessionId")
    ask("POST", f"{SESSIONS}/none/cancel", status=404, field="sessionId")
    ask("GET", STATUS, status=400, field="sessionId")


def situations_are_told(contract):
    """What was known when trouble began, each of its parts; nothing where there was no trouble."""
    same = contract.tally.same
    agent = subprocess.Popen(["sh", "-c", "sleep 1000 & echo; wait"], stdout=subprocess.PIPE, start_new_session=True)
    try:
        agent.stdout.readline()
        contract.ask("POST", SESSIONS, {"sessionId": "trouble"} | facts_of(agent), status=201)
        again = [{"kind": "tool_call", "name": "ls", "args": {"path": "a"}}, {"kind": "tool_result", "name": "ls", "text": "b"}]
        contract.post("trouble", [{"kind": "heartbeat", "source": "loop", "counters": {"tokens": 5}}, *again * 3])
        contract.until("trouble", "suspect", lambda d: d["health"] == "suspect")
        contract.post("trouble", [{"kind": "tool_call", "name": "web", "call_id": "c", "deadline_ms": 60000},
                                  {"kind": "opinion", "status": "B"}])
        contract.until("trouble", "looping", lambda d: d["health"] == "looping")
    finally:
        os.killpg(agent.pid, signal.SIGKILL)
        agent.wait()
    told = contract.ask("GET", f"{SESSIONS}/trouble/transitions", status=200)["transitions"]
    same("only of trouble", [t["health"] for t in told if t["situation"]], ["suspect", "looping"])
    known = told[-1]["situation"]
    same("in flight", [call["name"] for call in known["inFlight"]], ["web"])
    same("what was repeated", (known["repeated"]["pattern"], known["opinions"]["self"]), ("R1", True))
    same("children", [child["parent"] for child in known["process"]["children"]], [agent.pid])


def what_the_model_server_does_is_told(contract):
    same = contract.tally.same
    said = {"kind": "evidence", "call_id": "r", "state": "reading", "done": 41216, "total": 61440, "left_ms": 118000}
    contract.post("served", [{"kind": "state_change", "type": "begun"}, said])
    contract.until("served", "reading", lambda d: d["server"] and d["server"]["state"] == "reading")
    shown = contract.ask("GET", f"{PROGRESS}/served", status=200)["server"]
    same("how far it is", [shown[name] for name in ("done", "total", "leftMs", "why")], [41216, 61440, 118000, None])
    row = contract.ask("GET", f"{SESSIONS}?q=served", status=200)["sessions"][0]
    same("in the list likewise", row["server"] | {"since": None}, shown | {"since": None})
    contract.post("served", [said | {"state": "hung", "text": "no token for 9 min, no CPU"}])
    contract.until("served", "hung", lambda d: d["stuckBy"] == "F5" and d["server"]["state"] == "hung")
    contract.post("served", [{"kind": "evidence", "call_id": "r", "state": "over"}])
    contract.until("served", "well again", lambda d: d["server"] is None and d["health"] == "progressing")


def silence_and_death_are_told(contract):
    ask, same, until = contract.ask, contract.tally.same, contract.until
    ask("POST", SESSIONS, {"sessionId": "unserved"}, status=201)
    same("nobody to stop", ask("POST", f"{SESSIONS}/unserved/cancel", status=200)["ended"], True)
    until("unserved", "cancelled", lambda d: d["outcome"] and (d["outcome"]["reason"], d["outcome"]["subject"]) == ("cancelled", "user"))
    quick = {"heartbeatInterval": 100}
    ask("POST", SESSIONS, {"sessionId": "quiet", "policy": quick}, status=201)
    contract.post("quiet", [{"kind": "heartbeat", "source": "sidecar"}] * 2)
    until("quiet", "silent", lambda d: d["health"] == "silent" and not d["alive"])
    with subprocess.Popen(["true"]) as gone:
        facts = facts_of(gone)
    ask("POST", SESSIONS, {"sessionId": "gone", "policy": quick} | facts, status=201)
    until("gone", "dead", lambda d: d["health"] == "dead")
    # A request for the session's progress gets the judgement of this moment. The monitor stores it a moment later.
    patience = time.monotonic() + PATIENCE_S
    transitions = functools.partial(ask, "GET", f"{SESSIONS}/gone/transitions", status=200, count=False)
    while (last := (transitions()["transitions"] or [{"health": None}])[-1])["health"] != "dead":
        assert time.monotonic() < patience, "its death is not written down"
    exits = ask("GET", f"{SESSIONS}/gone/events?kind=exited", status=200)["events"]
    same("its exit is an event", [event["pid"] for event in exits], [gone.pid])
    same("nothing is left to see", (last["health"], last["situation"]["process"]), ("dead", None))
    same("the dead end at once", ask("POST", f"{SESSIONS}/gone/cancel", {"by": "ann"}, status=200)["ended"], True)
    whole = [d["sessionId"] for d in ask("GET", f"{PROGRESS}?limit=1000", status=200)["sessions"]]
    paged = [d["sessionId"] for d in contract.pages(f"{PROGRESS}?limit=3", "sessions")]
    same("pages make the whole list, newest first", (paged, paged[0]), (whole, "gone"))


def checks_are_asked_for(contract, model):
    ask, same = contract.ask, contract.tally.same
    for goal in ("loops", "mumbles", "is not allowed", "waits", "ends"):
        ask("POST", SESSIONS, {"sessionId": goal.split()[0], "task": goal}, status=201)
        contract.post(goal.split()[0], {"kind": "state_change", "type": "step"})

    for session, state, letter in (("loops", "done", "B"), ("mumbles", "inconclusive", None), ("is", "failed", None)):
        begun = ask("POST", CHECK, {"sessionId": session, "checkId": f"check-{session}"}, status=202)
        contract.tally.same("it is being asked", (begun["state"], begun["status"]), ("pending", None))
        until = time.monotonic() + PATIENCE_S
        while (check := ask("GET", f"{CHECK}/check-{session}", status=200, count=False))["state"] == "pending":
            assert time.monotonic() < until, "no answer"
        contract.tally.same(f"what is thought of {session}", (check["state"], check["status"]), (state, letter))
        # The same question has the same answer, also from the session's events.
        again = ask("POST", CHECK, {"sessionId": session, "checkId": f"check-{session}"}, status=200)
        contract.tally.same("the same check", again | {"ts": 0}, check | {"ts": 0})  # its event is a bit later
        while len(ask("GET", f"{SESSIONS}/{session}/events?kind=opinion", status=200, count=False)["events"]) != 2:
            assert time.monotonic() < until, "question and answer are not kept"

    fresh = ask("POST", CHECK, {"sessionId": "loops", "checkId": None}, status=202)["checkId"]
    ask("GET", f"{CHECK}/{fresh}", status=200)
    # Twice is all that this server lets a session be checked.
    until = time.monotonic() + PATIENCE_S
    while ask("GET", f"{CHECK}/{fresh}", status=200, count=False)["state"] == "pending":
        assert time.monotonic() < until, "no answer"
    ask("POST", CHECK, {"sessionId": "loops"}, status=429)

    ask("POST", CHECK, {"sessionId": "waits", "checkId": "first"}, status=202)
    for again in ({"checkId": "second"}, {"checkId": "first"}, {"checkId": None}, {}):
        same(f"the one under way, asked with {again}", ask("POST", CHECK, {"sessionId": "waits"} | again, status=202)["checkId"], "first")
    ask("GET", f"{CHECK}/second", status=404, field="checkId")
    ask("POST", CHECK, {"sessionId": "waits", "checkId": "check-loops"}, status=409, field="checkId")
    model.let_go.set()
    contract.post("ends", {"kind": "end"})
    ask("POST", CHECK, {"sessionId": "ends"}, status=409, field="sessionId")
    ask("POST", CHECK, {"sessionId": "nobody"}, status=404, field="sessionId")
    for wrong in ({}, {"sessionId": ""}, {"sessionId": 1}):
        ask("POST", CHECK, wrong, status=400, field="sessionId")
    ask("POST", CHECK, {"sessionId": "loops", "checkId": "a b"}, status=422, field="checkId")
    ask("POST", CHECK, {"sessionId": "loops", "checkId": "x" * 129}, status=422, field="checkId")
    ask("GET", f"{CHECK}/nobody", status=404, field="checkId")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("monitor", help="path of watchdog-monitor")
    arguments.add_argument("schemas", type=pathlib.Path, help="folder of openapi.yaml")
    arguments.add_argument("--verbose", action="store_true", help="print every exchange")
    options = arguments.parse_args()
    tally, specification = Tally(options.verbose), Specification(options.schemas.resolve())
    contract = Contract(specification, tally)
    tally.check("openapi.yaml is well formed", list(lint(specification)))
    parts = (pages_are_served, a_trace_is_known, sweep_routes, sessions_are_made, policies_change, events_are_taken, events_are_refused, a_life_is_told,
             turns_are_told, hooks_are_told, mcp_is_spoken, telemetry_is_taken, rows_and_streams_are_told, situations_are_told, bundles_are_made, sessions_are_forgotten,
             what_the_model_server_does_is_told, silence_and_death_are_told, work_is_counted, alerts_are_told, sweep_for_undocumented)
    model = Model()
    asks_model = {"OPENAI_BASE_URL": model.url, "WATCHDOG_CHECKS_BASE_URL": model.url,
                  "WATCHDOG_INTERNAL_TIMES": "checks.per_session_max=2", "WATCHDOG_CHECKS_ON_SUSPICION": "false"}
    proxied = asks_model | {"WATCHDOG_MONITOR_BEHIND_PROXY": "true", "WATCHDOG_INTERNAL_TIMES": "monitor.requests_per_second_max=1"}
    parts += (functools.partial(checks_are_asked_for, model=model), access_is_decided)
    for more, asked in ((asks_model, parts), (proxied, (token_is_asked_for, guesses_are_counted))):
        with Server(options.monitor, more) as contract.server:
            for part in asked:
                try:
                    part(contract)
                except Exception:  # an answer lacks what was looked for in it
                    tally.check(str(part), [traceback.format_exc()])
            tally.same("the server lives", contract.server.process.poll(), None)
    for operation in specification.operations:
        for status in sorted(operation.responses.keys() - {"503", "507"}):
            seen = (operation, status) in contract.seen
            tally.check(f"{operation} was answered with {status}", [] if seen else ["it never came up"])
    print(f"{tally.passed} passed, {tally.failed} failed")
    sys.exit(int(tally.failed > 0))


if __name__ == "__main__":
    main()
