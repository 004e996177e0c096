#!/usr/bin/env python3
"""No example of the documentation hides that a command fails, and the README stays short.

The example `command || echo "…"` hides the exit code from its reader and from the tests that run the pages. An
example that is meant to fail says so with the comment `exits with CODE`: see docs/tools/blocks.py.
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^(?P<indent> *)```(?:sh|bash|shell|console|yaml)\n(?P<code>.*?)^(?P=indent)```", re.M | re.S)
HIDDEN_RUN = re.compile(r"<!-- *run: (.*?) *-->", re.S)
# Code that makes a failure look like a success.
HIDES = re.compile("|".join((r"\|\|\s*(?:true|:|echo|printf|exit 0|return 0|/bin/true)(?=\s|;|$|[\"')&}])", r";[ ]*(?:true|:|exit 0)[ ]*(?=$|[)}\"'])",
                             r"(?<!\|)\|[ ]*(?:true|:)[ ]*$", r"\bset \+(?:e\b|o (?:errexit|pipefail))", r"\btrap - ERR\b", r"^[ ]*! ")), re.M)


def hiding(text):
    """Yields (line, example) of each example of a page that hides a failure."""
    for found in [*BLOCK.finditer(text), *HIDDEN_RUN.finditer(text)]:
        code = found["code"] if found.re is BLOCK else found[1]
        begin = text.count("\n", 0, found.start()) + (2 if found.re is BLOCK else 1)
        code = re.sub(r"(?<=\s)#[^\n]*|^#[^\n]*", lambda comment: " " * len(comment[0]), code, flags=re.M)
        for one in HIDES.finditer(code):
            yield begin + code.count("\n", 0, one.start()), one[0].strip()


def pages():
    """All pages of the repository."""
    folders = ("docs", "clients", "packaging", "libwatchdog", "monitor", "tests", ".github")
    found = {*ROOT.glob("*.md"), *(page for folder in folders for page in (ROOT / folder).rglob("*.md"))}
    return sorted(page for page in found if not {"node_modules", "third_party", "vendor"} & set(page.parts))


class Examples(unittest.TestCase):
    def test_each_way_to_hide_a_failure_is_found(self):
        for code in ('wait run || echo "exit code $?"', "pytest -q || true", "wait run ||true", "wait run || :", "wait run || exit 0", "(wait run; true)",
                     "wait run; exit 0", "wait run | true", "set +e\nwait run", "set +o pipefail", "wait run ||\n  true", "! wait run", "trap - ERR",
                     "sh -c 'wait run || true'"):
            with self.subTest(code=code):
                self.assertEqual(len(list(hiding(f"```sh\n{code}\n```\n"))), 1)
                self.assertEqual(len(list(hiding(f"1. Do this:\n\n   ```sh\n   {code}\n   ```\n"))), 1)
                self.assertEqual(len(list(hiding(f"<!-- run: {code} -->\n"))), 1)

    def test_examples_that_hide_nothing_are_left_alone(self):
        for code in ("wait run; echo $?", "wait run && echo done", "wait a || wait b", "until grep -q x file; do :; done", "wait run  # || true",
                     "curl -d '{\"a\":true}' url", "while true; do report; done", "grep '^ok ' | wc -l", "test ! -e file", ": >file"):
            with self.subTest(code=code):
                self.assertEqual(list(hiding(f"```sh\n{code}\n```\n")), [])
        self.assertEqual(list(hiding("```c\nif (a || true) return;\n```\n")), [])

    def test_no_example_hides_a_failure(self):
        found = [f"{page.relative_to(ROOT)}:{line}: {what}" for page in pages() for line, what in hiding(page.read_text())]
        self.assertEqual(found, [], "these examples hide that a command fails; say `exits with CODE` instead")


class Readme(unittest.TestCase):
    def test_it_is_read_in_two_minutes(self):
        text = (ROOT / "README.md").read_text()
        self.assertLessEqual(text.count("\n"), 160)
        headings = re.findall(r"^## (.*)$", text, re.M)
        for heading in ("Three ways in", "What you get", "When not to use it", "For developers"):
            self.assertIn(heading, headings)
        self.assertRegex(text.split("\n## ", 1)[0], r"<img alt=", "a picture comes first")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    unittest.main()
