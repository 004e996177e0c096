// A look costs some reads of /proc and a question to git. So each moment is looked at once, and
// only if the monitor found the agent's process itself: a report alone makes it read nothing.
#include "api/look_keeper.h"

#include <algorithm>
#include <future>
#include <map>
#include <thread>
#include <utility>

#include "api/session_facts.h"
#include "core/rounds.h"

namespace watchdog::monitor {
namespace {

constexpr int looks_between_removals = 12;

}  // namespace

std::optional<std::string> moment_of(const Case& judged) {
  const auto& history = judged.history;
  const auto numbered = [](std::string_view name, auto number) {
    return std::string(name) + "-" + std::to_string(number);
  };
  if (history.lifecycle == Lifecycle::failed || history.lifecycle == Lifecycle::cancelled)
    return numbered(name_of(history.lifecycle), history.attempt);
  if (is_end(history.lifecycle)) return std::nullopt;
  if (history.notes->cancel) return numbered("cancel", history.attempt);
  if (!is_trouble(judged.health.kind)) return std::nullopt;
  return numbered(name_of(judged.health.kind), judged.health.evidence[0]);
}

struct LookKeeper::State {
  State(StoreThread& where, Options chosen)
      : store(where), options(std::move(chosen)), seen(options.looks->moments()) {}

  StoreThread& store;
  const Options options;
  std::map<std::string, std::string> seen;  ///< The newest moment of each session in trouble.
  int rounds = 0;
  std::jthread thread;  ///< The last member: it uses the others until it ends.

  /// Waits for the store.
  Result<SessionRow> row_of(const std::string& session) {
    const auto done = std::make_shared<std::promise<Result<SessionRow>>>();
    store.read([done, session](StoreReader& reader) { done->set_value(reader.session(session)); },
               [done](Error why) { done->set_value(std::move(why)); });
    return done->get_future().get();
  }

  void handle(const std::string& session, const std::stop_token& stop) {
    const auto watched = store.watched(session);
    const auto moment = watched ? moment_of(watched->judged) : std::nullopt;
    if (!moment) return;
    auto& newest = seen[session];
    if (newest == *moment) return;
    newest = *moment;
    const auto process = agent_process(*watched);
    if (!process.is_here || !process.is_found) return;
    const auto row = row_of(session);
    if (!row) return;
    const auto place = agent_place(*row, *watched);
    BundleFacts facts{.session = session, .at = system_clock().wall()};
    add_present_facts(facts, place, options.asks_git, stop);
    const auto text = present_facts_text(facts, *moment);
    if (text.empty() || stop.stop_requested()) return;
    if (const auto kept = options.looks->keep(session, *moment, text); !kept)
      options.log("session " + session + ": no look is kept: " + kept.error().message);
  }

  /// Files of sessions that are gone.
  void tidy() {
    if (rounds++ % looks_between_removals != 0) return;
    options.looks->remove_unless([&](const std::string& session) {
      const auto row = row_of(session);
      return row || row.error().code != ErrorCode::not_found;
    });
  }

  void look(const std::stop_token& stop) {
    const auto sessions =
        store.sessions_where([](const Case& judged) { return moment_of(judged).has_value(); });
    for (const auto& session : sessions) {
      if (stop.stop_requested()) return;
      handle(session, stop);
    }
    std::erase_if(seen, [&](const auto& one) {
      return std::ranges::find(sessions, one.first) == sessions.end();
    });
    tidy();
  }

  void work(const std::stop_token& stop) {
    look_in_rounds(
        stop, options.look_every, [&] { look(stop); },
        [&] { options.log("looks: no memory or no thread; the next look is in some seconds"); });
  }
};

LookKeeper::LookKeeper(StoreThread& store, Options options)
    : state_(std::make_unique<State>(store, std::move(options))) {
  state_->thread =
      std::jthread([state = state_.get()](const std::stop_token& stop) { state->work(stop); });
}

LookKeeper::~LookKeeper() = default;

}  // namespace watchdog::monitor
