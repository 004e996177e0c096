// The log is the memory: after a restart, and with several monitors on one database, the same
// entries give the same book. Two monitors may both write the end of a trial; the book takes one.
// After a restart an open trial gets its whole pace again.
#include "api/recovery_trials.h"

#include <future>
#include <set>
#include <utility>

namespace watchdog::monitor {
namespace {

constexpr int entries_at_once = 1'000;

}  // namespace

bool RecoveryTrials::read_log() {
  while (true) {
    const auto done = std::make_shared<std::promise<Result<std::vector<AuditEntry>>>>();
    store_.read([done, after = newest_](
                    StoreReader& reader) { done->set_value(reader.audit(after, entries_at_once)); },
                [done](Error why) { done->set_value(std::move(why)); });
    const auto entries = done->get_future().get();
    if (!entries) return false;
    if (entries->empty()) return true;
    for (const auto& entry : *entries) book_.add(entry);
    newest_ = entries->back().id;
  }
}

void RecoveryTrials::write_down(const AuditEntry& entry) {
  const auto done = std::make_shared<std::promise<void>>();
  store_.write([entry](Store& kept) { return kept.keep(entry); },
               [done](const Result<void>&) { done->set_value(); });
  done->get_future().wait();
}

void RecoveryTrials::watch(const OpenTrial& trial) {
  const auto watched = store_.watched(trial.session);
  if (!watched) return;
  const auto [start, is_new] = starts_.try_emplace({trial.rule, trial.session, trial.verdict},
                                                   TrialStart::of(watched->judged));
  if (const auto recovered = has_recovered(start->second, watched->judged))
    write_down(end_of(trial, *recovered, watched->description->agent));
}

void RecoveryTrials::publish() {
  Recovery::Trials trials{.counts = book_.counts(), .off = book_.off()};
  for (const auto& trial : book_.open()) ++trials.open[trial.rule];
  recovery_->publish(std::move(trials));
}

void RecoveryTrials::read() {
  if (read_log()) publish();
}

void RecoveryTrials::look() {
  if (!read_log()) return;
  const auto open = book_.open();
  std::set<Key> kept;
  for (const auto& trial : open) {
    kept.emplace(trial.rule, trial.session, trial.verdict);
    watch(trial);
  }
  std::erase_if(starts_, [&](const auto& one) { return !kept.contains(one.first); });
  for (const auto& [rule, counts] : book_.harmful()) {
    const auto entry = switch_off(rule, counts);
    write_down(entry);
    log_("rule " + rule + " switched itself off: it " + entry.outcome);
  }
  read();
}

}  // namespace watchdog::monitor
