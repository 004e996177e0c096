#!/usr/bin/python3
"""What a heartbeat costs its agent, while a real monitor takes the reports. Usage: python_bench.py MONITOR"""

import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "clients" / "python"), str(HERE.parent / "e2e")]

from server import Server  # noqa: E402
from watchdog_client import Monitor, Reporter  # noqa: E402


def costs(act, count, pause_s=0.0):
    taken = []
    for number in range(count):
        begin = time.perf_counter_ns()
        act(number)
        taken.append(time.perf_counter_ns() - begin)
        if pause_s:
            time.sleep(pause_s)
    taken.sort()
    return f"median {statistics.median(taken) / 1000:6.1f} µs   p99 {taken[len(taken) * 99 // 100] / 1000:7.1f} µs"


with Server(sys.argv[1]) as server:
    url = f"http://{server.host}"
    with Reporter("bench", server=url, agent="bench") as reporter:
        print("heartbeat, one each ms     ", costs(lambda n: reporter.heartbeat(n, "work"), 2000, 0.001))
        print("heartbeat, in a tight loop ", costs(lambda n: reporter.heartbeat(n, "work"), 50_000))
        print("state change               ", costs(lambda n: reporter.state_change("step", {"n": n}), 2000, 0.001))
        print("count(tokens=1)            ", costs(lambda n: reporter.count(tokens=1), 20_000))
        with open("/dev/null", "w") as null:
            print("comparator: a line printed ", costs(lambda n: print(n, "work", file=null, flush=True), 2000, 0.001))
    print("dropped", reporter.dropped, "of which the session has",
          sum(event["count"] for event in Monitor(url).events("bench", "heartbeat")), "heartbeats")
