// Sends one message through one channel, once. A request by HTTP, a mail, a program and a
// notification of the desktop all end within the channel's time, and when the monitor stops. The
// dispatcher decides whether and when there is another attempt.
#include "alerts/alert_sender.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "alerts/alert_body.h"
#include "alerts/alert_request.h"
#include "alerts/escape.h"
#include "alerts/mail.h"
#include "core/time_limit.h"
#include "net/web_request.h"
#include "privacy/content.h"
#include "watchdog/subprocess.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t answer_chars_max = 200;

/// The last line that says anything.
std::string last_line(std::string_view text) {
  const auto end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end + 1);
  const auto begin = text.find_last_of("\r\n");
  return std::string(begin == std::string_view::npos ? text : text.substr(begin + 1));
}

std::string shortened(const std::string& text) {
  auto safe = std::string(first_characters(redact(text), answer_chars_max));
  for (auto& c : safe)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return safe;
}

/// Replaces the channel's own secrets, which a server may repeat in its answer.
std::string without_secrets(std::string text, const ChannelSecrets& secrets) {
  for (const auto& secret : {secrets.secret, secrets.routing_key, secrets.url}) {
    if (secret.size() < 8) continue;
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret))
      text.replace(at, secret.size(), "…");
  }
  return text;
}

/// The way to the desktop of this user: a program gets no other variables.
std::map<std::string, std::string> desktop_environment() {
  std::map<std::string, std::string> all;
  for (const auto* name :
       {"DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY"}) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (value != nullptr && *value != '\0') all[name] = value;
  }
  all.try_emplace("XDG_RUNTIME_DIR", "/run/user/" + std::to_string(getuid()));
  return all;
}

/// notify-send reads backslashes in the body as escapes.
std::string doubled_backslashes(const std::string& text) {
  std::string out;
  for (const char c : text) out.append(c == '\\' ? 2 : 1, c);
  return out;
}

/// The command that shows a message on the desktop. The title is plain text, the body is markup.
std::vector<std::string> notification_of(const AlertMessage& message, const AlertWording& wording) {
  const auto& kind = kind_of(ChannelType::desktop, AlertFormat::json);
  const auto text = message_text(message, wording);
  const auto shown = text.link.empty() ? text.below : text.below + "\n" + text.link;
  const bool mild = message.alerts.empty() || is_good_news(message);
  return {"notify-send",
          "--app-name=watchdog-monitor",
          mild ? "--urgency=normal" : "--urgency=critical",
          "--",
          text.title,
          doubled_backslashes(escaped(shown, kind.escapes, kind.bytes_max))};
}

}  // namespace

bool AlertSender::is_single() const {
  return options_.channel.type == ChannelType::webhook &&
         options_.channel.format == AlertFormat::pagerduty;
}

SendResult AlertSender::send(const AlertMessage& message, const std::stop_token& stop) const {
  switch (options_.channel.type) {
    case ChannelType::webhook:
      return post_it(message, stop);
    case ChannelType::command:
      return run_it(options_.channel.command,
                    body_of(message, AlertFormat::json, options_.wording, {}), stop);
    case ChannelType::mail:
      return mail_it(message, stop);
    case ChannelType::desktop:
      return run_it(notification_of(message, options_.wording), {}, stop);
    case ChannelType::log:
      break;
  }
  auto text = text_of(message, options_.wording);
  std::ranges::replace(text, '\n', ' ');
  options_.log(text);
  return {.answer = "it is in the log"};
}

SendResult AlertSender::post_it(const AlertMessage& message, const std::stop_token& stop) const {
  const auto& [channel, secrets, wording, log] = options_;
  const auto answer = ask_once(alert_request(message, channel, secrets, wording), stop);
  if (!answer) return {.kind = SendResult::Kind::failed, .answer = answer.error().message};
  SendResult result{.answer = "it answered " + std::to_string(answer->status),
                    .retry_after = pause_of(*answer)};
  if (const auto said = shortened(without_secrets(answer->body, secrets)); !said.empty())
    result.answer += ": " + said;
  const int status = answer->status;
  if (status / 100 == 2) return result;
  const bool of_this_message = status == 400 || status == 413 || status == 422;
  result.kind = of_this_message ? SendResult::Kind::refused : SendResult::Kind::failed;
  return result;
}

SendResult AlertSender::mail_it(const AlertMessage& message, const std::stop_token& stop) const {
  const auto& [channel, secrets, wording, log] = options_;
  const auto& kind = kind_of(channel.type, channel.format);
  const auto text = message_text(message, wording);
  auto to = mail_addresses(channel.to);
  const auto from = channel.from.empty() ? to.front() : channel.from;
  auto result =
      send_mail({.url = secrets.url,
                 .login = secrets.secret,
                 .from = from,
                 .to = std::move(to),
                 .subject = "[watchdog] " + text.title,
                 .text = escaped(text.text, kind.escapes, kind.bytes_max) + "\n" + text.link + "\n",
                 .key = message.key,
                 .at_most = channel.timeout,
                 .ca_file = channel.ca_file},
                stop);
  result.answer = shortened(without_secrets(result.answer, {.secret = secrets.secret}));
  return result;
}

SendResult AlertSender::run_it(const std::vector<std::string>& command, std::string input,
                               const std::stop_token& stop) const {
  const auto& channel = options_.channel;
  const bool desktop = channel.type == ChannelType::desktop;
  const TimeLimit limit(channel.timeout, stop);
  const auto end =
      run_process({.argv = command,
                   .cwd = "/",
                   .env = desktop ? desktop_environment() : std::map<std::string, std::string>{},
                   .input = std::move(input),
                   .head_bytes = 0,
                   .tail_bytes = 4'096},
                  {.stop = limit.token()});
  if (!end) {
    const bool missing = desktop && end.error().code == ErrorCode::not_found;
    return {.kind = SendResult::Kind::failed,
            .answer = missing ? "notify-send is missing: install the package libnotify-bin"
                              : end.error().message};
  }
  SendResult result{.kind = SendResult::Kind::failed};
  if (end->stopped) {
    result.answer = "it did not end within " + std::to_string(channel.timeout.count()) + " ms";
  } else if (end->signal) {
    result.answer = "signal " + std::to_string(*end->signal) + " ended it";
  } else {
    result.answer = "it ended with " + std::to_string(end->code.value_or(0));
    if (end->code == 0) result.kind = SendResult::Kind::accepted;
  }
  const auto said = shortened(last_line(end->err_tail.empty() ? end->tail : end->err_tail));
  if (!said.empty()) result.answer += ": " + said;
  return result;
}

}  // namespace watchdog::monitor
