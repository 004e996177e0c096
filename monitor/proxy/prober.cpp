#include "proxy/prober.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "proxy/process_sight.h"
#include "proxy/server_questions.h"
#include "proxy/slots_question.h"
#include "watchdog/subprocess.h"

namespace watchdog::monitor {
namespace {

constexpr Millis question_time{2'000};
/// Of `look_every`: how rare looks become while nothing changes, and by how much with each.
constexpr double rarest = 7.5, rarer = 1.5;
/// A look may take a tenth of the time.
constexpr int pause_factor = 10;

Millis since_boot() {
  return system_clock().since_boot();
}

Millis scaled(Millis time, double factor) {
  return Millis{static_cast<std::int64_t>(static_cast<double>(time.count()) * factor)};
}

/// What NVIDIA's own tool says of the busiest GPU; nothing: it is missing, or took too long.
std::optional<int> gpu_percent_by_tool(const std::stop_token& stop) {
  std::stop_source enough;
  const std::stop_callback on_stop(stop, [&] { enough.request_stop(); });
  std::mutex mutex;
  std::condition_variable_any over;
  bool is_over = false;
  const std::jthread limit([&](const std::stop_token& done) {
    std::unique_lock lock(mutex);
    if (!over.wait_for(lock, done, question_time, [&] { return is_over; })) enough.request_stop();
  });
  const auto end = run_process(
      {.argv = {"nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"},
       .ladder = {.terminate = Millis{0}, .kill_verify = Millis{100}},
       .head_bytes = 4'096,
       .tail_bytes = 0},
      {.stop = enough.get_token()});
  {
    const std::lock_guard guard(mutex);
    is_over = true;
  }
  over.notify_all();
  if (!end || end->code != 0) return std::nullopt;
  return gpu_percent_from(end->head);
}

}  // namespace

struct Prober::State {
  State(Options chosen, Listener to, std::shared_ptr<ServerQuestions> asks)
      : options(std::move(chosen)),
        listener(std::move(to)),
        questions(std::move(asks)),
        watch(options.patience) {}

  const Options options;
  const Listener listener;
  const std::shared_ptr<ServerQuestions> questions;
  std::atomic<bool> tells_progress = false;

  std::mutex mutex;
  std::condition_variable_any changed;
  std::map<RequestId, RequestSight> open;
  Millis interval{};  ///< To the next look.

  // Of the thread that looks:
  ServerWatch watch;
  std::map<RequestId, RequestSight> seen;  ///< At the look before.
  std::map<RequestId, Evidence> told;
  std::optional<ServerKind> kind;
  bool from_internet = false, find_again = false;
  bool has_slots = true, has_metrics = true;
  Millis metrics_due{}, gpu_due{}, process_due{};
  std::optional<int> gpu_percent;
  std::optional<ServerProcess> process;
  bool process_gone = false;
  std::vector<pid_t> below;
  std::optional<Millis> cpu;
  Millis cpu_at{};
  enum class Starts : std::uint8_t { untold, of_process, of_header };
  Starts starts = Starts::untold;                                    ///< One unit is kept to.
  std::map<std::string, std::shared_ptr<ServerQuestions>> children;  ///< By port.
  SlotsQuestion slots;
  std::jthread thread;  // the last: it uses all of this

  void run(const std::stop_token& stop);
  Told find(const std::stop_token& stop);
  [[nodiscard]] bool all_moved(const std::map<RequestId, RequestSight>& current) const;
  ServerSight look(bool is_silent, const std::stop_token& stop);
  void look_at_llama(ServerSight& sight, const std::stop_token& stop);
  void look_at_ollama(ServerSight& sight, const std::stop_token& stop);
  void look_at_other(ServerSight& sight, const std::stop_token& stop);
  void look_at_process(ServerSight& sight, bool is_silent, const std::stop_token& stop);
  void take_metrics(const Told& answer, ServerSight& sight);
  void take_started(std::optional<std::int64_t> value, Starts of, ServerSight& sight);
  /// True if anything changed.
  bool tell(std::vector<ServerFinding> findings);
};

Told Prober::State::find(const std::stop_token& stop) {
  auto found = questions->find(stop);
  if (found.kind) {
    kind = *found.kind;
    from_internet = found.last.from_internet;
    has_slots = has_metrics = true;
    find_again = false;
    tells_progress = *kind == ServerKind::llama_cpp;
  }
  return std::move(found.last);
}

void Prober::State::take_started(std::optional<std::int64_t> value, Starts of, ServerSight& sight) {
  if (!value || (starts != Starts::untold && starts != of)) return;
  starts = of;
  sight.started = value;
}

void Prober::State::take_metrics(const Told& answer, ServerSight& sight) {
  metrics_due = since_boot() + scaled(options.look_every, rarest);
  sight.metrics = answer.asked;
  if (answer.asked != Asked::answered) return;
  const auto totals = answer.is_good() ? totals_from(answer.body) : std::nullopt;
  if (!totals) {
    sight.metrics = Asked::unsupported;
    if (answer.status < 500 || answer.status == 501) has_metrics = false;
    return;
  }
  sight.decodes = totals->decodes;
  sight.prompt_total = totals->prompt_total;
  sight.written_total = totals->written_total;
  sight.running = totals->running;
  sight.queued = totals->queued;
  take_started(answer.started ? answer.started : totals->started, Starts::of_header, sight);
}

void Prober::State::look_at_llama(ServerSight& sight, const std::stop_token& stop) {
  const auto answer = questions->ask("/props", question_time, stop);
  sight.reachable = answer.asked;
  sight.is_loading = is_loading_answer(answer.status, answer.body);
  const auto props = answer.is_good() ? props_from(answer.body) : std::nullopt;
  sight.is_sleeping = props && props->is_sleeping;
  // To ask a server that sleeps for its slots would wake it.
  if (props && !sight.is_sleeping && has_slots)
    slots.ask({questions}, options.look_every / 8, stop);
  slots.take(sight);
  has_slots = has_slots && sight.slots != Asked::unsupported;
  const bool is_denied = answer.status == 401 || answer.status == 403;
  if (answer.asked == Asked::answered && (!has_slots || is_denied))
    sight.slots = Asked::unsupported;
  // Each time it is asked its gauges begin anew, which others may read too.
  const bool is_idle =
      sight.slots == Asked::answered && std::ranges::none_of(sight.slot, &SlotSight::is_processing);
  if (props && has_metrics && (!has_slots || is_idle) && since_boot() >= metrics_due)
    take_metrics(questions->ask("/metrics", question_time, stop), sight);
}

void Prober::State::look_at_ollama(ServerSight& sight, const std::stop_token& stop) {
  sight.reachable = questions->ask("/api/ps", question_time, stop).asked;
  SlotsQuestion::Servers servers;
  auto before = std::move(children);
  children.clear();
  for (const auto& port : llama_ports_of(below)) {
    auto& child = children[port];
    if (const auto known = before.find(port); known != before.end()) {
      child = known->second;
    } else if (auto fresh = ServerQuestions::to({.server = {.host = "127.0.0.1", .port = port}})) {
      child = std::make_shared<ServerQuestions>(std::move(*fresh));
    }
    if (child) servers.push_back(child);
  }
  if (!servers.empty()) slots.ask(std::move(servers), options.look_every / 8, stop);
  slots.take(sight);
  // A child that ended is not Ollama's end.
  if (sight.slots == Asked::refused) sight.slots = Asked::unasked;
}

void Prober::State::look_at_other(ServerSight& sight, const std::stop_token& stop) {
  if (from_internet && kind == ServerKind::unknown) return;  // a service tells nothing of itself
  if (has_metrics) {
    const auto answer = questions->ask("/metrics", question_time, stop);
    sight.reachable = answer.asked;
    take_metrics(answer, sight);
  } else {
    sight.reachable =
        questions->ask(kind == ServerKind::vllm ? "/health" : "/v1/models", question_time, stop)
            .asked;
  }
}

void Prober::State::look_at_process(ServerSight& sight, bool is_silent,
                                    const std::stop_token& stop) {
  auto use = process ? use_of(*process) : std::nullopt;
  if (process && !use) {
    process_gone = true;
    process.reset();
    process_due = {};
  }
  if (!process && since_boot() >= process_due) {
    process_due = since_boot() + scaled(options.look_every, rarest);
    process = process_behind(options.server);
    use = process ? use_of(*process) : std::nullopt;
  }
  below.clear();
  if (!use) return;
  process_gone = false;
  below = use->below;
  sight.cpu = use->cpu;
  sight.io_bytes = use->io_bytes;
  sight.memory_bytes = use->memory_bytes;
  take_started(process->start_ticks, Starts::of_process, sight);
  sight.gpu_percent = gpu_percent_in_sysfs();
  // Asking for it costs a process, so only where it may decide.
  const bool is_idle =
      cpu && *sight.cpu - *cpu < scaled(since_boot() - cpu_at, options.patience.cpu_idle);
  cpu = sight.cpu;
  cpu_at = since_boot();
  if (sight.gpu_percent || !is_silent || !is_idle) return;
  if (since_boot() >= gpu_due) {
    gpu_percent = gpu_percent_by_tool(stop);
    gpu_due = since_boot() + scaled(options.look_every, 2 * rarest);
  }
  sight.gpu_percent = gpu_percent;
}

ServerSight Prober::State::look(bool is_silent, const std::stop_token& stop) {
  ServerSight sight;
  look_at_process(sight, is_silent, stop);
  if (is_silent) {
    const bool asks = kind && !find_again;
    if (!asks) sight.reachable = find(stop).asked;
    if (kind && !find_again) {
      if (kind == ServerKind::llama_cpp) {
        look_at_llama(sight, stop);
      } else if (kind == ServerKind::ollama) {
        look_at_ollama(sight, stop);
      } else {
        look_at_other(sight, stop);
      }
    }
    // Who comes back may be somebody else.
    find_again = find_again || sight.reachable == Asked::refused;
  }
  sight.process_gone = process_gone && sight.reachable != Asked::answered;
  sight.at = Instant{since_boot()};
  return sight;
}

bool Prober::State::all_moved(const std::map<RequestId, RequestSight>& current) const {
  return std::ranges::all_of(current, [&](const auto& entry) {
    const auto before = seen.find(entry.first);
    return before != seen.end() && (entry.second.pieces > before->second.pieces ||
                                    entry.second.prompt_read > before->second.prompt_read);
  });
}

bool Prober::State::tell(std::vector<ServerFinding> findings) {
  bool any = false;
  std::map<RequestId, Evidence> kept;
  for (auto& finding : findings) {
    const auto before = told.find(finding.request);
    const auto& is = finding.evidence;
    any = any || before == told.end() || before->second.state != is.state ||
          before->second.done != is.done;
    kept[finding.request] = is;
    if (before == told.end() || before->second != is) listener(finding);
  }
  told = std::move(kept);
  return any;
}

void Prober::State::run(const std::stop_token& stop) {
  (void)find(stop);
  Millis pause{};  // that the look before has earned
  Millis looked = since_boot();
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    if (open.empty()) {
      slots.call_off();
      told.clear();
      seen.clear();
      changed.wait(lock, stop, [this] { return !open.empty(); });
      interval = options.look_every;
    } else {
      const auto due = [&] { return looked + std::max(interval, pause); };
      while (!stop.stop_requested() && !open.empty() && since_boot() < due()) {
        changed.wait_for(lock, stop, due() - since_boot(),
                         [&, was = interval] { return open.empty() || interval != was; });
      }
    }
    if (stop.stop_requested() || open.empty()) continue;
    auto current = open;
    lock.unlock();
    const auto began = since_boot();
    const auto sight = look(!all_moved(current), stop);
    looked = since_boot();
    pause = (looked - began) * pause_factor;
    const bool any = !stop.stop_requested() && tell(watch.look(sight, current));
    seen = std::move(current);
    lock.lock();
    interval = any ? options.look_every
                   : std::min(scaled(interval, rarer), scaled(options.look_every, rarest));
  }
}

Prober::Prober(std::unique_ptr<State> state) : state_(std::move(state)) {}

Prober::~Prober() {
  state_->thread.request_stop();
}

Result<std::unique_ptr<Prober>> Prober::start(Options options, Listener listener) {
  auto questions = ServerQuestions::to(
      {.server = options.server, .api_key = options.api_key, .ca_file = options.ca_file});
  if (!questions) return questions.error();
  auto state = std::make_unique<State>(std::move(options), std::move(listener),
                                       std::make_shared<ServerQuestions>(std::move(*questions)));
  state->thread = std::jthread([of = state.get()](const std::stop_token& stop) { of->run(stop); });
  return std::unique_ptr<Prober>(new Prober(std::move(state)));
}

bool Prober::tells_progress() const {
  return state_->tells_progress;
}

// Whoever passes requests on is not to wake this thread with each.
void Prober::opened(RequestId request) {
  bool hurries = false;
  {
    const std::lock_guard guard(state_->mutex);
    hurries = state_->open.empty() || state_->interval != state_->options.look_every;
    state_->open[request] = {.since = Instant{since_boot()}};
    state_->interval = state_->options.look_every;
  }
  if (hurries) state_->changed.notify_all();
}

void Prober::moved(RequestId request, const RequestSight& sight) {
  bool hurries = false;
  {
    const std::lock_guard guard(state_->mutex);
    const auto known = state_->open.find(request);
    if (known == state_->open.end()) return;
    const auto since = known->second.since;
    known->second = sight;
    known->second.since = since;
    hurries = state_->interval > state_->options.look_every;
    state_->interval = std::min(state_->interval, state_->options.look_every);
  }
  if (hurries) state_->changed.notify_all();
}

void Prober::closed(RequestId request) {
  bool was_last = false;
  {
    const std::lock_guard guard(state_->mutex);
    was_last = state_->open.erase(request) > 0 && state_->open.empty();
  }
  if (was_last) state_->changed.notify_all();
}

}  // namespace watchdog::monitor
