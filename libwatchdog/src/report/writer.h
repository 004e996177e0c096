/// \file
/// The thread of a tracker.
#pragma once

#include <poll.h>

#include <array>
#include <cstdio>
#include <utility>

#include "report/tracker_state.h"
#include "store/change_notifier.h"
#include "store/store.h"
#include "watchdog/terminal_text.h"

namespace watchdog {

/// Between two looks at what is asked for while turns are open, should a ring get lost.
inline constexpr Millis look_every{1'000};
/// Between two tries at a store that refused.
inline constexpr Millis retry_every{500};
/// Reports for one transaction.
inline constexpr std::size_t piece_reports = 2'000;

/// The tracker's own thread: sends sidecar heartbeats, writes pending reports, receives directives.
class ProgressTracker::Writer {
 public:
  explicit Writer(std::shared_ptr<State> state)
      : state_(std::move(state)),
        batch_{.session = state_->config.session,
               .creation = Creation::attach,
               .spec = state_->config.spec,
               .by = state_->config.origin} {}

  void run() {
    if (state_->invalid) {
      say("session " + state_->config.session + " is not recorded: " + state_->invalid->message +
          ". The agent goes on");
    } else {
      write_until_stopped();
    }
    const std::lock_guard guard(state_->mutex);
    state_->finished = true;
    state_->settled.notify_all();
  }

 private:
  void write_until_stopped() {
    auto next_sidecar = state_->boot_now();
    while (true) {
      const auto now = state_->boot_now();
      bool stop = false;
      auto next = now + half_interval();
      {
        const std::lock_guard guard(state_->mutex);
        stop = state_->stopping;
        if (state_->config.sidecar && !state_->ended) {
          if (now >= next_sidecar) {
            push_sidecar(now);
            next_sidecar = now + state_->policy.heartbeat_interval;
          }
          next = std::min(next, next_sidecar);
        }
        const bool due = state_->beats && now - state_->beats_written >= half_interval();
        if (due || stop) state_->push_beats();
      }
      const bool written = write_pending();
      if (stop && (written || ++refused_while_stopping_ * retry_every > state_->config.refusal_max))
        break;
      if (!written || stop) next = now + retry_every;
      if (has_turns()) next = std::min(next, now + look_every);
      wait(next);
    }
  }

  [[nodiscard]] Millis half_interval() const {
    return std::max(Millis{1'000}, state_->policy.heartbeat_interval / 2);
  }

  [[nodiscard]] bool has_turns() const {
    const std::lock_guard guard(state_->mutex);
    return !state_->local.history.notes->turns->empty();
  }

  void push_sidecar(Instant now) {
    Report report;
    report.kind = ReportKind::heartbeat;
    report.at = state_->config.clock->wall();
    report.detail = Heartbeats{.first = now, .last = now, .phase = {}, .source = Source::sidecar};
    state_->push(std::move(report), now);
  }

  void say(const std::string& sentence) const {
    if (state_->config.log) {
      try {
        return state_->config.log(sentence);
      } catch (...) {  // what the agent cannot log does not end it
      }
    }
    std::fprintf(stderr, "watchdog: %s\n", terminal_line(sentence).c_str());
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
      const bool kept = store_->close();
      store_.reset();
      seen_version_ = -1;
      if (!kept) begin_again();
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

  /// The new file knows nothing of the session: a start comes first again.
  void begin_again() {
    listener_ = ChangeListener();
    registered_ = false;
    if (!batch_.reports.empty() && batch_.reports.front().kind != ReportKind::start) {
      batch_.reports.insert(batch_.reports.begin(), start_report());
    }
  }

  /// Claims a piece of the queue, behind what could not be written before. It counts as durable
  /// when `wrote` says so.
  void claim_piece() {
    if (!batch_.reports.empty()) return;
    if (!registered_) batch_.reports.push_back(start_report());
    const std::lock_guard guard(state_->mutex);
    if (state_->queue.empty()) state_->push_gap();
    for (claimed_ = 0; !state_->queue.empty() && claimed_ < piece_reports; ++claimed_) {
      state_->queue_bytes -= weight(state_->queue.front());
      batch_.reports.push_back(std::move(state_->queue.front()));
      state_->queue.pop_front();
    }
  }

  Report start_report() const {
    Report report;
    report.kind = ReportKind::start;
    report.at = state_->config.clock->wall();
    auto process = this_process();
    if (state_->config.origin == ReportOrigin::run) process.known_by = KnownBy::run;
    report.detail = std::move(process);
    return report;
  }

  /// True if nothing is left to write.
  bool write_pending() {
    while (open()) {
      claim_piece();
      if (batch_.reports.empty()) return true;
      auto receipts = store_->append({&batch_, 1});
      if (!receipts || !receipts->front()) {
        if (store_->vanished()) continue;
        refused(receipts ? receipts->front().error() : receipts.error());
        return false;
      }
      wrote(*receipts->front());
    }
    return false;
  }

  void wrote(const Receipt& receipt) {
    if (trouble_said_) say("progress of session " + state_->config.session + " is kept again");
    trouble_said_ = false;
    if (!registered_) {
      registered_ = true;
      if (auto listener = ChangeListener::for_session(state_->config.database, receipt.key)) {
        listener_ = std::move(*listener);
      }
      if (!receipt.created) adopt();
    }
    batch_.reports.clear();
    bool cancelled = false;
    {
      const std::lock_guard guard(state_->mutex);
      cancelled = learn(receipt.directive);
      state_->registered = true;
      state_->refusal.clear();
      state_->durable += std::exchange(claimed_, 0);
      state_->settled.notify_all();
    }
    report_cancel(cancelled);
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
    for (auto& report : state_->queue) state_->fold(report, state_->boot_now());
  }

  /// True if the session is to stop, and that is new. REQUIRES: mutex held.
  [[nodiscard]] bool learn(const Directive& directive) {
    state_->directive.aborts = directive.aborts;
    if (!directive.cancel || state_->directive.cancel) return false;
    state_->directive.cancel = directive.cancel;
    state_->cancel_asked = true;
    return true;
  }

  /// Calls out.
  void report_cancel(bool cancelled) {
    if (cancelled) {
      const CallingOut calling_out;
      state_->cancel.request_stop();
    }
    state_->report_aborts();
  }

  void wait(Instant until) {
    const auto left = std::max<std::int64_t>((until - state_->boot_now()).count(), 0);
    std::array<pollfd, 2> fds{pollfd{state_->wake_fd, POLLIN, 0},
                              pollfd{listener_.fd(), POLLIN, 0}};
    poll(fds.data(), fds.size(), static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    std::uint64_t count = 0;
    [[maybe_unused]] const auto read_bytes = read(state_->wake_fd, &count, sizeof count);
    const bool rang = (fds[1].revents & POLLIN) != 0;
    if (rang) listener_.clear();
    if (store_ && (rang || has_turns())) look();
    state_->report_aborts();  // a new listener gets the present aborts
  }

  /// Reads the directive, if another process has written.
  void look() {
    if (store_->vanished()) return;
    const auto version = store_->reader().version();
    if (!version || *version == seen_version_) return;
    auto directive = store_->reader().directive_of(state_->config.session);
    if (!directive) return;
    seen_version_ = *version;
    bool cancelled = false;
    {
      const std::lock_guard guard(state_->mutex);
      cancelled = learn(*directive);
    }
    report_cancel(cancelled);
  }

  std::shared_ptr<State> state_;
  std::optional<Store> store_;
  ChangeListener listener_;
  Batch batch_;  ///< Taken from the queue, not yet durable; a start before it, if one is due.
  std::size_t claimed_ = 0;         ///< How many of them came from the queue.
  std::int64_t seen_version_ = -1;  ///< Of the store, when it was last looked at.
  bool registered_ = false;
  bool trouble_said_ = false;
  int refused_while_stopping_ = 0;
};

}  // namespace watchdog
