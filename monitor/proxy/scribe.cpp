#include "proxy/scribe.h"

#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "proxy/chronicle.h"

namespace watchdog::monitor {
namespace {

constexpr Millis turn{1'000};
/// What comes together is read and kept together: a turn for each piece would cost more than that.
constexpr Millis gathering{20};
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

struct Scribe::State {
  explicit State(Options given) : options(std::move(given)) {}

  Options options;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Observation> waiting;
  std::size_t waiting_bytes = 0;
  bool stopping = false;

  Chronicle chronicle;  ///< Of the thread alone, as what follows.
  std::vector<Batch> unkept;
  Millis beat_due{};
  std::thread thread;

  std::deque<Observation> next() {
    std::unique_lock guard(mutex);
    changed.wait_for(guard, turn, [this] { return stopping || !waiting.empty(); });
    if (!waiting.empty()) changed.wait_for(guard, gathering, [this] { return stopping; });
    std::deque<Observation> taken;
    if (waiting.size() <= observations_at_once_max) {
      taken.swap(waiting);
      waiting_bytes = 0;
      return taken;
    }
    const auto end = waiting.begin() + observations_at_once_max;
    std::move(waiting.begin(), end, std::back_inserter(taken));
    waiting.erase(waiting.begin(), end);
    for (const auto& observation : taken) waiting_bytes -= bytes_of(observation);
    return taken;
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

  void run() {
    while (true) {
      // What cannot be kept waits as observations: there its room is bounded.
      if (unkept.empty()) {
        for (auto& observation : next()) add(chronicle.take(std::move(observation)));
        const auto now = system_clock().since_boot();
        if (now >= beat_due) {
          add(chronicle.beat(system_clock().wall()));
          beat_due = now + turn;
        }
      } else {
        std::unique_lock guard(mutex);
        changed.wait_for(guard, turn, [this] { return stopping; });
      }
      if (!unkept.empty()) options.keep(unkept);
      const std::lock_guard guard(mutex);
      if (stopping && (waiting.empty() || !unkept.empty())) return;
    }
  }
};

Scribe::Scribe(Options options) : state_(std::make_unique<State>(std::move(options))) {
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

Scribe::~Scribe() {
  {
    const std::lock_guard guard(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
  }
  state_->thread.join();
}

void Scribe::take(Observation observation) {
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
  state_->waiting_bytes += bytes;
  state_->waiting.push_back(std::move(observation));
  if (state_->waiting.size() == 1) state_->changed.notify_one();
}

}  // namespace watchdog::monitor
