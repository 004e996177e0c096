TITLE = "Claude Agent SDK"
PACKAGES = ["claude-agent-sdk"]
CALL = ("Bash", {"command": "echo found", "description": "Says it"})  # The example gives it no tools of its own.

import os
import tempfile

import given

folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
os.environ |= {"ANTHROPIC_BASE_URL": given.MODEL, "ANTHROPIC_API_KEY": "none", "CLAUDE_CONFIG_DIR": folder.name, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
task = given.task
