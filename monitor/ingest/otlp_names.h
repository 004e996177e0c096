/// \file
/// The names of the attributes that are read, by their meaning. The first one that a record has
/// counts. The agents and conventions are Claude Code, Codex, Gemini CLI, opencode, OpenTelemetry's
/// GenAI conventions (both dialects), the Vercel AI SDK, OpenInference and OpenLLMetry. Nothing of
/// another name is ever read.
/// Copilot in VS Code: extensions/copilot/docs/monitoring/agent_monitoring.md in
/// microsoft/vscode@0151a9d. Copilot CLI: "OpenTelemetry reference" of docs.github.com. Both name
/// by `gen_ai.*` all that is read here. Their invoke_agent spans repeat the tokens of the chat
/// spans.
#pragma once

#include <span>
#include <string_view>

namespace watchdog::monitor::otlp_names {

using Aliases = std::span<const std::string_view>;

/// A user names the session.
inline constexpr std::string_view named_list[] = {"watchdog.session"};
inline constexpr std::string_view session_list[] = {"gen_ai.conversation.id",
                                                    "conversation.id",
                                                    "session.id",
                                                    "ai.telemetry.metadata.sessionId",
                                                    "traceloop.association.properties.session_id",
                                                    "copilot_chat.session_id"};
inline constexpr std::string_view service_list[] = {"service.name"};
inline constexpr std::string_view agent_list[] = {"gen_ai.agent.name", "agent_name", "agent.name"};
inline constexpr std::string_view subagent_list[] = {"agent_id"};
inline constexpr std::string_view subagent_of_list[] = {"parent_agent_id"};
/// A client of MCP has a span for a call that its agent reports, too.
inline constexpr std::string_view server_list[] = {"mcp.method.name"};
inline constexpr std::string_view event_list[] = {"event.name"};
/// They distinguish two records of one moment.
inline constexpr std::string_view order_list[] = {"event.sequence", "event.timestamp",
                                                  "tool_result_seq"};
/// The kind of a span, besides its name.
inline constexpr std::string_view kind_list[] = {"gen_ai.operation.name", "openinference.span.kind",
                                                 "traceloop.span.kind", "ai.operationId",
                                                 "llm.request.type"};
inline constexpr std::string_view tool_list[] = {"tool_name",        "function_name",
                                                 "gen_ai.tool.name", "ai.toolCall.name",
                                                 "tool.name",        "traceloop.entity.name"};
inline constexpr std::string_view call_list[] = {"tool_use_id",         "call_id",
                                                 "gen_ai.tool.call.id", "gen_ai.tool.call_id",
                                                 "ai.toolCall.id",      "tool_call.id"};
inline constexpr std::string_view arguments_list[] = {
    "arguments",        "function_args",
    "tool_input",       "tool_parameters",
    "full_command",     "gen_ai.tool.call.arguments",
    "ai.toolCall.args", "tool.parameters",
    "input.value",      "traceloop.entity.input"};
inline constexpr std::string_view result_list[] = {"output", "gen_ai.tool.call.result",
                                                   "ai.toolCall.result", "output.value",
                                                   "traceloop.entity.output"};
inline constexpr std::string_view duration_list[] = {"duration_ms"};
inline constexpr std::string_view success_list[] = {"success"};
inline constexpr std::string_view error_list[] = {"error.message", "error", "exception.message",
                                                  "error_type", "error.type"};
/// Whose model it is.
inline constexpr std::string_view provider_list[] = {"gen_ai.provider.name", "gen_ai.system",
                                                     "ai.model.provider", "llm.provider"};
inline constexpr std::string_view status_list[] = {"status_code", "http.response.status_code",
                                                   "http.status_code"};
inline constexpr std::string_view input_list[] = {"input_tokens",
                                                  "input_token_count",
                                                  "gen_ai.usage.input_tokens",
                                                  "gen_ai.usage.prompt_tokens",
                                                  "ai.usage.inputTokens",
                                                  "ai.usage.promptTokens",
                                                  "llm.token_count.prompt"};
inline constexpr std::string_view output_list[] = {"output_tokens",
                                                   "output_token_count",
                                                   "gen_ai.usage.output_tokens",
                                                   "gen_ai.usage.completion_tokens",
                                                   "ai.usage.outputTokens",
                                                   "ai.usage.completionTokens",
                                                   "llm.token_count.completion"};
inline constexpr std::string_view cost_list[] = {"cost_usd", "llm.cost.total"};
/// Of a metric: which tokens it counts.
inline constexpr std::string_view tokens_list[] = {"gen_ai.token.type", "type"};
inline constexpr std::string_view model_list[] = {"model",          "gen_ai.request.model",
                                                  "model_name",     "ai.model.id",
                                                  "llm.model_name", "gen_ai.response.model"};
inline constexpr std::string_view prompt_list[] = {"prompt"};
inline constexpr std::string_view answer_list[] = {"response"};
/// The model's raw answer. Only whether it asks for calls is read of it.
inline constexpr std::string_view raw_answer_list[] = {"response_text"};
inline constexpr std::string_view role_list[] = {"role", "query_source"};
inline constexpr std::string_view decision_list[] = {"decision"};
inline constexpr std::string_view decided_by_list[] = {"source"};
inline constexpr std::string_view stream_list[] = {"event.kind"};
inline constexpr std::string_view finish_list[] = {"terminate_reason", "status"};
inline constexpr std::string_view server_name_list[] = {"server_name", "mcp_server_name"};

inline constexpr Aliases named = named_list, session = session_list, service = service_list,
                         agent = agent_list, subagent = subagent_list,
                         subagent_of = subagent_of_list, server = server_list,
                         server_name = server_name_list, event = event_list, order = order_list,
                         kind = kind_list, tool = tool_list, call = call_list,
                         arguments = arguments_list, result = result_list, duration = duration_list,
                         success = success_list, error = error_list, status = status_list,
                         provider = provider_list, input = input_list, output = output_list,
                         cost = cost_list, model = model_list, prompt = prompt_list,
                         answer = answer_list, raw_answer = raw_answer_list, role = role_list,
                         decision = decision_list, decided_by = decided_by_list,
                         stream = stream_list, finish = finish_list, tokens = tokens_list;

inline constexpr Aliases all[] = {
    named, subagent_of, server,     server_name, tokens, session,   service, agent,    subagent,
    event, order,       kind,       tool,        call,   arguments, result,  duration, success,
    error, status,      input,      output,      cost,   model,     prompt,  answer,   raw_answer,
    role,  decision,    decided_by, stream,      finish, provider};

}  // namespace watchdog::monitor::otlp_names
