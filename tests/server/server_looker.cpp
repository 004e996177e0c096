#include "server/server_looker.h"

#include <algorithm>
#include <utility>

namespace watchdog::test {
namespace {

/// Reading llama.cpp's metrics resets its gauges: it is not done more often.
constexpr Millis metrics_every{15'000};
constexpr Millis question_time{2'000};

}  // namespace

void ServerLooker::opened(std::uint64_t request, bool stream) {
  open_[request] = {.since = server_.now(), .parameters = {.stream = stream}};
}

void ServerLooker::hear() {
  for (auto at = open_.begin(); at != open_.end();) {
    bool over = false;
    auto& [request, sight] = *at;
    for (const Piece& piece : server_.received(request)) {
      heard_ = heard_ || piece.kind != PieceKind::ping;
      if (piece.kind == PieceKind::progress) {
        sight.prompt_read = piece.read;
        sight.prompt_tokens = piece.total;
      }
      if (piece.kind == PieceKind::token) ++sight.pieces;
      const bool is_loss = piece.kind >= PieceKind::lost;
      if (is_loss && !from_.notices_loss) continue;
      over = over || piece.kind >= PieceKind::done;
      if (hearer_) hearer_(request, piece);
    }
    at = over ? open_.erase(at) : std::next(at);
  }
}

std::optional<ServerView> ServerLooker::answer_to(std::optional<std::uint64_t>& asked,
                                                  Question question) {
  if (!asked) asked = server_.ask(question);
  auto view = server_.answer(*asked);
  if (view) asked.reset();
  return view;
}

void ServerLooker::ask_slots(ServerSample& sight) {
  if (!slots_) slots_since_ = sight.at;
  const auto view = answer_to(slots_, Question::slots);
  const ServerBuild build = server_.model().build;
  if (!view) {
    sight.slots = Asked::waiting;
    sight.slots_waiting = sight.at - slots_since_;
  } else if (view->is_refused) {
    if (build != ServerBuild::ollama) sight.slots = Asked::refused;
  } else if (view->is_loading) {
    sight.is_loading = true;
  } else if (!from_.has_slots) {
    sight.slots = Asked::unsupported;
  } else {
    sight.slots = Asked::answered;
    for (const SlotView& slot : view->slots) {
      SlotSample& seen = sight.slot.emplace_back();
      seen = {.id = static_cast<int>(sight.slot.size()) - 1,
              .is_processing = slot.is_processing,
              .task = slot.task};
      if (!slot.task) continue;
      seen.written = slot.written;
      if (build != ServerBuild::ollama) seen.parameters.stream = slot.stream;
      if (build != ServerBuild::llama_cpp_2025) seen.prompt_read = slot.read;
    }
  }
}

void ServerLooker::ask_metrics(ServerSample& sight) {
  const auto view = answer_to(metrics_, Question::metrics);
  if (!view) {
    sight.metrics = Asked::waiting;
    return;
  }
  const bool is_vllm = server_.model().build == ServerBuild::vllm;
  if (!is_vllm) metrics_due_ = sight.at + metrics_every;
  sight.metrics = view->is_refused ? Asked::refused : Asked::answered;
  if (view->is_refused || view->is_loading) return;
  if (!is_vllm) sight.decodes = view->decodes;
  sight.prompt_total = view->prompt_total;
  sight.written_total = view->written_total;
  sight.running = view->running;
  sight.queued = view->queued;
  sight.started = view->started;
}

void ServerLooker::see_process(ServerSample& sight) {
  const ProcessView process = server_.process();
  if (!process.is_there) {
    // Below Ollama it comes and goes with the model.
    const bool is_loss = process_.has_value() && server_.model().build != ServerBuild::ollama;
    sight.process_gone = is_loss;
    return;
  }
  sight.stopped = process.is_stopped ? 4'711 : 0;
  process_ = server_.view().started;
  sight.started = process_;
  sight.cpu = process.cpu;
  sight.io_bytes = process.io_bytes;
  sight.memory_bytes = process.memory_bytes;
}

void ServerLooker::ask_all(ServerSample& sight) {
  const ServerBuild build = server_.model().build;
  const bool is_vllm = build == ServerBuild::vllm;
  if (const auto view = answer_to(health_, Question::health)) {
    // Ollama itself is there, whatever its child does, and tells nothing of it.
    const bool is_ollama = build == ServerBuild::ollama;
    sight.reachable = view->is_refused && !is_ollama ? Asked::refused : Asked::answered;
    sight.is_loading = view->is_loading && (!is_ollama || from_.is_local);
    sight.is_sleeping = view->is_sleeping && build == ServerBuild::llama_cpp;
  } else {
    server_.withdraw(*std::exchange(health_, std::nullopt));
    sight.reachable = Asked::waiting;
    server_.advance(sight.at + question_time);
    sight.at = server_.now();
    hear();
  }
  reached_ = sight.reachable;
  const bool sees_slots = !is_vllm && (build != ServerBuild::ollama || from_.is_local);
  const bool is_there = sight.reachable == Asked::answered || sight.reachable == Asked::refused;
  if (sees_slots && is_there && !sight.is_sleeping && !sight.is_loading) ask_slots(sight);
  const bool none_works = sight.slots != Asked::answered ||
                          std::ranges::none_of(sight.slot, &SlotSample::is_processing);
  if (build != ServerBuild::ollama && (is_vllm || from_.has_metrics) && none_works && is_there &&
      !sight.is_loading && sight.at >= metrics_due_)
    ask_metrics(sight);
}

std::vector<ServerFinding> ServerLooker::look(bool may_ask) {
  hear();
  ServerSample sight{.at = server_.now()};
  if (from_.is_local) see_process(sight);
  asked_ = sight.stopped == 0 && (may_ask || sight.process_gone);
  if (asked_) {
    ask_all(sight);
  } else if (reached_ == Asked::waiting) {
    sight.reachable = Asked::waiting;
  }
  if (sight.slots == Asked::unasked && slots_) ask_slots(sight);
  changed_ = std::exchange(heard_, false);
  const auto moved = [&](const ServerSample& a, const ServerSample& b) {
    if (a.slot.size() != b.slot.size()) return true;
    for (std::size_t at = 0; at < a.slot.size(); ++at)
      if (a.slot[at].task != b.slot[at].task || a.slot[at].written != b.slot[at].written ||
          a.slot[at].prompt_read != b.slot[at].prompt_read)
        return true;
    return false;
  };
  changed_ = changed_ || moved(sight, last_);
  auto findings = watch_.look(sight, open_);
  last_ = std::move(sight);
  return findings;
}

}  // namespace watchdog::test
