// pi, and programs made of it such as OpenClaw: lines of one session. The first has the type
// `session`; a `message` holds what its person, the model or a tool said. Messages of version 3
// form a tree. Branches that a person left are read, too: the agent worked on them.
// Source: badlogic/pi-mono packages/coding-agent/src/core/session-manager.ts.
#include <algorithm>

#include "ingest/recording_steps.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

class PiReader final : public ValueReader {
 public:
  Result<void> read(const json& value, std::string_view /*text*/, StepList& steps) override {
    const auto type = text_in(value, "type");
    const auto at = moment_in(value, "timestamp");
    if (type == "session") {
      SessionSpec spec;
      spec.agent = "pi";
      spec.labels["cwd"] = text_in(value, "cwd");
      session_ = steps.session(text_in(value, "id"), std::move(spec));
      used_ = {};
      return {};
    }
    if (!session_) session_ = steps.session({});
    if (type == "message") read_message(member(value, "message"), at, steps);
    if (type == "compaction") {
      Report report;
      report.kind = ReportKind::compaction;
      steps.say(session_, std::move(report), at);
    }
    return {};
  }
  void finish(StepList& /*steps*/) override {}

 private:
  void read_message(const json& message, std::optional<WallTime> at, StepList& steps) {
    const auto role = text_in(message, "role");
    auto text = content_text(member(message, "content"));
    if (role == "user") return steps.prompt(session_, std::move(text), at);
    if (role == "toolResult")
      return steps.result(session_, text_in(message, "toolName"), text_in(message, "toolCallId"),
                          flag_in(message, "isError"), std::move(text), at);
    if (role != "assistant") return;
    steps.message(session_, "assistant", std::move(text), at);
    bool calls = false;
    for (const auto& block : member(message, "content")) {
      if (text_in(block, "type") != "toolCall") continue;
      calls = true;
      steps.call(session_, text_in(block, "name"), text_in(block, "id"),
                 content_text(member(block, "arguments")), at);
    }
    count(member(message, "usage"), at, steps);
    const auto stop = text_in(message, "stopReason");
    if (stop == "aborted") return steps.rest(session_, idle_reports::interrupted, {}, at);
    if (stop == "error")
      return steps.rest(session_, idle_reports::failed,
                        content_text(member(message, "errorMessage")), at);
    if (!calls && stop != "toolUse") steps.rest(session_, {}, {}, at);
  }

  void count(const json& usage, std::optional<WallTime> at, StepList& steps) {
    if (!usage.is_object()) return;
    ++used_.steps;
    used_.tokens =
        std::min(used_.tokens + tokens_in(usage, "input") + tokens_in(usage, "output"), budget_max);
    const auto& cost = member(member(usage, "cost"), "total");
    if (cost.is_number() && cost.get<double>() > 0)
      used_.cost = std::min(used_.cost + cost.get<double>(), 1e9);
    steps.use(session_, used_, at);
  }

  std::shared_ptr<const RecordedSession> session_;
  BudgetFigures used_{};
};

}  // namespace

bool is_pi(const json& value) {
  return text_in(value, "type") == "session" && !text_in(value, "id").empty() &&
         !text_in(value, "cwd").empty() && !text_in(value, "timestamp").empty();
}

std::unique_ptr<ValueReader> pi_reader() {
  return std::make_unique<PiReader>();
}

}  // namespace watchdog::monitor
