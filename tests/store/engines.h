/// \file
/// The engines of a store, for tests that run with each.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "postgres/postgres.h"
#include "store/store.h"
#include "support/postgres.h"
#include "support/temp_dir.h"

namespace watchdog::test {

/// `file`, `postgresql`, or `serializable`: PostgreSQL where transactions are so by default.
class OnEngine : public testing::TestWithParam<const char*> {
 protected:
  OnEngine() {
    if (is_file()) return;
    monitor::use_postgresql();
    Postgres::shared().clear();
  }
  [[nodiscard]] bool is_file() const { return std::string(GetParam()) == "file"; }
  /// Of the database; of another one of the same engine there is none.
  [[nodiscard]] std::filesystem::path place() const {
    if (is_file()) return directory_ / "w.db";
    return Postgres::shared().url(std::string(GetParam()) == "serializable" ? "serializable" : "");
  }
  [[nodiscard]] Store open(const Clock& clock = system_clock()) const {
    auto store = Store::open({.database = place(), .clock = &clock});
    if (!store) throw std::runtime_error(store.error().message);
    return std::move(*store);
  }
  [[nodiscard]] StoreReader read() const {
    auto reader = StoreReader::open(place());
    if (!reader) throw std::runtime_error(reader.error().message);
    return std::move(*reader);
  }

 private:
  TempDir directory_;
};

inline std::string engine_name(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

}  // namespace watchdog::test
