#include "support/simulated_server.h"

#include <algorithm>
#include <utility>

namespace watchdog::test {
namespace {

constexpr double model_bytes = 4e9;
constexpr double process_bytes = 3e8;
constexpr double loading_cpu = 0.5;
constexpr std::int64_t first_start = 1'786'700'000;  // a time as servers report it

}  // namespace

SimulatedServer::SimulatedServer(SimulatedModel model, Instant start, unsigned seed)
    : model_(model), random_(seed), time_(static_cast<Ms>(start.time_since_epoch().count())) {
  boot(time_);
}

void SimulatedServer::boot(Ms port_open) {
  slots_.assign(static_cast<std::size_t>(std::max(model_.slots, 1)), Holder{});
  queue_.clear();
  const auto before = totals_.started;
  totals_ = ServerView{};
  totals_.started =
      std::max(before + 1, first_start + static_cast<std::int64_t>(port_open / 1'000));
  hang_.reset();
  batch_runs_ = false;
  swallowed_cpu_ = cpu_ = io_ = loaded_ = 0;
  if (port_open > time_) {
    up_ = Up::down;
    up_at_ = port_open;
    return;
  }
  idle_since_ = time_;
  if (model_.build == ServerBuild::ollama) {
    up_ = Up::unloaded;
    up_at_ = forever;
  } else {
    load(Up::loading);
  }
}

void SimulatedServer::load(Up how) {
  up_ = how;
  up_at_ = time_ + static_cast<Ms>(model_.loading.count());
  if (how == Up::loading && model_.loading.count() == 0) {
    up_ = Up::ready;
    loaded_ = 1;
  }
}

void SimulatedServer::end_process(bool comes_back, Millis lasts) {
  std::erase_if(served_, [](const auto& served) { return served.second.cancelled; });
  for (auto& [id, served] : served_)
    if (!served.over) give(served, PieceKind::lost);
  for (auto& [id, asked] : asked_)
    if (!asked.second) asked.second = ServerView{.is_refused = true};
  boot(comes_back ? time_ + std::max<Ms>(1, static_cast<Ms>(lasts.count())) : forever);
}

void SimulatedServer::set(const SimulatedModel& model) {
  const bool is_another = model.build != model_.build || model.slots != model_.slots;
  model_ = model;
  if (!is_another) return;
  end_process(true, {});
  boot(time_);
}

void SimulatedServer::mend() {
  faults_.clear();
  swallowed_cpu_ = 0;
  for (auto& slot : slots_) slot.stalled = false;
  if (std::exchange(hang_, std::nullopt) && batch_runs_) batch_end_ = time_;
  if (up_ == Up::down) boot(time_);
  failed_ = false;
  if (!batch_runs_) between_batches();
}

// Time.

SimulatedServer::Ms SimulatedServer::next_ping(const Served& served) const {
  const bool silent = served.head && !served.over && !served.cancelled;
  return silent ? served.sent + static_cast<Ms>(model_.ping_every.count()) : forever;
}

bool SimulatedServer::has_pings() const {
  return model_.build == ServerBuild::llama_cpp && model_.ping_every.count() > 0 &&
         (!hang_ || hang_->health_answers);
}

bool SimulatedServer::is_idle() const {
  return queue_.empty() &&
         std::ranges::all_of(slots_, [](const Holder& slot) { return slot.request == 0; });
}

SimulatedServer::Ms SimulatedServer::next_time() const {
  Ms next = up_at_;
  if (batch_runs_ && !hang_) next = std::min(next, batch_end_);
  if (frozen_until_ > time_) next = std::min(next, frozen_until_);
  for (const auto& fault : faults_) {
    const auto at = static_cast<Ms>(fault.at.time_since_epoch().count());
    if (at > time_) next = std::min(next, at);
  }
  if (up_ == Up::ready && model_.sleep_after.count() > 0 && !hang_ && is_idle())
    next = std::min(next, idle_since_ + static_cast<Ms>(model_.sleep_after.count()));
  if (has_pings())
    for (const auto& [id, served] : served_) next = std::min(next, next_ping(served));
  return std::max(next, time_);
}

Instant SimulatedServer::next() const {
  const Ms next = next_time();
  return next == forever ? never : Instant{Millis{static_cast<std::int64_t>(next) + 1}};
}

void SimulatedServer::spend(Ms until) {
  const Ms elapsed = until - time_;
  const bool loads = up_ == Up::loading || up_ == Up::waking;
  if (elapsed > 0 && frozen_until_ <= time_ && up_ != Up::down && up_ != Up::unloaded) {
    const double cores = hang_         ? hang_->cpu
                         : batch_runs_ ? model_.busy_cpu
                         : loads       ? loading_cpu
                                       : model_.idle_cpu;
    cpu_ += elapsed * (cores + swallowed_cpu_);
    if (loads) {
      const double share = elapsed / std::max(1.0, static_cast<Ms>(model_.loading.count()));
      loaded_ = std::min(1.0, loaded_ + share);
      io_ += share * model_bytes;
    }
  }
  time_ = std::max(time_, until);
}

void SimulatedServer::advance(Instant to) {
  const auto end = static_cast<Ms>(to.time_since_epoch().count());
  for (Ms next = next_time(); next <= end; next = next_time()) {
    spend(next);
    if (has_pings())
      for (auto& [id, served] : served_) ping(served, time_);
    if (up_at_ <= time_) {
      if (up_ == Up::down) {
        boot(time_);
      } else {
        up_ = Up::ready;
        up_at_ = forever;
        loaded_ = 1;
        idle_since_ = time_;
      }
    }
    if (batch_runs_ && !hang_ && batch_end_ <= time_) end_batch();
    if (up_ == Up::ready && model_.sleep_after.count() > 0 && !hang_ && is_idle() &&
        idle_since_ + static_cast<Ms>(model_.sleep_after.count()) <= time_) {
      up_ = model_.build == ServerBuild::ollama ? Up::unloaded : Up::asleep;
      loaded_ = 0;
      idle_since_ = forever;
    }
    apply_faults();
    between_batches();
  }
  spend(end);
}

// Requests.

std::uint64_t SimulatedServer::submit(const SimulatedRequest& request) {
  const std::uint64_t id = ++last_;
  Served& served = served_[id];
  served.wanted = request;
  served.wanted.prompt = std::max<std::int64_t>(request.prompt, 1);
  served.wanted.cached = std::clamp<std::int64_t>(request.cached, 0, served.wanted.prompt - 1);
  served.read = served.wanted.cached;
  served.sent = time_;
  const bool has_port =
      up_ != Up::down && !(up_ == Up::loading && model_.build == ServerBuild::vllm);
  if (!has_port) {
    give(served, PieceKind::refused);
    return id;
  }
  if (up_ == Up::loading && model_.build != ServerBuild::ollama) {
    give(served, PieceKind::error, 503, "Loading model", "unavailable_error");
    return id;
  }
  if (model_.build == ServerBuild::vllm) send_head(served);
  const auto swallowing = std::ranges::find_if(faults_, [&](const SimulatedFault& fault) {
    return fault.kind == FaultKind::swallow && fault.at <= now();
  });
  if (swallowing != faults_.end()) {
    swallowed_cpu_ = swallowing->cpu;
    faults_.erase(swallowing);
    failed_ = true;
    return id;
  }
  queue_.push_back(id);
  if (up_ == Up::unloaded) load(Up::loading);
  if (up_ == Up::asleep) load(Up::waking);
  between_batches();
  return id;
}

void SimulatedServer::cancel(std::uint64_t request) {
  const auto found = served_.find(request);
  if (found == served_.end()) return;
  found->second.cancelled = true;
  found->second.pieces.clear();
  between_batches();
}

std::vector<Piece> SimulatedServer::received(std::uint64_t request) {
  const auto found = served_.find(request);
  if (found == served_.end()) return {};
  auto pieces = std::exchange(found->second.pieces, {});
  if (found->second.over) served_.erase(found);
  return pieces;
}

void SimulatedServer::give(Served& served, PieceKind kind, int status, std::string_view message,
                           std::string_view type) {
  served.sent = time_;
  served.over = kind >= PieceKind::done;
  if (served.cancelled) return;
  served.pieces.push_back({.at = now(),
                           .kind = kind,
                           .read = served.read,
                           .cached = served.wanted.cached,
                           .total = served.wanted.prompt,
                           .written = served.written,
                           .status = status,
                           .message = message,
                           .type = type});
}

void SimulatedServer::send_head(Served& served) {
  if (!served.wanted.stream || std::exchange(served.head, true)) return;
  give(served, PieceKind::head, 200);
}

void SimulatedServer::ping(Served& served, Ms until) {
  // Whatever the inference does: these come from another thread.
  if (next_ping(served) <= until && up_ != Up::down) give(served, PieceKind::ping);
}

// The loop of the inference.

void SimulatedServer::between_batches() {
  if (!batch_runs_ && !hang_ && up_ == Up::ready && frozen_until_ <= time_) {
    for (auto& slot : slots_)
      if (slot.request != 0 && served_.at(slot.request).cancelled) release(slot);
    std::erase_if(queue_, [this](std::uint64_t id) { return served_.at(id).cancelled; });
    std::erase_if(served_, [](const auto& served) { return served.second.cancelled; });
    fill_slots();
    apply_faults();
  }
  for (auto& [id, asked] : asked_)
    if (!asked.second && can_answer(asked.first)) asked.second = view();
  if (!batch_runs_ && !hang_ && up_ == Up::ready && frozen_until_ <= time_) begin_batch();
}

void SimulatedServer::fill_slots() {
  for (auto& slot : slots_) {
    while (slot.request == 0 && !queue_.empty()) {
      const std::uint64_t id = queue_.front();
      queue_.pop_front();
      Served& served = served_.at(id);
      if (served.wanted.prompt >= model_.context) {
        give(served, PieceKind::error, 400,
             "the request exceeds the available context size, try increasing it",
             "exceed_context_size_error");
        continue;
      }
      slot = Holder{.request = id,
                    .shown = {.is_processing = true,
                              .task = task_++,
                              .in_context = served.read,
                              .cached = served.wanted.cached,
                              .answer = served.wanted.answer,
                              .stream = served.wanted.stream}};
      if (model_.build != ServerBuild::llama_cpp) continue;
      send_head(served);
      if (served.wanted.return_progress && served.wanted.stream) give(served, PieceKind::progress);
    }
  }
}

void SimulatedServer::begin_batch() {
  std::int64_t writers = 0;
  std::int64_t prompt = 0;
  const auto active = [](const Holder& slot) { return slot.request != 0 && !slot.stalled; };
  for (auto& slot : slots_) {
    slot.in_batch = false;
    if (!active(slot)) continue;
    const Served& served = served_.at(slot.request);
    slot.in_batch = served.read == served.wanted.prompt;
    writers += slot.in_batch ? 1 : 0;
  }
  for (auto& slot : slots_) {
    if (!active(slot) || slot.in_batch) continue;
    Served& served = served_.at(slot.request);
    const std::int64_t room = std::max<std::int64_t>(model_.batch, writers + 1) - writers - prompt;
    served.in_batch = std::min(served.wanted.prompt - served.read, room);
    slot.in_batch = served.in_batch > 0;
    prompt += served.in_batch;
  }
  if (writers + prompt == 0) return;
  Ms lasts = static_cast<Ms>(prompt) / model_.read_rate + (writers > 0 ? 1 / model_.write_rate : 0);
  if (model_.jitter > 0)
    lasts *= std::uniform_real_distribution<>(1 - model_.jitter, 1 + model_.jitter)(random_);
  batch_runs_ = true;
  batch_end_ = time_ + std::max(lasts * 1'000, 0.01);
}

void SimulatedServer::end_batch() {
  batch_runs_ = false;
  ++totals_.decodes;
  for (auto& slot : slots_)
    if (slot.request != 0 && slot.in_batch && !slot.stalled)
      step_of(slot, served_.at(slot.request));
  idle_since_ = time_;
}

void SimulatedServer::step_of(Holder& slot, Served& served) {
  const bool counts_late = model_.build == ServerBuild::llama_cpp_2025;
  const bool counts_prompt_late = counts_late || model_.build == ServerBuild::vllm;
  const auto& wanted = served.wanted;
  if (served.read < wanted.prompt) {
    served.read += served.in_batch;
    slot.shown.read = served.read - wanted.cached;
    slot.shown.in_context = served.read;
    if (!counts_prompt_late) totals_.prompt_total += served.in_batch;
    if (wanted.return_progress && wanted.stream && model_.build == ServerBuild::llama_cpp)
      give(served, PieceKind::progress);
    if (served.read < wanted.prompt) return;
    if (counts_prompt_late) totals_.prompt_total += slot.shown.read;
  }
  if (wanted.answer > 0) {
    slot.shown.written = ++served.written;
    ++slot.shown.in_context;
    if (!counts_late) ++totals_.written_total;
    send_head(served);
    if (wanted.stream) give(served, PieceKind::token);
  }
  if (served.written < wanted.answer) return;
  give(served, PieceKind::done, 200);
  release(slot);
}

void SimulatedServer::release(Holder& slot) {
  if (model_.build == ServerBuild::llama_cpp_2025) totals_.written_total += slot.shown.written;
  slot.shown.is_processing = false;
  slot.request = 0;
  slot.stalled = slot.in_batch = false;
}

// The functions below make faults happen.

SimulatedServer::Holder* SimulatedServer::victim_of(const SimulatedFault& fault) {
  const auto fits = [&](const Holder& slot) {
    if (slot.request == 0 || (fault.request != 0 && fault.request != slot.request)) return false;
    const Served& served = served_.at(slot.request);
    if (served.over) return false;
    const bool reads = served.read < served.wanted.prompt;
    switch (fault.phase) {
      case FaultPhase::reading:
        return reads && served.read >= fault.after;
      case FaultPhase::writing:
        return !reads && served.written >= std::max<std::int64_t>(fault.after, 1);
      case FaultPhase::any:
        break;
    }
    return true;
  };
  const auto found = std::ranges::find_if(slots_, fits);
  return found == slots_.end() ? nullptr : &*found;
}

bool SimulatedServer::is_due(const SimulatedFault& fault) {
  if (fault.at > now() || fault.kind == FaultKind::swallow || up_ == Up::down) return false;
  const bool needs_nobody = fault.kind == FaultKind::restart || fault.kind == FaultKind::gone ||
                            fault.kind == FaultKind::pause || fault.kind == FaultKind::hang ||
                            fault.kind == FaultKind::stop;
  const bool names_nobody = fault.request == 0 && fault.phase == FaultPhase::any;
  return (needs_nobody && names_nobody) || victim_of(fault) != nullptr;
}

void SimulatedServer::apply_faults() {
  for (std::size_t at = 0; at < faults_.size();) {
    if (!is_due(faults_[at])) {
      ++at;
      continue;
    }
    const SimulatedFault fault = faults_[at];
    faults_.erase(faults_.begin() + static_cast<std::ptrdiff_t>(at));
    failed_ = true;
    apply(fault);
  }
}

void SimulatedServer::apply(const SimulatedFault& fault) {
  Holder* const victim = victim_of(fault);
  switch (fault.kind) {
    case FaultKind::hang:
      hang_ = fault;
      break;
    case FaultKind::stop:
      hang_ = fault;
      hang_->slots_answer = hang_->health_answers = false;
      hang_->cpu = 0;
      break;
    case FaultKind::stall_slot:
      victim->stalled = true;
      break;
    case FaultKind::restart:
      end_process(true, fault.lasts);
      break;
    case FaultKind::gone:
      end_process(false, {});
      break;
    case FaultKind::truncate:
      give(served_.at(victim->request), PieceKind::cut);
      release(*victim);
      break;
    case FaultKind::stream_error:
      for (auto& slot : slots_) {
        if (slot.request == 0) continue;
        give(served_.at(slot.request), PieceKind::error, 500, "Compute error.", "server_error");
        release(slot);
      }
      break;
    case FaultKind::pause: {
      const auto lasts = static_cast<Ms>(fault.lasts.count());
      frozen_until_ = time_ + lasts;
      batch_end_ += lasts;
      up_at_ += lasts;
      idle_since_ += lasts;
      for (auto& [id, served] : served_) served.sent += lasts;
      break;
    }
    case FaultKind::swallow:
      break;
  }
}

// The functions below answer questions.

bool SimulatedServer::can_answer(Question question) const {
  if (frozen_until_ > time_) return false;
  if (up_ == Up::down || up_ == Up::loading || up_ == Up::unloaded) return true;
  const bool is_vllm = model_.build == ServerBuild::vllm;
  const bool by_itself = question == Question::health || is_vllm;
  if (hang_) {
    const bool reported =
        question == Question::health ? hang_->health_answers : hang_->slots_answer;
    return by_itself ? hang_->health_answers
                     : reported && model_.build != ServerBuild::llama_cpp_2025;
  }
  if (by_itself) return true;
  if (up_ == Up::asleep) return question == Question::metrics;
  if (up_ == Up::waking) return false;
  return !batch_runs_ || model_.build != ServerBuild::llama_cpp_2025;
}

std::uint64_t SimulatedServer::ask(Question question) {
  const std::uint64_t id = ++last_;
  if (question == Question::slots) {
    if (up_ == Up::asleep) load(Up::waking);
    if (up_ == Up::ready && is_idle()) idle_since_ = time_;
  }
  auto& asked = asked_[id];
  asked.first = question;
  if (can_answer(question)) asked.second = view();
  return id;
}

std::optional<ServerView> SimulatedServer::answer(std::uint64_t asked) {
  const auto found = asked_.find(asked);
  if (found == asked_.end() || !found->second.second) return std::nullopt;
  auto answer = std::move(found->second.second);
  asked_.erase(found);
  return answer;
}

void SimulatedServer::withdraw(std::uint64_t asked) {
  asked_.erase(asked);
}

ServerView SimulatedServer::view() const {
  ServerView view = totals_;
  const bool loads = up_ == Up::loading;
  view.is_refused =
      up_ == Up::down || up_ == Up::unloaded || (loads && model_.build == ServerBuild::vllm);
  view.is_loading = loads;
  view.is_sleeping = up_ == Up::asleep || up_ == Up::waking;
  for (const auto& slot : slots_) {
    view.slots.push_back(slot.shown);
    view.running += slot.request != 0 ? 1 : 0;
  }
  view.queued = static_cast<std::int64_t>(queue_.size());
  return view;
}

ProcessView SimulatedServer::process() const {
  return {.is_there = up_ != Up::down && up_ != Up::unloaded,
          .is_stopped = hang_ && hang_->kind == FaultKind::stop && hang_->shows,
          .cpu = Millis{static_cast<std::int64_t>(cpu_)},
          .io_bytes = static_cast<std::int64_t>(io_),
          .memory_bytes = static_cast<std::int64_t>(process_bytes + loaded_ * model_bytes)};
}

}  // namespace watchdog::test
