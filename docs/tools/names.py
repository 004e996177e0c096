#!/usr/bin/env python3
"""Checks that what the documentation names exists: commands, flags, settings, variables, routes, metrics, reasons, log messages, files of links.

Usage: names.py MONITOR [FILE...]   Without FILE: README.md and all pages of docs/.
"""

import json
import pathlib
import re
import sys
import tempfile
import tomllib

import yaml

import reference
import texts

ROOT = reference.ROOT
# Variables and options of builds and tests, and those of the environment that `run` and the clients use.
OTHER_VARIABLES = {"WATCHDOG_AGENT", "WATCHDOG_MONITOR", "WATCHDOG_TESTS", "WATCHDOG_BENCH", "WATCHDOG_WERROR", "WATCHDOG_SANITIZE", "WATCHDOG_SEED",
                   "WATCHDOG_FULL", "WATCHDOG_SERVER", "WATCHDOG_SESSION", "WATCHDOG_TOKEN", "WATCHDOG_CONFIG", "WATCHDOG_EXEC", "WATCHDOG_OK",
                   "WATCHDOG_CANCEL", "WATCHDOG_COMPLETED", "WATCHDOG_DRAW",
                   "WATCHDOG_REPORTER",  # of the clients, for programs that they start
                   "WATCHDOG_PROGRAM",  # of the test plug-ins
                   "WATCHDOG_WAITED_FOR", "WATCHDOG_PROVIDER",  # of recovery.on_ready
                   "WATCHDOG_RULE",  # of a rule's command
                   "WATCHDOG_BUILD"}  # of blocks.py


class Names:
    def __init__(self, program):
        self.flags = {}
        for command in reference.commands(program):
            text = program(command, "--help")
            self.flags[command] = set(re.findall(r"(?<![\w-])(--?[A-Za-z][\w-]*)", text))
        self.top = set(re.findall(r"(?<![\w-])(--?[A-Za-z][\w-]*)", program("--help")))
        self.all_flags = set().union(self.top, *self.flags.values())
        told = json.loads(program("config", "--json"))
        settings, self.named = told["settings"], {one["key"] for one in told["named"]}
        # The variable of a key in a table whose names the user chooses.
        self.own_variable = re.compile("|".join(re.sub(r"\.NAME\b", ".[A-Z_]+", f"WATCHDOG.{key.upper()}").replace(".", "_") for key in self.named))
        self.keys = {one["key"] for one in settings}
        self.sections = {key.split(".")[0] for key in self.keys}
        self.variables = {name for one in settings for name in one["variables"]} | OTHER_VARIABLES
        api = yaml.safe_load((ROOT / "schemas/openapi.yaml").read_text())
        self.routes = [re.compile(re.sub(r"\\\{\w+\\\}|\{\w+\}", "[^/]+", path.replace(".", r"\.")) + "$") for path in api["paths"]]
        self.metrics = set(re.findall(r"^# HELP (\w+)", program.metrics(), re.M))
        self.policy = set(json.loads((ROOT / "schemas/policy.schema.json").read_text())["properties"])

    def is_metric(self, name):
        return name in self.metrics or re.sub(r"_(bucket|sum|count)$", "", name) in self.metrics


# A setting in a text is written as `section.key`; these look alike and are not.
NOT_SETTINGS = {"run.h", "model.gguf", "tools.h", "run.go", "proxy.ts", "policy.schema.json", "policy.h", "model.py", "checks.h"}


def is_code(text, offset):
    """In a block of code, or right behind a backtick."""
    return text[offset - 1:offset] == "`" or len(re.findall(r"^ *```", text[:offset], re.M)) % 2 == 1


def leaves(tree, path=()):
    for key, value in tree.items():
        yield from leaves(value, (*path, key)) if isinstance(value, dict) else [(*path, key)]


def wrong_settings(text, names):
    """Keys of a block of TOML in our sections."""
    for path in leaves(tomllib.loads(text)):
        own = ".".join((*path[:2], "NAME", *path[3:]))
        if path[0] in names.sections and ".".join(path) not in names.keys and own not in names.named:
            yield ".".join(path)


def wrong_names(text, names):
    """Yields (offset, what)."""
    for found in re.finditer(r"watchdog-monitor ((?:[a-z-]+))\b([^`\n|;&]*)", text):
        command, rest = found[1], found[2]
        if command not in names.flags:
            if not command.startswith("-") and is_code(text, found.start()):
                yield found.start(), f"command {command}"
            continue
        rest = rest.split(" -- ")[0]
        for flag in re.findall(r"(?<![\w-])(--[a-z][\w-]*|-[a-z])(?![\w-])", re.sub(r"\"[^\"]*\"|'[^']*'", "", rest)):
            if flag not in names.flags[command] and flag not in ("-h", "--help"):
                yield found.start(), f"{flag} of {command}"
    for found in re.finditer(r"`(--[a-z][\w-]*)[^`]*`", text):
        if found[1] not in names.all_flags and found[1] not in FOREIGN_FLAGS:
            yield found.start(), f"flag {found[1]}"
    for found in re.finditer(r"`([a-z_]+)\.([a-z_]+(?:\.[\w]+)?)(?: = [^`]*)?`", text):
        key = f"{found[1]}.{found[2]}"
        if found[1] in names.sections and key not in names.keys and key not in NOT_SETTINGS and not key.endswith((".md", ".db", ".py", ".h")):
            yield found.start(), f"setting {key}"
    for found in re.finditer(r"^```toml\n(.*?)^```", text, re.M | re.S):
        if not re.search(r"^model_provider|^notify", found[1], re.M):  # another program's
            yield from ((found.start(), f"setting {key}") for key in wrong_settings(found[1], names))
    for found in re.finditer(r"\breason `(\w+)`", text):
        if found[1] not in texts.REASONS:
            yield found.start(), f"reason {found[1]}"
    for found in re.finditer(r"(?:health=|--health )([a-z]\w+)", text):
        if found[1] not in texts.HEALTHS:
            yield found.start(), f"health {found[1]}"
    for found in re.finditer(r"\bF\d+\b|\bR\d+b?\b", text):
        if found[0] not in texts.FINDINGS:
            yield found.start(), f"finding {found[0]}"
    for found in re.finditer(r"\b((?:WATCHDOG|AUTONOMOUS|AGENT_TOOL)_[A-Z_]+[A-Z])\b", text):
        if found[1] not in names.variables and not names.own_variable.fullmatch(found[1]):
            yield found.start(), f"variable {found[1]}"
    for found in re.finditer(r"(?<![\w./])/(?:api|healthz|readyz|metrics)\b[\w/{}.-]*", text):
        path = found[0].rstrip(".")
        if path.startswith("/api/") and re.match(r"/api/(chat|ps|generate|version|tags|show|(v0|v1|extra)(/[\w/]+)?)$", path):
            continue  # a model server's
        if not any(route.match(re.sub(r"\{\w+\}|ID|SESSION|AGENT", "x", path)) for route in names.routes):
            yield found.start(), f"route {path}"
    for found in re.finditer(r"`(watchdog_[a-z_]+)`", text):
        if not names.is_metric(found[1]) and found[1] not in FOREIGN_METRICS:
            yield found.start(), f"metric {found[1]}"


def dead_links(page, text):
    """Yields (offset, what) of links to files that do not exist. Sphinx checks those between pages of docs/ itself."""
    prose = re.sub(r"^ *```.*?^ *```$", lambda found: " " * len(found[0]), text, flags=re.M | re.S)
    for found in re.finditer(r"\]\(([^)\s#]+)(?:#[^)]*)?\)|(?:src|srcset)=\"([^\"]+)\"", prose):
        target = found[1] or found[2]
        if not re.match(r"[a-z]+:", target) and not (page.parent / target).exists():
            yield found.start(), f"file {target}"


def wrong_messages():
    """Yields each text that the program logs and the page of log messages lacks, and the other way round."""
    call = r"(?:\boptions_?\.log|\blog_|spdlog::(?:info|warn))\(((?:[^;\"]|\"(?:[^\"\\]|\\.)*\")*);"
    logged, everything = [], ""
    for file in sorted([*(ROOT / "monitor").rglob("*.cpp"), *(ROOT / "libwatchdog/src").rglob("*.cpp")]):
        text = re.sub(r'"\s*"', "", file.read_text())
        everything += text
        for found in re.finditer(call, text):
            logged += [part for text in re.findall(r'"((?:[^"\\]|\\.)*)"', found[1]) for part in text.split("{}")]
    logged = {part.strip(" ,:") for part in logged if len(part.strip(" ,:")) > 3}
    page = ROOT / "docs/reference/log-messages.md"
    rows = [row.split(" | ")[0].strip("| ") for row in page.read_text().splitlines() if row.startswith("| ")]
    documented = {part.strip(" ,:") for row in rows if row not in ("Message",) for part in row.split("…") if part.strip(" ,:")}
    for part in sorted(logged - documented - NOT_LOGGED):
        yield page, f"row for the logged text “{part}”"
    for part in sorted(one for one in documented if one not in everything):
        yield page, f"logged text “{part}”"


# Parts of a message that stand for its `…`.
NOT_LOGGED = {"an open request", "open requests", "the collector answers", "the ping's server says"}
FOREIGN_FLAGS = set("--allow-env --allow-net --metrics --no-slots --sleep-idle-seconds --enable-metrics --max-time --timeout --prefix --session-id "
                    "--preset --build --install --watchdog-server --watchdog-program --watchdog-missing "
                    "--only --check --full --generate --monitor --output --sign --verify --no-sandbox --gtest_filter --cflags --omit".split())
FOREIGN_METRICS = {"watchdog_client", "watchdog_tracker", "watchdog_open"}


def main(monitor, *files):
    pages = [pathlib.Path(file) for file in files] or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    linking = pages if files else [*pages, *ROOT.glob("*.md"), *(page for folder in ("libwatchdog", "monitor", "clients") for page in (ROOT / folder).rglob("*.md"))]
    count = 0
    with tempfile.TemporaryDirectory() as home:
        names = Names(reference.Program(monitor, home))
    for page in pages:
        if page.parent == ROOT / "docs/reference/cpp":  # comments of headers, which the compiler reads
            continue
        text = page.read_text()
        for offset, what in wrong_names(text, names):
            count += 1
            print(f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, offset) + 1}: there is no {what}")
    for page in linking:
        text = page.read_text()
        for offset, what in dead_links(page, text):
            count += 1
            print(f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, offset) + 1}: there is no {what}")
    for page, what in () if files else wrong_messages():
        count += 1
        print(f"{page.relative_to(ROOT)}: there is no {what}")
    print(f"{len(pages)} pages, {count} names that do not exist")
    return 1 if count else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
