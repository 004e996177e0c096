// Checks the settings of channels against the table in channel_kind.h, and reads their secrets. The
// table says which settings a kind needs, may have, or does not have. Secrets come from files of
// their owner only, and no error repeats their text.
#include "config/channels.h"

#include <algorithm>
#include <cctype>

#include "config/channel_kind.h"
#include "files/regular_file.h"
#include "net/url.h"
#include "net/web_request.h"

namespace watchdog {
namespace {

constexpr std::size_t secret_bytes_max = 4'096;
constexpr std::size_t channels_max = 16;
/// The text of the file without white space around it.
Result<std::string> secret_in(const std::filesystem::path& path) {
  auto text = read_regular_file(path, secret_bytes_max, Readers::owner);
  if (!text) return text;
  constexpr std::string_view space = " \t\r\n";
  const auto begin = text->find_first_not_of(space);
  if (begin == std::string::npos) return Error{ErrorCode::invalid, "holds nothing"};
  auto secret = text->substr(begin, text->find_last_not_of(space) - begin + 1);
  const bool one_line =
      std::ranges::all_of(secret, [](unsigned char c) { return c >= 0x20 && c != 0x7F; });
  if (!one_line) return Error{ErrorCode::invalid, "must hold one line of text"};
  return secret;
}

/// For a name of a topic, ntfy's own rule.
bool is_topic(std::string_view text) {
  return is_plain_name(text);
}

/// `smtp[s]://HOST[:PORT]`, checked by the same rules as a URL of the web.
Result<void> check_mail_url(std::string_view url) {
  const auto scheme = url.starts_with("smtps://") ? 8U : url.starts_with("smtp://") ? 7U : 0U;
  if (scheme == 0)
    return Error{ErrorCode::invalid, "must be smtps://HOST[:PORT] or smtp://HOST[:PORT]"};
  const auto server = url_from("https://" + std::string(url.substr(scheme)));
  if (!server) return server.error();
  if (server->path.empty()) return {};
  return Error{ErrorCode::invalid,
               "must be smtps://HOST[:PORT] or smtp://HOST[:PORT], without a path"};
}

Result<void> check_channel_url(const ChannelKind& kind, const std::string& url) {
  if (kind.type == ChannelType::mail) return check_mail_url(url);
  if (auto fine = check_web_url(url); !fine) return fine;
  if (kind.format != AlertFormat::ntfy) return {};
  const auto path = url.substr(url.find("://") + 3);
  const auto slash = path.rfind('/');
  if (slash != std::string::npos && is_topic(path.substr(slash + 1))) return {};
  return Error{ErrorCode::invalid,
               "must end with the topic: 1 to 64 letters, digits, _ and -, as in "
               "https://ntfy.sh/TOPIC"};
}

/// Plain addresses only: nothing that could begin another header or another command.
bool is_mail_address(std::string_view text) {
  const auto at = text.find('@');
  return at != std::string_view::npos && at > 0 && at + 1 < text.size() && text.size() <= 254 &&
         text.find('@', at + 1) == std::string_view::npos &&
         std::ranges::all_of(text, [](unsigned char c) {
           return c > 0x20 && c < 0x7F &&
                  std::string_view("<>()[],;:\\\"").find(static_cast<char>(c)) ==
                      std::string_view::npos;
         });
}

std::string receiver_fault(const ChannelKind& kind, const std::string& to) {
  if (kind.type == ChannelType::mail) {
    for (const auto& address : mail_addresses(to))
      if (!is_mail_address(address)) return "holds " + address + ", which is not a mail address";
  }
  const bool room = to.starts_with('!') || to.starts_with('#');
  if (kind.format == AlertFormat::matrix && !to.starts_with('!'))
    return room ? "is an alias; the id of the room is needed, which begins with !"
                : "is not the id of a room, which begins with !";
  return {};
}

/// Adds what is wrong with one channel. `refuse(FIELD, WHY)`.
template <class Refuse>
void check_channel(const AlertChannel& channel, const Refuse& refuse) {
  const auto& kind = kind_of(channel.type, channel.format);
  const bool webhook = channel.type == ChannelType::webhook;
  const auto own = webhook ? "the format " + std::string(name_of(channel.format))
                           : "channels of type " + std::string(name_of(channel.type));
  const auto field = [&](const char* name, bool given, Need need, std::string_view help) {
    if (given && need == Need::no) refuse(name, "does not apply to " + own);
    if (!given && need == Need::must)
      refuse(name, "is missing" + (help.empty() ? "" : ": " + std::string(help)));
  };
  const auto if_so = [](bool so) { return so ? Need::must : Need::no; };
  field("url", !channel.url.empty() || !channel.url_file.empty(), kind.url,
        std::string(kind.url_help) + ", or url_file with it");
  field("secret_file", !channel.secret_file.empty(), kind.secret, kind.secret_help);
  field("to", !channel.to.empty(), kind.to, kind.to_help);
  field("from", !channel.from.empty(), channel.type == ChannelType::mail ? Need::may : Need::no,
        "");
  field("ca_file", !channel.ca_file.empty(), kind.url == Need::no ? Need::no : Need::may, "");
  field("command", !channel.command.empty() && !channel.command.front().empty(),
        if_so(channel.type == ChannelType::command), "a list of the program and its arguments");
  if (!webhook && channel.format != AlertFormat::json) refuse("format", "does not apply to " + own);
  if (!channel.url.empty() && !channel.url_file.empty())
    refuse("url_file", "and url are both given");
  if (!channel.url.empty() && kind.url != Need::no) {
    if (const auto fine = check_channel_url(kind, channel.url); !fine)
      refuse("url", "is refused: " + fine.error().message);
  }
  if (!channel.to.empty() && kind.to != Need::no) {
    if (const auto fault = receiver_fault(kind, channel.to); !fault.empty()) refuse("to", fault);
  }
  if (!channel.from.empty() && !is_mail_address(channel.from))
    refuse("from", "is not a mail address");
}

}  // namespace

std::vector<std::string> mail_addresses(std::string_view list) {
  std::vector<std::string> all;
  while (true) {
    const auto comma = std::min(list.find(','), list.size());
    auto one = list.substr(0, comma);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    all.emplace_back(one);
    if (comma == list.size()) return all;
    list.remove_prefix(comma + 1);
  }
}

bool is_plain_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || c == '_' || c == '-';
  });
}

std::vector<KeyFault> channel_faults(const AlertSettings& alerts) {
  std::vector<KeyFault> faults;
  if (alerts.channels.size() > channels_max) {
    faults.push_back({"alerts.channels",
                      "alerts.channels has " + std::to_string(alerts.channels.size()) +
                          " channels; at most " + std::to_string(channels_max) + " are allowed"});
  }
  for (const auto& [name, channel] : alerts.channels) {
    const auto key = "alerts.channels." + name;
    const auto refuse = [&faults, &key](const char* field, const std::string& why) {
      faults.push_back({key + "." + field, key + "." + field + " " + why});
    };
    if (!is_plain_name(name)) {
      faults.push_back({key, "alerts.channels." + key_text({name}) +
                                 ": a channel's name is 1 to 64 letters, digits, _ and -"});
      continue;
    }
    check_channel(channel, refuse);
  }
  return faults;
}

Result<std::map<std::string, ChannelSecrets>, Mistakes> channel_secrets(
    const AlertSettings& alerts) {
  std::map<std::string, ChannelSecrets> all;
  Mistakes mistakes;
  for (const auto& [name, channel] : alerts.channels) {
    auto& secrets = all[name];
    const auto& kind = kind_of(channel.type, channel.format);
    secrets.url = channel.url.empty() ? std::string(kind.url_default) : channel.url;
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
    if (channel.type == ChannelType::mail && !channel.secret_file.empty() &&
        !secrets.secret.empty() && secrets.secret.find(':') == std::string::npos)
      mistakes.push_back({.where = channel.secret_file.string(),
                          .key = "alerts.channels." + name + ".secret_file",
                          .message = "must hold USER:PASSWORD of the mail server"});
    if (!channel.url_file.empty() && !secrets.url.empty()) {
      if (const auto fine = check_channel_url(kind, secrets.url); !fine)
        mistakes.push_back({.where = channel.url_file.string(),
                            .key = "alerts.channels." + name + ".url_file",
                            .message = fine.error().message});
    }
  }
  if (!mistakes.empty()) return mistakes;
  return all;
}

}  // namespace watchdog
