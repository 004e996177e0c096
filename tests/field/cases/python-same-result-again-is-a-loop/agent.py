import dataclasses
import sys

from watchdog_client import Reporter


@dataclasses.dataclass
class Job:
    leaf: int
    state: str


watchdog = Reporter()
for _ in range(14):
    with watchdog.tool("poll", {"job": "press"}) as call:
        call.result = Job(7, "torn")
watchdog.flush()
print("reported", flush=True)
sys.stdin.read()
watchdog.completed()
