#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/monitor.h"
#include "cli/phrases.h"
#include "cli/table.h"
#include "watchdog/ids.h"

namespace watchdog::monitor {
namespace {

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

/// Who knows of it, or until when it is quiet.
std::string known_by(const json& alert) {
  if (alert["acknowledged"].is_object()) return shown(alert["acknowledged"], "by");
  if (alert["snoozedUntil"].is_number()) return "until " + local_time(alert["snoozedUntil"]);
  return "–";
}

void print_alerts(const json& list) {
  Table table({"ID", "SINCE", "SESSION", "HEALTH", "TOLD", "KNOWN", "WHY"});
  for (const auto& alert : list["alerts"]) {
    const bool over = alert.value("kind", "") == "recovery";
    const auto word = alert.value("health", "?");
    table.add({shown(alert, "alertId"), local_time(alert["at"]), shown(alert, "sessionId"),
               over ? "over: " + word : coloured(word), deliveries_of(alert), known_by(alert),
               shown(alert, "reason")});
  }
  print(table.text(terminal_width()));
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

int try_channel(const AlertsOptions& options) {
  const auto settings = configured(options.sources);
  if (!settings) return settings.error();
  const auto& channels = settings->alerts.channels;
  const auto found = channels.find(options.test);
  if (found == channels.end()) {
    return complain({ErrorCode::not_found, "there is no channel " + printable(options.test) +
                                               " in the settings, [alerts.channels.NAME]"});
  }
  const auto secrets = channel_secrets({.channels = {*found}});
  if (!secrets) return complain({ErrorCode::invalid, to_text(secrets.error())});
  const auto sender = alert_sender(*settings, found->first, secrets->at(found->first), {});
  const auto result = sender.send({.key = "test-" + new_ulid(system_clock().wall())});
  const bool taken = result.kind == SendResult::Kind::taken;
  if (options.json) {
    const json said{{"channel", found->first}, {"sent", taken}, {"answer", result.answer}};
    print_line(said.dump(-1, ' ', false, json::error_handler_t::replace));
  } else {
    print_line((taken ? "sent: " : "not sent: ") + printable(result.answer));
  }
  return taken ? exit_done : exit_failed;
}

}  // namespace

int alerts(const AlertsOptions& options) {
  if (!options.test.empty()) return try_channel(options);
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
            ? endpoint->ask(Method::post, target + "/acknowledge", json{{"by", "user"}}.dump())
            : endpoint->ask(Method::post, target + "/snooze",
                            json{{"minutes", options.snooze.back()}}.dump());
    if (!body) return complain(body.error());
    print_line(options.json             ? *body
               : options.snooze.empty() ? "known: nothing more of it until it is over"
                                        : "quiet " + known_by(json::parse(*body)));
    return exit_done;
  }
  auto target = "/api/alerts?limit=" + std::to_string(options.limit);
  if (!options.session.empty()) target += "&sessionId=" + url_encoded(options.session);
  const auto body = endpoint->ask(Method::get, target);
  if (!body) return complain(body.error());
  options.json ? print_line(*body) : print_alerts(json::parse(*body));
  return exit_done;
}

}  // namespace watchdog::monitor
