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
#include <map>

#include "api/page.h"
#include "cli/commands.h"
#include "cli/monitor.h"
#include "cli/table.h"
#include "watch/sweeper.h"

namespace watchdog::monitor {
namespace {

struct Role {
  const char* session;  ///< Also the role's name for the agent program.
  const char* story;
};

constexpr std::array roles{
    Role{"quick", "works step by step: progressing"},
    Role{"thinker", "thinks for 30 seconds at a time; slow is not stuck: progressing"},
    Role{"spinner", "its loop goes round and gets nowhere: stuck"},
    Role{"looper", "reads, edits and tests the same all over again: looping"},
    Role{"frozen", "its loop froze, its heartbeat thread lives on: slow, then suspect"},
    Role{"approval", "waits for a person to approve: blocked"},
    Role{"doomed", "its process is killed after 12 seconds: silent, then dead"}};

constexpr auto doom = std::chrono::seconds(12);

/// The agents' processes. They are gone with this object.
class Agents {
 public:
  Agents(std::filesystem::path program, std::filesystem::path database)
      : program_(std::move(program)), database_(std::move(database)) {}
  ~Agents() {
    for (const auto& [role, pid] : pids_) {
      kill(pid, SIGTERM);
      waitpid(pid, nullptr, 0);
    }
  }
  Agents(const Agents&) = delete;
  Agents& operator=(const Agents&) = delete;

  /// Errors: `unavailable`.
  [[nodiscard]] Result<void> start(const std::string& role) {
    std::array<std::string, 4> words{program_.string(), role, "--db", database_.string()};
    std::array<char*, 5> arguments{};
    for (std::size_t at = 0; at < words.size(); ++at) arguments.at(at) = words.at(at).data();
    pid_t pid = 0;
    const int failed =
        posix_spawn(&pid, program_.c_str(), nullptr, nullptr, arguments.data(), environ);
    if (failed != 0)
      return Error{ErrorCode::unavailable,
                   "cannot start " + program_.string() + ": " + std::strerror(failed)};
    pids_[role] = pid;
    return {};
  }

  void slay(const std::string& role) {
    const auto found = pids_.find(role);
    if (found == pids_.end()) return;
    kill(found->second, SIGKILL);
    waitpid(found->second, nullptr, 0);
    pids_.erase(found);
  }

 private:
  std::filesystem::path program_;
  std::filesystem::path database_;
  std::map<std::string, pid_t> pids_;
};

/// Shows the sessions once a second: in place on a terminal, else a line at each change of health.
class Screen {
 public:
  Screen(const Sweeper& sweeper, std::string url)
      : sweeper_(sweeper), url_(std::move(url)), in_place_(isatty(STDOUT_FILENO) == 1) {}

  void draw() {
    const auto now = sweeper_.now();
    Table table({"SESSION", "HEALTH", "ITERATION", "CHANGES", "LAST CHANGE", "STORY"});
    for (const auto& role : roles) {
      const auto watched = sweeper_.watched(role.session);
      if (!watched) continue;
      const auto& history = watched->judged.history;
      const std::string health(name_of(watched->judged.health.kind));
      table.add({role.session, coloured(health),
                 history.iteration ? std::to_string(*history.iteration) : "–",
                 std::to_string(history.state_changes),
                 history.state_changes > 0 ? spoken(now - history.last_change) + " ago" : "–",
                 role.story});
      if (!in_place_ && shown_[role.session] != health) {
        std::printf("%-9s %s: %s\n", role.session, health.c_str(),
                    reason_of(watched->judged.health, history, *watched->judged.policy).c_str());
      }
      shown_[role.session] = health;
    }
    if (in_place_)
      std::printf("\x1b[H\x1b[2J%s\n\n%s\nCtrl-C ends it.\n", url_.c_str(),
                  table.text(terminal_width()).c_str());
    std::fflush(stdout);
  }

 private:
  const Sweeper& sweeper_;
  std::string url_;
  bool in_place_;
  std::map<std::string, std::string> shown_;
};

/// A directory that is gone with the demo.
struct Scratch {
  std::filesystem::path path;
  ~Scratch() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

int demo(const DemoOptions& options, const std::filesystem::path& self) {
  auto agent = options.agent.empty() ? self.parent_path() / "watchdog-demo-agent" : options.agent;
  if (access(agent.c_str(), X_OK) != 0) {
    return complain(
        {ErrorCode::not_found, "the demo's agent " + agent.string() +
                                   " is missing; build the target watchdog-demo-agent"});
  }
  Scratch scratch;
  auto database = options.database;
  if (database.empty()) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "watchdog-demo-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      return complain(
          {ErrorCode::exhausted, std::string("no temporary directory: ") + std::strerror(errno)});
    scratch.path = pattern;
    database = scratch.path / "watchdog.db";
  }

  boost::asio::io_context context(1);
  auto settings = options.settings;
  settings.monitor.db = database;
  auto monitor = Monitor::start(context, {.settings = std::move(settings)});
  if (!monitor) {
    complain(monitor.error());
    return exit_failed;
  }
  std::printf("listening on %s\n", (*monitor)->url().c_str());
  std::fflush(stdout);

  Agents agents(agent, database);
  for (const auto& role : roles) {
    if (auto started = agents.start(role.session); !started) {
      complain(started.error());
      return exit_failed;
    }
  }
  Screen screen((*monitor)->sweeper(), (*monitor)->url());
  boost::asio::steady_timer tick(context);
  boost::asio::steady_timer end(context, doom);
  std::function<void(const boost::system::error_code&)> draw =
      [&](const boost::system::error_code& error) {
        if (error) return;
        screen.draw();
        tick.expires_after(std::chrono::seconds(1));
        tick.async_wait(draw);
      };
  end.async_wait([&](const boost::system::error_code& error) {
    if (!error) agents.slay("doomed");
  });
  draw({});
  (*monitor)->stop_on_signal([&] {
    tick.cancel();
    end.cancel();
  });
  context.run();
  return exit_done;
}

}  // namespace watchdog::monitor
