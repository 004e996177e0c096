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

/// Thread-safe.
class Access {
 public:
  /// `requests_per_second_max` is each other machine's; 0: no limit. `guesses` is shared by all
  /// ways to one monitor; null: this is the only one.
  Access(AccessPolicy policy, double requests_per_second_max,
         std::shared_ptr<GuessLimits> guesses = nullptr, const Clock& clock = system_clock());

  [[nodiscard]] std::shared_ptr<const AccessPolicy> policy() const;
  /// From now on these count, and those before do not.
  void renew(std::vector<Token> tokens);
  /// By the headers alone, before anything is looked up: the refusal, or nothing.
  [[nodiscard]] std::optional<Response> refuse(const Request& request);
  /// Returns the caller of a request. This, refuse() and log_in() compare credentials, and each of
  /// them counts wrong ones.
  [[nodiscard]] Caller caller(const Request& request);
  /// Returns the refusal of a request that is not permitted, or nothing.
  [[nodiscard]] std::optional<Response> refuse(const Request& request, const Caller& caller,
                                               std::optional<Scope> scope);
  /// Returns the refusal of a token that was not compared.
  [[nodiscard]] Response too_many_guesses(const Request& request);
  /// Returns whether one more refused act of this address is stored in the audit log: 10 at once
  /// and one a minute, of all together 60 and ten. Otherwise strangers could fill the disk.
  [[nodiscard]] bool admits_refused_act(const Request& request);
  /// Returns a function that says whether the caller's permission still holds, on any thread, while
  /// this lives. A caller with a token or a login needs that one.
  [[nodiscard]] std::function<bool()> lasting(const Request& request, Scope scope);

  /// The result of a login.
  struct Login {
    std::optional<Token> token{};  ///< Empty: refused.
    Response refusal{};            ///< Then.
    bool burst = false;            ///< There were too many; said once a minute.
  };
  [[nodiscard]] Login log_in(const Request& request, std::string_view secret);

 private:
  [[nodiscard]] Millis now() const { return clock_.since_boot(); }
  /// Returns the address whose guesses are counted.
  [[nodiscard]] std::string guesser(const Request& request) const;

  const Clock& clock_;
  const double requests_per_second_max_;
  mutable std::mutex policy_mutex_;
  std::shared_ptr<const AccessPolicy> policy_;
  std::mutex mutex_;
  const std::shared_ptr<GuessLimits> guesses_;
  PeerLimits requests_;
  RateLimit bursts_;
  PeerLimits refused_acts_;
  RateLimit refused_acts_in_all_;
};

}  // namespace watchdog::monitor
