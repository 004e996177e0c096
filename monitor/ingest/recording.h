/// \file
/// Reads recorded runs of agents in the formats of several programs, as reports in their order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/store.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/session.h"

namespace watchdog::monitor {

/// The formats of a recording.
enum class RecordingFormat : std::uint8_t {
  watchdog,     ///< this project's events, one JSON object per line
  otlp,         ///< OTLP/JSON requests, one per line or one in all
  claude_code,  ///< a transcript, the output of `claude -p`, or a session on the web
  codex,        ///< a transcript
  openhands,
  swe_agent,
  langsmith,
  langfuse,
  opencode,
  gemini_cli,
  chat,  ///< messages as they are sent to a model's API, and conversations for training
  cline,
  pi,
  managed_agents,  ///< events of a session that Anthropic's servers run
  atif,            ///< Agent Trajectory Interchange Format
  codex_log,       ///< the log of Codex' terminal program
  aider            ///< its history in Markdown
};

/// A session of a recording. A plain value.
struct RecordedSession {
  std::string id{};
  SessionSpec spec{};
  ReportOrigin by = ReportOrigin::agent;
};

/// One report of a recording. A plain value.
struct RecordedStep {
  std::shared_ptr<const RecordedSession> session;
  Report report{};
  std::int64_t place = 0;   ///< The recording's own number, or the place counted from 0.
  int line = 0;             ///< The line of the file, counted from 1.
  bool only_known = false;  ///< Leave it out if nothing was reported of its session.
};

/// Lines that could not be read. A plain value.
struct UnreadLines {
  static constexpr std::size_t named_max = 20;

  std::int64_t count = 0;
  std::vector<Error> first{};  ///< Why, naming file and line: of the first ones.

  void add(Error error) {
    if (first.size() < named_max) first.push_back(std::move(error));
    ++count;
  }
};

/// Makes steps of a file. Use from one thread at a time.
class RecordingReader {
 public:
  RecordingReader() = default;
  virtual ~RecordingReader() = default;
  RecordingReader(const RecordingReader&) = delete;
  RecordingReader& operator=(const RecordingReader&) = delete;

  /// The next step; empty at the end. A line that cannot be read costs that line: see unread().
  /// Errors: `malformed`, `invalid`, `exhausted`, `unavailable`, naming file and line: nothing
  /// follows. All steps before the error were returned.
  [[nodiscard]] virtual Result<std::optional<RecordedStep>> next() = 0;
  /// Bytes of the file that were read so far.
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
  /// The lines so far that could not be read.
  [[nodiscard]] const UnreadLines& unread() const noexcept { return unread_; }

 protected:
  UnreadLines unread_;
};

/// A recording that was opened. A plain value.
struct Recording {
  RecordingFormat format = RecordingFormat::watchdog;
  std::string session{};        ///< The id of a session for which the recording has none.
  std::int64_t file_bytes = 0;  ///< The size of the file; 0: it is not known.
  bool is_empty = false;        ///< It has no line at all.
  std::unique_ptr<RecordingReader> reader{};
};

/// Bytes of a line, or of a file that is one JSON value, at most.
inline constexpr std::size_t recording_value_max = 64UL * 1024 * 1024;
/// Bytes of a file whose steps must be sorted first (all formats except `watchdog` and the
/// transcripts), at most. Files of the others may have any size.
inline constexpr std::int64_t recording_file_max = 256L * 1024 * 1024;

/// Opens a recording. Without a format its content decides; a pipe is `watchdog` then. `session`:
/// the id of a session for which the recording has none; empty: the file's name. Errors:
/// `not_found`; `invalid`: the format was not recognized; `malformed`, `exhausted`, naming file and
/// line.
[[nodiscard]] Result<Recording> open_recording(const std::filesystem::path& file,
                                               std::optional<RecordingFormat> format = {},
                                               const std::string& session = {});

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::RecordingFormat> {
  static constexpr std::string_view all[] = {
      "watchdog",  "otlp",           "claude-code", "codex",      "openhands", "swe-agent",
      "langsmith", "langfuse",       "opencode",    "gemini-cli", "chat",      "cline",
      "pi",        "managed-agents", "atif",        "codex-log",  "aider"};
};
}  // namespace watchdog
