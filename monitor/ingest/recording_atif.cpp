// ATIF, the Agent Trajectory Interchange Format: one object with `schema_version`, `agent` and
// `steps`. A step is what a person, the agent or the system said; a step of the agent has its calls
// and their results. Source: laude-institute/harbor docs/rfcs/0001-trajectory-format.md.
#include <algorithm>

#include "ingest/recording_steps.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

class AtifReader final : public ValueReader {
 public:
  Result<void> read(const json& value, std::string_view /*text*/, StepList& steps) override {
    const auto& list = member(value, "steps");
    if (!list.is_array()) return Error{ErrorCode::malformed, "a trajectory must have steps"};
    const auto& agent = member(value, "agent");
    SessionSpec spec;
    spec.agent = short_name(text_in(agent, "name"));
    spec.labels["model"] = text_in(agent, "model_name");
    session_ = steps.session(text_in(value, "session_id"), std::move(spec));
    used_ = {};
    bool rests = false;
    std::optional<WallTime> at;
    for (const auto& step : list) {
      const auto source = text_in(step, "source");
      if (rests && source == "user") steps.rest(session_, {}, {}, at);
      at = moment_in(step, "timestamp");
      rests = false;
      if (source == "user") steps.prompt(session_, content_text(member(step, "message")), at);
      if (source == "agent") rests = read_answer(step, at, steps);
    }
    if (rests) steps.rest(session_, {}, {}, at);
    return {};
  }
  void finish(StepList& /*steps*/) override {}

 private:
  /// Returns whether the answer has no calls.
  bool read_answer(const json& step, std::optional<WallTime> at, StepList& steps) {
    steps.message(session_, "assistant", content_text(member(step, "message")), at);
    const auto& calls = member(step, "tool_calls");
    std::map<std::string, std::string> tools;
    if (calls.is_array()) {
      for (const auto& call : calls) {
        const auto id = text_in(call, "tool_call_id");
        const auto name = text_in(call, "function_name");
        steps.call(session_, name, id, content_text(member(call, "arguments")), at);
        tools.insert_or_assign(id, name);
      }
    }
    const auto& metrics = member(step, "metrics");
    if (metrics.is_object()) {
      ++used_.steps;
      used_.tokens = std::min(used_.tokens + tokens_in(metrics, "prompt_tokens") +
                                  tokens_in(metrics, "completion_tokens"),
                              budget_max);
      const auto& cost = member(metrics, "cost_usd");
      if (cost.is_number() && cost.get<double>() > 0)
        used_.cost = std::min(used_.cost + cost.get<double>(), 1e9);
      steps.use(session_, used_, at);
    }
    const auto& results = member(member(step, "observation"), "results");
    if (results.is_array()) {
      for (const auto& result : results) {
        auto id = text_in(result, "source_call_id");
        if (id.empty() && tools.size() == 1) id = tools.begin()->first;
        const auto tool = tools.find(id);
        if (tool == tools.end()) continue;
        steps.result(session_, tool->second, id, false, content_text(member(result, "content")),
                     at);
      }
    }
    return tools.empty();
  }

  std::shared_ptr<const RecordedSession> session_;
  BudgetFigures used_{};
};

}  // namespace

bool is_atif(const json& value) {
  return text_in(value, "schema_version").starts_with("ATIF") && member(value, "steps").is_array();
}

std::unique_ptr<ValueReader> atif_reader() {
  return std::make_unique<AtifReader>();
}

}  // namespace watchdog::monitor
