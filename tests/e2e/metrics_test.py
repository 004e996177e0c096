#!/usr/bin/env python3
"""Holds /metrics of a running monitor to Prometheus' own tools, and the alert rules and the dashboard
to what it tells: no file may ask for a metric or a label that is not there."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

from postgres import Postgres

METRIC = re.compile(r"\bwatchdog_[a-z_]+")


def said_by(monitor, database=None):
    """What a monitor tells that has a session, and the ids that must not be in it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("WATCHDOG_", "OPENAI_"))} | {"HOME": folder}
        command = [monitor, "serve", "--db", database or f"{folder}/w.db", "--port", "0", "--config", ""]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            try:
                url = process.stdout.readline().split()[-1]
                for session in ("secret-session", "other-session"):
                    body = b'[{"kind":"state_change","type":"t"},{"kind":"heartbeat"}]'
                    target = f"{url}/api/autonomous/sessions/{session}/events"
                    urllib.request.urlopen(urllib.request.Request(target, body)).read()
                with urllib.request.urlopen(f"{url}/metrics") as answer:
                    return answer.read().decode()
            finally:
                process.terminate()


def families_of(text):
    """Names of samples, and the labels that each has."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, labels = re.match(r"([a-z_]+)(?:\{(.*)\})? \S+$", line).groups()
            found.setdefault(name, {}).update(re.findall(r'([a-z]+)="([^"]*)"', labels or ""))
            for label, value in re.findall(r'([a-z]+)="([^"]*)"', labels or ""):
                found[name].setdefault(("values", label), set()).add(value)
    return found


def queries_of(dashboard):
    """Every expression of a dashboard."""
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel.get("targets", []))
    yield from (variable["query"]["query"] for variable in dashboard["templating"]["list"])


def faults_of(query, told):
    for name in METRIC.findall(query):
        if name not in told:
            yield f"{name} is not told, but asked for in {query}"
    for name, chosen in re.findall(r"\b(watchdog_[a-z_]+)\{([^}]*)\}", query):
        for label, operator, value in re.findall(r'([a-z_]+)(=~|=)"([^"]*)"', chosen):
            if label in ("job", "instance"):
                continue
            values = told.get(name, {}).get(("values", label), set())
            wanted = value.split("|") if operator == "=~" else [value]
            yield from (f"{name} has no {label}={word}: {query}" for word in wanted if word not in values)
    for labels in re.findall(r"\bby \(([^)]*)\)", query):
        known = {"job", "instance", "le"}.union(*(told.get(name, {}).keys() for name in METRIC.findall(query)))
        yield from (f"there is no label {label}: {query}" for label in re.findall(r"\w+", labels) if label not in known)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("monitor", help="path of watchdog-monitor")
    arguments.add_argument("packaging", type=pathlib.Path, help="folder of the files for Prometheus and Grafana")
    arguments.add_argument("promtool", help="path of promtool")
    options = arguments.parse_args()
    faults = []

    def tool(*words, **more):
        done = subprocess.run([options.promtool, *words], capture_output=True, text=True, **more)
        if done.returncode != 0 or (words[-1] == "metrics" and done.stderr.strip()):
            faults.append(f"promtool {' '.join(words)}: {done.stdout}{done.stderr}")

    text = said_by(options.monitor)
    told = families_of(text)
    server = Postgres()
    told |= {name: labels for name, labels in families_of(said_by(options.monitor, server.url())).items() if name not in told}
    server.stop()
    tool("check", "metrics", input=text)
    rules = options.packaging / "prometheus"
    tool("check", "rules", str(rules / "rules.yml"))
    tool("test", "rules", str(rules / "rules_test.yml"))
    faults += [] if re.search(r"^watchdog_http_connections [1-9]", text, re.M) else ["its own connection is not counted"]
    faults += ["a session's id is in a label"] if "-session" in text else []
    queries = re.findall(r"expr: (.*)", (rules / "rules.yml").read_text())
    dashboard = json.loads((options.packaging / "grafana" / "watchdog.json").read_text())
    queries += queries_of(dashboard)
    faults += [fault for query in queries for fault in faults_of(query, told)]
    faults += [] if len(queries) > 30 else ["there are too few queries to be all of them"]
    sources = {json.dumps(source) for panel in dashboard["panels"] for source in [panel.get("datasource")] if source}
    if [source["name"] for source in dashboard["__inputs"]] != ["DS_PROMETHEUS"] or \
            any("${DS_PROMETHEUS}" not in source for source in sources):
        faults.append("the dashboard does not ask where its data comes from")
    ids = [panel["id"] for panel in dashboard["panels"]]
    faults += [] if len(set(ids)) == len(ids) and dashboard["uid"] == "watchdog-monitor" else ["ids are not unique"]
    for fault in faults:
        print("FAILED:", fault)
    print(f"{len(told)} metrics, {len(queries)} queries, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
