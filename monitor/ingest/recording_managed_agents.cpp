// Events of a managed agent, whose session runs on Anthropic's servers. A file has the API's own
// events, one per line, in a list or as `data` of a page. Or it has lines of a program that keeps
// such an event as `raw`. Source: https://docs.claude.com/en/api/managed-agents (session events).
#include <algorithm>

#include "ingest/recording_steps.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

enum class ManagedMeaning : std::uint8_t {
  prompt,
  message,
  call,
  result,
  use,
  trouble,
  compact,
  interrupt,
  idle,
  over
};

struct ManagedRow {
  std::string_view type;
  ManagedMeaning meaning;
};

constexpr ManagedRow managed_rows[] = {
    {"user.message", ManagedMeaning::prompt},
    {"user.define_outcome", ManagedMeaning::prompt},
    {"user.interrupt", ManagedMeaning::interrupt},
    {"user.custom_tool_result", ManagedMeaning::result},
    {"agent.message", ManagedMeaning::message},
    {"agent.tool_use", ManagedMeaning::call},
    {"agent.mcp_tool_use", ManagedMeaning::call},
    {"agent.custom_tool_use", ManagedMeaning::call},
    {"agent.tool_result", ManagedMeaning::result},
    {"agent.mcp_tool_result", ManagedMeaning::result},
    {"agent.thread_context_compacted", ManagedMeaning::compact},
    {"span.model_request_end", ManagedMeaning::use},
    {"session.error", ManagedMeaning::trouble},
    {"session.status_idle", ManagedMeaning::idle},
    {"session.status_terminated", ManagedMeaning::over},
};

/// The API's event in a value.
const json& managed_event(const json& value) {
  const auto& raw = member(value, "raw");
  return raw.is_object() ? raw : value;
}

bool is_managed_event(const json& value) {
  const auto& event = managed_event(value);
  const auto type = text_in(event, "type");
  constexpr std::string_view parts[] = {"agent.", "user.", "session.", "span."};
  return std::ranges::any_of(parts, [&](auto part) { return type.starts_with(part); }) &&
         !text_in(event, "id").empty() && event.contains("processed_at");
}

class ManagedReader final : public ValueReader {
 public:
  Result<void> read(const json& value, std::string_view /*text*/, StepList& steps) override {
    if (!session_) {
      SessionSpec spec;
      spec.agent = "managed-agent";
      session_ = steps.session({}, std::move(spec));
    }
    const auto& list = value.is_array() ? value : member(value, "data");
    if (!list.is_array()) {
      read_event(managed_event(value), steps);
      return {};
    }
    for (const auto& one : list) read_event(managed_event(one), steps);
    return {};
  }
  void finish(StepList& /*steps*/) override {}

 private:
  void read_event(const json& event, StepList& steps) {
    const auto type = text_in(event, "type");
    const auto* row = std::ranges::find(managed_rows, type, &ManagedRow::type);
    if (row == std::end(managed_rows)) return;
    const auto at = moment_in(event, "processed_at");
    auto text = content_text(member(event, "content"));
    switch (row->meaning) {
      case ManagedMeaning::prompt:
        if (text.empty()) text = text_in(event, "description");
        return steps.prompt(session_, content_text(text), at);
      case ManagedMeaning::message:
        return steps.message(session_, "assistant", std::move(text), at);
      case ManagedMeaning::call: {
        const auto id = text_in(event, "id");
        tools_.insert_or_assign(id, text_in(event, "name"));
        return steps.call(session_, text_in(event, "name"), id,
                          content_text(member(event, "input")), at);
      }
      case ManagedMeaning::result: {
        std::string id;
        for (const auto* name : {"tool_use_id", "mcp_tool_use_id", "custom_tool_use_id"})
          if (id.empty()) id = text_in(event, name);
        const auto tool = tools_.extract(id);
        return steps.result(session_, tool ? tool.mapped() : std::string(), id,
                            flag_in(event, "is_error"), std::move(text), at);
      }
      case ManagedMeaning::use: {
        const auto& usage = member(event, "model_usage");
        ++used_.steps;
        used_.tokens = std::min(
            used_.tokens + tokens_in(usage, "input_tokens") + tokens_in(usage, "output_tokens"),
            budget_max);
        return steps.use(session_, used_, at);
      }
      case ManagedMeaning::trouble:
        return steps.message(session_, "error",
                             content_text(member(member(event, "error"), "message")), at);
      case ManagedMeaning::compact: {
        Report report;
        report.kind = ReportKind::compaction;
        return steps.say(session_, std::move(report), at);
      }
      case ManagedMeaning::interrupt:
        return steps.rest(session_, idle_reports::interrupted, {}, at);
      case ManagedMeaning::idle:
        return read_idle(text_in(member(event, "stop_reason"), "type"), at, steps);
      case ManagedMeaning::over: {
        Outcome outcome{.kind = OutcomeKind::incomplete, .reason = "terminated"};
        return steps.end(session_, std::move(outcome), at);
      }
    }
  }

  void read_idle(const std::string& why, std::optional<WallTime> at, StepList& steps) {
    if (why == "retries_exhausted") return steps.rest(session_, idle_reports::failed, why, at);
    if (why != "requires_action") return steps.rest(session_, {}, {}, at);
    Report report;
    report.kind = ReportKind::wait;
    report.name = wait_reports::approval;
    steps.say(session_, std::move(report), at);
  }

  std::shared_ptr<const RecordedSession> session_;
  std::map<std::string, std::string> tools_;  ///< By the ids of their calls.
  BudgetFigures used_{};
};

}  // namespace

bool is_managed_agents(const json& value) {
  const auto& list = value.is_array() ? value : member(value, "data");
  return list.is_array() ? !list.empty() && is_managed_event(list.front())
                         : is_managed_event(value);
}

std::unique_ptr<ValueReader> managed_agents_reader() {
  return std::make_unique<ManagedReader>();
}

}  // namespace watchdog::monitor
