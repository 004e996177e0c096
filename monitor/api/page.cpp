#include "api/page.h"

#include <algorithm>
#include <array>

#include "watchdog/health.h"

namespace watchdog::monitor {
namespace {

constexpr std::string_view head = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="2">
<title>Watchdog</title>
<style>
:root { color-scheme: light dark; --line: #8884; --quiet: #8889;
  --good: #1a7f37; --wait: #0a62c9; --warn: #9a6700; --bad: #cf222e; }
@media (prefers-color-scheme: dark) {
  :root { --good: #3fb950; --wait: #58a6ff; --warn: #d29922; --bad: #ff7b72; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin-bottom: 0; }
p { margin: .25rem 0 1.25rem; color: color-mix(in srgb, currentColor 65%, transparent); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; font-size: .85rem; }
th, td { padding: .5rem .75rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td small { display: block; color: color-mix(in srgb, currentColor 65%, transparent); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.health { font-weight: 600; white-space: nowrap; }
.good { color: var(--good); } .wait { color: var(--wait); }
.warn { color: var(--warn); } .bad { color: var(--bad); }
a { color: inherit; }
</style>
</head>
<body>
<main>
<h1>Watchdog</h1>
)html";

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

struct Look {
  std::string_view icon;
  std::string_view css;
};

/// Word, icon and colour together: never colour alone.
Look look_of(HealthKind kind) {
  static constexpr std::array<Look, 10> looks{{{"○", ""},       // unknown
                                               {"◔", ""},       // starting
                                               {"●", "good"},   // progressing
                                               {"◑", "warn"},   // slow
                                               {"▲", "warn"},   // suspect
                                               {"■", "bad"},    // stuck
                                               {"↻", "bad"},    // looping
                                               {"❚❚", "wait"},  // blocked
                                               {"…", "warn"},   // silent
                                               {"✕", "bad"}}};  // dead
  return looks.at(static_cast<std::size_t>(kind));
}

Look look_of(Lifecycle lifecycle) {
  switch (lifecycle) {
    case Lifecycle::completed:
      return {"✓", "good"};
    case Lifecycle::failed:
      return {"✕", "bad"};
    default:
      return {"–", ""};
  }
}

std::string row_of(const PageRow& session, Instant now) {
  const auto& [row, judged, explained_by] = session;
  const auto& history = judged.history;
  const bool ended = is_end(history.lifecycle);
  const auto look = ended ? look_of(history.lifecycle) : look_of(judged.health.kind);
  const auto word = ended ? name_of(history.lifecycle) : name_of(judged.health.kind);
  const auto& outcome = history.notes->outcome;
  const auto reason = ended && outcome
                          ? outcome->reason + (outcome->error.empty() ? "" : ": " + outcome->error)
                          : reason_of(judged.health, history, *judged.policy);
  const auto number = [](const std::string& text) {
    return "<td class=\"number\">" + text + "</td>";
  };
  std::string html =
      "<tr><td><a href=\"/api/autonomous/progress/" + row.id + "\">" + row.id + "</a>";
  if (!row.spec.agent.empty()) html += "<small>" + escaped(row.spec.agent) + "</small>";
  html += "</td><td class=\"health " + std::string(look.css) + "\"><span aria-hidden=\"true\">" +
          std::string(look.icon) + "</span> " + std::string(word) + "</td><td>" + escaped(reason);
  if (explained_by) {
    html += "<small>because its child " + explained_by->session + " is " +
            std::string(name_of(explained_by->health)) + ": " + escaped(explained_by->reason) +
            "</small>";
  }
  if (!row.spec.task.empty()) html += "<small>" + escaped(row.spec.task) + "</small>";
  html += "</td><td>" + escaped(history.phase) + "</td>";
  html += number(history.iteration ? std::to_string(*history.iteration) : "–");
  html += number(std::to_string(history.state_changes));
  html += number(history.state_changes > 0 ? spoken(now - history.last_change) + " ago" : "–");
  html += number(history.heartbeats > 0 ? spoken(now - history.last_beat) + " ago" : "–");
  return html + "</tr>\n";
}

}  // namespace

std::string spoken(Millis time) {
  const auto seconds = std::max<std::int64_t>(time.count(), 0) / 1'000;
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 7'200) return std::to_string(seconds / 60) + " min";
  if (seconds < 172'800) return std::to_string(seconds / 3'600) + " h";
  return std::to_string(seconds / 86'400) + " d";
}

Response sessions_page(const std::vector<PageRow>& sessions, Instant now) {
  const auto ailing = std::count_if(sessions.begin(), sessions.end(), [](const PageRow& session) {
    const auto kind = session.judged.health.kind;
    return !is_end(session.judged.history.lifecycle) &&
           (kind == HealthKind::stuck || kind == HealthKind::looping ||
            kind == HealthKind::silent || kind == HealthKind::dead);
  });
  std::string html(head);
  html += "<p>" + std::to_string(sessions.size()) +
          (sessions.size() == 1 ? " session, " : " sessions, ") + std::to_string(ailing) +
          " in trouble. Time alone never ends one.</p>\n";
  if (sessions.empty()) {
    html += "<p>Nothing has reported yet.</p>\n";
  } else {
    html +=
        "<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">Session</th><th "
        "scope=\"col\">Health</th><th scope=\"col\">Why</th>"
        "<th scope=\"col\">Phase</th><th scope=\"col\" class=\"number\">Iteration</th><th "
        "scope=\"col\" class=\"number\">State changes</th>"
        "<th scope=\"col\" class=\"number\">Last change</th><th scope=\"col\" "
        "class=\"number\">Last heartbeat</th></tr></thead>\n<tbody>\n";
    for (const auto& session : sessions) html += row_of(session, now);
    html += "</tbody></table></div>\n";
  }
  html += "</main>\n</body>\n</html>\n";
  return {.body = std::move(html),
          .content_type = "text/html; charset=utf-8",
          .extra_headers =
              "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n"
              "Referrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n"};
}

}  // namespace watchdog::monitor
