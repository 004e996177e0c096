/// \file
/// Reads the events that opencode keeps in its database.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "follow/transcript_file.h"
#include "store/foreign_database.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// An open database. It is only read, never written, and no lock outlives a function. Moves only.
class OpencodeLog {
 public:
  /// A session of the database. A plain value.
  struct Session {
    std::string id{};
    std::int64_t events = 0;
    WallTime changed{};
  };

  /// Errors: `unavailable`, `corrupt`; `invalid`: it has no events.
  [[nodiscard]] static Result<OpencodeLog> open(const std::filesystem::path& database);

  /// The newest sessions. Errors: `unavailable`, `corrupt`.
  [[nodiscard]] Result<std::vector<Session>> sessions();
  /// Reads events after the position, some 256 KiB of them, as one line each, and moves it behind
  /// them. If the position is not one of this session, it reads from the beginning, and
  /// `is_another` becomes true. Errors: `unavailable`, `corrupt`.
  [[nodiscard]] Result<void> read(const std::string& session, TranscriptPosition& position,
                                  TranscriptFile::Piece& piece, bool& is_another);

 private:
  explicit OpencodeLog(ForeignDatabase database) : database_(std::move(database)) {}
  ForeignDatabase database_;
};

/// The databases of opencode that changed. Use from one thread at a time.
class OpencodeLogs {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  /// A session of a database. A plain value.
  struct Found {
    std::string path{};  ///< See session_path().
    std::int64_t events = 0;
    WallTime changed{};
  };

  /// A file of a folder of opencode changed, or is to be looked at later. Others are passed over.
  void note(const std::filesystem::path& file, std::chrono::milliseconds later = {});
  /// When a database is to be looked at; the maximum: none.
  [[nodiscard]] SteadyTime next() const;
  /// Looks at the databases whose time has come. `log` gets why one cannot be read, once.
  [[nodiscard]] std::vector<Found> look(const std::function<void(const std::string&)>& log);

 private:
  struct Looked {
    SteadyTime next = SteadyTime::max();
    SteadyTime last{};
    bool is_refused = false;  ///< It could not be read, and that was logged.
  };
  std::map<std::string, Looked> databases_;
};

/// The name under which the position of a session is kept, and its parts.
[[nodiscard]] std::string session_path(const std::string& database, const std::string& session);
[[nodiscard]] std::string database_of(const std::string& session_path);
[[nodiscard]] std::string session_of(const std::string& session_path);

}  // namespace watchdog::monitor
