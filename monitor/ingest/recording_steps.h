/// \file
/// How the reader of a format makes steps of the JSON values of a file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/recording.h"
#include "watchdog/budget.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// Collects the steps of a file, in a bounded amount of memory.
class StepList {
 public:
  static constexpr std::size_t steps_max = 1'000'000;
  static constexpr std::size_t sessions_max = 10'000;

  /// `name`: the session of a file that names none; `format`: a label of each session.
  StepList(std::string name, RecordingFormat format) : name_(std::move(name)), format_(format) {}

  /// Returns the session with this id, and makes it with `spec` the first time. An id that is empty
  /// or not allowed becomes the name of the file.
  std::shared_ptr<const RecordedSession> session(const std::string& id, SessionSpec spec = {});
  /// Sets the line of the following steps.
  void begin_value(int line) { line_ = line; }
  /// Adds a report. `at` is its time; the recording may have no times.
  void say(const std::shared_ptr<const RecordedSession>& session, Report report,
           std::optional<WallTime> at);

  void prompt(const std::shared_ptr<const RecordedSession>& session, std::string text,
              std::optional<WallTime> at);
  void message(const std::shared_ptr<const RecordedSession>& session, std::string_view role,
               std::string text, std::optional<WallTime> at);
  void call(const std::shared_ptr<const RecordedSession>& session, std::string tool, std::string id,
            std::string arguments, std::optional<WallTime> at);
  void result(const std::shared_ptr<const RecordedSession>& session, std::string tool,
              std::string id, bool failed, std::string text, std::optional<WallTime> at);
  void use(const std::shared_ptr<const RecordedSession>& session, const BudgetFigures& figures,
           std::optional<WallTime> at);
  void rest(const std::shared_ptr<const RecordedSession>& session, std::string_view why,
            std::string text, std::optional<WallTime> at);
  void end(const std::shared_ptr<const RecordedSession>& session, Outcome outcome,
           std::optional<WallTime> at);

  /// The name of the session of a file that names none.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool is_full() const noexcept { return is_full_; }
  [[nodiscard]] static Error exceeded();
  /// Orders the steps by time. Steps of the same time keep their order.
  void sort();
  [[nodiscard]] std::vector<RecordedStep> finish() { return std::move(steps_); }

 private:
  std::string name_;
  RecordingFormat format_;
  int line_ = 1;
  bool is_full_ = false;
  std::map<std::string, std::shared_ptr<const RecordedSession>, std::less<>> sessions_;
  std::vector<RecordedStep> steps_;
};

/// Makes steps of the JSON values of a file: its lines, or the whole file.
class ValueReader {
 public:
  ValueReader() = default;
  virtual ~ValueReader() = default;
  ValueReader(const ValueReader&) = delete;
  ValueReader& operator=(const ValueReader&) = delete;

  /// Takes one value; `text` is the same as it is in the file. Errors: `malformed`, `exhausted`.
  [[nodiscard]] virtual Result<void> read(const nlohmann::json& value, std::string_view text,
                                          StepList& steps) = 0;
  /// The reader has taken the last value of the file.
  virtual void finish(StepList& steps) = 0;
};

/// How a format is recognized and read.
struct RecordingRow {
  RecordingFormat format;
  bool (*is_one)(const nlohmann::json& value);
  /// Null: its files are only read as events, line by line.
  std::unique_ptr<ValueReader> (*reader)();
};

/// All formats that are recognized by a value, in the order in which they are asked.
[[nodiscard]] std::span<const RecordingRow> recording_rows();
/// The format of a value; nothing: none is recognized.
[[nodiscard]] std::optional<RecordingFormat> format_of(const nlohmann::json& value);
/// Returns what a value may be that this program cannot read; empty: unknown.
[[nodiscard]] std::string guess_of(const nlohmann::json& value);
/// Returns the reader of a format whose files are read as values. REQUIRES: it is one.
[[nodiscard]] std::unique_ptr<ValueReader> value_reader(RecordingFormat format);

/// A text as a name: at most 128 bytes.
[[nodiscard]] std::string short_name(std::string_view text);
/// The time in a member: a text, or a number of milliseconds since 1970.
[[nodiscard]] std::optional<WallTime> moment_in(const nlohmann::json& object, const char* name);
/// The time in a member: as moment_in, or a number of seconds since 1970.
[[nodiscard]] std::optional<WallTime> second_in(const nlohmann::json& object, const char* name);
/// Tokens in a member: a whole number from 0 to a bound; 0 if it is something else.
[[nodiscard]] std::int64_t tokens_in(const nlohmann::json& object, const char* name);
/// A text that is a JSON value within the bounds as that value; any other value as it is.
[[nodiscard]] nlohmann::json value_in_text(const nlohmann::json& value);

// Each format has a function that recognizes its values, and a reader. Pure.
[[nodiscard]] bool is_aider(const nlohmann::json& value);
[[nodiscard]] bool is_atif(const nlohmann::json& value);
[[nodiscard]] bool is_chat(const nlohmann::json& value);
[[nodiscard]] bool is_claude_code(const nlohmann::json& value);
[[nodiscard]] bool is_cline(const nlohmann::json& value);
[[nodiscard]] bool is_codex(const nlohmann::json& value);
[[nodiscard]] bool is_codex_log(const nlohmann::json& value);
[[nodiscard]] bool is_gemini_cli(const nlohmann::json& value);
[[nodiscard]] bool is_langfuse(const nlohmann::json& value);
[[nodiscard]] bool is_langsmith(const nlohmann::json& value);
[[nodiscard]] bool is_managed_agents(const nlohmann::json& value);
[[nodiscard]] bool is_opencode(const nlohmann::json& value);
[[nodiscard]] bool is_openhands(const nlohmann::json& value);
[[nodiscard]] bool is_otlp(const nlohmann::json& value);
[[nodiscard]] bool is_pi(const nlohmann::json& value);
[[nodiscard]] bool is_swe_agent(const nlohmann::json& value);
[[nodiscard]] std::unique_ptr<ValueReader> aider_reader();
[[nodiscard]] std::unique_ptr<ValueReader> atif_reader();
[[nodiscard]] std::unique_ptr<ValueReader> chat_reader();
[[nodiscard]] std::unique_ptr<ValueReader> claude_code_reader();
[[nodiscard]] std::unique_ptr<ValueReader> cline_reader();
[[nodiscard]] std::unique_ptr<ValueReader> codex_reader();
[[nodiscard]] std::unique_ptr<ValueReader> codex_log_reader();
[[nodiscard]] std::unique_ptr<ValueReader> gemini_cli_reader();
[[nodiscard]] std::unique_ptr<ValueReader> langfuse_reader();
[[nodiscard]] std::unique_ptr<ValueReader> langsmith_reader();
[[nodiscard]] std::unique_ptr<ValueReader> managed_agents_reader();
[[nodiscard]] std::unique_ptr<ValueReader> opencode_reader();
[[nodiscard]] std::unique_ptr<ValueReader> openhands_reader();
[[nodiscard]] std::unique_ptr<ValueReader> otlp_reader();
[[nodiscard]] std::unique_ptr<ValueReader> pi_reader();
[[nodiscard]] std::unique_ptr<ValueReader> swe_agent_reader();

/// A line of a file in Markdown is given to its reader as a text. True: the file begins like one.
[[nodiscard]] bool is_aider_text(std::string_view begin);

}  // namespace watchdog::monitor
