// The table of formats. Each function that recognizes one asks for members that only this format
// has, so that the file of another program is refused and not read as something else. The general
// form of chat messages comes last, because other formats hold such messages.
#include <algorithm>
#include <iterator>

#include "ingest/recording_steps.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr RecordingRow rows[] = {
    {RecordingFormat::otlp, is_otlp, otlp_reader},
    {RecordingFormat::codex, is_codex, codex_reader},
    {RecordingFormat::claude_code, is_claude_code, claude_code_reader},
    {RecordingFormat::atif, is_atif, atif_reader},
    {RecordingFormat::swe_agent, is_swe_agent, swe_agent_reader},
    {RecordingFormat::langsmith, is_langsmith, langsmith_reader},
    {RecordingFormat::langfuse, is_langfuse, langfuse_reader},
    {RecordingFormat::openhands, is_openhands, openhands_reader},
    {RecordingFormat::opencode, is_opencode, opencode_reader},
    {RecordingFormat::gemini_cli, is_gemini_cli, gemini_cli_reader},
    {RecordingFormat::cline, is_cline, cline_reader},
    {RecordingFormat::pi, is_pi, pi_reader},
    {RecordingFormat::managed_agents, is_managed_agents, managed_agents_reader},
    {RecordingFormat::codex_log, is_codex_log, codex_log_reader},
    {RecordingFormat::aider, is_aider, aider_reader},
    {RecordingFormat::chat, is_chat, chat_reader},
};

}  // namespace

std::span<const RecordingRow> recording_rows() {
  return rows;
}

std::optional<RecordingFormat> format_of(const json& value) {
  for (const auto& row : rows)
    if (row.is_one(value)) return row.format;
  return std::nullopt;
}

std::unique_ptr<ValueReader> value_reader(RecordingFormat format) {
  const auto* row = std::ranges::find(rows, format, &RecordingRow::format);
  return row == std::end(rows) ? nullptr : row->reader();
}

std::string guess_of(const json& value) {
  const auto& first = value.is_array() && !value.empty() ? value.front() : value;
  const auto has = [&](const char* name) { return first.is_object() && first.contains(name); };
  if (has("session_id") && has("type") && (has("message") || has("subtype")))
    return "output of another program in the form of `claude -p --output-format stream-json`";
  if (has("info") && has("messages")) return "an export of opencode in a version that is not known";
  if (has("projectHash")) return "a chat of Gemini CLI in a version that is not known";
  if (has("request") && has("response")) return "a log of requests to a model";
  if (has("conversations") || has("messages") || (has("role") && has("content")))
    return "messages of a chat whose roles are not known";
  if (has("prompt") && has("completion")) return "a list of prompts for training";
  if (has("kind")) return "events of another program that have a kind, too";
  return {};
}

}  // namespace watchdog::monitor
