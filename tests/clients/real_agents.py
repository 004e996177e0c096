#!/usr/bin/env python3
"""Real coding agents against a model that says what is written here, watched in each way: what a monitor says of them is true.

Usage: real_agents.py MONITOR NODE_MODULES [--only AGENT/WAY/STAGE]... [--jobs N] [--once] [--verbose] [--all]
Any part of --only may be `*`. Prints a table of what was seen. The stages and what is right are in agents/table.py.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "agents"), str(HERE.parent / "e2e")]

from agents import AGENTS, ALL_AGENTS  # noqa: E402
from stage import Gone, Stage, Wrong  # noqa: E402
from table import AGAIN, KNOWN_WRONG, MORE_STAGES, MORE_WAYS, SLOW_STAGES, STAGES, WAYS, cannot_know, cells_of  # noqa: E402

LONG = ("refused", "429", "quota", "varied", "loop", "long limit", "limit")


def main(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("monitor", type=os.path.abspath)
    parser.add_argument("packages", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--only", action="append")
    parser.add_argument("--all", action="store_true", help="all agents that can be had, all stages and ways")
    parser.add_argument("--slow", action="store_true", help="with --all: also the limits that take six minutes")
    parser.add_argument("--results", type=pathlib.Path, help="compare the cells with this file, and keep them there")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--once", action="store_true", help="try nothing again")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(words)
    agents, rows = (ALL_AGENTS, STAGES | MORE_STAGES | (SLOW_STAGES if options.slow else {})) if options.all else (AGENTS, STAGES)
    ways = (*WAYS, *MORE_WAYS) if options.all else (*WAYS, "telemetry", "all")
    cells = {cell: (None, f"cannot know: {cannot_know(cell)}") for cell in cells_of(agents, rows, ways)}
    cells = {cell: value for cell, value in cells.items()
             if any(fnmatch.fnmatch("/".join(cell), pattern) for pattern in options.only or ["*/*/*"])}
    wanted = [cell for cell in cells if not cannot_know(cell)]
    if not options.only and not options.all and not os.environ.get("WATCHDOG_FULL"):
        wanted = one_way_each(wanted)
        cells = {}
    # The long ones first.
    wanted.sort(key=lambda case: case[2] not in LONG)

    def one(case):
        agent, way, stage = case
        began, run = time.monotonic(), Stage(options, agents, agent, way, rows[stage])
        results = []
        for name, check in run.run(stage):
            wrong = None
            try:
                result = check()
                word = result["state"] if isinstance(result, dict) else result
            except Wrong as error:
                wrong = word = str(error)
            except Gone as error:
                wrong = word = f"NOT TRIED: {error}"
            took = time.monotonic() - began
            print(f"{'wrong' if wrong else 'right'}  {agent}/{way}/{name}  {took:.1f} s  {word}", flush=True)
            results.append(((agent, way, name), (wrong, word)))
        if options.verbose:
            for at, state, reason in run.seen:
                print(f"    {at - began:6.1f} s  {state}: {reason}")
        return results

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        cells |= dict(cell for found in pool.map(one, wanted) for cell in found)
    # A machine that is busy makes everything late: what was not as it should be is tried again with nothing beside it.
    for case in dict.fromkeys((agent, way, AGAIN.get(stage, stage)) for agent, way, stage in news(cells) if not options.once):
        print("again:", "/".join(case))
        cells |= dict(one(case))
    if options.results:
        changes(cells, options.results)
    return tell(cells)


def changes(cells, file):
    """Prints the cells that are not as they were, and keeps all."""
    was = json.loads(file.read_text()) if file.exists() else {}
    for case, (wrong, word) in cells.items():
        name, now = "/".join(case), ("wrong: " if wrong else "right: ") + word
        if name in was and was[name].partition(":")[0] != now.partition(":")[0]:
            print(f"changed  {name}  was {was[name]}; is {now}")
        was[name] = now
    file.write_text(json.dumps(was, indent=1, sort_keys=True) + "\n")


def one_way_each(cases):
    """Each agent and stage once, always in the same way, so that each way occurs: a quarter of the time."""
    ways = {}
    for agent, way, stage in cases:
        ways.setdefault((agent, stage), []).append(way)
    agents, stages = list(AGENTS), list(STAGES)
    chosen = [(agent, found[(agents.index(agent) + stages.index(stage)) % len(found)], stage) for (agent, stage), found in ways.items()]
    print(f"{len(chosen)} of {len(cases)} cells: each agent and stage once. WATCHDOG_FULL=1 runs all.", flush=True)
    return chosen


def news(cells):
    """What is not as KNOWN_WRONG says."""
    return [case for case, (wrong, _) in cells.items() if bool(wrong) != ("/".join(case) in KNOWN_WRONG)]


def tell(cells):
    """The table, and what is not as KNOWN_WRONG says."""
    columns = list(dict.fromkeys(case[:2] for case in sorted(cells)))
    print("\n| stage |" + "".join(f" {agent} {way} |" for agent, way in columns))
    print("|---" * (len(columns) + 1) + "|")
    for stage in dict.fromkeys([*STAGES, *MORE_STAGES, *(case[2] for case in cells)]):
        if any(case[2] == stage for case in cells):
            row = (cells.get((*column, stage)) for column in columns)
            print(f"| {stage} |" + "".join(f" {'–' if cell is None else ('✗ ' if cell[0] else '') + cell[1][:40].replace('|', '/')} |" for cell in row))
    for case in news(cells):
        print("/".join(case), "is wrong:" if cells[case][0] else "is right now: take it out of KNOWN_WRONG", cells[case][0] or "")
    return 1 if news(cells) else 0


if __name__ == "__main__":
    sys.exit(main())
