// The state of a wait between two requests is its place; everything else follows from the file. A
// look reads the changes of health first, then the session as it is judged, then the events that
// this judgement has taken. So nothing is judged that the session's document does not show. A goal
// that was met in passing counts, and so does an end; trouble counts only if it lasts until now.
#include "api/wait_look.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "store/event_reader.h"
#include "store/transition_reader.h"
#include "wait/account.h"

namespace watchdog::monitor {
namespace {

constexpr int events_at_once = 500;
constexpr int changes_at_once = 500;
constexpr std::string_view absent_text = "absent";

}  // namespace

Result<std::vector<Transition>> changes_of(StoreReader& reader, SessionKey key,
                                           std::int64_t newest) {
  std::vector<Transition> changes;
  for (std::int64_t after = 0; after < newest;) {
    auto rows = TransitionReader(reader).of(key, after, changes_at_once);
    if (!rows) return rows.error();
    if (rows->empty()) break;
    after = rows->back().id;
    for (auto& row : *rows)
      if (row.id <= newest) changes.push_back(std::move(row.transition));
  }
  return changes;
}

std::string WaitPlace::text() const {
  if (!is_there) return std::string(absent_text);
  return seen.text() + "." + std::to_string(trouble_after);
}

std::optional<WaitPlace> WaitPlace::parse(std::string_view text) {
  WaitPlace place;
  if (text == absent_text) {
    place.is_there = false;
    return place;
  }
  const auto dot = text.rfind('.');
  if (dot == text.npos) return std::nullopt;
  const auto seen = Cursor::parse(text.substr(0, dot));
  const auto* end = text.data() + text.size();
  const auto number = std::from_chars(text.data() + dot + 1, end, place.trouble_after);
  if (!seen || number.ec != std::errc{} || number.ptr != end || place.trouble_after < 0)
    return std::nullopt;
  place.seen = *seen;
  return place;
}

WaitLook::WaitLook(WaitQuestion question) : question_(std::move(question)) {
  if (!question_.place) return;
  place_ = *question_.place;
  begin(place_.seen.seq);
}

/// The place is known. Earlier events are read again where they count.
void WaitLook::begin(Seq read_after) {
  is_placed_ = true;
  known_ = place_.seen.seq;
  read_ = read_after;
  if (place_.trouble_after == 0) return;
  count_after_ = place_.trouble_after;
  read_ = std::min(read_, count_after_);
  now_.health = HealthKind::stuck;  // or looping: the present state tells which
  see(memory_, now_);
}

Result<void> WaitLook::begin_at_present(StoreReader& reader, std::int64_t newest_change) {
  const auto& judged = watched_->judged;
  place_.seen = {.seq = judged.folded, .transition = newest_change};
  if (is_stuck(judged.health.kind)) {
    const auto changes = changes_of(reader, key_, newest_change);
    if (!changes) return changes.error();
    place_.trouble_after = stuck_since(*changes).value_or(0);
  }
  const bool looks_back = question_.awaited.goal == Goal::state_change;
  begin(looks_back ? std::min(question_.after, judged.folded) : judged.folded);
  return {};
}

Result<bool> WaitLook::absent(const Error& error) {
  if (error.code != ErrorCode::not_found) return error;
  if (watched_ || (question_.place && question_.place->is_there)) {
    watched_.reset();
    end_ = WaitEnd::no_session;
    why_ = error.message;
  }
  // When it comes, all that it does counts.
  if (!is_placed_) begin(0);
  place_.is_there = false;
  return true;
}

Result<bool> WaitLook::look(Backend& backend, StoreReader& reader) {
  const auto newest_change = TransitionReader(reader).newest_id();
  if (!newest_change) return newest_change.error();
  const auto row = reader.session(question_.session);
  if (!row) return absent(row.error());
  key_ = row->key;
  std::vector<TransitionRow> changes;
  if (is_placed_) {
    auto rows = TransitionReader(reader).of(key_, place_.seen.transition, changes_at_once);
    if (!rows) return rows.error();
    changes = std::move(*rows);
  }
  auto watched = look_up(backend, reader, *row);
  if (!watched) return watched.error();
  watched_ = std::move(*watched);
  place_.is_there = true;
  if (!is_placed_) {
    if (auto begun = begin_at_present(reader, *newest_change); !begun) return begun.error();
  }

  const auto through = watched_->judged.folded;
  const auto page = EventReader(reader).page(key_, read_, events_at_once);
  if (!page) return page.error();
  auto change = changes.begin();
  for (const auto& event : page->events) {
    if (event.seq > through) break;
    for (; change != changes.end() && change->transition.seq < event.seq && !is_over(); ++change)
      fold(*change);
    if (is_over()) return true;
    fold(event);
    if (is_over()) return true;
  }
  if (page->next && *page->next < through) return false;
  for (; change != changes.end() && !is_over(); ++change) fold(*change);
  if (is_over()) return true;
  if (changes.size() == changes_at_once) return false;
  read_ = std::max(read_, through);
  place_.seen.seq = std::max(place_.seen.seq, through);
  now_.lifecycle = watched_->judged.history.lifecycle;
  now_.health = watched_->judged.health.kind;
  now_.quiet = watched_->judged.health.pattern == Pattern::quiet;
  add_sample(place_.seen.seq);
  judge(question_.awaited);
  return true;
}

void WaitLook::fold(const Event& event) {
  read_ = event.seq;
  place_.seen.seq = std::max(place_.seen.seq, event.seq);
  if (event.late) return;
  const auto& report = event.report;
  if (question_.awaited.goal == Goal::state_change && event.seq > question_.after)
    now_.holds |= is_change(report, question_.awaited.what);
  if (event.seq > count_after_) iterations_.fold(event);
  const auto* outcome = std::get_if<Outcome>(&report.detail);
  const bool is_new_end =
      event.seq > known_ && report.kind == ReportKind::end && outcome != nullptr;
  if (is_new_end) now_.lifecycle = lifecycle_of(outcome->kind);
  if (event.seq > known_ && report.kind == ReportKind::start) now_.lifecycle = Lifecycle::running;
  add_sample(event.seq);
  if (is_new_end || now_.holds) judge_in_passing();
}

void WaitLook::fold(const TransitionRow& change) {
  place_.seen.transition = change.id;
  now_.health = change.transition.health.kind;
  now_.quiet = change.transition.health.pattern == Pattern::quiet;
  add_sample(change.transition.seq);
  judge_in_passing();
}

/// Trouble counts only if the session has it at present.
void WaitLook::judge_in_passing() {
  auto passing = question_.awaited;
  passing.on_stuck = OnStuck::keep;
  passing.on_suspect = passing.on_quiet = OnDoubt::keep;
  judge(passing);
}

void WaitLook::add_sample(Seq seq) {
  now_.beats = iterations_.beats;
  now_.rounds = iterations_.rounds;
  see(memory_, now_);
  if (!memory_.trouble) {
    place_.trouble_after = 0;
  } else if (place_.trouble_after == 0) {
    place_.trouble_after = std::max<Seq>(seq, 1);
  }
}

void WaitLook::judge(const Awaited& awaited) {
  const auto verdict = ruling(awaited, memory_);
  why_ = why_over(verdict, awaited, memory_);
  switch (verdict) {
    case Ruling::go_on:
      return;
    case Ruling::met:
      came_ = true;
      return;
    case Ruling::ended:
      end_ = WaitEnd::ended;
      return;
    case Ruling::dead:
      end_ = WaitEnd::dead;
      return;
    case Ruling::ask:
      // A client that goes on has forgiven what was.
      place_.trouble_after = std::max<Seq>(place_.seen.seq, 1);
      [[fallthrough]];
    case Ruling::stuck:
      end_ = WaitEnd::stuck;
      return;
    case Ruling::suspect:
      end_ = WaitEnd::suspect;
      return;
    case Ruling::quiet:
      end_ = WaitEnd::quiet;
  }
}

}  // namespace watchdog::monitor
