/// \file
/// The sessions as a live list: what is shown, in which order, and what a key does. No terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "judge/attention.h"

namespace watchdog::monitor {

/// A session in the list. Texts are safe for a terminal. A plain value.
struct SessionListRow {
  std::string id;
  std::string title;
  std::string agent;
  std::string condition;               ///< Its state. An older monitor says its health only.
  std::optional<Attention> attention;  ///< Nothing: an older monitor does not say.
  std::int64_t since = 0;              ///< When its state began, Unix milliseconds.
  std::optional<std::int64_t> for_ms;  ///< How long it is so.
  bool ended = false;
  std::string reason;
  std::string doing;  ///< Its tool, what its model's server does, or its phase.
  std::int64_t iteration = 0;
  std::int64_t changes = 0;
  std::optional<std::int64_t> changed_ago_ms;
};

/// The rows in an answer of `GET /api/autonomous/sessions`; those that it cannot read are left out.
[[nodiscard]] std::vector<SessionListRow> session_rows_from(const std::string& answer);

/// A key as a name (`up`, `down`, `page up`, `page down`, `home`, `end`, `enter`, `escape`,
/// `backspace`, `interrupt`), or the character itself.
using Key = std::string;

/// Use from one thread at a time.
class SessionListModel {
 public:
  enum class Order : std::uint8_t { state, session, agent, iteration, changes, changed };
  /// The task that a key gives to the owner of the model.
  enum class Act : std::uint8_t { none, quit, look, open, cancel };

  /// Takes the newest rows. The selection stays.
  void update(std::vector<SessionListRow> rows);
  /// Sets the lines of the open session.
  void show_details(std::vector<std::string> lines);
  /// A line at the bottom, until the next key.
  void note(std::string text) { note_ = std::move(text); }

  Act press(const Key& key);
  /// The one selected or open; empty: there is none.
  [[nodiscard]] const std::string& selected() const noexcept { return selected_; }
  [[nodiscard]] bool is_open() const noexcept { return mode_ == Mode::open; }

  /// Returns at most `height` lines; they may be wider than the terminal.
  [[nodiscard]] std::vector<std::string> lines(std::size_t width, std::size_t height) const;

 private:
  enum class Mode : std::uint8_t { list, filter, open, confirm, help };

  [[nodiscard]] std::vector<const SessionListRow*> shown() const;
  void list_lines(std::vector<std::string>& lines, std::size_t width, std::size_t room) const;
  void move(std::ptrdiff_t by);

  std::vector<SessionListRow> rows_;
  std::string selected_;
  std::vector<std::string> details_;
  std::string filter_;
  std::string note_;
  Order order_ = Order::state;
  Mode mode_ = Mode::list;
  Mode before_ = Mode::list;  ///< Where `confirm` and `help` lead back to.
  bool reversed_ = false;
  bool needed_only_ = false;
  mutable std::size_t page_ = 10;  ///< Rows that fit.
};

}  // namespace watchdog::monitor
