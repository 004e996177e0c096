// The thread gathers observations for 20 ms, makes reports of them, and hands all to `keep`. A new
// connection cuts the gathering short: its client may hang up soon, and only an open connection
// leads to its process. So does the end of a refused exchange: its agent may end at once, and a
// hook that reports this end must not come first. While reports cannot be stored, the thread takes
// nothing, so all waits in the queue, whose bytes are bounded. A full queue drops pieces of
// answers, bodies and evidence, but never the begin or end of an exchange. Skipped bytes are
// counted.
#include "proxy/sessions/observation_writer.h"

#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "proxy/sessions/session_recorder.h"
#include "watchdog/session.h"

namespace watchdog::monitor {
namespace {

constexpr Millis turn{1'000};
/// Observations of this time are processed together: a turn for each piece would cost more.
constexpr Millis gathering{20};
/// The limit of remembered connections with their processes.
constexpr std::size_t connections_max = 16'384;
/// Together one transaction.
constexpr std::size_t observations_at_once_max = 4'096;

std::size_t bytes_of(const Observation& observation) {
  std::size_t bytes = sizeof observation;
  if (const auto* piece = std::get_if<AnswerPiece>(&observation.what)) bytes += piece->bytes.size();
  if (const auto* began = std::get_if<ExchangeBegan>(&observation.what); began && began->body)
    bytes += began->body->size();
  return bytes;
}

}  // namespace

struct ObservationWriter::State {
  explicit State(Options given) : options(std::move(given)) {}

  Options options;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Observation> waiting;
  std::size_t waiting_bytes = 0;
  bool stopping = false;
  bool in_haste = false;                      ///< There is no time to gather.
  std::unordered_set<std::uint64_t> refused;  ///< Open exchanges whose answer is an error.

  SessionRecorder recorder{
      {.is_gone = [](const ProcessFacts& process) { return is_running(process) == false; },
       .session_of_trace = options.session_of_trace,
       .spending = options.spending,
       .on_spending =
           [this](const std::string& session, const std::string& text) {
             if (options.warn) options.warn(text + " (session " + session + ")");
           }}};  ///< Of the thread alone, as what follows.
  std::vector<Batch> unkept;
  std::unordered_map<std::uint64_t, ProcessFacts> asking;  ///< By exchange.
  Millis beat_due{};
  bool cannot_save = false;
  std::thread thread;

  std::deque<Observation> next() {
    std::unique_lock guard(mutex);
    changed.wait_for(guard, turn, [this] { return stopping || !waiting.empty(); });
    if (!waiting.empty())
      changed.wait_for(guard, gathering, [this] { return stopping || in_haste; });
    in_haste = false;
    std::deque<Observation> claimed;
    if (waiting.size() <= observations_at_once_max) {
      claimed.swap(waiting);
      waiting_bytes = 0;
      return claimed;
    }
    const auto end = waiting.begin() + observations_at_once_max;
    std::move(waiting.begin(), end, std::back_inserter(claimed));
    waiting.erase(waiting.begin(), end);
    for (const auto& observation : claimed) waiting_bytes -= bytes_of(observation);
    return claimed;
  }

  void add(std::vector<Batch> batches) {
    for (auto& batch : batches) {
      if (unkept.empty() || unkept.back().session != batch.session) {
        unkept.push_back(std::move(batch));
      } else {
        auto& reports = unkept.back().reports;
        std::move(batch.reports.begin(), batch.reports.end(), std::back_inserter(reports));
      }
    }
  }

  /// Observations without memory are dropped: unread answers claim nothing.
  template <class Step>
  static void attempt(const Step& step) {
    try {
      step();
    } catch (const std::bad_alloc&) {
    }
  }

  void understand(Observation observation) {
    attempt([&] {
      see_process(observation);
      add(recorder.record(std::move(observation)));
    });
  }

  /// Says whether a client that hung up is gone.
  void see_process(Observation& observation) {
    if (const auto* began = std::get_if<ExchangeBegan>(&observation.what)) {
      if (began->process && asking.size() < connections_max)
        asking.emplace(observation.exchange, *began->process);
    } else if (auto* ended = std::get_if<ExchangeEnded>(&observation.what)) {
      const auto asked = asking.extract(observation.exchange);
      if (asked.empty() || ended->how != ExchangeEnded::How::client_gone) return;
      ended->client_died = is_running(asked.mapped()) == false;
    }
  }

  /// Reports a fault once, until it is over.
  void save_spending() {
    if (!options.spending) return;
    const auto saved = options.spending->save();
    if (!saved && !std::exchange(cannot_save, true) && options.warn)
      options.warn("budgets are counted in memory alone: " + saved.error().message);
    if (saved) cannot_save = false;
  }

  void run() {
    while (true) {
      // Reports that cannot be stored wait as observations, whose memory is bounded.
      if (unkept.empty()) {
        for (auto& observation : next()) understand(std::move(observation));
        const auto now = system_clock().since_boot();
        if (now >= beat_due) {
          beat_due = now + turn;
          attempt([this] { add(recorder.beat(system_clock().wall())); });
          attempt([this] { save_spending(); });
        }
      } else {
        std::unique_lock guard(mutex);
        changed.wait_for(guard, turn, [this] { return stopping; });
      }
      if (!unkept.empty()) attempt([this] { options.keep(unkept); });
      const std::lock_guard guard(mutex);
      if (stopping && (waiting.empty() || !unkept.empty())) break;
    }
    attempt([this] { save_spending(); });
  }
};

ObservationWriter::ObservationWriter(Options options)
    : state_(std::make_unique<State>(std::move(options))) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

ObservationWriter::~ObservationWriter() {
  {
    const std::lock_guard guard(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
  }
  state_->thread.join();
}

std::string ObservationWriter::owner_of(std::string_view answer) const {
  return state_->recorder.owner_of(answer);
}

void ObservationWriter::add(Observation observation) {
  const std::lock_guard guard(state_->mutex);
  auto bytes = bytes_of(observation);
  if (state_->waiting_bytes + bytes > state_->options.waiting_bytes_max) {
    if (const auto* piece = std::get_if<AnswerPiece>(&observation.what)) {
      observation.what = AnswerSkipped{static_cast<std::int64_t>(piece->bytes.size())};
      auto* last = state_->waiting.empty() ? nullptr : &state_->waiting.back();
      auto* skipped = last != nullptr ? std::get_if<AnswerSkipped>(&last->what) : nullptr;
      if (skipped != nullptr && last->exchange == observation.exchange) {
        skipped->bytes += std::get<AnswerSkipped>(observation.what).bytes;
        return;
      }
    }
    if (auto* began = std::get_if<ExchangeBegan>(&observation.what)) began->body.reset();
    if (std::holds_alternative<ExchangeEvidence>(observation.what)) return;
    bytes = bytes_of(observation);
  }
  const auto* answer = std::get_if<AnswerBegan>(&observation.what);
  if (answer != nullptr && answer->status >= 400 && state_->refused.size() < connections_max)
    state_->refused.insert(observation.exchange);
  const bool ends_refused = std::holds_alternative<ExchangeEnded>(observation.what) &&
                            state_->refused.erase(observation.exchange) > 0;
  if (ends_refused) state_->in_haste = true;
  state_->waiting_bytes += bytes;
  state_->waiting.push_back(std::move(observation));
  if (ends_refused || state_->waiting.size() == 1) state_->changed.notify_one();
}

}  // namespace watchdog::monitor
