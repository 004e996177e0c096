/// \file
/// What is known of a transcript so far, and how the tables of agents make reports of a line.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/transcript.h"
#include "watchdog/report.h"

namespace watchdog::monitor {

/// A command that may outlive its call. A plain value.
struct LongCommand {
  std::string call{};  ///< The id of the newest call that is about it.
  std::string
      process{};       ///< The agent's name for its process. Empty: it has not outlived its call.
  std::string text{};  ///< Its first words.
};

/// One session of a transcript. A plain value.
struct TranscriptSession {
  static constexpr std::size_t calls_max = 32;
  static constexpr std::size_t lines_max = 16'384;

  std::string session{};
  std::string parent{};
  std::string cwd{};    ///< The first one.
  std::string model{};  ///< The newest one.
  std::string title{};  ///< The first line of the first prompt.
  /// Of Codex: digest of the newest prompt, which two lines report. Of Gemini CLI: the id of the
  /// newest message. Of opencode: the id of the newest message whose prompt was reported.
  std::string prompt{};
  std::string
      turn{};  ///< Of Codex: the id of the turn. Of opencode: of the newest prompt's message.
  std::string answer{};            ///< The newest answer whose tokens are counted,
  std::int64_t answer_tokens = 0;  ///< and their number.
  std::int64_t steps = 0;
  std::int64_t tokens = 0;
  double answer_cost = 0;       ///< In US dollars, of that answer,
  double cost = 0;              ///< and of all.
  std::int64_t message_ms = 0;  ///< Of Gemini CLI: the newest message's time.
  std::string waiting_for{};    ///< The subject of the wait for the model's server. Empty: none.
  bool works = false;           ///< A turn is open.
  bool may_rest = false;        ///< The newest answer has no call; its line does not say more.
  bool is_hidden = false;       ///< Nobody's session: its agent made it for itself.
  bool is_timed = true;         ///< The newest line has a time. Not saved.
  bool is_compacted = false;    ///< A compaction was reported, and a second line of it may follow.
  std::int64_t newest_ms = 0;   ///< The newest line's time.
  std::uint64_t newest_line = 0;  ///< That line's digest.
  /// Digests of the ids of the newest lines, or of what was reported. Not saved.
  std::vector<std::uint64_t> lines{};
  /// Open calls with their tools' names, the oldest first.
  std::vector<std::pair<std::string, std::string>> calls{};
  /// Of Codex: commands that run, the oldest first. Not saved.
  std::vector<LongCommand> commands{};
  /// How the session ends if nothing follows in its file. Not saved.
  std::optional<Outcome> outcome{};
};

struct TranscriptState {
  static constexpr std::size_t sessions_kept_max = 8;

  TranscriptAgent agent = TranscriptAgent::claude_code;
  std::string own{};           ///< Of Codex: the file's session.
  std::string parent{};        ///< Likewise, the session that started it.
  std::int64_t begins_ms = 0;  ///< Likewise: older lines are a copy of another file's.
  bool is_plain = false;       ///< Likewise: its lines have no payload.
  std::string folder{};        ///< The name of the file's folder. Not saved.
  bool is_resumed = false;     ///< A part of the file was read before. Not saved.
  std::vector<TranscriptSession> conversations{};  ///< The newest at the end.
};

/// Collects the reports of one line.
class TranscriptCollector {
 public:
  /// `is_timed`: `at` is what the line says; else it is the present.
  TranscriptCollector(TranscriptState& state, std::uint64_t digest, WallTime at, WallTime now,
                      bool is_timed = true)
      : state_(state), digest_(digest), at_(at), now_(now), is_timed_(is_timed) {}

  /// The beginnings of the event ids of calls and their results.
  void name_calls(std::string call, std::string result);
  /// The session of that id; a new one if it is not there. Valid until the next call.
  TranscriptSession& conversation(const std::string& session, const std::string& parent = {});
  /// Adds a report. It gets an event id of the line, unless it has one.
  void say(const TranscriptSession& conversation, Report report);
  void say(const TranscriptSession& conversation, ReportKind kind, std::string_view name = {},
           std::string content = {});

  /// Returns whether the session's file had a line of this id before. A resumed session's file may
  /// repeat its history.
  [[nodiscard]] bool is_copy(TranscriptSession& conversation, const std::string& id) const;
  void prompt(TranscriptSession& conversation, std::string text);
  /// `limit`: after which the agent ends the call, if it says so.
  void call(TranscriptSession& conversation, const std::string& id, std::string tool,
            std::string arguments, std::optional<Millis> limit = {});
  /// `failure`: the beginning of the event id of a result that is a failure.
  void result(TranscriptSession& conversation, const std::string& id, bool failed, std::string text,
              std::string_view failure);
  /// The model answered: a wait for it is over.
  void answered(TranscriptSession& conversation);
  /// Counts the tokens of an answer once, however many lines it has. `cost` is in US dollars.
  void use(TranscriptSession& conversation, const std::string& answer, std::int64_t tokens,
           double cost = 0);
  /// Reports a total. `cost` is in US dollars; 0: unknown.
  void use_total(TranscriptSession& conversation, std::int64_t tokens, double cost = 0);
  /// `again`: it is a second line of the same compaction, if the first one was there.
  void compact(TranscriptSession& conversation, bool again);
  void rest(TranscriptSession& conversation, std::string_view why = {}, std::string event_id = {},
            std::string what = {});
  void fail(TranscriptSession& conversation, const std::string& kind, const std::string& text,
            std::int64_t status);

  [[nodiscard]] WallTime at() const { return at_; }
  [[nodiscard]] WallTime now() const { return now_; }
  [[nodiscard]] std::vector<Batch> batches() { return std::move(batches_); }

 private:
  /// The turn was over before this line: a person or a long time was between them.
  void rest_before(TranscriptSession& conversation);

  TranscriptState& state_;
  std::uint64_t digest_;
  WallTime at_;
  WallTime now_;
  bool is_timed_;
  std::int64_t before_ms_ = 0;  ///< Time and digest of the line before, in the newest session.
  std::uint64_t before_line_ = 0;
  int said_ = 0;
  bool is_news_ = true;  ///< The line is newer than all before it in its session.
  std::string call_event_ = "hook:PreToolUse:";
  std::string result_event_ = "hook:PostToolUse:";
  std::vector<Batch> batches_;
};

/// True the first time for this digest, as far as the session remembers.
[[nodiscard]] bool is_first(TranscriptSession& conversation, std::uint64_t digest);
/// True if the session remembers this digest.
[[nodiscard]] bool is_known(const TranscriptSession& conversation, std::uint64_t digest);
[[nodiscard]] bool is_open(const TranscriptSession& conversation, const std::string& call);

// Members of a line. A missing member, and one of another type, is empty.
[[nodiscard]] const nlohmann::json& member(const nlohmann::json& object, const char* name);
[[nodiscard]] std::string text_in(const nlohmann::json& object, const char* name);
[[nodiscard]] std::int64_t number_in(const nlohmann::json& object, const char* name);
[[nodiscard]] bool flag_in(const nlohmann::json& object, const char* name);
/// A text as it is, a list of blocks as their texts, anything else as its JSON. Bounded.
[[nodiscard]] std::string content_text(const nlohmann::json& content);

/// The tables of the agents. A line is a JSON object.
void read_claude_code(TranscriptCollector& collector, const nlohmann::json& line);
void read_codex(TranscriptCollector& collector, TranscriptState& state, const nlohmann::json& line);
[[nodiscard]] std::vector<Batch> read_gemini_cli(TranscriptState& state, const nlohmann::json& line,
                                                 WallTime now);
void read_opencode(TranscriptCollector& collector, const nlohmann::json& line);
/// The time of an event of opencode. Empty: it has none.
[[nodiscard]] std::optional<WallTime> opencode_time(const nlohmann::json& line);

}  // namespace watchdog::monitor
