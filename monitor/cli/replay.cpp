// A trace goes the normal way into a store, on a clock that the trace moves. Reports of one moment
// are one batch; the observer looks after each batch. Each line gets an event id, and repeated ids
// are left out, so the session's n-th event is the n-th line fed. That is how a transition leads
// back to its line and its count of calls. A session that is in the database already is refused,
// because it would break that count.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <unordered_set>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "facts/ids.h"
#include "ingest/trace.h"
#include "observer/observer.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "text/json_writer.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

struct ReplayOptions {
  std::vector<std::filesystem::path> traces;
  std::filesystem::path database;  ///< Empty: a private one in memory.
  std::string pace = "max";        ///< Or "recorded".
  int first_calls = 0;             ///< 0: all.
  bool json = false;
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

/// The place in a trace where something was first seen.
struct Sighting {
  std::int64_t seq = 0;
  int call = 0;
  Pattern pattern = Pattern::none;
};

struct Summary {
  std::string trace;
  std::string session;
  int events = 0;
  int calls = 0;
  std::string outcome;  ///< Empty: the trace has no end.
  HealthKind health = HealthKind::unknown;
  std::optional<Sighting> suspect;
  std::optional<Sighting> stuck;
};

void write(JsonWriter& out, const char* name, const std::optional<Sighting>& sighting) {
  out.key(name);
  if (!sighting) {
    out.value(nullptr);
    return;
  }
  out.open_object().field("seq", sighting->seq).field("call", sighting->call);
  out.field("pattern", name_of(sighting->pattern)).close_object();
}

std::string json_of(const Summary& summary) {
  JsonWriter out;
  out.open_object().field("trace", summary.trace).field("session", summary.session);
  out.field("events", summary.events).field("calls", summary.calls).key("outcome");
  summary.outcome.empty() ? out.value(nullptr) : out.value(summary.outcome);
  out.field("health", name_of(summary.health));
  write(out, "suspect", summary.suspect);
  write(out, "stuck", summary.stuck);
  out.close_object();
  return out.take();
}

std::string shown(const std::optional<Sighting>& sighting) {
  return sighting ? std::string(name_of(sighting->pattern)) + " after call " +
                        std::to_string(sighting->call)
                  : "–";
}

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

  Result<Summary> play(const std::filesystem::path& file) {
    auto trace = Trace::open(file);
    if (!trace) return trace.error();
    Summary summary{.trace = file.string(), .session = trace->session()};
    if (store_.reader().session(summary.session)) {
      return Error{ErrorCode::conflict,
                   file.string() + ": session " + summary.session + " is in the database already"};
    }
    fed_.clear();
    seen_ids_.clear();
    batch_ = Batch{.session = summary.session};
    clock_.begin_trace();
    if (auto fed = feed(*trace, summary); !fed) return fed.error();
    if (auto judged = conclude(summary); !judged) return judged.error();
    return summary;
  }

 private:
  /// A line's number, and the calls that had begun by then.
  struct Fed {
    std::int64_t seq;
    int calls;
  };

  Result<void> feed(Trace& trace, Summary& summary) {
    while (true) {
      auto line = trace.next();
      if (!line) return line.error();
      if (!*line) return flush();
      Report& report = (*line)->report;
      if (report.kind == ReportKind::tool_call) {
        if (options_.first_calls > 0 && summary.calls == options_.first_calls) return flush();
        ++summary.calls;
      }
      if (report.kind == ReportKind::end) {
        if (options_.first_calls > 0) return flush();
        const auto& outcome = std::get<Outcome>(report.detail);
        summary.outcome = outcome.stated ? std::string(name_of(outcome.kind)) : "unknown";
      }
      if (report.ts_ms) {
        const auto batched = batch_.reports.empty() ? report.ts_ms : batch_.reports.back().ts_ms;
        if (batched != report.ts_ms) {
          if (auto flushed = flush(); !flushed) return flushed;
        }
        const auto step = clock_.move_to(*report.ts_ms);
        if (options_.pace == "recorded") std::this_thread::sleep_for(step);
      }
      // Each line is to be found again as an event of its own.
      if (report.event_id.empty()) report.event_id = "line-" + std::to_string((*line)->line);
      if (!seen_ids_.insert(report.event_id).second) continue;
      ++summary.events;
      fed_.push_back({(*line)->seq, summary.calls});
      batch_.reports.push_back(std::move(report));
      if (batch_.reports.size() < batch_reports) continue;
      if (auto flushed = flush(); !flushed) return flushed;
    }
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

  Result<void> conclude(Summary& summary) {
    const auto row = store_.reader().session(summary.session);
    if (!row) return {};  // an empty trace
    const auto judged = store_.reader().fold(*row);
    if (!judged) return judged.error();
    summary.health = judged->health.kind;
    const auto transitions = store_.reader().transitions(row->key, 0, 100'000);
    if (!transitions) return transitions.error();
    for (const auto& item : *transitions) {
      const auto& health = item.transition.health;
      const bool stuck = health.kind == HealthKind::stuck || health.kind == HealthKind::looping;
      auto& first = stuck ? summary.stuck : summary.suspect;
      if (first || (!stuck && health.kind != HealthKind::suspect)) continue;
      const auto at = place_of(row->key, item.transition.seq);
      if (!at) return at.error();
      first =
          Sighting{.seq = fed_.at(*at).seq, .call = fed_.at(*at).calls, .pattern = health.pattern};
    }
    return {};
  }

  /// Which of the lines fed became the event.
  Result<std::size_t> place_of(SessionKey session, Seq seq) {
    std::size_t place = 0;
    for (std::optional<Seq> after = 0; after;) {
      const auto page = store_.reader().page(session, *after, 1'000);
      if (!page) return page.error();
      for (const auto& event : page->events) {
        if (event.seq == seq) return place;
        ++place;
      }
      after = page->next;
    }
    return Error{ErrorCode::corrupt, "event " + std::to_string(seq) + " is missing"};
  }

  const ReplayOptions& options_;
  TraceClock& clock_;
  Store store_;
  std::unique_ptr<Observer> observer_;
  Batch batch_;
  std::vector<Fed> fed_;
  std::unordered_set<std::string> seen_ids_;
};

}  // namespace

static int replay(const ReplayOptions& options) {
  TraceClock clock;
  auto store = Store::open(
      {.database = options.database.empty() ? ":memory:" : options.database, .clock = &clock});
  if (!store) return complain(store.error());
  Player player(options, std::move(*store), clock);
  if (auto begun = player.begin(); !begun) return complain(begun.error());

  Table table({"CALLS", "OUTCOME", "HEALTH", "SUSPECT", "STUCK", "TRACE"});
  const TraceCount count(options.traces.size());
  std::size_t done = 0;
  int code = exit_done;
  for (const auto& file : options.traces) {
    const auto summary = player.play(file);
    ++done;
    count.show(done);
    if (!summary) {
      count.end_line();
      code = std::max(code, complain(summary.error()) == exit_not_found
                                ? static_cast<int>(exit_not_found)
                                : static_cast<int>(exit_failed));
      continue;
    }
    if (options.json) {
      print_json(json_of(*summary));
    } else {
      table.add({std::to_string(summary->calls), summary->outcome.empty() ? "–" : summary->outcome,
                 coloured(std::string(name_of(summary->health))), shown(summary->suspect),
                 shown(summary->stuck), terminal_line(summary->trace)});
    }
  }
  count.end_line();
  if (!options.json && !table.is_empty()) print(table.text(terminal_width()));
  return code;
}

void add_replay(CommandLine& line) {
  const auto sources = std::make_shared<Sources>();
  const auto options = std::make_shared<ReplayOptions>();
  auto* command = line.app.add_subcommand("replay", "Re-run the detector on recorded traces");
  command->add_option("traces", options->traces, "Trace files with one JSON object per line")
      ->required();
  command->add_option("--db", options->database,
                      "Database file to replay into (default: in memory)");
  command->add_option("--pace", options->pace, "Speed: as fast as possible, or as recorded")
      ->capture_default_str()
      ->check(one_of("pace", {"max", "recorded"}));
  command->add_option("--first-calls", options->first_calls, "Stop after this many tool calls")
      ->check(integer(1, INT32_MAX));
  command->add_flag("--json", options->json, "Print one JSON object per line");
  add_config(*command, *sources);
  command->callback([&line, options, sources] {
    line.code = with_settings(*sources, [&] { return replay(*options); });
  });
}

}  // namespace watchdog::monitor
