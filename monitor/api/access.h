/// \file
/// The gate in service: what it decides, and how often somebody may knock.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "api/gate.h"
#include "api/rate_limit.h"

namespace watchdog::monitor {

/// Wrong tokens a minute: of one address, and of all together. Beyond: 429. Then a login is refused
/// whatever it shows, so that guessing is slow; a right bearer token passes, so that a neighbour's
/// wrong one silences no agent. Neither is short enough to be guessed.
inline constexpr double wrong_tokens_max = 10;
inline constexpr double wrong_tokens_in_all_max = 60;

/// Thread-safe.
class Access {
 public:
  /// `requests_per_second_max` is each other machine's; 0: no limit.
  Access(Gate gate, double requests_per_second_max, const Clock& clock = system_clock());

  [[nodiscard]] const Gate& gate() const noexcept { return gate_; }
  /// By the headers alone, before anything is looked up: the refusal, or nothing.
  [[nodiscard]] std::optional<Response> refuse(const Request& request);
  [[nodiscard]] Caller caller(const Request& request) const;
  /// The refusal of a caller who may not do this, or nothing. Counts wrong tokens.
  [[nodiscard]] std::optional<Response> refuse(const Request& request, const Caller& caller,
                                               std::optional<Scope> scope);

  /// What came of a login.
  struct Login {
    const Token* token = nullptr;  ///< Null: refused.
    Response refusal;              ///< Then.
    bool burst = false;            ///< There were too many; said once a minute.
  };
  [[nodiscard]] Login log_in(const Request& request, std::string_view secret);

 private:
  [[nodiscard]] Millis now() const { return clock_.since_boot(); }
  /// How long no wrong token of this address is looked at; 0: they are.
  [[nodiscard]] Millis patience_with(const std::string& peer);
  void count_wrong(const std::string& peer);

  const Gate gate_;
  const Clock& clock_;
  const double requests_per_second_max_;
  std::mutex mutex_;
  PeerLimits requests_;
  PeerLimits wrong_tokens_;
  RateLimit wrong_tokens_in_all_;
  RateLimit bursts_;
};

}  // namespace watchdog::monitor
