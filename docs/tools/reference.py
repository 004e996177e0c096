#!/usr/bin/env python3
"""Writes the reference pages, and the words in the clients, from the program, its schemas and headers, or compares them with
those that are committed.

Usage: reference.py --write|--check MONITOR
"""

import ast
import difflib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

import yaml

import client_words
import entities
import texts

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference"
NOTICE = "<!-- Written by docs/tools/reference.py. Change the program or the schema, then run scripts/docs --generate. -->\n"


class Program:
    """The monitor, in a home of its own."""

    def __init__(self, file, home):
        self.file, self.home = str(pathlib.Path(file).resolve()), pathlib.Path(home)
        self.environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "COLUMNS": "80"}

    def __call__(self, *words, status=(0,)):
        done = subprocess.run([self.file, *words], env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode not in status:
            raise SystemExit(f"watchdog-monitor {' '.join(words)} exited with {done.returncode}: {done.stderr}")
        return done.stdout

    def metrics(self):
        words = [self.file, "serve", "--port", "0", "--upstream", "http://127.0.0.1:9", "--proxy-port", "0", "--db", str(self.home / "metrics.db")]
        with subprocess.Popen(words, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as serving:
            try:
                url = re.search(r"http://\S+", serving.stdout.readline())[0]
                with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url + "/metrics") as answer:
                    return answer.read().decode()
            finally:
                serving.terminate()


def cell(text):
    """As a cell of a table: one line, without what ends a cell or begins markup."""
    text = " ".join(str(text).split()).replace("\\", "\\\\").replace("|", "\\|")
    return re.sub(r"<(?=[A-Za-z/])", "\\<", text)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell(column) for column in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def code(text):
    return f"`{text}`" if text not in ("", None) else ""


def joined(words, last="and"):
    words = list(words)
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" {last} " + words[-1]


def commands(program):
    return re.findall(r"^  ([a-z][\w-]*) ", program("--help"), re.M)


def options(block):
    """Yields (flag, text) of a block of a help text."""
    found = []
    # Texts begin in one column. A flag that reaches it has only one blank before its text.
    columns = [begin.end() for line in block.splitlines() if (begin := re.match(r"^  \S.*?  +(?=\S)|^ {4,}(?=\S)", line))]
    column = max(set(columns), key=columns.count) if columns else 0
    for line in block.splitlines():
        line = line.replace("{false}", " " * 7)  # the value that a flag gives a setting
        begin = re.match(rf"^  (\S.{{{max(column - 4, 0)}}}) ([^\s.].*)$", line) if column > 4 and re.match(r"^  --", line) else None
        begin = begin or re.match(r"^  (\S.*?)(?:  +(.*))?$", line)
        if begin:
            found.append([begin[1].strip(), begin[2] or ""])
        elif line.strip() and found:
            found[-1][1] += " " + line.strip()
    return found


def cli(program):
    page = NOTICE + """# Commands

`watchdog-monitor COMMAND --help` prints what is on this page. `watchdog-monitor man` prints a manual page, and
`watchdog-monitor completion bash` prints the completion script of that shell; `zsh` and `fish` work too. Exit codes have [a page of their own](exit-codes.md).

Without a command and options the program does what `serve --follow` does, prints which sessions need a person, and opens the page in the
browser. It opens none if standard output is not a terminal, if `$CI` is set, or without a display. If a monitor has the database or
the address already, it shows that monitor and ends with 0. `serve` itself ends with an error then.

"""
    names = commands(program)
    summary = {name: re.split(r"\nUsage:", program(name, "--help"))[0].replace("\n", " ") for name in names}
    page += table(("Command", "What it does"), [(f"[{name}](#{name})", summary[name]) for name in names])
    for name in names:
        page += f"\n## {name}\n\n{summary[name]}.\n"
        rest = program(name, "--help").split("\nUsage:", 1)[1]
        usage, _, rest = rest.partition("\n\n")
        page += f"\n```text\n{usage.strip()}\n```\n"
        plain = []
        for block in rest.split("\n\n"):
            title = block.split("\n", 1)[0]
            rows = options(block.split("\n", 1)[1]) if re.match(r"^[A-Z][\w ]*:$", title) and "\n  " in block and title != "Exit codes:" else []
            if rows:
                page += f"\n**{title[:-1]}**\n\n" + table(("", "Meaning"), [(code(flag), text) for flag, text in rows])
            elif block.strip():
                plain.append(block.strip("\n"))
        if plain:
            page += "\n```text\n" + "\n\n".join(plain) + "\n```\n"
    return page


def exit_codes(program):
    """From the lists in the help texts."""
    general = re.search(r"Exit codes: (.*?)\.\n", program("--help"), re.S)[1]
    general = [part.strip().split(" ", 1) for part in " ".join(general.split()).split(",")]
    def listed(command):
        lines = re.search(r"Exit codes:\n(.*?)\n\n", program(command, "--help"), re.S)[1].splitlines()
        return [line.strip().split(" ", 1) for line in lines]
    return NOTICE + f"""# Exit codes

## All commands

{table(("Code", "Meaning"), [(code(a), b) for a, b in general])}
`refused` means that the program understood the command and did not do it: a wrong token, wrong settings, or a running
session that you asked to delete.

## wait

{table(("Code", "Meaning"), [(code(a), b) for a, b in listed("wait")])}
## run

{table(("Code", "Meaning"), [(code(a), b) for a, b in listed("run")])}
The session of the command ends `completed` with exit code 0, else `failed` with the reason `process_exited`.
"""


def settings(program):
    told = json.loads(program("config", "--json"))
    known = {one["key"]: one for one in told["settings"]}
    sample, explained, section, comment = program("config", "--sample"), {}, "", []
    begun = False
    for line in sample.splitlines():
        if line.startswith("["):
            section, comment, begun = line.strip("[]"), [], True
        elif re.match(r"^#[\w]+ = ", line):
            key, value = line[1:].split(" = ", 1)
            # A key that no file may hold has a line of text, and no line of its own.
            if len(comment) > 1:
                explained[f"{section}.api_key"] = (comment[0], None)
            explained[f"{section}.{key}"] = (comment[-1] if comment else "", value)
            comment = []
        elif line.startswith("# ") and begun:
            comment.append(line[2:].strip())
        else:
            comment = []
    page = NOTICE + """# Settings

Each setting has a value from the last of these that gives one: the default, the file, the environment, the command line.
Programs that link `watchdog::agent` can set values in code; those count above the file and below the environment.

The file is `--config FILE`, else `$WATCHDOG_CONFIG`, else `watchdog/watchdog.toml` in `$XDG_CONFIG_HOME` or `~/.config`. The
working directory is never searched, because a repository could bring such a file along.

`watchdog-monitor config` prints each value and where it comes from. `watchdog-monitor config --check` finds all mistakes at
once. `watchdog-monitor config --sample --write` writes a file in which every setting is explained. [Configure the
program](../how-to/configure.md) shows these commands.

Each setting has the variable `WATCHDOG_<SECTION>_<KEY>`; the [list of variables](environment.md) has all. The tables show only flags and second
variables.

"""
    sections = {}
    for key in known:
        sections.setdefault(key.rsplit(".", 1)[0], []).append(key)
    for section, keys in sections.items():
        page += f"## [{section}]\n\n"
        rows = []
        for key in keys:
            text, value = explained.get(key, ("", None))
            default = known[key]["value"]
            if value == "…" or default in (None, ""):
                default = "none"
            else:
                default = json.dumps(default, ensure_ascii=False)
            names = [code("$" + name) for name in known[key]["variables"][:-1]]
            # Keys that many tables have are explained at the first.
            text = text or next((words for other, (words, _) in explained.items() if words and other.rsplit(".", 1)[1] == key.rsplit(".", 1)[1]), "")
            text = re.sub(r"; (?:\$|--)[\w-]+", "", text).replace(" (a text)", "")
            rows.append((code(key.rsplit(".", 1)[1]), code(default) if default != "none" else default, text,
                         " ".join(filter(None, [code(known[key]["flag"]), *names]))))
        width = 4 if any(row[3] for row in rows) else 3
        page += table(("Key", "Default", "Meaning", "Flag, variable")[:width], [row[:width] for row in rows]) + "\n"
    # Tables that come with some names are above.
    has_names = lambda one: any(key.startswith(one["key"].split("NAME")[0]) for key in known)
    return page + own_names([one for one in told["named"] if not has_names(one)])


# The meaning of each table that has a name of the user's own.
OWN_TABLES = {
    "alerts.channels": "A channel for [alerts](../how-to/alerts.md).",
    "proxy.upstreams": "A further model server.",
    "proxy.budgets": "A [budget](../how-to/limit-tokens-and-cost.md) of agents that use the proxy.",
    "proxy.prices": "What some models cost.",
    "recovery.rules": "A rule that [acts on looping agents](../how-to/let-the-monitor-act.md).",
    "policy.tools": "How calls of one tool count in the search for repetition."}


def own_names(named):
    page, tables = "## Names of your own\n\nYou choose NAME in these sections. No key has a default.\n\n", {}
    for one in named:
        table_name, key = one["key"].split(".NAME.")
        tables.setdefault(table_name, []).append((code(key), one["help"]))
    for table_name, rows in tables.items():
        page += f"### [{table_name}.NAME]\n\n{OWN_TABLES[table_name]}\n\n" + table(("Key", "Meaning"), rows) + "\n"
    return page.rstrip("\n") + "\n"


def kind_of(schema):
    """A field's type and range in words."""
    if "enum" in schema:
        return joined([code(one) for one in schema["enum"] if one is not None], "or")
    types = [one for one in ([schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])) if one != "null"]
    text = joined(types, "or") if types else "any JSON"
    if "maxLength" in schema:
        text += f", at most {schema['maxLength']} bytes"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None and high < 1 << 53:
        text += f" from {low} to {high}"
    elif low is not None and low > -(1 << 62):
        text += f" from {low}"
    return text


def about(schema, kind="", field=""):
    """The text of texts.py, else A description without the words about null, and of `Of a KIND: …` only that kind's part."""
    if (kind, field) in texts.FIELDS:
        return texts.FIELDS[kind, field]
    text = schema.get("description", "")
    text = re.sub(r"\bNull[^:.]*: [^.;]*[.;]?", "", text).strip()
    own = re.search(rf"(?:^|[;.] )[Oo]f (?:an? )?{kind}(?:'s end)?(?:, and needed there)?: ([^;]*)", text) if kind else None
    if own:
        text = own[1].strip()
    else:
        text = re.sub(r"^Of (?:an? )?[\w ]+?(?:, and needed there)?: ", "", text)
    text = text.strip(" ;")
    return (text[:1].upper() + text[1:]).rstrip(".") + "." if text else ""


def events(program):
    schema = json.loads((ROOT / "schemas/event.schema.json").read_text())
    fields, kinds = schema["properties"], schema["properties"]["kind"]["examples"]
    complete("event kinds", kinds, texts.KINDS)
    used = {name for _, names in texts.KINDS.values() for name in names} | set(texts.EVERY_KIND)
    complete("event fields", fields, used)
    page = NOTICE + f"""# Events

An event is one thing that an agent reports about its session. Agents post events to
`POST /api/autonomous/sessions/{{sessionId}}/events`: one JSON object, an array, or one object per line (NDJSON).
[Report over HTTP](../how-to/report-over-http.md) shows how. The schema is
[schemas/event.schema.json](../../schemas/event.schema.json).

An event has at most 1048576 bytes. Unknown fields are ignored. A request with only unknown kinds is refused.

{table(("Kind", "Meaning"), [(f"[{kind}](#{kind})", texts.KINDS[kind][0]) for kind in kinds])}
## Fields of every kind

{table(("Field", "Type", "Meaning"), [(code(name), "one of the kinds above", "What the event says.") if name == "kind" else (code(name), kind_of(fields[name]), about(fields[name])) for name in texts.EVERY_KIND])}"""
    for kind in kinds:
        meaning, names = texts.KINDS[kind]
        page += f"\n## {kind}\n\n{meaning}\n\n"
        page += table(("Field", "Type", "Meaning"), [(code(name), kind_of(fields[name]), about(fields[name], kind, name)) for name in names])
        example = texts.EXAMPLES.get(kind) or next(one for one in schema["examples"] if one["kind"] == kind)
        page += "\n```json\n" + json.dumps(example, ensure_ascii=False) + "\n```\n"
    return page


def policy(program):
    schema = json.loads((ROOT / "schemas/policy.schema.json").read_text())
    fields, patterns = schema["properties"], schema["properties"]["patterns"]["properties"]
    default = lambda one: (re.search(r"Default ([^.]*(?:\.\d+)*)", one["description"]) or ["", "none"])[1]
    text = lambda one: re.sub(r" ?Default .*$", "", about(one))
    page = NOTICE + f"""# Policy

A policy is the set of thresholds of one session. No threshold ends a session: thresholds only change what the monitor
concludes. Set them for one session when you create it (`"policy": {{"stuckThreshold": 8}}`), or while it runs
(`PATCH /api/autonomous/sessions/{{sessionId}}`). The [settings](settings.md) in `[policy]` hold for all sessions.
[Tune false alarms](../how-to/tune-false-alarms.md) says which threshold to change when.

{table(("Threshold", "Type", "Default", "Meaning"), [(code(name), kind_of(one), default(one), text(one)) for name, one in fields.items() if name not in ("patterns", "tools")])}
## Patterns of repetition

`patterns` holds two counts for each pattern: `suspect`, from which on the session is suspect, and `stuck`, from which on it is
looping. `stuck` 0 means never.

{table(("Pattern", "Name", "Defaults", "What is counted"), [(code(name), texts.FINDINGS[name][0], default(one), text(one)) for name, one in patterns.items()])}
## Tools

`tools` says how calls of one tool count, by the tool's name.

{table(("Field", "Meaning"), [(code(name), about(one)) for name, one in fields["tools"]["additionalProperties"]["properties"].items()])}
```json
{{"policy": {{"tools": {{"build_status": {{"use": "poll"}}, "next_page": {{"use": "paging"}}, "search": {{"identity": ["query"]}}}}}}}}
```
"""
    return page


def names_in(header, enum):
    text = (ROOT / "libwatchdog/include/watchdog" / header).read_text()
    return re.findall(r'"([^"]+)"', re.search(rf"struct Names<{enum}> \{{.*?\}};", text, re.S)[0])


def healths(program):
    kinds = names_in("health.h", "HealthKind")
    complete("healths", kinds, texts.HEALTHS)
    progress = json.loads((ROOT / "schemas/progress.schema.json").read_text())["properties"]
    patterns = [one for one in names_in("policy.h", "Pattern") if one != "none"]
    complete("findings", patterns, texts.FINDINGS)
    lifecycle = progress["lifecycle"]["enum"]
    attention = progress["attention"]["enum"]
    return NOTICE + f"""# Healths and findings

The health is what the monitor concludes about a session that runs. It never ends the session. [Concepts](../explanation/concepts.md)
explains the words.

{table(("Health", "When", "What to do"), [(code(kind), *texts.HEALTHS[kind]) for kind in kinds])}
Each health comes with a reason in words, with the events that prove it (`evidence`), and with the time at which the monitor
looks again although no event arrived (`validUntil`).

## Lifecycle, attention, state

The **lifecycle** is what the agent itself reported: {joined([code(one) for one in lifecycle], "or")}.

The **attention** says whether a person has to act: {joined([code(one) for one in attention], "or")}.

| Attention | Healths and ends |
|---|---|
| `needs_you` | a person: the session waits for a person, is stuck, looping, dead or silent, or failed or ended incomplete within the last 24 hours |
| `ready` | a person, when it suits: the turn is over, less than 24 hours ago, and nothing goes on without the model. A turn that only the proxy saw rests, because its client may be a program |
| `watch` | perhaps a person, later: the session is suspect, or waits for something else |
| `working` | the agent |
| `resting` | nobody |

The **state** is one word for people. It is the health, or the kind of wait, or how the session ended:
{joined([code(one) for one in progress["state"]["enum"]], "or")}.

## Findings and patterns

`stuckBy` in the progress document and `explain` name what decided. Codes are stable; the words may change.

{table(("Code", "Name", "What the monitor saw"), [(code(one), *texts.FINDINGS[one]) for one in patterns])}
The thresholds of the patterns are part of the [policy](policy.md).
"""


def end_reasons(program):
    text = (ROOT / "libwatchdog/include/watchdog/reasons.h").read_text().split("all[]")[0]
    groups, outcome = {}, ""
    for line in re.finditer(r"^// (\w+)$|(?:^|\n)inline constexpr std::string_view \w+ =\s+\"(\w+)\"", text, re.M):
        if line[1]:
            outcome = line[1]
        else:
            groups.setdefault(outcome, []).append(line[2])
    complete("end reasons", [one for group in groups.values() for one in group], texts.REASONS)
    page = NOTICE + """# How sessions end

A session ends when its agent says so, or after a cancel. The end has an outcome, a reason for programs, and sometimes a
subject: what the reason is about. Elapsed time alone never ends a session. The two reasons that name a limit exist
only where somebody turned that limit on.

Agents may give reasons of their own. The reasons below are those of the library, the monitor and the hooks.

"""
    for outcome, names in groups.items():
        page += f"## {outcome}\n\n" + table(("Reason", "Meaning"), [(code(one), texts.REASONS[one]) for one in names]) + "\n"
    return page


def http_api(program):
    api = yaml.safe_load((ROOT / "schemas/openapi.yaml").read_text())
    resolve = lambda one: api["components"][one["$ref"].split("/")[2]][one["$ref"].split("/")[3]] if "$ref" in one else one
    page = NOTICE + """# HTTP API

[schemas/openapi.yaml](../../schemas/openapi.yaml) is the whole contract, with the schemas of all bodies. A test holds the
server to it. This page lists what there is. [Report over HTTP](../how-to/report-over-http.md) is a
guide, and [HTTP examples](http-examples.md) has a request and an answer for each kind of operation. [Error codes](errors.md) have a page of their own.

"""
    operations = [(method.upper(), path, one, item) for path, item in api["paths"].items()
                  for method, one in item.items() if method in ("get", "post", "patch", "put", "delete")]
    page += table(("Method", "Path", "What it does"), [(m, code(p), f"[{one['summary']}](#{one['operationId'].lower()})") for m, p, one, _ in operations])
    for tag in api["tags"]:
        page += f"\n## {tag['name'].capitalize()}\n"
        for method, path, one, item in operations:
            if tag["name"] not in one["tags"]:
                continue
            page += f"\n### {one['operationId']}\n\n`{method} {path}`\n\n{one.get('description', one['summary'] + '.').strip()}\n\n"
            parameters = [resolve(each) for each in one.get("parameters", []) + item.get("parameters", [])]
            if parameters:
                page += table(("Parameter", "In", "Type", "Meaning"),
                              [(code(each["name"]), each["in"], kind_of(resolve(each.get("schema", {}))) if "$ref" not in each.get("schema", {}) else "see the contract",
                                each.get("description", "")) for each in parameters]) + "\n"
            page += table(("Status", "Meaning"), [(code(status), resolve(answer).get("description", "").strip().split("\n\n")[0]) for status, answer in one["responses"].items()])
    return page + "\n## General rules\n\n" + re.sub(r"\*\*(\w+)\.\*\*", r"**\1.**", api["info"]["description"].strip()) + "\n"


def metrics(program):
    text = program.metrics()
    rows = []
    for name, words in re.findall(r"^# HELP (\w+) (.*)$", text, re.M):
        kind = re.search(rf"^# TYPE {name} (\w+)$", text, re.M)[1]
        labels = []
        for found in re.findall(rf"^{name}(?:_bucket)?\{{(.*?)\}}", text, re.M):
            labels += [one for one in re.findall(r'(\w+)=', found) if one not in labels and one != "le"]
        rows.append((code(name), kind, " ".join(map(code, labels)), words))
    return NOTICE + f"""# Metrics

`GET /metrics` has these, in the format that Prometheus reads. No label holds a session's id or anything that an agent said.
[Monitor the monitor](../how-to/monitor-the-monitor.md) has rules and a dashboard.

{table(("Metric", "Type", "Labels", "Meaning"), rows)}"""


def client_limits(program):
    limits = json.loads(program("doctor", "--upstream", "http://127.0.0.1:9", "--json", status=(4,)))["clientLimits"]
    counts = {"headers": "until the answer's head", "bytes": "between two bytes", "events": "between two parsed events", "total": "the whole answer"}
    complete("what limits count", {one["counts"] for one in limits}, counts)
    rows = [(one["client"], one["name"], f"{one['defaultMs'] // 1000} s", counts[one["counts"]], one["proxy"], one["setting"],
             one["measured"] or "not measured") for one in limits]
    resets = {"unknown": "unknown", "nothing": "no", "progress": "yes, by each"}
    tools = [(one["client"], code(one["setting"]) if " " not in one["setting"] else one["setting"], f"{one['defaultMs'] // 1000:,} s", one["then"],
              resets[one["resetBy"]]) for one in json.loads(program("doctor", "--json"))["toolLimits"]]
    return NOTICE + f"""# Time limits of clients

These are the limits that clients have by default, and what the proxy does about each. Most come from the clients' sources and
manuals of August 2026. The last column names the version with which the limit and the way through the proxy were measured. `scripts/agents --coding --slow`
measures them again. Newer versions may differ. `watchdog-monitor doctor` prints the same table.
[Keep-alives](../explanation/keep-alives.md) explains how a limit is avoided.

{table(("Client", "Limit", "Default", "It counts the time", "Through the proxy", "Setting", "Measured with"), rows)}
## MCP clients

These limits end calls of tools, or the start of a tool server. `watchdog-monitor doctor` shows those of the clients on your machine with
their present values. `watchdog-monitor mcp-proxy` gives up only [calls that do not move](../how-to/mcp.md).

{table(("Client", "Setting", "Default", "Then", "Reset by progress"), tools)}"""


def environment(program):
    known = json.loads(program("config", "--json"))["settings"]
    rows = [(code("$" + name), code(one["key"])) for one in known for name in one["variables"]]
    return NOTICE + f"""# Environment variables

## Variables that are not settings

| Variable | Who reads it | Meaning |
|---|---|---|
| `$WATCHDOG_SERVER` | commands, clients | URL of the monitor. For the Python and JavaScript clients, empty means: report nothing |
| `$WATCHDOG_SESSION` | clients, hooks, `run` | id of the session to report to. `run` sets it for its command |
| `$WATCHDOG_REPORTER` | clients | the process whose reporter has `$WATCHDOG_SESSION` open, set by the clients for programs that it starts |
| `$WATCHDOG_TOKEN` | monitor, commands, clients | a token. For the monitor it is one more token with all scopes |
| `$WATCHDOG_CONFIG` | monitor, commands, agents | path of the settings file |
| `$WATCHDOG_EXEC` | agents that use `watchdog::agent` | path of the helper program `watchdog-exec` |
| `$XDG_CONFIG_HOME`, `$XDG_STATE_HOME` | all | where the settings file and the database are |
| `$CODEX_HOME` | `doctor`, `follow`, `serve --follow` | where Codex keeps its files |
| `$GEMINI_CLI_HOME` | `doctor`, `follow`, `serve --follow` | the folder in which Gemini CLI keeps `.gemini` |
| `$XDG_DATA_HOME` | `doctor`, `follow`, `serve --follow` | where opencode keeps its database |
| `$CLAUDE_CONFIG_DIR` | `doctor`, `follow`, `serve --follow` | where Claude Code keeps its files |

## Variables of settings

Each [setting](settings.md) has a variable. Some have a second one that other programs use as well. If a key has a name in it, of a
channel, a tool, an upstream or a type of agent, the variable has that name in upper case: `$WATCHDOG_ALERTS_CHANNELS_OPS_TYPE` is the
type of the channel `ops`.

{table(("Variable", "Setting"), rows)}"""


def signature(function, name=None, constants={}):
    arguments = re.sub(r"=(_[A-Z_]+)\b", lambda found: "=" + constants.get(found[1], found[1]), ast.unparse(function.args))
    arguments = re.sub(r"^self(, )?", "", arguments)
    returns = f" -> {ast.unparse(function.returns)}" if function.returns and not name else ""
    return f"{'async ' if isinstance(function, ast.AsyncFunctionDef) else ''}{name or function.name}({arguments}){returns}"


FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef


def is_decorated(function, name):
    return any(isinstance(one, ast.Name) and one.id == name for one in function.decorator_list)


def attributes(node, source):
    """The public attributes of a class: those with a comment `#:`."""
    begin = next((one for one in node.body if isinstance(one, FUNCTIONS) and one.name == "__init__"), None)
    rows = []
    for one in [*node.body, *(begin.body if begin else ())]:
        target = one.target if isinstance(one, ast.AnnAssign) else one.targets[0] if isinstance(one, ast.Assign) else None
        said = re.search(r"#: (.*)", source[one.end_lineno - 1]) if target else None
        name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "_")
        if said and not name.startswith("_"):
            kind = f": {ast.unparse(one.annotation)}" if isinstance(one, ast.AnnAssign) else ""
            rows.append(f"| `{name}{kind}` | {said[1]} |")
    return "\n| Attribute | Meaning |\n|---|---|\n" + "\n".join(rows) + "\n" if rows else ""


def python(program):
    page = NOTICE + """# Python interface

[Report from code](../how-to/report-from-code.md#python) has an example. The package needs Python 3.9 or newer and nothing else, the plug-in
needs pytest, and each integration its framework.

"""
    package = ROOT / "clients/python/watchdog_client"
    files = [package / "__init__.py", package / "pytest_plugin.py", package / "integrations/__init__.py", *sorted(package.glob("integrations/[a-z]*.py"))]
    for path in files:
        source = path.read_text()
        tree, lines = ast.parse(source), source.split("\n")
        constants = {one.targets[0].id: ast.unparse(one.value) for one in tree.body if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)}
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts).replace(".__init__", "")
        page += f"## {name}\n\n```text\n{ast.get_docstring(tree)}\n```\n"
        for node in tree.body:
            if not isinstance(node, (ast.ClassDef, *FUNCTIONS)) or node.name.startswith("_") or not ast.get_docstring(node):
                continue
            if isinstance(node, FUNCTIONS):
                is_fixture = any("fixture" in ast.unparse(one) for one in node.decorator_list)
                page += f"\n### {node.name}\n\n" + ("" if is_fixture else f"```python\n{signature(node, constants=constants)}\n```\n\n") + f"{ast.get_docstring(node)}\n"
                continue
            begin = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
            page += f"\n### {node.name}\n"
            is_error = any(isinstance(base, ast.Name) and base.id in ("Exception", "AssertionError") for base in node.bases)
            if begin and not is_error and "integrations" not in name and node.name != "ToolCall":
                page += f"\n```python\n{signature(begin, node.name, constants)}\n```\n"
            page += f"\n{ast.get_docstring(node)}\n{attributes(node, lines)}"
            if "integrations." in name:
                continue
            methods = [one for one in node.body if isinstance(one, FUNCTIONS) and not one.name.startswith("_") and not is_decorated(one, "overload")]
            for method in methods:
                if not ast.get_docstring(method):
                    raise SystemExit(f"{path}: {method.name} has no sentence")
                shown = method.name + ": " + ast.unparse(method.returns) if is_decorated(method, "property") else signature(method, constants=constants)
                page += f"\n```python\n{shown}\n```\n\n{ast.get_docstring(method)}\n"
    return page


def complete(what, found, described):
    found, described = set(found), set(described)
    if found != described:
        raise SystemExit(f"{what}: docs/tools/texts.py lacks {sorted(found - described)} and has {sorted(described - found)} too many")


WRITERS = {"cli": cli, "exit-codes": exit_codes, "settings": settings, "events": events, "policy": policy, "healths": healths,
           "end-reasons": end_reasons, "http-api": http_api, "metrics": metrics, "client-limits": client_limits, "environment": environment, "python": python}


def main(mode, monitor):
    differ = [name for name in client_words.main(mode) if mode == "--check"]  # first: the pages show the clients
    with tempfile.TemporaryDirectory() as home:
        program = Program(monitor, home)
        texts_of = {name: write(program) for name, write in WRITERS.items()}
        entities.read(home)
        texts_of |= {name: NOTICE + text for name, text in entities.pages(home).items()}
        for name, text in texts_of.items():
            path = PAGES / f"{name}.md"
            text = re.sub(r"[ \t]+$", "", text, flags=re.M).rstrip("\n") + "\n"
            old = path.read_text() if path.exists() else ""
            if mode == "--write":
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            elif text != old:
                differ.append(name)
                print("\n".join(list(difflib.unified_diff(old.splitlines(), text.splitlines(), f"docs/reference/{name}.md", "program", lineterm="", n=0))[:20]))
        for path in sorted((PAGES / "cpp").glob("*.md")):
            if f"cpp/{path.stem}" not in texts_of:  # of a header that is gone
                differ += [f"cpp/{path.stem}"] if mode == "--check" else []
                path.unlink() if mode == "--write" else None
    if differ:
        print(f"These reference pages or clients differ from the program: {', '.join(differ)}. Run: scripts/docs --generate")
    return 1 if differ else 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("--write", "--check"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
