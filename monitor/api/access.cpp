#include "api/access.h"

#include <algorithm>
#include <string>

namespace watchdog::monitor {
namespace {

constexpr double minute = 60;

bool is_this_machine(const std::string& peer) {
  return peer.empty() || peer == "::1" || peer.starts_with("127.") ||
         peer.starts_with("::ffff:127.");
}

/// Returns the network of an IPv6 address, its first four groups: one client usually has all of it.
std::string network_of(const std::string& peer) {
  if (peer.find('.') != std::string::npos) return peer;
  std::size_t end = 0;
  for (int group = 0; group < 4; ++group) {
    const auto colon = peer.find(':', end);
    if (colon == std::string::npos) return peer;
    end = colon + 1;
    if (peer.compare(end, 1, ":") == 0) break;  // what follows are zeros
  }
  return peer.substr(0, end);
}

std::string retry_after(Millis wait) {
  return "Retry-After: " + std::to_string((wait.count() + 999) / 1'000) + "\r\n";
}

}  // namespace

Access::Access(AccessPolicy policy, double requests_per_second_max,
               std::shared_ptr<GuessLimits> guesses, const Clock& clock)
    : clock_(clock),
      requests_per_second_max_(requests_per_second_max),
      policy_(std::make_shared<const AccessPolicy>(std::move(policy))),
      guesses_(guesses ? std::move(guesses) : std::make_shared<GuessLimits>()),
      requests_(requests_per_second_max, 2 * requests_per_second_max),
      bursts_(1 / minute, 1),
      refused_acts_(1 / minute, 10),
      refused_acts_in_all_(10 / minute, 60) {}

std::shared_ptr<const AccessPolicy> Access::policy() const {
  const std::lock_guard guard(policy_mutex_);
  return policy_;
}

void Access::renew(std::vector<Token> tokens) {
  auto next = *policy();
  next.tokens = std::move(tokens);
  auto shared = std::make_shared<const AccessPolicy>(std::move(next));
  const std::lock_guard guard(policy_mutex_);
  policy_ = std::move(shared);
}

std::optional<Response> Access::refuse(const Request& request) {
  const auto peer = policy()->peer(request);
  if (requests_per_second_max_ > 0 && !is_this_machine(peer)) {
    const std::lock_guard guard(mutex_);
    auto& limit = requests_.of(network_of(peer), now());
    if (!limit.admit(now())) {
      auto response = error_response(429, "exhausted", "too many requests of this address");
      response.extra_headers = retry_after(limit.wait(now()));
      return response;
    }
  }
  // Whether a login is right shows in the answer, so it is counted like any other.
  const auto caller = request.cookie.empty() ? Caller{} : this->caller(request);
  return policy()->refuse_foreign(request, caller);
}

std::string Access::guesser(const Request& request) const {
  return network_of(policy()->peer(request));
}

Caller Access::caller(const Request& request) {
  const auto policy = this->policy();
  const auto credentials = policy->credentials(request, clock_.wall());
  if (credentials.empty()) return {.scopes = policy->without_token};
  Caller caller;
  guesses_->judge(guesser(request), credentials, now(), [&](ComparedWith compared) {
    std::size_t right = 0;
    caller = policy->caller(request, credentials, compared, right);
    return right;
  });
  return caller;
}

Response Access::too_many_guesses(const Request& request) {
  const auto wait = guesses_->wait(guesser(request), now());
  auto response = error_response(
      429, "exhausted",
      "too many wrong tokens came from this address, so this one was not looked at. Wait, or use a "
      "token of 64 random hexadecimal digits: such a token is always looked at");
  response.extra_headers = retry_after(wait);
  return response;
}

std::optional<Response> Access::refuse(const Request& request, const Caller& caller,
                                       std::optional<Scope> scope) {
  auto refusal = policy()->refuse(caller, scope);
  if (refusal && caller.unchecked) return too_many_guesses(request);
  return refusal;
}

bool Access::admits_refused_act(const Request& request) {
  const auto peer = guesser(request);
  const std::lock_guard guard(mutex_);
  return refused_acts_.of(peer, now()).admit(now()) && refused_acts_in_all_.admit(now());
}

std::function<bool()> Access::lasting(const Request& request, Scope scope) {
  const bool known = caller(request).known;
  return [this, scope, known,
          shown = Request{.authorization = request.authorization, .cookie = request.cookie}] {
    // Only what was right before is compared again: that is not a guess.
    const auto policy = this->policy();
    if (!known) return policy->without_token.contains(scope);
    const auto now = policy->caller(shown, clock_.wall());
    return now.scopes.contains(scope) && now.known;
  };
}

Access::Login Access::log_in(const Request& request, std::string_view secret) {
  const auto policy = this->policy();
  const Token* token = nullptr;
  const auto compared =
      guesses_->judge(guesser(request), {secret}, now(), [&](ComparedWith with) -> std::size_t {
        token = find_token(policy->tokens, secret);
        if (token != nullptr && with == ComparedWith::random_only && !is_random(token->secret))
          token = nullptr;
        return token != nullptr ? 0 : 1;
      });
  if (token != nullptr) return {.token = *token};
  if (compared == ComparedWith::all)
    return {.refusal = *policy->refuse({.wrong_token = true}, Scope::act)};
  const std::lock_guard guard(mutex_);
  return {.refusal = too_many_guesses(request), .burst = bursts_.admit(now())};
}

}  // namespace watchdog::monitor
