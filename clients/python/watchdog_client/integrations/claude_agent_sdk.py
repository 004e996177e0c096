"""Claude Agent SDK. Tested against a stand-in written from the documented interface, not against the package.

    options = ClaudeAgentOptions(hooks=watchdog_hooks(reporter))
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from claude_agent_sdk import HookMatcher
from watchdog_client import Reporter
from watchdog_client.integrations import Reports


def watchdog_hooks(reporter: Optional[Reporter] = None) -> Dict[str, List[Any]]:
    """Returns hooks that report prompts and calls of tools. After a cancel the next call is denied, and Claude stops."""
    reports = Reports(reporter)

    async def on_prompt(facts: Any, tool_use_id: Any, context: Any) -> Dict[str, Any]:
        if reports.reporter:
            reports.reporter.report("user_input", text=facts.get("prompt"))
        return {}

    async def before(facts: Any, tool_use_id: Any, context: Any) -> Dict[str, Any]:
        one = reports.reporter
        if one and one.cancel is not None:
            reason = f"stopped by {one.cancel.get('by')}: {one.cancel.get('reason')}"
            return {"continue_": False, "stopReason": reason, "hookSpecificOutput": {
                "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}}
        reports.step("tools")
        reports.begin(tool_use_id or facts["tool_use_id"], facts["tool_name"], facts["tool_input"])
        return {}

    async def after(facts: Any, tool_use_id: Any, context: Any) -> Dict[str, Any]:
        reports.end(tool_use_id or facts["tool_use_id"], facts.get("tool_response"), facts.get("error"))
        return {}

    hooks = {"UserPromptSubmit": on_prompt, "PreToolUse": before, "PostToolUse": after, "PostToolUseFailure": after}
    return {name: [HookMatcher(hooks=[hook])] for name, hook in hooks.items()}
