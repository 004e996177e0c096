// Monitors that share a server show each other how many sessions of each state they judge, so each
// shows the same sum to people. The numbers go out with the conclusions that change them. A
// finished turn is ready for a day, and no event ends that: so those that are ready are counted by
// the hour.
#include "codec/fields.h"
#include "observer/observer_state.h"
#include "store/sharing.h"
#include "text/json_writer.h"

namespace watchdog {
namespace {

/// A monitor shows its numbers to the others at most this often, and reads theirs at least so.
constexpr Millis tally_every{100};
constexpr Millis others_every{1'000};

template <std::size_t size>
void write_counts(JsonWriter& out, const std::array<std::int64_t, size>& counts) {
  out.open_array();
  for (const auto count : counts) out.value(count);
  out.close_array();
}

template <std::size_t size>
bool read_counts(const nlohmann::json& array, std::array<std::int64_t, size>& counts) {
  // A newer monitor may know more kinds.
  if (!array.is_array() || array.size() < size) return false;
  for (std::size_t at = 0; at < size; ++at) {
    if (!array[at].is_number_integer()) return false;
    counts[at] = array[at].template get<std::int64_t>();
  }
  return true;
}

/// Of a monitor of an earlier version nothing is read: its sessions count once it is updated.
bool read_attentions(const nlohmann::json& json, Tally& tally) {
  const auto attentions = json.find("attentions");
  const auto hours = json.find("readyByHour");
  if (attentions == json.end() || hours == json.end() || !hours->is_array()) return false;
  if (!read_counts(*attentions, tally.attentions)) return false;
  for (const auto& hour : *hours) {
    std::array<std::int64_t, 2> pair{};
    if (!read_counts(hour, pair)) return false;
    tally.ready_by_hour[pair[0]] += pair[1];
  }
  return true;
}

std::int64_t hour_of(WallTime at) {
  return std::chrono::floor<std::chrono::hours>(at).time_since_epoch().count();
}

}  // namespace

std::optional<Tally::Part> Tally::part_of(const Case& judged, Family family) {
  const auto lifecycle = judged.history.lifecycle;
  if (is_end(lifecycle)) return std::nullopt;
  // Nothing is old at the beginning of time; `attentions_at` says what is.
  const auto [state, attention] = standing_of(judged, WallTime{}, family);
  return Part{.lifecycle = lifecycle,
              .health = judged.health.kind,
              .state = state,
              .attention = attention,
              .ready_hour = attention == Attention::ready ? hour_of(judged.health_since) : 0,
              .is_blocked_on_people =
                  lifecycle == Lifecycle::waiting && state == SessionState::needs_input};
}

void Tally::add(const Part& part, std::int64_t count) {
  healths[static_cast<std::size_t>(part.lifecycle)][static_cast<std::size_t>(part.health)] += count;
  states[static_cast<std::size_t>(part.state)] += count;
  attentions[static_cast<std::size_t>(part.attention)] += count;
  if (part.attention == Attention::ready) {
    auto& ready = ready_by_hour[part.ready_hour];
    ready += count;
    if (ready == 0) ready_by_hour.erase(part.ready_hour);
  }
  if (part.is_blocked_on_people) blocked_on_people += count;
}

void Tally::add(const Case& judged, Family family) {
  if (const auto part = part_of(judged, family)) add(*part);
}

void Tally::add(const Tally& other) {
  for (std::size_t at = 0; at < healths.size(); ++at)
    for (std::size_t health = 0; health < healths[at].size(); ++health)
      healths[at][health] += other.healths[at][health];
  for (std::size_t at = 0; at < states.size(); ++at) states[at] += other.states[at];
  for (std::size_t at = 0; at < attentions.size(); ++at) attentions[at] += other.attentions[at];
  for (const auto& [hour, count] : other.ready_by_hour) ready_by_hour[hour] += count;
  blocked_on_people += other.blocked_on_people;
}

std::array<std::int64_t, std::size(Names<Attention>::all)> Tally::attentions_at(
    WallTime wall) const {
  auto now = attentions;
  for (const auto& [hour, count] : ready_by_hour) {
    if (hour >= hour_of(wall - end_fresh_for)) break;
    now[static_cast<std::size_t>(Attention::ready)] -= count;
    now[static_cast<std::size_t>(Attention::resting)] += count;
  }
  return now;
}

std::string to_json(const Tally& tally) {
  JsonWriter out;
  out.open_object().key("healths").open_array();
  for (const auto& counts : tally.healths) write_counts(out, counts);
  out.close_array().key("states");
  write_counts(out, tally.states);
  out.key("attentions");
  write_counts(out, tally.attentions);
  out.key("readyByHour").open_array();
  for (const auto& [hour, count] : tally.ready_by_hour)
    out.open_array().value(hour).value(count).close_array();
  out.close_array();
  out.field("blockedOnPeople", tally.blocked_on_people).close_object();
  return out.finish();
}

std::optional<Tally> tally_from_json(const std::string& text) {
  const auto json = parse_json(text);
  if (!json || !json->is_object()) return std::nullopt;
  Tally tally;
  const auto healths = json->find("healths");
  const auto states = json->find("states");
  const auto blocked = json->find("blockedOnPeople");
  if (healths == json->end() || states == json->end() || blocked == json->end() ||
      !blocked->is_number_integer() || !healths->is_array() ||
      healths->size() < tally.healths.size() || !read_counts(*states, tally.states))
    return std::nullopt;
  if (!read_attentions(*json, tally)) return std::nullopt;
  for (std::size_t at = 0; at < tally.healths.size(); ++at)
    if (!read_counts((*healths)[at], tally.healths[at])) return std::nullopt;
  tally.blocked_on_people = blocked->get<std::int64_t>();
  return tally;
}

void Observer::TallyExchange::count(std::optional<Tally::Part>& counted,
                                    std::optional<Tally::Part> present) {
  if (counted == present) return;
  if (counted) own.add(*counted, -1);
  if (present) own.add(*present);
  counted = present;
  own_changed = true;
}

void Observer::TallyExchange::show(State& state) {
  const auto now = state.store.now();
  if (!own_changed || !state.is_shared() || now - shown_at < tally_every) return;
  shown_at = now;
  own_changed = false;
  Sharing(state.store).set_tally(to_json(own));
}

Result<void> Observer::TallyExchange::exchange(State& state) {
  if (state.name.empty()) return {};
  if (!state.is_shared()) {
    const std::lock_guard guard(state.sessions.mutex);
    others = {};
    return {};
  }
  show(state);
  Sharing sharing(state.store);
  if (auto written = sharing.write_tally(); !written) return written;
  if (!others_changed && state.store.now() - others_at < others_every) return {};
  const auto texts = sharing.tallies_of_others();
  if (!texts) return texts.error();
  others_at = state.store.now();
  others_changed = false;
  Tally sum{};
  for (const auto& text : *texts)
    if (const auto tally = tally_from_json(text)) sum.add(*tally);
  const std::lock_guard guard(state.sessions.mutex);
  others = sum;
  return {};
}

}  // namespace watchdog
