// A file of lines is read on from its position. A file that is one JSON value is read whole, and
// its reader tells what is new by the messages in it. A session of a database is read on from the
// number of its next event.
#include "follow/followed.h"

#include <algorithm>
#include <utility>

#include "follow/opencode_log.h"

namespace watchdog::monitor {
namespace {

/// More unread bytes than this are not what an agent just wrote.
constexpr std::int64_t growing_bytes_max = 1'000'000;
/// Likewise, of a session in a database.
constexpr std::int64_t growing_events_max = 500;

Transcript fresh(TranscriptAgent agent, const std::string& path, std::string_view saved = {}) {
  return Transcript(agent, saved, std::filesystem::path(path).parent_path().filename().string());
}

}  // namespace

Followed::Followed(TranscriptAgent whose, std::string file, TranscriptForm how)
    : agent(whose), form(how), path(std::move(file)), transcript(fresh(whose, path)) {}

void Followed::adopt(const SavedTranscript& saved) {
  position = saved.position;
  transcript = fresh(agent, path, saved.state);
  is_known = is_awake = true;
  if (form == TranscriptForm::whole && saved.state.empty()) from = system_clock().wall();
}

void Followed::forget() {
  transcript = fresh(agent, path);
  if (form == TranscriptForm::whole) from = system_clock().wall();
}

void Followed::begin_again() {
  transcript = fresh(agent, path);
  is_known = false;
}

void Followed::note(std::int64_t bytes, WallTime changed_at, bool is_another,
                    WallTime awake_since) {
  if (changed_at >= awake_since) is_awake = true;
  changed = changed_at;
  size = bytes;
  const bool is_rewritten = form == TranscriptForm::whole && changed != read_changed;
  const bool is_more = form == TranscriptForm::lines ? unread() > 0 : unread() != 0;
  has_news = is_awake && (is_another || is_rewritten || is_more || !kept_back.empty());
}

std::int64_t Followed::behind() const {
  return form == TranscriptForm::database ? 0 : std::max<std::int64_t>(unread(), 0);
}

bool Followed::grows() const {
  return was_read &&
         unread() <= (form == TranscriptForm::database ? growing_events_max : growing_bytes_max);
}

Result<void> Followed::read(TranscriptFile::Piece& piece, FollowFigures& figures) {
  return form == TranscriptForm::database ? read_session(piece, figures)
                                          : read_file(piece, figures);
}

Result<void> Followed::read_file(TranscriptFile::Piece& piece, FollowFigures& figures) {
  auto opened = TranscriptFile::open(path);
  if (!opened) return opened.error();
  size = opened->size();
  changed = opened->changed();
  const bool is_whole = form == TranscriptForm::whole;
  if (!position || (!is_whole && !opened->is_at(*position))) {
    if (!position) ++figures.files;
    position = opened->beginning();
    begin_again();
  }
  const auto before = position->offset;
  auto done = is_whole ? opened->read_whole(*position, piece) : opened->read(*position, piece);
  if (!done) return done;
  if (!piece.is_half) read_changed = changed;
  figures.bytes +=
      is_whole ? static_cast<std::int64_t>(piece.bytes.size()) : position->offset - before;
  return {};
}

Result<void> Followed::read_session(TranscriptFile::Piece& piece, FollowFigures& figures) {
  auto log = OpencodeLog::open(database_of(path));
  if (!log) return log.error();
  if (!position) {
    ++figures.files;
    position.emplace();
  }
  bool is_another = false;
  if (auto done = log->read(session_of(path), *position, piece, is_another); !done) return done;
  if (is_another) begin_again();
  figures.bytes += static_cast<std::int64_t>(piece.bytes.size());
  return {};
}

void Followed::feed(const TranscriptFile::Piece& piece, FollowFigures& figures) {
  const auto now = system_clock().wall();
  for (const auto line : piece.lines) {
    ++figures.lines;
    auto batches = transcript.read(line, now);
    if (!batches) ++figures.unreadable;
    if (!batches) continue;
    for (auto& batch : *batches) add(std::move(batch));
  }
}

bool Followed::is_recording(WallTime since) const {
  return was_read && !has_news && !is_known && !is_kept && recorded_from == WallTime{} &&
         newest != WallTime{} && newest < since;
}

void Followed::read_again(Millis period) {
  recorded_from = newest - period;
  position = TranscriptPosition{};  // of no file, so reading begins
  read_changed = {};
  was_read = false;
  has_news = true;
  begin_again();
}

WallTime Followed::written() const {
  return recorded_from == WallTime{} ? changed : std::min(changed, newest);
}

void Followed::add(Batch batch) {
  for (const auto& report : batch.reports) newest = std::max(newest, *report.at);
  auto& waiting = kept_back;
  const bool same = !waiting.empty() && waiting.back().session == batch.session &&
                    waiting.back().creation == batch.creation;
  if (!same) {
    waiting.push_back(std::move(batch));
    return;
  }
  auto& last = waiting.back();
  last.spec = std::move(batch.spec);
  for (auto& report : batch.reports) last.reports.push_back(std::move(report));
}

void EarlyEnds::note(const Batch& batch) {
  constexpr std::size_t ends_max = 4'096;
  if (ends_.size() < ends_max && batch.reports.back().kind == ReportKind::end)
    ends_.insert_or_assign(batch.session, batch);
}

std::vector<Batch> EarlyEnds::take(const std::vector<std::string>& sessions) {
  std::vector<Batch> taken;
  for (const auto& session : sessions) {
    auto found = ends_.extract(session);
    if (!found.empty()) taken.push_back(std::move(found.mapped()));
  }
  return taken;
}

}  // namespace watchdog::monitor
