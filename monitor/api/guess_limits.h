/// \file
/// A limit on guesses of tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/rate_limit.h"

namespace watchdog::monitor {

/// Wrong credentials of one address that are compared at once, and in a minute.
inline constexpr double wrong_tokens_max = 10;

/// The tokens with which a credential is compared.
enum class ComparedWith : std::uint8_t {
  all,
  random_only  ///< Those that nobody can guess, see is_random().
};

/// Counts the wrong credentials of each address. Beyond the limit, credentials of that address are
/// compared only with tokens that nobody can guess. So the owner of such a token always gets in,
/// whatever comes from the same address, and other addresses do not matter. The same wrong
/// credential again is not another guess: a program with an old token uses nothing up. Thread-safe.
class GuessLimits {
 public:
  /// Calls `right_one`, which compares the credentials in their order with these tokens. It returns
  /// the number of the first right one, or the size of the list. Random tokens come first, then all
  /// tokens if none was right and the limit allows it. Counts the wrong ones. Returns which tokens
  /// were compared last. `right_one` must not call this object.
  ComparedWith judge(const std::string& address, const std::vector<std::string_view>& credentials,
                     Millis now, const std::function<std::size_t(ComparedWith)>& right_one);
  /// Returns the time until one more credential of this address is compared with all tokens; 0: the
  /// next one is.
  [[nodiscard]] Millis wait(const std::string& address, Millis now);

 private:
  using Digest = std::uint64_t;
  struct Guesser {
    RateLimit limit{wrong_tokens_max / 60, wrong_tokens_max};
    std::vector<Digest> wrong{};  ///< The newest ones, at most `remembered_max`.
  };
  static constexpr std::size_t remembered_max = 32;

  /// REQUIRES: the mutex is held.
  [[nodiscard]] Guesser& of(const std::string& address, Millis now);

  std::mutex mutex_;
  std::unordered_map<std::string, Guesser> guessers_;
};

}  // namespace watchdog::monitor
