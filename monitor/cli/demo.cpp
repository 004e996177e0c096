// The demo's own model starts first, because the settings need its URL. The monitor follows, then
// signals are caught, and then the agents start. Otherwise an early signal would leave agents
// running. The main thread does the rest by timers: it draws once a second and kills the doomed
// agent. The objects are destroyed in reverse, so the agents end before the temporary folder does.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/page.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/monitor.h"
#include "core/scratch_folder.h"
#include "core/store_thread.h"
#include "http/event_loop.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

struct DemoOptions {
  Settings settings;               ///< Except `monitor.db`: the demo has its own.
  std::filesystem::path database;  ///< Empty: a fresh temporary one.
  std::filesystem::path agent;     ///< The demo agent's program; empty: beside this one.
  /// Whether `proxy.upstream` and `proxy.port` of the settings hold: they were asked for. Else the
  /// proxy has the demo's model and a free port.
  bool has_upstream = false;
  bool has_proxy_port = false;
};

struct Role {
  const char* session;  ///< Also the role's name for the agent program.
  const char* story;
};

constexpr const char* example = "example";  ///< A real agent, with a model over HTTP.
constexpr const char* unruly = "unruly";    ///< One with real tools, of the worst kind.

constexpr const char* stranger = "stranger";  ///< One that is seen through the proxy alone.

constexpr std::array roles{
    Role{example, "reads files and ends when its model has an answer: completed"},
    Role{unruly, "its tools hang, fork daemons and take long; it gets by: completed"},
    Role{stranger, "knows nothing of watchdogs; its requests pass through the proxy: progressing"},
    Role{"quick", "works step by step: progressing"},
    Role{"thinker", "thinks for 30 seconds at a time; slow is not stuck: progressing"},
    Role{"spinner", "its loop repeats without progress: stuck"},
    Role{"looper", "reads, edits and tests the same all over again: looping"},
    Role{"frozen", "its loop froze, its heartbeat thread lives on: slow, then suspect"},
    Role{"approval", "waits for a person to approve: blocked"},
    Role{"doomed", "its process is killed after 12 seconds: silent, then dead"}};

constexpr auto doom = std::chrono::seconds(12);

/// The demo's processes. They are gone with this object.
class Programs {
 public:
  explicit Programs(std::filesystem::path folder) : folder_(std::move(folder)) {}
  ~Programs() {
    for (const auto& [name, pid] : pids_) {
      kill(pid, SIGTERM);
      waitpid(pid, nullptr, 0);
    }
  }
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  /// Errors: `not_found`, `unavailable`.
  [[nodiscard]] Result<void> start(const std::string& name, std::vector<std::string> words,
                                   std::vector<std::string> variables = {}, int output = -1) {
    const auto program = words.front().find('/') == std::string::npos
                             ? (folder_ / words.front()).string()
                             : words.front();
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::vector<char*> environment_of;
    for (auto& variable : variables) environment_of.push_back(variable.data());
    for (char** inherited = environ; *inherited != nullptr; ++inherited) {
      // Agents only report, so they need no token.
      if (std::string_view(*inherited).starts_with("WATCHDOG_TOKEN=")) continue;
      environment_of.push_back(*inherited);  // the first of a name counts
    }
    environment_of.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (output >= 0) posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    pid_t pid = 0;
    const int failed = posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments.data(),
                                   environment_of.data());
    posix_spawn_file_actions_destroy(&actions);
    if (failed == ENOENT) {
      return Error{
          ErrorCode::not_found,
          "the demo needs " + program + "; the Debian package and a build of the source have it"};
    }
    if (failed != 0) {
      return Error{ErrorCode::unavailable,
                   "cannot start " + program + ": " + std::strerror(failed)};
    }
    pids_[name] = pid;
    return {};
  }

  /// The first line that a program of the demo prints.
  [[nodiscard]] Result<std::string> line_of(const std::string& program) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      return Error{ErrorCode::exhausted, std::string("no pipe: ") + std::strerror(errno)};
    }
    auto started = start(program, {program}, {}, ends[1]);
    close(ends[1]);
    std::string line;
    for (char c = 0; started && read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
    close(ends[0]);
    if (!started) return started.error();
    return line;
  }

  void slay(const std::string& name) {
    const auto found = pids_.find(name);
    if (found == pids_.end()) return;
    kill(found->second, SIGKILL);
    waitpid(found->second, nullptr, 0);
    pids_.erase(found);
  }

 private:
  std::filesystem::path folder_;
  std::map<std::string, pid_t> pids_;
};

/// Returns the session's present call: `shell for 3 s`.
std::string tool_of(const History& history, Instant now) {
  if (history.open_calls->empty()) return "–";
  const auto& oldest = history.open_calls->front();
  return terminal_line(oldest.name) + " for " + spoken(now - oldest.since);
}

/// Shows the sessions once a second: in place on a terminal, else a line at each change of health.
class Screen {
 public:
  Screen(const StoreThread& store_thread, std::string url)
      : store_thread_(store_thread), url_(std::move(url)), in_place_(isatty(STDOUT_FILENO) == 1) {}

  void draw() {
    const auto now = store_thread_.now();
    Table table({"SESSION", "HEALTH", "ITERATION", "CHANGES", "CHANGED", "TOOL", "STORY"}, {5},
                Table::Last::cut);
    for (const auto& role : roles) {
      const auto watched = store_thread_.watched(role.session);
      if (!watched) continue;
      const auto& history = watched->judged.history;
      const std::string health(name_of(watched->judged.health.kind));
      table.add({role.session, coloured(health),
                 history.iteration ? std::to_string(*history.iteration) : "–",
                 std::to_string(history.state_changes),
                 history.state_changes > 0 ? spoken(now - history.last_change) + " ago" : "–",
                 tool_of(history, now), role.story});
      if (!in_place_ && shown_[role.session] != health) {
        print_line(std::string(role.session) + " " + health + ": " +
                   reason_of(watched->judged.health, history, *watched->judged.policy));
      }
      shown_[role.session] = health;
    }
    if (in_place_) {
      clear_terminal();
      print(url_ + "\n\n" + table.text(terminal_width()) + "\nCtrl-C ends it.\n");
    }
    std::fflush(stdout);
  }

 private:
  const StoreThread& store_thread_;
  std::string url_;
  bool in_place_;
  std::map<std::string, std::string> shown_;
};

/// A few files that the example agent can look into.
bool write_files(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (int number = 1; number <= 6; ++number) {
    std::ofstream file(folder / ("chapter-" + std::to_string(number) + ".txt"));
    for (int line = 0; line < 10 * number; ++line) file << "Slow is not stuck. ";
    if (!file.flush()) return false;
  }
  return !error;
}

/// Starts the scripted agents, and the real one.
Result<void> start_agents(Programs& programs, const DemoOptions& options,
                          const std::filesystem::path& database, const std::filesystem::path& files,
                          const std::string& model, const std::string& proxy) {
  const auto script =
      options.agent.empty() ? std::string("watchdog-demo-agent") : options.agent.string();
  // Their findings are on the page.
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (const auto& role : roles) {
    const std::string name = role.session;
    const std::vector<std::string> own{"WATCHDOG_SESSION=" + name,
                                       "WATCHDOG_DB=" + database.string()};
    auto started = Result<void>{};
    if (name == example) {
      started = programs.start(
          name, {"watchdog-example-agent", "What is in these files?", files.string()},
          {"OPENAI_BASE_URL=" + model, "WATCHDOG_MODEL=" + options.settings.model.model, own[0],
           own[1], "WATCHDOG_TOOLS_CONFIRM_WRITES=false"},
          nowhere);
    } else if (name == stranger) {
      started = programs.start(name, {"watchdog-stranger", files.string()},
                               {"OPENAI_BASE_URL=" + proxy + "/s/stranger/v1"}, nowhere);
    } else if (name == unruly) {
      started = programs.start(name, {"watchdog-unruly-agent", files.string()},
                               {"AGENT_TOOL_TIMEOUT=5", own[0], own[1]}, nowhere);
    } else {
      started = programs.start(name, {script, name, "--db", database.string()});
    }
    if (!started) return started;
  }
  if (nowhere >= 0) close(nowhere);
  return {};
}

}  // namespace

int demo(const DemoOptions& options, const std::filesystem::path& self) {
  const auto scratch = ScratchFolder::make("demo");
  if (!scratch) return complain(scratch.error());
  const auto database =
      options.database.empty() ? scratch->path() / "watchdog.db" : options.database;
  const auto files = scratch->path() / "files";
  if (!write_files(files)) {
    return complain({ErrorCode::unavailable, "cannot write to " + files.string()});
  }

  Programs programs(self.parent_path());
  auto settings = options.settings;
  // The same token as of this user's own monitor: that is where commands look for it.
  settings.monitor.token_file = token_file(settings);
  settings.monitor.db = database;
  settings.alerts.channels.clear();  // no alerts for the demo's troubles
  // The demo's own model, unless the owner has one.
  if (settings.model.base_url.empty()) {
    auto url = programs.line_of("watchdog-demo-model");
    if (!url) return complain(url.error());
    settings.model.base_url = *url;
    settings.checks.share_server = true;
  }
  const auto model = settings.model.base_url;
  if (!options.has_upstream) settings.proxy.upstream = model;
  if (!options.has_proxy_port) settings.proxy.port = 0;
  settings.proxy.upstreams.clear();
  boost::asio::io_context context(1);
  auto monitor = Monitor::start(context, settings);
  if (!monitor) {
    return complain(monitor.error());
  }
  boost::asio::steady_timer tick(context);
  boost::asio::steady_timer end(context, doom);
  // Before the agents start: a signal that ends this program at once would leave them running.
  (*monitor)->stop_on_signal([&] {
    tick.cancel();
    end.cancel();
  });
  (*monitor)->announce();

  if (auto started =
          start_agents(programs, options, database, files, model, (*monitor)->proxy_url());
      !started) {
    complain(started.error());
    return exit_failed;
  }
  Screen screen((*monitor)->store_thread(), (*monitor)->login_url());
  std::function<void(const boost::system::error_code&)> draw =
      [&](const boost::system::error_code& error) {
        if (error) return;
        screen.draw();
        tick.expires_after(std::chrono::seconds(1));
        tick.async_wait(draw);
      };
  end.async_wait([&](const boost::system::error_code& error) {
    if (!error) programs.slay("doomed");
  });
  draw({});
  run_to_end(context);
  return exit_done;
}

void add_demo(CommandLine& line) {
  const auto sources = std::make_shared<Sources>();
  const auto options = std::make_shared<DemoOptions>();
  auto* command = line.app.add_subcommand(
      "demo",
      "Run a monitor with ten demo agents: working, slow, stuck, looping, frozen, waiting, dying");
  command->add_option("--db", options->database, "Database file (default: a temporary one)");
  command->add_option(
      "--agent", options->agent,
      "Program that plays the agents (default: watchdog-demo-agent beside this one)");
  auto demo_settings = line.settings;
  std::erase_if(demo_settings, [](const auto& setting) { return setting.key == "monitor.db"; });
  add_settings(*command, demo_settings, *sources);
  command->callback([&line, options, sources] {
    auto settings = configured(*sources);
    if (settings) options->settings = std::move(*settings);
    options->has_upstream = sources->flags.contains("proxy.upstream");
    options->has_proxy_port = sources->flags.contains("proxy.port");
    line.code = settings ? demo(*options, std::filesystem::read_symlink("/proc/self/exe"))
                         : settings.error();
  });
}

}  // namespace watchdog::monitor
