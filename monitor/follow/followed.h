/// \file
/// A transcript that is followed: where it is read, and what waits to be reported of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "follow/follower.h"
#include "follow/positions.h"
#include "follow/transcript_root.h"
#include "ingest/transcript.h"
#include "store/store.h"

namespace watchdog::monitor {

/// A transcript file, or a session in a database. Use from one thread at a time.
struct Followed {
  using SteadyTime = std::chrono::steady_clock::time_point;

  /// `path`: of the file; of a session, see session_path().
  Followed(TranscriptAgent agent, std::string path, TranscriptForm form);

  TranscriptAgent agent;
  TranscriptForm form;
  std::string path;
  Transcript transcript;
  std::optional<TranscriptPosition> position;
  std::int64_t size = 0;  ///< Bytes; of a session its events.
  WallTime changed{};
  WallTime read_changed{};                  ///< Of a whole file: `changed` when it was read.
  bool was_read = false;                    ///< Up to its end, once.
  bool is_known = false;                    ///< It has a saved position: it was followed before.
  bool is_awake = false;                    ///< It is to be read.
  WallTime from{};                          ///< Nothing older is reported.
  WallTime newest{};                        ///< The time of its newest report.
  bool is_kept = false;                     ///< Some of its reports were stored.
  WallTime recorded_from{};                 ///< See read_again(); 0: it is not a recording.
  SteadyTime rests_at = SteadyTime::max();  ///< An answer may be the last one of its turn then.
  bool has_news = false;         ///< Its size is not known any more, or it has unread bytes.
  std::vector<Batch> kept_back;  ///< Reports that could not be kept yet.

  /// Goes on where it was.
  void adopt(const SavedTranscript& saved);
  /// Forgets what its reader knows. The lines so far are not reported again.
  void forget();
  /// Notes what is known of the file, and whether that is news.
  void note(std::int64_t bytes, WallTime changed_at, bool is_another, WallTime awake_since);
  /// Reads the next piece, and moves the position. Errors: as of TranscriptFile and OpencodeLog.
  [[nodiscard]] Result<void> read(TranscriptFile::Piece& piece, FollowFigures& figures);
  /// Makes reports of the lines of a piece.
  void feed(const TranscriptFile::Piece& piece, FollowFigures& figures);
  /// True if all of it was read, and every report is older than `since`: so nothing was stored.
  [[nodiscard]] bool is_recording(WallTime since) const;
  /// Reads a recording again from its beginning. If the monitor does not know its session yet, the
  /// reports of the last `period` before its newest one are stored.
  void read_again(Millis period);
  /// When its agent wrote last. A copy of a recording is newer than that.
  [[nodiscard]] WallTime written() const;
  /// Adds the reports of a line to those of the piece.
  void add(Batch batch);

  [[nodiscard]] std::int64_t unread() const { return size - (position ? position->offset : 0); }
  /// Bytes that are to be read, as far as that is known.
  [[nodiscard]] std::int64_t behind() const;
  [[nodiscard]] bool grows() const;

 private:
  void begin_again();
  [[nodiscard]] Result<void> read_file(TranscriptFile::Piece& piece, FollowFigures& figures);
  [[nodiscard]] Result<void> read_session(TranscriptFile::Piece& piece, FollowFigures& figures);
};

/// Ends of subagents whose own files were not read yet: a parent's file may be read before them.
class EarlyEnds {
 public:
  void note(const Batch& batch);
  /// Takes out the ends of these sessions.
  [[nodiscard]] std::vector<Batch> take(const std::vector<std::string>& sessions);
  [[nodiscard]] bool is_empty() const { return ends_.empty(); }

 private:
  std::map<std::string, Batch> ends_;  ///< By session.
};

}  // namespace watchdog::monitor
