// Recordings that are trees of spans: exports of LangSmith and Langfuse. Spans come in any order. A
// span begins and ends, so it becomes two reports at two times. All of a run are sorted by time
// before they are handed out.
#include "ingest/recording_spans.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// Steps of one moment are in this order.
enum class SpanPhase : std::uint8_t { begin_turn, answered, begin_call, end_call, end_turn };

struct SpanMoment {
  std::int64_t at_ms = 0;
  SpanPhase phase = SpanPhase::begin_turn;
  std::size_t span = 0;
};

std::vector<SpanMoment> moments_of(const std::vector<RecordedSpan>& spans) {
  std::vector<SpanMoment> moments;
  std::int64_t newest = 0;
  for (std::size_t at = 0; at < spans.size(); ++at) {
    const auto& span = spans[at];
    if (span.begin) newest = span.begin->time_since_epoch().count();
    const auto begin = newest;
    const auto end =
        span.end ? std::max<std::int64_t>(span.end->time_since_epoch().count(), begin) : begin;
    switch (span.kind) {
      case RecordedSpan::Kind::call:
        moments.push_back({begin, SpanPhase::begin_call, at});
        if (span.end || span.failed) moments.push_back({end, SpanPhase::end_call, at});
        break;
      case RecordedSpan::Kind::answer:
      case RecordedSpan::Kind::trouble:
        moments.push_back({end, SpanPhase::answered, at});
        break;
      case RecordedSpan::Kind::turn:
        moments.push_back({begin, SpanPhase::begin_turn, at});
        if (span.end || span.failed) moments.push_back({end, SpanPhase::end_turn, at});
        break;
    }
  }
  std::ranges::stable_sort(
      moments, {}, [](const SpanMoment& moment) { return std::tuple(moment.at_ms, moment.phase); });
  return moments;
}

std::string role_of(const json& message) {
  for (const auto* name : {"role", "type"})
    if (auto role = text_in(message, name); !role.empty() && role != "constructor") return role;
  // A serialized message of LangChain: its class is the last part of `id`.
  const auto& id = member(message, "id");
  if (!id.is_array() || id.empty() || !id.back().is_string()) return {};
  const auto& type = id.back().get_ref<const std::string&>();
  if (type.starts_with("Human")) return "human";
  return type.starts_with("AI") ? "ai" : type;
}

bool is_by(const std::string& role, bool person) {
  return person ? role == "human" || role == "user"
                : role == "ai" || role == "assistant" || role == "AIMessageChunk";
}

/// The text of a message, whichever program wrote it.
std::string text_of_message(const json& message) {
  const auto& kwargs = member(message, "kwargs");
  const auto& content = member(kwargs.is_object() ? kwargs : message, "content");
  return content.is_null() ? std::string() : content_text(content);
}

/// The newest message of a list, which may be in a list of its own.
std::string newest_in(const json& list, bool of_person) {
  for (auto at = list.size(); at-- > 0;) {
    const auto& message = list[at];
    if (message.is_array()) {
      if (auto text = newest_in(message, of_person); !text.empty()) return text;
    } else if (is_by(role_of(message), of_person)) {
      return text_of_message(message);
    }
  }
  return {};
}

}  // namespace

std::string newest_text(const json& value, bool of_person) {
  constexpr const char* lists[] = {"messages", "choices", "generations"};
  constexpr const char* texts[] = {"input",  "question", "query",   "prompt", "output",
                                   "answer", "result",   "content", "text"};
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) return newest_in(value, of_person);
  if (!value.is_object()) return {};
  if (is_by(role_of(value), of_person)) return text_of_message(value);
  for (const auto* name : lists) {
    const auto& list = member(value, name);
    if (!list.is_array() || list.empty()) continue;
    if (auto text = newest_in(list, of_person); !text.empty()) return text;
    // An answer of a model: {"message": ..., "text": ...}, in a list for each question.
    const auto& first = list[0].is_array() && !list[0].empty() ? list[0][0] : list[0];
    if (auto text = text_of_message(member(first, "message")); !text.empty()) return text;
    if (auto text = text_in(first, "text"); !text.empty()) return text;
  }
  for (const auto* name : texts) {
    const auto& text = member(value, name);
    if (text.is_string() && !text.empty()) return text.get<std::string>();
  }
  return {};
}

double amount_in(const json& object, const char* name, double most) {
  const auto& value = member(object, name);
  double number = 0;
  if (value.is_number()) number = value.get<double>();
  return number > 0 ? std::min(number, most) : 0;
}

void add_spans(const std::vector<RecordedSpan>& spans, StepList& steps) {
  std::map<std::string, BudgetFigures> used;
  for (const auto& moment : moments_of(spans)) {
    const auto& span = spans[moment.span];
    SessionSpec spec;
    spec.agent = short_name(span.agent);
    const auto session = steps.session(span.session, std::move(spec));
    const auto at = moment.at_ms > 0 ? std::optional(WallTime{Millis{moment.at_ms}})
                                     : std::optional<WallTime>();
    steps.begin_value(span.line);
    switch (moment.phase) {
      case SpanPhase::begin_turn:
        if (!span.input.empty()) steps.prompt(session, span.input, at);
        break;
      case SpanPhase::answered: {
        steps.message(session, span.failed ? "error" : "assistant", span.output, at);
        if (span.kind != RecordedSpan::Kind::answer || span.failed) break;
        auto& figures = used[session->id];
        ++figures.steps;
        figures.tokens = std::min(figures.tokens + span.tokens, budget_max);
        figures.cost += span.cost;
        steps.use(session, figures, at);
        break;
      }
      case SpanPhase::begin_call:
        steps.call(session, span.name, span.id, span.input, at);
        break;
      case SpanPhase::end_call:
        steps.result(session, span.name, span.id, span.failed, span.output, at);
        break;
      case SpanPhase::end_turn:
        steps.rest(session, span.failed ? idle_reports::failed : std::string_view(),
                   span.failed ? span.output : std::string(), at);
        break;
    }
  }
}

}  // namespace watchdog::monitor
