#include "wait/session_view.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "store/event_reader.h"
#include "store/place.h"

namespace watchdog {
namespace {

constexpr int page_events = 500;

/// The session's events after one and up to another.
Result<std::vector<Event>> events_between(StoreReader& reader, SessionKey session, Seq after,
                                          Seq through) {
  std::vector<Event> events;
  for (std::optional<Seq> next = after; next && *next < through;) {
    auto page = EventReader(reader).page(session, *next, page_events);
    if (!page) return page.error();
    for (auto& event : page->events) {
      if (event.seq <= through) events.push_back(std::move(event));
    }
    next = page->next;
  }
  return events;
}

}  // namespace

SessionView::FileIds SessionView::files() const {
  const auto real = real_file(database_).string();
  FileIds found;
  std::size_t at = 0;
  for (const auto* suffix : {"", "-wal", "-shm"}) {
    struct stat there {};
    if (stat((real + suffix).c_str(), &there) == 0)
      found.at(at) = {.device = there.st_dev, .file = there.st_ino};
    ++at;
  }
  return found;
}

Result<bool> SessionView::open() {
  struct stat there {};
  if (stat(database_.c_str(), &there) != 0) return false;
  auto reader = StoreReader::open(database_);
  // Its creator has not finished.
  if (!reader && reader.error().code == ErrorCode::not_found) return false;
  if (!reader) return reader.error();
  reader_.emplace(std::move(*reader));
  files_ = files();
  version_ = -1;
  row_ = {};
  offset_.reset();
  return true;
}

Result<bool> SessionView::look(const Each& each) {
  if (reader_ && files() != files_) reader_.reset();
  if (!reader_) {
    if (auto opened = open(); !opened || !*opened) return opened;
  }
  auto there = look_at(each);
  // Data of files that lost their names may be anything.
  if (!there && files() != files_) {
    reader_.reset();
    return Error{ErrorCode::unavailable,
                 "database " + database_.string() + " was replaced while it was read"};
  }
  return there;
}

Result<bool> SessionView::look_at(const Each& each) {
  // Before anything is read, so that what is committed meanwhile is seen the next time.
  const auto version = reader_->version();
  if (!version) return version.error();
  const bool there = row_.key != observer_key;
  if (*version == version_) return there;

  auto row = reader_->session(id_);
  if (!row && row.error().code == ErrorCode::not_found) {
    if (there) return Error{ErrorCode::not_found, "session " + id_ + " was taken out of the file"};
    version_ = *version;
    return false;
  }
  if (!row) return row.error();
  if (row->key != row_.key) {
    if (auto begun = begin(*row); !begun) return begun;
  } else if (auto followed = follow(each); !followed) {
    return followed.error();
  }
  version_ = *version;
  return true;
}

Result<bool> SessionView::begin(const SessionRow& row) {
  if (auto placed = place_in_time(); !placed) return placed.error();
  auto judged = reader_->fold(row);
  if (!judged) return judged.error();
  judged_ = std::move(*judged);
  through_ = judged_.folded;
  row_ = row;
  return true;
}

Result<void> SessionView::follow(const Each& each) {
  const auto newest = EventReader(*reader_).newest();
  if (!newest) return newest.error();
  auto own = events_between(*reader_, row_.key, through_, newest->first);
  if (!own) return own.error();
  // Absences of the observer concern every session.
  auto absences = events_between(*reader_, observer_key, through_, newest->first);
  if (!absences) return absences.error();
  std::vector<Event> events;
  std::merge(std::make_move_iterator(own->begin()), std::make_move_iterator(own->end()),
             std::make_move_iterator(absences->begin()), std::make_move_iterator(absences->end()),
             std::back_inserter(events),
             [](const Event& a, const Event& b) { return a.seq < b.seq; });
  std::vector<Transition> ignored;
  for (const auto& event : events) {
    judged_.fold(event, ignored);
    if (event.session != observer_key) each(event, judged_);
  }
  through_ = newest->first;
  return {};
}

Result<void> SessionView::place_in_time() {
  const auto offset = reader_->tick_offset(clock_.boot_id());
  if (!offset) return offset.error();
  offset_ = *offset;
  if (offset_) return {};
  // No process wrote since the machine started: time continues from the latest tick.
  const auto latest = reader_->latest_tick();
  if (!latest) return latest.error();
  offset_ = latest->time_since_epoch() - clock_.since_boot();
  return {};
}

Instant SessionView::now() const {
  return std::max(judged_.history.tick, Instant{clock_.since_boot() + offset_.value_or(Millis{0})});
}

}  // namespace watchdog
