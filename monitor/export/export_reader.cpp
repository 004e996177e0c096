// Events are read in pages, each followed by the changes of health that follow from it. A change is
// stored after its event, so only events that were judged are read.
#include "export/export_reader.h"

#include <limits>

#include "store/event_reader.h"
#include "store/transition_reader.h"

namespace watchdog::monitor {
namespace {

constexpr int page_events = 500;
constexpr std::size_t page_bytes = 4 * 1024 * 1024;
constexpr int pages_a_round = 20;

}  // namespace

bool ExportReader::open() {
  if (reader_) return true;
  auto opened = StoreReader::open(options_.database);
  if (!opened) return false;
  const auto newest = EventReader(*opened).newest();
  const auto newest_transition = TransitionReader(*opened).newest_id();
  if (!newest || !newest_transition) return false;
  seq_ = newest->first;
  transition_ = *newest_transition;
  reader_.emplace(std::move(*opened));
  return true;
}

std::vector<ExportItem> ExportReader::read() {
  if (!open()) return {};
  // Asked before the file: what follows from these events is stored by now.
  const Seq judged = options_.judged ? options_.judged() : std::numeric_limits<Seq>::max();
  const auto now = reader_->version();
  if (!now || *now == version_) return {};
  version_ = -1;  // until all is read
  for (int page = 0; page < pages_a_round; ++page) {
    auto events = EventReader(*reader_).after(seq_, page_events, page_bytes);
    if (!events) break;
    const bool is_last = events->size() < page_events;
    const auto found = events->size();
    std::erase_if(*events, [&](const Event& event) { return event.seq > judged; });
    if (!events->empty()) seq_ = events->back().seq;
    const auto changes = TransitionReader(*reader_).after(transition_, seq_, page_events);
    if (!changes) break;
    make(*events, *changes);
    if (events->size() < found) break;
    if (!is_last || changes->size() == page_events) continue;
    version_ = *now;
    break;
  }
  return maker_.drain_items();
}

void ExportReader::make(const std::vector<Event>& events,
                        const std::vector<TransitionRow>& changes) {
  auto change = changes.begin();
  const auto add = [&](SessionKey session, const auto& what) {
    if (!options_.judges || options_.judges(session)) maker_.add(what);
  };
  for (const auto& event : events) {
    for (; change != changes.end() && change->transition.seq < event.seq; ++change)
      add(change->transition.session, *change);
    add(event.session, event);
  }
  for (; change != changes.end(); ++change) add(change->transition.session, *change);
  if (!changes.empty()) transition_ = changes.back().id;
}

}  // namespace watchdog::monitor
