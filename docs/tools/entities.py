#!/usr/bin/env python3
"""The public headers as doxygen reads them: which entities have no documentation, and the page that shows all.

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
    for file in (pathlib.Path(folder) / "xml").glob("*.xml"):  # Sphinx does not read raw strings.
        text = file.read_text()
        if "R&quot;(" in text:
            file.write_text(re.sub(r"= R&quot;\(.*?\)&quot;", "= {}", text))
    return done.stderr.splitlines()


def undocumented(warnings):
    return [line.replace(f"{INCLUDE}/", "") for line in warnings if "is not documented" in line and not SILENT.search(line)]


def shown(kind, name):
    members = ":members:\n:undoc-members:\n" if kind in ("struct", "class") else ""
    return f"```{{doxygen{kind}}} {name}\n{members}```\n"


def entities_of(folder, header):
    """The directives for one header: types first, then functions."""
    name = header.replace("_", "__").replace(".", "_8")
    for one in xml.etree.ElementTree.parse(folder / f"{name}.xml").getroot()[0].findall("innerclass"):
        if one.text.count("::") == 1 and "Names<" not in one.text:
            yield shown("class" if one.get("refid").startswith("class") else "struct", one.text)
    members = list(xml.etree.ElementTree.parse(folder / "namespacewatchdog.xml").getroot().iter("memberdef"))
    functions = [one.findtext("name") for one in members if one.get("kind") == "function"]
    here = [one for one in members if one.find("location").get("file").endswith(f"watchdog/{header}")]
    for one in here:
        if one.get("kind") == "enum":
            yield shown("enum", "watchdog::" + one.findtext("name"))
    for one in here:
        name = one.findtext("name")
        if one.get("kind") == "function" and one.find("templateparamlist") is None and not name.startswith("operator"):
            arguments = re.sub(r"\s*(\bnoexcept|=[^,)]*)", "", one.findtext("argsstring"))
            yield shown("function", f"watchdog::{name}" + (arguments if functions.count(name) > 1 else ""))


def page(folder):
    """The reference page of the C++ interface."""
    text = """# C++ interface

The installed headers, in the order in which a program meets them, as their comments describe them. [End reasons](end-reasons.md) has
those of `reasons.h`. [Report from code](../how-to/report-from-code.md), [use the agent loop](../how-to/use-the-agent-loop.md) and [run tools
safely](../how-to/run-tools-safely.md) have examples. The interface may change with each minor version: see
[compatibility](../project/compatibility.md).
"""
    for header in headers():
        if header in APART:
            continue
        text += f"\n## watchdog/{header}\n\n" + "\n".join(dict.fromkeys(entities_of(pathlib.Path(folder) / "xml", header)))
    return text


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
