// opencode writes each change of a session into an SQLite database, and in the same transaction an
// event with a number (table `event`). `event_sequence` has the newest number of each session. So a
// session is read like a file whose lines are its events. The database is opened for each look,
// read in short statements, and closed: a reader in the mode WAL keeps no writer out. Without a log
// file beside it no program has it open, and it is read without any lock or file.
#include "follow/opencode_log.h"

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "facts/digest.h"
#include "facts/ids.h"
#include "follow/transcript_root.h"

namespace watchdog::monitor {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t sessions_max = 10'000;
constexpr std::size_t piece_bytes = 256UL * 1024;
/// A busy agent changes its database many times a second.
constexpr std::chrono::milliseconds look_every{250};
constexpr std::chrono::milliseconds look_again{2'000};
constexpr std::string_view log_ending = "-wal";

bool is_regular(const fs::path& file) {
  struct stat facts {};
  return lstat(file.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

/// An event as a line.
std::string line_of(const std::string& id, const std::string& type, std::string_view data) {
  using nlohmann::json;
  const auto quoted = [](const std::string& text) {
    return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  };
  auto line = "{\"id\":" + quoted(id) + ",\"type\":" + quoted(type) + ",\"data\":";
  line += data.empty() ? "null" : data;
  return line + "}";
}

}  // namespace

Result<OpencodeLog> OpencodeLog::open(const fs::path& database) {
  auto opened = ForeignDatabase::open(database);
  if (!opened) return opened.error();
  std::int64_t found = 0;
  auto asked = opened->ask(
      "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND "
      "name IN ('event', 'event_sequence', 'session')",
      {}, [&](const ForeignRow& row) {
        found = row.integer(0);
        return true;
      });
  if (!asked) return asked.error();
  constexpr std::int64_t needed = 3;
  if (found != needed)
    return Error{ErrorCode::invalid,
                 database.string() +
                     " has no events: this version of opencode is not followed. Its plugin "
                     "reports them: watchdog-monitor hooks install opencode"};
  return OpencodeLog(std::move(*opened));
}

Result<std::vector<OpencodeLog::Session>> OpencodeLog::sessions() {
  std::vector<Session> found;
  const ForeignDatabase::Value values[] = {sessions_max};
  auto asked = database_.ask(
      "SELECT q.aggregate_id, q.seq, s.time_updated FROM event_sequence AS q "
      "JOIN session AS s ON s.id = q.aggregate_id ORDER BY s.time_updated DESC LIMIT ?",
      values, [&](const ForeignRow& row) {
        Session session{.id = row.text(0),
                        .events = std::max<std::int64_t>(row.integer(1), -1) + 1,
                        .changed = WallTime{Millis{row.integer(2)}}};
        if (is_session_id(session.id)) found.push_back(std::move(session));
        return true;
      });
  if (!asked) return asked.error();
  return found;
}

Result<void> OpencodeLog::read(const std::string& session, TranscriptPosition& position,
                               TranscriptFile::Piece& piece, bool& is_another) {
  piece = {};
  is_another = false;
  auto at = position;
  if (at.offset > 0) {
    const ForeignDatabase::Value newest[] = {std::string_view(session), at.offset - 1};
    std::uint64_t mark = 0;
    auto asked = database_.ask("SELECT id FROM event WHERE aggregate_id = ? AND seq = ?", newest,
                               [&](const ForeignRow& row) {
                                 mark = digest_of(row.bytes(0));
                                 return false;
                               });
    if (!asked) return asked;
    is_another = mark != at.head;
    if (is_another) at = {};
  }
  std::vector<std::size_t> ends;
  piece.is_end = true;
  const ForeignDatabase::Value values[] = {std::string_view(session), at.offset};
  auto asked = database_.ask(
      "SELECT seq, id, type, data FROM event WHERE aggregate_id = ? AND seq >= ? ORDER BY seq",
      values, [&](const ForeignRow& row) {
        const auto id = row.text(1);
        const auto data = row.bytes(3);
        at.offset = row.integer(0) + 1;
        at.head = digest_of(id);
        if (data.size() > transcript_line_max) {
          ++piece.skipped;
        } else {
          piece.bytes += line_of(id, row.text(2), data);
          ends.push_back(piece.bytes.size());
        }
        piece.is_end = piece.bytes.size() < piece_bytes;
        return piece.is_end;
      });
  if (!asked) return asked;
  position = at;
  std::size_t begin = 0;
  for (const auto end : ends) {
    piece.lines.push_back(std::string_view(piece.bytes).substr(begin, end - begin));
    begin = end;
  }
  return {};
}

void OpencodeLogs::note(const fs::path& file, std::chrono::milliseconds later) {
  auto name = file.string();
  if (name.ends_with(log_ending)) name.resize(name.size() - log_ending.size());
  if (transcript_form(TranscriptAgent::opencode, name) != TranscriptForm::database) return;
  constexpr std::size_t databases_max = 64;
  if (!is_regular(name) || (databases_.size() >= databases_max && !databases_.contains(name)))
    return;
  auto& looked = databases_[name];
  const auto now = std::chrono::steady_clock::now();
  looked.next = std::min(looked.next, std::max(looked.last + look_every, now + later));
}

OpencodeLogs::SteadyTime OpencodeLogs::next() const {
  auto next = SteadyTime::max();
  for (const auto& [name, looked] : databases_) next = std::min(next, looked.next);
  return next;
}

std::vector<OpencodeLogs::Found> OpencodeLogs::look(
    const std::function<void(const std::string&)>& log) {
  std::vector<Found> found;
  for (auto& [name, looked] : databases_) {
    if (looked.next > std::chrono::steady_clock::now()) continue;
    looked.next = SteadyTime::max();
    auto opened = OpencodeLog::open(name);
    auto sessions = opened ? opened->sessions() : opened.error();
    looked.last = std::chrono::steady_clock::now();
    if (!sessions) {
      if (!std::exchange(looked.is_refused, true)) log(sessions.error().message);
      if (sessions.error().code != ErrorCode::invalid) looked.next = looked.last + look_again;
      continue;
    }
    looked.is_refused = false;
    for (auto& session : *sessions)
      found.push_back({.path = session_path(name, session.id),
                       .events = session.events,
                       .changed = session.changed});
  }
  return found;
}

std::string session_path(const std::string& database, const std::string& session) {
  return database + "#" + session;
}

std::string database_of(const std::string& session_path) {
  return session_path.substr(0, session_path.rfind('#'));
}

std::string session_of(const std::string& session_path) {
  return session_path.substr(session_path.rfind('#') + 1);
}

}  // namespace watchdog::monitor
