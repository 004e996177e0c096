// Each helper returns finished HTML, so a text of an agent is escaped exactly where it enters: by
// `escaped`, `link_to` or `small`. Only words of enums and numbers enter as they are. Evidence
// links to `#event-N`, the rows of the table of newest events; an older event is not on the page.
// Times are in the monitor's time zone, because no script converts them to the reader's.
#include "api/page.h"

#include <algorithm>
#include <ctime>
#include <span>
#include <string>

#include "api/layout.h"
#include "codec/progress.h"
#include "judge/loose_ends.h"
#include "privacy/content.h"
#include "watchdog/health.h"

namespace watchdog::monitor {
namespace {

std::string link_to(std::string_view session, std::string_view text) {
  return "<a href=\"/sessions/" + escaped(session) + "\">" + escaped(text) + "</a>";
}

std::string link_to(std::string_view session) {
  return link_to(session, session);
}

std::string small(std::string_view text) {
  return text.empty() ? "" : "<small>" + escaped(text) + "</small>";
}

std::string number(const std::string& text) {
  return "<td class=\"number\">" + text + "</td>";
}

std::string formatted(const char* format, const std::tm& time) {
  std::string text(40, '\0');
  text.resize(std::strftime(text.data(), text.size(), format, &time));
  return text;
}

std::tm local_time(WallTime at) {
  const std::time_t seconds = at.time_since_epoch().count() / 1'000;
  std::tm local{};
  localtime_r(&seconds, &local);
  return local;
}

std::string words_of(WallTime at) {
  return formatted("%b %d, %H:%M:%S", local_time(at));
}

std::string time_of(WallTime at) {
  const std::time_t seconds = at.time_since_epoch().count() / 1'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return "<time datetime=\"" + formatted("%Y-%m-%dT%H:%M:%SZ", utc) + "\">" + words_of(at) +
         "</time>";
}

/// Names the time zone as "UTC+0100", because abbreviations such as "IST" have several meanings.
std::string zone_note() {
  return "Times are in the monitor's time zone, UTC" +
         formatted("%z", local_time(system_clock().wall())) + ".";
}

/// Word, icon and colour, by the style of that name.
std::string badge_of(std::string_view state) {
  std::string name(state);
  std::ranges::replace(name, '_', ' ');
  return "<span class=\"health " + std::string(state) +
         "\"><span class=\"icon\" aria-hidden=\"true\"></span>" + name + "</span>";
}

std::string badge_of(const PageRow& session) {
  return badge_of(name_of(session.urgency.standing.state));
}

std::string explanation_of(const PageRow& session) {
  const auto& culprit = session.explained_by;
  if (!culprit) return "";
  return "<small>because its child " + link_to(culprit->session) + " is " +
         std::string(name_of(culprit->health)) + ": " + escaped(culprit->reason) + "</small>";
}

/// The loose ends of an idle session's turn.
std::string notice_of(const PageRow& session) {
  return small(unfinished_note(session.judged.history));
}

std::string row_of(const PageRow& session, Instant now) {
  const auto& row = session.row;
  const auto& history = session.judged.history;
  const auto description = description_of(row.spec);
  const auto title = title_of(row.id, description, *history.notes->words);
  std::string html = "<tr><th scope=\"row\">" + link_to(row.id, title);
  html += small(row.spec.agent) + small(title == row.id ? "" : short_id(row.id));
  if (!row.spec.parent.empty()) html += "<small>child of " + link_to(row.spec.parent) + "</small>";
  html += "</th><td>" + badge_of(session) + small("since " + words_of(session.urgency.since)) +
          "</td><td>" + escaped(reason_of(session.judged, now));
  html += notice_of(session) + explanation_of(session) + small(row.spec.task) + "</td><td>" +
          escaped(history.phase);
  if (const auto* server = server_note(history)) html += small(server_in_brief(server->evidence));
  html += "</td>" + number(history.iteration ? std::to_string(*history.iteration) : "–");
  html += number(std::to_string(history.state_changes));
  html += number(history.state_changes > 0 ? spoken(now - history.last_change) + " ago" : "–");
  html += number(history.heartbeats > 0 ? spoken(now - history.last_beat) + " ago" : "–");
  return html + "</tr>\n";
}

std::string heads_of(std::span<const std::string_view> names) {
  std::string html = "<thead><tr>";
  for (const auto name : names) html.append("<th scope=\"col\">").append(name).append("</th>");
  return html + "</tr></thead>\n<tbody>\n";
}

std::string evidence_of(const Health& health) {
  std::string items;
  for (std::size_t at = 0; at < health.evidence.size(); ++at) {
    if (health.evidence[at] == 0) continue;
    const auto seq = std::to_string(health.evidence[at]);
    items += "<li>" + escaped(evidence_note(health, at)) + " (<a href=\"#event-" + seq +
             "\">event " + seq + "</a>)</li>\n";
  }
  return items.empty() ? "" : "<h2>Evidence</h2>\n<ul>\n" + items + "</ul>\n";
}

std::string running_in(const History& history, Instant now) {
  std::string html;
  for (const auto& turn : *history.notes->turns) {
    html += "<li>turn " + escaped(turn.id) + " for " + spoken(now - turn.since) +
            (turn.aborting ? ", is to stop" : "") + "</li>\n";
  }
  for (const auto& call : *history.open_calls) {
    html += "<li>tool " +
            escaped(call.name.empty() ? std::string("without a name") : call.name.str()) + " for " +
            spoken(now - call.since) + small(call.notes->said) + "</li>\n";
  }
  return html.empty() ? "" : "<h2>Running</h2>\n<ul>\n" + html + "</ul>\n";
}

std::string events_in(const std::vector<Event>& events) {
  static constexpr std::string_view names[] = {"Event", "When", "Kind", "What"};
  std::string html = "<h2>Newest events</h2>\n<div class=\"wide\"><table>\n" + heads_of(names);
  for (const auto& event : events) {
    const auto seq = std::to_string(event.seq);
    const auto& report = event.report;
    html += "<tr id=\"event-" + seq + "\"><td class=\"number\">" + seq + "</td><td>" +
            time_of(event.at) + "</td><td>" + std::string(name_of(report.kind)) + "</td><td>" +
            escaped(report.name) + small(first_characters(report.content, preview_chars_max)) +
            "</td></tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace

std::string spoken(Millis time) {
  const auto seconds = std::max<std::int64_t>(time.count(), 0) / 1'000;
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 7'200) return std::to_string(seconds / 60) + " min";
  if (seconds < 172'800) return std::to_string(seconds / 3'600) + " h";
  return std::to_string(seconds / 86'400) + " d";
}

Response sessions_page(const std::vector<PageRow>& sessions, bool are_all, Instant now) {
  const auto needed = std::ranges::count_if(sessions, [](const PageRow& session) {
    return session.urgency.standing.attention == Attention::needs_you;
  });
  std::string html = "<h1>" + std::to_string(needed) +
                     (needed == 1 ? " session needs you" : " sessions need you") + "</h1>\n<p>" +
                     (are_all ? "" : "The newest ") + std::to_string(sessions.size()) +
                     (sessions.size() == 1 ? " session. " : " sessions. ") + zone_note() + "</p>\n";
  if (sessions.empty()) {
    html += "<p>Nothing has reported yet.</p>\n";
  } else {
    static constexpr std::string_view names[] = {"Session",     "State",         "Why",
                                                 "Phase",       "Iteration",     "State changes",
                                                 "Last change", "Last heartbeat"};
    html += "<div class=\"wide\"><table>\n" + heads_of(names);
    for (const auto& session : sessions) html += row_of(session, now);
    html += "</tbody></table></div>\n";
  }
  return in_shell("list", "Watchdog", html);
}

Response session_page(const PageRow& session, const std::vector<Event>& events, Instant now) {
  const auto& row = session.row;
  const auto& history = session.judged.history;
  const auto title = title_of(row.id, description_of(row.spec), *history.notes->words);
  std::string html = "<h1>" + escaped(title) + "</h1>\n<p>" + escaped(row.id) + "</p>\n<p>" +
                     badge_of(session) + " since " + time_of(session.urgency.since) + ", " +
                     std::string(name_of(history.lifecycle)) + "</p>\n<p>" +
                     escaped(reason_of(session.judged, now)) + notice_of(session) +
                     explanation_of(session) + "</p>\n<p>";
  if (!row.spec.parent.empty()) html += "Child of " + link_to(row.spec.parent) + ". ";
  if (!row.spec.agent.empty()) html += "Agent " + escaped(row.spec.agent) + ". ";
  html += escaped(row.spec.task);
  for (const auto& [key, value] : row.spec.labels) html += small(key + ": " + value);
  html += "</p>\n<p>" + std::to_string(history.heartbeats) + " heartbeats, " +
          std::to_string(history.state_changes) + " state changes";
  if (history.state_changes > 0) html += ", the last " + spoken(now - history.last_change) + " ago";
  html += ".</p>\n" + evidence_of(session.judged.health) + running_in(history, now);
  return in_shell("session", title + " – Watchdog", html + events_in(events));
}

Response notice_page(int status, std::string_view title, std::string_view text) {
  return in_shell("notice", title,
                  "<h1>" + escaped(title) + "</h1>\n<p>" + escaped(text) +
                      "</p>\n<p><a href=\"/\">All sessions</a></p>\n",
                  status);
}

}  // namespace watchdog::monitor
