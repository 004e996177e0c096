// Reads transcripts in the foreground and reports them to a monitor. The follower does the work;
// the command finds the folder and the file of positions, ends on a signal, and prints what was
// read.
#include <chrono>
#include <csignal>
#include <memory>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/following.h"
#include "cli/usage.h"
#include "facts/digest.h"
#include "follow/follower.h"
#include "follow/transcript_root.h"
#include "store/place.h"
#include "store/server.h"
#include "terminal/output.h"
#include "text/json_writer.h"
#include "text/nearest.h"

namespace watchdog::monitor {
namespace {

constexpr const char* follow_footer =
    "The transcripts are only read. Where the command is stopped and started again, it goes on "
    "where "
    "it was.\n"
    "Exit codes: 0 done, 1 failed, 2 usage, 3 refused, 4 unreachable, 5 not found.";

/// All times: since 1970, and a thousand years more.
constexpr double since_hours_max = 8'760.0 * 1'000;

struct FollowOptions {
  Endpoint::Options endpoint;
  std::string agent;
  std::filesystem::path folder;
  double since_hours = 24;
  bool once = false;
  bool json = false;
};

TranscriptFollower* running_follower = nullptr;  ///< For the handler of signals.

std::string figures_json(const FollowFigures& figures, bool is_done) {
  JsonWriter out;
  out.open_object().field("event", is_done ? "done" : "progress");
  out.field("files", figures.files).field("sessions", figures.sessions);
  out.field("lines", figures.lines).field("bytes", figures.bytes);
  out.field("reports", figures.reports).field("skippedLines", figures.skipped);
  out.field("unreadableLines", figures.unreadable).field("refused", figures.refused);
  out.field("behindBytes", figures.behind).close_object();
  return out.finish();
}

void print_figures(const FollowFigures& figures) {
  print_line(std::to_string(figures.lines) + " lines of " + std::to_string(figures.files) +
             " transcripts, " + std::to_string(figures.sessions) + " new sessions");
  if (figures.skipped > 0)
    print_line(std::to_string(figures.skipped) + " lines were skipped: they are too long");
  if (figures.unreadable > 0)
    print_line(std::to_string(figures.unreadable) + " lines could not be read");
}

/// Beside the database of this user, where `forget` looks. Empty: nothing says where that is.
std::filesystem::path positions_folder() {
  const auto database = default_database();
  return is_server_url(database) ? state_folder() : database.parent_path();
}

/// One for each monitor and folder.
std::filesystem::path positions_file(const FollowOptions& options) {
  const auto& monitor = options.endpoint;
  const auto place =
      digest_of(monitor.server + "\n" + monitor.database + "\n" + options.folder.string());
  return positions_folder() / ("follow-" + options.agent + "-" + std::to_string(place) + ".jsonl");
}

}  // namespace

static int follow(FollowOptions options) {
  if (positions_folder().empty())
    return complain(
        {ErrorCode::invalid,
         "the folder of the positions in the files is unknown. Set HOME, XDG_STATE_HOME "
         "or WATCHDOG_DB"});
  const auto agent = named<TranscriptAgent>(options.agent);
  if (!agent) return exit_usage;
  if (options.folder.empty()) options.folder = transcript_root(*agent);
  std::error_code missing;
  if (options.folder.empty() || !std::filesystem::is_directory(options.folder, missing)) {
    if (options.once || options.folder.empty())
      return complain({ErrorCode::not_found, "there are no transcripts of " + options.agent +
                                                 " in " + options.folder.string() +
                                                 ". Name their folder, or run the agent once"});
    note(options.folder.string() + " does not exist yet: waiting for it", options.json);
  }
  options.folder = std::filesystem::weakly_canonical(options.folder, missing);
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());

  TranscriptFollower::Options wanted{
      .sources = {{.agent = *agent, .root = options.folder}},
      .positions = positions_file(options),
      .since = Millis{static_cast<std::int64_t>(options.since_hours * 3'600'000)},
      .log = [](const std::string& sentence) { warn(sentence); }};
  report_to(*endpoint, wanted);
  FollowFigures printed;
  auto next_print = std::chrono::steady_clock::now();
  if (options.json) {
    wanted.progress = [&](const FollowFigures& figures) {
      const auto now = std::chrono::steady_clock::now();
      if (figures == printed || now < next_print) return;
      printed = figures;
      next_print = now + std::chrono::seconds(1);
      print_json(figures_json(figures, false));
      std::fflush(stdout);
    };
  }
  auto follower = TranscriptFollower::start(std::move(wanted));
  if (!follower) return complain(follower.error());
  running_follower = follower->get();
  std::signal(SIGINT, [](int) { running_follower->stop(); });
  std::signal(SIGTERM, [](int) { running_follower->stop(); });
  Result<void> result;
  if (options.once) {
    result = (*follower)->run_once();
  } else {
    note("following " + options.folder.string(), options.json);
    (*follower)->run();
  }
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  const auto& figures = (*follower)->figures();
  if (!result) return complain(result.error());
  if (options.json) print_json(figures_json(figures, true));
  if (!options.json) print_figures(figures);
  return exit_done;
}

void add_follow(CommandLine& line) {
  const auto options = std::make_shared<FollowOptions>();
  options->endpoint.writes = options->endpoint.creates = true;
  auto* command = line.app.add_subcommand(
      "follow", "Report what a coding agent writes into its transcripts, as they grow");
  std::vector<std::string> agents = all_names<TranscriptAgent>();
  command->add_option("agent", options->agent, "The agent")
      ->required()
      ->check(one_of("agent", agents));
  command
      ->add_option("folder", options->folder,
                   "Folder of the transcripts (default: where the agent keeps them)")
      ->type_name("FOLDER");
  command->add_flag("--once", options->once, "Read what is there, and end");
  command
      ->add_option("--since", options->since_hours,
                   "Leave out transcripts without a change in the last HOURS, and older lines "
                   "(default: 24)")
      ->type_name("HOURS")
      ->check(CLI::Range(0.0, since_hours_max));
  command->add_flag("--json", options->json,
                    "Print JSON lines: at most one a second while it reads, and one at the end");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] {
    line.code = with_settings(options->endpoint.sources, [&] { return follow(*options); });
  });
  command->footer(follow_footer);
}

}  // namespace watchdog::monitor
