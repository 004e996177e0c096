// `drain` decides what comes next: what a read left, the snapshot, the feed, or a page of the file.
// A stream reads the file until the feed still has all that follows its cursor. It then takes the
// feed and skips what it has sent already. A listener that falls behind returns to the file. While
// `reading_` is set, only the reading thread uses the cursor. `read_replay` asks for the newest
// transition before the newest event: the events behind a transition are stored before it.
#include "api/stream.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "api/call.h"
#include "core/session_row.h"
#include "core/summary.h"
#include "store/event_reader.h"
#include "store/transition_reader.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

constexpr int page_events = 500;
constexpr int page_rows = 1'000;
constexpr std::size_t replay_bytes = 1024 * 1024;  ///< Of events: held for a slow reader.
/// Written at once, so that a slow reader holds little.
constexpr std::size_t records_at_once = 256;

/// Sessions' ids by their keys, each looked up once.
class SessionNames {
 public:
  explicit SessionNames(StoreReader& reader) : reader_(reader) {}
  /// Empty: it is not kept any more.
  Result<std::string> of(SessionKey key) {
    const auto known = names_.find(key);
    if (known != names_.end()) return known->second;
    std::string name;
    if (key != observer_key) {
      auto row = reader_.session(key);
      if (!row && row.error().code != ErrorCode::not_found) return row.error();
      if (row) name = std::move(row->id);
    }
    return names_.emplace(key, std::move(name)).first->second;
  }

 private:
  StoreReader& reader_;
  std::unordered_map<SessionKey, std::string> names_;
};

}  // namespace

void Stream::begin(std::function<void()> wake) {
  wake_ = wake;
  listener_ = feed_.listen(std::move(wake));
  if (!listener_) {
    snapshot_due_ = false;
    live_ = true;
    add(": too many listen\n\n");
    return;
  }
  cursor_ = options_.after.value_or(listener_->began());
  live_ = !options_.after;
}

void Stream::add(std::string text) {
  const std::lock_guard guard(mutex_);
  pending_.push_back(std::make_shared<const std::string>(std::move(text)));
}

std::vector<BodySource::Piece> Stream::drain() {
  std::vector<Piece> pieces;
  {
    const std::lock_guard guard(mutex_);
    pieces.swap(pending_);
    if (!pieces.empty() || reading_) return pieces;
  }
  if (snapshot_due_) {
    start(&Stream::read_snapshot);
  } else if (live_) {
    drain_live(pieces);
  } else if (listener_->seek(cursor_)) {
    live_ = true;
    drain_live(pieces);
  } else {
    start(&Stream::read_replay);
  }
  return pieces;
}

void Stream::start(Task task) {
  {
    const std::lock_guard guard(mutex_);
    reading_ = true;
  }
  const auto done = [self = shared_from_this()](const Result<void>& read) {
    if (!read) self->add(": " + read.error().message + "\n\n");
    std::function<void()> wake;
    {
      const std::lock_guard guard(self->mutex_);
      self->reading_ = false;
      // After a failure it is the next keep-alive that tries again.
      if (read) wake = self->wake_;
    }
    if (wake) wake();
  };
  backend_.read([self = shared_from_this(), task,
                 done](StoreReader& reader) { done((self.get()->*task)(reader)); },
                [done](const Error& error) { done(error); });
}

/// Reads the present state, a page at a time. Later records may repeat some of it.
Result<void> Stream::read_snapshot(StoreReader& reader) {
  if (rows_sent_ == 0) {
    if (auto placed = place(reader); !placed) return placed;
  }
  JsonWriter out;
  const auto wall = system_clock().wall();
  out.open_object().field("now", wall.time_since_epoch().count());
  bool complete = true;
  if (options_.sessions) {
    out.key("sessions").open_array();
    if (!options_.session.empty()) {
      auto document = this->document(reader);
      if (!document) return document.error();
      out.raw(*document);
    } else {
      const auto rows = reader.sessions({.after = below_, .limit = page_rows});
      if (!rows) return rows.error();
      for (const auto& row : *rows) {
        const auto text = session_row(backend_, reader, row, wall);
        if (!text) return text.error();
        out.raw(*text);
      }
      rows_sent_ += static_cast<int>(rows->size());
      complete = static_cast<int>(rows->size()) < page_rows || rows_sent_ >= rows_max;
      if (!rows->empty()) below_ = rows->back().key;
    }
    out.close_array();
  }
  if (complete && options_.summary) {
    const auto summary = summary_of(backend_, reader, wall);
    if (!summary) return summary.error();
    out.key("summary").raw(*summary);
  }
  out.field("complete", complete).field("resumed", resumed_).field("missed", missed_);
  out.close_object();
  add(sse_record("snapshot", std::nullopt, out.text()));
  if (complete) {
    snapshot_due_ = false;
    rows_sent_ = 0;
    below_ = 0;
  }
  return {};
}

/// Returns whether the file still has what followed the cursor.
Result<void> Stream::place(StoreReader& reader) {
  resumed_ = missed_ = false;
  if (live_) return {};
  const auto transition = TransitionReader(reader).newest_id();
  if (!transition) return transition.error();
  const auto newest = EventReader(reader).newest();
  if (!newest) return newest.error();
  const auto first = EventReader(reader).first_kept();
  if (!first) return first.error();
  const bool foreign = cursor_.seq > newest->first || cursor_.transition > *transition;
  missed_ = foreign || cursor_.seq + 1 < *first;
  resumed_ = !missed_;
  if (foreign) cursor_ = {.seq = newest->first, .transition = *transition};
  return {};
}

/// Reads the next page after the cursor. At the end of the file the cursor is at its newest event,
/// of any session, so that the feed can continue there.
Result<void> Stream::read_replay(StoreReader& reader) {
  // In this order: what a transition was concluded of is in the file before it.
  const auto newest_transition = TransitionReader(reader).newest_id();
  if (!newest_transition) return newest_transition.error();
  const auto newest = EventReader(reader).newest();
  if (!newest) return newest.error();
  SessionNames names(reader);

  EventPage page;
  if (options_.session.empty()) {
    auto events = EventReader(reader).after(cursor_.seq, page_events, replay_bytes);
    if (!events) return events.error();
    page.events = std::move(*events);
    if (!page.events.empty()) page.next = page.events.back().seq;
  } else {
    auto own = EventReader(reader).page(options_.key, cursor_.seq, page_events, {}, replay_bytes);
    if (!own) return own.error();
    page = std::move(*own);
  }
  for (const auto& event : page.events) {
    const auto name = names.of(event.session);
    if (!name) return name.error();
    const auto record = record_of(event, *name, cursor_);
    cursor_ = record.cursor;
    if (options_.events && !name->empty()) add(record.text);
  }
  if (page.next) {
    cursor_.seq = std::max(cursor_.seq, *page.next);
  } else {
    cursor_.seq = std::max(cursor_.seq, newest->first);
  }

  const bool all = options_.session.empty();
  while (true) {
    const auto rows =
        all ? TransitionReader(reader).after(cursor_.transition, cursor_.seq, page_events)
            : TransitionReader(reader).of(options_.key, cursor_.transition, page_events);
    if (!rows) return rows.error();
    for (const auto& row : *rows) {
      if (row.transition.seq > cursor_.seq) return {};  // its event comes first
      const auto name = names.of(row.transition.session);
      if (!name) return name.error();
      const auto record = record_of(row, *name, cursor_);
      cursor_ = record.cursor;
      if (options_.transitions && !name->empty()) add(record.text);
    }
    if (static_cast<int>(rows->size()) < page_events) break;
  }
  if (!page.next) cursor_.transition = std::max(cursor_.transition, *newest_transition);
  return {};
}

Result<std::string> Stream::document(StoreReader& reader) const {
  const auto row = reader.session(options_.session);
  if (!row) return row.error();
  const auto watched = look_up(backend_, reader, *row);
  if (!watched) return watched.error();
  return document_of(backend_, reader, *row, *watched);
}

Result<void> Stream::read_document(StoreReader& reader) {
  auto document = this->document(reader);
  if (!document) return document.error();
  add(sse_record("session", std::nullopt, *document));
  return {};
}

void Stream::drain_live(std::vector<Piece>& pieces) {
  if (!listener_) return;
  std::vector<RecordPtr> records;
  while (true) {
    if (!listener_->drain(records, records_at_once)) {
      // Continues from the file; rows of sessions are sent in their present state.
      live_ = false;
      snapshot_due_ = options_.sessions || options_.summary;
      return wake_();
    }
    bool look = false;
    for (const auto& record : records) {
      const bool own = options_.session.empty() || record->session == options_.key;
      if (record->kind == Record::Kind::session) {
        if (!own || !options_.sessions) continue;
        if (options_.session.empty()) pieces.emplace_back(record, &record->text);
        look = !options_.session.empty();
        continue;
      }
      if (record->kind == Record::Kind::summary) {
        if (options_.summary) pieces.emplace_back(record, &record->text);
        continue;
      }
      // After a replay the feed repeats some of it.
      const bool event = record->kind == Record::Kind::event;
      if (event ? record->cursor.seq <= cursor_.seq
                : record->cursor.transition <= cursor_.transition) {
        continue;
      }
      (event ? cursor_.seq : cursor_.transition) =
          event ? record->cursor.seq : record->cursor.transition;
      if (own && (event ? options_.events : options_.transitions)) {
        pieces.emplace_back(record, &record->text);
      }
    }
    if (look) start(&Stream::read_document);
    if (look || !pieces.empty() || records.empty()) return;
  }
}

}  // namespace watchdog::monitor
