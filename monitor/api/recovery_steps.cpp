// An act is claimed before it is done, as at hooks: see recovery.cpp. A crash between the two loses
// the act; it never happens twice. Which processes a call has is decided by facts/call_process.
// The judge has said that nothing moves. Before the processes of a call are ended, two looks here
// must show the same processes, and that they did no work in between.
#include "api/recovery_steps.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "api/recovery_trials.h"
#include "api/session_facts.h"
#include "core/command_end.h"
#include "core/recovery_act.h"
#include "core/rounds.h"
#include "core/scratch_folder.h"
#include "core/session_label.h"
#include "core/time_limit.h"
#include "facts/agent_tools.h"
#include "facts/call_process.h"
#include "files/open_file.h"
#include "judge/alert_rule.h"
#include "privacy/content.h"
#include "process/family_end.h"
#include "text/figures.h"
#include "text/json_writer.h"
#include "watchdog/subprocess.h"

namespace watchdog::monitor {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

/// The processes of a session, as one look showed them.
struct Look {
  std::optional<ProcessTree> tree{};    ///< Nothing: the agent's process is not known, or gone.
  std::optional<CallProcesses> call{};  ///< Of the only open call, if that is a command.
  std::optional<OpenCall> open{};       ///< That call.
  bool is_known = false;                ///< The monitor found the agent's process itself.
  SteadyTime at = std::chrono::steady_clock::now();
};

CallProcesses all_of(const ProcessTree& tree) {
  CallProcesses all{tree.root};
  all.insert(all.end(), tree.children.begin(), tree.children.end());
  return all;
}

/// The only open call, if it is a command that nobody is asked about.
const OpenCall* command_of(const History& history) {
  const auto& calls = *history.open_calls;
  if (calls.size() != 1) return nullptr;
  const auto& call = calls.front();
  const bool is_command = purpose_of_tool(call.name.str()) == ToolPurpose::command;
  return is_command && !call.notes->command.empty() ? &call : nullptr;
}

bool has_hooks(const History& history) {
  return std::any_of(history.sources.begin(), history.sources.end(),
                     [](const SourceNote& note) { return note.origin == ReportOrigin::hooks; });
}

/// The steps that another event of a hook can carry out.
void add_hooks(RecoveryFacts& facts, const Watched& watched) {
  const auto agent = named<HookAgent>(watched.description->agent);
  const bool hears = has_hooks(watched.judged.history);
  facts.nudge = {.ever = hears && agent && takes(*agent, RecoveryStep::nudge)};
  facts.refuse = {.ever = hears && agent && takes(*agent, RecoveryStep::refuse)};
  facts.cancel = {.ever = hears};
}

std::string counted_processes(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " process" : " processes");
}

/// Below a folder of this user alone.
Result<void> write_file(const std::filesystem::path& path, std::string_view bytes) {
  const auto folder = directory_of(path);
  const auto file = folder ? open_at(folder, path.filename().string(),
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600)
                           : OpenFile();
  const int failed = file ? file.write(bytes) : errno;
  return failed == 0 ? Result<void>{} : file_error(path.string(), failed);
}

std::string fact_for(RecoveryStep step, const Watched& watched, const Look& look, Instant now) {
  const auto& judged = watched.judged;
  if (step == RecoveryStep::end_call && look.open) {
    const auto& call = *look.open;
    return redact("the command `" + std::string(call.notes->command) + "` of " + call.name.str() +
                  " has run for " + span_of(now - call.since) + ", and its " +
                  counted_processes(look.call->size()) + " do no work");
  }
  return redact(public_reason_of(judged.health, judged.history, *judged.policy, now).sentence);
}

}  // namespace

struct RecoverySteps::State {
  State(StoreThread& where, Options chosen)
      : store(where), options(std::move(chosen)), trials(where, options.recovery, options.log) {}

  /// The newest act for a session.
  struct Pause {
    SteadyTime since{};
    Millis time{};
  };

  StoreThread& store;
  const Options options;
  RecoveryTrials trials;
  std::map<std::string, Look> looks;    ///< Of sessions with a verdict.
  std::map<std::string, Pause> pauses;  ///< Likewise.
  std::jthread thread;                  ///< The last member: it uses the others until it ends.

  /// Waits for the store. Returns what the store took; 0: it knows the event, or has no room.
  Result<Receipt> say(const std::string& session, Report report) {
    const auto done = std::make_shared<std::promise<Result<Receipt>>>();
    store.append({.session = session,
                  .creation = Creation::refuse,
                  .reports = {std::move(report)},
                  .by = ReportOrigin::monitor},
                 [done](Result<Receipt> receipt) { done->set_value(std::move(receipt)); });
    return done->get_future().get();
  }

  void write_down(const AuditEntry& entry) {
    store.write([entry](Store& kept) { return kept.keep(entry); }, [](const Result<void>&) {});
  }

  Look look_at(const Watched& watched) const {
    Look look;
    const auto place = agent_process(watched);
    look.is_known = place.is_here && place.is_found;
    if (!look.is_known) return look;
    look.tree = process_tree(place.process);
    // Its parent has not asked for its end yet.
    if (look.tree && look.tree->root.state == 'Z') look.tree.reset();
    const auto* call = command_of(watched.judged.history);
    if (!look.tree || call == nullptr) return look;
    look.open = *call;
    look.call =
        processes_of_call(*look.tree, std::string(call->notes->command), store.now() - call->since);
    // Such an agent may wait for a slow model. Its own processes do no work meanwhile.
    if (look.call && std::ranges::any_of(*look.call, is_agent())) look.call.reset();
    return look;
  }

  /// True for the agent of a session that has not ended. The function keeps what is known now.
  [[nodiscard]] std::function<bool(const ProcessSample&)> is_agent() const {
    std::set<std::pair<std::int64_t, std::int64_t>> agents;
    (void)store.sessions_where([&](const Case& judged) {
      const auto& history = judged.history;
      if (history.pid > 0 && !is_end(history.lifecycle))
        agents.emplace(history.pid, history.start_ticks);
      return false;
    });
    return [agents = std::move(agents)](const ProcessSample& process) {
      return agents.contains({process.pid, process.start_ticks});
    };
  }

  RecoveryFacts facts_of(const std::string& session, const Watched& watched) const {
    const auto& judged = watched.judged;
    const auto acts = options.recovery->acts(session, judged.health.evidence[0]);
    RecoveryFacts facts{.is_paused = options.recovery->is_paused(),
                        .health = judged.health,
                        .lifecycle = judged.history.lifecycle,
                        .is_cancelled = judged.history.notes->cancel.has_value(),
                        .is_server_unwell = is_server_unwell(judged.history),
                        .agent = watched.description->agent,
                        .labels = labels_of(*watched.description),
                        .repeated_at = newest_repeat(*judged.history.repetition),
                        .acted_at = acts.at,
                        .acts = acts.by_rule,
                        .draw = draw_of(session, acts.verdict),
                        .off = options.recovery->off(),
                        .end_call = {.now = true, .ever = true},
                        .command = {.now = true, .ever = true}};
    add_hooks(facts, watched);
    const auto pause = pauses.find(session);
    facts.is_pause_over =
        pause == pauses.end() ||
        std::chrono::steady_clock::now() - pause->second.since >= pause->second.time;
    return facts;
  }

  /// What the processes allow: a quiet agent must be seen to do nothing, and a dead one to be gone.
  void judge_processes(RecoveryFacts& facts, const Look& before, const Look& now) const {
    const auto time = std::chrono::duration_cast<Millis>(now.at - before.at);
    const bool has_time = time >= options.look_every / 2;
    const bool call_rests =
        has_time && before.call && now.call && have_rested(*before.call, *now.call, time);
    facts.end_call = {.now = call_rests, .ever = now.call.has_value()};
    if (facts.health.kind == HealthKind::slow)
      facts.command.now = has_time && before.tree && now.tree &&
                          have_rested(all_of(*before.tree), all_of(*now.tree), time);
    if (facts.health.kind == HealthKind::dead) facts.command.now = !now.tree;
  }

  void handle(const std::string& session, const std::stop_token& stop) {
    const auto watched = store.watched(session);
    if (!watched) return;
    auto facts = facts_of(session, *watched);
    if (!decide(options.recovery->rules(), facts)) return;
    auto now = look_at(*watched);
    const auto before = looks.find(session);
    judge_processes(facts, before == looks.end() ? now : before->second, now);
    auto decision = decide(options.recovery->rules(), facts);
    looks.insert_or_assign(session, now);
    if (!decision) return;
    const auto done = facts.acts.find(decision.rule);
    auto act =
        planned(std::move(decision), facts.health, done == facts.acts.end() ? 0 : done->second);
    act.fact = fact_for(act.decision.step, *watched, now, store.now());
    const auto claim = say(session, claim_of(act));
    if (!claim || claim->late > 0) return;
    options.recovery->note(session, act.verdict, act.decision.rule, act.number, claim->last);
    pauses[session] = {.since = std::chrono::steady_clock::now(), .time = pause_after(act.number)};
    // It was done before a restart, or another monitor was quicker.
    if (claim->accepted == 0) return;
    options.recovery->count(act.decision.rule);
    const auto came_of_it =
        act.does_something() ? carry_out(session, act, now, stop) : std::string();
    write_down(entry_of(act, session, came_of_it));
    if (!came_of_it.empty())
      options.log("session " + session + ": rule " + act.decision.rule + ": " + came_of_it);
  }

  std::string carry_out(const std::string& session, const PlannedAct& act, const Look& look,
                        const std::stop_token& stop) {
    auto came_of_it = act.decision.step == RecoveryStep::end_call
                          ? end_call(look, stop)
                          : run_command(session, act, look, stop);
    Report said;
    said.kind = ReportKind::message;
    said.name = "hook";
    said.content = "rule " + act.decision.rule + ": " + came_of_it;
    said.event_id = act.id() + ":end";
    (void)say(session, std::move(said));
    return came_of_it;
  }

  std::string end_call(const Look& look, const std::stop_token& stop) const {
    const auto why_not = [this](const ProcessSample& process) {
      return is_agent()(process) ? std::string("it is the agent of a session") : std::string();
    };
    const auto ended = end_family(look.call->front(), options.grace, why_not, stop);
    if (!ended) return ended.error().message;
    return counted_processes(*ended) + " ended";
  }

  std::string run_command(const std::string& session, const PlannedAct& act, const Look& look,
                          const std::stop_token& stop) {
    const auto folder = ScratchFolder::make("recovery");
    if (!folder) return "did not start: " + folder.error().message;
    const auto bundle = keep_bundle(session, folder->path(), stop);
    const auto found = options.recovery->rules().find(act.decision.rule);
    const TimeLimit limit(options.at_most, stop);
    const auto end =
        run_process({.argv = found->second.command,
                     .cwd = "/",
                     .env = {{"WATCHDOG_SESSION", session}, {"WATCHDOG_RULE", act.decision.rule}},
                     .input = facts_json(session, act, look, bundle),
                     .survivors = Survivors::leave,
                     .head_bytes = 0,
                     .tail_bytes = 4'096},
                    {.stop = limit.token()});
    return "its command " + command_end(end, options.at_most);
  }

  /// Writes the bundle into the folder, and returns its path. Empty: it could not be made, and the
  /// log says why.
  std::filesystem::path keep_bundle(const std::string& session, const std::filesystem::path& folder,
                                    const std::stop_token& stop) {
    struct Collected {
      BundleFacts facts;
      AgentPlace place;
      std::string file_name;
    };
    const auto done = std::make_shared<std::promise<Result<Collected>>>();
    store.read(
        [&, done](StoreReader& reader) {
          const auto row = reader.session(session);
          if (!row) return done->set_value(row.error());
          const auto watched = look_up(store, reader, *row);
          if (!watched) return done->set_value(watched.error());
          auto facts = stored_facts(store, reader, *row, *watched);
          if (!facts) return done->set_value(facts.error());
          done->set_value(
              Collected{.facts = std::move(*facts),
                        .place = agent_place(*row, *watched),
                        .file_name = bundle_file_name(watched->description->directory, row->id)});
        },
        [done](Error why) { done->set_value(std::move(why)); });
    auto collected = done->get_future().get();
    const auto failed = [&](const std::string& why) {
      options.log("session " + session + ": no bundle for a rule's command: " + why);
      return std::filesystem::path();
    };
    if (!collected) return failed(collected.error().message);
    add_present_facts(collected->facts, collected->place, options.asks_git, stop);
    add_looks(collected->facts, *options.looks);
    auto path = folder / collected->file_name;
    if (const auto written = write_file(path, bundle_archive(collected->facts)); !written)
      return failed(written.error().message);
    return path;
  }

  std::string facts_json(const std::string& session, const PlannedAct& act, const Look& look,
                         const std::filesystem::path& bundle) const {
    const auto watched = store.watched(session);
    JsonWriter out;
    out.open_object().field("rule", act.decision.rule).field("sessionId", session);
    out.field("agent", watched ? redact(watched->description->agent) : std::string());
    out.field("folder", watched ? redact(watched->description->directory) : std::string());
    out.field("proof", act.proof).field("reason", act.fact);
    out.field("attempt", act.number).key("agentRuns");
    look.is_known ? out.value(look.tree.has_value()) : out.value(nullptr);
    out.key("bundle");
    bundle.empty() ? out.value(nullptr) : out.value(bundle.string());
    return out.close_object().finish() + "\n";
  }

  void look(const std::stop_token& stop) {
    trials.look();
    const auto sessions = store.sessions_where(has_verdict);
    const auto is_over = [&](const auto& one) {
      return std::ranges::find(sessions, one.first) == sessions.end();
    };
    std::erase_if(looks, is_over);
    std::erase_if(pauses, is_over);
    for (const auto& session : sessions) {
      if (stop.stop_requested()) return;
      handle(session, stop);
    }
  }

  void work(const std::stop_token& stop) {
    look_in_rounds(
        stop, options.look_every, [&] { look(stop); },
        [&] { options.log("recovery: no memory or no thread; the next look is in some seconds"); });
  }
};

RecoverySteps::RecoverySteps(StoreThread& store, Options options)
    : state_(std::make_unique<State>(store, std::move(options))) {
  state_->trials.look();
  state_->thread =
      std::jthread([state = state_.get()](const std::stop_token& stop) { state->work(stop); });
}

RecoverySteps::~RecoverySteps() = default;

}  // namespace watchdog::monitor
