// Waits for a session in a file. A loop looks, applies `ruling`, and sleeps until a
// notification, the end of the process, a signal, or the next due instant of the health. A look
// reads the new events one by one, so short states are seen. Before it fails it looks once more.
#include "watchdog/wait.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <limits>
#include <utility>

#include "codec/progress.h"
#include "facts/ids.h"
#include "report/calling_out.h"
#include "store/change_notifier.h"
#include "store/event_reader.h"
#include "store/store.h"
#include "store/transition_reader.h"
#include "wait/account.h"
#include "wait/far_process.h"
#include "wait/one_line.h"
#include "wait/session_view.h"
#include "wait/termination_watch.h"

namespace watchdog {
namespace {

/// A ring may be lost, and a process of another user may end unheard.
constexpr Millis look_again{1'000};
/// The limit of a line about a session.
constexpr std::size_t line_bytes_max = 500;
/// Frequent notifications do not cause more looks than this.
constexpr Millis between_looks{5};

/// A callback threw, or the wait makes no sense.
struct Misuse {
  std::string why;
};

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number) : std::string("SIG") + name;
}

class Waiting {
 public:
  explicit Waiting(const Wait& asked)
      : asked_(asked),
        database_(asked.database.empty() ? default_database() : asked.database),
        view_(database_, asked.session, *asked.clock) {}

  Result<Waited, WaitFailure> run() {
    try {
      check_use();
      const std::stop_callback on_stop(asked_.stop, [this] {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = write(called_off_.get(), &one, sizeof one);
      });
      starter_ = FarProcess({.pid = asked_.pid, .boot_id = boot_, .host = self_.host});
      while (true) {
        if (auto end = step()) return std::move(*end);
        sleep_until_something_happens();
      }
    } catch (const Misuse& misuse) {
      return failure(WaitEnd::misuse, misuse.why);
    }
  }

 private:
  using End = std::optional<Result<Waited, WaitFailure>>;

  void check_use() const {
    if (!is_session_id(asked_.session)) {
      throw Misuse{"'" + asked_.session + "' is not a session id: [A-Za-z0-9._:@-]{1,128}"};
    }
    if (CallingOut::here()) {
      throw Misuse{
          "a callback of a tracker cannot wait: its thread would have to go on for anything to be "
          "reported"};
    }
    if ((asked_.until.goal == Goal::condition) != static_cast<bool>(asked_.condition)) {
      throw Misuse{asked_.condition ? "there is a condition, but Goal::condition is not asked for"
                                    : "Goal::condition is asked for, but there is no condition"};
    }
    if (asked_.until.further_max < 1) throw Misuse{"further_max must be at least 1"};
    if (asked_.pid == getpid()) {
      throw Misuse{"the process that waits cannot be the one whose end it waits for"};
    }
  }

  template <class Callback, class... Arguments>
  auto call(const char* what, const Callback& callback, Arguments&&... arguments) {
    try {
      return callback(std::forward<Arguments>(arguments)...);
    } catch (const std::exception& thrown) {
      throw Misuse{std::string(what) + " threw: " + thrown.what()};
    } catch (...) {
      throw Misuse{std::string(what) + " threw something"};
    }
  }

  [[nodiscard]] Observed observed(const Case& judged, Instant now) const {
    return {asked_.session, judged, now, memory_, view_.row().spec};
  }

  /// One look, and what follows from it; empty: the wait goes on.
  End step() {
    // First whether it is to be the last look, then the look.
    const int signal = termination_.fd() < 0 ? 0 : TerminationWatch::signal();
    const bool called_off = signal != 0 || asked_.stop.stop_requested();
    const bool no_starter = starter_.gone();
    const auto there = look();
    if (met_) return Result<Waited, WaitFailure>(std::move(*met_));
    if (!there) {
      // A file that was readable once may be so again.
      if (there.error().code == ErrorCode::unavailable && was_read_ && !called_off) return {};
      return failure(
          there.error().code == ErrorCode::not_found ? WaitEnd::no_session : WaitEnd::unavailable,
          there.error().message, signal);
    }
    if (*there) {
      if (auto end = judge_now(); end || !called_off) return end;
    } else if (auto end = judge_absence(no_starter)) {
      return end;
    }
    if (!called_off) return {};
    const auto why =
        "wait interrupted" + (signal != 0 ? " by " + signal_text(signal) : std::string());
    return failure(
        WaitEnd::interrupted,
        why + "; " +
            (*there ? "session was " + std::string(name_of(memory_.latest.health)) : absence()),
        signal);
  }

  End judge_now() {
    const auto verdict = ruling(asked_.until, memory_);
    auto why = why_over(verdict, asked_.until, memory_, shown_.history.pid);
    switch (verdict) {
      case Ruling::go_on:
      case Ruling::met:  // then it was returned already
        return {};
      case Ruling::ended:
        return failure(WaitEnd::ended, std::move(why));
      case Ruling::dead:
        return failure(WaitEnd::dead, std::move(why));
      case Ruling::ask:
        if (asked_.ask) {
          if (call("ask", asked_.ask, observed(shown_, now_))) {
            forgive(memory_);
            return {};
          }
          return unless_over_meanwhile(WaitEnd::user_cancelled_stuck, why + refused_to_go_on);
        }
        [[fallthrough]];
      case Ruling::stuck:
        return unless_over_meanwhile(WaitEnd::stuck, std::move(why));
      case Ruling::suspect:
        return unless_over_meanwhile(WaitEnd::suspect, std::move(why));
      case Ruling::quiet:
        return unless_over_meanwhile(WaitEnd::quiet, std::move(why));
    }
    return {};
  }

  /// The last look before it fails.
  End unless_over_meanwhile(WaitEnd end, std::string why) {
    const auto there = look();
    if (met_) return Result<Waited, WaitFailure>(std::move(*met_));
    if (there && *there) {
      const auto now = ruling(asked_.until, memory_);
      if (now == Ruling::ended || now == Ruling::dead) return judge_now();
      const bool refuted = now == Ruling::go_on && end != WaitEnd::user_cancelled_stuck;
      if (refuted) return {};
    }
    return failure(end, std::move(why));
  }

  End judge_absence(bool no_starter) {
    if (!asked_.must_exist && !no_starter) return {};
    return failure(WaitEnd::no_session, no_starter ? "process " + std::to_string(asked_.pid) +
                                                         ", which was to start it, is gone, and " +
                                                         absence()
                                                   : absence());
  }

  std::string absence() {
    auto text = "unknown session " + asked_.session + " in " + database_.string();
    auto* reader = view_.reader();
    if (reader == nullptr) return text + ", which is not there itself";
    const auto others = reader->sessions({.limit = 5});
    if (!others || others->empty()) return text + ", nor any other";
    text += "; the newest there are";
    for (const auto& other : *others) text += " " + other.id;
    return text;
  }

  Result<bool> look() {
    looked_ = std::chrono::steady_clock::now();
    listener_.clear();
    const bool gone = process_.gone();
    const bool was_there = there_;
    auto there = view_.look([this](const Event& event, const Case& after) {
      if (met_) return;
      iterations_.fold(event);
      if (asked_.until.goal == Goal::state_change) {
        counted_.holds |=
            !event.late && event.seq > asked_.after && is_change(event.report, asked_.until.what);
      }
      sample(after, event.tick);
    });
    if (met_ || !there) return there;
    was_read_ = true;
    there_ = *there;
    if (!there_) {
      if (asked_.seen && !absence_reported_) call("seen", asked_.seen, nullptr);
      absence_reported_ = true;
      return there;
    }
    now_ = view_.now();
    if (!was_there) look_back();
    shown_ = view_.judged();
    counted_.gone = gone && process_.is(shown_.history.pid, shown_.history.start_ticks);
    std::vector<Transition> ignored;
    shown_.expire(now_, ignored);
    conclude_death(ignored);
    sample(shown_, now_);
    counted_.gone = false;
    watch_process();
    if (!met_ && asked_.seen) {
      const auto what = observed(shown_, now_);
      call("seen", asked_.seen, &what);
    }
    return there;
  }

  /// Checks the goal. A goal that was met in passing counts as well.
  void sample(const Case& judged, Instant now) {
    counted_.lifecycle = judged.history.lifecycle;
    counted_.health = judged.health.kind;
    counted_.quiet = judged.health.pattern == Pattern::quiet;
    counted_.beats = iterations_.beats;
    counted_.rounds = iterations_.rounds;
    if (asked_.condition) {
      counted_.holds = call("the condition", asked_.condition, observed(judged, now));
    }
    see(memory_, counted_);
    if (ruling(asked_.until, memory_) == Ruling::met) {
      met_ = Waited{.judged = judged, .seq = judged.history.seq};
    }
  }

  /// The goal may have been met before the wait, and trouble may have begun.
  void look_back() {
    if (asked_.until.goal == Goal::state_change) {
      each_event(asked_.after, [&](const Event& event) {
        counted_.holds |= !event.late && is_change(event.report, asked_.until.what);
        return !counted_.holds;
      });
    }
    if (!is_stuck(view_.judged().health.kind)) return;
    const auto since = stuck_since(changes());
    if (!since) return;
    see(memory_, {.health = view_.judged().health.kind});
    each_event(*since, [&](const Event& event) {
      iterations_.fold(event);
      return true;
    });
  }

  /// Passes the session's events after one, until the receiver has enough.
  void each_event(Seq after, const std::function<bool(const Event&)>& visit) {
    for (std::optional<Seq> next = after; next;) {
      const auto page = EventReader(*view_.reader()).page(view_.row().key, *next, 1'000);
      if (!page) return;
      for (const auto& event : page->events) {
        if (event.seq > view_.judged().folded || !visit(event)) return;
      }
      next = page->next;
    }
  }

  /// Returns all changes of health, also those that no monitor has recorded.
  std::vector<Transition> changes() {
    std::vector<Transition> changes;
    std::int64_t newest = 0;
    while (true) {
      auto rows = TransitionReader(*view_.reader()).of(view_.row().key, newest, 1'000);
      if (!rows || rows->empty()) break;
      newest = rows->back().id;
      for (auto& row : *rows) changes.push_back(std::move(row.transition));
    }
    if (auto rows = TransitionReader(*view_.reader()).unwritten(view_.row(), now_)) {
      for (auto& row : *rows) changes.push_back(std::move(row.transition));
    }
    return changes;
  }

  /// A monitor writes down that a silent session's process is gone; here it is only concluded.
  void conclude_death(std::vector<Transition>& ignored) {
    auto& history = shown_.history;
    const auto silence = silence_begins(history, *shown_.policy);
    if (!counted_.gone || history.notes->exited_seq != 0 || silence == never ||
        now_ < silence + shown_.policy->heartbeat_interval) {
      return;
    }
    Event exited{.seq = history.seq, .session = shown_.session, .tick = now_, .at = history.at};
    exited.report.kind = ReportKind::exited;
    exited.report.detail = process_.facts();
    shown_.fold(exited, ignored);
  }

  /// Another process may have taken the session up.
  void watch_process() {
    const auto& history = shown_.history;
    if (process_.is(history.pid, history.start_ticks) || history.machine != machine_) return;
    process_ = FarProcess({.pid = history.pid,
                           .start_ticks = history.start_ticks,
                           .boot_id = boot_,
                           .host = self_.host});
    news_ = process_.gone();
  }

  void sleep_until_something_happens() {
    if (std::exchange(news_, false)) return;
    std::error_code trouble;
    if (listener_.fd() < 0 && std::filesystem::is_directory(database_.parent_path(), trouble)) {
      if (auto listener = ChangeListener::for_all(database_)) {
        listener_ = std::move(*listener);
        return;  // an earlier notification was not received
      }
    }
    auto left = look_again;
    if (there_ && shown_.health.valid_until != never) {
      left = std::clamp(shown_.health.valid_until - now_, Millis{1}, left);
    }
    std::array<pollfd, 5> fds{
        pollfd{called_off_.get(), POLLIN, 0}, pollfd{termination_.fd(), POLLIN, 0},
        pollfd{process_.fd(), POLLIN, 0}, pollfd{there_ ? -1 : starter_.fd(), POLLIN, 0},
        pollfd{listener_.fd(), POLLIN, 0}};
    if (poll(fds.data(), fds.size(), static_cast<int>(left.count())) <= 0) return;
    const bool only_rang = std::all_of(fds.begin(), fds.end() - 1,
                                       [](const pollfd& other) { return other.revents == 0; });
    const auto since =
        std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - looked_);
    if (only_rang && since < between_looks) {
      poll(fds.data(), fds.size() - 1, static_cast<int>((between_looks - since).count()));
    }
  }

  Timeline timeline() {
    if (view_.reader() == nullptr || !there_) return {};
    TimelineMaker maker(changes());
    each_event(0, [&](const Event& event) {
      maker.add(event);
      return true;
    });
    return maker.finish();
  }

  Result<Waited, WaitFailure> failure(WaitEnd end, std::string why, int signal = 0) {
    WaitFailure failed{.end = end,
                       .session = asked_.session,
                       .expected = text_of(asked_.until),
                       .why = one_line(why, line_bytes_max),
                       .signal = signal};
    if (there_) {
      failed.last = one_line(lifecycle_text(shown_), line_bytes_max);
      failed.lifecycle = shown_.history.lifecycle;
      failed.judged = shown_;
      failed.timeline = timeline();
    }
    if (signal != 0) {
      const auto text = failed.text() + "\n";
      [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
      termination_.reraise();
    }
    return failed;
  }

  const Wait& asked_;
  const std::filesystem::path database_;
  const ProcessFacts self_ = this_process();
  const std::string boot_ = self_.boot_id;
  const std::uint64_t machine_ = machine_of(self_);
  SessionView view_;
  ChangeListener listener_;
  TerminationWatch termination_;
  OwnedFd called_off_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  FarProcess starter_;
  FarProcess process_;

  bool was_read_ = false;  ///< The file, or that there is none.
  bool there_ = false;
  bool absence_reported_ = false;
  bool news_ = false;  ///< There is something to look at already.
  SessionSample counted_;
  IterationCount iterations_;  ///< Since the wait began, or the trouble that it found.
  WaitMemory memory_;
  Case shown_;  ///< The session as of the last look, at
  Instant now_{};
  std::optional<Waited> met_;
  std::chrono::steady_clock::time_point looked_;
};

}  // namespace

std::string Observed::document() const {
  return progress_document(session, judged, description_of(spec), now, system_clock().wall());
}

Result<Waited, WaitFailure> wait(const Wait& asked) {
  return Waiting(asked).run();
}

}  // namespace watchdog
