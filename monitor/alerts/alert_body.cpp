// One function a format, in the order of `AlertFormat`. Each gets the message's parts with the
// escapes and limits of its row in `channel_kinds`, so it has only the fields of its receiver to
// know. Where a receiver takes plain text, it gets plain text: what is not parsed cannot be
// injected. PagerDuty's key names session and episode, so the recovery resolves the incident that
// the trouble opened.
#include "alerts/alert_body.h"

#include <algorithm>
#include <array>

#include "alerts/escape.h"
#include "privacy/content.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

/// A message, ready for one format.
struct BodyParts {
  const AlertMessage& message;
  const AlertWording& wording;
  const Addressee& addressee;
  MessageText text;                  ///< Escaped and bounded.
  std::vector<AlertButton> buttons;  ///< Empty for a message about many sessions.
};

bool is_over(const Alert& alert) {
  return alert.kind == AlertKind::recovery;
}

std::string with_link(const MessageText& text) {
  return text.link.empty() ? text.text : text.text + "\n" + text.link;
}

void body_text_or_null(JsonWriter& out, std::string_view name, const std::string& text) {
  out.key(name);
  text.empty() ? out.value(nullptr) : out.value(clean_text(text));
}

void write_body_alert(JsonWriter& out, const Alert& alert, const AlertWording& wording) {
  out.open_object().field("alertId", alert.id).field("kind", name_of(alert.kind));
  out.field("sessionId", clean_text(alert.session));
  body_text_or_null(out, "agent", alert.agent);
  body_text_or_null(out, "parentSessionId", alert.parent);
  out.field("health", clean_text(alert.word)).field("reason", clean_text(alert.reason));
  out.field("at", alert.at.time_since_epoch().count()).field("since", utc_text(alert.at));
  out.field("text", sentence_of(alert, wording));
  if (!wording.url.empty()) out.field("url", link_to(alert, wording));
  if (wording.content) {
    body_text_or_null(out, "task", alert.task);
    body_text_or_null(out, "error", alert.detail);
  }
  out.close_object();
}

std::string json_body(const BodyParts& parts) {
  const auto& [message, wording, addressee, text, buttons] = parts;
  JsonWriter out;
  out.open_object().field("key", message.key).field("text", with_link(text));
  out.field("test", message.alerts.empty()).key("alerts").open_array();
  for (const auto& alert : message.alerts) write_body_alert(out, alert, wording);
  out.close_array().close_object();
  return out.finish();
}

std::string_view severity_of(const Alert& alert) {
  if (alert.word == "dead" || alert.word == "failed") return "critical";
  const bool is_mild = alert.word == "blocked" || alert.word == "needs_input" ||
                       alert.word == "idle" || alert.word == "quota" ||
                       alert.word == "incomplete" || alert.word == "suspect" ||
                       alert.word == "quiet";
  return is_mild ? "warning" : "error";
}

/// Events API v2. All alerts of one trouble are one incident, and its recovery resolves it.
std::string pagerduty_body(const BodyParts& parts) {
  const auto& [message, wording, addressee, text, buttons] = parts;
  const Alert test{.session = "test", .word = "stuck"};
  const auto& alert = message.alerts.empty() ? test : message.alerts.front();
  JsonWriter out;
  out.open_object().field("routing_key", addressee.routing_key);
  out.field("event_action", is_over(alert) ? "resolve" : "trigger");
  out.field("dedup_key", message.alerts.empty()
                             ? message.key
                             : "watchdog/" + clean_text(alert.session) + "/" +
                                   std::to_string(alert.episode.time_since_epoch().count()));
  out.field("client", "watchdog-monitor");
  if (!wording.url.empty()) {
    out.field("client_url", wording.url);
    out.key("links").open_array().open_object().field("href", link_to(alert, wording));
    out.field("text", "Open the monitor").close_object().close_array();
  }
  out.key("payload").open_object();
  out.field("summary", text.text);
  out.field("source", clean_text(alert.session)).field("severity", severity_of(alert));
  if (!alert.agent.empty()) out.field("component", clean_text(alert.agent));
  if (!message.alerts.empty()) {
    out.field("timestamp", utc_text(alert.at)).key("custom_details");
    write_body_alert(out, alert, wording);
  }
  out.close_object().close_object();
  return out.finish();
}

/// An incoming webhook. Its buttons are those of attachments, which are plain links: buttons of
/// blocks want an answer of the app, and show a warning without.
std::string slack_body(const BodyParts& parts) {
  const auto& text = parts.text;
  JsonWriter out;
  out.open_object().field(
      "text", text.link.empty() ? text.text : text.text + "\n<" + text.link + "|Open the monitor>");
  if (!parts.buttons.empty()) {
    out.key("attachments").open_array().open_object().field("fallback", "Answer on the monitor");
    out.key("actions").open_array();
    for (const auto& button : parts.buttons) {
      out.open_object().field("type", "button").field("text", button.label);
      out.field("url", button.url).close_object();
    }
    out.close_array().close_object().close_array();
  }
  out.field("unfurl_links", false).close_object();
  return out.finish();
}

std::int64_t priority_of(const AlertMessage& message) {
  if (message.alerts.empty()) return 3;
  std::int64_t highest = 2;  // of good news
  for (const auto& alert : message.alerts) {
    if (is_over(alert)) continue;
    const auto severity = severity_of(alert);
    highest = std::max<std::int64_t>(highest, severity == "critical"  ? 5
                                              : severity == "warning" ? 3
                                                                      : 4);
  }
  return highest;
}

/// Published as JSON to the server's root.
std::string ntfy_body(const BodyParts& parts) {
  const auto& text = parts.text;
  JsonWriter out;
  out.open_object().field("topic", parts.addressee.to).field("title", text.title);
  out.field("message", text.below).field("priority", priority_of(parts.message));
  out.key("tags").open_array();
  out.value(is_good_news(parts.message) ? "white_check_mark" : "warning").close_array();
  if (!text.link.empty()) out.field("click", text.link);
  if (!parts.buttons.empty()) {
    out.key("actions").open_array();
    for (const auto& button : parts.buttons) {
      out.open_object().field("action", "view").field("label", button.label);
      out.field("url", button.url).close_object();
    }
    out.close_array();
  }
  out.close_object();
  return out.finish();
}

/// A webhook of a channel. Nobody is mentioned, whatever the text says, and no link is unfolded.
std::string discord_body(const BodyParts& parts) {
  constexpr std::int64_t suppress_embeds = 4;
  JsonWriter out;
  out.open_object().field("content", with_link(parts.text)).field("flags", suppress_embeds);
  out.key("allowed_mentions").open_object().key("parse").open_array().close_array().close_object();
  out.close_object();
  return out.finish();
}

/// A line of a card that no Markdown applies to.
void write_card_line(JsonWriter& out, std::string_view line, bool bold) {
  out.open_object().field("type", "RichTextBlock").key("inlines").open_array();
  out.open_object().field("type", "TextRun").field("text", line);
  if (bold) out.field("weight", "bolder");
  out.close_object().close_array().close_object();
}

/// An adaptive card in a message, as the workflow "when a webhook request is received" takes it.
std::string teams_body(const BodyParts& parts) {
  const auto& text = parts.text;
  JsonWriter out;
  out.open_object().field("type", "message").key("attachments").open_array().open_object();
  out.field("contentType", "application/vnd.microsoft.card.adaptive");
  out.key("contentUrl").value(nullptr);
  out.key("content").open_object();
  out.field("$schema", "http://adaptivecards.io/schemas/adaptive-card.json");
  out.field("type", "AdaptiveCard").field("version", "1.4").key("body").open_array();
  write_card_line(out, text.title, true);
  std::string_view rest = text.below;
  while (true) {
    const auto end = std::min(rest.find('\n'), rest.size());
    write_card_line(out, rest.substr(0, end), false);
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  out.close_array();
  if (!text.link.empty()) {
    out.key("actions").open_array().open_object().field("type", "Action.OpenUrl");
    out.field("title", "Open the monitor").field("url", text.link).close_object().close_array();
  }
  out.close_object().close_object().close_array().close_object();
  return out.finish();
}

/// sendMessage without a parse mode: plain text.
std::string telegram_body(const BodyParts& parts) {
  JsonWriter out;
  out.open_object().field("chat_id", parts.addressee.to).field("text", with_link(parts.text));
  out.field("disable_notification", is_good_news(parts.message));
  out.key("link_preview_options").open_object().field("is_disabled", true).close_object();
  out.close_object();
  return out.finish();
}

/// m.room.message without a formatted body: plain text. It states that it mentions nobody.
std::string matrix_body(const BodyParts& parts) {
  JsonWriter out;
  out.open_object().field("msgtype", is_good_news(parts.message) ? "m.notice" : "m.text");
  out.field("body", with_link(parts.text)).key("m.mentions").open_object().close_object();
  out.close_object();
  return out.finish();
}

constexpr std::array body_functions{json_body,    slack_body, pagerduty_body, ntfy_body,
                                    discord_body, teams_body, telegram_body,  matrix_body};
static_assert(body_functions.size() == std::size(Names<AlertFormat>::all));

}  // namespace

bool is_good_news(const AlertMessage& message) {
  return !message.alerts.empty() && std::ranges::all_of(message.alerts, is_over);
}

std::string body_of(const AlertMessage& message, AlertFormat format, const AlertWording& wording,
                    const Addressee& addressee) {
  const auto& kind = kind_of(ChannelType::webhook, format);
  auto text = message_text(message, wording);
  text.title = escaped(text.title, kind.escapes, kind.bytes_max);
  text.text = escaped(text.text, kind.escapes, kind.bytes_max);
  text.below = escaped(text.below, kind.escapes, kind.bytes_max);
  std::vector<AlertButton> buttons;
  if (kind.buttons && wording.buttons && message.alerts.size() == 1 && !is_good_news(message))
    buttons = wording.buttons(message.alerts.front());
  return body_functions.at(static_cast<std::size_t>(format))(
      {message, wording, addressee, std::move(text), std::move(buttons)});
}

}  // namespace watchdog::monitor
