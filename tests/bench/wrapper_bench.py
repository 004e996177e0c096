#!/usr/bin/env python3
"""What `watchdog-monitor run` adds to a command that prints a gigabyte, beside a pipe read by cat."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from http_bench import Table

GIGABYTE = 1 << 30
PAIRS = 7
LINE = "Compiling a file that has a name of usual length (42/99)"
COMMANDS = {"wrapper_gigabyte": f"head -c {GIGABYTE} /dev/zero",
            "wrapper_gigabyte_of_lines": f"yes '{LINE}' | head -c {GIGABYTE}"}
LIMIT = 1.03


def seconds(words, environment):
    """That somebody waits, and CPU of all that was started."""
    cpu, began = os.times(), time.monotonic()
    subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    waited, after = time.monotonic() - began, os.times()
    return waited, after.children_user + after.children_system - cpu.children_user - cpu.children_system


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="build directory, with the monitor")
    parser.add_argument("--json", action="store_true", help="print a JSON object a line")
    arguments = parser.parse_args()
    table = Table(arguments.json)
    with tempfile.TemporaryDirectory() as work:
        environment = os.environ | {"WATCHDOG_DB": f"{work}/w.db"}
        wrapper = [str(arguments.build / "bin/watchdog-monitor"), "run"]
        for name, command in COMMANDS.items():
            more = {name: [], f"{name}_searched": ["--state-change-on", "^error"]}
            for row, options in more.items() if "lines" in name else [(name, [])]:
                pairs = []
                for turn in range(-1, PAIRS):  # one round that does not count
                    ways = [wrapper + options + ["--", "sh", "-c", command], ["sh", "-c", f"{command} | cat"]]
                    order = (0, 1) if turn % 2 else (1, 0)
                    taken = {way: seconds(ways[way], environment) for way in order}
                    if turn >= 0:
                        pairs.append((*taken[0], *taken[1]))
                waits, cpus = ([(p[at], p[at + 2], p[at] / p[at + 2]) for p in pairs] for at in (0, 1))
                median = lambda rows: [statistics.median(column) for column in zip(*rows)]
                # Other rows are compared too, but have no promised limit.
                table.add(row, "s", *median(waits), at_most=LIMIT if row == "wrapper_gigabyte_of_lines" else None)
                table.add(f"{row}_cpu", "s", *median(cpus))
    return table.exit_code


if __name__ == "__main__":
    sys.exit(main())
