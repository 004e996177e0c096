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

    WAYS = None  # Each.
    LATE_S = {}  # A way: by how much later it shows that a turn is over.
    APPROVE = b"\r"  # The first choice of its question is to allow the call once.

    def __init__(self, packages, folder, program, monitor, model, way, asks=False, limit_s=300):
        """`asks`: it asks before it runs a command. `limit_s`: its own time limit without news of the model, where it can be set."""
        self.packages, self.way, self.monitor, self.model = pathlib.Path(packages), way, monitor, model
        self.program, self.asks, self.limit_s = program, asks, limit_s
        self.resumed = False  # A command goes on with the session of the one before.
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
        return self.way in ("hooks", "both", "all", "run")

    def again(self, new, old):
        """The options that name its session."""
        return [old if self.resumed else new, self.session]

    def shared(self, path):
        """A folder that all homes share, because a program fills it slowly at its first start."""
        kept = self.packages.parent / "shared" / path.name
        kept.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(kept)

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
    PACKAGE = "@openai/codex"

    def set_up(self):
        self.environment["CODEX_HOME"] = str(self.home / "codex")
        self.write("codex/config.toml", f"""
model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false
model_auto_compact_token_limit = 100000
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "{self.model}/v1"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
stream_idle_timeout_ms = {self.limit_s * 1000}
[projects."{self.project}"]
trust_level = "trusted"
{self.telemetry("codex")}""")
        if self.hooked:
            self.hooks("codex")

    def command(self, prompt, interactive):
        trust = ["-a", "on-request", "-s", "read-only"] if self.asks else ["--dangerously-bypass-approvals-and-sandbox"]
        headless = [] if interactive else ["exec", "--skip-git-repo-check"]
        return [self.packages / ".bin/codex", *headless, *trust, "--dangerously-bypass-hook-trust", *(["resume", "--last"] if self.resumed else []), prompt]


class OpenCode(Agent):
    PACKAGE = "opencode-ai"

    def set_up(self):
        self.environment |= {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                             "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"}
        self.write("config/opencode/opencode.json", json.loads(self.telemetry("opencode") or "{}") | {
            "$schema": "https://opencode.ai/config.json", "model": "scripted/scripted", "autoupdate": False, "share": "disabled",
            "provider": {"scripted": {
                "npm": "@ai-sdk/openai-compatible", "name": "scripted",
                "options": {"baseURL": f"{self.model}/v1", "apiKey": "none", "headerTimeout": self.limit_s * 1000, "chunkTimeout": self.limit_s * 1000},
                "models": {"scripted": {"name": "scripted", "tool_call": True, "limit": {"context": 100000, "output": 4000}}}}}})
        if self.asks:
            self.write("config/opencode/opencode.json", json.loads((self.home / "config/opencode/opencode.json").read_text()) | {"permission": {"bash": "ask"}})
        # Where plugins are, it installs the package for their types at its first start, with npm.
        for name in ("node_modules", "package.json", "package-lock.json"):
            (self.home / "config/opencode" / name).symlink_to(self.packages.parent / "opencode" / name)
        if self.hooked:
            self.hooks("opencode")

    def command(self, prompt, interactive):
        trust = [] if self.asks else ["--auto"]
        return [self.packages / ".bin/opencode", *(["--prompt", prompt, *trust] if interactive else ["run", *trust, *(["-c"] if self.resumed else []), prompt])]

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
    PACKAGE = "@google/gemini-cli"
    # Calls may follow each answer in its file. The monitor takes it for the last one after a minute without a line.
    LATE_S = {"transcripts": 60}

    def set_up(self):
        at = f"{self.model}/s/{self.session}" if self.way in ("both", "all") else self.model
        self.environment |= {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": at, "GEMINI_CLI_NO_RELAUNCH": "true"}
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
                    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": 2},
                    "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": self.way in ("telemetry", "all")},
                    # It would stop after five equal calls by itself, and leave nothing to find.
                    "model": {"disableLoopDetection": True, "compressionThreshold": 0.1}}
        self.telemetry("gemini-cli")
        self.write(".gemini/settings.json", settings)
        if self.hooked:
            self.hooks("gemini-cli")

    def command(self, prompt, interactive):
        session = ["--resume", "latest"] if self.resumed else ["--session-id", self.session]
        return ["node", self.packages / ".bin/gemini", "-m", "gemini-2.5-flash", *([] if self.asks else ["-y"]), "--skip-trust", *session,
                "-i" if interactive else "-p", prompt]


class ClaudePlayed(Agent):
    """Played, from its documentation: its licence is not free."""

    WAYS = ("hooks",)

    def set_up(self):
        self.hooks("claude-code")

    def command(self, prompt, interactive):
        return [sys.executable, HERE / "claude.py", self.model, self.home / ".claude/settings.json", prompt]

    def escape(self, process, terminal):
        os.kill(process.pid, signal.SIGINT)


class ClaudeCode(Agent):
    """The real program. Its licence is not free, so only scripts/agents installs it."""

    PACKAGE = "@anthropic-ai/claude-code"

    def set_up(self):
        self.environment |= {"ANTHROPIC_BASE_URL": self.model, "ANTHROPIC_API_KEY": "none", "IS_SANDBOX": "1",
                             "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "2",
                             "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}
        if self.limit_s < 300:
            self.environment["API_TIMEOUT_MS"] = str(self.limit_s * 1000)
        self.write(".claude.json", {
            "hasCompletedOnboarding": True, "theme": "dark", "bypassPermissionsModeAccepted": True, "numStartups": 5,
            "customApiKeyResponses": {"approved": ["none"], "rejected": []},
            "projects": {str(self.project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}})
        self.write(".claude/settings.json", {"skipDangerousModePermissionPrompt": True})
        self.telemetry("claude-code")
        if self.hooked:
            self.hooks("claude-code")

    def command(self, prompt, interactive):
        program = next(self.packages.glob("@anthropic-ai/claude-code-linux-*/claude"))
        # By itself it decides in most cases, and asks nobody.
        trust = ["--permission-mode", "default"] if self.asks else ["--dangerously-skip-permissions"]
        return [program, *trust, "--model", "sonnet", *self.again("--session-id", "--resume"), *([] if interactive else ["-p"]), prompt]


class CopilotCli(Agent):
    """The real one, with a model of our own and without an account."""

    PACKAGE = "@github/copilot"

    def set_up(self):
        self.environment |= {"COPILOT_PROVIDER_BASE_URL": f"{self.model}/v1", "COPILOT_MODEL": "scripted", "COPILOT_OFFLINE": "true",
                             "COPILOT_HOME": str(self.home / ".copilot"), "COPILOT_AUTO_UPDATE": "false"}
        if self.way in ("both", "all"):
            self.environment["COPILOT_PROVIDER_HEADERS"] = f"X-Watchdog-Session: {self.session}"
        self.shared(self.home / "cache" / "copilot")
        self.write(".copilot/config.json", {"trusted_folders": [str(self.project)], "banner": "never"})
        self.telemetry("copilot")
        if self.hooked:
            self.hooks("copilot-cli")

    def command(self, prompt, interactive):
        program = next(self.packages.glob("@github/copilot-linux-*/copilot"))
        trust = [] if self.asks else ["--allow-all-tools", "--allow-all-paths"]
        return [program, *trust, "--no-auto-update", *self.again("--session-id", "--resume"), "-i" if interactive else "-p", prompt]


AGENTS = {"codex": Codex, "opencode": OpenCode, "gemini": Gemini, "claude": ClaudePlayed}

# With those that scripts/agents gets.
ALL_AGENTS = {"claude": ClaudeCode, "codex": Codex, "opencode": OpenCode, "gemini": Gemini, "copilot": CopilotCli}
