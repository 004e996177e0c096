#include "core/activity.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/target.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/session_choice.h"
#include "cli/session_names.h"
#include "cli/usage.h"
#include "terminal/output.h"
#include "terminal/phrases.h"

namespace watchdog::monitor {

using nlohmann::json;

namespace {

struct ActivityOptions {
  Endpoint::Options endpoint;
  SessionChoice session;
  std::string label, is, is_not, until;
  bool json = false;
};

bool is_among(const std::string& words, const std::string& word) {
  return ("," + words + ",").find("," + word + ",") != std::string::npos;
}

/// The address of the question, with `?` or `&` for what follows.
Result<std::string> target_of(Endpoint& endpoint, const ActivityOptions& options) {
  const std::string target = "/api/activity?";
  if (!options.label.empty()) return target + "label=" + url_encoded(options.label) + "&";
  if (options.session.named.empty() && !options.session.last) return target;
  const auto session = session_of(endpoint, options.session);
  if (!session) return session.error();
  return target + "session=" + url_encoded(*session) + "&";
}

/// Asks until the word is one of those that are awaited. A monitor that answered once may be
/// started again meanwhile.
Result<std::string> answer_to(Endpoint& endpoint, const ActivityOptions& options) {
  auto target = target_of(endpoint, options);
  if (!target) return target;
  if (!options.until.empty()) target = *target + "until=" + options.until + "&";
  target->pop_back();
  bool was_there = false;
  while (true) {
    auto body = endpoint.ask(Method::get, *target);
    if (options.until.empty()) return body;
    if (body && is_among(options.until, shown(json::parse(*body), "activity"))) return body;
    if (!body && (!was_there || body.error().code != ErrorCode::unavailable)) return body;
    // Nothing tells this process when the monitor is back, so it asks once a second.
    if (!body) std::this_thread::sleep_for(std::chrono::seconds(1));
    was_there = true;
  }
}

int activity(const ActivityOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  const auto body = answer_to(*endpoint, options);
  if (!body) return complain(body.error());
  const auto document = json::parse(*body);
  const auto word = shown(document, "activity");
  if (options.json) {
    print_json(*body);
  } else {
    const auto session = shown(document, "sessionId");
    const auto names = SessionNames::read(*endpoint);
    const auto name = names && session != "–" ? names->title_of(session) : "–";
    print_line(word + (session == "–" ? "" : "  " + session) + (name == "–" ? "" : "  " + name) +
               "  " + reason_in(document));
  }
  const bool is_good = (options.is.empty() || is_among(options.is, word)) &&
                       !(!options.is_not.empty() && is_among(options.is_not, word));
  return is_good ? exit_done : exit_failed;
}

}  // namespace

void add_activity(CommandLine& line) {
  const auto options = std::make_shared<ActivityOptions>();
  auto* command = line.app.add_subcommand(
      "activity", "Say in one word whether sessions are at work, for what suspends or scales them");
  auto* label = command->add_option("--label", options->label, "Only sessions with this label")
                    ->type_name("KEY:VALUE")
                    ->check(watchdog::monitor::label());
  add_session(*command, options->session)->excludes(label);
  command
      ->add_option("--is", options->is,
                   "Exit with 1 if it is none of these; several with commas between")
      ->check(some_of("activity", all_names<Activity>()));
  command
      ->add_option("--not", options->is_not,
                   "Exit with 1 if it is one of these; several with commas between")
      ->check(some_of("activity", all_names<Activity>()));
  command
      ->add_option("--until", options->until,
                   "Wait until it is one of these; several with commas between")
      ->check(some_of("activity", all_names<Activity>()));
  command->add_flag("--json", options->json, "Print the answer as JSON");
  add_endpoint(*command, options->endpoint);
  command->footer(
      std::string("Of several sessions the first of these words speaks: working, stuck, "
                  "quiet, waiting,\nidle, unknown. A command that goes on after its "
                  "agent's turn is work.\n") +
      exit_codes);
  command->callback([&line, options] { line.code = activity(*options); });
}

}  // namespace watchdog::monitor
