// Listing and changing ask the API, of a file or of a monitor. `--test` differs: without `--server`
// this process sends the message itself, with its own settings. So a channel can be tried before
// any monitor runs. With `--server` the monitor sends it. After a full page the command asks for
// the next one, only to say that alerts are missing.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/alerts_setup.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/monitor.h"
#include "cli/session_choice.h"
#include "cli/session_names.h"
#include "cli/usage.h"
#include "config/channel_kind.h"
#include "facts/ids.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

struct AlertsOptions {
  std::string action;  ///< Empty, or `setup`.
  AlertsSetup setup;
  Endpoint::Options endpoint;
  std::string session;                 ///< Only its alerts.
  std::string test;                    ///< Try this channel instead.
  std::int64_t acknowledge = 0;        ///< This alert instead; 0: none.
  std::vector<std::int64_t> snooze{};  ///< Likewise, for the given minutes.
  int limit = 50;
  bool json = false;
};

using nlohmann::json;

/// Each channel's name and state: `team sent, duty pending (3 attempts)`.
std::string deliveries_of(const json& alert) {
  std::string text;
  for (const auto& channel : alert["channels"]) {
    text += (text.empty() ? "" : ", ") + shown(channel, "name") + " " + shown(channel, "state");
    if (channel.value("attempts", 0) > 1) text += " (" + shown(channel, "attempts") + " attempts)";
  }
  return text.empty() ? "–" : text;
}

/// Returns who acknowledged it, or until when it is silenced.
std::string known_by(const json& alert) {
  if (alert["acknowledged"].is_object()) return shown(alert["acknowledged"], "by");
  if (alert["snoozedUntil"].is_number()) return "until " + local_time(alert["snoozedUntil"]);
  return "–";
}

void print_alerts(const json& list, const SessionNames& names) {
  Table table({"ID", "SINCE", "SESSION", "TITLE", "HEALTH", "SENT", "KNOWN", "WHY"}, {3, 5, 6},
              Table::Last::wrapped);
  for (const auto& alert : list["alerts"]) {
    const bool over = alert.value("kind", "") == "recovery";
    const auto word = alert.value("health", "?");
    const auto session = alert["sessionId"].get<std::string>();
    table.add({shown(alert, "alertId"), local_time(alert["at"]), names.id_of(session),
               names.title_of(session), over ? "over: " + word : coloured(word),
               deliveries_of(alert), known_by(alert), reason_in(alert)});
  }
  print(table.is_empty() ? "no alerts\n" : table.text(terminal_width()));
  if (list["channels"].empty()) return;
  Table channels({"CHANNEL", "TYPE", "STATE", "WAITS", "ERROR"});
  for (const auto& channel : list["channels"]) {
    const auto& waits = channel["oldestUnsentMs"];
    channels.add({shown(channel, "name"), shown(channel, "kind"), shown(channel, "state"),
                  waits.is_number() ? lasting(waits) : "–", shown(channel, "error")});
  }
  print_line("");
  print(channels.text(terminal_width()));
}

int show_channel_test(const json& channel_test, bool as_json) {
  const bool sent = channel_test.value("sent", false);
  if (as_json) {
    print_json(channel_test.dump(-1, ' ', false, json::error_handler_t::replace));
  } else {
    print_line((sent ? "sent: " : "not sent: ") + shown(channel_test, "answer"));
  }
  return sent ? exit_done : exit_failed;
}

/// By the monitor that was named, with its settings.
int try_channel_of_monitor(const AlertsOptions& options) {
  auto endpoint_options = options.endpoint;
  endpoint_options.writes = true;
  auto endpoint = Endpoint::open(endpoint_options);
  if (!endpoint) return complain(endpoint.error());
  const auto body =
      endpoint->act(Method::post, "/api/alerts/channels/" + url_encoded(options.test) + "/test");
  return body ? show_channel_test(json::parse(*body), options.json) : complain(body.error());
}

int try_channel(const AlertsOptions& options) {
  const auto settings = configured(options.endpoint.sources);
  if (!settings) return settings.error();
  const auto& channels = settings->alerts.channels;
  const auto found = channels.find(options.test);
  if (found == channels.end()) {
    return complain({ErrorCode::not_found, "there is no channel " + terminal_line(options.test) +
                                               " in the settings, [alerts.channels.NAME]"});
  }
  const auto secrets = channel_secrets({.channels = {*found}});
  if (!secrets) return complain({ErrorCode::invalid, to_text(secrets.error())});
  const auto sender = alert_sender(*settings, found->first, secrets->at(found->first), {});
  const auto result = sender.send({.key = "test-" + new_ulid(system_clock().wall())});
  return show_channel_test({{"channel", found->first},
                            {"sent", result.kind == SendResult::Kind::accepted},
                            {"answer", result.answer}},
                           options.json);
}

}  // namespace

static int alerts(const AlertsOptions& options) {
  if (options.action == "setup") {
    auto setup = options.setup;
    setup.sources.file = options.endpoint.sources.file;
    setup.ca_file = options.endpoint.ca_file;
    return set_up_channel(std::move(setup));
  }
  if (!options.test.empty())
    return options.endpoint.server.empty() ? try_channel(options) : try_channel_of_monitor(options);
  const bool changes = options.acknowledge != 0 || !options.snooze.empty();
  auto endpoint_options = options.endpoint;
  endpoint_options.writes = changes;
  auto endpoint = Endpoint::open(endpoint_options);
  if (!endpoint) return complain(endpoint.error());
  if (changes) {
    const auto id = options.snooze.empty() ? options.acknowledge : options.snooze.front();
    const auto target = "/api/alerts/" + std::to_string(id);
    const auto body =
        options.snooze.empty()
            ? endpoint->act(Method::post, target + "/acknowledge", json{{"by", "user"}}.dump())
            : endpoint->act(Method::post, target + "/snooze",
                            json{{"minutes", options.snooze.back()}}.dump());
    if (!body) return complain(body.error());
    if (options.json) {
      print_json(*body);
    } else {
      print_line(options.snooze.empty() ? "acknowledged: silenced until it resolves"
                                        : "silenced " + known_by(json::parse(*body)));
    }
    return exit_done;
  }
  auto target = "/api/alerts?limit=" + std::to_string(options.limit);
  if (!options.session.empty()) {
    const auto session = session_of(*endpoint, {.named = options.session});
    if (!session) return complain(session.error());
    target += "&sessionId=" + url_encoded(*session);
  }
  const auto body = endpoint->ask(Method::get, target);
  if (!body) return complain(body.error());
  const auto list = json::parse(*body);
  if (options.json) {
    print_json(*body);
  } else {
    const auto names = SessionNames::read(*endpoint);
    if (!names) return complain(names.error());
    print_alerts(list, *names);
  }
  if (!list["next"].is_null()) {
    const auto older = endpoint->ask(Method::get, target + "&after=" + list["next"].dump());
    if (older && !json::parse(*older)["alerts"].empty())
      note("older alerts are not shown; use --limit COUNT or --session ID", options.json);
  }
  return exit_done;
}

constexpr const char* setup_footer =
    "alerts setup adds a channel to the settings, and sends a test message. On a terminal it asks "
    "for what is missing. A secret is never an argument: it is asked for, and written into a file "
    "that only you can read, or --secret-file and --url-file name files that "
    "hold it. The settings keep their comments; their copy from before has the suffix "
    ".before-setup. --ca-file names more certificates that the channel trusts.\n"
    "\n";

static void add_setup_options(CLI::App& command, AlertsOptions& options) {
  command.add_option("action", options.action, "setup: add a channel")
      ->check(one_of("action", {"setup"}));
  std::vector<std::string> kinds;
  for (const auto& kind : channel_kinds) kinds.emplace_back(kind.name);
  auto& setup = options.setup;
  command.add_option("--kind", setup.kind, "setup: the kind of channel")
      ->check(one_of("kind", kinds));
  command.add_option("--name", setup.name, "setup: the channel's name (default: its kind)");
  command.add_option("--url", setup.url, "setup: URL, where it is not secret");
  command.add_option("--url-file", setup.url_file, "setup: file that holds the URL");
  command.add_option("--to", setup.to, "setup: chat, room or mail addresses");
  command.add_option("--from", setup.from, "setup: sender of mails");
  command
      .add_option("--content", setup.content,
                  "setup: texts of sessions in messages: none, or preview (the beginning of "
                  "questions, commands, errors, tasks)")
      ->type_name("WORD")
      ->check(one_of("content", all_names<AlertContent>()));
  command.add_option("--secret-file", setup.secret_file,
                     "setup: file that holds the token, the key, or USER:PASSWORD");
  command.add_option("--command", setup.command, "setup: program and arguments")->type_name("WORD");
  command.add_flag("--no-test", setup.no_test, "setup: send no test message");
}

void add_alerts(CommandLine& line) {
  const auto options = std::make_shared<AlertsOptions>();
  auto* command = line.app.add_subcommand(
      "alerts", "List alerts and channel status; acknowledge, snooze, test");
  command->add_option("--session", options->session, "Only alerts of this session");
  command->add_option("--limit", options->limit, "Largest number to show")
      ->capture_default_str()
      ->check(integer(1, 1'000));
  auto* alerts_ack = command
                         ->add_option("--ack", options->acknowledge,
                                      "Acknowledge this alert: silent until it resolves")
                         ->check(integer(1));
  auto* alerts_snooze =
      command
          ->add_option("--snooze", options->snooze, "Silence an alert's session for some minutes")
          ->type_name("ID MINUTES")
          ->expected(2)
          ->check(integer(1))
          ->excludes(alerts_ack);
  command
      ->add_option("--test", options->test,
                   "Send a test message through this channel of the settings, or of the "
                   "monitor that --server names")
      ->excludes(alerts_ack)
      ->excludes(alerts_snooze);
  auto* alerts_config = command->add_option_function<std::string>(
      "--config", [options](const std::string& path) { options->endpoint.sources.file = path; },
      "Settings file, as for serve; with setup: the one to add to");
  command->add_flag("--json", options->json, "Print one JSON object");
  add_setup_options(*command, *options);
  add_endpoint(*command, options->endpoint);
  alerts_config->excludes(command->get_option("--server"));
  // A file that is being made, or a channel that is tried without a monitor, names no place.
  command->parse_complete_callback([options] {
    if (options->action != "setup" && options->test.empty()) look_for_place(options->endpoint);
  });
  command->callback([&line, options] { line.code = alerts(*options); });
  command->footer(std::string(setup_footer) + exit_codes);
}

}  // namespace watchdog::monitor
