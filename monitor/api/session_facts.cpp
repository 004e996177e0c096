// Anybody who can report may name a folder and a process. So git is asked about the folder only if
// the monitor found the process itself, by its connection, and the process has the monitor's own
// user. Otherwise a report could make the monitor show names of files that its reader may not see.
#include "api/session_facts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "api/call.h"
#include "api/version.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "core/transition.h"
#include "store/event_reader.h"
#include "store/transition_reader.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// The newest changes of health, the oldest first. One more than the bound: there are earlier ones.
Result<std::vector<TransitionRow>> newest_changes(Backend& backend, StoreReader& reader,
                                                  const SessionRow& row) {
  constexpr int count_max = static_cast<int>(bundle_changes_max) + 1;
  auto rows = TransitionReader(reader).latest(row.key, count_max);
  // A session in memory has a judge, which records them.
  if (!rows || backend.watched(row.id)) return rows;
  auto more = TransitionReader(reader).unwritten(row, backend.now());
  if (!more) return more;
  for (auto& change : *more)
    if (rows->empty() || change.id > rows->back().id) rows->push_back(std::move(change));
  if (rows->size() > count_max) rows->erase(rows->begin(), rows->end() - count_max);
  return rows;
}

/// Null: it is not kept any more.
Result<json> event_of(StoreReader& reader, SessionKey session, Seq seq) {
  const auto page = EventReader(reader).page(session, seq - 1, 1);
  if (!page) return page.error();
  if (page->events.empty() || page->events.front().seq != seq) return json();
  return json::parse(to_json(page->events.front()), nullptr, false);
}

/// Puts each event that proves a change beside its number.
Result<void> add_proof(StoreReader& reader, SessionKey session, json& timeline) {
  std::map<Seq, json> known;  // neighbours share their evidence
  for (auto& change : timeline) {
    for (auto& proof : change["evidence"]) {
      const auto seq = proof["seq"].get<Seq>();
      if (!known.contains(seq)) {
        if (known.size() == bundle_proofs_max) return {};
        auto event = event_of(reader, session, seq);
        if (!event) return event.error();
        known.emplace(seq, std::move(*event));
      }
      proof["event"] = known[seq];
    }
  }
  return {};
}

Result<std::string> explanation_of(Backend& backend, StoreReader& reader, const SessionRow& row) {
  auto changes = newest_changes(backend, reader, row);
  if (!changes) return changes.error();
  const bool has_earlier = changes->size() > bundle_changes_max;
  if (has_earlier) changes->erase(changes->begin());
  json timeline = json::array();
  for (const auto& change : *changes) timeline.push_back(json::parse(transition_json(change)));
  if (auto added = add_proof(reader, row.key, timeline); !added) return added.error();
  return json{{"session", row.id}, {"timeline", std::move(timeline)}, {"hasEarlier", has_earlier}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<void> add_events(StoreReader& reader, SessionKey session, BundleFacts& facts) {
  const auto page = EventReader(reader).page_before(
      session, INT64_MAX, static_cast<int>(bundle_events_max), {}, bundle_events_bytes_max);
  if (!page) return page.error();
  for (const auto& event : page->events) facts.events.push_back(to_json(event));
  std::ranges::reverse(facts.events);
  facts.has_earlier_events = page->next.has_value();
  return {};
}

/// The user of a running process; nothing: it has ended.
std::optional<uid_t> user_of(const ProcessFacts& process) {
  struct stat facts {};
  const auto now = process_at(process.pid);
  const bool is_same = now && now->start_ticks == process.start_ticks;
  if (!is_same || stat(("/proc/" + std::to_string(process.pid)).c_str(), &facts) != 0)
    return std::nullopt;
  return facts.st_uid;
}

/// Returns why git is not asked about the session's folder; empty: it may be.
std::string refusal_of(const AgentPlace& place) {
  if (place.folder.empty()) return "the session's folder is not known.";
  if (!place.is_here || !place.is_found)
    return "the monitor has not found the agent's process on this machine, so it does not know "
           "whether the folder is here.";
  const auto user = user_of(place.process);
  // Only root finds processes of other users.
  if (!user && geteuid() == 0) return "the agent's process has ended, so its user is not known.";
  return user && *user != geteuid() ? "the agent runs as another user." : "";
}

void add_processes(BundleFacts& facts, const AgentPlace& place) {
  if (place.process.pid == 0) {
    facts.processes_missing = "the session's process is not known.";
  } else if (!place.is_here) {
    facts.processes_missing =
        "the session's process is of another machine, or of an earlier start of this one.";
  } else if (facts.processes = process_tree(place.process); !facts.processes) {
    facts.processes_missing = "the session's process has ended.";
  }
}

}  // namespace

AgentPlace agent_process(const Watched& watched) {
  const auto& history = watched.judged.history;
  const auto self = this_process();
  return {.process = {.pid = history.pid,
                      .start_ticks = history.start_ticks,
                      .boot_id = self.boot_id,
                      .host = self.host},
          .is_here = history.pid > 0 && history.machine == machine_of(self),
          .is_found =
              history.notes->process_found ||
              std::any_of(history.sources.begin(), history.sources.end(),
                          [](const SourceNote& note) { return note.origin == ReportOrigin::run; })};
}

AgentPlace agent_place(const SessionRow& row, const Watched& watched) {
  auto place = agent_process(watched);
  const auto folder = row.spec.labels.find("cwd");
  if (folder != row.spec.labels.end()) place.folder = std::string(folder->second);
  return place;
}

Result<BundleFacts> stored_facts(Backend& backend, StoreReader& reader, const SessionRow& row,
                                 const Watched& watched) {
  BundleFacts facts{.session = row.id, .version = own_version(), .at = system_clock().wall()};
  auto document = document_of(backend, reader, row, watched);
  if (!document) return document.error();
  facts.document = std::move(*document);
  auto explanation = explanation_of(backend, reader, row);
  if (!explanation) return explanation.error();
  facts.explanation = std::move(*explanation);
  if (auto added = add_events(reader, row.key, facts); !added) return added.error();
  return facts;
}

void add_present_facts(BundleFacts& facts, const AgentPlace& place, bool asks_git,
                       const std::stop_token& stop) {
  add_processes(facts, place);
  facts.git.missing = asks_git ? refusal_of(place) : "it was left out on request.";
  if (facts.git.missing.empty()) facts.git = look_with_git(place.folder, stop);
}

}  // namespace watchdog::monitor
