// A recording goes the normal way into a store, on a clock that the recording moves. Reports of one
// moment and session are one batch; the observer looks after each batch. Each report gets an event
// id, and repeated ids are left out, so the session's n-th event is the n-th report fed. That is
// how a transition leads back to its line and its count of calls. A session that is in the database
// already is refused, because it would break that count. Recordings of other programs keep their
// times. Such a session without an end is ended when its recording is over and its health is known,
// so that a monitor does not call it silent later.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/replay_page.h"
#include "cli/replay_summary.h"
#include "cli/usage.h"
#include "core/scratch_folder.h"
#include "facts/ids.h"
#include "facts/role.h"
#include "ingest/recording.h"
#include "ingest/trace.h"
#include "observer/observer.h"
#include "store/event_reader.h"
#include "store/transition_reader.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

struct ReplayOptions {
  std::vector<std::filesystem::path> traces;
  std::filesystem::path database;  ///< Empty: a private one in memory.
  std::string pace = "max";        ///< Or "recorded".
  int first_calls = 0;             ///< 0: all.
  std::string format;              ///< Empty: the content decides.
  ReplayLimits limits;
  PolicyPatch policy;  ///< Of the settings.
  bool json = false;
  bool opens = false;  ///< Show the sessions as pages afterwards.
};

/// The limit of reports of one moment that are appended together.
constexpr std::size_t batch_reports = 500;

/// The traces' time: it stands still where they have none.
class TraceClock final : public Clock {
 public:
  Millis since_boot() const noexcept override { return now_; }
  WallTime wall() const noexcept override { return WallTime{begin_ + now_}; }
  std::string boot_id() const override { return boot_; }

  /// A trace begins: its first time continues where the last trace ended.
  void begin_trace() { last_.reset(); }
  /// Moves to a time of the trace; returns how far that was.
  Millis move_to(std::int64_t ts_ms) {
    const auto step = Millis{last_ ? std::max<std::int64_t>(ts_ms - *last_, 0) : 0};
    last_ = last_ ? std::max(*last_, ts_ms) : ts_ms;
    now_ += step;
    return step;
  }

 private:
  Millis now_{0};
  Millis begin_ = system_clock().wall().time_since_epoch();
  std::optional<std::int64_t> last_;
  std::string boot_ = "replay-" + new_ulid(system_clock().wall());
};

/// Feeds traces through the store and has them judged.
class Player {
 public:
  Player(const ReplayOptions& options, Store store, TraceClock& clock)
      : options_(options), clock_(clock), store_(std::move(store)) {}

  Result<void> begin() {
    // Time in a trace may jump; that is not an absence of the observer.
    auto observer = Observer::start(store_, {.late_max = Millis::max()});
    if (!observer) return observer.error();
    observer_ = std::move(*observer);
    return {};
  }

  /// Returns a summary for each session. `session`: the id of one without an id. `trouble`: the
  /// error after which the rest was not read.
  Result<std::vector<ReplaySummary>> play(const std::filesystem::path& file,
                                          const std::string& session,
                                          std::optional<Error>& trouble) {
    auto recording = open_recording(file, named<RecordingFormat>(options_.format), session);
    if (!recording) return recording.error();
    tracks_.clear();
    order_.clear();
    batch_ = {};
    clock_.begin_trace();
    format_ = recording->format;
    trace_ = file.string();
    if (is_own()) {
      if (store_.reader().session(recording->session)) return known_already(recording->session);
      (void)track(recording->session);
    }
    const auto fed = feed(*recording->reader);
    const auto& unread = recording->reader->unread();
    if (!fed) {
      if (order_.empty() || is_own()) return fed.error();
      trouble = fed.error();
      if (auto flushed = flush(); !flushed) return flushed.error();
    }
    if (order_.empty() && !is_own()) {
      return Error{ErrorCode::malformed, trace_ + ": no session was found in it; it was read as " +
                                             std::string(name_of(format_))};
    }
    if (recording->is_empty)
      return Error{ErrorCode::malformed, trace_ + ": no session was found in it; it is empty"};
    if (unread.count > 0 && !trouble) trouble = about(unread);
    std::vector<ReplaySummary> summaries;
    for (auto* one : order_) {
      if (auto judged = conclude(*one); !judged) return judged.error();
      one->summary.unread = unread.count;
      one->summary.is_partial = trouble.has_value();
      summaries.push_back(std::move(one->summary));
    }
    return summaries;
  }

 private:
  /// A report's number, and the calls that had begun by then.
  struct Fed {
    std::int64_t seq;
    int calls;
    std::optional<std::int64_t> ts_ms;
  };

  /// A session of the present recording.
  struct Track {
    ReplaySummary summary;
    std::vector<Fed> fed;
    std::unordered_set<std::string> seen_ids;
    bool in_answer = false;  ///< A step is open: its calls have no result yet.
    bool has_end = false;
    bool is_over = false;                  ///< Nothing more of it counts.
    std::optional<int> steps_call;         ///< The calls that had begun at the limit of steps,
    std::optional<std::int64_t> steps_ms;  ///< and its time.
  };

  [[nodiscard]] bool is_own() const { return format_ == RecordingFormat::watchdog; }

  [[nodiscard]] Error known_already(const std::string& session) const {
    return {ErrorCode::conflict, trace_ + ": session " + session + " is in the database already"};
  }

  /// The first lines that could not be read, and how many more there are.
  static Error about(const UnreadLines& unread) {
    constexpr std::size_t named_max = 3;
    Error error{ErrorCode::malformed, ""};
    const auto named = std::min(unread.first.size(), named_max);
    for (std::size_t at = 0; at < named; ++at)
      error.message += (at == 0 ? "" : "; ") + unread.first[at].message;
    const auto more = unread.count - static_cast<std::int64_t>(named);
    if (more > 0) error.message += "; and " + std::to_string(more) + " more lines";
    error.message += ". The rest of the file was read";
    return error;
  }

  Track& track(const std::string& session) {
    const auto [place, is_new] = tracks_.try_emplace(session);
    auto& track = place->second;
    if (!is_new) return track;
    track.summary.trace = trace_;
    track.summary.session = session;
    track.summary.format = name_of(format_);
    order_.push_back(&track);
    return track;
  }

  Result<void> feed(RecordingReader& reader) {
    while (true) {
      auto step = reader.next();
      if (!step) return step.error();
      if (!*step) return flush();
      const auto& session = *(*step)->session;
      const bool is_known = tracks_.contains(session.id);
      if (!is_known && (*step)->only_known) continue;
      auto& one = track(session.id);
      if (one.fed.empty() && store_.reader().session(session.id)) {
        order_.pop_back();
        return known_already(session.id);
      }
      if (one.is_over) continue;
      auto& report = (*step)->report;
      // Each report is to be found again as an event of its own.
      if (report.event_id.empty())
        report.event_id = "line-" + std::to_string((*step)->line) +
                          (is_own() ? std::string() : "-" + std::to_string(one.fed.size()));
      if (!note(one, report)) {
        if (is_own()) return flush();  // the file has no other session
        continue;
      }
      if (!is_own()) keep_time(report);
      if (auto made = make_room(session, report.ts_ms); !made) return made;
      if (!one.seen_ids.insert(report.event_id).second) continue;
      ++one.summary.events;
      one.fed.push_back({(*step)->place, one.summary.calls, report.ts_ms});
      if (report.ts_ms) {
        auto& begins = one.summary.begins_ms;
        begins = begins ? std::min(*begins, *report.ts_ms) : *report.ts_ms;
        one.summary.ends_ms = std::max(one.summary.ends_ms, *report.ts_ms);
      }
      batch_.reports.push_back(std::move(report));
      if (batch_.reports.size() < batch_reports) continue;
      if (auto flushed = flush(); !flushed) return flushed;
    }
  }

  /// Makes the recorded time the time of the event.
  static void keep_time(Report& report) {
    if (!report.ts_ms && report.at) report.ts_ms = report.at->time_since_epoch().count();
    report.at.reset();
    if (report.ts_ms) report.at = WallTime{Millis{*report.ts_ms}};
  }

  /// Counts calls and steps. A step is one answer of the model with its calls: a message of the
  /// agent or a call begins it, and a result ends it. False: nothing more of the session counts.
  bool note(Track& one, const Report& report) {
    auto& summary = one.summary;
    const bool is_call = report.kind == ReportKind::tool_call;
    const bool is_answer =
        report.kind == ReportKind::message && speaker_of(report.name) == Speaker::agent;
    if (is_call && options_.first_calls > 0 && summary.calls == options_.first_calls)
      return !(one.is_over = true);
    if (report.kind == ReportKind::end) {
      if (options_.first_calls > 0) return !(one.is_over = true);
      const auto& outcome = std::get<Outcome>(report.detail);
      summary.outcome = outcome.stated ? std::string(name_of(outcome.kind)) : "unknown";
      one.has_end = true;
    }
    if (is_answer || (is_call && !one.in_answer)) {
      if (options_.limits.steps > 0 && summary.steps == options_.limits.steps && !one.steps_call) {
        one.steps_call = summary.calls;
        one.steps_ms = report.ts_ms;
      }
      ++summary.steps;
    }
    if (is_call || is_answer) one.in_answer = true;
    if (report.kind == ReportKind::tool_result || is_failure(report.kind) ||
        report.kind == ReportKind::user_input)
      one.in_answer = false;
    if (is_call) ++summary.calls;
    return true;
  }

  /// Stores what is of another session or time, and moves the clock.
  Result<void> make_room(const RecordedSession& session, std::optional<std::int64_t> ts_ms) {
    const auto batched = batch_.reports.empty() || !ts_ms ? ts_ms : batch_.reports.back().ts_ms;
    if (batch_.session != session.id || batched != ts_ms) {
      if (auto flushed = flush(); !flushed) return flushed;
    }
    if (batch_.session != session.id)
      batch_ = Batch{.session = session.id, .spec = session.spec, .by = session.by};
    if (!is_own()) batch_.creation = Creation::attach;
    if (!ts_ms) return {};
    const auto step = clock_.move_to(*ts_ms);
    // A person who watches the page asked for the pace of the recording; no decision waits for it.
    if (options_.pace == "recorded") std::this_thread::sleep_for(step);
    return {};
  }

  Result<void> flush() {
    if (batch_.reports.empty()) return {};
    auto receipts = store_.append({&batch_, 1});
    batch_.reports.clear();
    if (!receipts) return receipts.error();
    if (!receipts->front()) return receipts->front().error();
    auto looked = observer_->look();
    return looked ? Result<void>{} : looked.error();
  }

  Result<void> conclude(Track& one) {
    auto& summary = one.summary;
    const auto row = store_.reader().session(summary.session);
    if (!row) return {};  // an empty trace
    const auto judged = store_.reader().fold(*row);
    if (!judged) return judged.error();
    summary.health = judged->health.kind;
    const auto transitions = TransitionReader(store_.reader()).of(row->key, 0, 100'000);
    if (!transitions) return transitions.error();
    auto places = places_of(row->key);
    if (!places) return places.error();
    for (const auto& item : *transitions) {
      const auto& health = item.transition.health;
      const auto at = places->find(item.transition.seq);
      if (at == places->end() || at->second >= one.fed.size()) {
        return Error{ErrorCode::corrupt,
                     "event " + std::to_string(item.transition.seq) + " is missing"};
      }
      const auto& fed = one.fed[at->second];
      std::optional<Millis> after;
      if (fed.ts_ms && summary.begins_ms)
        after = Millis{*fed.ts_ms - *summary.begins_ms} + item.transition.quiet;
      summary.conclusions.push_back({.seq = fed.seq,
                                     .call = fed.calls,
                                     .after = after,
                                     .health = health.kind,
                                     .pattern = health.pattern,
                                     .reason = item.transition.reason});
      const bool stuck = health.kind == HealthKind::stuck || health.kind == HealthKind::looping;
      auto& first = stuck ? summary.stuck : summary.suspect;
      if (first || (!stuck && health.kind != HealthKind::suspect)) continue;
      first = ReplayFinding{.seq = fed.seq, .call = fed.calls, .pattern = health.pattern};
    }
    weigh_limits(one);
    return one.has_end || is_own() ? Result<void>{} : close(one);
  }

  void weigh_limits(Track& one) const {
    auto& summary = one.summary;
    if (one.steps_call) {
      summary.by_steps = ReplayLimitEffect{.call = *one.steps_call};
      if (one.steps_ms) summary.by_steps->before = Millis{summary.ends_ms - *one.steps_ms};
    }
    if (options_.limits.seconds == 0 || !summary.begins_ms) return;
    const auto ends = *summary.begins_ms + std::int64_t{options_.limits.seconds} * 1'000;
    if (summary.ends_ms <= ends) return;
    ReplayLimitEffect effect{.before = Millis{summary.ends_ms - ends}};
    for (const auto& fed : one.fed)
      if (fed.ts_ms && *fed.ts_ms <= ends) effect.call = fed.calls;
    summary.by_seconds = effect;
  }

  /// Ends the session in the store. Its latest reports decide how it ended.
  Result<void> close(Track& one) {
    Report end;
    end.kind = ReportKind::end;
    end.detail = Outcome{.reason = "end_of_recording", .stated = false, .by_answer = true};
    end.event_id = "end-of-recording";
    if (one.summary.begins_ms) end.at = WallTime{Millis{one.summary.ends_ms}};
    batch_ = Batch{.session = one.summary.session, .by = ReportOrigin::monitor};
    batch_.reports.push_back(std::move(end));
    auto closed = flush();
    batch_ = {};
    if (!closed || options_.first_calls > 0) return closed;
    if (const auto row = store_.reader().session(one.summary.session))
      one.summary.outcome = name_of(row->lifecycle);
    return {};
  }

  /// For each event of the session the place of the newest recorded one up to it. The monitor adds
  /// events of its own, for example when a child ends.
  Result<std::unordered_map<Seq, std::size_t>> places_of(SessionKey session) {
    std::unordered_map<Seq, std::size_t> places;
    std::size_t recorded = 0;
    for (std::optional<Seq> after = 0; after;) {
      const auto page = EventReader(store_.reader()).page(session, *after, 1'000);
      if (!page) return page.error();
      for (const auto& event : page->events) {
        if (event.origin != ReportOrigin::monitor) ++recorded;
        places.emplace(event.seq, recorded == 0 ? 0 : recorded - 1);
      }
      after = page->next;
    }
    return places;
  }

  const ReplayOptions& options_;
  TraceClock& clock_;
  Store store_;
  std::unique_ptr<Observer> observer_;
  Batch batch_;
  RecordingFormat format_ = RecordingFormat::watchdog;
  std::string trace_;
  std::map<std::string, Track> tracks_;
  std::vector<Track*> order_;  ///< The same, in the order of their first reports.
};

}  // namespace

/// Feeds the files and prints the findings. `sessions` gets the ids of those replayed.
static int replay_files(const ReplayOptions& options, std::vector<std::string>& sessions) {
  const auto& limits = options.limits;
  TraceClock clock;
  auto store = Store::open({.database = options.database.empty() ? ":memory:" : options.database,
                            .clock = &clock,
                            .policy = options.policy});
  if (!store) return complain(store.error());
  Player player(options, std::move(*store), clock);
  if (auto begun = player.begin(); !begun) return complain(begun.error());

  Table table({"CALLS", "OUTCOME", "HEALTH", "SUSPECT", "STUCK", "SESSION"});
  std::vector<ReplaySummary> detailed;
  const TraceCount count(options.traces.size());
  const auto names = sessions_in_names(options.traces);
  int code = exit_done;
  for (std::size_t at = 0; at < options.traces.size(); ++at) {
    std::optional<Error> trouble;
    auto summaries = player.play(options.traces[at], names[at], trouble);
    count.show(at + 1);
    if (!summaries) trouble = summaries.error();
    if (trouble) {
      count.end_line();
      code = std::max(code, complain(*trouble) == exit_not_found ? static_cast<int>(exit_not_found)
                                                                 : static_cast<int>(exit_failed));
    }
    if (!summaries) continue;
    for (auto& summary : *summaries) {
      sessions.push_back(summary.session);
      if (options.json) {
        print_json(json_of(summary, limits));
        continue;
      }
      table.add({std::to_string(summary.calls), summary.outcome.empty() ? "–" : summary.outcome,
                 coloured(std::string(name_of(summary.health))), shown(summary.suspect),
                 shown(summary.stuck), terminal_line(summary.session) + note_of(summary)});
      const bool is_detailed = options.traces.size() == 1 || limits.seconds > 0 || limits.steps > 0;
      if (is_detailed) detailed.push_back(std::move(summary));
    }
  }
  count.end_line();
  if (!options.json && !table.is_empty()) print(table.text(terminal_width()));
  for (const auto& summary : detailed) print_details(summary, limits);
  return code;
}

static int replay(ReplayOptions options) {
  std::optional<ScratchFolder> scratch;
  if (options.opens && options.database.empty()) {
    auto folder = ScratchFolder::make("replay");
    if (!folder) return complain(folder.error());
    scratch.emplace(std::move(*folder));
    options.database = scratch->path() / "watchdog.db";
  }
  std::vector<std::string> sessions;
  const int code = replay_files(options, sessions);
  if (!options.opens || sessions.empty()) return code;
  return std::max(code, show_replayed(options.database, sessions, options.policy));
}

void add_replay(CommandLine& line) {
  const auto sources = std::make_shared<Sources>();
  const auto options = std::make_shared<ReplayOptions>();
  auto* command = line.app.add_subcommand("replay", "Re-run the detector on recorded runs");
  command
      ->add_option("traces", options->traces,
                   "Recorded runs: events of this program, OTLP/JSON, transcripts, trajectories or "
                   "exports")
      ->required();
  command->add_option("--format", options->format, "Format of the files (default: by content)")
      ->check(one_of("format", all_names<RecordingFormat>()));
  command
      ->add_option("--limit-seconds", options->limits.seconds,
                   "Say what a limit of this many seconds would have cost")
      ->type_name("COUNT")
      ->check(integer(1, INT32_MAX));
  command
      ->add_option("--limit-steps", options->limits.steps,
                   "Say what a limit of this many answers of the model would have cost")
      ->type_name("COUNT")
      ->check(integer(1, INT32_MAX));
  command->add_option("--db", options->database,
                      "Database file to replay into (default: in memory)");
  command->add_option("--pace", options->pace, "Speed: as fast as possible, or as recorded")
      ->capture_default_str()
      ->check(one_of("pace", {"max", "recorded"}));
  command->add_option("--first-calls", options->first_calls, "Stop after this many tool calls")
      ->check(integer(1, INT32_MAX));
  command->add_flag("--open", options->opens,
                    "Then show the session as a page, until Ctrl-C; in a browser if there is one");
  command->add_flag("--json", options->json, "Print one JSON object per line");
  add_config(*command, *sources);
  command->callback([&line, options, sources] {
    const auto settings = configured(*sources);
    if (settings) options->policy = settings->policy;
    line.code = settings ? replay(*options) : settings.error();
  });
  command->footer(
      "With --db FILE, `serve --db FILE` shows each replayed run as a session. --open does it at "
      "once: it runs a monitor on a free port of this machine, and on a temporary database "
      "without --db. A recording without a session id gets the file's name.\n"
      "Exit codes: 0 done, 1 a file could not be read whole, 2 usage, 3 refused settings, 5 not "
      "found.");
}

}  // namespace watchdog::monitor
