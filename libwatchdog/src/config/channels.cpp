#include "config/channels.h"

#include <algorithm>

#include "files/regular_file.h"
#include "net/web_request.h"

namespace watchdog {
namespace {

constexpr std::size_t secret_bytes_max = 4'096;
constexpr std::size_t channels_max = 16;
constexpr const char* pagerduty_url = "https://events.pagerduty.com/v2/enqueue";

bool is_channel_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || c == '_' || c == '-';
  });
}

/// The text of the file without white space around it.
Result<std::string> secret_in(const std::filesystem::path& path) {
  auto text = read_regular_file(path, secret_bytes_max, Readers::owner);
  if (!text) return text;
  constexpr std::string_view space = " \t\r\n";
  const auto begin = text->find_first_not_of(space);
  if (begin == std::string::npos) return Error{ErrorCode::invalid, "holds nothing"};
  return text->substr(begin, text->find_last_not_of(space) - begin + 1);
}

}  // namespace

std::vector<KeyFault> channel_faults(const AlertSettings& alerts) {
  std::vector<KeyFault> faults;
  if (alerts.channels.size() > channels_max) {
    faults.push_back({"alerts.channels",
                      "alerts.channels has " + std::to_string(alerts.channels.size()) +
                          " channels; at most " + std::to_string(channels_max) + " are allowed"});
  }
  for (const auto& [name, channel] : alerts.channels) {
    const auto key = "alerts.channels." + name;
    const auto refuse = [&](const char* field, const std::string& why) {
      faults.push_back({key + "." + field, key + "." + field + " " + why});
    };
    if (!is_channel_name(name)) {
      faults.push_back({key, "alerts.channels." + key_text({name}) +
                                 ": a channel's name is 1 to 64 letters, digits, _ and -"});
      continue;
    }
    const bool webhook = channel.type == ChannelType::webhook;
    const bool pagerduty = channel.format == AlertFormat::pagerduty;
    const auto for_webhooks = [&](const char* field, bool given) {
      if (given && !webhook) refuse(field, "is for channels of type webhook");
    };
    for_webhooks("url", !channel.url.empty());
    for_webhooks("url_file", !channel.url_file.empty());
    for_webhooks("secret_file", !channel.secret_file.empty());
    for_webhooks("ca_file", !channel.ca_file.empty());
    for_webhooks("format", channel.format != AlertFormat::json);
    if (channel.type != ChannelType::command && !channel.command.empty())
      refuse("command", "is for channels of type command");
    if (channel.type == ChannelType::command &&
        (channel.command.empty() || channel.command.front().empty()))
      refuse("command", "is missing: a list of the program and its arguments");
    if (!webhook) continue;
    if (!channel.url.empty() && !channel.url_file.empty())
      refuse("url_file", "and url are both given");
    if (channel.url.empty() && channel.url_file.empty() && !pagerduty)
      refuse("url", "is missing, and url_file as well");
    if (!channel.url.empty()) {
      if (const auto fine = check_web_url(channel.url); !fine)
        refuse("url", "is refused: " + fine.error().message);
    }
    if (pagerduty && channel.secret_file.empty())
      refuse("secret_file", "is missing: PagerDuty needs a file with the integration's key");
  }
  return faults;
}

Result<std::map<std::string, ChannelSecrets>, Mistakes> channel_secrets(
    const AlertSettings& alerts) {
  std::map<std::string, ChannelSecrets> all;
  Mistakes mistakes;
  for (const auto& [name, channel] : alerts.channels) {
    auto& secrets = all[name];
    secrets.url = channel.url;
    if (channel.url.empty() && channel.format == AlertFormat::pagerduty)
      secrets.url = pagerduty_url;
    const auto read = [&, &name = name](const char* field, const std::filesystem::path& path,
                                        std::string& into) {
      if (path.empty()) return;
      const auto key = "alerts.channels." + name + "." + field;
      auto text = secret_in(path);
      if (text) {
        into = std::move(*text);
      } else {
        mistakes.push_back({.where = path.string(),
                            .key = key,
                            .message = key + ": " + path.string() + " " + text.error().message});
      }
    };
    read("url_file", channel.url_file, secrets.url);
    const bool pagerduty = channel.format == AlertFormat::pagerduty;
    read("secret_file", channel.secret_file, pagerduty ? secrets.routing_key : secrets.secret);
    if (!channel.url_file.empty() && !secrets.url.empty()) {
      if (const auto fine = check_web_url(secrets.url); !fine)
        mistakes.push_back({.where = channel.url_file.string(),
                            .key = "alerts.channels." + name + ".url_file",
                            .message = fine.error().message});
    }
  }
  if (!mistakes.empty()) return mistakes;
  return all;
}

}  // namespace watchdog
