// A group is read from its top: the highest running session above, then its children level by
// level, then the sessions of the same label. Reading ends at the first one that works, so groups
// of which one works cost little. Parents are named by agents and may go in a circle.
#include "core/group_wait.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "facts/agent_tools.h"
#include "judge/attention.h"
#include "judge/loose_ends.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

constexpr int group_levels_max = 8;
constexpr std::size_t members_named_max = 6;  ///< Members that a sentence names.

/// A turn that is over, and after which nothing goes on. A person who interrupted it knows.
bool turn_rests(const Case& judged) noexcept {
  const auto& why = judged.history.notes->idle_why;
  return judged.history.lifecycle == Lifecycle::idle && judged.health.kind == HealthKind::idle &&
         !why.starts_with(idle_reports::goes_on) && !why.starts_with(idle_reports::interrupted) &&
         !why.starts_with(idle_reports::failed);
}

bool waits_in_group(const Case& judged) noexcept {
  return turn_rests(judged) || waits_for_children(judged.history);
}

/// A running session of a group.
struct GroupSession {
  std::string id;
  std::string parent;  ///< Empty: none that is known here.
  Case judged;
};

/// Collects the members of a group, until one of them works.
class WaitingGroup {
 public:
  WaitingGroup(Backend& backend, StoreReader& reader) : backend_(backend), reader_(reader) {}

  /// Adds the family and the group of a session. Returns false if one of them works, or if there
  /// are too many.
  Result<bool> collect(const SessionRow& row);

  [[nodiscard]] std::optional<GroupWait> result() const;

 private:
  Result<SessionRow> top_of(SessionRow row);
  Result<bool> add_row(const SessionRow& row);
  Result<bool> add_children(std::size_t from);
  Result<bool> add_labelled(const std::string& label);
  bool add(std::string id, std::string parent, Case judged);
  [[nodiscard]] std::vector<std::string> awaited_by(const GroupSession& member) const;

  Backend& backend_;
  StoreReader& reader_;
  std::vector<GroupSession> members_;
  std::unordered_map<std::string, bool> known_;  ///< True: it is a member.
};

bool WaitingGroup::add(std::string id, std::string parent, Case judged) {
  const auto& history = judged.history;
  const bool is_member = !is_end(history.lifecycle) && history.said_something;
  if (!known_.emplace(id, is_member).second || !is_member) return true;
  if (members_.size() == group_members_max || !waits_in_group(judged)) return false;
  members_.push_back({std::move(id), std::move(parent), std::move(judged)});
  return true;
}

Result<bool> WaitingGroup::add_row(const SessionRow& row) {
  if (is_end(row.lifecycle) || known_.contains(row.id)) return true;
  auto watched = look_up(backend_, reader_, row);
  if (!watched) return watched.error();
  const auto from = members_.size();
  if (!add(row.id, row.spec.parent, std::move(watched->judged))) return false;
  return add_children(from);
}

/// Of the members from that place on, and theirs.
Result<bool> WaitingGroup::add_children(std::size_t from) {
  for (auto at = from; at < members_.size(); ++at) {
    const auto parent = members_[at].id;
    auto children = backend_.children(parent, group_members_max + 1);
    if (!children) return children.error();
    for (auto& child : *children)
      if (!add(std::move(child.id), parent, std::move(child.judged))) return false;
  }
  return true;
}

/// The highest session above that has not ended.
Result<SessionRow> WaitingGroup::top_of(SessionRow row) {
  for (int level = 0; level < group_levels_max && !row.spec.parent.empty(); ++level) {
    auto above = reader_.session(row.spec.parent);
    if (!above && above.error().code != ErrorCode::not_found) return above.error();
    if (!above || is_end(above->lifecycle)) break;
    row = std::move(*above);
  }
  return row;
}

Result<bool> WaitingGroup::add_labelled(const std::string& label) {
  constexpr int looked_at_max = 500;
  SessionFilter filter;
  filter.label_key = group_label;
  filter.label_value = label;
  filter.limit = looked_at_max;
  const auto rows = reader_.sessions(filter);
  if (!rows) return rows.error();
  for (const auto& row : *rows) {
    auto added = add_row(row);
    if (!added || !*added) return added;
  }
  return true;
}

Result<bool> WaitingGroup::collect(const SessionRow& row) {
  auto top = top_of(row);
  if (!top) return top.error();
  auto added = add_row(*top);
  if (!added || !*added) return added;
  const SessionRow* const labelled[] = {&row, &*top};
  for (const auto* of : labelled) {
    const auto label = of->spec.labels.find(std::string(group_label));
    if (label == of->spec.labels.end() || label->second.empty()) continue;
    added = add_labelled(label->second);
    if (!added || !*added) return added;
  }
  return known_.contains(row.id) && known_.at(row.id);
}

/// A child rests until its parent gives it the next task.
std::vector<std::string> WaitingGroup::awaited_by(const GroupSession& member) const {
  std::vector<std::string> awaited;
  const bool for_children = waits_for_children(member.judged.history);
  for (const auto& other : members_) {
    const bool is_awaited = for_children ? other.parent == member.id : other.id == member.parent;
    if (is_awaited && other.id != member.id) awaited.push_back(other.id);
  }
  return awaited;
}

std::optional<GroupWait> WaitingGroup::result() const {
  const bool is_open = std::ranges::any_of(members_, [](const GroupSession& member) {
    const auto& history = member.judged.history;
    return waits_for_children(history) || !unfinished_note(history).empty();
  });
  if (members_.size() < 2 || !is_open) return std::nullopt;
  const auto now = backend_.now();
  const auto wall = system_clock().wall();
  GroupWait group;
  for (const auto& member : members_) {
    auto awaited = awaited_by(member);
    // A call may be that of a subagent that is not known here, and works.
    const auto calls = member.judged.history.open_calls->size();
    const bool for_children = waits_for_children(member.judged.history);
    if (for_children && awaited.size() < std::max<std::size_t>(calls, 1)) return std::nullopt;
    group.since = std::max(group.since, standing_since(member.judged, now, wall));
    group.members.push_back({member.id, std::move(awaited)});
  }
  return group;
}

std::string group_in_words(const GroupWait& group) {
  std::string text = "everybody waits: ";
  for (std::size_t at = 0; at < group.members.size() && at < members_named_max; ++at) {
    const auto& [session, waits_for] = group.members[at];
    text += (at == 0 ? "" : "; ") + session + " waits for ";
    if (waits_for.empty()) text += "a prompt";
    for (std::size_t other = 0; other < waits_for.size() && other < members_named_max; ++other)
      text += (other == 0 ? "" : ", ") + waits_for[other];
    if (waits_for.size() > members_named_max)
      text += " and " + std::to_string(waits_for.size() - members_named_max) + " more";
  }
  if (group.members.size() > members_named_max)
    text += "; " + std::to_string(group.members.size() - members_named_max) + " more wait";
  return text;
}

std::string with_notice(std::string object, std::string_view name, JsonWriter& value) {
  if (!object.ends_with('}')) return object;
  object.pop_back();
  return object + ",\"" + std::string(name) + "\":" + value.finish() + "}";
}

}  // namespace

bool waits_for_children(const History& history) noexcept {
  if (history.lifecycle == Lifecycle::waiting)
    return history.notes->waiting_for == wait_reports::children;
  const auto& calls = *history.open_calls;
  return history.lifecycle == Lifecycle::running && !calls.empty() &&
         std::ranges::all_of(calls,
                             [](const OpenCall& call) { return waits_for_subagent(call.name); });
}

bool may_be_group_wait(Backend& backend, std::string_view session, const Watched& watched) {
  if (!waits_in_group(watched.judged)) return false;
  const auto& described = *watched.description;
  if (described.family == Family::child) return true;
  // Its labels, as JSON.
  if (described.members.find("\"" + std::string(group_label) + "\":") != std::string::npos)
    return true;
  const auto children = backend.children(session, 1);
  return !children || !children->empty();
}

Result<std::optional<GroupWait>> group_wait(Backend& backend, StoreReader& reader,
                                            const SessionRow& row, const Watched& watched) {
  const std::optional<GroupWait> none;
  if (!may_be_group_wait(backend, row.id, watched)) return none;
  WaitingGroup group(backend, reader);
  const auto all_wait = group.collect(row);
  if (!all_wait) return all_wait.error();
  return *all_wait ? group.result() : none;
}

Result<std::optional<SilentChild>> silent_child(Backend& backend, std::string_view session,
                                                const Case& judged) {
  std::optional<SilentChild> found;
  const auto& steps = judged.history.repetition->steps;
  if (is_end(judged.history.lifecycle) ||
      static_cast<std::int64_t>(steps.size()) < silent_child_rounds)
    return found;
  const auto children = backend.children(session, group_members_max);
  if (!children) return children.error();
  Seq first = 0;
  for (const auto& [id, child] : *children) {
    const auto& history = child.history;
    // Without a start it is only a name.
    if (history.said_something || history.seq == 0 || is_end(history.lifecycle)) continue;
    if (child.health.kind == HealthKind::dead) continue;  // that says more
    const auto rounds =
        std::ranges::count_if(steps, [&](const Step& step) { return step.seq > history.seq; });
    if (rounds < silent_child_rounds || (first != 0 && history.seq > first)) continue;
    first = history.seq;
    found = {.session = id, .rounds = rounds};
  }
  return found;
}

std::string with_group_wait(std::string object, const std::optional<GroupWait>& group) {
  if (!group) return object;
  JsonWriter out;
  out.open_object().field("since", group->since.time_since_epoch().count());
  out.field("text", group_in_words(*group)).key("members").open_array();
  for (const auto& [session, waits_for] : group->members) {
    out.open_object().field("sessionId", session).key("waitsFor").open_array();
    for (const auto& other : waits_for) out.value(other);
    out.close_array().close_object();
  }
  out.close_array().close_object();
  return with_notice(std::move(object), "groupWait", out);
}

std::string with_silent_child(std::string object, const std::optional<SilentChild>& child) {
  if (!child) return object;
  JsonWriter out;
  out.open_object().field("sessionId", child->session).field("rounds", child->rounds);
  out.field("text", "its child " + child->session +
                        " has reported nothing but its start, while this session finished " +
                        std::to_string(child->rounds) + " rounds of calls");
  out.close_object();
  return with_notice(std::move(object), "silentChild", out);
}

}  // namespace watchdog::monitor
