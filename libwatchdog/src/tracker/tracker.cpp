#include "watchdog/tracker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

#include "store/lock.h"
#include "tracker/beat_row.h"
#include "watchdog/bell.h"
#include "watchdog/content.h"
#include "watchdog/ids.h"
#include "watchdog/progress.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

constexpr std::size_t queue_bytes_max = 8U << 20U;
constexpr std::size_t queue_reports_max = 100'000;
/// Between two tries at a store that refused.
constexpr Millis retry_every{500};
/// What is taken out of the queue for one transaction.
constexpr std::size_t piece_reports = 2'000;

std::size_t weight(const Report& report) {
  return sizeof(Report) + report.content.size() + report.name.size();
}

}  // namespace

struct ProgressTracker::State {
  explicit State(Config chosen)
      : config(std::move(chosen)), wake_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    policy = patched(Policy{}, config.spec.policy);
    local.policy.set(policy);
    local.health_since = config.clock->wall();
    description = description_of(config.spec);
  }
  ~State() {
    if (wake_fd >= 0) close(wake_fd);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const Config config;
  Policy policy;
  std::string description;
  const int generation = fork_generation();
  int wake_fd;
  std::atomic<bool> cancel_asked{false};

  mutable std::mutex mutex;
  std::condition_variable_any settled;  ///< Something became durable, or was refused.
  std::optional<Beats> beats;           ///< Gathered since the last row. Ticks: since boot.
  Instant beats_written{};              ///< When a row was last taken.
  std::deque<Report> queue;
  std::size_t queue_bytes = 0;
  std::int64_t lost = 0;
  std::uint64_t reported = 0;  ///< Rows ever queued, and
  std::uint64_t durable = 0;   ///< how many of them are on disk.
  std::string refusal;         ///< Why the store refuses at the moment.
  Case local;                  ///< Folded from what is reported here.
  Seq local_seq = 0;
  Millis local_offset{};
  bool ended = false;
  bool stopping = false;
  bool finished = false;
  bool registered = false;  ///< The store knows the session.
  Directive directive;

  std::thread thread;

  [[nodiscard]] bool forked() const noexcept { return fork_generation() != generation; }
  [[nodiscard]] Advice advice() const noexcept {
    return cancel_asked.load(std::memory_order_relaxed) ? Advice::cancel : Advice::go_on;
  }
  [[nodiscard]] Instant boot_now() const noexcept { return Instant{config.clock->since_boot()}; }

  void wake() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(wake_fd, &one, sizeof one);
  }

  /// Folds a report into the local case. REQUIRES: mutex held.
  void fold(const Report& report, Instant boot) {
    Event event;
    event.seq = ++local_seq;
    event.session = 1;
    event.tick = std::max(local.history.tick, boot + local_offset);
    event.at = report.at.value_or(WallTime{});
    event.report = report;
    event.late = is_end(local.history.lifecycle) && report.kind != ReportKind::start;
    if (auto* row = std::get_if<Beats>(&event.report.detail)) {
      row->first += local_offset;
      row->last += local_offset;
    }
    std::vector<Transition> ignored;
    local.take(event, ignored);
  }

  /// Says, where it happened, that reports were lost. REQUIRES: mutex held.
  void push_gap() {
    if (lost == 0) return;
    Report gap;
    gap.kind = ReportKind::gap;
    gap.detail = LostReports{std::exchange(lost, 0)};
    queue.push_back(std::move(gap));
    queue_bytes += weight(queue.back());
    ++reported;
  }

  /// Puts a report behind the others. REQUIRES: mutex held.
  void push(Report report, Instant boot) {
    fold(report, boot);
    if (queue_bytes + weight(report) > queue_bytes_max) seal(report, ContentLevel::digest);
    if (queue.size() >= queue_reports_max && report.kind != ReportKind::end) {
      ++lost;
      return;
    }
    push_gap();
    queue_bytes += weight(report);
    queue.push_back(std::move(report));
    ++reported;
  }

  /// Turns the gathered heartbeats into a row. REQUIRES: mutex held.
  void push_beats() {
    if (!beats) return;
    Report report;
    report.kind = ReportKind::heartbeat;
    report.at = config.clock->wall();
    report.detail = std::move(*beats);
    beats.reset();
    beats_written = boot_now();
    push(std::move(report), beats_written);
  }

  Advice say(Report report) {
    if (forked()) return Advice::go_on;
    report.at = config.clock->wall();
    {
      const std::lock_guard guard(mutex);
      push_beats();
      push(std::move(report), boot_now());
    }
    wake();
    return advice();
  }

  Result<void> wait_until_durable(const std::stop_token& stop) {
    std::unique_lock guard(mutex);
    push_beats();
    const auto target = reported;
    wake();
    auto seen = durable;
    while (durable < target || !registered) {
      const bool moved = settled.wait_for(guard, stop, config.refusal_max, [&] {
        return (durable >= target && registered) || durable != seen || finished;
      });
      if (durable >= target && registered) break;
      if (stop.stop_requested()) return Error{ErrorCode::cancelled, "waiting was called off"};
      if (!moved || finished) {
        return Error{
            ErrorCode::unavailable,
            "nothing could be written for " + std::to_string(config.refusal_max.count()) +
                " ms: " + (refusal.empty() ? "another writer does not come to its end" : refusal)};
      }
      seen = durable;
    }
    return {};
  }

  Result<void> end(Outcome outcome) {
    if (forked()) return {};
    {
      const std::lock_guard guard(mutex);
      if (ended) {
        return Error{ErrorCode::conflict, "session " + config.session + " has ended already"};
      }
      ended = true;
      push_beats();
      Report report;
      report.kind = ReportKind::end;
      report.at = config.clock->wall();
      report.detail = std::move(outcome);
      push(std::move(report), boot_now());
    }
    return wait_until_durable({});
  }
};

/// The tracker's own thread: sends sidecar heartbeats, writes what is pending, hears directives.
class ProgressTracker::Writer {
 public:
  explicit Writer(std::shared_ptr<State> state)
      : state_(std::move(state)),
        batch_{.session = state_->config.session,
               .creation = Creation::attach,
               .spec = state_->config.spec} {}

  void run() {
    auto next_sidecar = state_->boot_now();
    while (true) {
      const auto now = state_->boot_now();
      bool stop = false;
      {
        const std::lock_guard guard(state_->mutex);
        stop = state_->stopping;
        if (state_->config.sidecar && now >= next_sidecar && !state_->ended) {
          push_sidecar(now);
          next_sidecar = now + state_->policy.heartbeat_interval;
        }
        const bool due = state_->beats && now - state_->beats_written >= half_interval();
        if (due || stop) state_->push_beats();
      }
      const bool written = write_pending();
      if (stop && (written || ++refused_while_stopping_ * retry_every > state_->config.refusal_max))
        break;
      wait(written && !stop ? std::min(next_sidecar, now + half_interval()) : now + retry_every);
    }
    const std::lock_guard guard(state_->mutex);
    state_->finished = true;
    state_->settled.notify_all();
  }

 private:
  [[nodiscard]] Millis half_interval() const {
    return std::max(Millis{1'000}, state_->policy.heartbeat_interval / 2);
  }

  void push_sidecar(Instant now) {
    Report report;
    report.kind = ReportKind::heartbeat;
    report.at = state_->config.clock->wall();
    report.detail = Beats{.first = now, .last = now, .phase = {}, .source = Source::sidecar};
    state_->push(std::move(report), now);
  }

  void say(const std::string& sentence) const {
    if (state_->config.log) {
      state_->config.log(sentence);
    } else {
      std::fprintf(stderr, "watchdog: %s\n", sentence.c_str());
    }
  }

  void refused(const Error& error) {
    {
      const std::lock_guard guard(state_->mutex);
      state_->refusal = error.message;
    }
    if (!trouble_said_) {
      say("progress of session " + state_->config.session + " cannot be kept: " + error.message +
          ". The agent goes on; reports wait in memory");
    }
    trouble_said_ = true;
  }

  bool open() {
    if (store_ && store_->vanished()) {
      store_.reset();
      bell_ = Bell();
      registered_ = false;
      // The new file knows nothing of the session: a start comes first again.
      if (!batch_.reports.empty() && batch_.reports.front().kind != ReportKind::start) {
        batch_.reports.insert(batch_.reports.begin(), start_report());
      }
    }
    if (!store_) {
      auto opened =
          Store::open({.database = state_->config.database, .clock = state_->config.clock});
      if (!opened) {
        refused(opened.error());
        return false;
      }
      store_.emplace(std::move(*opened));
    }
    return true;
  }

  /// Takes a piece of the queue, behind what could not be written before. It counts as durable when
  /// `wrote` says so.
  void take_piece() {
    if (!batch_.reports.empty()) return;
    if (!registered_) batch_.reports.push_back(start_report());
    const std::lock_guard guard(state_->mutex);
    if (state_->queue.empty()) state_->push_gap();
    for (taken_ = 0; !state_->queue.empty() && taken_ < piece_reports; ++taken_) {
      state_->queue_bytes -= weight(state_->queue.front());
      batch_.reports.push_back(std::move(state_->queue.front()));
      state_->queue.pop_front();
    }
  }

  Report start_report() const {
    Report report;
    report.kind = ReportKind::start;
    report.at = state_->config.clock->wall();
    report.detail = this_process();
    return report;
  }

  /// True if nothing is left to write.
  bool write_pending() {
    while (open()) {
      take_piece();
      if (batch_.reports.empty()) return true;
      auto receipts = store_->append({&batch_, 1});
      if (!receipts || !receipts->front()) {
        const Error error = receipts ? receipts->front().error() : receipts.error();
        refused(error);
        if (error.code == ErrorCode::invalid) drop_piece();
        return false;
      }
      // Written to a file that was deleted meanwhile is not written.
      if (store_->vanished()) continue;
      wrote(*receipts->front());
    }
    return false;
  }

  /// Nothing will ever make the store accept this: it must not block what follows.
  void drop_piece() {
    batch_.reports.clear();
    const std::lock_guard guard(state_->mutex);
    state_->durable += std::exchange(taken_, 0);
    state_->settled.notify_all();
  }

  void wrote(const Receipt& receipt) {
    if (trouble_said_) say("progress of session " + state_->config.session + " is kept again");
    trouble_said_ = false;
    if (!registered_) {
      registered_ = true;
      if (auto bell = Bell::for_session(state_->config.database, receipt.key)) {
        bell_ = std::move(*bell);
      }
      if (!receipt.created) adopt();
    }
    batch_.reports.clear();
    const std::lock_guard guard(state_->mutex);
    state_->registered = true;
    state_->refusal.clear();
    state_->durable += std::exchange(taken_, 0);
    hear(receipt.directive);
    state_->settled.notify_all();
  }

  /// The session was there before this tracker: what it reported then counts too.
  void adopt() {
    auto row = store_->reader().session(state_->config.session);
    if (!row) return;
    auto judged = store_->reader().fold(*row);
    if (!judged) return;
    const std::lock_guard guard(state_->mutex);
    state_->local_offset = store_->now() - state_->boot_now();
    state_->local_seq = judged->history.seq;
    state_->local = std::move(*judged);
    for (const auto& report : state_->queue) state_->fold(report, state_->boot_now());
  }

  /// REQUIRES: mutex held.
  void hear(const Directive& directive) {
    if (!directive.cancel || state_->directive.cancel) return;
    state_->directive = directive;
    state_->cancel_asked = true;
  }

  void wait(Instant until) {
    const auto left = std::max<std::int64_t>((until - state_->boot_now()).count(), 0);
    std::array<pollfd, 2> fds{pollfd{state_->wake_fd, POLLIN, 0}, pollfd{bell_.fd(), POLLIN, 0}};
    poll(fds.data(), fds.size(), static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    std::uint64_t count = 0;
    [[maybe_unused]] const auto read_bytes = read(state_->wake_fd, &count, sizeof count);
    if ((fds[1].revents & POLLIN) == 0) return;
    bell_.hush();
    if (!store_) return;
    auto cancel = store_->reader().cancel_of(state_->config.session);
    if (!cancel) return;
    const std::lock_guard guard(state_->mutex);
    hear({.cancel = std::move(*cancel)});
  }

  std::shared_ptr<State> state_;
  std::optional<Store> store_;
  Bell bell_;
  Batch batch_;  ///< Taken from the queue, not yet durable; a start before it, if one is due.
  std::size_t taken_ = 0;  ///< How many of them came from the queue.
  bool registered_ = false;
  bool trouble_said_ = false;
  int refused_while_stopping_ = 0;
};

namespace {

Report make(ReportKind kind, std::string_view name, std::string_view content = {},
            std::string_view call_id = {}) {
  Report report;
  report.kind = kind;
  report.name = name;
  report.content = content;
  report.call_id = call_id;
  return report;
}

}  // namespace

ProgressTracker::ProgressTracker(Config config) {
  if (config.session.empty()) config.session = new_ulid(config.clock->wall());
  if (config.database.empty()) config.database = default_database();
  state_ = std::make_shared<State>(std::move(config));
  state_->thread = std::thread([state = state_] { Writer(state).run(); });
}

ProgressTracker::~ProgressTracker() {
  if (state_->forked()) {
    // The thread lives in the parent only; its locks may be held for ever here. Leave all of it.
    new std::shared_ptr<State>(std::move(state_));  // NOLINT: never freed, on purpose
    return;
  }
  std::unique_lock guard(state_->mutex);
  state_->stopping = true;
  state_->wake();
  // A writer that waits behind a stopped process cannot be called back; it must not hold the agent.
  const bool came_back = state_->settled.wait_for(guard, 2 * state_->config.refusal_max,
                                                  [&] { return state_->finished; });
  guard.unlock();
  if (came_back) {
    state_->thread.join();
  } else {
    state_->thread.detach();
  }
}

const std::string& ProgressTracker::session() const noexcept {
  return state_->config.session;
}

Advice ProgressTracker::heartbeat(const Heartbeat& beat) noexcept {
  State& state = *state_;
  if (state.forked()) return Advice::go_on;
  const auto now = state.boot_now();
  try {
    const std::lock_guard guard(state.mutex);
    if (state.beats && !continues(*state.beats, beat)) state.push_beats();
    if (state.beats) {
      extend(*state.beats, beat, now);
    } else {
      state.beats = row_of(beat, now);
    }
  } catch (...) {  // no memory for it: a heartbeat is not worth an agent
  }
  return state.advice();
}

Advice ProgressTracker::state_change(std::string_view type, std::string_view data) {
  return state_->say(make(ReportKind::state_change, type, data));
}

Advice ProgressTracker::tool_call(std::string_view tool, std::string_view arguments,
                                  std::string_view call_id, std::optional<Millis> deadline) {
  auto report = make(ReportKind::tool_call, tool, arguments, call_id);
  report.deadline = deadline;
  return state_->say(std::move(report));
}

Advice ProgressTracker::tool_result(std::string_view tool, std::string_view result,
                                    std::string_view call_id) {
  return state_->say(make(ReportKind::tool_result, tool, result, call_id));
}

Advice ProgressTracker::tool_error(std::string_view tool, std::string_view error,
                                   std::string_view call_id) {
  return state_->say(make(ReportKind::error, tool, error, call_id));
}

Advice ProgressTracker::message(std::string_view role, std::string_view text) {
  return state_->say(make(ReportKind::message, role, text));
}

Advice ProgressTracker::user_input(std::string_view text) {
  return state_->say(make(ReportKind::user_input, {}, text));
}

Advice ProgressTracker::wait_for(std::string_view what) {
  return state_->say(make(ReportKind::wait, what));
}

Advice ProgressTracker::idle() {
  return state_->say(make(ReportKind::idle, {}));
}

Advice ProgressTracker::report(Report report) {
  return state_->say(std::move(report));
}

Result<void> ProgressTracker::complete() {
  return state_->end({OutcomeKind::completed, std::string(reasons::task_complete), {}});
}

Result<void> ProgressTracker::fail(std::string_view error, std::string_view reason) {
  return state_->end({OutcomeKind::failed, std::string(reason), std::string(error)});
}

Result<void> ProgressTracker::incomplete(std::string_view reason) {
  return state_->end({OutcomeKind::incomplete, std::string(reason), {}});
}

Result<void> ProgressTracker::cancelled(std::string_view by) {
  return state_->end({OutcomeKind::cancelled, "cancelled_by_" + std::string(by), {}});
}

Result<void> ProgressTracker::flush(std::stop_token stop) {
  if (state_->forked()) return {};
  return state_->wait_until_durable(stop);
}

Directive ProgressTracker::directive() const {
  if (state_->forked()) return {};
  const std::lock_guard guard(state_->mutex);
  return state_->directive;
}

Case ProgressTracker::judged() const {
  if (state_->forked()) return {};
  const std::lock_guard guard(state_->mutex);
  Case judged = state_->local;
  std::vector<Transition> ignored;
  const auto now = state_->boot_now() + state_->local_offset;
  if (state_->beats) {
    Event event;
    event.seq = state_->local_seq + 1;
    event.session = 1;
    event.tick = std::max(judged.history.tick, now);
    event.at = state_->config.clock->wall();
    Beats row = *state_->beats;
    row.first += state_->local_offset;
    row.last += state_->local_offset;
    event.report.detail = std::move(row);
    judged.take(event, ignored);
  }
  judged.expire(now, ignored);
  return judged;
}

std::string ProgressTracker::progress() const {
  const Case now_judged = judged();
  Millis offset{};
  if (!state_->forked()) {
    const std::lock_guard guard(state_->mutex);
    offset = state_->local_offset;
  }
  const auto now = std::max(state_->boot_now() + offset, now_judged.history.tick);
  return progress_document(state_->config.session, now_judged, state_->description, now,
                           state_->config.clock->wall());
}

}  // namespace watchdog
