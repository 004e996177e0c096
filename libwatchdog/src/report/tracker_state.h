/// \file
/// The state that a tracker's callers and its own thread share.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "codec/json.h"
#include "codec/progress.h"
#include "judge/text_loop.h"
#include "privacy/content.h"
#include "report/calling_out.h"
#include "store/lock.h"
#include "watchdog/repetition.h"
#include "watchdog/tracker.h"

namespace watchdog {

/// A queue above this keeps digests instead of contents, and
inline constexpr std::size_t queue_bytes_max = 8U << 20U;
/// above this only counts what it could not keep.
inline constexpr std::size_t queue_reports_max = 100'000;

/// Returns the size of a report in the queue.
[[nodiscard]] inline std::size_t weight(const Report& report) {
  return sizeof(Report) + text_bytes(report);
}

struct ProgressReporter::State {
  explicit State(ProgressTracker::Config chosen)
      : config(std::move(chosen)), wake_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (auto allowed = check(config); !allowed) invalid = allowed.error();
    if (!invalid) policy = patched(Policy{}, config.spec.policy);
    local.policy.set(policy);
    local.health_since = config.clock->wall();
    description = description_of(config.spec);
  }
  ~State() {
    if (wake_fd >= 0) close(wake_fd);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const ProgressTracker::Config config;
  std::optional<Error> invalid;  ///< Why every store would refuse the session. Set once.
  Policy policy;
  Description description;
  const int generation = fork_generation();
  int wake_fd;
  std::atomic<bool> cancel_asked{false};
  std::stop_source cancel;

  struct Listener {
    std::function<void(const Report&)> hear;
    std::atomic<int> calls = 0;  ///< Under way. Rises only while the tracker still has it.
  };

  /// Ends a call of a listener that was counted before.
  class CallUnderWay {
   public:
    explicit CallUnderWay(Listener& listener) noexcept : listener_(listener) {}
    ~CallUnderWay() {
      if (--listener_.calls == 0) listener_.calls.notify_all();
    }
    CallUnderWay(const CallUnderWay&) = delete;
    CallUnderWay& operator=(const CallUnderWay&) = delete;

   private:
    Listener& listener_;
  };

  /// Held while the listener runs, so that its replacement knows when it has stopped. Locked before
  /// `mutex`; the listener itself may lock it again.
  std::recursive_mutex reporting;
  std::shared_ptr<const std::function<void(const CancelRequest&)>> abort_listener;

  mutable std::mutex mutex;
  std::shared_ptr<Listener> listener;
  std::condition_variable_any settled;  ///< Something became durable, or was refused.
  std::optional<Heartbeats> beats;      ///< Gathered since the last row. Ticks: since boot.
  Instant beats_written{};              ///< When a row was last claimed.
  std::deque<Report> queue;
  std::size_t queue_bytes = 0;
  std::int64_t lost = 0;
  std::uint64_t reported = 0;  ///< Rows ever queued, and
  std::uint64_t durable = 0;   ///< how many of them are on disk.
  std::string refusal;         ///< Why the store refuses now.
  Case local;                  ///< Folded from what is reported here.
  Seq local_seq = 0;
  Millis local_offset{};
  bool ended = false;
  bool stopping = false;
  bool finished = false;
  bool registered = false;  ///< The store knows the session.
  Directive directive;
  std::vector<CancelRequest> heard;  ///< Aborts that the listener has received.
  TextLoop answer;                   ///< The model's, as it comes.
  bool streaming = false;            ///< Some of it came.

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

  /// Returns the aborts that the listener has not received. REQUIRES: mutex held.
  [[nodiscard]] std::vector<CancelRequest> drain_unreported() {
    const auto is_in = [](const std::vector<CancelRequest>& list, const CancelRequest& abort) {
      return std::any_of(list.begin(), list.end(), [&](const CancelRequest& other) {
        return other.turn == abort.turn && other.call == abort.call;
      });
    };
    // Finished ones are not requested again.
    std::erase_if(heard, [&](const auto& abort) { return !is_in(directive.aborts, abort); });
    std::vector<CancelRequest> unreported;
    for (const auto& abort : directive.aborts) {
      if (!is_in(heard, abort)) unreported.push_back(abort);
    }
    heard.insert(heard.end(), unreported.begin(), unreported.end());
    return unreported;
  }

  /// Says, on the tracker's own thread, what is to stop.
  void report_aborts() {
    const std::lock_guard turn(reporting);
    const auto listening = abort_listener;
    if (!listening) return;
    std::vector<CancelRequest> unreported;
    {
      const std::lock_guard guard(mutex);
      unreported = drain_unreported();
    }
    const CallingOut calling_out;
    for (const auto& abort : unreported) (*listening)(abort);
  }

  /// Folds a report into the local case. REQUIRES: mutex held.
  void fold(Report& report, Instant boot) {
    Event event;
    event.seq = ++local_seq;
    event.session = 1;
    event.tick = std::max(local.history.tick, boot + local_offset);
    event.at = report.at.value_or(WallTime{});
    event.origin = config.origin;
    // Contents do not matter to a history and may be long.
    auto content = std::exchange(report.content, {});
    event.report = report;
    report.content = std::move(content);
    // It was asked with numbers of the file, which are others than here.
    if (auto* opinion = std::get_if<Opinion>(&event.report.detail)) opinion->seen = 0;
    event.late = is_end(local.history.lifecycle) && report.kind != ReportKind::start;
    if (auto* row = std::get_if<Heartbeats>(&event.report.detail)) {
      row->first += local_offset;
      row->last += local_offset;
    }
    std::vector<Transition> ignored;
    local.fold(event, ignored);
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
    if (invalid) return;  // no store will accept it
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

  /// An answer is over with whatever is said next.
  Advice say(Report report) {
    if (forked()) return Advice::go_on;
    {
      const std::lock_guard guard(mutex);
      if (streaming) answer.begin();
      // Repetition that was found while it streamed is not counted again.
      if (std::exchange(streaming, false) && report.kind == ReportKind::message) {
        mark(report);
        if (auto* marks = std::get_if<Marks>(&report.detail)) marks->text_repeats = 0;
      }
    }
    return put(std::move(report));
  }

  Advice put(Report report) {
    std::shared_ptr<Listener> receiver;
    {
      const std::lock_guard guard(mutex);
      receiver = listener;
      if (receiver) ++receiver->calls;
    }
    if (receiver) {
      const CallingOut calling_out;
      const CallUnderWay under_way(*receiver);
      receiver->hear(report);
    }
    report.at = config.clock->wall();
    mark(report);
    {
      const std::lock_guard guard(mutex);
      push_beats();
      push(std::move(report), boot_now());
    }
    wake();
    return advice();
  }

  Result<void> wait_until_durable(const std::stop_token& stop) {
    if (invalid) return *invalid;
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

}  // namespace watchdog
