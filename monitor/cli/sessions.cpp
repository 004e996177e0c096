// People get a table, and scripts get documents. Pages of the list are read until the limit is
// reached or none is left. On a terminal ids are short, so that titles and folders have room: a
// command takes the begin of an id. Sessions that are not shown are counted, as far as that is
// cheap.
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "facts/ids.h"
#include "judge/attention.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"
#include "text/nearest.h"

namespace watchdog::monitor {

using nlohmann::json;

namespace {

struct SessionsOptions {
  Endpoint::Options endpoint;
  std::string attention, state, health, lifecycle, agent, label, parent, text, sort;
  int limit = 100;
  bool names = false;  ///< Prints the names that commands take.
  bool json = false;
};

/// Counts no further: the answer is for people.
constexpr int counted_max = 10'000;

void note_more(std::int64_t count, bool are_all, const SessionsOptions& options) {
  if (count <= 0) return;
  note((are_all ? "" : "at least ") + std::to_string(count) + " more " +
           (count == 1 ? "session is" : "sessions are") + " not shown; use --limit " +
           (are_all ? std::to_string(options.limit + count) : "COUNT") +
           ", or --attention, --state, --agent and --search to find some",
       options.json);
}

/// Says how many sessions follow those that were listed, if any do.
void note_hidden(Endpoint& endpoint, const std::string& conditions, const json& list,
                 std::int64_t shown_so_far, const SessionsOptions& options) {
  if (list.contains("total"))
    return note_more(list["total"].get<std::int64_t>() - shown_so_far, true, options);
  if (list["next"].is_null()) return;
  const auto body =
      endpoint.ask(Method::get, "/api/autonomous/sessions?limit=" + std::to_string(counted_max) +
                                    "&after=" + list["next"].dump() + conditions);
  if (!body) return;
  const auto rest = json::parse(*body);
  note_more(static_cast<std::int64_t>(rest["sessions"].size()), rest["next"].is_null(), options);
}

/// How long a row is in its state.
std::string lasts(const json& row) {
  if (!row.contains("stateSince") || !row["stateSince"].is_number()) return "–";
  return lasting(std::max<std::int64_t>(
      row.value("now", std::int64_t{0}) - row["stateSince"].get<std::int64_t>(), 0));
}

/// The rows for people: with the folder where any row has one, and with short ids on a terminal.
/// Commands take the begin of an id.
std::string table_of(const std::vector<json>& rows) {
  const auto folder_of = [](const json& row) {
    return row.contains("directory") ? shown(row, "directory") : "–";
  };
  const bool has_folders =
      std::ranges::any_of(rows, [&](const json& row) { return folder_of(row) != "–"; });
  std::vector<std::string> heading{"STATE", "FOR", "TITLE", "SESSION", "WHY"};
  if (has_folders) heading.insert(heading.begin() + 3, "FOLDER");
  Table table(std::move(heading),
              has_folders ? std::vector<std::size_t>{2, 3, 4} : std::vector<std::size_t>{2, 3},
              Table::Last::wrapped);
  for (const auto& row : rows) {
    std::vector<std::string> cells{coloured(shown(row, "state")), lasts(row), shown(row, "title"),
                                   id_in(row), reason_and_notices_in(row)};
    if (has_folders) cells.insert(cells.begin() + 3, folder_of(row));
    table.add(std::move(cells));
  }
  return table.text(terminal_width());
}

/// Prints the ids and the folders that commands take, each with the session's name. Where a folder
/// has several sessions, a command means the one that runs.
void print_names(const std::vector<json>& rows) {
  std::map<std::string, std::vector<const json*>> running;
  std::map<std::string, std::vector<const json*>> all;
  for (const auto& row : rows) {
    print_line(shown(row, "sessionId") + "\t" + title_in(row));
    const auto folder = shown(row, "directory");
    // A subagent works in the folder of its parent. A shell splits other names into words.
    if (!row.value("parentSessionId", json()).is_null() || !is_session_id(folder)) continue;
    all[folder].push_back(&row);
    if (row.value("outcome", json()).is_null()) running[folder].push_back(&row);
  }
  for (const auto& [folder, of_folder] : all) {
    const auto& meant = running.contains(folder) ? running[folder] : of_folder;
    if (meant.size() == 1) print_line(folder + "\t" + title_in(*meant.front()));
  }
}

}  // namespace

static int sessions(const SessionsOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  std::vector<json> rows;
  // Documents come in pages, newest first, unless another order is asked for.
  const std::string sort = options.sort.empty() && !options.json ? "attention" : options.sort;
  std::string conditions;
  for (const auto& [name, value] :
       {std::pair<const char*, const std::string&>{"attention", options.attention},
        {"state", options.state},
        {"health", options.health},
        {"lifecycle", options.lifecycle},
        {"agent", options.agent},
        {"label", options.label},
        {"parent", options.parent},
        {"q", options.text},
        {"sort", sort}}) {
    if (!value.empty()) conditions += std::string("&") + name + "=" + url_encoded(value);
  }
  const auto* path = options.json ? "/api/autonomous/progress" : "/api/autonomous/sessions";
  const auto page = options.json ? 1'000 : counted_max;
  std::string after;
  std::int64_t count = 0;
  json list;
  for (int left = options.limit; left > 0;) {
    const auto body = endpoint->ask(
        Method::get,
        std::string(path) + "?limit=" + std::to_string(std::min(left, page)) + after + conditions);
    if (!body) return complain(body.error());
    list = json::parse(*body);
    count += static_cast<std::int64_t>(list["sessions"].size());
    left -= static_cast<int>(list["sessions"].size());
    for (auto& row : list["sessions"]) {
      if (options.json)
        print_json(row.dump());
      else
        rows.push_back(std::move(row));
    }
    if (list["next"].is_null()) break;
    after = "&after=" + list["next"].dump();
  }
  if (options.names) {
    print_names(rows);
    return exit_done;
  }
  if (!options.json) print(rows.empty() ? "no sessions\n" : table_of(rows));
  note_hidden(*endpoint, conditions, list, count, options);
  return exit_done;
}

void add_sessions(CommandLine& line) {
  const auto options = std::make_shared<SessionsOptions>();
  auto* command =
      line.app.add_subcommand("sessions", "List sessions, those first that need a person");
  command
      ->add_option("--attention", options->attention,
                   "Only sessions of this attention; several with commas between")
      ->check(some_of("attention", all_names<Attention>()));
  command
      ->add_option("--state", options->state,
                   "Only sessions of this state; several with commas between")
      ->check(some_of("state", all_names<SessionState>()));
  command
      ->add_option("--health", options->health,
                   "Only sessions of this health; several with commas between")
      ->check(some_of("health", all_names<HealthKind>()));
  command->add_option("--sort", options->sort, "Order (default: attention; with --json: newest)")
      ->check(one_of("sort", {"attention", "newest"}));
  command->add_option("--lifecycle", options->lifecycle, "Only sessions of this lifecycle")
      ->check(one_of("lifecycle", all_names<Lifecycle>()));
  command->add_option("--agent", options->agent, "Only sessions of this agent");
  command->add_option("--label", options->label, "Only sessions with this label")
      ->type_name("KEY:VALUE")
      ->check(label());
  command->add_option("--parent", options->parent, "Only children of this session");
  command->add_option("--search", options->text,
                      "Only sessions with this text in id, title, task, agent or labels");
  command->add_option("--limit", options->limit, "Largest number to show")
      ->capture_default_str()
      ->check(integer(1, INT32_MAX));
  auto* names = command->add_flag(
      "--names", options->names,
      "Print the ids and folders that commands take as a session, each with its name");
  command->add_flag("--json", options->json, "Print one progress document (JSON) per line")
      ->excludes(names);
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] { line.code = sessions(*options); });
}

}  // namespace watchdog::monitor
