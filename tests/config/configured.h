/// \file
/// Settings from a file, variables, code and flags that are the test's own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temp_dir.h"
#include "watchdog/settings.h"

namespace watchdog::test {

class Configured : public testing::Test {
 protected:
  TempDir dir;
  std::filesystem::path file = dir / "watchdog.toml";
  Sources sources{.file = std::filesystem::path{}, .environment = {}};

  void write(const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
    sources.file = file;
  }
  Configuration load() {
    auto loaded = Configuration::load(sources);
    EXPECT_TRUE(loaded.ok()) << to_text(loaded ? Mistakes{} : loaded.error());
    return loaded ? *loaded : Configuration{};
  }
  /// The messages about the mistakes, one line per mistake, without the directory.
  std::string refusal() {
    const auto loaded = Configuration::load(sources);
    if (loaded) return "accepted";
    auto text = to_text(loaded.error());
    for (auto at = text.find(dir.path().string()); at != std::string::npos;
         at = text.find(dir.path().string()))
      text.erase(at, dir.path().string().size() + 1);
    return text;
  }
  std::string refusal_of(const std::string& text) {
    write(text);
    return refusal();
  }
  /// `value, origin where` of a key.
  static std::string said(const Configuration& configuration, const std::string& key) {
    for (const auto& value : configuration.values()) {
      if (value.key != key) continue;
      auto where = value.where;
      where.erase(0, where.rfind('/') + 1);
      return value.text + ", " + std::string(name_of(value.origin)) +
             (where.empty() ? "" : " " + where);
    }
    return "unknown";
  }
};

}  // namespace watchdog::test
