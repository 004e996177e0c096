// The proxy's own finding begins a run, never a report: anybody may report that a server hangs. The
// finding comes before the session has it, so the thread waits some rounds for the session. The
// book notes a run before it begins: what moves meanwhile counts.
#include "api/hang_diagnosis.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "bundle/bundle.h"
#include "core/command_end.h"
#include "core/hang_book.h"
#include "core/recovery_act.h"
#include "core/rounds.h"
#include "core/time_limit.h"
#include "privacy/content.h"
#include "process/process_sample.h"
#include "store/audit.h"
#include "watchdog/subprocess.h"

namespace watchdog::monitor {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

/// Of the output; the rest of a look says what ran.
constexpr std::size_t head_bytes = 160UL * 1024;
constexpr std::size_t tail_bytes = 80UL * 1024;
/// That get the output of a run; a server works on fewer requests at once.
constexpr std::size_t sessions_max = 64;
constexpr std::string_view pid_word = "{pid}";

/// A session whose request hangs, and the event that says so.
struct Waiting {
  std::string session;
  Seq seq = 0;
};

bool is_proxied(const History& history) {
  return std::any_of(history.sources.begin(), history.sources.end(),
                     [](const SourceNote& note) { return note.origin == ReportOrigin::proxy; });
}

/// The session's request among these that hangs; null: it has none.
const ServerNote* hang_of(const History& history, const std::set<std::string>& requests) {
  const auto& notes = *history.notes->server;
  const auto found = std::ranges::find_if(notes, [&](const ServerNote& note) {
    return note.evidence.state == ServerState::hung && requests.contains(note.request);
  });
  return found == notes.end() || !is_proxied(history) ? nullptr : &*found;
}

ProcessId id_of(const ServerProcess& process) {
  return {process.pid, process.start_ticks};
}

}  // namespace

std::vector<std::string> command_for(const std::vector<std::string>& command, std::int64_t pid) {
  auto words = command;
  const auto number = std::to_string(pid);
  for (auto& word : words)
    for (auto at = word.find(pid_word); at != std::string::npos;
         at = word.find(pid_word, at + number.size()))
      word.replace(at, pid_word.size(), number);
  return words;
}

std::string printed_text(std::string_view head, std::string_view tail, std::uint64_t bytes) {
  const auto left_out = bytes - std::min<std::uint64_t>(bytes, head.size() + tail.size());
  if (left_out == 0) return std::string(head).append(tail);
  const auto last = head.rfind('\n');
  const auto first = tail.find('\n');
  head = head.substr(0, last == std::string_view::npos ? 0 : last + 1);
  tail = first == std::string_view::npos ? std::string_view() : tail.substr(first + 1);
  return std::string(head) + "… " + std::to_string(bytes - head.size() - tail.size()) +
         " bytes are left out\n" + std::string(tail);
}

struct HangDiagnosis::State {
  State(StoreThread& where, Options chosen) : store(where), options(std::move(chosen)) {}

  /// The newest run for a server.
  struct Run {
    ProcessId process{};
    SteadyTime at{};  ///< When it began.
    std::string text{};
  };

  StoreThread& store;
  const Options options;
  std::mutex mutex;  ///< Guards the next two.
  HangBook book;
  std::map<std::string, Url> urls;
  std::map<std::string, Run> runs;  ///< Of the thread alone, like the next one.
  std::set<std::string> unseen;     ///< Servers whose process was not found, which was said.
  std::jthread thread;              ///< The last member: it uses the others until it ends.

  template <class Step>
  auto with_book(const Step& step) {
    const std::lock_guard guard(mutex);
    return step(book);
  }

  /// Sessions with such a request; `known` gets these requests.
  std::vector<Waiting> sessions_of(const std::set<std::string>& requests,
                                   std::set<std::string>& known) const {
    std::vector<Waiting> waiting;
    const auto ids = store.sessions_where(
        [&](const Case& judged) { return hang_of(judged.history, requests) != nullptr; });
    for (const auto& id : ids) {
      if (waiting.size() == sessions_max) break;
      const auto watched = store.watched(id);
      const auto* hang = watched ? hang_of(watched->judged.history, requests) : nullptr;
      if (hang == nullptr) continue;
      known.insert(hang->request);
      waiting.push_back({.session = id, .seq = hang->seq});
    }
    return waiting;
  }

  void handle(const std::string& server, const std::set<std::string>& requests,
              const std::stop_token& stop) {
    std::set<std::string> known;
    const auto sessions = sessions_of(requests, known);
    if (sessions.empty()) return with_book([&](HangBook& all) { all.wait_for(server, requests); });
    const auto url = with_book([&](HangBook&) { return urls.at(server); });
    const auto process = process_behind(url);
    const auto run = runs.find(server);
    const bool is_same = process && run != runs.end() && run->second.process == id_of(*process);
    const bool looks_again = !is_same || !with_book([&](HangBook& all) {
      return all.was_looked_at(server, id_of(*process));
    });
    if (looks_again && is_same && std::chrono::steady_clock::now() - run->second.at < options.rest)
      return;
    if (!process) {
      if (unseen.insert(server).second)
        options.log(
            "recovery.diagnose does not run: the monitor does not see a process of the "
            "model server " +
            server + " on this machine");
    } else if (looks_again) {
      look_at(server, *process, sessions, stop);
    } else {
      keep(sessions, run->second);
    }
    with_book([&](HangBook& all) { all.handled(server, known); });
  }

  void look_at(const std::string& server, const ServerProcess& process,
               const std::vector<Waiting>& sessions, const std::stop_token& stop) {
    with_book([&](HangBook& all) { all.looks_at(server, id_of(process)); });
    const auto command = command_for(options.command, process.pid);
    const auto began = system_clock().wall();
    const auto began_at = std::chrono::steady_clock::now();
    std::string end;
    std::string printed;
    {
      const TimeLimit limit(options.at_most, stop);
      const auto ran = run_process(
          {.argv = command, .cwd = "/", .head_bytes = head_bytes, .tail_bytes = tail_bytes},
          {.stop = limit.token()});
      end = redact(command_end(ran, options.at_most));
      if (ran) printed = printed_text(ran->head, ran->tail, ran->output_bytes);
    }
    if (stop.stop_requested()) return;
    auto& run = runs[server];
    run = {.process = id_of(process), .at = began_at};
    run.text = server_look_text({.server = server,
                                 .pid = process.pid,
                                 .process = process.name,
                                 .command = command,
                                 .end = end,
                                 .printed = printed,
                                 .at = began});
    keep(sessions, run);
    for (const auto& waiting : sessions) write_down(waiting, end);
    options.log("model server " + server + ": recovery.diagnose " + end);
  }

  void keep(const std::vector<Waiting>& sessions, const Run& run) const {
    for (const auto& waiting : sessions) {
      const auto kept = options.looks->keep(
          waiting.session, "hung-" + std::to_string(run.process.first), run.text, LookOf::server);
      if (!kept)
        options.log("session " + waiting.session +
                    ": no look at its model server is kept: " + kept.error().message);
    }
  }

  void write_down(const Waiting& waiting, const std::string& end) const {
    Health hang{.kind = HealthKind::stuck, .pattern = Pattern::server_status};
    hang.evidence[1] = waiting.seq;
    const AuditEntry entry{.at = system_clock().wall(),
                           .actor = "recovery.diagnose",
                           .action = AuditAction::command,
                           .target = waiting.session,
                           .outcome = "its command " + end + ": " + proof_of(hang)};
    store.write([entry](Store& kept) { return kept.keep(entry); }, [](const Result<void>&) {});
  }

  void look(const std::stop_token& stop) {
    const auto waiting = with_book([](const HangBook& all) { return all.waiting(); });
    for (const auto& [server, requests] : waiting) {
      if (stop.stop_requested() || options.is_paused()) return;
      handle(server, requests, stop);
    }
  }

  void work(const std::stop_token& stop) {
    look_in_rounds(
        stop, options.look_every, [&] { look(stop); },
        [&] {
          options.log(
              "recovery.diagnose: no memory or no thread; the next look is in some seconds");
        });
  }
};

HangDiagnosis::HangDiagnosis(StoreThread& store, Options options)
    : state_(std::make_unique<State>(store, std::move(options))) {
  state_->thread =
      std::jthread([state = state_.get()](const std::stop_token& stop) { state->work(stop); });
}

HangDiagnosis::~HangDiagnosis() = default;

void HangDiagnosis::found(const Url& server, const std::string& request, ServerState state) {
  const std::lock_guard guard(state_->mutex);
  const auto name = server.text();
  state_->urls.emplace(name, server);
  state_->book.found(name, request, state);
}

}  // namespace watchdog::monitor
