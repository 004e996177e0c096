// OpenHands: a list of events. Of version 0 an event has `action` with `args`, or `observation`
// with `content` and `extras`; of version 1 it has a `kind`. A file is the list itself (the
// trajectory that the program saves) or has one event per line. It may also be an object with the
// list as `history` or `trajectory` (a row of an evaluation's output.jsonl).
// Sources: All-Hands-AI/OpenHands openhands/events/serialization/event.py (04e2840),
// OpenHands/software-agent-sdk openhands-sdk/openhands/sdk/event/llm_convertible/action.py
// (17555e4) and observation.py (18de68b).
#include <algorithm>
#include <map>

#include "ingest/recording_steps.h"
#include "ingest/transcript_state.h"
#include "watchdog/reasons.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// The meaning of an action of version 0, or an event of version 1.
enum class HandsMeaning : std::uint8_t {
  call,     ///< every other action of the agent
  result,   ///< every other observation
  silent,   ///< housekeeping
  message,  ///< of a person or the agent
  finish,   ///< the agent says that it is done
  compact,
  state,     ///< the agent's state changed
  error,     ///< a call failed, or the agent did
  rejected,  ///< a person rejected a call
  paused
};

struct HandsRow {
  std::string_view name;
  HandsMeaning meaning;
};

constexpr HandsRow hands_actions[] = {
    {"message", HandsMeaning::message},      {"finish", HandsMeaning::finish},
    {"reject", HandsMeaning::finish},        {"condensation", HandsMeaning::compact},
    {"system", HandsMeaning::silent},        {"null", HandsMeaning::silent},
    {"recall", HandsMeaning::silent},        {"change_agent_state", HandsMeaning::silent},
    {"start", HandsMeaning::silent},         {"condensation_request", HandsMeaning::silent},
    {"loop_recovery", HandsMeaning::silent},
};
constexpr HandsRow hands_observations[] = {
    {"agent_state_changed", HandsMeaning::state},
    {"error", HandsMeaning::error},
    {"user_rejected", HandsMeaning::rejected},
    {"null", HandsMeaning::silent},
    {"recall", HandsMeaning::silent},
    {"condense", HandsMeaning::silent},
};
constexpr HandsRow hands_kinds[] = {
    {"MessageEvent", HandsMeaning::message},
    {"ActionEvent", HandsMeaning::call},
    {"ObservationEvent", HandsMeaning::result},
    {"AgentErrorEvent", HandsMeaning::error},
    {"UserRejectObservation", HandsMeaning::rejected},
    {"Condensation", HandsMeaning::compact},
    {"PauseEvent", HandsMeaning::paused},
    {"ConversationErrorEvent", HandsMeaning::error},
    {"SystemPromptEvent", HandsMeaning::silent},
    {"ConversationStateUpdateEvent", HandsMeaning::silent},
    {"CondensationRequest", HandsMeaning::silent},
    {"CondensationSummaryEvent", HandsMeaning::silent},
};

HandsMeaning hands_meaning(std::span<const HandsRow> rows, std::string_view name,
                           HandsMeaning otherwise) {
  const auto found = std::ranges::find(rows, name, &HandsRow::name);
  return found == rows.end() ? otherwise : found->meaning;
}

bool is_hands_event(const json& value) {
  const auto kind = text_in(value, "kind");
  if (!kind.empty())
    return std::ranges::find(hands_kinds, kind, &HandsRow::name) != std::end(hands_kinds);
  const bool is_action = member(value, "action").is_string() && member(value, "args").is_object();
  const bool is_observation = member(value, "observation").is_string() && value.contains("content");
  return is_action || is_observation;
}

/// The id of the run in a row; empty: it has none. A resolver names the issue instead.
std::string hands_id(const json& value) {
  auto id = text_in(value, "instance_id");
  const auto& issue = member(value, "issue");
  const auto number = number_in(issue, "number");
  if (!id.empty() || number <= 0) return id;
  const auto owner = text_in(issue, "owner");
  return (owner.empty() ? "" : owner + "__") + text_in(issue, "repo") + "-" +
         std::to_string(number);
}

/// The list of events in a file's value; null: it is another value.
const json* hands_list(const json& value) {
  if (value.is_array()) return &value;
  for (const auto* name : {"history", "trajectory"})
    if (member(value, name).is_array()) return &member(value, name);
  return nullptr;
}

/// Members of a call's arguments that differ from call to call, though the call is the same.
constexpr const char* hands_noise[] = {"thought",  "confirmation_state", "security_risk", "hidden",
                                       "blocking", "is_static",          "summary",       "kind"};

std::string hands_arguments(json arguments) {
  if (arguments.is_object())
    for (const auto* name : hands_noise) arguments.erase(name);
  return content_text(arguments);
}

class OpenHandsReader final : public ValueReader {
 public:
  Result<void> read(const json& value, std::string_view /*text*/, StepList& steps) override {
    SessionSpec spec;
    spec.agent = "openhands";
    session_ = steps.session(hands_id(value), std::move(spec));
    const auto* list = hands_list(value);
    if (list == nullptr) {
      read_event(value, steps);
      return {};
    }
    calls_.clear();
    for (const auto& event : *list) {
      if (event.is_array()) {  // older evaluations: an action with its observation
        for (const auto& part : event) read_event(part, steps);
      } else {
        read_event(event, steps);
      }
    }
    read_row_error(text_in(value, "error"));
    end(steps);
    return {};
  }
  void finish(StepList& steps) override { end(steps); }

 private:
  struct OpenCall {
    std::string tool;
    std::string id;
  };

  /// The row of an evaluation names what ended the run from outside.
  void read_row_error(std::string error) {
    if (error.empty()) return;
    const bool is_limit =
        error.find("maximum iteration") != error.npos || error.find("maximum budget") != error.npos;
    outcome_ =
        Outcome{.kind = is_limit ? OutcomeKind::incomplete : OutcomeKind::failed,
                .reason = std::string(is_limit ? reasons::max_iterations_reached : reasons::error),
                .error = content_text(std::move(error))};
  }

  /// The agent's own word about its task, `true`, `false` or `partial`. Without one it is done.
  void read_finish(const json& args, StepList& steps) {
    const auto& said = member(args, "task_completed");
    const auto word =
        said.is_boolean() ? (said.get<bool>() ? "true" : "false") : text_in(args, "task_completed");
    if (word == "false")
      outcome_ = Outcome{.kind = OutcomeKind::failed,
                         .reason = std::string(reasons::task_failed),
                         .error = "the agent states that its task is not completed"};
    if (word == "partial")
      outcome_ = Outcome{.kind = OutcomeKind::incomplete,
                         .reason = "partial",
                         .error = "the agent states that its task is partly completed"};
    steps.rest(session_, outcome_ ? idle_reports::failed : std::string_view(),
               outcome_ ? outcome_->error : std::string(), at_);
  }

  void end(StepList& steps) {
    if (!outcome_) return;
    steps.rest(session_, idle_reports::failed, outcome_->error, at_);
    steps.end(session_, *std::exchange(outcome_, {}), at_);
  }

  void read_event(const json& event, StepList& steps) {
    at_ = moment_in(event, "timestamp");
    if (!text_in(event, "kind").empty()) return read_kind(event, steps);
    if (const auto action = text_in(event, "action"); !action.empty())
      return read_action(event, action, steps);
    if (const auto seen = text_in(event, "observation"); !seen.empty())
      return read_observation(event, seen, steps);
  }

  void read_action(const json& event, const std::string& action, StepList& steps) {
    const auto& args = member(event, "args");
    const bool of_agent = text_in(event, "source") == "agent";
    switch (hands_meaning(hands_actions, action, HandsMeaning::call)) {
      case HandsMeaning::message:
        return read_message(of_agent, content_text(member(args, "content")), steps);
      case HandsMeaning::finish: {
        auto text = text_in(args, "final_thought");
        if (text.empty()) text = text_in(args, "thought");
        steps.message(session_, "assistant", std::move(text), at_);
        return read_finish(args, steps);
      }
      case HandsMeaning::compact: {
        Report report;
        report.kind = ReportKind::compaction;
        return steps.say(session_, std::move(report), at_);
      }
      case HandsMeaning::call:
        break;
      default:
        return;
    }
    steps.message(session_, "assistant", text_in(args, "thought"), at_);
    const auto& about = member(event, "tool_call_metadata");
    OpenCall call{.tool = text_in(about, "function_name"), .id = text_in(about, "tool_call_id")};
    if (call.tool.empty()) call.tool = action;
    const auto number = std::to_string(number_in(event, "id"));
    if (call.id.empty()) call.id = "event-" + number;
    steps.call(session_, call.tool, call.id, hands_arguments(args), at_);
    calls_.insert_or_assign(number, std::move(call));
  }

  void read_message(bool of_agent, std::string text, StepList& steps) {
    if (of_agent) return steps.message(session_, "assistant", std::move(text), at_);
    outcome_.reset();  // the run goes on
    if (!text.empty()) steps.prompt(session_, std::move(text), at_);
  }

  void read_observation(const json& event, const std::string& seen, StepList& steps) {
    const auto& extras = member(event, "extras");
    const auto meaning = hands_meaning(hands_observations, seen, HandsMeaning::result);
    if (meaning == HandsMeaning::state)
      return read_state(text_in(extras, "agent_state"), text_in(extras, "reason"), steps);
    const auto call = calls_.find(std::to_string(number_in(event, "cause")));
    auto text = content_text(member(event, "content"));
    if (call == calls_.end()) {
      if (meaning == HandsMeaning::error) steps.message(session_, "error", std::move(text), at_);
      return;
    }
    const auto& success = member(event, "success");
    const bool failed = meaning == HandsMeaning::error || meaning == HandsMeaning::rejected ||
                        (success.is_boolean() && !success.get<bool>()) ||
                        number_in(member(extras, "metadata"), "exit_code") > 0 ||
                        number_in(extras, "exit_code") > 0 || flag_in(extras, "error");
    steps.result(session_, call->second.tool, call->second.id, failed, std::move(text), at_);
    calls_.erase(call);
  }

  void read_state(const std::string& state, std::string why, StepList& steps) {
    if (state == "awaiting_user_input" || state == "finished")
      return steps.rest(session_, {}, {}, at_);
    if (state == "error" || state == "rejected")
      return steps.rest(session_, idle_reports::failed,
                        why.empty() ? "the agent's state became " + state : std::move(why), at_);
    if (state == "stopped" || state == "paused")
      return steps.rest(session_, idle_reports::interrupted, {}, at_);
    Report report;
    report.kind = ReportKind::wait;
    if (state == "awaiting_user_confirmation") {
      report.name = wait_reports::approval;
    } else if (state == "rate_limited") {
      report.name = wait_reports::quota;
    } else {
      if (state != "running" && state != "user_confirmed" && state != "user_rejected") return;
      report.kind = ReportKind::resume;
    }
    steps.say(session_, std::move(report), at_);
  }

  void read_kind(const json& event, StepList& steps) {
    auto tool = text_in(event, "tool_name");
    auto id = text_in(event, "tool_call_id");
    switch (hands_meaning(hands_kinds, text_in(event, "kind"), HandsMeaning::silent)) {
      case HandsMeaning::message:
        return read_message(text_in(event, "source") == "agent",
                            content_text(member(member(event, "llm_message"), "content")), steps);
      case HandsMeaning::call: {
        steps.message(session_, "assistant", content_text(member(event, "thought")), at_);
        const auto& action = member(event, "action");
        if (tool == "finish") {
          steps.message(session_, "assistant", text_in(action, "message"), at_);
          return read_finish(action, steps);
        }
        return steps.call(session_, std::move(tool), std::move(id), hands_arguments(action), at_);
      }
      case HandsMeaning::result: {
        if (tool == "finish") return;
        const auto& seen = member(event, "observation");
        auto text = content_text(member(seen, "content"));
        if (text.empty()) text = text_in(seen, "output");
        const bool failed = flag_in(seen, "is_error") || flag_in(seen, "error") ||
                            number_in(seen, "exit_code") > 0 ||
                            number_in(member(seen, "metadata"), "exit_code") > 0;
        return steps.result(session_, std::move(tool), std::move(id), failed, std::move(text), at_);
      }
      case HandsMeaning::error: {
        auto text = text_in(event, "error");
        if (text.empty()) text = text_in(event, "detail");
        if (!tool.empty())
          return steps.result(session_, std::move(tool), std::move(id), true, std::move(text), at_);
        return steps.rest(session_, idle_reports::failed, std::move(text), at_);
      }
      case HandsMeaning::rejected:
        return steps.result(session_, std::move(tool), std::move(id), true,
                            text_in(event, "rejection_reason"), at_);
      case HandsMeaning::compact: {
        Report report;
        report.kind = ReportKind::compaction;
        return steps.say(session_, std::move(report), at_);
      }
      case HandsMeaning::paused:
        return steps.rest(session_, idle_reports::interrupted, {}, at_);
      default:
        return;
    }
  }

  std::shared_ptr<const RecordedSession> session_;
  std::optional<WallTime> at_;
  std::optional<Outcome> outcome_;         ///< How the run ended, unless it is completed.
  std::map<std::string, OpenCall> calls_;  ///< By the number of their event.
};

}  // namespace

bool is_openhands(const json& value) {
  constexpr std::size_t looked_at = 100;
  if (is_hands_event(value)) return true;
  const auto* list = hands_list(value);
  if (list == nullptr) return false;
  for (std::size_t at = 0; at < list->size() && at < looked_at; ++at) {
    const auto& event = (*list)[at];
    if (is_hands_event(event.is_array() && !event.empty() ? event.front() : event)) return true;
  }
  return false;
}

std::unique_ptr<ValueReader> openhands_reader() {
  return std::make_unique<OpenHandsReader>();
}

}  // namespace watchdog::monitor
