#!/usr/bin/python3
"""Usage: container_test.py MONITOR

Runs what packaging/container/compose*.yaml start in the container, on free ports and in a folder instead of the volume. Then it
runs the commands of the page "macOS and Windows" against that monitor.
"""

import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CONTAINER = SOURCE / "packaging/container"
PAGE = (SOURCE / "docs/how-to/macos-and-windows.md").read_text()
PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None
PATIENCE_S = 60
TOKEN = "0123456789abcdef-of-a-test"
FILES = ("compose.yaml", "compose.desktop.yaml")


def filled(text, values):
    """Fills the variables of a compose file in. One that has no value ends the start with its text."""
    def one(found):
        if found[1] not in values:
            raise KeyError(found[2])
        return values[found[1]]
    return re.sub(r"\$\{(\w+)(?::\?([^}]*))?\}", one, text)


def compose(name, **values):
    return yaml.safe_load(filled((CONTAINER / name).read_text(), values))


def image_environment():
    """The variables that the image sets: the last ENV of the Dockerfile."""
    return dict(pair.split("=", 1) for pair in re.findall(r"^ENV (.*)$", (CONTAINER / "Dockerfile").read_text(), re.M)[-1].split())


def blocks(language, comment):
    """The blocks of the page below such a comment."""
    return re.findall(rf"^<!-- {re.escape(comment)} -->\n```{language}\n(.*?)^```$", PAGE, re.M | re.S)


class Model(http.server.BaseHTTPRequestHandler):
    """A model server that only lists its models."""

    def do_GET(self):
        body = b'{"object":"list","data":[{"id":"small","object":"model"}]}' if self.path == "/v1/models" else b"{}"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Files(unittest.TestCase):
    def test_a_start_without_a_token_is_refused(self):
        for name in FILES:
            with self.subTest(file=name), self.assertRaisesRegex(KeyError, "at least 16 characters"):
                compose(name, MODEL="m.gguf")

    def test_both_files_start_the_same_image_in_the_same_way(self):
        both, desktop = (compose(name, MODEL="m.gguf", WATCHDOG_TOKEN=TOKEN)["services"]["monitor"] for name in FILES)
        changed = {key for key in {*both, *desktop} if both.get(key) != desktop.get(key)}
        self.assertEqual(changed, {"command", "extra_hosts"})
        self.assertEqual(both["command"][:-1], desktop["command"][:-1], "only the model server differs")
        self.assertTrue((CONTAINER / desktop["build"]["context"] / desktop["build"]["dockerfile"]).is_file())
        for port in desktop["ports"]:
            self.assertRegex(port, r"^127\.0\.0\.1:", "other machines reach the port")

    def test_the_page_names_files_that_exist(self):
        for name in re.findall(r"packaging/[\w./-]+", PAGE):
            self.assertTrue((SOURCE / name).is_file(), name)


@unittest.skipIf(PROGRAM is None, "no program is named")
class Container(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "data").mkdir()
        self.model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
        threading.Thread(target=self.model.serve_forever, daemon=True).start()
        self.addCleanup(self.model.server_close)
        self.addCleanup(self.model.shutdown)

    def environment(self, service):
        image = {name: re.sub("^/data", str(self.folder / "data"), value) for name, value in image_environment().items()}
        return {**image, **service["environment"]}

    def start(self, name):
        """Starts the monitor of a compose file. Its command is unchanged except for its ports and the address of the model server."""
        self.service = compose(name, MODEL="m.gguf", WATCHDOG_TOKEN=TOKEN)["services"]["monitor"]
        words = [re.sub(r"^http://(llama|host\.docker\.internal):8080$", f"http://127.0.0.1:{self.model.server_port}", word) for word in self.service["command"]]
        self.assertIn(f"http://127.0.0.1:{self.model.server_port}", words)
        self.log = open(self.folder / "log", "w+", encoding="utf-8")
        self.addCleanup(self.log.close)
        self.process = subprocess.Popen([PROGRAM, *words, "--port", "0", "--proxy-port", "0"], cwd=self.folder, env=self.environment(self.service),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.addCleanup(self.process.stdout.close)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        lines = [self.process.stdout.readline() for _ in range(3)]
        found = re.match(r"listening on http://0\.0\.0\.0:(\d+)\n.*\nagents reach their model at http://0\.0\.0\.0:(\d+)/v1 ", "".join(lines))
        self.assertTrue(found, (lines, (self.folder / "log").read_text()))
        self.url, self.proxy = (f"http://127.0.0.1:{port}" for port in found.groups())

    def ask(self, path, token=TOKEN):
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {token}"} if token else {})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.loads(answer.read())

    def shell(self, code, **more):
        """Runs commands of the page as a reader would. Their ports are those of this test."""
        for port, url in (("3000", self.url), ("3001", self.proxy)):
            code = code.replace(f"http://127.0.0.1:{port}", url)
        return subprocess.run(["bash", "-euo", "pipefail", "-c", code], cwd=SOURCE, capture_output=True, text=True, timeout=PATIENCE_S, check=True,
                              env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "WATCHDOG_TOKEN": TOKEN, "WATCHDOG_SERVER": self.url,
                                   "PYTHONDONTWRITEBYTECODE": "1"}, **{"input": "", **more}).stdout

    def test_each_command_serves_reports_and_models(self):
        for name in FILES:
            with self.subTest(file=name):
                self.start(name)
                health = json.loads(re.search(r"^HEALTHCHECK .*?CMD (.*)$", (CONTAINER / "Dockerfile").read_text(), re.M)[1])
                said = subprocess.run([PROGRAM, *health[1:], "--wait", "60", "--server", self.url], env=self.environment(self.service), capture_output=True,
                                      text=True, check=False)
                self.assertEqual((said.returncode, said.stdout), (0, "ready\n"))
                self.assertEqual(self.ask("/api/activity")["activity"], "unknown")
                with self.assertRaises(urllib.error.HTTPError) as refused:
                    self.ask("/api/activity", token=None)
                refused.exception.close()
                self.assertEqual(refused.exception.code, 401, "a request without a token is answered")
                self.process.send_signal(signal.SIGTERM)
                self.assertEqual(self.process.wait(PATIENCE_S), 0)
                self.assertTrue((self.folder / "data/watchdog.db").is_file(), "the database is not in the volume")
                self.assertNotIn(TOKEN, (self.folder / "log").read_text())
                (self.folder / "data/watchdog.db").unlink()

    def test_the_commands_of_the_page_work(self):
        self.start("compose.desktop.yaml")
        check, proxy, client = blocks("sh", "not run: container_test.py runs it")
        self.assertEqual(json.loads(self.shell(check))["activity"], "unknown")
        self.assertIn('"small"', self.shell(proxy))
        self.shell(client)
        self.assertEqual(self.ask("/api/activity?session=from-the-desktop")["activity"], "idle")

    def test_the_hook_of_the_page_reports(self):
        self.start("compose.desktop.yaml")
        (settings,) = blocks("json", "a hook that container_test.py runs")
        ((event, (entry,)),) = json.loads(settings)["hooks"].items()
        (hook,) = entry["hooks"]
        self.shell(hook["command"], input=json.dumps({"session_id": "by-hook", "hook_event_name": event, "prompt": "Repair the parser"}))
        self.assertEqual(self.ask("/api/activity?session=by-hook")["activity"], "working")


if __name__ == "__main__":
    unittest.main()
