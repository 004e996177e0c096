// The event that claims a wait is a message with an id made of the wait's number. The store takes
// an id once in each session, from any monitor. The message has the role of hooks, which says
// nothing about the agent: it ends no wait, and it does not make the agent seem alive.
#include "service/ready_command.h"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "core/command_end.h"
#include "core/session_label.h"
#include "core/time_limit.h"
#include "text/figures.h"
#include "watchdog/report.h"
#include "watchdog/subprocess.h"

namespace watchdog::monitor {
namespace {

/// A session that still waits a day after the end of its wait is forgotten, not ready.
constexpr Millis ready_age_max{86'400'000};

/// A wait that is over.
struct EndedWait {
  Seq seq = 0;
  std::string agent{}, waits_for{}, provider{};
  bool is_allowed = false;  ///< The command may run for it.
};

/// Reporters choose these texts. A line end would let one variable look like two in a log.
std::string without_controls(std::string text) {
  for (auto& letter : text)
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) letter = ' ';
  return text;
}

bool has_label(const Description& description, const std::vector<std::string>& allowed) {
  return !allowed.empty() && std::ranges::any_of(labels_of(description), [&](const auto& label) {
    return std::ranges::find(allowed, label) != allowed.end();
  });
}

/// A reporter's word is not enough: `run` is the origin only of a wrapper that was found to hold
/// its connection, or of one on another machine, which has a token.
bool knows_process(const History& history) {
  return history.notes->process_found ||
         std::ranges::any_of(history.sources, [](const SourceNote& note) {
           return note.origin == ReportOrigin::run;
         });
}

/// True if the session still waits, although its wait was to end in this time. An agent that waits
/// for its next try goes on by itself.
bool has_ended_wait(const History& history, WallTime from, WallTime by) {
  const auto& notes = *history.notes;
  const bool is_over = notes.wait_until && *notes.wait_until > from && *notes.wait_until <= by;
  return is_over && history.lifecycle == Lifecycle::waiting && notes.exited_seq == 0 &&
         notes.waiting_for != wait_reports::retry;
}

}  // namespace

struct ReadyCommand::State {
  State(StoreThread& where, Options chosen) : store(where), options(std::move(chosen)) {}

  StoreThread& store;
  const Options options;
  std::map<std::string, Seq> claimed;  ///< Waits that were claimed, of sessions that still wait.
  std::mutex mutex;
  std::condition_variable_any changed;
  std::jthread thread;

  /// Nothing if the session does not wait.
  [[nodiscard]] std::optional<EndedWait> wait_of(const std::string& session) const {
    const auto watched = store.watched(session);
    if (!watched || watched->judged.history.lifecycle != Lifecycle::waiting) return std::nullopt;
    const auto& notes = *watched->judged.history.notes;
    return EndedWait{.seq = notes.wait_seq,
                     .agent = watched->description->agent,
                     .waits_for = notes.waiting_for,
                     .provider = notes.wait_provider,
                     .is_allowed = knows_process(watched->judged.history) ||
                                   has_label(*watched->description, options.labels)};
  }

  /// Returns whether the event is new; nothing: it could not be stored now.
  std::optional<bool> say(const std::string& session, std::string text, std::string event_id) {
    Report report;
    report.kind = ReportKind::message;
    report.name = "hook";
    report.content = std::move(text);
    report.event_id = std::move(event_id);
    const auto done = std::make_shared<std::promise<Result<Receipt>>>();
    store.append({.session = session,
                  .creation = Creation::refuse,
                  .reports = {std::move(report)},
                  .by = ReportOrigin::monitor},
                 [done](Result<Receipt> receipt) { done->set_value(std::move(receipt)); });
    const auto receipt = done->get_future().get();
    if (!receipt) return std::nullopt;
    return receipt->accepted == 1 && receipt->late == 0;
  }

  void run(const std::string& session, const EndedWait& wait, const std::string& id,
           const std::stop_token& stop) {
    const TimeLimit limit(options.at_most, stop);
    const auto end = run_process({.argv = options.command,
                                  .cwd = "/",
                                  .env = {{"WATCHDOG_SESSION", session},
                                          {"WATCHDOG_AGENT", without_controls(wait.agent)},
                                          {"WATCHDOG_WAITED_FOR", without_controls(wait.waits_for)},
                                          {"WATCHDOG_PROVIDER", without_controls(wait.provider)}},
                                  .survivors = Survivors::leave,
                                  .head_bytes = 0,
                                  .tail_bytes = 4'096},
                                 {.stop = limit.token()});
    const auto said = "recovery.on_ready " + command_end(end, options.at_most);
    options.log("session " + session + ": " + said);
    (void)say(session, said, id + ":end");
  }

  void handle(const std::string& session, const std::stop_token& stop) {
    const auto wait = wait_of(session);
    if (!wait || claimed[session] == wait->seq) return;
    if (!wait->is_allowed) {
      claimed[session] = wait->seq;
      options.log("session " + session +
                  ": recovery.on_ready does not run, because the monitor does not know the "
                  "session's process. recovery.on_ready_labels can allow it");
      return;
    }
    const auto id = "on_ready:" + std::to_string(wait->seq);
    const auto is_new =
        say(session, "the wait for " + wait->waits_for + " is over: recovery.on_ready runs", id);
    if (is_new) claimed[session] = wait->seq;
    if (is_new != true) return;
    // It may have gone on while this was stored.
    if (const auto now = wait_of(session); now && now->seq == wait->seq)
      run(session, *wait, id, stop);
  }

  void look(const std::stop_token& stop) {
    const auto now = system_clock().wall();
    const auto sessions = store.sessions_where([&](const Case& judged) {
      return has_ended_wait(judged.history, now - ready_age_max, now - options.grace);
    });
    std::erase_if(claimed, [&](const auto& one) {
      return std::ranges::find(sessions, one.first) == sessions.end();
    });
    for (const auto& session : sessions) {
      if (stop.stop_requested()) return;
      handle(session, stop);
    }
  }

  void work(const std::stop_token& stop) {
    std::unique_lock guard(mutex);
    while (!stop.stop_requested()) {
      try {
        look(stop);
      } catch (const std::exception&) {
        options.log("recovery.on_ready: no memory or no thread; the next look is in some seconds");
      }
      changed.wait_for(guard, stop, options.look_every, [] { return false; });
    }
  }
};

ReadyCommand::ReadyCommand(StoreThread& store, Options options)
    : state_(std::make_unique<State>(store, std::move(options))) {
  state_->thread =
      std::jthread([state = state_.get()](const std::stop_token& stop) { state->work(stop); });
}

ReadyCommand::~ReadyCommand() = default;

}  // namespace watchdog::monitor
