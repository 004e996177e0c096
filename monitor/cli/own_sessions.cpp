// How a session ended is its lifecycle. A session that was cancelled while it was stuck did not
// finish; another cancelled one says nothing about its task. Sessions with the same task, and
// children of one parent, are on the same side of a split.
#include "cli/own_sessions.h"

#include <algorithm>

#include "facts/digest.h"
#include "store/event_reader.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

constexpr int rows_at_once = 1'000;
constexpr int example_events_at_once = 1'000;

ExampleEnd end_of(const SessionRow& row) {
  switch (row.lifecycle) {
    case Lifecycle::completed:
      return ExampleEnd::finished;
    case Lifecycle::failed:
    case Lifecycle::incomplete:
      return ExampleEnd::unfinished;
    default:
      return row.health == HealthKind::stuck || row.health == HealthKind::looping
                 ? ExampleEnd::unfinished
                 : ExampleEnd::cut;
  }
}

const std::string& task_key(const SessionRow& row) {
  if (!row.spec.task.empty()) return row.spec.task;
  return row.spec.parent.empty() ? row.id : row.spec.parent;
}

}  // namespace

Result<std::optional<Example>> example_of(StoreReader& reader, const SessionRow& row,
                                          Seq first_kept) {
  ExampleFold fold;
  std::optional<Seq> after = 0;
  bool is_first = true;
  while (after) {
    const auto page = EventReader(reader).page(row.key, *after, example_events_at_once);
    if (!page) return page.error();
    for (const auto& event : page->events) {
      if (is_first && event.prev != 0 && event.prev < first_kept) return std::optional<Example>{};
      is_first = false;
      fold.fold(event);
    }
    after = page->next;
  }
  auto example = fold.example();
  example.agent = row.spec.agent;
  example.task = hexadecimal(digest_of(task_key(row)));
  example.end = end_of(row);
  return std::optional(std::move(example));
}

Result<OwnSessions> ended_sessions(StoreReader& reader) {
  const auto first_kept = EventReader(reader).first_kept();
  if (!first_kept) return first_kept.error();
  OwnSessions own;
  SessionFilter filter{.limit = rows_at_once};
  while (true) {
    const auto rows = reader.sessions(filter);
    if (!rows) return rows.error();
    for (const auto& row : *rows) {
      if (!is_end(row.lifecycle)) continue;
      if (own.examples.size() >= examples_max) break;
      auto example = example_of(reader, row, *first_kept);
      if (!example) return example.error();
      if (!*example) {
        ++own.dropped;
        continue;
      }
      own.calls += (*example)->calls;
      own.examples.push_back(std::move(**example));
    }
    if (static_cast<int>(rows->size()) < rows_at_once || own.examples.size() >= examples_max) break;
    filter.after = rows->back().key;
  }
  std::ranges::reverse(own.examples);
  return own;
}

}  // namespace watchdog::monitor
