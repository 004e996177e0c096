// Only a process that the monitor found itself, or that `run` reports by, is ever ended: a reporter
// can name any process. It ends with its descendants, by pid and start time, each checked again at
// its signal; a process group is never signalled, because strangers may share it. Before anything
// ends, all processes are named and compared with those that must stay: processes of other
// sessions, the monitor, this command, an ancestor of the agent, login shells. One of them refuses
// the whole, since what then would be left is not known to be right either.
#include "cli/agent_end.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "net/url.h"
#include "process/process_sample.h"
#include "terminal/output.h"
#include "text/json_writer.h"
#include "watchdog/session.h"
#include "wrapper/file_descriptor.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds last_words{2'000};
/// How often a round looks for what the processes start meanwhile.
constexpr int rounds_max = 20;

std::string events_path(const std::string& session) {
  return "/api/autonomous/sessions/" + url_encoded(session) +
         "/events?kind=start&before=" + std::to_string(INT64_MAX) + "&limit=100";
}

std::string described(const ProcessFacts& process) {
  return "process " + std::to_string(process.pid) + " of " + process_user(process.pid) + " (" +
         command_line_of(process.pid) + ")";
}

std::string described(const ProcessSample& process) {
  return described(ProcessFacts{.pid = process.pid});
}

/// True once the process is gone. Waits for that, at most `time`.
bool leaves_within(const ProcessFacts& process, milliseconds time) {
  const FileDescriptor handle(
      static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process.pid), 0)));
  if (is_running(process) != true) return true;  // seen after opening, so the handle is the process
  pollfd ended{handle.get(), POLLIN, 0};
  const auto end = std::chrono::steady_clock::now() + time;
  auto left = time;
  while (left.count() > 0 && poll(&ended, 1, static_cast<int>(left.count())) < 0 && errno == EINTR)
    left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
  return ended.revents != 0 || is_running(process) != true;
}

/// True for a process of this program that serves or relays for others.
bool is_monitor(std::int64_t pid) {
  struct stat own {};
  struct stat other {};
  const auto program = "/proc/" + std::to_string(pid) + "/exe";
  if (stat("/proc/self/exe", &own) != 0 || stat(program.c_str(), &other) != 0) return false;
  if (own.st_dev != other.st_dev || own.st_ino != other.st_ino) return false;
  const auto words = words_of_process(pid);
  return words.size() > 1 && (words[1] == "serve" || words[1] == "proxy" || words[1] == "demo");
}

Error not_ended(const std::string& why) {
  return {ErrorCode::exhausted, "nothing was ended: " + why};
}

}  // namespace

AgentEnd::AgentEnd(Endpoint& endpoint, std::string session, Options options)
    : endpoint_(endpoint), session_(std::move(session)), options_(std::move(options)) {}

Result<std::vector<ProcessFacts>> AgentEnd::processes_of(const std::string& session) {
  const auto body = endpoint_.ask(Method::get, events_path(session));
  if (!body) return body.error();
  const auto page = json::parse(*body);
  std::vector<std::pair<std::int64_t, ProcessFacts>> found;
  for (const auto& event : page["events"]) {
    if (event.value("pid", 0) <= 0) continue;
    found.emplace_back(
        event.value("seq", std::int64_t{0}),
        ProcessFacts{
            .pid = event.value("pid", std::int64_t{0}),
            .start_ticks = event.value("start_ticks", std::int64_t{0}),
            .boot_id = event.value("boot_id", std::string()),
            .host = event.value("host", std::string()),
            .known_by =
                named<KnownBy>(event.value("known_by", std::string())).value_or(KnownBy::report)});
  }
  std::ranges::sort(found, std::greater{}, [](const auto& one) { return one.first; });
  std::vector<ProcessFacts> processes;
  for (auto& [seq, process] : found) processes.push_back(std::move(process));
  return processes;
}

Result<std::optional<ProcessFacts>> AgentEnd::find() {
  const auto all = processes_of(session_);
  if (!all) return all.error();
  if (all->empty())
    return not_ended("the process of " + session_ +
                     " is not known. It is known of agents on the monitor's machine, outside of "
                     "containers");
  proven_.clear();
  const ProcessFacts* wrapper = nullptr;  // all of its session is below it
  const ProcessFacts* claimed = nullptr;
  bool is_far = true;
  for (const auto& process : *all) {
    const auto runs = is_running(process);
    is_far = is_far && !runs;
    if (runs != true) continue;
    if (process.known_by == KnownBy::report) {
      if (claimed == nullptr) claimed = &process;
      continue;
    }
    if (process.known_by == KnownBy::run && wrapper == nullptr) wrapper = &process;
    proven_.push_back(process);
  }
  if (is_far)
    return not_ended("process " + std::to_string(all->front().pid) +
                     " is on another machine: " + all->front().host + ". Run this command there");
  if (proven_.empty() && claimed == nullptr) return std::optional<ProcessFacts>();
  if (proven_.empty())
    return not_ended("only a report names " + described(*claimed) +
                     ", and a reporter can name any process. If this is the agent, end it by hand: "
                     "kill " +
                     std::to_string(claimed->pid));
  const auto& chosen = wrapper != nullptr ? *wrapper : proven_.front();
  if (chosen.start_ticks == 0)
    return not_ended("nothing distinguishes process " + std::to_string(chosen.pid) +
                     " from a later one of the same number");
  return std::optional(chosen);
}

Result<void> AgentEnd::protect_other_sessions() {
  // Its subagents end with it.
  std::vector<std::string> own{session_};
  const auto each_row = [&](const std::string& condition, const auto& visit) -> Result<void> {
    for (std::string after;;) {
      const auto body =
          endpoint_.ask(Method::get, "/api/autonomous/sessions?limit=1000&" + condition + after);
      if (!body) return body.error();
      const auto list = json::parse(*body);
      for (const auto& row : list["sessions"])
        if (auto visited = visit(row.value("sessionId", "")); !visited) return visited;
      if (!list.contains("next") || list["next"].is_null()) return {};
      after = "&after=" + list["next"].dump();
    }
  };
  auto done = each_row("ancestor=" + url_encoded(session_), [&](std::string id) -> Result<void> {
    own.push_back(std::move(id));
    return {};
  });
  if (!done) return done;
  for (const auto& word : all_names<Lifecycle>()) {
    if (is_end(*named<Lifecycle>(word))) continue;
    done = each_row("lifecycle=" + word, [&](const std::string& id) -> Result<void> {
      if (std::ranges::find(own, id) != own.end()) return {};
      auto processes = processes_of(id);
      if (!processes) return processes.error();
      for (const auto& process : *processes)
        if (is_running(process) == true)
          protected_.push_back({.pid = process.pid,
                                .start_ticks = process.start_ticks,
                                .why = "session " + id + " runs in it. Cancel that session first"});
      return {};
    });
    if (!done) return done;
  }
  return {};
}

Result<void> AgentEnd::protect(const ProcessFacts& agent) {
  protected_.clear();
  protected_.push_back(
      {.pid = 1, .start_ticks = 0, .why = "it is the first process of this machine"});
  protected_.push_back({.pid = getpid(),
                        .start_ticks = 0,
                        .why = "it is this command, which the agent started. Run it elsewhere"});
  if (const auto url = url_from(options_.server))
    if (const auto server = process_behind(*url))
      protected_.push_back(
          {.pid = server->pid, .start_ticks = server->start_ticks, .why = "it is the monitor"});
  // A hook can name any ancestor as the agent. The one found before shows that.
  if (agent.known_by == KnownBy::connection)
    for (const auto& process : proven_)
      if (process.pid != agent.pid)
        protected_.push_back({.pid = process.pid,
                              .start_ticks = process.start_ticks,
                              .why = "the agent was found in it before, so process " +
                                     std::to_string(agent.pid) + " is an ancestor of the agent"});
  return protect_other_sessions();
}

std::optional<std::string> AgentEnd::refusal(const std::vector<ProcessSample>& processes) const {
  const auto says = [this](const ProcessSample& process, const std::string& why) {
    const bool is_agent = process.pid == agent_.pid;
    return described(process) + " would be ended" + (is_agent ? "" : ", too") + ", and " + why +
           (is_agent ? "" : ". To end the agent alone, run: kill " + std::to_string(agent_.pid));
  };
  for (const auto& process : processes) {
    for (const auto& other : protected_)
      if (other.pid == process.pid &&
          (other.start_ticks == 0 || other.start_ticks == process.start_ticks))
        return says(process, other.why);
    if (is_monitor(process.pid)) return says(process, "it is a monitor");
    if (is_login_shell(process, words_of_process(process.pid)))
      return says(process, "it is a login shell");
  }
  return std::nullopt;
}

Result<std::vector<ProcessSample>> AgentEnd::look() {
  auto fresh = family_->fold(processes_now());
  if (const auto why = refusal(fresh)) return not_ended(*why);
  return fresh;
}

AgentEnd::Shown AgentEnd::shown(const ProcessSample& process) const {
  std::string why = family_->knows(process.parent) ? "started by " + std::to_string(process.parent)
                                                   : "left behind by the agent";
  if (process.pid == agent_.pid)
    why = agent_.known_by == KnownBy::run ? "the wrapper of the session's command"
                                          : "the agent, whose connection the monitor saw";
  return {.pid = process.pid,
          .user = process_user(process.pid),
          .why = std::move(why),
          .command = command_line_of(process.pid)};
}

void AgentEnd::name(const std::vector<ProcessSample>& processes) const {
  for (const auto& process : processes) {
    const auto line = shown(process);
    note("  process " + std::to_string(line.pid) + " of " + line.user + ", " + line.why + ": " +
             line.command,
         options_.json);
  }
}

int AgentEnd::show() {
  const auto print_answer = [this](const std::vector<ProcessSample>& processes,
                                   const std::string& refused) {
    if (!options_.json) return;
    JsonWriter out;
    out.open_object().field("sessionId", session_).key("processes").open_array();
    for (const auto& process : processes) {
      const auto line = shown(process);
      out.open_object().field("pid", line.pid).field("user", line.user);
      out.field("why", line.why).field("command", line.command).close_object();
    }
    out.close_array().key("refused");
    refused.empty() ? out.value(nullptr) : out.value(refused);
    out.close_object();
    print_json(out.finish());
  };
  const auto refuse = [&](const Error& error) {
    print_answer({}, error.message);
    return complain(error);
  };
  const auto found = find();
  if (!found) return refuse(found.error());
  if (!*found) {
    print_answer({}, {});
    note("nothing would be ended: the process of " + session_ + " has left by itself",
         options_.json);
    return exit_done;
  }
  agent_ = **found;
  if (auto ready = protect(agent_); !ready) return refuse(ready.error());
  family_.emplace(agent_.pid, agent_.start_ticks);
  const auto processes = look();
  if (!processes) return refuse(processes.error());
  print_answer(*processes, {});
  if (options_.json) return exit_done;
  note("these would be ended:", false);
  name(*processes);
  return exit_done;
}

Result<void> AgentEnd::signal(int number) {
  auto processes = family_->running(processes_now());
  for (int round = 0; round < rounds_max && !processes.empty(); ++round) {
    for (const auto& process : processes)
      if (const int error = send_signal_to(process, number); error != 0)
        return Error{ErrorCode::exhausted, described(process) + " is not ended: " +
                                               std::strerror(error)};  // NOLINT: one thread
    // Processes that were started between a look and the signal.
    auto fresh = look();
    if (!fresh) return fresh.error();
    name(*fresh);
    processes = std::move(*fresh);
  }
  return {};
}

bool AgentEnd::all_leave_within(milliseconds time) const {
  constexpr milliseconds look_again{20};
  const auto end = std::chrono::steady_clock::now() + time;
  while (!family_->running(processes_now()).empty()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    // A pidfd would report one exit. New descendants can come meanwhile, so this looks at all
    // again.
    std::this_thread::sleep_for(look_again);
  }
  return true;
}

int AgentEnd::carry_out(milliseconds grace) {
  const auto left_by_itself = [this](std::int64_t pid) {
    note((pid > 0 ? "process " + std::to_string(pid) : "the process of " + session_) +
             " has left by itself",
         options_.json);
    return exit_done;
  };
  const auto found = find();
  if (!found) return complain(found.error());
  if (!*found) return left_by_itself(0);
  agent_ = **found;
  if (leaves_within(agent_, grace)) return left_by_itself(agent_.pid);
  if (auto ready = protect(agent_); !ready) return complain(ready.error());
  family_.emplace(agent_.pid, agent_.start_ticks);
  const auto processes = look();
  if (!processes) return complain(processes.error());
  if (processes->empty()) return left_by_itself(agent_.pid);
  note("ending:", options_.json);
  name(*processes);
  if (auto sent = signal(SIGTERM); !sent) return complain(sent.error());
  const bool left = all_leave_within(last_words);
  if (!left) {
    if (auto sent = signal(SIGKILL); !sent) return complain(sent.error());
    if (!all_leave_within(last_words)) {
      const auto remaining = family_->running(processes_now());
      if (!remaining.empty()) {
        warn(described(remaining.front()) + " does not end: the kernel waits for something in it");
        return exit_failed;
      }
    }
  }
  const auto others = processes->size() - 1;
  note("ended process " + std::to_string(agent_.pid) +
           (others == 0 ? ""
                        : " and " + std::to_string(others) +
                              (others == 1 ? " descendant" : " descendants")) +
           (left ? " (SIGTERM)" : " (SIGKILL)"),
       options_.json);
  return exit_done;
}

}  // namespace watchdog::monitor
