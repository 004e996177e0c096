// Helpers of the readers of recordings. A reader hands out one report after the other. A format may
// have several things in one place, such as a call with its result. They become several reports.
// Texts and lists of the format are bounded here.
#include "ingest/recording_steps.h"

#include <algorithm>

#include "codec/fields.h"
#include "facts/ids.h"
#include "ingest/bounded_text.h"
#include "ingest/time_text.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t recorded_name_max = 128;
/// Times outside of these years are mistakes.
constexpr std::int64_t recorded_ms_max = 7'258'118'400'000;  // 2200

Report recorded_report(ReportKind kind, std::string_view name = {}, std::string content = {}) {
  Report report;
  report.kind = kind;
  report.name = name;
  report.content = std::move(content);
  return report;
}

}  // namespace

std::string short_name(std::string_view text) {
  return first_bytes(text, recorded_name_max);
}

std::optional<WallTime> moment_in(const nlohmann::json& object, const char* name) {
  const auto& value = member(object, name);
  if (value.is_string()) {
    const auto moment = time_in_text(value.get_ref<const std::string&>());
    if (moment && moment->time_since_epoch().count() > 0) return moment;
    return std::nullopt;
  }
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  if (!(number > 0) || number > static_cast<double>(recorded_ms_max)) return std::nullopt;
  return WallTime{Millis{static_cast<std::int64_t>(number)}};
}

std::optional<WallTime> second_in(const nlohmann::json& object, const char* name) {
  // A number of milliseconds is larger for each year since 1970.
  constexpr double seconds_max = 1e10;
  const auto& value = member(object, name);
  if (!value.is_number() || value.get<double>() > seconds_max) return moment_in(object, name);
  const nlohmann::json moment = {{"ms", value.get<double>() * 1'000}};
  return moment_in(moment, "ms");
}

std::int64_t tokens_in(const nlohmann::json& object, const char* name) {
  return std::clamp<std::int64_t>(number_in(object, name), 0, budget_max / 8);
}

nlohmann::json value_in_text(const nlohmann::json& value) {
  if (!value.is_string()) return value;
  const auto& text = value.get_ref<const std::string&>();
  if (!text.starts_with('{') && !text.starts_with('[')) return value;
  auto parsed = parse_json(text);
  return parsed ? std::move(*parsed) : value;
}

std::shared_ptr<const RecordedSession> StepList::session(const std::string& id, SessionSpec spec) {
  auto own = as_session_id(id);
  if (own.empty()) own = name_;
  if (const auto known = sessions_.find(own); known != sessions_.end()) return known->second;
  if (sessions_.size() >= sessions_max) {
    is_full_ = true;
    return sessions_.begin()->second;
  }
  auto session = std::make_shared<RecordedSession>();
  session->id = own;
  session->spec = std::move(spec);
  session->spec.labels["via"] = "replay";
  session->spec.labels["format"] = name_of(format_);
  std::erase_if(session->spec.labels, [](const auto& label) {
    return label.second.empty() || label.second.size() > label_bytes_max;
  });
  return sessions_.emplace(own, std::move(session)).first->second;
}

void StepList::say(const std::shared_ptr<const RecordedSession>& session, Report report,
                   std::optional<WallTime> at) {
  if (steps_.size() >= steps_max) is_full_ = true;
  if (is_full_) return;
  if (at) report.ts_ms = at->time_since_epoch().count();
  RecordedStep step;
  step.session = session;
  step.report = std::move(report);
  step.place = static_cast<std::int64_t>(steps_.size());
  step.line = line_;
  steps_.push_back(std::move(step));
}

void StepList::prompt(const std::shared_ptr<const RecordedSession>& session, std::string text,
                      std::optional<WallTime> at) {
  say(session, recorded_report(ReportKind::user_input, {}, std::move(text)), at);
}

void StepList::message(const std::shared_ptr<const RecordedSession>& session, std::string_view role,
                       std::string text, std::optional<WallTime> at) {
  if (text.empty()) return;
  say(session, recorded_report(ReportKind::message, role, std::move(text)), at);
}

void StepList::call(const std::shared_ptr<const RecordedSession>& session, std::string tool,
                    std::string id, std::string arguments, std::optional<WallTime> at) {
  auto report = recorded_report(ReportKind::tool_call, short_name(tool), std::move(arguments));
  report.call_id = id.size() <= recorded_name_max ? std::move(id) : std::string();
  say(session, std::move(report), at);
}

void StepList::result(const std::shared_ptr<const RecordedSession>& session, std::string tool,
                      std::string id, bool failed, std::string text, std::optional<WallTime> at) {
  auto report = recorded_report(failed ? ReportKind::error : ReportKind::tool_result,
                                short_name(tool), std::move(text));
  report.call_id = id.size() <= recorded_name_max ? std::move(id) : std::string();
  say(session, std::move(report), at);
}

void StepList::use(const std::shared_ptr<const RecordedSession>& session,
                   const BudgetFigures& figures, std::optional<WallTime> at) {
  auto report = recorded_report(ReportKind::budget);
  report.detail = figures;
  say(session, std::move(report), at);
}

void StepList::rest(const std::shared_ptr<const RecordedSession>& session, std::string_view why,
                    std::string text, std::optional<WallTime> at) {
  say(session, recorded_report(ReportKind::idle, why, std::move(text)), at);
}

void StepList::end(const std::shared_ptr<const RecordedSession>& session, Outcome outcome,
                   std::optional<WallTime> at) {
  auto report = recorded_report(ReportKind::end);
  report.detail = std::move(outcome);
  say(session, std::move(report), at);
}

Error StepList::exceeded() {
  return {ErrorCode::exhausted, "the recording has more than " + std::to_string(steps_max) +
                                    " reports or " + std::to_string(sessions_max) +
                                    " sessions; split it"};
}

void StepList::sort() {
  // A step without a time stays behind the one before it.
  std::int64_t newest = 0;
  std::vector<std::int64_t> times;
  times.reserve(steps_.size());
  for (const auto& step : steps_) times.push_back(newest = step.report.ts_ms.value_or(newest));
  std::vector<std::size_t> order(steps_.size());
  for (std::size_t at = 0; at < order.size(); ++at) order[at] = at;
  std::ranges::stable_sort(order, {}, [&](std::size_t at) { return times[at]; });
  std::vector<RecordedStep> sorted;
  sorted.reserve(steps_.size());
  for (const auto at : order) sorted.push_back(std::move(steps_[at]));
  steps_ = std::move(sorted);
}

}  // namespace watchdog::monitor
