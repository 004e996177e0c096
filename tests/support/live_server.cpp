#include "support/live_server.h"

#include <algorithm>
#include <utility>

namespace watchdog::test {
namespace {

constexpr std::chrono::milliseconds look_for_gone{50};
constexpr std::chrono::milliseconds burn_every{50};

}  // namespace

LiveServer::LiveServer(Options options) : options_(std::move(options)), server_(options_.model) {}

LiveServer::~LiveServer() {
  stop();
}

void LiveServer::start() {
  clock_ = std::thread([this] { pass_time(); });
  burner_ = std::thread([this] { burn(); });
}

void LiveServer::stop() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  asked_.notify_all();
  changed_.notify_all();
  if (clock_.joinable()) clock_.join();
  if (burner_.joinable()) burner_.join();
}

Instant LiveServer::virtual_now() const {
  const std::chrono::duration<double, std::milli> passed = Clock::now() - start_;
  return Instant{Millis{static_cast<std::int64_t>(passed.count() * options_.time_scale)}};
}

LiveServer::Clock::time_point LiveServer::real_of(Instant at) const {
  const std::chrono::duration<double, std::milli> passed(
      static_cast<double>(at.time_since_epoch().count()) / options_.time_scale);
  return start_ + std::chrono::ceil<Clock::duration>(passed);
}

void LiveServer::catch_up() {
  const Instant now = virtual_now();
  const bool happens = server_.next() <= now;
  server_.advance(now);
  if (happens) changed_.notify_all();
}

void LiveServer::pass_time() {
  bool is_open = true;
  std::unique_lock guard(mutex_);
  while (!stopping_) {
    catch_up();
    const bool refused = server_.view().is_refused && server_.model().build != ServerBuild::ollama;
    if (refused == is_open && options_.port_changed) {
      is_open = !refused;
      guard.unlock();
      options_.port_changed(is_open);
      guard.lock();
      continue;
    }
    const Instant next = server_.next();
    if (next == never) {
      asked_.wait(guard);
    } else {
      asked_.wait_until(guard, real_of(next));
    }
  }
}

void LiveServer::burn() {
  Millis before{};
  Instant since{};
  std::unique_lock guard(mutex_);
  while (!stopping_) {
    catch_up();
    const Millis cpu = server_.process().cpu;
    const auto passed = static_cast<double>((server_.now() - since).count());
    const double cores = passed > 0 ? static_cast<double>((cpu - before).count()) / passed : 0;
    before = cpu;
    since = server_.now();
    guard.unlock();
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                          burn_every * std::clamp(cores * options_.burn, 0.0, 0.9));
    while (Clock::now() < until) {
    }
    guard.lock();
    changed_.wait_until(guard, Clock::now() + burn_every, [this] { return stopping_; });
  }
}

template <class Ready>
bool LiveServer::wait(std::unique_lock<std::mutex>& guard, const Gone& gone, const Ready& ready) {
  for (;;) {
    catch_up();
    if (ready()) return true;
    if (stopping_ || gone()) return false;
    changed_.wait_for(guard, look_for_gone);
  }
}

std::uint64_t LiveServer::submit(const SimulatedRequest& request) {
  const std::lock_guard guard(mutex_);
  catch_up();
  const std::uint64_t id = server_.submit(request);
  asked_.notify_all();
  return id;
}

std::vector<Piece> LiveServer::wait_pieces(std::uint64_t request, const Gone& gone) {
  std::unique_lock guard(mutex_);
  std::vector<Piece> pieces;
  if (!wait(guard, gone, [&] { return !(pieces = server_.received(request)).empty(); })) {
    server_.cancel(request);
    asked_.notify_all();
  }
  return pieces;
}

std::optional<ServerView> LiveServer::ask(Question question, const Gone& gone) {
  std::unique_lock guard(mutex_);
  catch_up();
  const std::uint64_t id = server_.ask(question);
  asked_.notify_all();
  std::optional<ServerView> view;
  if (!wait(guard, gone, [&] { return (view = server_.answer(id)).has_value(); }))
    server_.withdraw(id);
  return view;
}

bool LiveServer::wait_loaded(const Gone& gone) {
  std::unique_lock guard(mutex_);
  return wait(guard, gone, [this] { return !server_.view().is_loading; });
}

void LiveServer::change(const std::function<void(SimulatedServer&)>& by) {
  const std::lock_guard guard(mutex_);
  catch_up();
  by(server_);
  asked_.notify_all();
}

SimulatedModel LiveServer::model() {
  const std::lock_guard guard(mutex_);
  return server_.model();
}

Instant LiveServer::now() {
  return virtual_now();
}

}  // namespace watchdog::test
