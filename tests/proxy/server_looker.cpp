#include "proxy/server_looker.h"

#include <algorithm>
#include <utility>

namespace watchdog::test {
namespace {

/// Reading llama.cpp's metrics resets its gauges: it is not done more often.
constexpr Millis metrics_every{15'000};

}  // namespace

void ServerLooker::opened(std::uint64_t request) {
  open_[request] = {.since = server_.now()};
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

void ServerLooker::ask_slots(ServerSight& sight) {
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
      SlotSight& seen = sight.slot.emplace_back();
      seen = {.id = static_cast<int>(sight.slot.size()) - 1,
              .is_processing = slot.is_processing,
              .task = slot.task};
      if (!slot.task) continue;
      seen.written = slot.written;
      if (build != ServerBuild::llama_cpp_2025) seen.prompt_read = slot.read;
    }
  }
}

void ServerLooker::ask_metrics(ServerSight& sight) {
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

void ServerLooker::see_process(ServerSight& sight) {
  const ProcessView process = server_.process();
  if (!process.is_there) {
    // Below Ollama it comes and goes with the model.
    const bool is_loss = process_.has_value() && server_.model().build != ServerBuild::ollama;
    sight.process_gone = is_loss;
    return;
  }
  process_ = server_.view().started;
  sight.started = process_;
  sight.cpu = process.cpu;
  sight.io_bytes = process.io_bytes;
  sight.memory_bytes = process.memory_bytes;
}

std::vector<ServerFinding> ServerLooker::look() {
  hear();
  changed_ = std::exchange(heard_, false);
  ServerSight sight{.at = server_.now()};
  const ServerBuild build = server_.model().build;
  const bool is_vllm = build == ServerBuild::vllm;
  if (const auto view = answer_to(health_, Question::health)) {
    // Ollama itself is there, whatever its child does, and tells nothing of it.
    const bool is_ollama = build == ServerBuild::ollama;
    sight.reachable = view->is_refused && !is_ollama ? Asked::refused : Asked::answered;
    sight.is_loading = view->is_loading && (!is_ollama || from_.is_local);
    sight.is_sleeping = view->is_sleeping && build == ServerBuild::llama_cpp;
  } else {
    sight.reachable = Asked::waiting;
  }
  const bool sees_slots = !is_vllm && (build != ServerBuild::ollama || from_.is_local);
  if (sees_slots && !sight.is_sleeping && !sight.is_loading) ask_slots(sight);
  const bool none_works =
      sight.slots != Asked::answered || std::ranges::none_of(sight.slot, &SlotSight::is_processing);
  if (build != ServerBuild::ollama && (is_vllm || from_.has_metrics) && none_works &&
      !sight.is_loading && sight.at >= metrics_due_)
    ask_metrics(sight);
  if (from_.is_local) see_process(sight);
  const auto moved = [&](const ServerSight& a, const ServerSight& b) {
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
