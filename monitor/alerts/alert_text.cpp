// All formats are made of the same sentences. Each text of an agent passes `clean` first: it
// redacts, shortens, and replaces control characters, so no agent can forge a line of ours. A
// receiver's escapes come last, over the finished sentences. A session whose id had to be redacted
// gets no link of its own.
#include "alerts/alert_text.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>
#include <utility>

#include "codec/progress.h"
#include "privacy/content.h"
#include "text/json_writer.h"
#include "text/time_left.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t title_chars_max = 150;
/// Sessions of a message with a line of their own.
constexpr std::size_t lines_max = 20;

/// True for a character that ends a line, or turns the direction of what follows.
bool is_unruly(std::string_view one) {
  constexpr std::array<std::string_view, 13> all{"\u0085", "\u2028", "\u2029", "\u202A", "\u202B",
                                                 "\u202C", "\u202D", "\u202E", "\u2066", "\u2067",
                                                 "\u2068", "\u2069", "\u200F"};
  return std::ranges::find(all, one) != all.end();
}

bool is_recovery(const Alert& alert) {
  return alert.kind == AlertKind::recovery;
}

/// Agents whose makers write their names in another way than their hooks do.
constexpr std::pair<std::string_view, std::string_view> agent_names[] = {
    {"claude-code", "Claude Code"}, {"codex", "Codex"},   {"gemini-cli", "Gemini CLI"},
    {"copilot-cli", "Copilot CLI"}, {"cursor", "Cursor"},
};

/// `parser: Claude Code`; `Claude Code (59a1682c)` if its folder is not known.
std::string name_of_session(const Alert& alert) {
  const auto* known = std::ranges::find(agent_names, alert.agent,
                                        &std::pair<std::string_view, std::string_view>::first);
  const auto agent =
      known == std::end(agent_names) ? clean_text(alert.agent) : std::string(known->second);
  if (!alert.folder.empty())
    return clean_text(alert.folder) + ": " + (agent.empty() ? "the agent" : agent);
  const auto id = clean_text(std::string(short_id(alert.session)));
  if (agent.empty()) return id;
  // An id that somebody chose says more than the agent's name.
  return id == alert.session ? id + " (" + agent + ")" : agent + " (" + id + ")";
}

/// The words of an agent's trouble for people, and of its wait for a person by the reason.
constexpr std::pair<std::string_view, std::string_view> deeds[] = {
    {"looping", "repeats itself"},
    {"dead", "died"},
    {"idle", "has finished its turn"},
    {"quota", "waits for quota"},
    {"blocked", "waits"},
    {"suspect", "may be stuck"},
    {"incomplete", "ended incomplete"},
    {"for approval", "asks for permission"},
    {"for input", "asks a question"},
    {"for login", "needs a login"},
    {"for billing", "needs a payment"},
};

std::string deed_of(const Alert& alert) {
  const bool waits = alert.word == "needs_input";
  for (const auto& [word, deed] : deeds)
    if (waits ? alert.reason.find(word) != alert.reason.npos : alert.word == word)
      return std::string(deed);
  return waits ? "waits for you" : "is " + clean_text(alert.word);
}

/// `is stuck`, `failed`, `recovered: it is progressing`, `ended: cancelled`.
std::string state_of(const Alert& alert) {
  // A session goes on after the end of a turn.
  const auto lifecycle = named<Lifecycle>(alert.word);
  const bool ended = lifecycle && is_end(*lifecycle);
  const auto word = clean_text(alert.word);
  if (is_recovery(alert)) {
    if (ended) return "ended: " + word;
    // After the answer to its first question. Nothing was wrong before it.
    return alert.word == name_of(HealthKind::starting) ? "goes on" : "recovered: it is " + word;
  }
  return ended && alert.word != "incomplete" ? word : deed_of(alert);
}

/// `children of p`, if all are.
std::string common_parent(const AlertMessage& message) {
  const auto& parent = message.alerts.front().parent;
  const bool common = std::ranges::all_of(
      message.alerts, [&](const Alert& alert) { return alert.parent == parent; });
  return common && !parent.empty() ? "children of " + clean_text(parent) : "";
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

}  // namespace

std::string clean_text(const std::string& text, std::size_t chars_max) {
  const auto safe = redact(text);
  const auto shown = first_characters(safe, chars_max);
  std::string cut;
  for (auto rest = shown; !rest.empty();) {
    auto one = first_characters(rest, 1);
    if (one.empty()) one = rest.substr(0, 1);
    const bool control =
        one.size() == 1 && (static_cast<unsigned char>(one[0]) < 0x20 || one[0] == 0x7F);
    cut += control || is_unruly(one) ? " " : std::string(one);
    rest.remove_prefix(one.size());
  }
  return shown.size() < safe.size() ? cut + "…" : cut;
}

std::string utc_text(WallTime at) {
  const std::time_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch()).count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string link_to(const Alert& alert, const AlertWording& wording) {
  // A session whose id must not be shown cannot be linked.
  if (wording.url.empty() || redact(alert.session) != alert.session) return wording.url;
  return wording.url + "/sessions/" + alert.session;
}

std::string sentence_of(const Alert& alert, const AlertWording& wording) {
  auto text = name_of_session(alert) + " " + state_of(alert);
  if (!alert.reason.empty()) {
    const auto now = wording.now.value_or(system_clock().wall());
    text += ": " + clean_text(with_time_left(alert.reason, now));
  }
  if (wording.content && !alert.detail.empty()) text += ": " + clean_text(alert.detail);
  text += ", since " + utc_text(alert.at);
  if (!alert.folder.empty())
    text += ", session " + clean_text(std::string(short_id(alert.session)));
  if (wording.content && !alert.task.empty()) text += ". Its task: " + clean_text(alert.task);
  return text;
}

std::string text_of(const AlertMessage& message, const AlertWording& wording) {
  const auto text = message_text(message, wording);
  return text.link.empty() ? text.text : text.text + "\n" + text.link;
}

MessageText message_text(const AlertMessage& message, const AlertWording& wording) {
  MessageText made{.title = "Test of watchdog-monitor", .text = headline_of(message, wording)};
  const auto& alerts = message.alerts;
  if (alerts.size() == 1) {
    made.title = name_of_session(alerts.front()) + " " + state_of(alerts.front());
  } else if (alerts.size() > 1) {
    made.title = made.text;
    const auto lines = std::min(lines_max, alerts.size());
    for (std::size_t at = 0; at < lines; ++at)
      made.text += "\n• " + sentence_of(alerts[at], wording);
    if (alerts.size() > lines)
      made.text += "\n… and " + std::to_string(alerts.size() - lines) + " more";
  }
  made.title = clean_text(made.title, title_chars_max);
  const auto said = made.title + ": ";
  made.below = made.text.starts_with(said) ? made.text.substr(said.size()) : made.text;
  if (wording.url.empty()) return made;
  made.link = alerts.size() == 1 ? link_to(alerts.front(), wording) : wording.url + "/";
  return made;
}

}  // namespace watchdog::monitor
