// Answers questions about a history. Nothing here changes one.
#include <algorithm>

#include "facts/digest.h"
#include "watchdog/history.h"

namespace watchdog {

SourceNote& SourceNotes::note(ReportOrigin origin) {
  auto* begin = more_.empty() ? &only_ : more_.begin();
  auto* end = begin + size();
  auto* found = std::find_if(begin, end, [&](const auto& note) { return note.origin == origin; });
  if (found != end) return *found;
  if (begin == end) return only_ = {.origin = origin};
  std::vector<SourceNote> all(begin, end);
  all.push_back({.origin = origin});
  more_ = all;
  return *(more_.end() - 1);
}

void SourceNotes::set(const std::vector<SourceNote>& notes) {
  *this = {};
  for (const auto& note : notes)
    if (note.reports > 0) this->note(note.origin) = note;
}

const OpenTurn* find_turn(const History& history, std::string_view id) noexcept {
  const auto& turns = *history.notes->turns;
  const auto found =
      std::find_if(turns.begin(), turns.end(), [&](const OpenTurn& turn) { return turn.id == id; });
  return found == turns.end() ? nullptr : &*found;
}

const OpenCall* newest_call(const History& history, std::string_view turn) noexcept {
  const auto& calls = *history.open_calls;
  const auto found = std::find_if(calls.rbegin(), calls.rend(),
                                  [&](const OpenCall& call) { return call.notes->turn == turn; });
  return found == calls.rend() ? nullptr : &*found;
}

bool is_outdated(const History& history, Seq seen) noexcept {
  return seen < history.change_seq &&
         (!history.repetition.has() || history.repetition->state_seq > seen);
}

std::uint64_t machine_of(const ProcessFacts& process) {
  return digest_of(process.boot_id + '\n' + process.host);
}

}  // namespace watchdog
