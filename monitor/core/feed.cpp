// A bounded queue of shared records under one lock. A listener holds a position; when the queue has
// dropped it, `drain` says so. `flush` wakes listeners under the lock, so none is destroyed
// meanwhile, and `wake` must not block. Sessions are only noted as changed here; a reader makes
// their rows. Without listeners nothing is kept, but the cursor moves on, so a new listener knows
// its place.
#include "core/feed.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "codec/json.h"
#include "core/transition.h"
#include "store/transition_reader.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

/// The object with the session's id as its first member.
std::string with_session(std::string_view session, std::string_view object) {
  JsonWriter out;
  out.open_object().field("sessionId", session);
  auto text = out.finish();
  if (object.size() > 2) text += ',';
  return text.append(object.substr(1));
}

}  // namespace

std::string Cursor::text() const {
  return std::to_string(seq) + "." + std::to_string(transition);
}

std::optional<Cursor> Cursor::parse(std::string_view text) {
  Cursor cursor;
  const auto* end = text.data() + text.size();
  const auto seq = std::from_chars(text.data(), end, cursor.seq);
  if (seq.ec != std::errc{} || seq.ptr == end || *seq.ptr != '.') return std::nullopt;
  const auto transition = std::from_chars(seq.ptr + 1, end, cursor.transition);
  if (transition.ec != std::errc{} || transition.ptr != end) return std::nullopt;
  if (cursor.seq < 0 || cursor.transition < 0) return std::nullopt;
  return cursor;
}

std::string sse_record(std::string_view kind, const std::optional<Cursor>& cursor,
                       std::string_view data) {
  std::string text;
  text.reserve(data.size() + 64);
  text.append("event: ").append(kind).append("\n");
  if (cursor) text.append("id: ").append(cursor->text()).append("\n");
  text.append("data: ");
  const auto from = text.size();
  text.append(data);
  // In JSON a line break can only stand between words; here it would end the record.
  for (auto at = text.find_first_of("\r\n", from); at != text.npos;
       at = text.find_first_of("\r\n", at)) {
    text[at] = ' ';
  }
  return text.append("\n\n");
}

Record record_of(const Event& event, std::string_view session, Cursor before) {
  const Cursor cursor{.seq = event.seq, .transition = before.transition};
  return {.kind = Record::Kind::event,
          .session = event.session,
          .cursor = cursor,
          .text = sse_record("event", cursor, with_session(session, to_json(event)))};
}

Record record_of(const TransitionRow& row, std::string_view session, Cursor before) {
  const Cursor cursor{.seq = before.seq, .transition = row.id};
  return {.kind = Record::Kind::transition,
          .session = row.transition.session,
          .cursor = cursor,
          .text = sse_record("transition", cursor, with_session(session, transition_json(row)))};
}

struct Feed::State {
  mutable std::mutex mutex;
  std::deque<RecordPtr> records;
  std::uint64_t first = 0;  ///< Number of the first record that is kept.
  Cursor start;             ///< The cursor before the first record.
  Cursor newest;
  std::size_t bytes = 0;
  bool unheard = false;  ///< Something came since the last flush.
  std::vector<Listener*> listeners;
  std::unordered_set<std::string> changed;
  bool urgent = false;
  std::string summary;  ///< The one that was sent last.

  [[nodiscard]] std::uint64_t end() const { return first + records.size(); }

  void drop_first() {
    start = records.front()->cursor;
    bytes -= records.front()->text.size();
    records.pop_front();
    ++first;
  }

  void clear() {
    first = end();
    records.clear();
    bytes = 0;
    start = newest;
  }

  void add(Record record) {
    newest = record.cursor;
    bytes += record.text.size();
    records.push_back(std::make_shared<const Record>(std::move(record)));
    while (records.size() > records_max || bytes > bytes_max) drop_first();
    unheard = true;
  }

  void note_changed(std::string_view session, bool now) {
    changed.emplace(session);
    urgent |= now;
  }
};

Feed::Listener::Listener(std::shared_ptr<State> state, std::function<void()> wake)
    : state_(std::move(state)), wake_(std::move(wake)) {
  const std::lock_guard guard(state_->mutex);
  next_ = state_->end();
  began_ = state_->newest;
  state_->listeners.push_back(this);
}

Feed::Listener::~Listener() {
  const std::lock_guard guard(state_->mutex);
  std::erase(state_->listeners, this);
  if (!state_->listeners.empty()) return;
  state_->clear();
  state_->changed.clear();
  state_->summary.clear();
}

bool Feed::Listener::seek(Cursor cursor) {
  const std::lock_guard guard(state_->mutex);
  if (cursor.seq < state_->start.seq || cursor.transition < state_->start.transition) return false;
  next_ = state_->first;
  return true;
}

bool Feed::Listener::drain(std::vector<RecordPtr>& into, std::size_t count_max) {
  const std::lock_guard guard(state_->mutex);
  if (next_ < state_->first) return false;
  const auto from = static_cast<std::ptrdiff_t>(next_ - state_->first);
  const auto count = std::min<std::size_t>(count_max, state_->end() - next_);
  into.assign(state_->records.begin() + from,
              state_->records.begin() + from + static_cast<std::ptrdiff_t>(count));
  next_ += count;
  return true;
}

Feed::Feed() : state_(std::make_shared<State>()) {}
Feed::~Feed() = default;

void Feed::event(const Event& event, std::string_view session) {
  const std::lock_guard guard(state_->mutex);
  if (state_->listeners.empty()) {
    state_->newest.seq = event.seq;
    state_->start = state_->newest;
    return;
  }
  state_->add(record_of(event, session, state_->newest));
  state_->note_changed(session, event.report.kind == ReportKind::end);
}

void Feed::transition(const TransitionRow& row, std::string_view session) {
  const std::lock_guard guard(state_->mutex);
  if (state_->listeners.empty()) {
    state_->newest.transition = row.id;
    state_->start = state_->newest;
    return;
  }
  state_->add(record_of(row, session, state_->newest));
  state_->note_changed(session, true);
}

void Feed::touched(std::string_view session) {
  const std::lock_guard guard(state_->mutex);
  if (!state_->listeners.empty()) state_->note_changed(session, true);
}

void Feed::restart(Cursor cursor) {
  const std::lock_guard guard(state_->mutex);
  state_->newest = cursor;
  // Listeners in the middle of it read the file.
  ++state_->first;
  state_->clear();
  state_->unheard = true;
}

void Feed::flush() {
  const std::lock_guard guard(state_->mutex);
  if (!std::exchange(state_->unheard, false)) return;
  for (const auto* listener : state_->listeners) listener->wake();
}

std::vector<std::string> Feed::drain_changed() {
  const std::lock_guard guard(state_->mutex);
  auto drained = std::exchange(state_->changed, {});
  state_->urgent = false;
  std::vector<std::string> sessions;
  sessions.reserve(drained.size());
  while (!drained.empty()) sessions.push_back(std::move(drained.extract(drained.begin()).value()));
  return sessions;
}

void Feed::session(SessionKey key, std::string_view data) {
  const std::lock_guard guard(state_->mutex);
  if (state_->listeners.empty()) return;
  state_->add({.kind = Record::Kind::session,
               .session = key,
               .cursor = state_->newest,
               .text = sse_record("session", std::nullopt, data)});
}

void Feed::summary(std::string_view data) {
  const std::lock_guard guard(state_->mutex);
  if (state_->listeners.empty() || state_->summary == data) return;
  state_->summary = data;
  state_->add({.kind = Record::Kind::summary,
               .cursor = state_->newest,
               .text = sse_record("summary", std::nullopt, data)});
}

std::shared_ptr<Feed::Listener> Feed::listen(std::function<void()> wake) {
  if (listeners() >= listeners_max) return nullptr;
  return std::make_shared<Listener>(state_, std::move(wake));
}

std::size_t Feed::listeners() const {
  const std::lock_guard guard(state_->mutex);
  return state_->listeners.size();
}

Feed::Pending Feed::pending() const {
  const std::lock_guard guard(state_->mutex);
  return state_->changed.empty() ? Pending::none : state_->urgent ? Pending::urgent : Pending::some;
}

}  // namespace watchdog::monitor
