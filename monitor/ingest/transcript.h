/// \file
/// Turns the lines of the transcripts that coding agents write into reports.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// Whose transcripts are understood. A line of Gemini CLI is also a whole chat, as older versions
/// write it; a line of opencode is an event of its database, see OpencodeLog.
enum class TranscriptAgent : std::uint8_t { claude_code, codex, gemini_cli, opencode };

struct TranscriptState;

/// One transcript file on its way to reports. It remembers what later lines need, in a bounded
/// amount of memory. Lines come in order, each once. Use from one thread at a time.
class Transcript {
 public:
  /// `saved`: what save() returned for the same file earlier; empty, or not understood: none of its
  /// lines was read yet. `folder`: the name of the file's folder; for a subagent of Gemini CLI it
  /// is the id of its parent.
  explicit Transcript(TranscriptAgent agent, std::string_view saved = {},
                      std::string_view folder = {});
  ~Transcript();
  Transcript(Transcript&&) noexcept;
  Transcript& operator=(Transcript&&) noexcept;
  Transcript(const Transcript&) = delete;
  Transcript& operator=(const Transcript&) = delete;

  /// Returns the reports of a line, a batch for each session that they are about. Nothing: it is no
  /// JSON object. Lines without a meaning give no batch. Each report has an event id that only
  /// depends on its line, or on its message where lines repeat messages, so what is read again is
  /// stored once. Calls, and prompts of Codex, have the ids of the agent's hooks if these have any.
  /// `at` of a report is the line's own time, at most `now`.
  [[nodiscard]] std::optional<std::vector<Batch>> read(std::string_view line, WallTime now);
  /// Returns the reports that follow because nothing more is in the file: some versions of an agent
  /// do not write that a turn is over.
  [[nodiscard]] std::vector<Batch> pause();
  /// Returns reports that close the turns which are open. For a file that was not read while its
  /// agent wrote it, and is quiet. `is_recording`: its waits are over, too: nobody is there for
  /// them.
  [[nodiscard]] std::vector<Batch> leave(bool is_recording = false);

  /// The ids of the newest sessions of the file.
  [[nodiscard]] std::vector<std::string> sessions() const;
  /// The session's first prompt, its first line; empty: there was none.
  [[nodiscard]] std::string title_of(const std::string& session) const;
  /// Returns what the next Transcript of the same file needs, as JSON, at most some kilobytes.
  [[nodiscard]] std::string save() const;

 private:
  std::unique_ptr<TranscriptState> state_;
};

/// Leaves out the states (rest, wait, end of a wait) that are older than the session's newest
/// event. A transcript is read a moment after it is written, so another source may have reported
/// more. Pure.
void drop_old_states(Batch& batch, WallTime newest);

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::TranscriptAgent> {
  static constexpr std::string_view all[] = {"claude-code", "codex", "gemini-cli", "opencode"};
};
}  // namespace watchdog
