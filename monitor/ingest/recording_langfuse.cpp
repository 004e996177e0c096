// Langfuse: observations. A file is a trace with its `observations` (Download JSON in the page, and
// the API), or an object with the list as `data` (a page of the API). It may also be a list of
// observations or traces, or have one of them per line (the export into a blob storage). Members
// have two spellings:
// `traceId` of the API and `trace_id` of the export. Only observations of the type TOOL are calls:
// older integrations, which write tools as spans, show none. Sources:
// https://langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields,
// https://langfuse.com/faq/all/export-single-trace-or-session and the Observation of the API.
#include <algorithm>
#include <set>

#include "ingest/recording_spans.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// A member in either spelling.
const json& fuse_member(const json& object, const char* camel, const char* snake) {
  const auto& value = member(object, camel);
  return value.is_null() ? member(object, snake) : value;
}

std::string fuse_text(const json& object, const char* camel, const char* snake) {
  const auto& value = fuse_member(object, camel, snake);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<WallTime> fuse_moment(const json& object, const char* camel, const char* snake) {
  const auto moment = moment_in(object, camel);
  return moment ? moment : moment_in(object, snake);
}

constexpr std::string_view fuse_types[] = {"SPAN",      "GENERATION", "EVENT",     "AGENT",
                                           "TOOL",      "CHAIN",      "RETRIEVER", "EVALUATOR",
                                           "EMBEDDING", "GUARDRAIL"};

bool is_observation(const json& value) {
  return std::ranges::find(fuse_types, text_in(value, "type")) != std::end(fuse_types) &&
         !fuse_member(value, "startTime", "start_time").is_null();
}

class LangfuseReader final : public ValueReader {
 public:
  Result<void> read(const json& value, std::string_view /*text*/, StepList& /*steps*/) override {
    ++line_;
    if (value.is_array()) return read_items(value);
    if (member(value, "data").is_array()) return read_items(member(value, "data"));
    return read_item(value);
  }

  void finish(StepList& steps) override {
    for (auto& span : spans_) {
      // The outermost observation is a turn only where the trace itself is not known.
      if (span.kind == RecordedSpan::Kind::turn && span.id.empty()) span.end = ends_[span.session];
      if (const auto found = sessions_.find(span.session); found != sessions_.end())
        span.session = found->second;
    }
    add_spans(spans_, steps);
  }

 private:
  Result<void> read_items(const json& list) {
    for (const auto& item : list)
      if (auto done = read_item(item); !done) return done;
    return {};
  }

  /// A trace with its observations, or an observation.
  Result<void> read_item(const json& value) {
    const auto& observations = member(value, "observations");
    if (!observations.is_array()) return read_observation(value, {});
    // The trace is the object itself, or a member of it.
    const auto& trace = member(value, "trace").is_object() ? member(value, "trace") : value;
    if (spans_.size() >= StepList::steps_max) return StepList::exceeded();
    read_trace(trace);
    return read_list(observations, trace);
  }

  void read_trace(const json& trace) {
    RecordedSpan turn;
    turn.kind = RecordedSpan::Kind::turn;
    turn.line = line_;
    turn.session = text_in(trace, "id");
    turn.agent = text_in(trace, "name");
    turn.begin = moment_in(trace, "timestamp");
    turn.input = content_text(newest_text(value_in_text(member(trace, "input")), true));
    if (auto session = fuse_text(trace, "sessionId", "session_id"); !session.empty())
      sessions_.emplace(turn.session, std::move(session));
    known_.insert(turn.session);
    spans_.push_back(std::move(turn));
  }

  Result<void> read_list(const json& list, const json& trace) {
    for (const auto& observation : list)
      if (auto done = read_observation(observation, trace); !done) return done;
    return {};
  }

  Result<void> read_observation(const json& value, const json& trace) {
    if (!value.is_object()) return Error{ErrorCode::malformed, "an observation must be an object"};
    if (spans_.size() >= StepList::steps_max) return StepList::exceeded();
    RecordedSpan span;
    span.line = line_;
    span.id = text_in(value, "id");
    span.session = fuse_text(value, "traceId", "trace_id");
    if (span.session.empty()) span.session = text_in(trace, "id");
    if (auto session = fuse_text(value, "sessionId", "session_id"); !session.empty())
      sessions_.emplace(span.session, std::move(session));
    span.name = text_in(value, "name");
    span.agent = fuse_text(value, "traceName", "trace_name");
    span.begin = fuse_moment(value, "startTime", "start_time");
    span.end = fuse_moment(value, "endTime", "end_time");
    span.failed = text_in(value, "level") == "ERROR";
    if (span.end) ends_[span.session] = std::max(ends_[span.session], span.end);
    const auto error = fuse_text(value, "statusMessage", "status_message");
    const auto output = value_in_text(member(value, "output"));
    const auto type = text_in(value, "type");
    if (type == "TOOL") {
      span.input = content_text(value_in_text(member(value, "input")));
      span.output = span.failed && !error.empty() ? error : content_text(output);
    } else if (type == "GENERATION") {
      span.kind = RecordedSpan::Kind::answer;
      span.output = span.failed ? error : content_text(newest_text(output, false));
      read_use(value, span);
    } else if (type == "EVENT" && span.failed) {
      span.kind = RecordedSpan::Kind::trouble;
      span.output = error;
    } else if (fuse_text(value, "parentObservationId", "parent_observation_id").empty() &&
               !known_.contains(span.session)) {
      span.kind = RecordedSpan::Kind::turn;
      span.input = content_text(newest_text(value_in_text(member(value, "input")), true));
      span.output = error;
      if (span.agent.empty()) span.agent = span.name;
    } else {
      return {};
    }
    spans_.push_back(std::move(span));
    return {};
  }

  static void read_use(const json& value, RecordedSpan& span) {
    constexpr double tokens_max = 1e12;
    constexpr double cost_max = 1e9;
    const auto& usage = fuse_member(value, "usageDetails", "usage_details");
    span.tokens = static_cast<std::int64_t>(
        amount_in(usage.is_object() ? usage : member(value, "usage"), "total", tokens_max));
    span.cost = amount_in(fuse_member(value, "costDetails", "cost_details"), "total", cost_max);
    for (const auto* name : {"totalCost", "total_cost", "calculatedTotalCost"})
      if (!(span.cost > 0)) span.cost = amount_in(value, name, cost_max);
  }

  int line_ = 0;
  std::vector<RecordedSpan> spans_;
  std::map<std::string, std::string> sessions_;          ///< By trace.
  std::map<std::string, std::optional<WallTime>> ends_;  ///< The latest end of each trace.
  std::set<std::string> known_;                          ///< Traces whose own object was read.
};

}  // namespace

namespace {

bool begins_with_observation(const json& list) {
  return list.is_array() && !list.empty() && is_observation(list.front());
}

}  // namespace

bool is_langfuse(const json& value) {
  const auto& data = member(value, "data");
  const auto& list = value.is_array() ? value : data;
  if (list.is_array() && !list.empty() &&
      begins_with_observation(member(list.front(), "observations")))
    return true;
  if (begins_with_observation(list) || begins_with_observation(member(value, "observations")))
    return true;
  return is_observation(value) && !fuse_text(value, "traceId", "trace_id").empty();
}

std::unique_ptr<ValueReader> langfuse_reader() {
  return std::make_unique<LangfuseReader>();
}

}  // namespace watchdog::monitor
