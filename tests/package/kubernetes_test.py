#!/usr/bin/python3
"""Usage: kubernetes_test.py MONITOR

Checks the manifests for Kubernetes, and runs what packaging/container/agent.yaml starts: the monitor of the pod, the agent and the
probes. Agents that are slow, stuck or done stand in for the agent.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CONTAINER = SOURCE / "packaging/container"
PAGE = SOURCE / "docs/how-to/suspend-or-scale.md"
PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
PATIENCE_S = 60
POD = "agent-x7k2p"

TEXT, COUNT, SWITCH = str, int, bool


class Map:
    """An object of the interface of Kubernetes: its fields, and those that it must have. Other fields are refused, as kubectl does."""

    def __init__(self, needs="", **fields):
        self.needs, self.fields = needs.split(), fields

    def faults(self, place, value):
        if not isinstance(value, dict):
            return [f"{place} is not an object"]
        found = [f"{place}: {name} is missing" for name in self.needs if name not in value]
        for name, inner in value.items():
            if name in self.fields:
                found += faults(self.fields[name], f"{place}.{name}", inner)
            else:
                found.append(f"{place}: unknown field {name}")
        return found


class Choice(Map):
    """An object that has exactly one of its fields, beside those of `more`."""

    def __init__(self, more=None, **fields):
        super().__init__("", **fields, **(more or {}))
        self.choices = set(fields)

    def faults(self, place, value):
        found = super().faults(place, value)
        if not found and len(self.choices & set(value)) != 1:
            found.append(f"{place}: exactly one of {', '.join(sorted(self.choices))} is needed")
        return found


def faults(shape, place, value):
    """Returns what is wrong with a value. A shape is a Map, a type, a list of one shape, a set of words, or {text: shape}."""
    if isinstance(shape, Map):
        return shape.faults(place, value)
    if isinstance(shape, set):
        return [] if value in shape else [f"{place} is {value!r}, none of {', '.join(sorted(shape))}"]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{place} is not a list"]
        return [one for at, inner in enumerate(value) for one in faults(shape[0], f"{place}[{at}]", inner)]
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{place} is not an object"]
        return [one for key, inner in value.items() for one in faults(shape[TEXT], f"{place}.{key}", inner)]
    good = any(type(value) is one for one in (shape if isinstance(shape, tuple) else (shape,)))
    return [] if good else [f"{place} is {value!r}, which has another type"]


ACTION = {"exec": Map("command", command=[TEXT]), "httpGet": Map("port", path=TEXT, port=(TEXT, COUNT), host=TEXT, scheme={"HTTP", "HTTPS"}),
          "tcpSocket": Map("port", port=(TEXT, COUNT)), "grpc": Map("port", port=COUNT, service=TEXT)}
TIMES = dict.fromkeys(("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold", "successThreshold"), COUNT)
PROBE = Choice(TIMES, **ACTION)
META = Map("name", name=TEXT, namespace=TEXT, labels={TEXT: TEXT}, annotations={TEXT: TEXT})
QUANTITIES = {TEXT: (TEXT, COUNT)}
RESOURCES = Map(requests=QUANTITIES, limits=QUANTITIES)
SECCOMP = Map("type", type={"RuntimeDefault", "Unconfined", "Localhost"})
IDS = {"runAsUser": COUNT, "runAsGroup": COUNT, "runAsNonRoot": SWITCH, "seccompProfile": SECCOMP}
VALUE_FROM = Choice(fieldRef=Map("fieldPath", fieldPath=TEXT), secretKeyRef=Map("name key", name=TEXT, key=TEXT), configMapKeyRef=Map("name key", name=TEXT, key=TEXT))
CONTAINER_FIELDS = {
    "name": TEXT, "image": TEXT, "command": [TEXT], "args": [TEXT], "env": [Map("name", name=TEXT, value=TEXT, valueFrom=VALUE_FROM)],
    "ports": [Map("containerPort", name=TEXT, containerPort=COUNT, protocol={"TCP", "UDP"})], "resources": RESOURCES,
    "lifecycle": Map(preStop=Choice(**ACTION), postStart=Choice(**ACTION)), "livenessProbe": PROBE, "readinessProbe": PROBE, "startupProbe": PROBE,
    "securityContext": Map(**IDS, allowPrivilegeEscalation=SWITCH, readOnlyRootFilesystem=SWITCH, capabilities=Map(add=[TEXT], drop=[TEXT])),
    "volumeMounts": [Map("name mountPath", name=TEXT, mountPath=TEXT, readOnly=SWITCH)]}
BOX = Map("name image", **CONTAINER_FIELDS)
FIRST_BOX = Map("name image", **CONTAINER_FIELDS, restartPolicy={"Always"})
VOLUME = Choice({"name": TEXT}, emptyDir=Map(medium=TEXT, sizeLimit=TEXT), persistentVolumeClaim=Map("claimName", claimName=TEXT), secret=Map("secretName", secretName=TEXT))
POD_SPEC = {"automountServiceAccountToken": SWITCH, "containers": [BOX], "initContainers": [FIRST_BOX], "securityContext": Map(**IDS, fsGroup=COUNT),
            "shareProcessNamespace": SWITCH, "terminationGracePeriodSeconds": COUNT, "volumes": [VOLUME]}
SELECTOR = Map("matchLabels", matchLabels={TEXT: TEXT})


def kind(api, spec):
    return Map("apiVersion kind metadata spec", apiVersion={api}, kind=TEXT, metadata=META, spec=spec)


def template(restarts):
    # The template of a pod has no name.
    return Map("metadata spec", metadata=Map(labels={TEXT: TEXT}, annotations={TEXT: TEXT}),
               spec=Map("containers" if "Always" in restarts else "containers restartPolicy", **POD_SPEC, restartPolicy=restarts))


KINDS = {
    "PersistentVolumeClaim": kind("v1", Map("accessModes resources", accessModes=[{"ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"}], resources=RESOURCES, storageClassName=TEXT)),
    "Deployment": kind("apps/v1", Map("selector template", replicas=COUNT, selector=SELECTOR, strategy=Map(type={"Recreate", "RollingUpdate"}), template=template({"Always"}))),
    "Job": kind("batch/v1", Map("template", backoffLimit=COUNT, activeDeadlineSeconds=COUNT, ttlSecondsAfterFinished=COUNT, template=template({"Never", "OnFailure"}))),
    "Service": kind("v1", Map("ports", selector={TEXT: TEXT}, ports=[Map("port", name=TEXT, port=COUNT, targetPort=(TEXT, COUNT))])),
}


def pods(document):
    spec = document["spec"].get("template", {}).get("spec")
    return [spec] if spec else []


def boxes(pod):
    return [*pod.get("initContainers", []), *pod["containers"]]


def probes(box):
    return [(name, box[name]) for name in ("startupProbe", "readinessProbe", "livenessProbe") if name in box]


def wrong_in(document):
    """Returns what Kubernetes would refuse: fields, and names that nothing has."""
    if document.get("kind") not in KINDS:
        return [f"unknown kind {document.get('kind')}"]
    found = faults(KINDS[document["kind"]], document["kind"], document)
    if found:
        return found
    for pod in pods(document):
        names = [box["name"] for box in boxes(pod)]
        found += [f"two containers are {name}" for name in set(names) if names.count(name) > 1]
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        for box in boxes(pod):
            found += [f"{box['name']} mounts {mount['name']}, which is not a volume" for mount in box.get("volumeMounts", []) if mount["name"] not in volumes]
            ports = {port.get("name") for port in box.get("ports", [])}
            found += [f"{box['name']}: {name} asks at {probe['httpGet']['port']}, which is not a port" for name, probe in probes(box)
                      if isinstance(probe.get("httpGet", {}).get("port"), str) and probe["httpGet"]["port"] not in ports]
        for box in pod.get("initContainers", []):
            if box.get("restartPolicy") != "Always" and probes(box):
                found.append(f"{box['name']} has a probe and is not a sidecar")
    selector = document["spec"].get("selector", {}).get("matchLabels")
    if selector and not selector.items() <= document["spec"]["template"]["metadata"]["labels"].items():
        found.append("the selector finds other pods")
    return found


def manifest(name):
    return list(yaml.safe_load_all((CONTAINER / name).read_text()))


def commands_of_page():
    """The commands that the page shows for a monitor of many pods."""
    return re.findall(r"^<!-- not run: kubernetes_test\.py runs it -->\n```sh\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


def probes_of_page():
    """The probes that the page shows for the agent."""
    return [yaml.safe_load(code)["livenessProbe"] for code in re.findall(r"^<!-- a probe of the agent -->\n```yaml\n(.*?)^```$", PAGE.read_text(), re.M | re.S)]


class Manifests(unittest.TestCase):
    def test_kubernetes_knows_all_that_is_in_the_manifests(self):
        found = sorted(file.name for file in CONTAINER.glob("*.yaml") if "apiVersion:" in file.read_text())
        self.assertEqual(found, ["agent.yaml", "kubernetes.yaml"])
        for name in found:
            for document in manifest(name):
                with self.subTest(file=name, kind=document["kind"]):
                    self.assertEqual(wrong_in(document), [])

    def test_the_check_finds_each_fault(self):
        def spec(document):
            return document["spec"]["template"]["spec"]

        changes = {
            "unknown kind Jobs": lambda one: one.update(kind="Jobs"),
            "Job: spec is missing": lambda one: one.pop("spec"),
            "unknown field activeDeadline": lambda one: one["spec"].update(activeDeadline=1),
            "restartPolicy is 'Always'": lambda one: spec(one).update(restartPolicy="Always"),
            "restartPolicy is missing": lambda one: spec(one).pop("restartPolicy"),
            "image is missing": lambda one: spec(one)["containers"][0].pop("image"),
            "has another type": lambda one: spec(one)["containers"][0]["readinessProbe"].update(periodSeconds="30"),
            "exactly one of": lambda one: spec(one)["containers"][0]["readinessProbe"].update(httpGet={"port": 1}),
            "which is not a volume": lambda one: spec(one)["volumes"].pop(),
            "is not a sidecar": lambda one: spec(one)["initContainers"][0].pop("restartPolicy"),
            "which is not a port": lambda one: spec(one)["containers"][0].update(readinessProbe={"httpGet": {"port": "http"}}),
            "two containers are agent": lambda one: spec(one)["initContainers"][0].update(name="agent"),
        }
        for said, change in changes.items():
            with self.subTest(said=said):
                (document,) = manifest("agent.yaml")
                change(document)
                self.assertTrue(any(said in one for one in wrong_in(document)), wrong_in(document))

    def test_no_time_ends_the_agent(self):
        (job,) = manifest("agent.yaml")
        self.assertNotIn("activeDeadlineSeconds", job["spec"])
        (agent,) = pods(job)[0]["containers"]
        self.assertEqual([name for name, _ in probes(agent)], ["readinessProbe"], "only this probe never ends a container")

    def test_the_page_shows_probes_that_kubernetes_knows(self):
        self.assertEqual([faults(PROBE, "probe", probe) for probe in probes_of_page()], [[], []])

    def test_the_sidecar_is_the_image_of_this_version(self):
        version = re.search(r"project\(watchdog VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
        (job,) = manifest("agent.yaml")
        self.assertEqual(pods(job)[0]["initContainers"][0]["image"], f"watchdog-monitor:{version}")
        self.assertEqual(set(re.findall(r"--from=watchdog-monitor:(\S+)", PAGE.read_text() + (CONTAINER / "agent.yaml").read_text())), {version})


# This program plays the agent of the pod. It reports without a token, because the monitor listens on the pod's loopback.
AGENT = f"""#!{sys.executable}
import json, os, sys, time, urllib.request
def report(*events):
    url = os.environ["WATCHDOG_SERVER"] + "/api/autonomous/sessions/" + os.environ["WATCHDOG_SESSION"] + "/events"
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(events).encode(), {{"Content-Type": "application/json"}}))
if os.environ["KIND"] == "stuck":
    report(*[event for at in range(12) for event in (
        {{"kind": "tool_call", "name": "ls", "call_id": f"c{{at}}", "args": {{"path": "."}}}},
        {{"kind": "tool_result", "name": "ls", "call_id": f"c{{at}}", "text": "a"}})])
elif os.environ["KIND"] == "slow":
    report({{"kind": "state_change", "type": "planned"}})
open("begun", "w").close()
sys.stdin.close()
while not os.path.exists("go-on"): time.sleep(0.02)
"""


class Pod(unittest.TestCase):
    """The pod of the manifest: its commands and its environment, on a free port and in a folder instead of its volumes."""

    def setUp(self):
        if PROGRAM is None:
            self.skipTest("no program is named")
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "bin").mkdir()
        (self.folder / "data").mkdir()
        (self.folder / "data").chmod(0o2777)  # As an emptyDir.
        (self.folder / "bin/watchdog-monitor").symlink_to(PROGRAM)
        (self.folder / "bin/my-agent").write_text(AGENT)
        (self.folder / "bin/my-agent").chmod(0o755)
        (job,) = manifest("agent.yaml")
        (self.monitor,), (self.agent,) = pods(job)[0]["initContainers"], pods(job)[0]["containers"]
        self.url = "http://127.0.0.1:9"  # Nothing listens there.

    def environment(self, box, **more):
        """The environment of a container: what its image has, and what the manifest says."""
        text = (CONTAINER / "Dockerfile").read_text()
        image = dict(pair.split("=", 1) for pair in re.findall(r"^ENV (.*)$", text, re.M)[-1].split()) if box is self.monitor else {"HOME": "/home"}
        named = {one["name"]: one.get("value", POD) for one in box.get("env", [])}
        self.assertEqual(named.get("WATCHDOG_SERVER", "http://127.0.0.1:3000"), "http://127.0.0.1:3000")
        # The ports are others than in a pod, so that tests can run side by side.
        named["WATCHDOG_SERVER"] = self.url
        image = {name: re.sub("^/(data|home)", str(self.folder / "data"), value) for name, value in image.items()}
        return {**image, **named, "PATH": f"{self.folder}/bin:/usr/bin:/bin", **more}

    def start(self, box, words, **more):
        words = [re.sub(r"\$\((\w+)\)", lambda found: self.environment(box)[found[1]], word) for word in words]
        process = subprocess.Popen(words, cwd=self.folder, env=self.environment(box, **more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def serve(self, address="127.0.0.1", **more):
        words = ["watchdog-monitor", *self.monitor["args"], "--port", "0", "--proxy-port", "0"]
        self.serving = self.start(self.monitor, words, **more)
        line = self.serving.stdout.readline()
        self.assertRegex(line, rf"^listening on http://{re.escape(address)}:\d+$")
        self.url = line.split()[-1].replace(address, "127.0.0.1")

    def work(self, what):
        for name in ("begun", "go-on"):
            (self.folder / name).unlink(missing_ok=True)
        self.working = self.start(self.agent, self.agent["command"], KIND=what)
        self.until(lambda: (self.folder / "begun").exists())

    def until(self, holds):
        limit = time.monotonic() + PATIENCE_S
        while not holds():
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.02)

    def probe(self, box, action):
        """Returns whether a probe passes."""
        process = self.start(box, [re.sub("^/usr/bin/", "", word) for word in action["exec"]["command"]])
        said = process.communicate(timeout=PATIENCE_S)
        self.assertIn(process.returncode, (0, 1, 4), said)
        self.assertNotRegex(said[1], "Usage|unknown option")
        return process.returncode == 0

    def test_the_agent_starts_when_the_monitor_can_store(self):
        self.assertFalse(self.probe(self.monitor, self.monitor["startupProbe"]))
        self.assertFalse(self.probe(self.monitor, self.monitor["livenessProbe"]))
        self.serve()
        self.until(lambda: self.probe(self.monitor, self.monitor["startupProbe"]))
        self.assertTrue(self.probe(self.monitor, self.monitor["livenessProbe"]))

    def test_a_stuck_agent_is_not_ready_and_goes_on(self):
        self.serve()
        self.work("stuck")
        self.until(lambda: not self.probe(self.agent, self.agent["readinessProbe"]))
        self.assertEqual([self.probe(self.agent, probe) for probe in probes_of_page()], [False, False])
        self.assertTrue(self.probe(self.monitor, self.monitor["livenessProbe"]), "the monitor is not to blame")
        self.assertIsNone(self.working.poll())
        self.assertTrue(self.probe(self.agent, self.agent["lifecycle"]["preStop"]), "a stuck agent holds a pod that is to end")

    def test_a_slow_agent_passes_and_holds_its_pod(self):
        self.serve()
        self.work("slow")
        for probe in (self.agent["readinessProbe"], *probes_of_page()):
            self.assertTrue(self.probe(self.agent, probe))
        hold = self.start(self.agent, self.agent["lifecycle"]["preStop"]["exec"]["command"])
        with self.assertRaises(subprocess.TimeoutExpired):
            hold.wait(0.5)
        (self.folder / "go-on").touch()
        self.assertEqual(self.working.wait(PATIENCE_S), 0)
        self.assertEqual(hold.wait(PATIENCE_S), 0, "the pod may end after its agent")

    def test_without_a_monitor_the_agent_is_ready(self):
        self.serve()
        self.work("slow")
        self.serving.send_signal(signal.SIGTERM)
        self.assertEqual(self.serving.wait(PATIENCE_S), 0)
        self.assertTrue(self.probe(self.agent, self.agent["readinessProbe"]))
        strict = [self.probe(self.agent, probe) for probe in probes_of_page()]
        self.assertEqual(strict, [True, False], "the probe without a shell needs the monitor")

    def test_a_monitor_of_many_pods_answers_for_a_label(self):
        (self.monitor,) = pods(manifest("kubernetes.yaml")[1])[0]["containers"]
        self.monitor["env"] = []  # The secret has the token.
        self.serve("0.0.0.0", WATCHDOG_TOKEN="0123456789abcdef-of-a-test")
        said = ""
        for code in commands_of_page():
            words = ["bash", "-euo", "pipefail", "-c", code.replace("http://watchdog:3000", self.url)]
            said = subprocess.run(words, cwd=SOURCE, capture_output=True, text=True, timeout=PATIENCE_S, check=True,
                                  env=self.environment(self.agent, WATCHDOG_TOKEN="0123456789abcdef-of-a-test", PYTHONDONTWRITEBYTECODE="1")).stdout
        found = json.loads(said)
        self.assertEqual((found["activity"], found["sessionId"]), ("idle", "night-1"))


if __name__ == "__main__":
    unittest.main()
