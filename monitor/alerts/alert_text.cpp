// All formats are made of the same sentences. Each text of an agent passes `clean` first: it
// redacts, shortens, and replaces control characters, so no agent can forge a line of ours. Slack's
// escapes come last, over the finished sentence. A session whose id had to be redacted gets no link
// of its own. PagerDuty's key names session and episode, so the recovery resolves the incident that
// the trouble opened.
#include "alerts/alert_text.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "privacy/content.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t reason_chars_max = 300;
constexpr std::size_t summary_chars_max = 1'000;
/// Sessions of a message with a line of their own.
constexpr std::size_t lines_max = 20;

/// Cleans a text for a person: no secrets, bounded, without line breaks that would look like ours.
std::string clean(const std::string& text, std::size_t chars_max = reason_chars_max) {
  const auto safe = redact(text);
  std::string cut(first_characters(safe, chars_max));
  if (cut.size() < safe.size()) cut += "…";
  for (auto& c : cut)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return cut;
}

std::string time_of(WallTime at) {
  const std::time_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

bool is_recovery(const Alert& alert) {
  return alert.kind == AlertKind::recovery;
}

std::string name_of_session(const Alert& alert) {
  return clean(alert.session) + (alert.agent.empty() ? "" : " (" + clean(alert.agent) + ")");
}

/// `is stuck`, `failed`, `recovered: it is progressing`, `ended: cancelled`.
std::string state_of(const Alert& alert) {
  const bool ended = named<Lifecycle>(alert.word).has_value();
  const auto word = clean(alert.word);
  if (is_recovery(alert)) return ended ? "ended: " + word : "recovered: it is " + word;
  if (alert.word == "incomplete") return "ended incomplete";
  return ended ? word : "is " + word;
}

/// `children of p`, if all are.
std::string common_parent(const AlertMessage& message) {
  const auto& parent = message.alerts.front().parent;
  const bool common = std::ranges::all_of(
      message.alerts, [&](const Alert& alert) { return alert.parent == parent; });
  return common && !parent.empty() ? "children of " + clean(parent) : "";
}

std::string link_to(const Alert& alert, const AlertWording& wording) {
  // A session whose id must not be shown cannot be linked.
  if (wording.url.empty() || redact(alert.session) != alert.session) return wording.url;
  return wording.url + "/sessions/" + alert.session;
}

std::string headline_of(const AlertMessage& message, const AlertWording& wording) {
  if (message.alerts.empty()) return "A test of this channel by watchdog-monitor: it works.";
  if (message.alerts.size() == 1) return sentence_of(message.alerts.front(), wording);
  const auto recovered = std::ranges::count_if(message.alerts, is_recovery);
  const auto troubled = static_cast<std::ptrdiff_t>(message.alerts.size()) - recovered;
  std::string text;
  if (troubled > 0) text = std::to_string(troubled) + " alerts";
  if (recovered > 0)
    text += (text.empty() ? "" : " and ") + std::to_string(recovered) +
            (recovered == 1 ? " recovery" : " recoveries");
  const auto parent = common_parent(message);
  return text + (parent.empty() ? "" : " of " + parent);
}

/// As Slack wants it: three characters mean something, and links are `<URL|TEXT>`.
std::string for_slack(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else
      safe += c;
  }
  return safe;
}

std::string lines_of(const AlertMessage& message, const AlertWording& wording, bool slack) {
  const auto shown = [&](const std::string& text) { return slack ? for_slack(text) : text; };
  auto text = shown(headline_of(message, wording));
  if (message.alerts.size() > 1) {
    const auto lines = std::min(lines_max, message.alerts.size());
    for (std::size_t at = 0; at < lines; ++at)
      text += "\n• " + shown(sentence_of(message.alerts[at], wording));
    if (message.alerts.size() > lines)
      text += "\n… and " + std::to_string(message.alerts.size() - lines) + " more";
  }
  if (wording.url.empty()) return text;
  const auto link =
      message.alerts.size() == 1 ? link_to(message.alerts.front(), wording) : wording.url + "/";
  return text + "\n" + (slack ? "<" + link + "|Open the monitor>" : link);
}

void text_or_null(JsonWriter& out, std::string_view name, const std::string& text) {
  out.key(name);
  text.empty() ? out.value(nullptr) : out.value(clean(text));
}

void write_alert(JsonWriter& out, const Alert& alert, const AlertWording& wording) {
  out.open_object().field("alertId", alert.id).field("kind", name_of(alert.kind));
  out.field("sessionId", clean(alert.session));
  text_or_null(out, "agent", alert.agent);
  text_or_null(out, "parentSessionId", alert.parent);
  out.field("health", clean(alert.word)).field("reason", clean(alert.reason));
  out.field("at", alert.at.time_since_epoch().count()).field("since", time_of(alert.at));
  out.field("text", sentence_of(alert, wording));
  if (!wording.url.empty()) out.field("url", link_to(alert, wording));
  if (wording.content) {
    text_or_null(out, "task", alert.task);
    text_or_null(out, "error", alert.detail);
  }
  out.close_object();
}

std::string json_body(const AlertMessage& message, const AlertWording& wording) {
  JsonWriter out;
  out.open_object().field("key", message.key).field("text", text_of(message, wording));
  out.field("test", message.alerts.empty()).key("alerts").open_array();
  for (const auto& alert : message.alerts) write_alert(out, alert, wording);
  out.close_array().close_object();
  return out.take();
}

std::string slack_body(const AlertMessage& message, const AlertWording& wording) {
  JsonWriter out;
  out.open_object().field("text", lines_of(message, wording, true));
  out.field("unfurl_links", false).close_object();
  return out.take();
}

std::string_view severity_of(const Alert& alert) {
  if (alert.word == "dead" || alert.word == "failed") return "critical";
  const bool is_mild =
      alert.word == "blocked" || alert.word == "needs_input" || alert.word == "incomplete";
  return is_mild ? "warning" : "error";
}

/// Events API v2. All alerts of one trouble are one incident, and its recovery resolves it.
std::string pagerduty_body(const AlertMessage& message, const AlertWording& wording,
                           const std::string& routing_key) {
  const Alert test{.session = "test", .word = "stuck"};
  const auto& alert = message.alerts.empty() ? test : message.alerts.front();
  JsonWriter out;
  out.open_object().field("routing_key", routing_key);
  out.field("event_action", is_recovery(alert) ? "resolve" : "trigger");
  out.field("dedup_key", message.alerts.empty()
                             ? message.key
                             : "watchdog/" + clean(alert.session) + "/" +
                                   std::to_string(alert.episode.time_since_epoch().count()));
  out.field("client", "watchdog-monitor");
  if (!wording.url.empty()) {
    out.field("client_url", wording.url);
    out.key("links").open_array().open_object().field("href", link_to(alert, wording));
    out.field("text", "Open the monitor").close_object().close_array();
  }
  out.key("payload").open_object();
  out.field("summary", first_characters(headline_of(message, wording), summary_chars_max));
  out.field("source", clean(alert.session)).field("severity", severity_of(alert));
  if (!alert.agent.empty()) out.field("component", clean(alert.agent));
  if (!message.alerts.empty()) {
    out.field("timestamp", time_of(alert.at)).key("custom_details");
    write_alert(out, alert, wording);
  }
  out.close_object().close_object();
  return out.take();
}

}  // namespace

std::string sentence_of(const Alert& alert, const AlertWording& wording) {
  auto text = name_of_session(alert) + " " + state_of(alert);
  if (!alert.reason.empty()) text += ": " + clean(alert.reason);
  if (wording.content && !alert.detail.empty()) text += ": " + clean(alert.detail);
  text += ", since " + time_of(alert.at);
  if (wording.content && !alert.task.empty()) text += ". Its task: " + clean(alert.task);
  return text;
}

std::string text_of(const AlertMessage& message, const AlertWording& wording) {
  return lines_of(message, wording, false);
}

std::string body_of(const AlertMessage& message, AlertFormat format, const AlertWording& wording,
                    const std::string& routing_key) {
  switch (format) {
    case AlertFormat::slack:
      return slack_body(message, wording);
    case AlertFormat::pagerduty:
      return pagerduty_body(message, wording, routing_key);
    case AlertFormat::json:
      break;
  }
  return json_body(message, wording);
}

}  // namespace watchdog::monitor
