#include "store/foreign_database.h"

#include <sys/stat.h>

#include <utility>

#include "store/sqlite.h"

namespace watchdog {
namespace {

bool is_regular(const std::string& file) {
  struct stat facts {};
  return lstat(file.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

}  // namespace

std::int64_t ForeignRow::integer(int column) const {
  return statement_.integer(column);
}
std::string ForeignRow::text(int column) const {
  return statement_.text(column);
}
std::string_view ForeignRow::bytes(int column) const {
  return statement_.bytes(column);
}

ForeignDatabase::ForeignDatabase(std::unique_ptr<Database> database)
    : database_(std::move(database)) {}
ForeignDatabase::~ForeignDatabase() = default;
ForeignDatabase::ForeignDatabase(ForeignDatabase&&) noexcept = default;
ForeignDatabase& ForeignDatabase::operator=(ForeignDatabase&&) noexcept = default;

Result<ForeignDatabase> ForeignDatabase::open(const std::filesystem::path& file) {
  const auto name = file.string();
  if (!is_regular(name)) return Error{ErrorCode::unavailable, name + " is not a regular file"};
  try {
    const auto mode = is_regular(name + "-wal") ? OpenMode::read_only : OpenMode::unchanging;
    return ForeignDatabase(std::make_unique<Database>(name, mode));
  } catch (const SqlFailure& failure) {
    return failure.error;
  }
}

Result<void> ForeignDatabase::ask(std::string_view sql, std::span<const Value> values,
                                  const std::function<bool(const ForeignRow&)>& each) {
  try {
    auto statement = database_->prepare(sql);
    int at = 0;
    for (const auto& value : values) {
      ++at;
      if (const auto* number = std::get_if<std::int64_t>(&value)) statement.bind(at, *number);
      if (const auto* text = std::get_if<std::string_view>(&value)) statement.bind(at, *text);
    }
    const ForeignRow row(statement);
    while (statement.step() && each(row)) {
    }
    return {};
  } catch (const SqlFailure& failure) {
    return failure.error;
  }
}

}  // namespace watchdog
