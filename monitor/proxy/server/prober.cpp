// The sampling thread of one model server. It sleeps while no request is open. A sample takes
// the open requests, asks the server and `/proc` as far as `ProbeRhythm` allows, gives all of it
// to `ServerWatch`, and passes changed findings to the listener. A stream that stood still and
// moves causes the next sample at once.
#include "proxy/server/prober.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "process/process_sample.h"
#include "proxy/server/server_questions.h"
#include "proxy/server/slots_question.h"
#include "watchdog/subprocess.h"

namespace watchdog::monitor {
namespace {

constexpr Millis question_time{2'000};
/// Of `look_every`: how rare the dearer questions are.
constexpr double rarest = 7.5;

Millis since_boot() {
  return system_clock().since_boot();
}

Millis scaled(Millis time, double factor) {
  return Millis{static_cast<std::int64_t>(static_cast<double>(time.count()) * factor)};
}

/// Returns NVIDIA's own value for the busiest GPU; nothing: the tool is missing, or took too long.
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
        rhythm(options.look_every),
        watch(options.limits) {}

  const Options options;
  const Listener listener;
  const std::shared_ptr<ServerQuestions> questions;
  std::atomic<bool> shows_progress = false;

  std::mutex mutex;
  std::condition_variable_any changed;
  std::map<RequestId, RequestSample> open;
  ProbeRhythm rhythm;
  std::set<RequestId> stalled;  ///< Said not to move at the latest look. If one of them does,
  bool at_once = false;         ///< the next look comes now,
  std::stop_source question;    ///< and what the one under way still asks is called off.

  // Used by the sampling thread:
  ServerWatch watch;
  std::map<RequestId, RequestSample> seen;  ///< At the look before.
  std::map<RequestId, ServerFinding> published;
  std::optional<ServerKind> kind;
  bool from_internet = false, find_again = false;
  bool has_slots = true, has_metrics = true;
  Millis slots_due{}, metrics_due{}, gpu_due{}, process_due{};
  std::optional<int> gpu_percent;
  std::optional<ServerProcess> process;
  bool process_gone = false;
  Asked reached = Asked::unasked;  ///< As of the latest question.
  Millis in_vain{};                ///< Of the look that is under way: spent on no answer.
  bool asked = false;              ///< Likewise: it is more than a look at the process.
  std::vector<pid_t> below;
  std::optional<Millis> cpu;
  Millis cpu_at{};
  enum class Starts : std::uint8_t { unknown, of_process, of_header };
  Starts starts = Starts::unknown;                                   ///< One unit is kept to.
  std::map<std::string, std::shared_ptr<ServerQuestions>> children;  ///< By port.
  SlotsQuestion slots;
  std::jthread thread;  // the last: it uses all of this

  void run(const std::stop_token& stop);
  ServerAnswer find(const std::stop_token& stop);
  ServerAnswer ask(std::string_view path, const std::stop_token& stop);
  void read_slots(ServerSample& sample);
  void ask_slots(SlotsQuestion::Servers servers, ServerSample& sample, const std::stop_token& stop);
  [[nodiscard]] bool all_moved(const std::map<RequestId, RequestSample>& current) const;
  ServerSample look(bool is_silent, bool may_ask, const std::stop_token& stop);
  void ask_all(ServerSample& sample, const std::stop_token& stop);
  [[nodiscard]] pid_t stopped_of(const ProcessUse& use) const;
  void look_at_llama(ServerSample& sample, const std::stop_token& stop);
  void look_at_ollama(ServerSample& sample, const std::stop_token& stop);
  void look_at_other(ServerSample& sample, const std::stop_token& stop);
  void look_at_process(ServerSample& sample, bool is_silent, const std::stop_token& stop);
  void read_metrics(const ServerAnswer& answer, ServerSample& sample);
  void read_started(std::optional<std::int64_t> value, Starts of, ServerSample& sample);
  /// True if anything changed.
  bool publish(std::vector<ServerFinding> findings);
  void note_stalled();
};

ServerAnswer Prober::State::ask(std::string_view path, const std::stop_token& stop) {
  const auto began = since_boot();
  auto given = questions->ask(path, question_time, stop);
  if (given.asked == Asked::waiting) in_vain += since_boot() - began;
  return given;
}

/// Also what was asked at an earlier look.
void Prober::State::read_slots(ServerSample& sample) {
  slots.fill(sample);
  if (kind == ServerKind::llama_cpp && sample.slots == Asked::unsupported) has_slots = false;
  if (kind != ServerKind::ollama) return;
  // A child that ended is not Ollama's end, and is asked in Ollama's own words.
  if (sample.slots == Asked::refused) sample.slots = Asked::unasked;
  for (auto& slot : sample.slot) slot.parameters = {};
}

void Prober::State::ask_slots(SlotsQuestion::Servers servers, ServerSample& sample,
                              const std::stop_token& stop) {
  const auto began = since_boot();
  if (!servers.empty() && began >= slots_due) {
    slots.ask(std::move(servers), options.look_every / 8, stop);
    slots_due = began + options.slots_apart;
  }
  read_slots(sample);
  if (sample.slots == Asked::waiting) in_vain += since_boot() - began;
}

ServerAnswer Prober::State::find(const std::stop_token& stop) {
  const auto began = since_boot();
  auto found = questions->find(stop);
  if (found.last.asked == Asked::waiting) in_vain += since_boot() - began;
  if (found.kind) {
    kind = *found.kind;
    from_internet = found.last.from_internet;
    has_slots = has_metrics = true;
    find_again = false;
    shows_progress = *kind == ServerKind::llama_cpp;
  }
  return std::move(found.last);
}

void Prober::State::read_started(std::optional<std::int64_t> value, Starts of,
                                 ServerSample& sample) {
  if (!value || (starts != Starts::unknown && starts != of)) return;
  starts = of;
  sample.started = value;
}

void Prober::State::read_metrics(const ServerAnswer& answer, ServerSample& sample) {
  metrics_due = since_boot() + scaled(options.look_every, rarest);
  sample.metrics = answer.asked;
  if (answer.asked != Asked::answered) return;
  const auto totals = answer.is_good() ? totals_from(answer.body) : std::nullopt;
  if (!totals) {
    sample.metrics = Asked::unsupported;
    if (answer.status < 500 || answer.status == 501) has_metrics = false;
    return;
  }
  sample.decodes = totals->decodes;
  sample.prompt_total = totals->prompt_total;
  sample.written_total = totals->written_total;
  sample.running = totals->running;
  sample.queued = totals->queued;
  read_started(answer.started ? answer.started : totals->started, Starts::of_header, sample);
}

void Prober::State::look_at_llama(ServerSample& sample, const std::stop_token& stop) {
  const auto answer = ask("/props", stop);
  sample.reachable = answer.asked;
  sample.is_loading = is_loading_answer(answer.status, answer.body);
  const auto props = answer.is_good() ? props_from(answer.body) : std::nullopt;
  sample.is_sleeping = props && props->is_sleeping;
  // To ask a server that sleeps for its slots would wake it.
  const bool asks_slots = props && !sample.is_sleeping && has_slots;
  ask_slots(asks_slots ? SlotsQuestion::Servers{questions} : SlotsQuestion::Servers{}, sample,
            stop);
  const bool is_denied = answer.status == 401 || answer.status == 403;
  if (answer.asked == Asked::answered && (!has_slots || is_denied))
    sample.slots = Asked::unsupported;
  // Each question resets its gauges, which others may read too.
  const bool is_idle = sample.slots == Asked::answered &&
                       std::ranges::none_of(sample.slot, &SlotSample::is_processing);
  if (props && has_metrics && (!has_slots || is_idle) && since_boot() >= metrics_due)
    read_metrics(ask("/metrics", stop), sample);
}

void Prober::State::look_at_ollama(ServerSample& sample, const std::stop_token& stop) {
  sample.reachable = ask("/api/ps", stop).asked;
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
  ask_slots(std::move(servers), sample, stop);
}

void Prober::State::look_at_other(ServerSample& sample, const std::stop_token& stop) {
  if (from_internet && kind == ServerKind::unknown)
    return;  // a service reports nothing about itself
  if (has_metrics) {
    const auto answer = ask("/metrics", stop);
    sample.reachable = answer.asked;
    read_metrics(answer, sample);
  } else {
    sample.reachable = ask(kind == ServerKind::vllm ? "/health" : "/v1/models", stop).asked;
  }
}

void Prober::State::look_at_process(ServerSample& sample, bool is_silent,
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
  sample.stopped = stopped_of(*use);
  sample.cpu = use->cpu;
  sample.io_bytes = use->io_bytes;
  sample.memory_bytes = use->memory_bytes;
  read_started(process->start_ticks, Starts::of_process, sample);
  sample.gpu_percent = gpu_percent_in_sysfs();
  // Asking for it costs a process, so only where it may decide.
  const bool is_idle =
      cpu && *sample.cpu - *cpu < scaled(since_boot() - cpu_at, options.limits.cpu_idle);
  cpu = sample.cpu;
  cpu_at = since_boot();
  if (sample.gpu_percent || !is_silent || !is_idle) return;
  if (since_boot() >= gpu_due) {
    gpu_percent = gpu_percent_by_tool(stop);
    gpu_due = since_boot() + scaled(options.look_every, 2 * rarest);
  }
  sample.gpu_percent = gpu_percent;
}

/// For Ollama the servers of its models count: it serves nothing if all of them are stopped.
pid_t Prober::State::stopped_of(const ProcessUse& use) const {
  if (use.stopped.empty()) return 0;
  if (std::ranges::find(use.stopped, process->pid) != use.stopped.end()) return process->pid;
  if (kind != ServerKind::ollama) return 0;
  const auto serving = llama_ports_of(use.below);
  return !serving.empty() && llama_ports_of(use.stopped).size() == serving.size()
             ? use.stopped.front()
             : 0;
}

void Prober::State::ask_all(ServerSample& sample, const std::stop_token& stop) {
  const bool is_known = kind && !find_again;
  if (!is_known) sample.reachable = find(stop).asked;
  if (kind && !find_again) {
    if (kind == ServerKind::llama_cpp) {
      look_at_llama(sample, stop);
    } else if (kind == ServerKind::ollama) {
      look_at_ollama(sample, stop);
    } else {
      look_at_other(sample, stop);
    }
  }
  // After a restart, the address may belong to another server.
  find_again = find_again || sample.reachable == Asked::refused;
  reached = sample.reachable;
}

ServerSample Prober::State::look(bool is_silent, bool may_ask, const std::stop_token& stop) {
  ServerSample sample;
  look_at_process(sample, is_silent, stop);
  if (is_silent && sample.stopped == 0 && (may_ask || process_gone)) {
    asked = true;
    ask_all(sample, stop);
  } else if (is_silent) {
    // An earlier question may be answered by now.
    if (reached == Asked::waiting) sample.reachable = Asked::waiting;
    read_slots(sample);
  }
  sample.process_gone = process_gone && sample.reachable != Asked::answered;
  sample.at = Instant{since_boot()};
  return sample;
}

bool has_moved(const RequestSample& before, const RequestSample& now) {
  return now.pieces > before.pieces || now.prompt_read > before.prompt_read;
}

bool Prober::State::all_moved(const std::map<RequestId, RequestSample>& current) const {
  return std::ranges::all_of(current, [&](const auto& entry) {
    const auto before = seen.find(entry.first);
    return before != seen.end() && has_moved(before->second, entry.second);
  });
}

bool Prober::State::publish(std::vector<ServerFinding> findings) {
  bool any = false;
  std::map<RequestId, ServerFinding> kept;
  for (auto& finding : findings) {
    const auto before = published.find(finding.request);
    const bool is_new = before == published.end();
    const auto& is = finding.evidence;
    any = any || is_new || before->second.evidence.state != is.state ||
          before->second.evidence.done != is.done;
    // The elapsed time is in the reason, and grows.
    if (is_new || before->second.evidence != is || before->second.why != finding.why)
      listener(finding);
    kept[finding.request] = std::move(finding);
  }
  published = std::move(kept);
  return any;
}

/// REQUIRES: the mutex is held.
void Prober::State::note_stalled() {
  stalled.clear();
  for (const auto& [request, finding] : published) {
    const auto state = finding.evidence.state;
    const auto now = open.find(request);
    if (is_busy(state) || state == ServerState::unknown || now == open.end()) continue;
    // It may have moved while this was found out.
    const auto before = seen.find(request);
    if (before != seen.end() && has_moved(before->second, now->second)) {
      at_once = true;
    } else {
      stalled.insert(request);
    }
  }
}

void Prober::State::run(const std::stop_token& stop) {
  (void)find(stop);
  Millis looked = since_boot();
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    if (open.empty()) {
      at_once = false;
      slots.call_off();
      published.clear();
      seen.clear();
      changed.wait(lock, stop, [this] { return !open.empty(); });
      rhythm.hurry();
    } else {
      const auto due = [&] { return at_once ? Millis{} : looked + rhythm.wait(); };
      while (!stop.stop_requested() && !open.empty() && since_boot() < due()) {
        changed.wait_for(lock, stop, due() - since_boot(),
                         [&, was = due()] { return open.empty() || due() != was; });
      }
    }
    if (stop.stop_requested() || open.empty()) continue;
    auto current = open;
    const auto began = since_boot();
    const bool may_ask = rhythm.may_ask(Instant{began});
    at_once = false;
    question = std::stop_source();
    auto asking = question;
    lock.unlock();
    const std::stop_callback on_stop(stop, [&asking] { asking.request_stop(); });
    ProbeRhythm::Look went;
    in_vain = {};
    asked = false;
    try {
      const auto sample = look(!all_moved(current), may_ask, asking.get_token());
      went.unanswered = sample.stopped != 0 || sample.reachable == Asked::waiting ||
                        sample.slots == Asked::waiting;
      went.changed = !stop.stop_requested() && publish(watch.look(sample, current));
    } catch (const std::bad_alloc&) {
      // The next look.
    }
    looked = since_boot();
    went.ended = Instant{looked};
    went.took = looked - began;
    went.in_vain = in_vain;
    went.asked = asked;
    seen = std::move(current);
    lock.lock();
    rhythm.looked(went);
    note_stalled();
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

bool Prober::shows_progress() const {
  return state_->shows_progress;
}

// A new request must not wake this thread each time.
void Prober::opened(RequestId request, const TaskParameters& parameters) {
  bool hurries = false;
  {
    const std::lock_guard guard(state_->mutex);
    hurries = state_->open.empty() || !state_->rhythm.is_hurried();
    state_->open[request] = {.since = Instant{since_boot()}, .parameters = parameters};
    state_->rhythm.hurry();
  }
  if (hurries) state_->changed.notify_all();
}

void Prober::moved(RequestId request, const RequestSample& sample) {
  bool hurries = false;
  {
    const std::lock_guard guard(state_->mutex);
    const auto known = state_->open.find(request);
    if (known == state_->open.end()) return;
    const auto before = std::exchange(known->second, sample);
    known->second.since = before.since;
    known->second.parameters = before.parameters;
    hurries = !state_->rhythm.is_hurried();
    state_->rhythm.hurry();
    if (state_->stalled.erase(request) > 0) {
      hurries = state_->at_once = true;
      state_->rhythm.ask_again();
      state_->question.request_stop();
    }
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
