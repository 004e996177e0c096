/// \file
/// Notices that a monitor's tokens have changed.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "api/token.h"
#include "cli/periodic.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// Reads the token file once a second, on a thread of its own: the disk may take its time. A file
/// that cannot be used changes nothing, and is logged once.
class TokenWatch {
 public:
  struct Options {
    std::filesystem::path file;
    std::vector<Token> known;  ///< The present tokens.
    /// All tokens that should be; makes the file if it is missing and needed.
    std::function<Result<std::vector<Token>>()> read;
    std::function<void(std::vector<Token>)> changed;
    std::function<void(const std::string&)> log;
    Millis every{1'000};
  };
  explicit TokenWatch(Options options)
      : options_(std::move(options)), periodic_(options_.every, [this] { look(); }) {}

 private:
  void look();

  Options options_;
  bool missing_ = false;
  std::string trouble_;
  Periodic periodic_;  ///< Last: its looks use the rest.
};

}  // namespace watchdog::monitor
