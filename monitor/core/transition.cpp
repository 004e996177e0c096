#include "core/transition.h"

#include "codec/json.h"
#include "codec/progress.h"
#include "store/transition_reader.h"
#include "text/json_writer.h"

namespace watchdog::monitor {

std::string transition_json(const TransitionRow& row) {
  JsonWriter out;
  const auto& transition = row.transition;
  const auto& health = transition.health;
  out.open_object().field("id", row.id).field("seq", transition.seq);
  out.field("at", transition.at.time_since_epoch().count()).key("quietMs");
  row.quiet ? out.value(row.quiet->count()) : out.value(nullptr);
  out.field("from", name_of(transition.from)).field("health", name_of(health.kind));
  out.key("pattern");
  health.pattern == Pattern::none ? out.value(nullptr) : out.value(name_of(health.pattern));
  out.field("reason", transition.reason).key("evidence");
  write_evidence(out, health);
  out.field("detector", row.detector);
  out.field("policyDigest", hexadecimal(transition.policy_digest)).key("situation");
  // A file may come from anybody.
  const auto& situation = transition.situation;
  const bool readable = situation.starts_with('{') && is_json(situation);
  readable ? out.raw(situation) : out.value(nullptr);
  out.close_object();
  return out.finish();
}

}  // namespace watchdog::monitor
