#include "proxy/server/slots_question.h"

#include <algorithm>

namespace watchdog::monitor {
namespace {

constexpr int numbers_of_one_server = 100'000;

/// Adds one server's answer to those before.
void add_answer(const ServerAnswer& given, int server, ServerSample& to) {
  if (given.asked != Asked::answered) {
    to.slots = std::max(to.slots, given.asked == Asked::refused ? Asked::refused : Asked::unasked);
    return;
  }
  if (is_loading_answer(given.status, given.body)) {
    to.is_loading = true;
    return;
  }
  auto slots = given.is_good() ? slot_samples_from(given.body) : std::nullopt;
  if (!slots) {
    to.slots = std::max(to.slots, Asked::unsupported);
    return;
  }
  to.slots = Asked::answered;
  for (auto& slot : *slots) {
    slot.id += server * numbers_of_one_server;
    to.slot.push_back(slot);
  }
}

}  // namespace

SlotsQuestion::SlotsQuestion() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

SlotsQuestion::~SlotsQuestion() {
  thread_.request_stop();
  call_off();
}

void SlotsQuestion::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return question_.has_value(); })) {
    const Servers servers = *question_;
    const auto called_off = called_off_.get_token();
    lock.unlock();
    ServerSample answer;
    int server = 0;
    for (const auto& one : servers)
      add_answer(one->ask("/slots", {}, called_off), server++, answer);
    lock.lock();
    question_.reset();
    answer_.reset();
    if (!called_off.stop_requested()) answer_ = std::move(answer);
    changed_.notify_all();
  }
}

void SlotsQuestion::ask(Servers servers, Millis wait_max, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!question_ && !answer_) {
    question_ = std::move(servers);
    since_ = system_clock().since_boot();
    called_off_ = std::stop_source();
    changed_.notify_all();
  }
  changed_.wait_for(lock, stop, wait_max, [this] { return !question_; });
}

void SlotsQuestion::fill(ServerSample& sample) {
  const std::lock_guard guard(mutex_);
  if (question_) {
    sample.slots = Asked::waiting;
    sample.slots_waiting = system_clock().since_boot() - since_;
  } else if (answer_) {
    sample.slots = answer_->slots;
    sample.slot = std::move(answer_->slot);
    sample.is_loading = sample.is_loading || answer_->is_loading;
    answer_.reset();
  }
}

void SlotsQuestion::call_off() {
  const std::lock_guard guard(mutex_);
  called_off_.request_stop();
  answer_.reset();
}

}  // namespace watchdog::monitor
