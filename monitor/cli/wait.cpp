// Each session waits on its own thread. The main thread polls a descriptor for signals and one for
// sessions that are over. Signals are blocked before any thread starts, so only the descriptor gets
// them. The first deciding result sets the exit code and stops the other waits, which then print
// nothing. With `--any` a success decides, else a failure. The first signal stops all waits, the
// second ends the process at once.
#include "watchdog/wait.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/session_choice.h"
#include "cli/stream_wait.h"
#include "cli/usage.h"
#include "facts/ids.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/situation.h"
#include "terminal/wait_display.h"

namespace watchdog::monitor {

using nlohmann::json;

namespace {

struct WaitOptions {
  Endpoint::Options endpoint;
  std::vector<std::string> sessions;
  std::string until = "completed";  ///< As awaited_from() reads it.
  std::string on_stuck = "ask";
  std::string on_suspect = "keep";
  std::string on_quiet = "keep";
  bool last = false;        ///< The session that began last, instead of `sessions`.
  bool any = false;         ///< Over with the first that comes; else all are to.
  bool must_exist = false;  ///< A missing session is an error.
  bool restarts = false;    ///< As of Awaited.
  bool json = false;
};

constexpr const char* wait_footer =
    "--for takes: completed, failed, incomplete, cancelled, end (any end), health=NAME, "
    "state-change (any, also a finished call), state-change=TYPE.\n"
    "\n"
    "The wait goes on as long as the agent works. It fails at once if a session ends differently "
    "or is dead, and after three more iterations if a session stays stuck or looping. All sessions "
    "must succeed; the first that fails decides.\n"
    "\n"
    "Exit codes:\n"
    "  0  success (with end: completed)\n"
    "  1  completed, but something else was waited for\n"
    "  2  usage\n"
    "  3  refused\n"
    "  4  monitor unreachable\n"
    "  5  session not found\n"
    "  10  failed\n"
    "  11  incomplete\n"
    "  12  cancelled\n"
    "  13  stuck or looping; with --on-suspect and --on-quiet also suspect and quiet\n"
    "  14  dead\n"
    "  15  stuck, and you did not want to go on (user_cancelled_stuck)\n"
    "  130  interrupted\n"
    "\n"
    "--json: one object per line for each session that is over: {\"session\", \"expected\", "
    "\"came\", \"end\" (null: success; ended, dead, stuck, suspect, quiet, "
    "user_cancelled_stuck, no_session, interrupted, unavailable, misuse), \"why\", "
    "\"exitCode\", \"progress\", \"timeline\": [{\"at\", \"text\"}], \"omitted\"}\n"
    "Data goes to standard output, failures and the progress to standard error.";

enum WaitCode : int {
  wait_ended_failed = 10,
  wait_ended_incomplete = 11,
  wait_ended_cancelled = 12,
  wait_stuck = 13,
  wait_dead = 14,
  wait_user_cancelled_stuck = 15
};

/// By how a session ended. One that completed although something else was waited for has failed.
int code_of(Lifecycle lifecycle, bool came) {
  switch (lifecycle) {
    case Lifecycle::failed:
      return wait_ended_failed;
    case Lifecycle::incomplete:
      return wait_ended_incomplete;
    case Lifecycle::cancelled:
      return wait_ended_cancelled;
    default:
      return came ? exit_done : exit_failed;
  }
}

int code_of(WaitEnd end, Lifecycle lifecycle) {
  switch (end) {
    case WaitEnd::ended:
      return code_of(lifecycle, false);
    case WaitEnd::dead:
      return wait_dead;
    case WaitEnd::stuck:
    case WaitEnd::suspect:
    case WaitEnd::quiet:
      return wait_stuck;
    case WaitEnd::user_cancelled_stuck:
      return wait_user_cancelled_stuck;
    case WaitEnd::no_session:
      return exit_not_found;
    case WaitEnd::interrupted:
      return exit_interrupted;
    case WaitEnd::unavailable:
      return exit_unreachable;
    case WaitEnd::misuse:
      return exit_refused;
  }
  return exit_failed;
}

Lifecycle lifecycle_in(const json& document) {
  const auto found = document.is_object() ? document.find("lifecycle") : document.end();
  if (found == document.end() || !found->is_string()) return Lifecycle::completed;
  return named<Lifecycle>(found->get_ref<const std::string&>()).value_or(Lifecycle::completed);
}

/// Waits for all sessions at once, each on its own thread; this one receives signals and ends.
class SessionPresence {
 public:
  SessionPresence(const WaitOptions& options, Awaited until)
      : options_(options), until_(std::move(until)) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // as all threads that are begun later
    signals_ = signalfd(-1, &signals, SFD_CLOEXEC);
    ended_ = eventfd(0, EFD_CLOEXEC);
  }
  ~SessionPresence() {
    close(signals_);
    close(ended_);
  }
  SessionPresence(const SessionPresence&) = delete;
  SessionPresence& operator=(const SessionPresence&) = delete;

  int run() {
    std::vector<std::jthread> threads;
    for (const auto& session : options_.sessions) {
      threads.emplace_back([this, session] { attend(session); });
    }
    for (std::size_t over = 0; over < threads.size();) {
      std::array<pollfd, 2> fds{pollfd{ended_, POLLIN, 0}, pollfd{signals_, POLLIN, 0}};
      if (poll(fds.data(), fds.size(), -1) <= 0) continue;
      if (fds[1].revents != 0) interrupted();
      if (fds[0].revents == 0) continue;
      std::uint64_t count = 0;
      if (read(ended_, &count, sizeof count) == sizeof count) over += count;
    }
    return code_.value_or(last_.value_or(exit_done));
  }

 private:
  /// The second signal ends the wait at once.
  void interrupted() {
    signalfd_siginfo signal{};
    [[maybe_unused]] const auto got = read(signals_, &signal, sizeof signal);
    if (stop_.stop_requested()) std::_Exit(exit_interrupted);
    {
      const std::lock_guard guard(mutex_);
      code_ = exit_interrupted;
    }
    stop_.request_stop();
  }

  void attend(const std::string& session) {
    const auto result = options_.endpoint.database.empty() ? on_stream(session) : in_file(session);
    conclude(session, result);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(ended_, &one, sizeof one);
  }

  [[nodiscard]] std::string question(const std::string& session, const std::string& line) const {
    return session + ": " + line + ". Go on waiting?";
  }

  void say_absent(const std::string& session) {
    if (options_.must_exist) return;
    // A session with this id may still begin. So the command names a session with such a folder,
    // and does not wait for it.
    auto endpoint = Endpoint::open(options_.endpoint);
    const auto meant = endpoint ? session_of(*endpoint, {.named = session})
                                : Result<std::string>(endpoint.error());
    display_.say("watchdog-monitor: session " + session +
                 " does not exist yet; this command waits until it starts" +
                 (meant ? ". If you mean session " + *meant + ", give this id" : ""));
  }

  Result<std::string, WaitFailure> on_stream(const std::string& session) {
    StreamWait asked{.endpoint = options_.endpoint,
                     .session = session,
                     .until = until_,
                     .must_exist = options_.must_exist,
                     .stop = stop_.get_token()};
    if (display_.is_terminal())
      asked.seen = [&](const std::string& line) { display_.show(session + ": " + line); };
    asked.absent = [&] { say_absent(session); };
    if (display_.can_ask()) {
      asked.ask = [&](const std::string& line) {
        return display_.ask(question(session, line), stop_.get_token());
      };
    }
    return wait_on_stream(asked);
  }

  Result<std::string, WaitFailure> in_file(const std::string& session) {
    Wait asked{.session = session,
               .database = options_.endpoint.database,
               .until = until_,
               .must_exist = options_.must_exist,
               .stop = stop_.get_token()};
    const auto line = [](const Observed& seen) {
      return situation_line(json::parse(seen.document(), nullptr, false));
    };
    asked.seen = [&](const Observed* seen) {
      if (seen == nullptr) {
        say_absent(session);
      } else if (display_.is_terminal()) {
        display_.show(session + ": " + line(*seen));
      }
    };
    if (display_.can_ask()) {
      asked.ask = [&](const Observed& seen) {
        return display_.ask(question(session, line(seen)), stop_.get_token());
      };
    }
    const auto waited = watchdog::wait(asked);
    if (!waited) return waited.error();
    return std::string();
  }

  [[nodiscard]] json document_of(const std::string& session) const {
    auto endpoint = Endpoint::open(options_.endpoint);
    if (!endpoint) return nullptr;
    const auto body =
        endpoint->ask(Method::get, "/api/autonomous/progress/" + url_encoded(session));
    return body ? json::parse(*body, nullptr, false) : json();
  }

  void conclude(const std::string& session, const Result<std::string, WaitFailure>& result) {
    // Waits that are cancelled because another one decided print nothing.
    const bool called_off = !result && result.error().end == WaitEnd::interrupted;
    {
      const std::lock_guard guard(mutex_);
      if (called_off && code_ && *code_ != exit_interrupted) return;
    }
    const auto document =
        result && !result->empty() ? json::parse(*result, nullptr, false) : document_of(session);
    const int code =
        result ? (until_.goal == Goal::end ? code_of(lifecycle_in(document), true) : exit_done)
               : code_of(result.error().end, result.error().lifecycle);
    const std::lock_guard guard(mutex_);
    print_result(session, result, document, code);
    if (code == exit_done || !options_.any) {
      // The first that came decides where any will do, else the first that did not.
      const bool decides = (code == exit_done) == options_.any;
      if (!decides || code_) return;
      code_ = code;
      stop_.request_stop();
    } else {
      last_ = last_.value_or(code);
    }
  }

  void print_result(const std::string& session, const Result<std::string, WaitFailure>& result,
                    const json& document, int code) {
    if (options_.json) {
      json line{{"session", session},
                {"expected", text_of(until_)},
                {"came", result.ok()},
                {"end", result ? json() : json(name_of(result.error().end))},
                {"why", result ? json() : json(result.error().why)},
                {"exitCode", code},
                {"progress", document}};
      line["timeline"] = json::array();
      if (!result) {
        const auto& timeline = result.error().timeline;
        for (const auto* part : {&timeline.first, &timeline.last}) {
          for (const auto& entry : *part)
            line["timeline"].push_back(
                {{"at", entry.at.time_since_epoch().count()}, {"text", entry.text}});
        }
        line["omitted"] = timeline.omitted;
      }
      display_.leave();
      print_json(line.dump(-1, ' ', false, json::error_handler_t::replace));
    } else if (result) {
      display_.leave();
      print_line(session + "  " + text_of(until_) + "  " + situation_line(document));
    } else {
      display_.say(result.error().text());
    }
    std::fflush(stdout);
  }

  const WaitOptions& options_;
  const Awaited until_;
  WaitDisplay display_;
  std::stop_source stop_;
  int signals_ = -1;
  int ended_ = -1;
  std::mutex mutex_;         ///< Guards what follows, and standard output.
  std::optional<int> code_;  ///< Once it is decided.
  std::optional<int> last_;  ///< With any-of: the result of the first that did not succeed.
};

}  // namespace

static int wait(WaitOptions options) {
  auto until = awaited_from(options.until);
  if (!until) return complain(until.error());
  if (options.last) {
    auto endpoint = Endpoint::open(options.endpoint);
    if (!endpoint) return complain(endpoint.error());
    auto session = session_of(*endpoint, {.last = true});
    if (!session) return complain(session.error());
    options.sessions = {std::move(*session)};
  }
  for (const auto& session : options.sessions) {
    if (!is_session_id(session)) {
      complain({ErrorCode::invalid, "'" + session + "' is not a session id"});
      return exit_usage;
    }
  }
  until->on_stuck = named<OnStuck>(options.on_stuck).value_or(OnStuck::ask);
  until->on_suspect = named<OnDoubt>(options.on_suspect).value_or(OnDoubt::keep);
  until->on_quiet = named<OnDoubt>(options.on_quiet).value_or(OnDoubt::keep);
  until->restarts = options.restarts;
  return SessionPresence(options, *until).run();
}

void add_wait(CommandLine& line) {
  const auto options = std::make_shared<WaitOptions>();
  auto* command = line.app.add_subcommand(
      "wait", "Wait until sessions end or reach a state, however long it takes");
  auto* sessions = command->add_option("session", options->sessions, "Session ids");
  command->add_flag("--last", options->last, "The session that began last")->excludes(sessions);
  command->add_option("--for", options->until, "What to wait for")
      ->capture_default_str()
      ->check([](const std::string& text) {
        const auto until = awaited_from(text);
        return until ? std::string() : until.error().message;
      });
  command
      ->add_option("--on-stuck", options->on_stuck,
                   "When a session stays stuck: ask on the terminal (fail if there is none), fail, "
                   "or keep waiting")
      ->capture_default_str()
      ->check(one_of("answer", {"ask", "fail", "keep"}));
  command
      ->add_option("--on-suspect", options->on_suspect,
                   "When a session is suspect: keep waiting, or fail")
      ->capture_default_str()
      ->check(one_of("answer", {"keep", "fail"}));
  command
      ->add_option("--on-quiet", options->on_quiet,
                   "When nothing has moved in a session for long, and nothing shows that it works: "
                   "keep waiting, or fail")
      ->capture_default_str()
      ->check(one_of("answer", {"keep", "fail"}));
  command->add_flag("--any", options->any, "Succeed with the first session that does");
  command->add_flag("--must-exist", options->must_exist,
                    "Fail (5) if a session does not exist, instead of waiting for it");
  command->add_flag("--restarts", options->restarts,
                    "The agent is restarted when it dies: a process that is gone is not an "
                    "end until the health is dead");
  command->add_flag("--json", options->json, "Print one JSON object per line");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] {
    if (options->sessions.empty() && !options->last) throw CLI::RequiredError("session or --last");
    line.code = wait(*options);
  });
  command->footer(wait_footer);
}

}  // namespace watchdog::monitor
