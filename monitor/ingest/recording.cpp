// A recording is recognized by its first values: its first lines, or the whole file if that is one
// JSON value. `recording_rows` has the signs of each format. Events and transcripts are read line
// by line, so they may have any size. The other formats are read whole and their steps sorted,
// because their exporters do not write in the order of time; their size is bounded.
#include "ingest/recording.h"

#include <algorithm>
#include <deque>
#include <fstream>

#include "codec/json.h"
#include "codec/json_bounds.h"
#include "ingest/bounded_lines.h"
#include "ingest/recording_steps.h"
#include "ingest/trace.h"
#include "ingest/transcript.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// Values of a file that are looked at to recognize its format.
constexpr int recognized_values_max = 100;

bool is_event(const json& value) {
  return named<ReportKind>(text_in(value, "kind")).has_value();
}

bool is_claude_code(const json& value) {
  const auto type = text_in(value, "type");
  const bool is_line = type == "user" || type == "assistant" || type == "system";
  return is_line && !text_in(value, "sessionId").empty();
}

bool is_codex(const json& value) {
  const auto type = text_in(value, "type");
  const bool is_line = type == "session_meta" || type == "response_item" || type == "event_msg" ||
                       type == "turn_context" || type == "compacted";
  return is_line && member(value, "payload").is_object();
}

struct RecordingRow {
  RecordingFormat format;
  bool (*is_one)(const json& value);
};

/// In the order in which they are asked.
constexpr RecordingRow recording_rows[] = {
    {RecordingFormat::watchdog, is_event},      {RecordingFormat::otlp, is_otlp},
    {RecordingFormat::codex, is_codex},         {RecordingFormat::claude_code, is_claude_code},
    {RecordingFormat::swe_agent, is_swe_agent}, {RecordingFormat::langsmith, is_langsmith},
    {RecordingFormat::langfuse, is_langfuse},   {RecordingFormat::openhands, is_openhands},
};

std::string recording_formats() {
  std::string text;
  for (const auto name : Names<RecordingFormat>::all)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

std::optional<RecordingFormat> format_of(const json& value) {
  for (const auto& row : recording_rows)
    if (row.is_one(value)) return row.format;
  return std::nullopt;
}

/// Parses a value within the bounds. Errors name the line in the text, counted from 1.
Result<json> parsed_value(std::string_view text) {
  if (auto checked = check_json(text); !checked) {
    auto error = checked.error();
    if (error.code != ErrorCode::malformed) return error;
    error.message = "it is not JSON";
    error.line = 1;
    try {
      if (json::parse(text).is_null()) error.line = 1;
      error.message = "it is JSON with more than " + std::to_string(json_depth_max) + " levels";
    } catch (const json::parse_error& failure) {
      const auto end = std::min(failure.byte, text.size());
      error.line += static_cast<int>(
          std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    }
    return error;
  }
  return json::parse(text, nullptr, false);
}

/// Events of this project. Each line is a report of one session.
class EventReader final : public RecordingReader {
 public:
  EventReader(Trace trace, const std::string& session) : trace_(std::move(trace)) {
    auto made = std::make_shared<RecordedSession>();
    made->id = session;
    made->by = ReportOrigin::unknown;
    session_ = std::move(made);
  }
  Result<std::optional<RecordedStep>> next() override {
    auto line = trace_.next();
    if (!line) return line.error();
    if (!*line) return std::optional<RecordedStep>{};
    RecordedStep step;
    step.session = session_;
    step.report = std::move((*line)->report);
    step.place = (*line)->seq;
    step.line = (*line)->line;
    return std::optional(std::move(step));
  }
  std::int64_t bytes() const override { return trace_.bytes(); }

 private:
  Trace trace_;
  std::shared_ptr<const RecordedSession> session_;
};

/// A transcript. Reports that follow from its end come last.
class TranscriptReader final : public RecordingReader {
 public:
  TranscriptReader(BoundedLines lines, TranscriptAgent agent)
      : lines_(std::move(lines)), transcript_(agent) {}

  Result<std::optional<RecordedStep>> next() override {
    std::string text;
    while (steps_.empty()) {
      if (is_over_) return std::optional<RecordedStep>{};
      const auto found = lines_.next(text, transcript_line_bytes_max);
      if (!found) return found.error();
      if (!*found) {
        is_over_ = true;
        read(transcript_.pause());
        continue;
      }
      auto batches = transcript_.read(text, system_clock().wall());
      if (!batches) return lines_.at_line({ErrorCode::malformed, "the line is not a JSON object"});
      read(std::move(*batches));
    }
    auto step = std::move(steps_.front());
    steps_.pop_front();
    return std::optional(std::move(step));
  }
  std::int64_t bytes() const override { return lines_.bytes(); }

 private:
  static constexpr std::size_t transcript_line_bytes_max = 16UL * 1024 * 1024;

  void read(std::vector<Batch> batches) {
    for (auto& batch : batches) {
      auto session = std::make_shared<RecordedSession>();
      session->id = batch.session;
      session->spec = std::move(batch.spec);
      session->spec.labels["via"] = "replay";
      if (session->spec.title.empty()) session->spec.title = transcript_.title_of(batch.session);
      session->by = batch.by;
      for (auto& report : batch.reports) {
        RecordedStep step;
        step.session = session;
        step.report = std::move(report);
        step.place = lines_.number() - 1;
        step.line = lines_.number();
        step.only_known = batch.creation == Creation::refuse;
        steps_.push_back(std::move(step));
      }
    }
  }

  BoundedLines lines_;
  Transcript transcript_;
  bool is_over_ = false;
  std::deque<RecordedStep> steps_;
};

/// Steps that were made of the whole file. An error comes after the steps before it.
class ListReader final : public RecordingReader {
 public:
  ListReader(std::vector<RecordedStep> steps, std::optional<Error> error, std::int64_t bytes)
      : steps_(std::move(steps)), error_(std::move(error)), bytes_(bytes) {}

  Result<std::optional<RecordedStep>> next() override {
    if (at_ < steps_.size()) return std::optional(std::move(steps_[at_++]));
    if (error_) return *error_;
    return std::optional<RecordedStep>{};
  }
  std::int64_t bytes() const override {
    return steps_.empty()
               ? bytes_
               : static_cast<std::int64_t>(static_cast<double>(bytes_) * static_cast<double>(at_) /
                                           static_cast<double>(steps_.size()));
  }

 private:
  std::vector<RecordedStep> steps_;
  std::optional<Error> error_;
  std::int64_t bytes_;
  std::size_t at_ = 0;
};

/// The file as one JSON value. Errors name file and line.
Result<std::string> whole_text(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string text;
  std::string part(1UL * 1024 * 1024, '\0');
  while (stream) {
    stream.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part, 0, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > recording_value_max)
      return Error{ErrorCode::exhausted, file.string() + ": one JSON value has more than " +
                                             std::to_string(recording_value_max) +
                                             " bytes; export one object per line instead"};
  }
  if (stream.bad()) return Error{ErrorCode::unavailable, file.string() + " cannot be read"};
  return text;
}

/// The findings about a file before it is read.
struct RecordingKind {
  std::optional<RecordingFormat> format{};
  bool has_lines = true;  ///< Each line is a JSON value; else the whole file is one.
  bool is_empty = false;
};

Result<RecordingKind> recording_kind(const std::filesystem::path& file) {
  auto lines = BoundedLines::open(file);
  if (!lines) return lines.error();
  RecordingKind kind;
  std::string text;
  // Events of a newer version may have kinds that this one does not know.
  bool all_have_kinds = true;
  const auto found_in_lines = [&](int count) {
    if (!kind.format && count > 0 && all_have_kinds) kind.format = RecordingFormat::watchdog;
    return kind;
  };
  for (int count = 0; count < recognized_values_max && !kind.format; ++count) {
    const auto found = lines->next(text, recording_value_max);
    if (!found) return found.error();
    if (!*found) {
      kind.is_empty = count == 0;
      return found_in_lines(count);
    }
    auto value = parsed_value(text);
    if (!value && count > 0) return found_in_lines(count);  // the reader names the line
    if (!value && value.error().code == ErrorCode::exhausted) return lines->at_line(value.error());
    if (!value) {
      kind.has_lines = false;
      break;
    }
    kind.format = format_of(*value);
    all_have_kinds = all_have_kinds && !text_in(*value, "kind").empty();
  }
  if (kind.has_lines) return found_in_lines(recognized_values_max);
  const auto whole = whole_text(file);
  if (!whole) return whole.error();
  const auto value = parsed_value(*whole);
  if (!value) {
    auto error = value.error();
    error.message =
        file.string() + ":" + std::to_string(std::max(error.line, 1)) + ": " + error.message;
    return error;
  }
  kind.format = format_of(*value);
  return kind;
}

/// Reads all values of the file.
Result<std::unique_ptr<RecordingReader>> read_values(const std::filesystem::path& file,
                                                     RecordingFormat format, bool has_lines,
                                                     const std::string& session) {
  const auto reader = value_reader(format);
  StepList steps(session, format);
  std::optional<Error> trouble;
  std::int64_t bytes = 0;
  const auto read = [&](const std::string& text) -> Result<void> {
    const auto value = parsed_value(text);
    if (!value) return value.error();
    if (auto done = reader->read(*value, text, steps); !done) return done.error();
    return steps.is_full() ? Result<void>(StepList::exceeded()) : Result<void>{};
  };
  if (has_lines) {
    auto lines = BoundedLines::open(file);
    if (!lines) return lines.error();
    std::string text;
    while (!trouble) {
      const auto found = lines->next(text, recording_value_max);
      if (!found) trouble = found.error();
      if (trouble || !*found) break;
      steps.begin_value(lines->number());
      if (lines->bytes() > recording_file_max) {
        trouble = lines->at_line(
            {ErrorCode::exhausted,
             "the file has more than " + std::to_string(recording_file_max) + " bytes; split it"});
      } else if (auto done = read(text); !done) {
        trouble = lines->at_line(done.error());
      }
    }
    bytes = lines->bytes();
  } else {
    const auto text = whole_text(file);
    if (!text) return text.error();
    bytes = static_cast<std::int64_t>(text->size());
    if (auto done = read(*text); !done) {
      trouble = done.error();
      trouble->message = file.string() + ": " + trouble->message;
    }
  }
  reader->finish(steps);
  return std::unique_ptr<RecordingReader>(
      std::make_unique<ListReader>(steps.finish(), std::move(trouble), bytes));
}

}  // namespace

Result<Recording> open_recording(const std::filesystem::path& file,
                                 std::optional<RecordingFormat> format,
                                 const std::string& session) {
  Recording recording{.session = session.empty() ? session_in_name(file) : session};
  std::error_code ignored;
  const auto size = std::filesystem::file_size(file, ignored);
  if (!ignored) recording.file_bytes = static_cast<std::int64_t>(size);
  const bool is_lines = format == RecordingFormat::watchdog ||
                        format == RecordingFormat::claude_code || format == RecordingFormat::codex;
  // A pipe can be read only once, so its content cannot decide.
  const bool is_pipe = std::filesystem::exists(file, ignored) &&
                       !std::filesystem::is_regular_file(file, ignored) &&
                       !std::filesystem::is_directory(file, ignored);
  if (is_pipe && !format) format = RecordingFormat::watchdog;
  auto kind = is_lines || is_pipe ? Result<RecordingKind>(RecordingKind{.format = format})
                                  : recording_kind(file);
  if (!kind) return kind.error();
  if (format) kind->format = format;
  if (!kind->format && !kind->is_empty) {
    return Error{ErrorCode::invalid,
                 file.string() + ": the format was not recognized. Name it with --format: " +
                     recording_formats()};
  }
  recording.format = kind->format.value_or(RecordingFormat::watchdog);
  switch (recording.format) {
    case RecordingFormat::watchdog: {
      auto trace = Trace::open(file);
      if (!trace) return trace.error();
      recording.reader = std::make_unique<EventReader>(std::move(*trace), recording.session);
      return recording;
    }
    case RecordingFormat::claude_code:
    case RecordingFormat::codex: {
      auto lines = BoundedLines::open(file);
      if (!lines) return lines.error();
      const auto agent = recording.format == RecordingFormat::codex ? TranscriptAgent::codex
                                                                    : TranscriptAgent::claude_code;
      recording.reader = std::make_unique<TranscriptReader>(std::move(*lines), agent);
      return recording;
    }
    default: {
      auto reader = read_values(file, recording.format, kind->has_lines, recording.session);
      if (!reader) return reader.error();
      recording.reader = std::move(*reader);
      return recording;
    }
  }
}

}  // namespace watchdog::monitor
