// The observer where several monitors share a server. Each renews its leases before it looks. A
// monitor that gained sessions reads them, a piece in each look. It begins with grace: their
// reports may have waited for their monitor, so the time of a lease counts as an absence. Events of
// other monitors' sessions are passed on to streams, and nothing is concluded of them. Streams need
// transitions in order, so those of all monitors are read from the server when they are recorded.
#include "observer/observer_state.h"
#include "store/sharing.h"
#include "store/transition_reader.h"

namespace watchdog {
namespace {

constexpr Millis boots_read_every{60'000};
constexpr std::size_t foreign_max = 20'000;
constexpr int transitions_max = 1'000;
constexpr int foreign_children_max = 100;

}  // namespace

Result<HeldShards::Change> Observer::State::renew_leases() {
  auto change = Sharing(store).renew(name);
  if (change) leases_at = store.now();
  return change;
}

Result<void> Observer::State::renew_when_due() {
  if (name.empty()) return {};
  if (store.now() - leases_at >= Sharing(store).renewal_wait()) {
    const auto change = renew_leases();
    if (!change) return change.error();
    owes_grace = owes_grace || !change->gained.empty();
    // It lost shards while it was away: others judged meanwhile.
    if (!change->lost.empty()) last_look = store.now();
    if (auto handed = Loading(*this).hand_over(*change); !handed) return handed;
  }
  // A machine on which another monitor runs may have booted again.
  if (store.now() - boots_at >= boots_read_every) {
    processes.learn(boots_of(store.reader()));
    boots_at = store.now();
  }
  if (!owes_grace) return {};
  const auto told = store.append_observer({lease_for + lease_renewed_every});
  if (!told) return told.error();
  owes_grace = false;
  return {};
}

const Observer::State::Foreign* Observer::State::foreign_session(SessionKey session) {
  if (const auto known = foreign.find(session); known != foreign.end()) return &known->second;
  auto row = store.reader().session(session);
  if (!row) return nullptr;
  if (foreign.size() > foreign_max) foreign.clear();
  return &foreign
              .emplace(session,
                       Foreign{.id = std::move(row->id), .parent = std::move(row->spec.parent)})
              .first->second;
}

void Observer::State::see_foreign(const Event& event) {
  tallies.others_changed = true;
  const auto* session = foreign_session(event.session);
  if (session == nullptr || session->parent.empty()) return;
  families.note_parent(session->parent);
}

Result<void> Observer::State::pass_on_transitions() {
  const bool has_news = is_shared() || passed_transition < recorded_transition;
  if (!options.concluded || !has_news) return {};
  const auto made =
      TransitionReader(store.reader()).after(passed_transition, cursor, transitions_max);
  if (!made) return made.error();
  for (const auto& row : *made) {
    const auto session = row.transition.session;
    passed_transition = row.id;
    if (!store.owns(session)) tallies.others_changed = true;
    if (const auto* live = sessions.find(session))
      options.concluded(row, live->id);
    else if (const auto* other = foreign_session(session))
      options.concluded(row, other->id);
  }
  return {};
}

bool Observer::State::has_child_elsewhere(std::string_view id) const {
  if (!is_shared() && unread.empty()) return false;
  const auto rows = store.reader().running_children(id, foreign_children_max);
  if (!rows) return true;  // nothing is concluded from what cannot be read
  for (const auto& row : *rows) {
    const bool is_quiet = row.health == HealthKind::dead || row.health == HealthKind::silent;
    const bool is_in_memory = store.owns(row.key) && !unread.contains(row.key);
    if (!is_in_memory && !is_quiet && row.lifecycle != Lifecycle::idle) return true;
  }
  return false;
}

}  // namespace watchdog
