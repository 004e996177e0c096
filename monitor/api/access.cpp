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

Response too_many(std::string_view what, Millis wait) {
  auto response = error_response(429, "exhausted", "too many " + std::string(what));
  response.extra_headers = "Retry-After: " + std::to_string((wait.count() + 999) / 1'000) + "\r\n";
  return response;
}

}  // namespace

Access::Access(AccessPolicy policy, double requests_per_second_max, const Clock& clock)
    : clock_(clock),
      requests_per_second_max_(requests_per_second_max),
      policy_(std::make_shared<const AccessPolicy>(std::move(policy))),
      requests_(requests_per_second_max, 2 * requests_per_second_max),
      wrong_tokens_(wrong_tokens_max / minute, wrong_tokens_max),
      wrong_tokens_in_all_(wrong_tokens_in_all_max / minute, wrong_tokens_in_all_max),
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
    if (!limit.admit(now())) return too_many("requests of this address", limit.wait(now()));
  }
  return policy()->refuse_foreign(request);
}

Caller Access::caller(const Request& request) const {
  return policy()->caller(request, clock_.wall());
}

std::optional<Response> Access::refuse(const Request& request, const Caller& caller,
                                       std::optional<Scope> scope) {
  auto refusal = policy()->refuse(caller, scope);
  if (refusal && caller.wrong_token) {
    const std::lock_guard guard(mutex_);
    const auto peer = policy()->peer(request);
    if (const auto wait = wait_of(peer); wait > Millis{0}) {
      return too_many("wrong tokens", wait);
    }
    count_wrong(peer);
  }
  return refusal;
}

bool Access::admits_refused_act(const Request& request) {
  const auto peer = network_of(policy()->peer(request));
  const std::lock_guard guard(mutex_);
  return refused_acts_.of(peer, now()).admit(now()) && refused_acts_in_all_.admit(now());
}

std::function<bool()> Access::lasting(const Request& request, Scope scope) const {
  const bool known = caller(request).known;
  return [this, scope, known,
          shown = Request{.authorization = request.authorization, .cookie = request.cookie}] {
    const auto now = caller(shown);
    return now.scopes.contains(scope) && (now.known || !known);
  };
}

Access::Login Access::log_in(const Request& request, std::string_view secret) {
  const std::lock_guard guard(mutex_);
  const auto peer = policy()->peer(request);
  if (const auto wait = wait_of(peer); wait > Millis{0}) {
    return {.refusal = too_many("wrong tokens", wait), .burst = bursts_.admit(now())};
  }
  const auto policy = this->policy();
  if (const auto* token = find_token(policy->tokens, secret)) return {.token = *token};
  count_wrong(peer);
  return {.refusal = *policy->refuse({.wrong_token = true}, Scope::act)};
}

Millis Access::wait_of(const std::string& peer) {
  return std::max(wrong_tokens_.of(network_of(peer), now()).wait(now()),
                  wrong_tokens_in_all_.wait(now()));
}

void Access::count_wrong(const std::string& peer) {
  (void)wrong_tokens_.of(network_of(peer), now()).admit(now());
  (void)wrong_tokens_in_all_.admit(now());
}

}  // namespace watchdog::monitor
