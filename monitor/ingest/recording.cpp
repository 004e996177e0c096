// A recording is recognized by its first values: its first lines, or the whole file if that is one
// JSON value. `recording_formats.cpp` has the signs of each format. Events and transcripts are read
// line by line, so they may have any size. The other formats are read whole and their steps sorted,
// because their exporters do not write in the order of time; their size is bounded.
#include "ingest/recording.h"

#include <algorithm>
#include <deque>
#include <fstream>

#include "codec/fields.h"
#include "codec/json.h"
#include "ingest/bounded_lines.h"
#include "ingest/recording_steps.h"
#include "ingest/trace.h"
#include "ingest/transcript.h"
#include "ingest/transcript_state.h"
#include "privacy/content.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// Values of a file that are looked at to recognize its format.
constexpr int recognized_values_max = 100;

/// A kind alone does not suffice: objects of other programs have one, too. An event has no member
/// that no event has, or the number and the time that this program adds: then it may be of a newer
/// version.
bool is_event(const json& value) {
  if (text_in(value, "kind").empty()) return false;
  if (member(value, "seq").is_number_integer() && member(value, "at_ms").is_number_integer())
    return true;
  const auto report =
      strict_report_from_json(value.dump(-1, ' ', false, json::error_handler_t::replace));
  return report && *report;
}

std::string recording_formats() {
  std::string text;
  for (const auto name : Names<RecordingFormat>::all)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

/// Parses a value within the bounds. Errors name the line in the text, counted from 1.
Result<json> parsed_value(std::string_view text) {
  if (auto value = parse_json(text); value || value.error().code != ErrorCode::malformed)
    return value;
  Error error{ErrorCode::malformed, "it is not JSON"};
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

/// True for what is wrong with one line: the next one may be right.
bool is_of_a_line(const Error& error) {
  return error.line > 0 && error.code != ErrorCode::unavailable;
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
    while (!line && is_of_a_line(line.error())) {
      unread_.add(line.error());
      line = trace_.next();
    }
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
      if (!found && is_of_a_line(found.error())) {
        unread_.add(found.error());
        continue;
      }
      if (!found) return found.error();
      if (!*found) {
        is_over_ = true;
        read(transcript_.pause());
        continue;
      }
      auto batches = transcript_.read(text, system_clock().wall());
      if (batches) {
        read(std::move(*batches));
      } else {
        unread_.add(lines_.at_line({ErrorCode::malformed, "the line is not a JSON object"}));
      }
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
        if (!step.report.ts_ms) step.report.at.reset();  // it would be the present
        step.place = lines_.number() - 1;
        step.line = lines_.number();
        step.only_known = batch.creation == Creation::refuse && step.report.kind == ReportKind::end;
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
  ListReader(std::vector<RecordedStep> steps, std::optional<Error> error, UnreadLines unread,
             std::int64_t bytes)
      : steps_(std::move(steps)), error_(std::move(error)), bytes_(bytes) {
    unread_ = std::move(unread);
  }

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
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
  return text;
}

/// The findings about a file before it is read.
struct RecordingKind {
  std::optional<RecordingFormat> format{};
  bool has_lines = true;   ///< Each line is a JSON value; else the whole file is one.
  bool is_nested = false;  ///< The value that was recognized holds several lines.
  bool is_empty = false;
  std::string keys{};   ///< The names of the first members.
  std::string guess{};  ///< What it may be that cannot be read; empty: unknown.
};

/// Returns the names of the first members, unless some are known.
std::string first_keys(const json& value, const std::string& known) {
  constexpr std::size_t keys_max = 8;
  constexpr std::size_t key_chars_max = 40;
  const auto& object = value.is_array() && !value.empty() ? value.front() : value;
  if (!known.empty() || !object.is_object()) return known;
  std::string text;
  std::size_t count = 0;
  for (const auto& [name, unused] : object.items()) {
    if (++count > keys_max) return text + ", …";
    text += (text.empty() ? "" : ", ") + std::string(first_characters(name, key_chars_max));
  }
  return text;
}

/// Refuses a file whose first bytes show that it holds no JSON, with what makes it readable.
Result<void> check_first_bytes(const std::filesystem::path& file) {
  struct Sign {
    std::string_view bytes;
    std::string_view what;
  };
  constexpr Sign signs[] = {
      {"\x1f\x8b", "is compressed by gzip. Unpack it: gunzip --keep FILE"},
      {"\x28\xb5\x2f\xfd", "is compressed by zstd. Unpack it: unzstd FILE"},
      {"\xfd"
       "7zXZ",
       "is compressed by xz. Unpack it: unxz --keep FILE"},
      {"PK\x03\x04", "is a zip archive. Unpack it: unzip FILE"},
      {"\xff\xfe", "is text in UTF-16. Convert it: iconv -f UTF-16 -t UTF-8 FILE"},
      {"\xfe\xff", "is text in UTF-16. Convert it: iconv -f UTF-16 -t UTF-8 FILE"},
      {"SQLite format 3", "is a database. Look at it with: watchdog-monitor sessions --db FILE"},
  };
  std::ifstream stream(file);
  std::string begin(16, '\0');
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(stream.gcount()));
  for (const auto& sign : signs)
    if (begin.starts_with(sign.bytes))
      return Error{ErrorCode::invalid, file.string() + " " + std::string(sign.what)};
  return {};
}

/// Files of Markdown are recognized by their first line.
bool begins_like_aider(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string begin(256, '\0');
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return is_aider_text(
      std::string_view(begin).substr(0, static_cast<std::size_t>(stream.gcount())));
}

Result<RecordingKind> recording_kind(const std::filesystem::path& file) {
  auto lines = BoundedLines::open(file);
  if (!lines) return lines.error();
  RecordingKind kind;
  if (begins_like_aider(file)) {
    kind.format = RecordingFormat::aider;
    return kind;
  }
  std::string text;
  // As many values as not must be events. One of another kind may be of a newer version.
  bool has_begun = false;
  std::optional<Error> first_fault;
  int events = 0;
  int others = 0;
  const auto found_in_lines = [&]() -> Result<RecordingKind> {
    if (first_fault && !has_begun) return *first_fault;
    if (!kind.format && events > 0 && events >= others) kind.format = RecordingFormat::watchdog;
    return kind;
  };
  for (int count = 0; count < recognized_values_max && !kind.format; ++count) {
    const auto found = lines->next(text, recording_value_max);
    if (!found) return found.error();
    if (!*found) {
      kind.is_empty = count == 0;
      return found_in_lines();
    }
    auto value = parsed_value(text);
    if (!value && value.error().code == ErrorCode::exhausted && count == 0)
      return lines->at_line(value.error());
    if (!value && has_begun) continue;  // the reader names the line
    if (!value && count > 0) {
      kind.has_lines = false;
      break;
    }
    if (!value) {  // one line is broken, or the file is one value in several lines
      first_fault = lines->at_line(value.error());
      continue;
    }
    has_begun = true;
    if (events == 0) kind.format = format_of(*value);
    kind.is_nested = value->is_array() || value->contains("loglines");
    kind.keys = first_keys(*value, kind.keys);
    kind.guess = kind.guess.empty() ? guess_of(*value) : kind.guess;
    if (is_event(*value)) {
      ++events;
    } else if (const auto word = text_in(*value, "kind"); word.empty() || named<ReportKind>(word)) {
      ++others;
    }
  }
  if (kind.has_lines) return found_in_lines();
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
  if (!kind.format && is_event(*value)) kind.format = RecordingFormat::watchdog;
  kind.keys = first_keys(*value, {});
  kind.guess = guess_of(*value);
  return kind;
}

/// Reads all values of the file.
Result<std::unique_ptr<RecordingReader>> read_values(const std::filesystem::path& file,
                                                     RecordingFormat format, bool has_lines,
                                                     const std::string& session) {
  const auto reader = value_reader(format);
  StepList steps(session, format);
  std::optional<Error> trouble;
  UnreadLines unread;
  std::int64_t bytes = 0;
  const auto read = [&](const std::string& text) -> Result<void> {
    const auto value =
        format == RecordingFormat::aider ? Result<json>(json(text)) : parsed_value(text);
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
      if (!found && is_of_a_line(found.error())) {
        unread.add(found.error());
        continue;
      }
      if (!found) trouble = found.error();
      if (trouble || !*found) break;
      steps.begin_value(lines->number());
      if (lines->bytes() > recording_file_max) {
        trouble = lines->at_line(
            {ErrorCode::exhausted,
             "the file has more than " + std::to_string(recording_file_max) + " bytes; split it"});
      } else if (auto done = read(text); !done) {
        auto error = lines->at_line(done.error());
        if (done.error().code == ErrorCode::exhausted) {
          trouble = std::move(error);
        } else {
          unread.add(std::move(error));
        }
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
      std::make_unique<ListReader>(steps.finish(), std::move(trouble), std::move(unread), bytes));
}

}  // namespace

Result<Recording> open_recording(const std::filesystem::path& file,
                                 std::optional<RecordingFormat> format,
                                 const std::string& session) {
  Recording recording{.session = session.empty() ? session_in_name(file) : session};
  std::error_code ignored;
  const auto size = std::filesystem::file_size(file, ignored);
  if (!ignored) recording.file_bytes = static_cast<std::int64_t>(size);
  const bool is_transcript =
      format == RecordingFormat::claude_code || format == RecordingFormat::codex;
  // A pipe can be read only once, so its content cannot decide.
  const bool is_pipe = std::filesystem::exists(file, ignored) &&
                       !std::filesystem::is_regular_file(file, ignored) &&
                       !std::filesystem::is_directory(file, ignored);
  if (is_pipe && !format) format = RecordingFormat::watchdog;
  if (!is_pipe)
    if (auto checked = check_first_bytes(file); !checked) return checked.error();
  const bool is_certain =
      is_pipe || format == RecordingFormat::watchdog || format == RecordingFormat::aider;
  auto kind =
      is_certain ? Result<RecordingKind>(RecordingKind{.format = format}) : recording_kind(file);
  if (!kind && is_transcript && kind.error().code == ErrorCode::malformed)
    kind = RecordingKind{.format = format};  // its lines may be broken
  if (!kind) return kind.error();
  if (format) kind->format = format;
  if (!kind->format && !kind->is_empty) {
    return Error{ErrorCode::invalid,
                 file.string() + ": the format was not recognized." +
                     (kind->guess.empty() ? "" : " It looks like " + kind->guess + ".") +
                     (kind->keys.empty() ? "" : " Its first members are " + kind->keys + ".") +
                     " Name the format with --format: " + recording_formats()};
  }
  recording.format = kind->format.value_or(RecordingFormat::watchdog);
  recording.is_empty = kind->is_empty || (!is_pipe && recording.file_bytes == 0);
  switch (recording.format) {
    case RecordingFormat::watchdog: {
      auto trace = Trace::open(file);
      if (!trace) return trace.error();
      recording.reader = std::make_unique<EventReader>(std::move(*trace), recording.session);
      return recording;
    }
    case RecordingFormat::claude_code:
    case RecordingFormat::codex: {
      if (!kind->has_lines || kind->is_nested) break;
      auto lines = BoundedLines::open(file);
      if (!lines) return lines.error();
      const auto agent = recording.format == RecordingFormat::codex ? TranscriptAgent::codex
                                                                    : TranscriptAgent::claude_code;
      recording.reader = std::make_unique<TranscriptReader>(std::move(*lines), agent);
      return recording;
    }
    default:
      break;
  }
  auto reader = read_values(file, recording.format, kind->has_lines, recording.session);
  if (!reader) return reader.error();
  recording.reader = std::move(*reader);
  return recording;
}

}  // namespace watchdog::monitor
