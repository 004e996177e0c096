#!/usr/bin/env python3
"""Compiles every C and C++ example of the documentation against an installed package.

Usage: examples.py INCLUDE_DIRECTORY COMPILER,COMPILER… PAGE...

An example's `#include` lines come first. What the reader has to bring comes from the table below.
The rest becomes the body of a function. A whole program is compiled as it is shown. Each COMPILER is a C++ compiler; C examples are compiled
with its C mode.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

# The code that the reader of an example already has, keyed by the headers of the library that the example includes.
READERS = {
    "watchdog/tracker.h": """
#include <iostream>
struct Plan { std::string json; };
Plan reflect();
""",
    "watchdog.h": "#include <stdio.h>\n",
    "watchdog/gtest.h": """
extern const pid_t agent;
bool ask_me(const watchdog::Observed& seen);
""",
    "watchdog/settings.h": """
#include <iostream>
""",
    "watchdog/settings.h, watchdog/tool_runner.h": """
extern std::string schema;
std::string search(const std::string& arguments);
extern watchdog::ProgressTracker tracker;
extern watchdog::Settings settings;
extern watchdog::Iteration& now;
extern std::vector<watchdog::ToolRequest> calls;
extern std::vector<watchdog::ChatMessage> messages;
""",
}


def examples(text):
    """Yields (line, language, code) of each fenced block in C or C++."""
    for found in re.finditer(r"^```(cpp|c)\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, found.start()) + 1, found.group(1), found.group(2)


def unit(code, language):
    includes = re.findall(r"^#include.*$", code, re.M)
    if not includes:
        return None
    if re.search(r"^int main\(", code, re.M):
        return code
    headers = ", ".join(re.findall(r"<(watchdog.*?)>", "\n".join(includes)))
    body = "\n".join(line for line in code.splitlines() if not line.startswith("#include"))
    unused = "(void)" if language == "cpp" else ""
    names = re.findall(r"^const auto(?:&)? (\w+) =|^const watchdog::\w+& (\w+) =", body, re.M)
    used = "".join(f"  {unused}{a or b};\n" for a, b in names)
    signature = "void example();\nvoid example() {" if language == "cpp" else "void example(void);\nvoid example(void) {"
    return "\n".join(includes) + "\n" + READERS[headers] + signature + "\n" + body + "\n" + used + "}\n"


def main(headers, compilers, *pages):
    failed = compiled = 0
    compilers = compilers.split(",")
    with tempfile.TemporaryDirectory() as folder:
        for page, line, language, code in ((pathlib.Path(page).name, *example) for page in pages for example in examples(pathlib.Path(page).read_text())):
            text = unit(code, language)
            if text is None:
                print(f"{page} line {line}: this example includes nothing, so it cannot be compiled")
                failed += 1
                continue
            file = pathlib.Path(folder) / f"{page}_{line}.{language}"
            file.write_text(text)
            mode = ["-std=c++20"] if language == "cpp" else ["-x", "c", "-std=c11"]
            for compiler in compilers:
                run = subprocess.run(
                    [compiler, *mode, *WARNINGS, f"-I{headers}", "-fsyntax-only", str(file)],
                    capture_output=True, text=True)
                compiled += 1
                if run.returncode != 0:
                    failed += 1
                    print(f"{page} line {line} with {compiler}:\n{run.stderr[:3000]}")
    print(f"{compiled} examples compiled, {failed} failed")
    return 1 if failed or compiled == 0 else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
