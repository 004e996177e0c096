import sys

from watchdog_client import Reporter


class Job:
    """Its state is in slots, and it has no __repr__."""
    __slots__ = ("_number",)

    def __init__(self, number):
        self._number = number


class Handle:
    """What it holds is not shown to anybody."""
    def __init__(self, number):
        self.read = lambda: number

    def __repr__(self):
        return "<Handle>"


watchdog = Reporter()
for number in range(14):
    with watchdog.tool("poll", {"job": "press"}) as call:
        call.result = (Job if number < 7 else Handle)(number)
watchdog.flush()
print("reported", flush=True)
sys.stdin.read()
watchdog.completed()
