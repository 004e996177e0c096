#!/usr/bin/env python3
"""Reports that people made in public, fed to the real program. README.md says how to add one.

Usage: field_test.py MONITOR [AGENT] [--case NAME]... [--list] [--json] [--jobs N]
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import time
import tomllib
import traceback

import feeders

CASES = pathlib.Path(__file__).resolve().parent / "cases"
KEYS = {"source", "what", "feed", "right", "expected_failure", "differs", "cannot"}
# A difference in one of these means that the input did not arrive. No expected failure excuses it.
BROKEN = "broken"


class Case:
    """What the folder of a case says."""

    def __init__(self, folder):
        self.folder, self.name = folder, folder.name
        with open(folder / "case.toml", "rb") as file:
            self.told = tomllib.load(file)
        feeder = feeders.FEEDERS.get(self.told.get("feed"))
        if feeder is None:
            raise ValueError(f"feed is one of {', '.join(feeders.FEEDERS)}")
        for key in ("source", "what"):
            if not self.told.get(key):
                raise ValueError(f"it has no {key}")
        if wrong := self.told.keys() - KEYS - feeder.KEYS:
            raise ValueError(f"unknown key {', '.join(sorted(wrong))}; known are {', '.join(sorted(KEYS | feeder.KEYS))}")
        self.feeder = feeder
        self.rights = self.told.get("right", [])
        self.is_expected = "expected_failure" in self.told
        self.cannot = self.told.get("cannot")
        if self.is_expected != bool(self.told.get("differs")):
            raise ValueError("expected_failure and differs come together: differs lists the fields that are wrong today")
        if self.is_expected and self.cannot:
            raise ValueError("it has both expected_failure and cannot")
        if not self.rights and not self.cannot:
            raise ValueError("it has no [[right]]")


def same(right, seen):
    """Whether a seen value is the right one."""
    if isinstance(right, list):
        return any(same(one, seen) for one in right)
    if isinstance(right, dict):
        return isinstance(seen, (int, float)) and right.get("min", seen) <= seen <= right.get("max", seen)
    if isinstance(right, str) and right.startswith("!"):
        return not same(right[1:], seen)
    if isinstance(right, str) and len(right) > 1 and right.startswith("/") and right.endswith("/"):
        return re.search(right[1:-1], "" if seen is None else str(seen), re.I | re.S) is not None
    if right == "none":
        return seen is None
    return right == seen and isinstance(right, bool) == isinstance(seen, bool)


def flattened(table, before=""):
    """The values of nested tables under dotted names. {min, max} is one value."""
    for key, value in table.items():
        if isinstance(value, dict) and not value.keys() <= {"min", "max"}:
            yield from flattened(value, f"{before}{key}.")
        else:
            yield before + key, value


def found(document, path):
    """The value under a dotted name; a name of the document may itself have dots."""
    if path in document:
        return document[path]
    for cut in [at for at, letter in enumerate(path) if letter == "."][::-1]:
        inner = document.get(path[:cut])
        if isinstance(inner, dict):
            return found(inner, path[cut + 1:])
        number, _, rest = path[cut + 1:].partition(".")
        if isinstance(inner, list) and number.isdigit():
            one = inner[int(number) - 1] if int(number) <= len(inner) else None
            return found(one, rest) if rest and isinstance(one, dict) else one
    return None


PLACE = {"at", "session", "row", "reply", "zone", "words"}


def compared(right, document):
    """The fields that differ: name → (right, seen)."""
    if document is None:
        return {BROKEN: ("something to look at", "nothing")}
    fields = {key: value for key, value in right.items() if key not in PLACE}
    if unknown := [key for key in fields if key not in document and "missing" not in document]:
        raise feeders.Broken(f"[[right]] names {', '.join(unknown)}; here one can name {', '.join(sorted(document))}")
    return {name: (value, found(document, name)) for name, value in flattened(fields) if not same(value, found(document, name))}


def label_of(right):
    return ".".join([str(right[key]) for key in ("at", "session", "row", "reply") if key in right] + [" ".join(right[key]) for key in ("words",) if key in right])


class Outcome:
    def __init__(self, case):
        self.case, self.differences, self.trouble, self.seconds = case, {}, "", 0.0

    @property
    def word(self):
        if self.trouble:
            return "broken"
        if self.case.cannot and not self.case.rights:
            return "cannot"
        if not self.differences:
            return "right" if not self.case.is_expected else "unexpectedly right"
        if self.case.is_expected:
            listed = self.case.told["differs"]
            unlisted = [name for name in self.differences if name not in listed]
            return "expected failure" if not unlisted else "wrong in another field"
        return "wrong"

    @property
    def is_good(self):
        return self.word in ("right", "expected failure", "cannot")

    def lines(self):
        yield f"{self.word:18}  {self.case.name}  ({self.seconds:.1f} s)"
        if self.trouble:
            yield f"    {self.trouble}"
        if self.word == "cannot":
            yield f"    {self.case.cannot}"
        for name, (right, seen) in self.differences.items():
            yield f"    {name}: right is {short(right)}, seen is {short(seen)}"
        if self.word == "unexpectedly right":
            yield "    Remove expected_failure and differs from its case.toml."
        if self.word == "wrong in another field":
            yield f"    differs in its case.toml lists only {', '.join(self.case.told['differs'])}"

    def document(self):
        return {"case": self.case.name, "source": self.case.told["source"], "outcome": self.word, "good": self.is_good,
                "seconds": round(self.seconds, 1), "trouble": self.trouble or None, "cannot": self.case.cannot,
                "differences": {name: {"right": right, "seen": seen} for name, (right, seen) in self.differences.items()}}


def short(value):
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = text.replace("\n", "\\n")
    return text if len(text) <= 200 else text[:150] + " … " + text[-40:]


def tried(case, programs):
    """Feeds a case and compares. The feeder waits a moment for each right value, because an observer works beside it."""
    outcome, began = Outcome(case), time.monotonic()
    if case.cannot and not case.rights:
        return outcome
    # A fast clock takes each delay of a busy machine for a longer one, and the monitor then waits for longer.
    patience = case.told.get("patience", 1.0 if case.is_expected else 10.0 if "speed" in case.told else 3.0)

    def check(right, look):
        """Looks until nothing differs, or patience is over."""
        end = time.monotonic() + patience
        while True:
            differences = compared(right, look())
            if not differences or not case.feeder.GOES_ON or time.monotonic() > end:
                break
            time.sleep(0.1)
        label = label_of(right)
        for name, pair in differences.items():
            outcome.differences[f"{label}.{name}" if label else name] = pair

    try:
        with case.feeder(case, programs) as feeder:
            feeder.feed(check)
        if broken := [name for name in outcome.differences if name.split(".")[-1] == BROKEN]:
            outcome.trouble = f"nothing was seen at {', '.join(broken)}"
    except feeders.Broken as error:
        outcome.trouble = str(error)
    except Exception:  # one case must not end the others
        outcome.trouble = traceback.format_exc()
    outcome.seconds = time.monotonic() - began
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("monitor", help="the program watchdog-monitor")
    parser.add_argument("agent", nargs="?", help="the program watchdog-example-agent; without it, its cases are left out")
    parser.add_argument("--case", action="append", default=[], metavar="NAME", help="only cases whose name contains this; may be repeated")
    parser.add_argument("--list", action="store_true", help="list the cases and run none")
    parser.add_argument("--json", action="store_true", help="print one JSON object per case")
    parser.add_argument("--jobs", type=int, default=16, metavar="N", help="cases at a time (default 16: most of them wait)")
    options = parser.parse_args()
    cases, wrong = [], 0
    for folder in sorted(path for path in CASES.iterdir() if path.is_dir()):
        if options.case and not any(word in folder.name for word in options.case):
            continue
        try:
            cases.append(Case(folder))
        except (OSError, ValueError) as error:
            wrong += 1
            print(f"{'broken':18}  {folder.name}\n    case.toml: {error}", flush=True)
    if options.list:
        for case in cases:
            mark = "cannot" if case.cannot else "expected failure" if case.is_expected else "right"
            print(f"{mark:18}  {case.name}  {case.told['source']}\n    {case.told['what']}")
        return min(wrong, 1)
    if not cases:
        print("no case has such a name")
        return 1
    if not options.agent:
        cases = [case for case in cases if case.feeder is not feeders.Agent]
    programs = feeders.Programs(os.path.abspath(options.monitor), options.agent and os.path.abspath(options.agent))
    began, words = time.monotonic(), {}
    # Those that wait longest begin first.
    cases.sort(key=lambda case: -case.told.get("takes", 0))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(tried, case, programs) for case in cases]):
            outcome = done.result()
            words[outcome.word] = words.get(outcome.word, 0) + 1
            wrong += not outcome.is_good
            print(json.dumps(outcome.document(), default=str) if options.json else "\n".join(outcome.lines()), flush=True)
    told = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
    print(f"{len(cases)} cases in {time.monotonic() - began:.0f} s: {told}", file=sys.stderr if options.json else sys.stdout)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
