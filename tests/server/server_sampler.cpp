#include "server/server_sampler.h"

#include <algorithm>
#include <utility>

namespace watchdog::test {
namespace {

/// Reading llama.cpp's metrics resets its gauges: it is not done more often.
constexpr Millis metrics_every{15'000};
constexpr Millis question_time{2'000};

}  // namespace

void ServerSampler::opened(std::uint64_t request, bool stream) {
  open_[request] = {.since = server_.now(), .parameters = {.stream = stream}};
}

void ServerSampler::hear() {
  for (auto at = open_.begin(); at != open_.end();) {
    bool over = false;
    auto& [request, sample] = *at;
    for (const Piece& piece : server_.received(request)) {
      heard_ = heard_ || piece.kind != PieceKind::ping;
      if (piece.kind == PieceKind::progress) {
        sample.prompt_read = piece.read;
        sample.prompt_tokens = piece.total;
      }
      if (piece.kind == PieceKind::token) ++sample.pieces;
      const bool is_loss = piece.kind >= PieceKind::lost;
      if (is_loss && !from_.notices_loss) continue;
      over = over || piece.kind >= PieceKind::done;
      if (sink_) sink_(request, piece);
    }
    at = over ? open_.erase(at) : std::next(at);
  }
}

std::optional<ServerView> ServerSampler::answer_to(std::optional<std::uint64_t>& asked,
                                                   Question question) {
  if (!asked) asked = server_.ask(question);
  auto view = server_.answer(*asked);
  if (view) asked.reset();
  return view;
}

void ServerSampler::ask_slots(ServerSample& sample) {
  if (!slots_) slots_since_ = sample.at;
  const auto view = answer_to(slots_, Question::slots);
  const ServerBuild build = server_.model().build;
  if (!view) {
    sample.slots = Asked::waiting;
    sample.slots_waiting = sample.at - slots_since_;
  } else if (view->is_refused) {
    if (build != ServerBuild::ollama) sample.slots = Asked::refused;
  } else if (view->is_loading) {
    sample.is_loading = true;
  } else if (!from_.has_slots) {
    sample.slots = Asked::unsupported;
  } else {
    sample.slots = Asked::answered;
    for (const SlotView& slot : view->slots) {
      SlotSample& seen = sample.slot.emplace_back();
      seen = {.id = static_cast<int>(sample.slot.size()) - 1,
              .is_processing = slot.is_processing,
              .task = slot.task};
      if (!slot.task) continue;
      seen.written = slot.written;
      if (build != ServerBuild::ollama) seen.parameters.stream = slot.stream;
      if (build != ServerBuild::llama_cpp_2025) seen.prompt_read = slot.read;
    }
  }
}

void ServerSampler::ask_metrics(ServerSample& sample) {
  const auto view = answer_to(metrics_, Question::metrics);
  if (!view) {
    sample.metrics = Asked::waiting;
    return;
  }
  const bool is_vllm = server_.model().build == ServerBuild::vllm;
  if (!is_vllm) metrics_due_ = sample.at + metrics_every;
  sample.metrics = view->is_refused ? Asked::refused : Asked::answered;
  if (view->is_refused || view->is_loading) return;
  if (!is_vllm) sample.decodes = view->decodes;
  sample.prompt_total = view->prompt_total;
  sample.written_total = view->written_total;
  sample.running = view->running;
  sample.queued = view->queued;
  sample.started = view->started;
}

void ServerSampler::see_process(ServerSample& sample) {
  const ProcessView process = server_.process();
  if (!process.is_there) {
    // Below Ollama it comes and goes with the model.
    const bool is_loss = process_.has_value() && server_.model().build != ServerBuild::ollama;
    sample.process_gone = is_loss;
    return;
  }
  sample.stopped = process.is_stopped ? 4'711 : 0;
  process_ = server_.view().started;
  sample.started = process_;
  sample.cpu = process.cpu;
  sample.io_bytes = process.io_bytes;
  sample.memory_bytes = process.memory_bytes;
}

void ServerSampler::ask_all(ServerSample& sample) {
  const ServerBuild build = server_.model().build;
  const bool is_vllm = build == ServerBuild::vllm;
  if (const auto view = answer_to(health_, Question::health)) {
    // Ollama itself is there, whatever its child does, and shows nothing of it.
    const bool is_ollama = build == ServerBuild::ollama;
    sample.reachable = view->is_refused && !is_ollama ? Asked::refused : Asked::answered;
    sample.is_loading = view->is_loading && (!is_ollama || from_.is_local);
    sample.is_sleeping = view->is_sleeping && build == ServerBuild::llama_cpp;
  } else {
    server_.withdraw(*std::exchange(health_, std::nullopt));
    sample.reachable = Asked::waiting;
    server_.advance(sample.at + question_time);
    sample.at = server_.now();
    hear();
  }
  reached_ = sample.reachable;
  const bool sees_slots = !is_vllm && (build != ServerBuild::ollama || from_.is_local);
  const bool is_there = sample.reachable == Asked::answered || sample.reachable == Asked::refused;
  if (sees_slots && is_there && !sample.is_sleeping && !sample.is_loading) ask_slots(sample);
  const bool none_works = sample.slots != Asked::answered ||
                          std::ranges::none_of(sample.slot, &SlotSample::is_processing);
  if (build != ServerBuild::ollama && (is_vllm || from_.has_metrics) && none_works && is_there &&
      !sample.is_loading && sample.at >= metrics_due_)
    ask_metrics(sample);
}

std::vector<ServerFinding> ServerSampler::look(bool may_ask) {
  hear();
  ServerSample sample{.at = server_.now()};
  if (from_.is_local) see_process(sample);
  asked_ = sample.stopped == 0 && (may_ask || sample.process_gone);
  if (asked_) {
    ask_all(sample);
  } else if (reached_ == Asked::waiting) {
    sample.reachable = Asked::waiting;
  }
  if (sample.slots == Asked::unasked && slots_) ask_slots(sample);
  changed_ = std::exchange(heard_, false);
  const auto moved = [&](const ServerSample& a, const ServerSample& b) {
    if (a.slot.size() != b.slot.size()) return true;
    for (std::size_t at = 0; at < a.slot.size(); ++at)
      if (a.slot[at].task != b.slot[at].task || a.slot[at].written != b.slot[at].written ||
          a.slot[at].prompt_read != b.slot[at].prompt_read)
        return true;
    return false;
  };
  changed_ = changed_ || moved(sample, last_);
  auto findings = watch_.look(sample, open_);
  last_ = std::move(sample);
  return findings;
}

}  // namespace watchdog::test
