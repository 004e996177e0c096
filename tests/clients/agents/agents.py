"""Real coding agents, set up to report in a way: by their hooks, through the proxy, by both at once, by telemetry, or by all."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent


class Agent:
    """An agent in a home and a project of its own. `program`: watchdog-monitor. `monitor`: URL of its API. `model`: URL of the model's server."""

    WAYS = ("hooks", "proxy", "both", "telemetry", "all")

    def __init__(self, packages, folder, program, monitor, model, way):
        self.packages, self.way, self.monitor, self.model = pathlib.Path(packages), way, monitor, model
        self.program = program
        self.home, self.project = pathlib.Path(folder, "home"), pathlib.Path(folder, "project")
        for path in (self.home, self.project):
            path.mkdir(parents=True)
        self.session = str(uuid.uuid4())
        self.environment = {
            "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color", "SHELL": "/bin/sh", "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"), "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_CACHE_HOME": str(self.home / "cache"), "XDG_STATE_HOME": str(self.home / "state"),
            "NO_PROXY": "*", "no_proxy": "*"}
        self.set_up()

    def escape(self, process, terminal):
        """Somebody interrupts it."""
        os.write(terminal, b"\x1b")

    def calls(self):
        """True while a shell works for it in the project."""
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if path.joinpath("cwd").readlink() == self.project and b"touch started" in path.joinpath("cmdline").read_bytes():
                    return True
            except OSError:
                pass  # It is gone, or somebody else's.
        return False

    @property
    def hooked(self):
        return self.way in ("hooks", "both", "all")

    def telemetry(self, agent):
        """What makes the agent export its telemetry, as the monitor prints it for a user: its text for a file, empty if none."""
        if self.way not in ("telemetry", "all"):
            return ""
        made = json.loads(subprocess.run([self.program, "env", agent, "--server", self.monitor, "--json"], env=self.environment,
                                         check=True, stdout=subprocess.PIPE).stdout)
        self.environment |= made["variables"]
        return made["text"] or ""

    def write(self, name, content):
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    def hooks(self, agent):
        """As a user installs them."""
        subprocess.run([self.program, "hooks", "install", agent, "--server", self.monitor], env=self.environment, check=True,
                       stdout=subprocess.DEVNULL)


class Codex(Agent):
    def set_up(self):
        self.environment["CODEX_HOME"] = str(self.home / "codex")
        self.write("codex/config.toml", f"""
model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "{self.model}/v1"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
[projects."{self.project}"]
trust_level = "trusted"
{self.telemetry("codex")}""")
        if self.hooked:
            self.hooks("codex")

    def command(self, prompt, interactive):
        return [self.packages / ".bin/codex", *([] if interactive else ["exec", "--skip-git-repo-check"]),
                "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", prompt]


class OpenCode(Agent):
    def set_up(self):
        self.environment |= {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                             "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"}
        self.write("config/opencode/opencode.json", json.loads(self.telemetry("opencode") or "{}") | {
            "$schema": "https://opencode.ai/config.json", "model": "scripted/scripted", "autoupdate": False, "share": "disabled",
            "provider": {"scripted": {
                "npm": "@ai-sdk/openai-compatible", "name": "scripted", "options": {"baseURL": f"{self.model}/v1", "apiKey": "none"},
                "models": {"scripted": {"name": "scripted", "tool_call": True, "limit": {"context": 100000, "output": 4000}}}}}})
        # Where plugins are, it installs the package for their types at its first start, with npm.
        for name in ("node_modules", "package.json", "package-lock.json"):
            (self.home / "config/opencode" / name).symlink_to(self.packages.parent / "opencode" / name)
        if self.hooked:
            self.hooks("opencode")

    def command(self, prompt, interactive):
        return [self.packages / ".bin/opencode", *(["--prompt", prompt, "--auto"] if interactive else ["run", "--auto", prompt])]

    def escape(self, process, terminal):
        # It asks whether that was meant, for some seconds. On a busy machine it reads the answer too late.
        for _ in range(5):
            for _ in range(2):
                os.write(terminal, b"\x1b")
                time.sleep(0.5)
            end = time.monotonic() + 3
            while time.monotonic() < end:
                if not self.calls():
                    return
                time.sleep(0.1)


class Gemini(Agent):
    def set_up(self):
        at = f"{self.model}/s/{self.session}" if self.way in ("both", "all") else self.model
        self.environment |= {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": at, "GEMINI_CLI_NO_RELAUNCH": "true"}
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
                    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": 2},
                    "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": self.way in ("telemetry", "all")},
                    # It would stop after five equal calls by itself, and leave nothing to find.
                    "model": {"disableLoopDetection": True}}
        self.telemetry("gemini-cli")
        self.write(".gemini/settings.json", settings)
        if self.hooked:
            self.hooks("gemini-cli")

    def command(self, prompt, interactive):
        return ["node", self.packages / ".bin/gemini", "-m", "gemini-2.5-flash", "-y", "--skip-trust", "--session-id", self.session,
                "-i" if interactive else "-p", prompt]


class Claude(Agent):
    """Played, from its documentation: it is no free software."""

    WAYS = ("hooks",)

    def set_up(self):
        self.hooks("claude-code")

    def command(self, prompt, interactive):
        return [sys.executable, HERE / "claude.py", self.model, self.home / ".claude/settings.json", prompt]

    def escape(self, process, terminal):
        os.kill(process.pid, signal.SIGINT)


AGENTS = {"codex": Codex, "opencode": OpenCode, "gemini": Gemini, "claude": Claude}
