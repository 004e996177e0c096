#include "cli/board.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "cli/phrases.h"
#include "cli/table.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// Those first that somebody should look at.
constexpr std::array<std::string_view, 14> by_urgency{
    "stuck",   "looping", "dead",    "failed",   "incomplete",  "silent",    "suspect",
    "blocked", "slow",    "unknown", "starting", "progressing", "cancelled", "completed"};
constexpr std::size_t troubles = 7;

std::size_t urgency(const BoardRow& row) {
  const auto found = std::find(by_urgency.begin(), by_urgency.end(), row.condition);
  // What ended is history, however it did.
  return static_cast<std::size_t>(found - by_urgency.begin()) + (row.ended ? by_urgency.size() : 0);
}

std::int64_t number_in(const json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() && found->is_number() ? found->get<std::int64_t>() : 0;
}

BoardRow board_row(const json& row) {
  BoardRow made{.id = shown(row, "sessionId"), .agent = shown(row, "agent")};
  made.ended = number_in(row, "endedAt") != 0;
  made.condition = row.contains("outcome") && row["outcome"].is_string() ? shown(row, "outcome")
                                                                         : shown(row, "health");
  made.reason = shown(row, "reason");
  const auto server = server_brief_in(row);
  made.doing = row.contains("tool") && row["tool"].is_object() ? shown(row["tool"], "name")
               : server.empty()                                ? shown(row, "currentPhase")
                                                               : server;
  made.iteration = number_in(row, "iteration");
  made.changes = number_in(row, "stateChanges");
  if (const auto at = number_in(row, "lastChangeAt"); at != 0)
    made.changed_ago_ms = std::max<std::int64_t>(number_in(row, "now") - at, 0);
  return made;
}

bool comes_first(const BoardRow& a, const BoardRow& b, Board::Order order) {
  constexpr auto never = INT64_MAX;
  switch (order) {
    case Board::Order::health:
      return std::pair(urgency(a), std::string_view(a.id)) <
             std::pair(urgency(b), std::string_view(b.id));
    case Board::Order::session:
      break;
    case Board::Order::agent:
      return std::tie(a.agent, a.id) < std::tie(b.agent, b.id);
    case Board::Order::iteration:
      return std::tie(b.iteration, a.id) < std::tie(a.iteration, b.id);
    case Board::Order::changes:
      return std::tie(b.changes, a.id) < std::tie(a.changes, b.id);
    case Board::Order::changed:
      return std::pair(a.changed_ago_ms.value_or(never), std::string_view(a.id)) <
             std::pair(b.changed_ago_ms.value_or(never), std::string_view(b.id));
  }
  return a.id < b.id;
}

bool holds(const BoardRow& row, const std::string& text) {
  return text.empty() || row.id.find(text) != std::string::npos ||
         row.agent.find(text) != std::string::npos ||
         row.condition.find(text) != std::string::npos ||
         row.reason.find(text) != std::string::npos;
}

const std::vector<std::string> help_lines{
    "up, down, page up, page down, home, end   move",
    "enter   open the session            escape  back",
    "s       next order                  r       turn the order round",
    "t       only those in trouble       /       filter by text; escape clears it",
    "c       cancel the session          q       quit",
    "",
    "What is asked for is asked once a second; nothing here changes a session but c.",
};

}  // namespace

std::vector<BoardRow> board_rows(const std::string& answer) {
  const auto body = json::parse(answer, nullptr, false);
  std::vector<BoardRow> rows;
  if (!body.is_object() || !body.contains("sessions")) return rows;
  for (const auto& row : body["sessions"]) {
    if (row.is_object()) rows.push_back(board_row(row));
  }
  return rows;
}

void Board::take(std::vector<BoardRow> rows) {
  rows_ = std::move(rows);
  const auto visible = shown();
  const bool there = std::any_of(visible.begin(), visible.end(),
                                 [&](const auto* row) { return row->id == selected_; });
  if (!there && mode_ == Mode::list) selected_ = visible.empty() ? "" : visible.front()->id;
}

void Board::tell(std::vector<std::string> lines) {
  told_ = std::move(lines);
}

std::vector<const BoardRow*> Board::shown() const {
  std::vector<const BoardRow*> visible;
  for (const auto& row : rows_) {
    if (holds(row, filter_) && (!troubled_only_ || urgency(row) < troubles))
      visible.push_back(&row);
  }
  std::sort(visible.begin(), visible.end(), [&](const auto* a, const auto* b) {
    return reversed_ ? comes_first(*b, *a, order_) : comes_first(*a, *b, order_);
  });
  return visible;
}

void Board::move(std::ptrdiff_t by) {
  const auto visible = shown();
  if (visible.empty()) return;
  const auto at = std::find_if(visible.begin(), visible.end(),
                               [&](const auto* row) { return row->id == selected_; });
  const auto last = static_cast<std::ptrdiff_t>(visible.size()) - 1;
  const auto from = at == visible.end() ? 0 : at - visible.begin();
  selected_ = visible[static_cast<std::size_t>(std::clamp(from + by, std::ptrdiff_t{0}, last))]->id;
}

Board::Act Board::press(const Key& key) {
  note_.clear();
  if (key == "interrupt") return Act::quit;
  if (mode_ == Mode::filter) {
    if (key == "escape") filter_.clear();
    if (key == "escape" || key == "enter") mode_ = Mode::list;
    if (key == "backspace" && !filter_.empty()) filter_.pop_back();
    if (key.size() == 1) filter_ += key;
    take(std::move(rows_));
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
      told_.clear();
      take(std::move(rows_));
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
  if (key == "t") troubled_only_ = !troubled_only_;
  if (key == "/") mode_ = Mode::filter;
  if (key == "t") take(std::move(rows_));
  if (key == "enter" && !selected_.empty()) {
    mode_ = Mode::open;
    return Act::open;
  }
  return key == " " ? Act::look : Act::none;
}

void Board::list_lines(std::vector<std::string>& lines, std::size_t width, std::size_t room) const {
  const auto visible = shown();
  const auto at = std::find_if(visible.begin(), visible.end(),
                               [&](const auto* row) { return row->id == selected_; });
  const auto chosen = at == visible.end() ? 0 : static_cast<std::size_t>(at - visible.begin());
  page_ = room > 1 ? room - 1 : 1;
  const auto from = chosen < page_ ? 0 : chosen - page_ + 1;
  Table table({"SESSION", "HEALTH", "AGENT", "DOING", "ITERATION", "CHANGES", "CHANGED", "WHY"});
  for (auto row = from; row < std::min(visible.size(), from + page_); ++row) {
    const auto& one = *visible[row];
    table.add({one.id, coloured(one.condition), one.agent, one.doing, std::to_string(one.iteration),
               std::to_string(one.changes),
               one.changed_ago_ms ? lasting(*one.changed_ago_ms) + " ago" : "–", one.reason});
  }
  const auto text = table.text(width);
  for (std::size_t begin = 0, row = 0; begin < text.size(); ++row) {
    const auto end = text.find('\n', begin);
    auto line = text.substr(begin, end - begin);
    if (row > 0 && from + row - 1 == chosen && at != visible.end()) line = emphasized(line);
    lines.push_back(std::move(line));
    begin = end + 1;
  }
}

std::vector<std::string> Board::lines(std::size_t width, std::size_t height) const {
  constexpr std::array<std::string_view, 6> orders{"health",    "session", "agent",
                                                   "iteration", "changes", "last change"};
  std::vector<std::string> lines;
  if (height < 3) return lines;
  const auto troubled = std::count_if(rows_.begin(), rows_.end(),
                                      [](const auto& row) { return urgency(row) < troubles; });
  lines.push_back(std::to_string(rows_.size()) + " sessions, " + std::to_string(troubled) +
                  " in trouble; by " + std::string(orders.at(static_cast<std::size_t>(order_))) +
                  (reversed_ ? ", turned round" : "") +
                  (troubled_only_ ? "; only those in trouble" : "") +
                  (filter_.empty() ? "" : "; with \"" + filter_ + "\""));
  const auto mode = mode_ == Mode::confirm ? before_ : mode_;
  if (mode == Mode::help) {
    lines.insert(lines.end(), help_lines.begin(), help_lines.end());
  } else if (mode == Mode::open) {
    lines.insert(lines.end(), told_.begin(), told_.end());
  } else {
    list_lines(lines, width, height - 2);
  }
  lines.resize(std::min(lines.size(), height - 1));
  while (lines.size() < height - 1) lines.emplace_back();
  lines.push_back(mode_ == Mode::confirm  ? "Ask " + selected_ + " to stop? y: yes, else no"
                  : mode_ == Mode::filter ? "/" + filter_ + "_"
                  : !note_.empty()        ? note_
                  : mode_ == Mode::list   ? "enter: open  s: order  t: in trouble  /: filter  "
                                            "c: cancel  ?: help  q: quit"
                                          : "escape: back  c: cancel  q: quit");
  return lines;
}

}  // namespace watchdog::monitor
