#!/usr/bin/env python3
"""The public headers as doxygen reads them: which entities have no documentation, and the pages that show all.

Usage: entities.py   Prints each entity without documentation, and fails if there is one.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "libwatchdog/include"
# Not installed from here, or shown on a page of their own.
APART = ("exec_place.h", "reasons.h")
# These need no words of their own: tables of names, comparisons, special members, the export macro.
SILENT = re.compile(r"Names<|Member all\b|operator==|~|&&\)|WATCHDOG_API")


def headers():
    """The headers in the order of their list."""
    return re.findall(r"^\| `([a-z_]+\.h)` \|", (INCLUDE / "watchdog/README.md").read_text(), re.M)


def read(folder):
    """Writes doxygen's XML below the folder and returns its warnings, one a line."""
    options = {"INPUT": INCLUDE, "RECURSIVE": "YES", "FILE_PATTERNS": "*.h", "OUTPUT_DIRECTORY": folder, "STRIP_FROM_PATH": INCLUDE,
               "GENERATE_XML": "YES", "GENERATE_HTML": "NO", "GENERATE_LATEX": "NO", "XML_PROGRAMLISTING": "NO", "QUIET": "YES",
               "WARN_IF_UNDOCUMENTED": "YES", "JAVADOC_AUTOBRIEF": "YES", "MACRO_EXPANSION": "YES", "WARN_FORMAT": '"$file:$line: $text"'}
    done = subprocess.run(["doxygen", "-"], input="".join(f"{key} = {value}\n" for key, value in options.items()),
                          text=True, capture_output=True, check=True)
    return done.stderr.splitlines()


def undocumented(warnings):
    return [line.replace(f"{INCLUDE}/", "") for line in warnings if "is not documented" in line and not SILENT.search(line)]


def words(node):
    """A description of doxygen as Markdown: one paragraph."""
    def inner(one):
        text = (one.text or "") + "".join(inner(child) + (child.tail or "") for child in one)
        return f"`{text}`" if one.tag in ("computeroutput", "verbatim") else f"*{text}*" if one.tag == "emphasis" else text
    parts = [inner(para) for kind in ("briefdescription", "detaileddescription") for para in node.findall(f"{kind}/para")]
    text = " ".join(" ".join(parts).split())
    # Outside of code these would be markup.
    return "".join(part if at % 2 else re.sub(r"[<*]", r"\\\g<0>", part) for at, part in enumerate(re.split(r"(`[^`]*`|(?<!\w)\*[^*]+\*)", text)))


def plain(node):
    """Code without the links that doxygen found in it."""
    text = "" if node is None else " ".join("".join(node.itertext()).split())
    return re.sub(r"(?<=<) | (?=>)", "", text)


def code(member):
    """The declaration of a member or function, on one line."""
    kind, name = member.get("kind"), member.findtext("name")
    type_ = re.sub(r"\[\[nodiscard\]\]|\bWATCHDOG_API\b", "", plain(member.find("type"))).replace("watchdog::", "").strip()
    if kind == "typedef":
        return f"using {name} = {type_}"
    if kind == "function":
        arguments = re.sub(r"\s*=\s*default$", "", plain(member.find("argsstring")))
        prefix = "static " if member.get("static") == "yes" and member.get("id").startswith(("class", "struct")) else ""
        return f"{prefix}{type_} {name}{arguments}".strip()
    value = plain(member.find("initializer"))
    return f"{type_} {name}{plain(member.find('argsstring'))}" + (f" {value}" if value and value != "{}" and len(value) < 60 else "")


def rows(head, entries):
    """A table of (code, words)."""
    cells = [f"| `{one.replace('|', chr(92) + '|')}` | {text.replace('|', chr(92) + '|')} |" for one, text in dict.fromkeys(entries)]
    return "\n" + "\n".join([f"| {head} | Meaning |", "|---|---|", *cells]) + "\n" if cells else ""


def is_shown(member):
    """Public. A function without words is a special member or an operator: see SILENT."""
    return member.get("prot") == "public" and member.get("kind") not in ("friend", "define") and (words(member) or member.get("kind") != "function")


def enum(member, owner=""):
    """One enum: its words and its values."""
    values = [(one.findtext("name"), words(one)) for one in member.findall("enumvalue")]
    text = f"\n### {owner}{member.findtext('name')}\n\n{words(member)}\n"
    if any(described for _, described in values):
        return text + rows("Value", values)
    return text + "\nValues: " + ", ".join(f"`{name}`" for name, _ in values) + ".\n"


def record(folder, identity):
    """One class or struct: its words, its members, and the types within it."""
    tree = xml.etree.ElementTree.parse(folder / f"{identity}.xml").getroot()[0]
    name = plain(tree.find("compoundname")).removeprefix("watchdog::")
    members = [one for one in tree.iter("memberdef") if is_shown(one)]
    kinds = {"variable": "Member", "typedef": "Type", "function": "Function"}
    text = f"\n### {name}\n\n{words(tree)}\n"
    for kind, head in kinds.items():
        text += rows(head, [(code(one), words(one)) for one in members if one.get("kind") == kind])
    text += "".join(enum(one, f"{name}::") for one in members if one.get("kind") == "enum")
    inner = [one.get("refid") for one in tree.findall("innerclass") if one.get("prot") == "public"]
    return text + "".join(record(folder, one) for one in inner)


def entities_of(folder, header):
    """What one header has: types first, then functions and macros."""
    name = header.replace("_", "__").replace(".", "_8")
    file = xml.etree.ElementTree.parse(folder / f"{name}.xml").getroot()[0]
    for one in file.findall("innerclass"):
        if one.text.count("::") == 1 and "Names<" not in one.text:
            yield record(folder, one.get("refid"))
    members = xml.etree.ElementTree.parse(folder / "namespacewatchdog.xml").getroot().iter("memberdef")
    here = [one for one in members if one.find("location").get("file").endswith(f"watchdog/{header}")]
    yield from (enum(one) for one in here if one.get("kind") == "enum")
    functions = [one for one in here if one.get("kind") == "function" and not one.findtext("name").startswith("operator") and one.find("templateparamlist") is None]
    if functions:
        yield "\n### Functions\n" + rows("Function", [(code(one), words(one)) for one in functions])
    macros = [one for one in file.iter("memberdef") if one.get("kind") == "define" and words(one)]
    if macros:
        arguments = {one: ", ".join(argument.text for argument in one.iter("defname")) for one in macros}
        yield "\n### Macros\n" + rows("Macro", [(f"{one.findtext('name')}({arguments[one]})", words(one)) for one in macros])


def purposes():
    """What each header is for, by its name."""
    return dict(re.findall(r"^\| `([a-z_]+\.h)` \| (.*) \|$", (INCLUDE / "watchdog/README.md").read_text(), re.M))


def pages(folder):
    """The reference of the C++ interface: an overview, and a page for each header. By name below docs/reference, without the suffix."""
    shown = {header: purpose for header, purpose in purposes().items() if header not in APART}
    stems = {header: header.removesuffix(".h").replace("_", "-") for header in shown}
    lines = "\n".join(f"| [{header}](cpp/{stems[header]}.md) | {purpose} |" for header, purpose in shown.items())
    names = "\n".join(f"cpp/{stem}" for stem in stems.values())
    found = {"cpp": f"""# C++ interface

The installed headers, in the order in which a program meets them, as their comments describe them. All names are in the namespace
`watchdog`. The interface may change with each minor version: see [compatibility](../project/compatibility.md).

| Header | For |
|---|---|
{lines}

[End reasons](end-reasons.md) has those of `reasons.h`. [Report from code](../how-to/report-from-code.md), [use the agent
loop](../how-to/use-the-agent-loop.md) and [run tools safely](../how-to/run-tools-safely.md) have examples.

```{{toctree}}
:hidden:
{names}
```
"""}
    for header, purpose in shown.items():
        text = "".join(entities_of(pathlib.Path(folder) / "xml", header)).replace("\n### ", "\n## ")
        found[f"cpp/{stems[header]}"] = f"# watchdog/{header}\n\nFor {purpose}.\n{text}"
    return found


def main():
    with tempfile.TemporaryDirectory() as folder:
        found = undocumented(read(folder))
    print("\n".join(found))
    print(f"{len(found)} public entities have no documentation")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    sys.exit(main())
