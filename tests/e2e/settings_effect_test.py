#!/usr/bin/env python3
"""Every setting has an effect, from a file and from the environment: on what programs do, not on what `config` prints.

Usage: settings_effect_test.py MONITOR EXAMPLE_AGENT TASK_AGENT [KEY…]

The probes are in `settings_of_agents.py`, `settings_of_budgets.py`, `settings_of_monitors.py` and `settings_of_recovery.py`, each beside its key. A new setting needs one.
"""

import collections
import concurrent.futures
import contextlib
import fnmatch
import json
import pathlib
import re
import sys
import time
import unittest

from settings_trial import DEFAULT, FILE, PROBES, Trial
import settings_of_agents  # It fills the table, as the next three do.
import settings_of_budgets
import settings_of_monitors
import settings_of_recovery

ROWS = pathlib.Path(__file__).parents[2] / "libwatchdog" / "src" / "config" / "rows.cpp"
CHOSEN = [sys.argv.pop(1) for _ in sys.argv[1:]]
AT_ONCE = 4


def name_in(key):
    return key.replace("*", PROBES[key].name if key in PROBES else "some")


def table():
    """{key: its variables}, of every row of the table of settings. Tables with a * get the names of the probes."""
    keys = re.findall(r'Row\{"([^"]+)"', ROWS.read_text())
    with contextlib.ExitStack() as stack:
        trial = Trial("", DEFAULT, stack)
        named = {key: name_in(key) for key in keys if "*" in key}
        some = {"url": "http://127.0.0.1:1", "use": "poll", "models": ["m"], "max_steps": 1, "at_most": 1, "tokens": 1, "*": 1,
                "recovery.rules.*.step": "command", "recovery.rules.*.command": ["true"]}
        trial.base["proxy.upstream"] = some["url"]
        for key, full in named.items():
            if (value := some.get(key, some.get(key.rpartition(".")[2]))) is not None:
                trial.base[full] = value
        ran = trial.command("config", "--json")
        assert ran.returncode == 0, ran.stderr
    listed = {row["key"]: row["variables"] for row in json.loads(ran.stdout)["settings"]}
    unknown = [key for key in listed if not any(fnmatch.fnmatchcase(key, row) for row in keys)]
    assert not unknown, f"rows.cpp has no row for {unknown}"
    # For names of the user's own, `config` lists no variables.
    own = {key: ["WATCHDOG_" + full.replace(".", "_").upper()] for key, full in named.items() if key in PROBES and not PROBES[key].only}
    return {key: listed[named.get(key, key)] or own.get(key, []) for key in keys}


def observe(key, source):
    """What the probe of a key sees, how long it took, and what its servers were asked."""
    begun, requests = time.monotonic(), []
    try:
        with contextlib.ExitStack() as stack:
            trial = Trial(name_in(key), source, stack)
            stack.callback(lambda: requests.extend(trial.requests()))
            seen = PROBES[key].look(trial)
    except Exception as fault:
        seen = f"{type(fault).__name__}: {fault}"
    return seen, time.monotonic() - begun, f"requests to its servers: {requests}"


class SettingsEffectTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.table = table()
        jobs = {}
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for key in CHOSEN or [key for key in cls.table if key in PROBES]:
                for source in (DEFAULT, FILE, *cls.table[key]):
                    jobs[key, source] = pool.submit(observe, key, source)
        cls.seen = {job: (done.result()[0], done.result()[2]) for job, done in jobs.items()}
        if CHOSEN:
            for (key, source), done in jobs.items():
                print(f"{done.result()[1]:5.1f} s  {key} by {source}: {done.result()[0]}", file=sys.stderr)
        took = collections.Counter({job: done.result()[1] for job, done in jobs.items()})
        print("slowest:", ", ".join(f"{key} by {source} {spent:.1f} s" for (key, source), spent in took.most_common(5)), file=sys.stderr)

    def test_each_setting_has_a_probe_and_each_probe_a_setting(self):
        self.assertEqual(sorted(PROBES), sorted(self.table), "a setting needs a probe, and a probe a setting")

    def test_each_setting_has_a_variable_or_says_why_not(self):
        for key, variables in self.table.items():
            with self.subTest(key=key):
                self.assertEqual(bool(variables), not (key in PROBES and PROBES[key].only), variables)

    def test_each_setting_changes_the_behaviour_of_a_program(self):
        for (key, source), (seen, requests) in self.seen.items():
            probe, is_set = PROBES[key], source != DEFAULT
            with self.subTest(key=key, source=source):
                if probe.fault and is_set:
                    self.assertNotEqual(seen, probe.seen[True], f"{key} from {source} has an effect: remove the fault from its probe")
                    self.assertEqual(seen, probe.seen[False], f"{key} from {source}, which is known to do nothing: {probe.fault}")
                else:
                    self.assertEqual(seen, probe.seen[is_set], f"{key} from {source}; {requests}")


if __name__ == "__main__":
    unittest.main(verbosity=1)
