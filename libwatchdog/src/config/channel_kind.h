/// \file
/// The table of channels: what each kind needs, how long its messages may be, what is escaped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "watchdog/settings.h"

namespace watchdog {

/// The characters that a receiver would read as more than text.
enum class Escapes : std::uint8_t {
  none,      ///< It shows texts as they are.
  entities,  ///< `&`, `<` and `>` become entities: Slack, and notifications of the desktop.
  markdown,  ///< A backslash precedes what Markdown uses, and mentions are broken.
  mentions,  ///< Mentions (`@name`) are broken by an invisible character.
  templates  ///< `{{` is broken, which opens a function in a card of Teams.
};

/// Whether a kind of channel has a setting.
enum class Need : std::uint8_t { no, may, must };

/// A row of the table. A plain value.
struct ChannelKind {
  std::string_view name;  ///< For people and `alerts setup`.
  ChannelType type = ChannelType::webhook;
  AlertFormat format = AlertFormat::json;
  std::size_t bytes_max = 0;  ///< Of a message's text in UTF-8; longer ones are cut.
  Escapes escapes = Escapes::none;
  Need url = Need::must;           ///< `url` or `url_file`.
  std::string_view url_default{};  ///< Without either.
  std::string_view url_help{};     ///< For `alerts setup`.
  Need secret = Need::no;          ///< `secret_file`.
  std::string_view secret_help{};
  Need to = Need::no;  ///< `to`.
  std::string_view to_help{};
  bool buttons = false;  ///< Its messages carry links for acts.
};

/// The limits are those that the receivers document, less room for links; a byte is at least as
/// much as their characters are.
inline constexpr std::array channel_kinds{
    ChannelKind{.name = "slack",
                .format = AlertFormat::slack,
                .bytes_max = 12'000,
                .escapes = Escapes::entities,
                .url_help = "URL of an incoming webhook",
                .secret = Need::may,
                .secret_help = "key that signs the body",
                .buttons = true},
    ChannelKind{.name = "ntfy",
                .format = AlertFormat::ntfy,
                .bytes_max = 3'500,
                .url_help = "URL of the topic, as https://ntfy.sh/TOPIC",
                .secret = Need::may,
                .secret_help = "access token",
                .buttons = true},
    ChannelKind{.name = "discord",
                .format = AlertFormat::discord,
                .bytes_max = 1'800,
                .escapes = Escapes::markdown,
                .url_help = "URL of a channel's webhook"},
    ChannelKind{.name = "teams",
                .format = AlertFormat::teams,
                .bytes_max = 9'000,
                .escapes = Escapes::templates,
                .url_help = "URL of a workflow that posts to a channel when a webhook is received"},
    ChannelKind{.name = "telegram",
                .format = AlertFormat::telegram,
                .bytes_max = 3'800,
                .escapes = Escapes::mentions,
                .url = Need::may,
                .url_default = "https://api.telegram.org",
                .url_help = "URL of another Bot API server",
                .secret = Need::must,
                .secret_help = "token of the bot",
                .to = Need::must,
                .to_help = "id of the chat, or @NAME of a public channel"},
    ChannelKind{.name = "matrix",
                .format = AlertFormat::matrix,
                .bytes_max = 20'000,
                .escapes = Escapes::mentions,
                .url_help = "URL of the homeserver",
                .secret = Need::must,
                .secret_help = "access token of the account that sends",
                .to = Need::must,
                .to_help = "id of the room, as !ID:SERVER"},
    ChannelKind{.name = "mail",
                .type = ChannelType::mail,
                .bytes_max = 100'000,
                .url_help = "URL of the server: smtps://HOST[:PORT], or smtp://HOST[:PORT] for "
                            "STARTTLS",
                .secret = Need::may,
                .secret_help = "USER:PASSWORD for the server",
                .to = Need::must,
                .to_help = "addresses, separated by commas"},
    ChannelKind{.name = "desktop",
                .type = ChannelType::desktop,
                .bytes_max = 1'000,
                .escapes = Escapes::entities,
                .url = Need::no},
    ChannelKind{.name = "pagerduty",
                .format = AlertFormat::pagerduty,
                .bytes_max = 1'000,
                .url = Need::may,
                .url_default = "https://events.pagerduty.com/v2/enqueue",
                .url_help = "URL of the Events API v2",
                .secret = Need::must,
                .secret_help = "key of the integration"},
    ChannelKind{.name = "webhook",
                .bytes_max = 100'000,
                .url_help = "URL that takes a POST",
                .secret = Need::may,
                .secret_help = "key that signs the body"},
    ChannelKind{
        .name = "command", .type = ChannelType::command, .bytes_max = 100'000, .url = Need::no},
    ChannelKind{.name = "log", .type = ChannelType::log, .bytes_max = 100'000, .url = Need::no},
};

/// The row of a channel. Thread-safe.
[[nodiscard]] constexpr const ChannelKind& kind_of(ChannelType type, AlertFormat format) noexcept {
  for (const auto& kind : channel_kinds) {
    const bool same = kind.type == type;
    if (same && (type != ChannelType::webhook || kind.format == format)) return kind;
  }
  return channel_kinds.back();
}

}  // namespace watchdog
