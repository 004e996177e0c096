/// \file
/// The access policy in service: its decisions, and limits on attempts.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/access_policy.h"
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
  Access(AccessPolicy policy, double requests_per_second_max, const Clock& clock = system_clock());

  [[nodiscard]] std::shared_ptr<const AccessPolicy> policy() const;
  /// From now on these count, and those before do not.
  void renew(std::vector<Token> tokens);
  /// By the headers alone, before anything is looked up: the refusal, or nothing.
  [[nodiscard]] std::optional<Response> refuse(const Request& request);
  [[nodiscard]] Caller caller(const Request& request) const;
  /// Returns the refusal of a request that is not permitted, or nothing. Counts wrong tokens.
  [[nodiscard]] std::optional<Response> refuse(const Request& request, const Caller& caller,
                                               std::optional<Scope> scope);
  /// Returns whether one more refused act of this address is stored in the audit log: 10 at once
  /// and one a minute, of all together 60 and ten. Otherwise strangers could fill the disk.
  [[nodiscard]] bool admits_refused_act(const Request& request);
  /// Returns a function that says whether the caller's permission still holds, on any thread, while
  /// this lives. A caller with a token or a login needs that one.
  [[nodiscard]] std::function<bool()> lasting(const Request& request, Scope scope) const;

  /// The result of a login.
  struct Login {
    std::optional<Token> token{};  ///< Empty: refused.
    Response refusal{};            ///< Then.
    bool burst = false;            ///< There were too many; said once a minute.
  };
  [[nodiscard]] Login log_in(const Request& request, std::string_view secret);

 private:
  [[nodiscard]] Millis now() const { return clock_.since_boot(); }
  /// Returns how long wrong tokens of this address are not checked; 0: they are.
  [[nodiscard]] Millis wait_of(const std::string& peer);
  void count_wrong(const std::string& peer);

  const Clock& clock_;
  const double requests_per_second_max_;
  mutable std::mutex policy_mutex_;
  std::shared_ptr<const AccessPolicy> policy_;
  std::mutex mutex_;
  PeerLimits requests_;
  PeerLimits wrong_tokens_;
  RateLimit wrong_tokens_in_all_;
  RateLimit bursts_;
  PeerLimits refused_acts_;
  RateLimit refused_acts_in_all_;
};

}  // namespace watchdog::monitor
