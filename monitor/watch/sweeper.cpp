#include "watch/sweeper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "api/session_row.h"
#include "watch/reading_room.h"
#include "watchdog/bell.h"

namespace watchdog::monitor {
namespace {

/// The observer wants to look at least once a second.
constexpr Millis look_every{1'000};
/// Retention begins a round so often; within one it works in pieces until nothing is left.
constexpr Millis trim_every{600'000};
constexpr Millis piece_every{20};
/// How sessions look is told so often, and with a change of health not sooner than the second.
constexpr std::chrono::milliseconds rows_every{1'000};
constexpr std::chrono::milliseconds rows_at_once{100};

/// About what a batch takes in memory.
std::size_t weight(const Batch& batch) {
  const auto& spec = batch.spec;
  std::size_t bytes = sizeof(Batch) + spec.agent.size() + spec.task.size();
  for (const auto& [key, value] : spec.labels) bytes += key.size() + value.size() + 64;
  for (const auto& report : batch.reports) {
    bytes += sizeof(Report) + report.content.size() + report.name.size() + report.call_id.size() +
             report.hash.size() + report.event_id.size() + report.turn.size();
    if (const auto* outcome = std::get_if<Outcome>(&report.detail)) {
      bytes += outcome->error.size() + outcome->reason.size();
    }
  }
  return bytes;
}

/// Something on its way to the disk, and who waits for it.
template <class T>
struct Waiting {
  std::function<void(Result<T>)> done;
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  std::atomic_flag answered = ATOMIC_FLAG_INIT;

  void answer(Result<T> result) {
    if (answered.test_and_set()) return;
    std::exchange(done, {})(std::move(result));  // what it holds is not needed any more
  }
};

struct Pending : Waiting<Receipt> {
  Batch batch;
  std::size_t bytes = 0;
};

struct Writing : Waiting<void> {
  std::function<Result<void>(Store&)> work;
};

/// Sessions on their way out, and who waits for that: as long as it takes, which is no trouble.
struct Errand {
  Erasure erasure;
  std::function<void(Result<std::vector<std::string>>)> done;
};

}  // namespace

struct Sweeper::State {
  State(Options chosen, Store opened)
      : options(std::move(chosen)),
        wake_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        store(std::move(opened)),
        room(options.database) {}
  ~State() {
    if (wake_fd >= 0) close(wake_fd);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const Options options;
  int wake_fd;

  // Of the store thread:
  Store store;
  std::unique_ptr<Observer> observer;
  Bell bell;
  std::chrono::steady_clock::time_point next_trim =
      std::chrono::steady_clock::now() + std::chrono::seconds(30);
  bool trimming = false;
  Seq trim_through = 0;
  bool trouble_said = false;
  std::chrono::steady_clock::time_point rows_from{};  ///< Not before then are rows told again.

  mutable std::mutex mutex;
  std::vector<std::shared_ptr<Pending>> inbox;
  std::vector<std::shared_ptr<Pending>> in_hand;  ///< Taken, not yet answered.
  std::vector<std::shared_ptr<Writing>> writings;
  std::vector<std::shared_ptr<Writing>> writings_in_hand;
  std::size_t pending_bytes = 0;
  std::vector<Errand> errands;
  std::optional<Error> trouble;
  std::int64_t file_bytes = 0;
  std::int64_t log_bytes = 0;
  Instant next_due = never;
  std::chrono::steady_clock::time_point came_round = std::chrono::steady_clock::now();
  std::shared_ptr<Observer> seen;  ///< The observer, for those who ask from other threads.
  Millis tick_offset{};
  bool stopping = false;

  std::mutex listening;
  std::function<void(const Transition&)> listener;
  std::function<void()> message_listener;

  std::thread thread;
  std::jthread patience;  ///< Answers those who waited too long for the disk.
  ReadingRoom room;       ///< Last, so that it closes first: what is read there asks for the rest.

  void wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_fd, &one, sizeof one);
  }

  [[nodiscard]] std::shared_ptr<Observer> observer_seen() const {
    const std::lock_guard guard(mutex);
    return seen;
  }

  Result<void> begin() {
    Observer::Options told{
        .told = [this](const TransitionRow& row,
                       const std::string& session) { tell(row, session); },
        .seen = [this](const Event& event, const std::string& session) { tell(event, session); },
        .alerts = options.alerts};
    if (options.feed != nullptr) {
      told.seen_some = [feed = options.feed] { feed->flush(); };
      told.reloaded = [feed = options.feed](Seq seq, std::int64_t transition) {
        feed->restart({.seq = seq, .transition = transition});
      };
    }
    auto started = Observer::start(store, std::move(told));
    if (!started) return started.error();
    const std::lock_guard guard(mutex);
    seen = std::move(*started);
    tick_offset = store.now() - Instant{system_clock().since_boot()};
    if (auto hung = Bell::for_all(options.database)) bell = std::move(*hung);
    return {};
  }

  void tell(const Event& event, const std::string& session) {
    if (options.feed != nullptr) options.feed->event(event, session);
    if (options.metrics != nullptr) options.metrics->count_event(event);
  }

  void tell(const TransitionRow& row, const std::string& session) {
    if (options.feed != nullptr) options.feed->transition(row, session);
    if (options.metrics != nullptr) options.metrics->transitions[row.transition.health.kind].add();
    const std::lock_guard guard(listening);
    if (listener) listener(row.transition);
  }

  /// Wakes those who listen. How sessions look now they are told at most once a second, or soon
  /// after one got into or out of trouble, by whoever reads lists.
  void feed_listeners(Backend& backend) {
    if (options.feed == nullptr) return;
    options.feed->flush();
    const auto now = std::chrono::steady_clock::now();
    const auto pending = options.feed->pending();
    if (pending == Feed::Pending::none || now < rows_from) return;
    if (pending == Feed::Pending::some && now < rows_from + rows_every - rows_at_once) return;
    rows_from = now + rows_at_once;
    room.read(
        [this, &backend](StoreReader& reader) {
          const auto wall = system_clock().wall();
          for (const auto& session : options.feed->take_changed()) {
            const auto row = reader.session(session);
            if (row) options.feed->session(row->key, session_row(backend, *row, wall));
          }
          options.feed->flush();
        },
        [](const Error&) {});
  }

  void tell_of_messages() {
    if (!store.take_told()) return;
    const std::lock_guard guard(listening);
    if (message_listener) message_listener();
  }

  void report(const Result<void>& result) {
    {
      const std::lock_guard guard(mutex);
      trouble = result ? std::nullopt : std::optional(result.error());
    }
    if (!result && !trouble_said) options.log("reports cannot be kept: " + result.error().message);
    if (result && trouble_said) options.log("reports are kept again");
    trouble_said = !result;
  }

  /// The file was deleted or replaced: begin anew with what is there now.
  Result<void> reopen_if_vanished() {
    if (!store.vanished()) return seen ? Result<void>{} : begin();
    auto opened = Store::open({.database = options.database});
    if (!opened) return opened.error();
    {
      const std::lock_guard guard(mutex);
      seen.reset();
    }
    bell = Bell();
    store = std::move(*opened);
    room.reopen();
    if (auto begun = begin(); !begun) return begun;
    options.log("the database " + options.database.string() + " vanished and was made anew");
    return {};
  }

  bool take() {
    const std::lock_guard guard(mutex);
    in_hand.swap(inbox);
    return !in_hand.empty();
  }

  /// What was taken waits no longer.
  std::vector<std::shared_ptr<Pending>> settle() {
    const std::lock_guard guard(mutex);
    for (const auto& pending : in_hand) pending_bytes -= pending->bytes;
    return std::exchange(in_hand, {});
  }

  /// Commits and answers what came in. `looked` is set if the observer looked meanwhile.
  Result<void> commit(std::optional<Result<Instant>>& looked) {
    if (!take()) return {};
    std::vector<Batch> batches;
    batches.reserve(in_hand.size());
    for (const auto& pending : in_hand) batches.push_back(std::move(pending->batch));
    const auto began = std::chrono::steady_clock::now();
    auto receipts = store.append(batches);
    if (receipts && options.metrics != nullptr) {
      options.metrics->commit.observe(std::chrono::steady_clock::now() - began);
      for (const auto& receipt : *receipts) {
        if (receipt)
          options.metrics->duplicates.add(static_cast<std::int64_t>(receipt->duplicates));
      }
    }
    // Judged before it is answered: who asks next finds what it just reported.
    if (receipts) looked = seen->look();
    const auto settled = settle();
    for (std::size_t at = 0; at < settled.size(); ++at) {
      const bool made = receipts && (*receipts)[at] && (*receipts)[at]->created;
      if (made && options.feed != nullptr) options.feed->created(batches[at].session);
      settled[at]->answer(receipts ? std::move((*receipts)[at])
                                   : Result<Receipt>(receipts.error()));
    }
    return receipts ? Result<void>{} : receipts.error();
  }

  [[nodiscard]] bool take_writings() {
    const std::lock_guard guard(mutex);
    writings_in_hand.swap(writings);
    return !writings_in_hand.empty();
  }

  /// Does what others want done with the store; `there` is why it cannot be.
  void write_for_others(const Result<void>& there) {
    if (!take_writings()) return;
    for (const auto& writing : writings_in_hand) {
      writing->answer(there ? writing->work(store) : there);
    }
    const std::lock_guard guard(mutex);
    writings_in_hand.clear();
  }

  /// One bounded piece of retention.
  Result<void> trim() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_trim) return {};
    if (!trimming) {
      if (auto kept = seen->checkpoint(); !kept) return kept;
      trim_through = seen->folded();
      trimming = true;
    }
    auto retention = options.retention;
    retention.folded_through = trim_through;
    const auto more = store.trim(retention);
    if (!more) return more.error();
    seen->forget(store.take_dropped());
    trimming = *more;
    // Between two pieces others get their turn.
    next_trim = now + (trimming ? piece_every : trim_every);
    return {};
  }

  Result<void> turn(Instant& due) {
    auto there = reopen_if_vanished();
    if (!there) {
      // What waits gets its refusal rather than silence.
      take();
      for (const auto& pending : settle()) pending->answer(there.error());
      write_for_others(there);
      return there;
    }
    write_for_others({});
    std::optional<Result<Instant>> looked;
    auto committed = commit(looked);
    if (!looked) looked = seen->look();
    if (options.feed != nullptr) options.feed->flush();  // nothing else comes first
    tell_of_messages();
    if (*looked) due = **looked;
    if (!committed) return committed;
    if (!*looked) return looked->error();
    run_errands();
    return trim();
  }

  [[nodiscard]] std::vector<Errand> take_errands() {
    const std::lock_guard guard(mutex);
    return std::exchange(errands, {});
  }

  void run_errands() {
    for (const auto& errand : take_errands()) errand.done(erase(errand.erasure));
  }

  Result<std::vector<std::string>> erase(const Erasure& erasure) {
    auto erased = store.erase(erasure);
    seen->forget(store.take_dropped());
    if (!erased || erasure.only_say) return erased;
    const auto artifacts =
        options.artifacts.empty() ? artifacts_beside(options.database) : options.artifacts;
    if (auto gone = forget_artifacts(artifacts, *erased); !gone) return gone.error();
    return erased;
  }

  /// What is asked for from other threads, once a turn.
  void take_stock(Instant due) {
    const auto size = [](const std::filesystem::path& file) {
      std::error_code absent;
      const auto bytes = std::filesystem::file_size(file, absent);
      return absent ? std::int64_t{0} : static_cast<std::int64_t>(bytes);
    };
    const auto file = size(options.database);
    const auto log = size(options.database.string() + "-wal");
    const std::lock_guard guard(mutex);
    file_bytes = file;
    log_bytes = log;
    next_due = due;
    came_round = std::chrono::steady_clock::now();
  }

  void run(Backend& backend) {
    while (true) {
      Instant due = never;
      const auto turned = turn(due);
      if (!turned) {
        for (const auto& errand : take_errands()) errand.done(turned.error());
      }
      report(turned);
      take_stock(due);
      feed_listeners(backend);
      bool stop = false;
      {
        const std::lock_guard guard(mutex);
        stop = stopping && inbox.empty() && writings.empty() && errands.empty();
      }
      if (stop) break;
      wait(due);
    }
    if (!seen) return;
    if (auto kept = seen->checkpoint(); !kept) options.log(kept.error().message);
  }

  void wait(Instant due) const {
    auto left = look_every;
    if (due != never) left = std::clamp(due - store.now(), Millis{0}, look_every);
    if (trimming) left = std::min(left, piece_every);
    if (options.feed != nullptr && options.feed->pending() == Feed::Pending::urgent)
      left = std::min(left, Millis{rows_at_once});
    std::array<pollfd, 2> fds{pollfd{wake_fd, POLLIN, 0}, pollfd{bell.fd(), POLLIN, 0}};
    poll(fds.data(), fds.size(), static_cast<int>(left.count()) + (due != never ? 1 : 0));
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(wake_fd, &count, sizeof count);
    if ((fds[1].revents & POLLIN) != 0) bell.hush();
  }

  /// A writer of another process that was stopped holds the queue for as long as it is stopped. Who
  /// waits here is told after a while; what it sent stays in the queue.
  void answer_the_impatient(const std::stop_token& stop) {
    std::mutex sleeping;
    std::condition_variable_any never_notified;
    std::unique_lock guard(sleeping);
    while (!stop.stop_requested()) {
      never_notified.wait_for(guard, stop, std::chrono::milliseconds(500), [] { return false; });
      std::vector<std::shared_ptr<Pending>> late;
      std::vector<std::shared_ptr<Writing>> late_writings;
      const auto limit = std::chrono::steady_clock::now() - options.refusal_max;
      {
        const std::lock_guard lock(mutex);
        for (const auto* waiting : {&in_hand, &inbox}) {
          for (const auto& pending : *waiting) {
            if (pending->since < limit && !pending->answered.test()) late.push_back(pending);
          }
        }
        for (const auto* waiting : {&writings_in_hand, &writings}) {
          for (const auto& writing : *waiting) {
            if (writing->since < limit && !writing->answered.test())
              late_writings.push_back(writing);
          }
        }
      }
      for (const auto& pending : late) {
        pending->answer(Error{ErrorCode::unavailable,
                              "the database could not be written for " +
                                  std::to_string(options.refusal_max.count()) +
                                  " ms: another writer does not come to its end. The report stays "
                                  "queued; with an event_id it may be sent again safely"});
      }
      for (const auto& writing : late_writings) {
        writing->answer(
            Error{ErrorCode::unavailable, "the database could not be written for " +
                                              std::to_string(options.refusal_max.count()) +
                                              " ms: another writer does not come to its end"});
      }
    }
  }
};

Sweeper::Sweeper(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Sweeper>> Sweeper::start(Options options) {
  auto store = Store::open({.database = options.database});
  if (!store) return store.error();
  auto state = std::make_unique<State>(std::move(options), std::move(*store));
  if (auto begun = state->begin(); !begun) return begun.error();
  auto* running = state.get();
  state->patience =
      std::jthread([running](const std::stop_token& stop) { running->answer_the_impatient(stop); });
  std::unique_ptr<Sweeper> sweeper(new Sweeper(std::move(state)));
  running->thread = std::thread([running, backend = sweeper.get()] { running->run(*backend); });
  return sweeper;
}

Sweeper::~Sweeper() {
  {
    const std::lock_guard guard(state_->mutex);
    state_->stopping = true;
  }
  state_->wake();
  state_->thread.join();
}

void Sweeper::listen(std::function<void(const Transition&)> listener) {
  const std::lock_guard guard(state_->listening);
  state_->listener = std::move(listener);
}

void Sweeper::listen_for_messages(std::function<void()> listener) {
  const std::lock_guard guard(state_->listening);
  state_->message_listener = std::move(listener);
}

void Sweeper::append(Batch batch, std::function<void(Result<Receipt>)> done) {
  auto pending = std::make_shared<Pending>();
  pending->bytes = weight(batch);
  pending->batch = std::move(batch);
  pending->done = std::move(done);
  {
    const std::lock_guard guard(state_->mutex);
    if (state_->pending_bytes + pending->bytes <= state_->options.pending_bytes_max ||
        state_->pending_bytes == 0) {
      state_->pending_bytes += pending->bytes;
      state_->inbox.push_back(std::move(pending));
    }
  }
  if (pending) {
    return pending->answer(
        Error{ErrorCode::unavailable, "too many reports wait for the disk; try again"});
  }
  state_->wake();
}

void Sweeper::write(std::function<Result<void>(Store&)> work,
                    std::function<void(Result<void>)> done) {
  auto writing = std::make_shared<Writing>();
  writing->work = std::move(work);
  writing->done = std::move(done);
  {
    const std::lock_guard guard(state_->mutex);
    state_->writings.push_back(std::move(writing));
  }
  state_->wake();
}

void Sweeper::read(std::function<void(StoreReader&)> work, std::function<void(Error)> failed) {
  state_->room.read(std::move(work), std::move(failed));
}

std::vector<ChannelStatus> Sweeper::channels() const {
  return state_->options.board ? state_->options.board->channels() : std::vector<ChannelStatus>{};
}

std::optional<Watched> Sweeper::watched(std::string_view session) const {
  const auto observer = state_->observer_seen();
  return observer ? observer->find(session) : std::nullopt;
}

Result<std::vector<Child>> Sweeper::children(std::string_view session, std::size_t count_max) {
  const auto observer = state_->observer_seen();
  return observer ? observer->children(session, count_max) : std::vector<Child>{};
}

Result<std::vector<ActiveTurn>> Sweeper::turns(std::size_t count_max, std::string_view id) {
  const auto observer = state_->observer_seen();
  return observer ? observer->turns(count_max, id) : std::vector<ActiveTurn>{};
}

void Sweeper::erase(Erasure erasure, std::function<void(Result<std::vector<std::string>>)> done) {
  {
    const std::lock_guard guard(state_->mutex);
    state_->errands.push_back({std::move(erasure), std::move(done)});
  }
  state_->wake();
}

const Metrics* Sweeper::metrics() const {
  return state_->options.metrics;
}

std::optional<Vitals> Sweeper::vitals() const {
  Vitals vitals;
  if (const auto observer = state_->observer_seen()) vitals.sessions = observer->tally();
  const auto present = now();
  const std::lock_guard guard(state_->mutex);
  vitals.keeps = !state_->trouble;
  vitals.file_bytes = state_->file_bytes;
  vitals.log_bytes = state_->log_bytes;
  vitals.queue_bytes = static_cast<std::int64_t>(state_->pending_bytes);
  if (state_->next_due != never) vitals.overdue = std::max(present - state_->next_due, Millis{0});
  vitals.since_look =
      std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - state_->came_round);
  return vitals;
}

Instant Sweeper::now() const {
  const std::lock_guard guard(state_->mutex);
  return Instant{system_clock().since_boot() + state_->tick_offset};
}

std::optional<Error> Sweeper::trouble() const {
  const std::lock_guard guard(state_->mutex);
  return state_->trouble;
}

}  // namespace watchdog::monitor
