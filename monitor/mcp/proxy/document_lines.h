/// \file
/// Messages of a tool server that writes them on several lines each.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace watchdog::monitor::mcp {

/// Joins the lines of an indented JSON document to one. All other lines pass. Use from one thread
/// at a time.
class DocumentLines {
 public:
  /// Longer documents are no documents.
  static constexpr std::size_t lines_max = 100'000;

  /// Passes on each whole line or document.
  void add(std::string line, const std::function<void(std::string)>& accept);
  void clear() { open_.clear(); }

 private:
  void append(std::string_view line);
  [[nodiscard]] bool begins_anew(std::string_view line) const;

  std::string open_{};  ///< Lines of a document whose end is missing; empty: there is none.
  std::size_t lines_ = 0;
  int depth_ = 0;             ///< Of its brackets.
  bool is_indented_ = false;  ///< Its second line begins with blanks.
};

}  // namespace watchdog::monitor::mcp
