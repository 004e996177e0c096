/// \file
/// What each log, span and metric means, whichever agent sent it. `otlp_names.h` has the names of
/// their attributes.
#pragma once

#include <cstdint>
#include <string_view>

#include "ingest/otlp_record.h"

namespace watchdog::monitor::otlp_table {

/// The meaning of a record.
enum class Meaning : std::uint8_t {
  seen,     ///< the session exists
  prompt,   ///< a person asks
  answer,   ///< the text of an answer
  call,     ///< a tool call that is over
  decided,  ///< a call was allowed or denied
  request,  ///< a request to the model is answered; its tokens come in another record
  model,    ///< likewise, with its tokens
  failure,  ///< the model did not answer
  stream,   ///< an event of the model's stream
  retry,    ///< the model is asked again
  compact,  ///< the agent shortened its context
  trouble,  ///< an error that a person may want to know of
  agent,    ///< a turn is over; of a span below another agent or a call: a child session is
  flow,     ///< likewise, of what contains agents
  sub_begin,
  sub_end,
  joined,    ///< the state of a server of tools
  fallback,  ///< the agent goes on with another model
  recovery,  ///< the agent tried to repair a turn that failed
  tokens,    ///< a total of tokens
  cost       ///< a total of money
};

struct Row {
  OtlpSignal signal;
  std::string_view name;
  Meaning meaning;
};

inline constexpr auto log = OtlpSignal::logs;
inline constexpr auto span = OtlpSignal::traces;
inline constexpr auto metric = OtlpSignal::metrics;

inline constexpr Row rows[] = {
    // Claude Code
    {log, "claude_code.user_prompt", Meaning::prompt},
    {log, "claude_code.assistant_response", Meaning::answer},
    {log, "claude_code.tool_result", Meaning::call},
    {log, "claude_code.tool_decision", Meaning::decided},
    {log, "claude_code.api_request", Meaning::model},
    {log, "claude_code.api_error", Meaning::failure},
    {log, "claude_code.api_refusal", Meaning::trouble},
    {log, "claude_code.internal_error", Meaning::trouble},
    {span, "claude_code.tool", Meaning::call},
    {span, "claude_code.interaction", Meaning::flow},
    {log, "claude_code.mcp_server_connection", Meaning::joined},
    {metric, "claude_code.token.usage", Meaning::tokens},
    {metric, "claude_code.cost.usage", Meaning::cost},
    // Codex
    {log, "codex.conversation_starts", Meaning::seen},
    {log, "codex.user_prompt", Meaning::prompt},
    {log, "codex.tool_result", Meaning::call},
    {log, "codex.tool_decision", Meaning::decided},
    {log, "codex.api_request", Meaning::request},
    {log, "codex.sse_event", Meaning::stream},
    {log, "codex.websocket_connect", Meaning::request},
    {log, "codex.websocket_request", Meaning::request},
    {log, "codex.websocket_event", Meaning::stream},
    // Gemini CLI
    {log, "gemini_cli.config", Meaning::seen},
    {log, "gemini_cli.user_prompt", Meaning::prompt},
    {log, "gemini_cli.tool_call", Meaning::call},
    {log, "gemini_cli.api_response", Meaning::model},
    {log, "gemini_cli.api_error", Meaning::failure},
    {log, "gemini_cli.chat.content_retry", Meaning::retry},
    {log, "gemini_cli.chat.content_retry_failure", Meaning::trouble},
    {log, "gemini_cli.chat_compression", Meaning::compact},
    {log, "gemini_cli.chat.invalid_chunk", Meaning::retry},
    {log, "gemini_cli.conversation_finished", Meaning::flow},
    {log, "gemini_cli.agent.start", Meaning::sub_begin},
    {log, "gemini_cli.agent.finish", Meaning::sub_end},
    {log, "gemini_cli.agent.recovery_attempt", Meaning::recovery},
    {log, "gemini_cli.flash_fallback", Meaning::fallback},
    {metric, "gemini_cli.token.usage", Meaning::tokens},
    // VS Code Copilot Chat. Its log copilot_chat.tool.call has no id, and its span the same call
    {log, "copilot_chat.session.start", Meaning::seen},
    // OpenTelemetry's GenAI conventions; Copilot follows them
    {span, "execute_tool", Meaning::call},
    {span, "chat", Meaning::model},
    {span, "text_completion", Meaning::model},
    {span, "generate_content", Meaning::model},
    {span, "invoke_agent", Meaning::agent},
    {span, "invoke_workflow", Meaning::flow},
    {span, "create_agent", Meaning::seen},
    {span, "plan", Meaning::seen},
    {metric, "gen_ai.client.token.usage", Meaning::tokens},
    // Vercel AI SDK; opencode uses it
    {span, "ai.toolCall", Meaning::call},
    {span, "ai.streamText.doStream", Meaning::model},
    {span, "ai.generateText.doGenerate", Meaning::model},
    {span, "ai.streamObject.doStream", Meaning::model},
    {span, "ai.generateObject.doGenerate", Meaning::model},
    {span, "ai.streamText", Meaning::agent},
    {span, "ai.generateText", Meaning::agent},
    // OpenInference
    {span, "TOOL", Meaning::call},
    {span, "LLM", Meaning::model},
    {span, "AGENT", Meaning::agent},
    // OpenLLMetry
    {span, "tool", Meaning::call},
    {span, "completion", Meaning::model},
    {span, "agent", Meaning::agent},
    {span, "workflow", Meaning::flow},
};

/// An agent that is known by the beginning of its service's name, and the event ids that its hooks
/// give to calls. With the same ids a call is stored once, whichever source reports it first.
struct Sender {
  std::string_view service;
  std::string_view agent;
  std::string_view call;
  std::string_view result;
  std::string_view failure;
};
inline constexpr Sender senders[] = {
    {"claude-code", "claude-code",
     "hook:PreToolUse:", "hook:PostToolUse:", "hook:PostToolUseFailure:"},
    {"codex", "codex", "hook:PreToolUse:", "hook:PostToolUse:", "hook:PostToolUse:"},
    {"gemini-cli", "gemini-cli", "hook:BeforeTool:", "hook:AfterTool:", "hook:AfterTool:"},
    {"opencode", "opencode",
     "hook:tool.execute.before:", "hook:tool.execute.after:", "hook:message.part.updated:"},
    {"", "", "otlp:call:", "otlp:result:", "otlp:result:"},
};

}  // namespace watchdog::monitor::otlp_table
