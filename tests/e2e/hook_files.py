"""Where `hooks install` writes: below the home directory, and below a project."""

FILES = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini-cli": ".gemini/settings.json",
         "opencode": ".config/opencode/plugin/watchdog.js", "cursor": ".cursor/hooks.json", "copilot-cli": ".copilot/hooks/watchdog.json"}
IN_PROJECT = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini-cli": ".gemini/settings.json",
              "opencode": ".opencode/plugin/watchdog.js", "cursor": ".cursor/hooks.json", "copilot-cli": ".github/hooks/watchdog.json"}
