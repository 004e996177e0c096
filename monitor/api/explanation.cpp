#include "api/explanation.h"

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace watchdog::monitor {
namespace {

constexpr int levels_max = 5;
constexpr std::size_t level_max = 100;

/// True if others may be the cause of how the session is. Silence and death are its own.
bool waits(const Case& judged) {
  if (is_end(judged.history.lifecycle)) return false;
  switch (judged.health.kind) {
    case HealthKind::silent:
    case HealthKind::dead:
      return false;
    case HealthKind::slow:
    case HealthKind::suspect:
    case HealthKind::stuck:
    case HealthKind::blocked:
      return true;
    default:
      return judged.history.lifecycle == Lifecycle::waiting || !judged.history.open_calls->empty();
  }
}

/// A session below another one, in a list in which each follows its parent.
struct Relative {
  std::size_t parent = 0;  ///< Its place in the list.
  std::string id;
  bool waits = false;
  std::optional<Explanation> own;    ///< Its health, if that explains anything.
  std::optional<Explanation> below;  ///< The most severe of those behind it.
};

Relative relative_of(std::size_t parent, const Child& child) {
  const auto& [id, judged] = child;
  Relative relative{.parent = parent, .id = id, .waits = waits(judged)};
  if (severity(judged.health.kind) > 0) {
    relative.own = {.session = id,
                    .health = judged.health.kind,
                    .reason = reason_of(judged.health, judged.history, *judged.policy)};
  }
  return relative;
}

/// The session and those below it, level by level.
Result<std::vector<Relative>> family_of(Backend& backend, std::string_view session) {
  std::vector<Relative> family{{.id = std::string(session), .waits = true}};
  std::unordered_set<std::string> known{family.front().id};
  std::size_t begin = 0;
  for (int level = 0; level < levels_max && begin < family.size(); ++level) {
    const auto end = family.size();
    for (auto at = begin; at < end; ++at) {
      const auto room = level_max - (family.size() - end);
      if (!family[at].waits || room == 0) continue;
      const auto children = backend.children(family[at].id, room);
      if (!children) return children.error();
      for (const auto& child : *children) {
        // Agents choose whom they name as their parent: it may go in a circle.
        if (known.insert(child.id).second) family.push_back(relative_of(at, child));
      }
    }
    begin = end;
  }
  return family;
}

}  // namespace

Result<std::optional<Explanation>> explanation(Backend& backend, std::string_view session,
                                               const Case& judged) {
  if (!waits(judged)) return std::optional<Explanation>{};
  auto family = family_of(backend, session);
  if (!family) return family.error();
  auto& all = *family;
  // From the end, so that each has the results of all below it. Of equals the first listed wins.
  for (auto at = all.size() - 1; at > 0; --at) {
    auto& culprit = all[at].below ? all[at].below : all[at].own;
    auto& worst = all[all[at].parent].below;
    if (culprit && (!worst || severity(culprit->health) >= severity(worst->health)))
      worst = std::move(culprit);
  }
  return std::move(all.front().below);
}

}  // namespace watchdog::monitor
