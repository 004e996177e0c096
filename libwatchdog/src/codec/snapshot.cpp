// Snapshots of a case. Each member is listed once, in a function that visits it with its name,
// and both writing and reading go through that list. A snapshot that is out of bounds or of
// another format is not read; the events are folded instead.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "codec/budget.h"
#include "codec/facts.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "codec/snapshot_parts.h"
#include "text/json_writer.h"

namespace watchdog {
namespace {

using nlohmann::json;

/// Names every number of a history once; writing and reading both go through it.
template <class Visit>
void each_number(History& h, Visit&& visit) {
  visit("seq", h.seq);
  visit("tick", h.tick);
  visit("at", h.at);
  visit("attempt", h.attempt);
  visit("heartbeats", h.heartbeats);
  visit("state_changes", h.state_changes);
  visit("said_something", h.said_something);
  visit("loop_beats_since_change", h.loop_beats_since_change, Range::any);
  visit("loop_beats_since_rise", h.loop_beats_since_rise, Range::any);
  visit("streak_seq", h.streak_seq);
  visit("change_seq", h.change_seq);
  visit("last_sign", h.last_sign);
  visit("sign_seq", h.sign_seq);
  visit("last_beat", h.last_beat);
  visit("last_change", h.last_change);
  visit("last_rise", h.last_rise);
  visit("last_periodic", h.last_periodic);
  visit("periodic_beats", h.periodic_beats);
  visit("gap_at", h.gaps.at);
  visit("gap_filled", h.gaps.filled);
  visit("gives_position", h.gives_position);
  visit("pid", h.pid, Range::any);
  visit("start_ticks", h.start_ticks, Range::any);
  visit("machine", h.machine);
  visit("pace_from", h.pace_from);
}

template <class Number>
std::int64_t as_integer(const Number& number) {
  if constexpr (requires { number.time_since_epoch(); }) {
    return number.time_since_epoch().count();
  } else if constexpr (requires { number.count(); }) {
    return number.count();
  } else {
    return static_cast<std::int64_t>(number);
  }
}

template <class Number>
void from_integer(const json& value, Number& number, Range range = Range::counted) {
  if constexpr (requires { number.time_since_epoch(); }) {
    number = Number{Millis{number_in<std::int64_t>(value, range)}};
  } else {
    number = number_in<Number>(value, range);
  }
}

/// Members that few sessions have, listed once for reading and writing.
template <class Visit>
void each_box(History& h, Visit&& visit) {
  visit("absences", h.absences);
  visit("repetition", h.repetition);
  visit("pace", h.pace);
  visit("open_calls", h.open_calls);
}

void write_notes(JsonWriter& out, const Notes& notes) {
  if (notes.exited_seq != 0) out.field("exited_seq", notes.exited_seq);
  if (notes.process_found) out.field("process_found", true);
  if (notes.process_lost != Instant{}) out.field("process_lost", as_integer(notes.process_lost));
  if (notes.paused_at != Instant{}) out.field("paused_at", as_integer(notes.paused_at));
  if (notes.quiet_until != Instant{}) out.field("quiet_until", as_integer(notes.quiet_until));
  // Visiting does not change them.
  auto& parts = const_cast<Notes&>(notes);  // NOLINT
  if (notes.opinions.seq != 0) {
    out.key("opinions");
    PartWriter{out}.put(parts.opinions);
  }
  if (notes.suspicion.seq != 0) {
    out.key("suspicion");
    PartWriter{out}.put(parts.suspicion);
  }
  if (notes.wait_seq != 0) {
    out.key("wait").open_object().field("for", notes.waiting_for).field("seq", notes.wait_seq);
    out.field("since", as_integer(notes.wait_since)).field("iteration", notes.wait_iteration);
    if (!notes.wait_why.empty()) out.field("why", notes.wait_why);
    if (notes.wait_call != 0) out.field("call", notes.wait_call);
    if (notes.wait_until) out.field("until", as_integer(*notes.wait_until));
    if (!notes.wait_provider.empty()) out.field("provider", notes.wait_provider);
    out.close_object();
  }
  if (!notes.asks->empty()) {
    out.key("asks");
    PartWriter{out}.put(parts.asks.edit());
  }
  if (!notes.idle_why.empty()) out.field("idle_why", notes.idle_why);
  if (notes.outcome) {
    out.key("outcome").open_object().field("kind", name_of(notes.outcome->kind));
    out.field("reason", notes.outcome->reason).field("error", notes.outcome->error);
    if (!notes.outcome->subject.empty()) out.field("subject", notes.outcome->subject);
    out.field("at", as_integer(notes.outcome_at)).close_object();
  }
  if (notes.cancel) {
    out.key("cancel").open_object().field("by", notes.cancel->by);
    out.field("reason", notes.cancel->reason).field("at", as_integer(notes.cancel->at));
    out.close_object();
  }
  if (notes.budget.has()) {
    out.key("budget").open_object();
    write_figures(out, notes.budget->figures);
    out.field("at", as_integer(notes.budget->at)).close_object();
  }
  if (!notes.turns->empty()) {
    out.key("turns");
    PartWriter{out}.put(parts.turns.edit());
  }
  if (!notes.server->empty()) {
    out.key("server");
    PartWriter{out}.put(parts.server.edit());
  }
  if (notes.relay_at != Instant{}) out.field("relay_at", as_integer(notes.relay_at));
  if (notes.wasted_calls != 0) out.field("wasted_calls", notes.wasted_calls);
  if (!notes.words->prompt.empty()) out.field("prompt", notes.words->prompt);
  if (!notes.words->answer.empty()) out.field("answer", notes.words->answer);
  if (!notes.words->failure.empty()) out.field("failure", notes.words->failure);
  if (!notes.words->recent.empty()) {
    out.key("recent");
    PartWriter{out}.put(parts.words.edit().recent);
  }
  if (notes.loose_ends != LooseEnds{}) {
    out.key("loose_ends");
    PartWriter{out}.put(parts.loose_ends);
  }
}

void read_wait(const json& wait, Notes& notes) {
  notes.waiting_for = wait.at("for");
  from_integer(wait.at("seq"), notes.wait_seq);
  from_integer(wait.at("since"), notes.wait_since);
  notes.wait_why = wait.value("why", std::string());
  notes.wait_provider = wait.value("provider", std::string());
  if (const auto call = wait.find("call"); call != wait.end()) from_integer(*call, notes.wait_call);
  if (const auto until = wait.find("until"); until != wait.end())
    from_integer(*until, notes.wait_until.emplace());
  if (wait.at("iteration").is_number())
    notes.wait_iteration = number_in<std::int64_t>(wait.at("iteration"), Range::any);
}

void read_notes(const json& from, History& history) {
  if (const auto exited = from.find("exited_seq"); exited != from.end()) {
    from_integer(*exited, history.notes.edit().exited_seq);
  }
  if (from.value("process_found", false)) history.notes.edit().process_found = true;
  if (const auto lost = from.find("process_lost"); lost != from.end())
    from_integer(*lost, history.notes.edit().process_lost);
  if (const auto paused = from.find("paused_at"); paused != from.end())
    from_integer(*paused, history.notes.edit().paused_at);
  if (const auto quiet = from.find("quiet_until"); quiet != from.end()) {
    from_integer(*quiet, history.notes.edit().quiet_until);
  }
  if (const auto opinions = from.find("opinions"); opinions != from.end()) {
    PartReader::read(*opinions, history.notes.edit().opinions);
  }
  if (const auto suspicion = from.find("suspicion"); suspicion != from.end()) {
    PartReader::read(*suspicion, history.notes.edit().suspicion);
  }
  if (const auto wait = from.find("wait"); wait != from.end())
    read_wait(*wait, history.notes.edit());
  if (const auto asks = from.find("asks"); asks != from.end())
    PartReader::read(*asks, history.notes.edit().asks.edit());
  if (const auto idle = from.find("idle_why"); idle != from.end())
    history.notes.edit().idle_why = idle->get<std::string>();
  if (const auto outcome = from.find("outcome"); outcome != from.end()) {
    auto& notes = history.notes.edit();
    notes.outcome = with_subject(
        Outcome{.kind = named<OutcomeKind>(outcome->at("kind").get<std::string>()).value(),
                .reason = outcome->at("reason"),
                .error = outcome->at("error"),
                .subject = outcome->value("subject", "")});
    from_integer(outcome->at("at"), notes.outcome_at);
  }
  if (const auto cancel = from.find("cancel"); cancel != from.end()) {
    CancelRequest request;
    request.by = cancel->at("by");
    request.reason = cancel->at("reason");
    from_integer(cancel->at("at"), request.at);
    history.notes.edit().cancel = std::move(request);
  }
  if (const auto budget = from.find("budget"); budget != from.end()) {
    auto& note = history.notes.edit().budget.edit();
    Fields fields(*budget);
    note.figures = read_figures(fields);
    if (fields.error()) throw std::out_of_range(fields.error()->message);
    from_integer(budget->at("at"), note.at);
  }
  if (const auto turns = from.find("turns"); turns != from.end()) {
    PartReader::read(*turns, history.notes.edit().turns.edit());
  }
  if (const auto server = from.find("server"); server != from.end()) {
    auto& requests = history.notes.edit().server.edit();
    PartReader::read(*server, requests);
    for (auto& note : requests) note.evidence = bounded(note.evidence);
  }
  if (const auto wasted = from.find("wasted_calls"); wasted != from.end()) {
    from_integer(*wasted, history.notes.edit().wasted_calls);
  }
  if (const auto prompt = from.find("prompt"); prompt != from.end())
    history.notes.edit().words.edit().prompt = prompt->get<std::string>();
  if (const auto answer = from.find("answer"); answer != from.end())
    history.notes.edit().words.edit().answer = answer->get<std::string>();
  if (const auto failure = from.find("failure"); failure != from.end())
    history.notes.edit().words.edit().failure = failure->get<std::string>();
  if (const auto recent = from.find("recent"); recent != from.end())
    PartReader::read(*recent, history.notes.edit().words.edit().recent);
  if (const auto ends = from.find("loose_ends"); ends != from.end())
    PartReader::read(*ends, history.notes.edit().loose_ends);
  if (const auto relay = from.find("relay_at"); relay != from.end()) {
    from_integer(*relay, history.notes.edit().relay_at);
  }
}

/// Checks that a stored history is within its bounds, from any writer.
bool is_bounded(const History& history) {
  const auto& repetition = *history.repetition;
  const auto few = [](const auto& list, std::size_t max) { return list.size() <= max; };
  const auto in_laps = [&](const Cycles& cycles, std::size_t period_min, std::size_t periods) {
    if (!few(cycles.recent, Cycle::period_max)) return false;
    if (cycles.by_period.empty()) return true;
    if (cycles.by_period.size() != periods || cycles.recent.empty()) return false;
    for (std::size_t i = 0; i < periods; ++i) {
      if (cycles.by_period[i].at >= period_min + i) return false;
    }
    return true;
  };
  const auto fits = [&](const Step& step) {
    return few(step.shingles, Marks::shingles_max) && few(step.fields, Marks::fields_max);
  };
  const auto known = [&](const Known& of) {
    return few(of.digests, Known::digests_max) && of.at < Known::digests_max;
  };
  return few(repetition.steps, Repetition::steps_max) && known(repetition.known_steps) &&
         known(repetition.known_states) && in_laps(repetition.rounds, 2, 7) &&
         in_laps(repetition.states, 1, 4) && few(repetition.round.calls, 16) &&
         few(repetition.prose.words, ProseRepetition::words_max) && fits(repetition.round.sum) &&
         std::all_of(repetition.steps.begin(), repetition.steps.end(), fits) &&
         few(history.pace->samples, Pace::kinds_max + 1) && few(*history.absences, absences_max) &&
         few(*history.open_calls, open_calls_max) && few(*history.notes->turns, open_turns_max) &&
         few(*history.notes->server, server_notes_max) &&
         few(history.notes->words->recent, recent_calls_max);
}

History history_from(const json& from) {
  History history;
  each_number(history, [&](const char* name, auto& number, Range range = Range::counted) {
    from_integer(from.at(name), number, range);
  });
  history.gaps.at = static_cast<std::uint8_t>(history.gaps.at % GapWindow::bucket_count);
  const auto& gaps = from.at("gaps");
  for (std::size_t at = 0; at < history.gaps.buckets.size(); ++at)
    from_integer(gaps.at(at), history.gaps.buckets[at], Range::any);
  if (const auto newest = from.find("newest_gap"); newest != from.end())
    PartReader::read(*newest, history.newest_gap);
  history.lifecycle = named<Lifecycle>(from.at("lifecycle").get<std::string>()).value();
  history.last_change_type = from.at("last_change_type");
  history.phase = from.at("phase");
  if (from.at("iteration").is_number())
    history.iteration = number_in<std::int64_t>(from.at("iteration"), Range::any);
  for (const auto& [name, value] : from.at("counters").items()) {
    history.counters.edit().emplace_back(name, value.get<double>());
  }
  each_box(history, [&](const char* name, auto& box) {
    if (const auto part = from.find(name); part != from.end()) PartReader::read(*part, box.edit());
  });
  if (const auto only = from.find("absence"); only != from.end()) {  // as one was kept before
    PartReader::read(*only, history.absences.edit().emplace_back());
  }
  if (const auto sources = from.find("sources"); sources != from.end())
    PartReader::read(*sources, history.sources);
  read_notes(from, history);
  if (!is_bounded(history)) throw std::out_of_range("a list is longer than it can be");
  return history;
}

void write_history(JsonWriter& out, const History& history) {
  out.open_object();
  // Visiting does not change it; one list of fields serves both directions.
  each_number(const_cast<History&>(history),
              [&](const char* name, auto& number, auto...) {  // NOLINT
                out.field(name, as_integer(number));
              });
  out.key("gaps").open_array();
  for (const auto gap : history.gaps.buckets) out.value(gap);
  out.close_array();
  if (history.newest_gap.count > 0) {
    out.key("newest_gap");
    PartWriter{out}.put(const_cast<History&>(history).newest_gap);  // NOLINT: as above
  }
  out.field("lifecycle", name_of(history.lifecycle));
  out.field("last_change_type", history.last_change_type).field("phase", history.phase);
  out.field("iteration", history.iteration).key("counters").open_object();
  for (const auto& [name, value] : *history.counters) out.field(name, value);
  out.close_object();
  each_box(const_cast<History&>(history), [&](const char* name, auto& box) {  // NOLINT: as above
    if (!box.has()) return;
    out.key(name);
    PartWriter{out}.put(box.edit());
  });
  if (!history.sources.empty()) {
    out.key("sources");
    PartWriter{out}.put(const_cast<History&>(history).sources);  // NOLINT: as above
  }
  write_notes(out, *history.notes);
  out.close_object();
}

Health health_from(const json& from) {
  Health health;
  health.kind = named<HealthKind>(from.at("health").get<std::string>()).value();
  health.pattern = named<Pattern>(from.at("pattern").get<std::string>()).value();
  const auto& valid_until = from.at("valid_until");
  if (!valid_until.is_number_integer()) throw std::out_of_range("a number is not an integer");
  const auto until = valid_until.get<std::int64_t>();
  if (until != as_integer(never)) from_integer(until, health.valid_until);
  PartReader::read(from.at("evidence"), health.evidence);
  return health;
}

}  // namespace

std::string snapshot_of(const Case& judged) {
  JsonWriter out;
  out.open_object().field("folded", judged.folded).key("history");
  write_history(out, judged.history);
  out.key("policy").raw(to_json(*judged.policy));
  if (*judged.policy != Policy{}) out.key("own_policy").raw(to_json(*judged.own));
  out.field("health", name_of(judged.health.kind)).field("pattern", name_of(judged.health.pattern));
  out.field("valid_until", as_integer(judged.health.valid_until)).key("evidence").open_array();
  for (const auto seq : judged.health.evidence) out.value(seq);
  out.close_array().field("health_since", as_integer(judged.health_since)).close_object();
  return out.finish();
}

Result<void> read_snapshot(Case& judged, std::string_view text) {
  auto parsed = parse_object(text);
  if (!parsed) return Error{ErrorCode::corrupt, "a snapshot: " + parsed.error().message};
  try {
    Case read;
    read.session = judged.session;
    from_integer(parsed->at("folded"), read.folded);
    read.history = history_from(parsed->at("history"));
    const auto policy = policy_patch_from_json(parsed->at("policy").dump());
    if (!policy) return Error{ErrorCode::corrupt, "a snapshot: " + policy.error().message};
    read.policy.set(patched(Policy{}, *policy));
    const auto own = parsed->find("own_policy");
    // Snapshots of before 0.3 say only which thresholds held: then the session stated all of them.
    const auto stated = own == parsed->end() ? policy : policy_patch_from_json(own->dump());
    if (!stated) return Error{ErrorCode::corrupt, "a snapshot: " + stated.error().message};
    if (*read.policy != Policy{} || own != parsed->end()) read.own.set(*stated);
    read.health = health_from(*parsed);
    from_integer(parsed->at("health_since"), read.health_since);
    if (read.health.valid_until <= read.history.tick) {
      throw std::out_of_range("the judgement had expired before it was made");
    }
    judged = std::move(read);
    return {};
  } catch (const std::exception& error) {
    return Error{ErrorCode::corrupt, std::string("a snapshot: ") + error.what()};
  }
}

}  // namespace watchdog
