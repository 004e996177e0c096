#!/usr/bin/env python3
"""Writes the kinds of events and their fields from schemas/event.schema.json into the clients, or compares them.

Usage: client_words.py --write|--check
"""

import json
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN = "--- Words of schemas/event.schema.json, written by scripts/docs --generate"
END = "--- end of the words"


def kinds_in(schema):
    """The kinds to which a part of the schema binds a field, without those that it excludes."""
    if isinstance(schema, list):
        return set().union(*map(kinds_in, schema))
    if not isinstance(schema, dict):
        return set()
    found = set()
    for name, part in schema.items():
        if name == "kind":
            found |= {part["const"]} if "const" in part else set(part.get("enum", ()))
        elif name != "not":
            found |= kinds_in(part)
    return found


def words():
    """Returns the fields of all kinds, and those of each kind."""
    schema = json.loads((ROOT / "schemas/event.schema.json").read_text(encoding="utf-8"))
    fields, bound = schema["properties"], schema["$defs"]["stored"]["dependentSchemas"]
    of_field = {field: kinds_in(rule) for field, rule in bound.items()}
    for field, rule in bound.items():  # A field that another one requires belongs to the same kinds.
        for needed in rule.get("required", ()):
            of_field.setdefault(needed, set()).update(of_field[field])
    every = [field for field in fields if not of_field.get(field)]
    return every, {kind: [field for field in fields if kind in of_field.get(field, ())] for kind in fields["kind"]["examples"]}


def lines(text, quote, join):
    """The text as strings of a source file, one a line, that are joined."""
    parts = textwrap.wrap(text, 110) or [""]
    return join.join(f"{quote}{part}{' ' if part is not parts[-1] else ''}{quote}" for part in parts)


def python():
    every, own = words()
    text = f"_every_kind = {lines(' '.join(every), chr(34), ' ' + chr(92) + chr(10) + '    ')}.split()\n_kinds = {{\n"
    for kind, fields in own.items():
        text += f'    "{kind}": {lines(" ".join(fields), chr(34), chr(10) + " " * 8)},\n'
    return text + "}\n"


def javascript():
    every, own = words()
    text = f"const everyKind = {lines(' '.join(every), chr(39), ' +' + chr(10) + '  ')}.split(' ');\nconst kinds = {{\n"
    for kind, fields in own.items():
        text += f"  {kind}: {lines(' '.join(fields), chr(39), ' +' + chr(10) + '    ')},\n"
    return text + "};\n"


def types():
    rows = textwrap.wrap(" ".join(f"'{kind}'" for kind in words()[1]), 90)
    return "export type EventKind =\n" + "\n".join("  | " + " | ".join(row.split()) for row in rows) + ";\n"


WRITERS = {"clients/python/watchdog_client/__init__.py": python, "clients/javascript/watchdog.js": javascript, "clients/javascript/watchdog.d.ts": types}


def main(mode):
    """Returns the files that differ, after it wrote them if `mode` says so."""
    differ = []
    for name, write in WRITERS.items():
        path = ROOT / name
        old = path.read_text(encoding="utf-8")
        pattern = rf"((?:#|//) {re.escape(BEGIN)}\n).*?((?:#|//) {re.escape(END)}\n)"
        new, count = re.subn(pattern, lambda found: found[1] + write() + found[2], old, flags=re.S)
        if count != 1:
            raise SystemExit(f"{name} has no place for the words: it needs the lines “{BEGIN}” and “{END}”")
        if new != old:
            differ.append(name)
            if mode == "--write":
                path.write_text(new, encoding="utf-8")
    return differ


if __name__ == "__main__":
    if sys.argv[1:] not in (["--write"], ["--check"]):
        sys.exit(__doc__)
    found = main(sys.argv[1])
    if sys.argv[1] == "--check" and found:
        sys.exit(f"The words of {', '.join(found)} differ from schemas/event.schema.json. Run: scripts/docs --generate")
