/// \file
/// Reads the SQLite database of another program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "watchdog/result.h"

namespace watchdog {

class Database;
class Statement;

/// A row of an answer. Valid while it is handed on.
class ForeignRow {
 public:
  explicit ForeignRow(const Statement& statement) : statement_(statement) {}

  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::string text(int column) const;
  /// Valid as long as the row.
  [[nodiscard]] std::string_view bytes(int column) const;

 private:
  const Statement& statement_;
};

/// A database that is only read. Nothing in its schema runs code. No lock outlives a function.
/// Moves only. Use from one thread at a time.
class ForeignDatabase {
 public:
  using Value = std::variant<std::int64_t, std::string_view>;

  /// A database without a log file beside it is open in no program: then it is read without locks,
  /// and no file is made. Errors: `unavailable`, `corrupt`. A link is `unavailable`.
  [[nodiscard]] static Result<ForeignDatabase> open(const std::filesystem::path& file);
  ~ForeignDatabase();
  ForeignDatabase(ForeignDatabase&&) noexcept;
  ForeignDatabase& operator=(ForeignDatabase&&) noexcept;
  ForeignDatabase(const ForeignDatabase&) = delete;
  ForeignDatabase& operator=(const ForeignDatabase&) = delete;

  /// Hands each row of the answer on, until `each` returns false. Errors: as of open().
  [[nodiscard]] Result<void> ask(std::string_view sql, std::span<const Value> values,
                                 const std::function<bool(const ForeignRow&)>& each);

 private:
  explicit ForeignDatabase(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace watchdog
