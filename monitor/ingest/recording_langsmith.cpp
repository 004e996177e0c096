// LangSmith: runs, as the API and the SDK return them. A file has one run per line, a list of runs,
// or an object with the list as `runs`. A run may hold its `child_runs`. The session is the thread
// that the metadata name, else the trace. Times without a zone are UTC.
// Sources: https://docs.langchain.com/langsmith/run-data-format (the members of a run) and
// https://docs.langchain.com/langsmith/threads (session_id, thread_id, conversation_id).
#include <algorithm>

#include "ingest/recording_spans.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr double smith_tokens_max = 1e12;

/// The thread of a run; empty: it names none.
std::string smith_thread(const json& run) {
  const auto& metadata = member(member(run, "extra"), "metadata");
  for (const auto* name : {"session_id", "thread_id", "conversation_id"})
    if (auto thread = text_in(metadata, name); !thread.empty()) return thread;
  return {};
}

std::string smith_parent(const json& run) {
  if (auto parent = text_in(run, "parent_run_id"); !parent.empty()) return parent;
  const auto& parents = member(run, "parent_run_ids");
  return parents.is_array() && !parents.empty() && parents.back().is_string()
             ? parents.back().get<std::string>()
             : std::string();
}

/// Members without a meaning for the identity of a call are few: the input is taken as it is.
std::string smith_arguments(const json& inputs) {
  const auto& only = member(inputs, "input");
  return inputs.size() == 1 && !only.is_null() ? content_text(only) : content_text(inputs);
}

/// The output of a tool: a text, or a message for the model.
const json& smith_output(const json& outputs) {
  const auto& output = member(outputs, "output");
  return output.is_null() ? outputs : output;
}

class LangSmithReader final : public ValueReader {
 public:
  Result<void> read(const json& value, std::string_view /*text*/, StepList& /*steps*/) override {
    ++line_;
    const auto& list = value.is_array() ? value : member(value, "runs");
    if (!list.is_array()) return read_run(value, {}, {}, 0);
    for (const auto& run : list)
      if (auto done = read_run(run, {}, {}, 0); !done) return done;
    return {};
  }

  void finish(StepList& steps) override {
    // Only the run that begins a trace may name the thread.
    for (auto& span : spans_)
      if (const auto thread = threads_.find(span.session); thread != threads_.end())
        span.session = thread->second;
    add_spans(spans_, steps);
  }

 private:
  Result<void> read_run(const json& run, const std::string& trace_above, const std::string& above,
                        int level) {
    constexpr int levels_max = 64;
    if (!run.is_object()) return Error{ErrorCode::malformed, "a run must be an object"};
    if (level > levels_max || spans_.size() >= StepList::steps_max) return StepList::exceeded();
    RecordedSpan span;
    span.line = line_;
    span.id = text_in(run, "id");
    span.session = text_in(run, "trace_id");
    if (span.session.empty()) span.session = trace_above.empty() ? span.id : trace_above;
    if (auto thread = smith_thread(run); !thread.empty()) threads_.emplace(span.session, thread);
    const auto trace = span.session;
    span.name = text_in(run, "name");
    span.begin = moment_in(run, "start_time");
    span.end = moment_in(run, "end_time");
    const auto error = text_in(run, "error");
    span.failed = !error.empty() || text_in(run, "status") == "error";
    const auto& inputs = member(run, "inputs");
    const auto& outputs = member(run, "outputs");
    const auto type = text_in(run, "run_type");
    const bool is_first = above.empty() && smith_parent(run).empty();
    if (type == "tool") {
      const auto& output = smith_output(outputs);
      const auto& kwargs = member(output, "kwargs");
      const auto& message = kwargs.is_object() ? kwargs : output;
      span.failed = span.failed || text_in(message, "status") == "error";
      span.input = smith_arguments(inputs);
      span.output = content_text(message.is_object() && message.contains("content")
                                     ? member(message, "content")
                                     : message);
      if (!error.empty()) span.output = error;
      spans_.push_back(std::move(span));
    } else if (type == "llm") {
      span.kind = RecordedSpan::Kind::answer;
      span.output = span.failed ? error : content_text(newest_text(outputs, false));
      span.tokens = static_cast<std::int64_t>(amount_in(run, "total_tokens", smith_tokens_max));
      span.cost = amount_in(run, "total_cost", 1e9);
      if (span.end || span.failed) spans_.push_back(std::move(span));
    } else if (is_first) {
      span.kind = RecordedSpan::Kind::turn;
      span.agent = span.name;
      span.input = content_text(newest_text(inputs, true));
      span.output = error;
      spans_.push_back(std::move(span));
    }
    const auto& children = member(run, "child_runs");
    if (!children.is_array()) return {};
    for (const auto& child : children)
      if (auto done = read_run(child, trace, text_in(run, "id"), level + 1); !done) return done;
    return {};
  }

  int line_ = 0;
  std::vector<RecordedSpan> spans_;
  std::map<std::string, std::string> threads_;  ///< By trace.
};

}  // namespace

bool is_langsmith(const json& value) {
  const auto& list = value.is_array() ? value : member(value, "runs");
  const auto& run = list.is_array() && !list.empty() ? list.front() : value;
  return !text_in(run, "run_type").empty() && run.contains("inputs");
}

std::unique_ptr<ValueReader> langsmith_reader() {
  return std::make_unique<LangSmithReader>();
}

}  // namespace watchdog::monitor
