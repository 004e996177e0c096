// The answer that shows the server's kind decides the further questions, each of at most 2 s. For
// llama.cpp `/props` comes first: a sleeping model is not asked for slots, which would wake it. Its
// total of slots counts only where `/slots` gives none. Ollama shows no progress, so the llama.cpp
// servers that it started are asked, by the ports in their command lines. The process is looked for
// even without an answer: a stopped one explains the silence.
#include "proxy/server/diagnosis.h"

#include <algorithm>

namespace watchdog::monitor {
namespace {

constexpr Millis diagnosis_time{2'000};

void read_slots(const ServerAnswer& given, Diagnosis& to) {
  to.slots = given.asked;
  if (given.asked != Asked::answered) return;
  const auto slots = given.is_good() ? slot_samples_from(given.body) : std::nullopt;
  if (!slots) {
    to.slots = Asked::unsupported;
    return;
  }
  to.slots_total += slots->size();
  for (const auto& slot : *slots) {
    to.slots_busy += slot.is_processing ? 1 : 0;
    to.shows_reading = to.shows_reading || slot.prompt_read.has_value();
  }
}

std::optional<ServerTotals> read_totals(const ServerAnswer& given, Diagnosis& to) {
  to.metrics = given.asked;
  const auto totals = given.is_good() ? totals_from(given.body) : std::nullopt;
  if (given.asked == Asked::answered && !totals) to.metrics = Asked::unsupported;
  return totals;
}

void diagnose_llama(const ServerAnswer& props, ServerQuestions& questions, Diagnosis& to) {
  to.shows_prompt_progress = true;
  to.progress_why = "return_progress of a streamed request (builds since September 2025)";
  to.is_loading = is_loading_answer(props.status, props.body);
  const auto facts = props.is_good() ? props_from(props.body) : std::nullopt;
  if (!facts) return;
  to.version = facts->build;
  if (!facts->model.empty()) to.models = {facts->model.substr(facts->model.rfind('/') + 1)};
  to.context = facts->context;
  to.is_sleeping = facts->is_sleeping;
  to.slots_total = static_cast<std::size_t>(facts->total_slots.value_or(0));
  (void)read_totals(questions.ask("/metrics", diagnosis_time), to);
  if (to.is_sleeping) return;  // to ask for slots would wake it
  to.slots_total = 0;
  read_slots(questions.ask("/slots", diagnosis_time), to);
  if (to.slots_total == 0)
    to.slots_total = static_cast<std::size_t>(facts->total_slots.value_or(0));
}

void diagnose_ollama(const ServerAnswer& version, ServerQuestions& questions, Diagnosis& to) {
  to.version = version_from(version.body);
  to.progress_why = "Ollama's API does not tell it";
  const auto running = questions.ask("/api/ps", diagnosis_time);
  for (const auto& model :
       running_models_from(running.body).value_or(std::vector<RunningModel>{})) {
    to.models.push_back(model.name);
    if (model.context > 0) to.context = model.context;
  }
  const auto use = to.process ? use_of(*to.process) : std::nullopt;
  if (!use) return;
  for (const auto& port : llama_ports_of(use->below)) {
    auto child = ServerQuestions::to({.server = {.host = "127.0.0.1", .port = port}});
    if (child) read_slots(child->ask("/slots", diagnosis_time), to);
  }
  if (!to.shows_reading) return;
  to.shows_prompt_progress = true;
  to.progress_why = "the llama-server that Ollama started shows it in /slots, without the total";
}

void diagnose_other(const ServerAnswer& answer, ServerQuestions& questions, Diagnosis& to) {
  if (to.kind == name_of(ServerKind::vllm)) to.version = version_from(answer.body);
  to.progress_why = "the server does not tell it";
  const auto totals = read_totals(questions.ask("/metrics", diagnosis_time), to);
  if (totals && totals->by == "sglang") to.kind = "sglang";
  const auto models = questions.ask("/v1/models", diagnosis_time);
  to.models = model_names_from(models.body);
  to.needs_key = to.needs_key || models.status == 401 || models.status == 403;
}

std::string trouble_of(const ServerAnswer& given, const std::optional<ServerProcess>& process) {
  std::string why = given.trouble == HttpTrouble::late
                        ? "it accepts connections, and did not answer within " +
                              std::to_string(diagnosis_time.count() / 1'000) + " s"
                        : given.message;
  const auto use = process ? use_of(*process) : std::nullopt;
  if (use && std::ranges::find(use->stopped, process->pid) != use->stopped.end())
    why += "; its process " + process->name +
           " is stopped (state T): continue it with \"kill -CONT " + std::to_string(process->pid) +
           "\"";
  return why;
}

}  // namespace

Diagnosis diagnose(const Url& server, ServerQuestions& questions) {
  Diagnosis diagnosis{.is_local = is_this_machine(server)};
  auto found = questions.find();
  const auto& given = found.last;
  diagnosis.process = process_behind(server);
  if (given.asked != Asked::answered) {
    diagnosis.trouble = trouble_of(given, diagnosis.process);
    return diagnosis;
  }
  diagnosis.is_reachable = true;
  diagnosis.needs_key = given.status == 401 || given.status == 403;
  const auto kind = found.kind.value_or(ServerKind::unknown);
  diagnosis.kind = name_of(kind);
  switch (kind) {
    case ServerKind::llama_cpp:
      diagnose_llama(given, questions, diagnosis);
      break;
    case ServerKind::ollama:
      diagnose_ollama(given, questions, diagnosis);
      break;
    default:
      diagnose_other(given, questions, diagnosis);
  }
  return diagnosis;
}

std::vector<std::string> advice_for(const Diagnosis& of) {
  std::vector<std::string> advice;
  const auto add = [&](bool where, const char* text) {
    if (where) advice.emplace_back(text);
  };
  const bool is_llama = of.kind == name_of(ServerKind::llama_cpp);
  add(!of.is_reachable, "Start the server, or correct the URL.");
  add(of.needs_key, "The server shows its state only with a key: give it with --key-file.");
  add(is_llama && of.slots == Asked::unsupported && !of.needs_key,
      "Start llama-server without --no-slots: slots show what it does with a request.");
  add(is_llama && of.slots == Asked::waiting,
      "The server does not show its slots now. It reads a prompt (builds before August 2026 do not "
      "answer meanwhile), or it hangs: its process's CPU time tells which.");
  add(is_llama && of.slots == Asked::answered && of.slots_busy > 0 && !of.shows_reading,
      "Its slots do not show how far a prompt is: a build since May 2026 does.");
  add(is_llama && of.metrics == Asked::unsupported && !of.needs_key,
      "Start llama-server with --metrics: nothing else tells whether requests are queued.");
  add(of.kind == name_of(ServerKind::vllm) && of.metrics == Asked::unsupported,
      "Make /metrics reachable: nothing else shows whether the server makes progress.");
  add(of.kind == name_of(ServerKind::ollama) && !of.shows_prompt_progress,
      "How far a prompt is shows while a model is loaded, if this program runs on Ollama's machine "
      "as a user who may look into its processes.");
  add(of.is_sleeping, "The model sleeps: the next request has to load it (--sleep-idle-seconds).");
  add(of.is_reachable && !of.process && of.is_local,
      "The server's process cannot be seen: it is another user's, or in a container. A hang is "
      "then known later. Run this program where it can see it.");
  add(of.is_reachable && !of.is_local,
      "The server is on another machine, so its process cannot be seen, and a hang is known later. "
      "A proxy on that machine sees it.");
  add(of.is_reachable && is_llama,
      "Clients: builds since June 2026 send the head of a stream as soon as a slot takes the "
      "request, and then a ping every 30 s. Older builds, and requests that are not streamed, send "
      "nothing before the answer. For these, use the proxy's URL, or raise the limits below that "
      "are shorter than your slowest prompt.");
  add(of.is_reachable && !is_llama,
      "Clients: use the proxy's URL, or raise the limits below that are shorter than your slowest "
      "prompt.");
  return advice;
}

}  // namespace watchdog::monitor
