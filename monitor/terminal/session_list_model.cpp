// A machine of modes: list, filter, open, help and confirm; the last two return to the mode before
// them. The selection is an id and not a row, so it stays on its session while rows move. If that
// session is not visible in the list, the first row takes over. Rows have one to three lines, so
// drawing fills upwards from the chosen row and then downwards. Lines that do not fit are cut off
// at the end.
#include "terminal/session_list_model.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "terminal/phrases.h"
#include "terminal/table.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

Urgency urgency(const SessionListRow& row) {
  const auto state = named<SessionState>(row.condition).value_or(SessionState::unknown);
  // Of an older monitor what ended is history, however it did.
  const auto attention =
      row.attention.value_or(row.ended ? Attention::resting : attention_of(state));
  return {.standing = {state, attention}, .since = WallTime{Millis{row.since}}};
}

bool needs_you(const SessionListRow& row) {
  return urgency(row).standing.attention == Attention::needs_you;
}

std::int64_t number_in(const json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() && found->is_number() ? found->get<std::int64_t>() : 0;
}

SessionListRow session_row_from(const json& row) {
  SessionListRow made{
      .id = shown(row, "sessionId"), .title = shown(row, "title"), .agent = shown(row, "agent")};
  made.ended = number_in(row, "endedAt") != 0;
  made.condition = row.contains("outcome") && row["outcome"].is_string() ? shown(row, "outcome")
                   : row.contains("state")                               ? shown(row, "state")
                                                                         : shown(row, "health");
  if (made.title == "–") made.title = made.id;
  made.attention = named<Attention>(shown(row, "attention"));
  made.since = number_in(row, "stateSince");
  if (made.since != 0) made.for_ms = std::max<std::int64_t>(number_in(row, "now") - made.since, 0);
  made.reason = reason_in(row);
  const auto server = server_brief_in(row);
  const auto tool = row.value("tool", json());
  // The reason says a call whose command is known.
  made.doing = tool.is_object() ? (shown(tool, "command") == "–" ? shown(tool, "name") : "–")
               : server.empty() ? shown(row, "currentPhase")
                                : server;
  made.iteration = number_in(row, "iteration");
  made.changes = number_in(row, "stateChanges");
  if (const auto at = number_in(row, "lastChangeAt"); at != 0)
    made.changed_ago_ms = std::max<std::int64_t>(number_in(row, "now") - at, 0);
  return made;
}

bool comes_first(const SessionListRow& a, const SessionListRow& b, SessionListModel::Order order) {
  constexpr auto never = INT64_MAX;
  switch (order) {
    case SessionListModel::Order::state:
      if (is_before(urgency(a), urgency(b))) return true;
      return !is_before(urgency(b), urgency(a)) && a.id < b.id;
    case SessionListModel::Order::session:
      break;
    case SessionListModel::Order::agent:
      return std::tie(a.agent, a.id) < std::tie(b.agent, b.id);
    case SessionListModel::Order::iteration:
      return std::tie(b.iteration, a.id) < std::tie(a.iteration, b.id);
    case SessionListModel::Order::changes:
      return std::tie(b.changes, a.id) < std::tie(a.changes, b.id);
    case SessionListModel::Order::changed:
      return std::pair(a.changed_ago_ms.value_or(never), std::string_view(a.id)) <
             std::pair(b.changed_ago_ms.value_or(never), std::string_view(b.id));
  }
  return a.id < b.id;
}

bool holds(const SessionListRow& row, const std::string& text) {
  return text.empty() || row.id.find(text) != std::string::npos ||
         row.title.find(text) != std::string::npos || row.agent.find(text) != std::string::npos ||
         row.condition.find(text) != std::string::npos ||
         row.reason.find(text) != std::string::npos;
}

const std::vector<std::string> help_lines{
    "up, down, page up, page down, home, end   move",
    "enter   open the session            escape  back",
    "s       next order                  r       turn the order round",
    "t       only those that need you    /       filter by text; escape clears it",
    "c       cancel the session          q       quit",
    "",
    "The list is read once a second. Only c changes a session.",
};

}  // namespace

std::vector<SessionListRow> session_rows_from(const std::string& answer) {
  const auto body = json::parse(answer, nullptr, false);
  std::vector<SessionListRow> rows;
  if (!body.is_object() || !body.contains("sessions")) return rows;
  for (const auto& row : body["sessions"]) {
    if (row.is_object()) rows.push_back(session_row_from(row));
  }
  return rows;
}

void SessionListModel::update(std::vector<SessionListRow> rows) {
  rows_ = std::move(rows);
  const auto visible = shown();
  const bool there = std::any_of(visible.begin(), visible.end(),
                                 [&](const auto* row) { return row->id == selected_; });
  if (!there && mode_ == Mode::list) selected_ = visible.empty() ? "" : visible.front()->id;
}

void SessionListModel::show_details(std::vector<std::string> lines) {
  details_ = std::move(lines);
}

std::vector<const SessionListRow*> SessionListModel::shown() const {
  std::vector<const SessionListRow*> visible;
  for (const auto& row : rows_) {
    if (holds(row, filter_) && (!needed_only_ || needs_you(row))) visible.push_back(&row);
  }
  std::sort(visible.begin(), visible.end(), [&](const auto* a, const auto* b) {
    return reversed_ ? comes_first(*b, *a, order_) : comes_first(*a, *b, order_);
  });
  return visible;
}

void SessionListModel::move(std::ptrdiff_t by) {
  const auto visible = shown();
  if (visible.empty()) return;
  const auto at = std::find_if(visible.begin(), visible.end(),
                               [&](const auto* row) { return row->id == selected_; });
  const auto last = static_cast<std::ptrdiff_t>(visible.size()) - 1;
  const auto from = at == visible.end() ? 0 : at - visible.begin();
  selected_ = visible[static_cast<std::size_t>(std::clamp(from + by, std::ptrdiff_t{0}, last))]->id;
}

SessionListModel::Act SessionListModel::press(const Key& key) {
  note_.clear();
  if (key == "interrupt") return Act::quit;
  if (mode_ == Mode::filter) {
    if (key == "escape") filter_.clear();
    if (key == "escape" || key == "enter") mode_ = Mode::list;
    if (key == "backspace" && !filter_.empty()) filter_.pop_back();
    if (key.size() == 1) filter_ += key;
    update(std::move(rows_));
    return Act::none;
  }
  if (mode_ == Mode::confirm) {
    mode_ = before_;
    return key == "y" ? Act::cancel : Act::none;
  }
  if (mode_ == Mode::help) {
    mode_ = before_;
    return Act::none;
  }
  if (key == "q") return Act::quit;
  if (key == "?" || (key == "c" && !selected_.empty())) {
    before_ = std::exchange(mode_, key == "?" ? Mode::help : Mode::confirm);
    return Act::none;
  }
  if (mode_ == Mode::open) {
    if (key == "escape" || key == "enter") {
      mode_ = Mode::list;
      details_.clear();
      update(std::move(rows_));
    }
    return Act::none;
  }
  const auto page = static_cast<std::ptrdiff_t>(page_);
  constexpr std::ptrdiff_t far = 1'000'000;
  if (key == "up" || key == "k") move(-1);
  if (key == "down" || key == "j") move(1);
  if (key == "page up") move(-page);
  if (key == "page down") move(page);
  if (key == "home") move(-far);
  if (key == "end") move(far);
  if (key == "s") order_ = static_cast<Order>((static_cast<int>(order_) + 1) % 6);
  if (key == "r") reversed_ = !reversed_;
  if (key == "t") needed_only_ = !needed_only_;
  if (key == "/") mode_ = Mode::filter;
  if (key == "t") update(std::move(rows_));
  if (key == "enter" && !selected_.empty()) {
    mode_ = Mode::open;
    return Act::open;
  }
  return key == " " ? Act::look : Act::none;
}

void SessionListModel::list_lines(std::vector<std::string>& lines, std::size_t width,
                                  std::size_t room) const {
  const auto visible = shown();
  const auto at = std::find_if(visible.begin(), visible.end(),
                               [&](const auto* row) { return row->id == selected_; });
  const auto chosen = at == visible.end() ? 0 : static_cast<std::size_t>(at - visible.begin());
  // Rows may have up to three lines; more than this do not fit above and below the chosen one.
  const auto first = chosen < room ? 0 : chosen - room;
  const auto last = std::min(visible.size(), chosen + room);
  Table table({"STATE", "FOR", "TITLE", "SESSION", "WHY"}, {2, 3}, Table::Last::wrapped);
  for (auto row = first; row < last; ++row) {
    const auto& one = *visible[row];
    const auto reason = one.ended || one.doing.empty() || one.doing == "–"
                            ? one.reason
                            : one.reason + " (" + one.doing + ")";
    table.add({coloured(one.condition), one.for_ms ? lasting(*one.for_ms) : "–", one.title, one.id,
               reason});
  }
  auto rows = table.lines(width);
  if (rows.size() < 2 || room < 2) return;
  // From the chosen one upwards as many as fit, then those below it.
  auto left = room - 1;
  auto from = chosen - first + 1;
  left -= std::min(left, rows[from].size());
  while (from > 1 && rows[from - 1].size() <= left) left -= rows[--from].size();
  lines.push_back(rows.front().front());
  page_ = 0;
  for (auto row = from; row < rows.size(); ++row, ++page_) {
    for (auto& line : rows[row]) {
      const bool is_chosen = first + row - 1 == chosen && at != visible.end();
      lines.push_back(is_chosen ? emphasized(line) : std::move(line));
    }
  }
  page_ = std::max<std::size_t>(page_, 1);
}

std::vector<std::string> SessionListModel::lines(std::size_t width, std::size_t height) const {
  constexpr std::array<std::string_view, 6> orders{"state",     "session", "agent",
                                                   "iteration", "changes", "last change"};
  std::vector<std::string> lines;
  if (height < 3) return lines;
  const auto needed = std::count_if(rows_.begin(), rows_.end(), needs_you);
  lines.push_back(
      std::to_string(needed) + (needed == 1 ? " needs" : " need") + " you, of " +
      std::to_string(rows_.size()) + (rows_.size() == 1 ? " session; by " : " sessions; by ") +
      std::string(orders.at(static_cast<std::size_t>(order_))) +
      (reversed_ ? ", turned round" : "") + (needed_only_ ? "; only those that need you" : "") +
      (filter_.empty() ? "" : "; with \"" + filter_ + "\""));
  const auto mode = mode_ == Mode::confirm ? before_ : mode_;
  if (mode == Mode::help) {
    lines.insert(lines.end(), help_lines.begin(), help_lines.end());
  } else if (mode == Mode::open) {
    lines.insert(lines.end(), details_.begin(), details_.end());
  } else {
    list_lines(lines, width, height - 2);
  }
  lines.resize(std::min(lines.size(), height - 1));
  while (lines.size() < height - 1) lines.emplace_back();
  lines.push_back(mode_ == Mode::confirm  ? "Ask " + selected_ + " to stop? y: yes, else no"
                  : mode_ == Mode::filter ? "/" + filter_ + "_"
                  : !note_.empty()        ? note_
                  : mode_ == Mode::list   ? "enter: open  s: order  t: need you  /: filter  "
                                            "c: cancel  ?: help  q: quit"
                                          : "escape: back  c: cancel  q: quit");
  return lines;
}

}  // namespace watchdog::monitor
