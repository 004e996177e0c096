// Finds repetition of calls, states and messages. Each finished round becomes a `Step`.
// `fold_step` compares it with the latest eight and adds to or subtracts from `score`; it also
// feeds one streak or cycle for each other pattern. `finding` names the worst of them. A
// confirmed one stays as `alarm` until `recover` has counted enough new steps. The state is
// bounded, and the result depends only on the order of the calls of these functions.
// REPETITION.md has the weights' reasons.
#include "watchdog/repetition.h"

#include <algorithm>
#include <utility>

#include "facts/agent_tools.h"
#include "facts/digest.h"
#include "facts/role.h"

namespace watchdog {
namespace {

/// The score that failures with the same exit code reach at most: a suspicion.
constexpr double failed_alike_max = 2.5;
constexpr std::size_t round_calls_max = 16;
/// Replaces the result of every timed-out call, because their texts may differ.
constexpr std::uint64_t timed_out = 0x74696D65642D6F75;
/// Words and pairs of words of what may be a command rather than a text.
constexpr std::size_t command_max = 32;
/// So many looks that came one right after another are no wait, but a loop.
constexpr std::int32_t hurried_max = 20;

/// Returns the finding for a streak; its level is `none` below both bounds.
Finding judged(Pattern pattern, double count, Seq first, Seq last, const Policy& policy) {
  const auto& bounds = policy.patterns[static_cast<std::size_t>(pattern)];
  Finding found{.pattern = pattern, .count = count, .first = first, .last = last};
  if (bounds.stuck > 0 && count >= bounds.stuck) {
    found.level = Level::stuck;
  } else if (count >= bounds.suspect) {
    found.level = Level::suspect;
  }
  return found;
}

/// The same for every name of one tool.
std::uint32_t tool_digest(std::string_view name) {
  return static_cast<std::uint32_t>(digest_of(tool_family(name)) >> 32U);
}

std::uint64_t identity_of(const Marks& marks, const ToolRule* rule) {
  if (rule == nullptr || rule->identity.empty() || marks.fields.empty()) return marks.identity;
  std::uint64_t sum = 0;
  for (std::string field : rule->identity) {
    // Names are folded where they are marked.
    std::transform(field.begin(), field.end(), field.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    });
    const auto name = static_cast<std::uint32_t>(digest_of(field));
    for (const auto& known : marks.fields) {
      if (known.name == name) sum += combined(name, known.value);
    }
  }
  return sum == 0 ? marks.identity : sum;
}

}  // namespace

bool other_target(const Step& a, const Step& b) noexcept {
  if (!a.fields.empty() && a.fields.size() == b.fields.size() &&
      std::all_of(a.fields.begin(), a.fields.end(), [&](const Marks::Field& own) {
        return std::any_of(b.fields.begin(), b.fields.end(), [&](const Marks::Field& other) {
          return own.name == other.name &&
                 (own.value == other.value || (own.atomic && other.atomic));
        });
      })) {
    return true;
  }
  // A word and its two pairs.
  constexpr std::size_t one_word = 3;
  if (a.shingles.size() > command_max || b.shingles.size() > command_max) return false;
  std::size_t common = 0;
  for (const auto shingle : a.shingles) {
    common += std::binary_search(b.shingles.begin(), b.shingles.end(), shingle) ? 1U : 0U;
  }
  return a.shingles.size() - common <= one_word && b.shingles.size() - common <= one_word;
}

double similarity(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) noexcept {
  // Over the smallest of both together: only there is each sample known to be complete.
  std::size_t all = 0;
  std::size_t common = 0;
  for (auto i = a.begin(), j = b.begin();
       all < Marks::shingles_max && (i != a.end() || j != b.end()); ++all) {
    if (j == b.end() || (i != a.end() && *i < *j)) {
      ++i;
    } else if (i == a.end() || *j < *i) {
      ++j;
    } else {
      ++common;
      ++i;
      ++j;
    }
  }
  return all == 0 ? 1.0 : static_cast<double>(common) / static_cast<double>(all);
}

void Cycle::add(const Recent& recent, std::size_t period) noexcept {
  const auto digest = recent.back().first;
  const auto part = static_cast<std::uint32_t>(digest);
  if (laps > 0) {
    std::size_t steps = 0;
    if (lap[at] == part) {
      steps = 1;
    } else if (period >= 3 && !missed && lap[(at + 1U) % period] == part) {
      steps = 2;
    }
    if (steps != 0) {
      missed = missed || steps == 2;
      const auto next = at + steps;
      if (next >= period) {
        ++laps;
        missed = false;
      }
      at = static_cast<std::uint8_t>(next % period);
      return;
    }
  }
  // The newest things may be the first lap of a new cycle, unless they are all the same.
  laps = 0;
  missed = false;
  at = 0;
  if (recent.size() < period) return;
  const auto begin = recent.end() - static_cast<std::ptrdiff_t>(period);
  if (period > 1 &&
      std::all_of(begin, recent.end(), [&](const auto& item) { return item.first == digest; })) {
    return;
  }
  std::transform(begin, recent.end(), lap.begin(),
                 [](const auto& item) { return static_cast<std::uint32_t>(item.first); });
  laps = 1;
  first = begin->second;
}

void Cycles::add(std::uint64_t digest, Seq seq, std::size_t period_min, std::size_t period_max) {
  if (recent.size() == Cycle::period_max) recent.erase(recent.begin());
  recent.emplace_back(digest, seq);
  by_period.resize(period_max - period_min + 1);
  for (std::size_t i = 0; i < by_period.size(); ++i) by_period[i].add(recent, period_min + i);
}

const Cycle* Cycles::longest() const noexcept {
  const Cycle* longest = nullptr;
  for (const auto& cycle : by_period) {
    if (cycle.laps >= 2 && (longest == nullptr || cycle.laps > longest->laps)) longest = &cycle;
  }
  return longest;
}

bool Known::has(std::uint64_t digest) const noexcept {
  const auto part = static_cast<std::uint32_t>(digest >> 32U) & ~1U;
  return std::any_of(digests.begin(), digests.end(),
                     [&](std::uint32_t known) { return (known & ~1U) == part; });
}

int Known::visit(std::uint64_t digest) {
  const auto part = static_cast<std::uint32_t>(digest >> 32U) & ~1U;
  const auto found = std::find_if(digests.begin(), digests.end(),
                                  [&](std::uint32_t known) { return (known & ~1U) == part; });
  if (found != digests.end()) return 1 + static_cast<int>(std::exchange(*found, part | 1U) & 1U);
  if (digests.size() < digests_max) {
    digests.push_back(part);
  } else {
    digests[at] = part;
    at = (at + 1U) % digests_max;
  }
  return 0;
}

CallMark unknown_call(std::string_view tool) {
  const auto digest = tool_digest(tool);
  return {.call = digest, .tool = digest, .blind = true};
}

bool Repetition::add_timeout(const CallMark& call) {
  return known_steps.add(combined(call.call, timed_out));
}

CallMark Repetition::begin_call(const Report& report, Seq seq, const Policy& policy) {
  novel = false;
  quieten();
  const auto rule = policy.tools.find(report.name);
  const auto* ruled = rule == policy.tools.end() ? nullptr : &rule->second;
  CallMark mark{.tool = tool_digest(report.name)};
  const auto* marks = std::get_if<Marks>(&report.detail);
  if (ruled != nullptr) {
    mark.use = ruled->use;
  } else if (marks != nullptr && marks->waits) {
    mark.use = ToolUse::poll;
  }
  if (marks == nullptr || !marks->reads_only) turns.laps = {};
  turns.stops = {};
  mark.call = combined(mark.tool, marks != nullptr ? identity_of(*marks, ruled) : 0);
  if (mark.use == ToolUse::exempt) return mark;
  mark.malformed = marks != nullptr && marks->malformed;
  mark.blind = marks == nullptr;

  if (round.finished > 0) complete_round(seq, policy);
  if (round.open == 0) round = Round{.number = std::max(round.number + 1, 1U)};
  mark.round = round.number;
  ++round.open;
  mark.twin = std::find(round.calls.begin(), round.calls.end(), mark.call) != round.calls.end();
  if (mark.twin) return mark;
  const bool alone = round.calls.empty();
  round.sum.blind |= mark.blind;
  if (round.calls.size() < round_calls_max) round.calls.push_back(mark.call);
  round.use = alone || round.use == mark.use ? mark.use : ToolUse::ordinary;
  round.sum.call += mark.call;
  round.sum.tool += mark.tool;
  round.malformed |= mark.malformed;
  // Common arguments of several calls say little about any of them.
  const bool has_own = alone && marks != nullptr;
  round.sum.shingles = has_own ? Packed(marks->shingles) : Packed<std::uint32_t>();
  round.sum.worded = has_own && marks->worded;
  round.sum.fields = has_own ? Packed(marks->fields) : Packed<Marks::Field>();
  return mark;
}

void Repetition::finish_call(const CallMark& call, const Report& result, Seq seq,
                             const Policy& policy) {
  novel = false;
  stepped = false;
  if (call.use == ToolUse::exempt) return;
  const auto* marks = std::get_if<Marks>(&result.detail);
  Step step{.seq = seq,
            .call = call.call,
            .result = marks != nullptr ? marks->identity : 0,
            .exact = marks != nullptr ? marks->exact : 0,
            .tool = call.tool,
            .failed = is_failure(result.kind),
            .informative = marks != nullptr && marks->informative,
            .blind = marks == nullptr || call.blind,
            .exit_code = marks != nullptr ? marks->exit_code : std::uint8_t{0}};
  const bool unreachable = marks != nullptr && marks->unreachable;
  if (call.round == 0 || call.round != round.number) {  // its round is over
    if (!unreachable) fold_step(std::move(step), call.use, call.malformed, policy);
    return;
  }
  --round.open;
  ++round.finished;
  if (!call.twin) {
    round.sum.result += step.result;
    round.sum.exact = round.calls.size() == 1 ? step.exact : 0;
    round.sum.exit_code = round.calls.size() == 1 ? step.exit_code : std::uint8_t{0};
    round.sum.failed |= step.failed;
    round.sum.informative |= step.informative;
    round.sum.blind |= step.blind;
    round.unreachable |= unreachable;
  }
  if (round.open == 0) complete_round(seq, policy);
}

void Repetition::fold_result(const Report& result, Seq seq, const Policy& policy) {
  const auto rule = policy.tools.find(result.name);
  novel = false;
  stepped = false;
  // Whatever is called next is called after something came back.
  if (round.open > 0) ++round.finished;
  const auto* marks = std::get_if<Marks>(&result.detail);
  if (marks == nullptr || !marks->informative) return;
  auto call = unknown_call(result.name);
  if (rule != policy.tools.end()) call.use = rule->second.use;
  finish_call(call, result, seq, policy);
}

void Repetition::drop_call(const CallMark& call, Seq seq, const Policy& policy) {
  if (call.round == 0 || call.round != round.number) return;
  if (--round.open == 0) complete_round(seq, policy);
}

void Repetition::complete_round(Seq seq, const Policy& policy) {
  Round done = std::exchange(round, Round{.number = round.number + 1});
  if (done.unreachable) return;
  done.sum.seq = seq;
  done.sum.blind |= done.sum.result == 0;
  fold_step(std::move(done.sum), done.use, done.malformed, policy);
}

namespace {

/// How a step compares with the ones before it.
struct Likeness {
  bool same_call = false;      ///< As the step right before it.
  bool failed_again = false;   ///< That one failed, too.
  int equal = 0;               ///< Steps in the window with its call and result.
  int similar = 0;             ///< Steps with its result, and arguments that resemble its own.
  bool echo = false;           ///< It repeats the step right before it.
  bool seen = false;           ///< A step that is still known had its call and result.
  std::ptrdiff_t between = 0;  ///< The distance to that step, in steps.
  bool revisit = false;        ///< It may be part of a pass over many things.
  bool follows_new = false;    ///< It follows something new.
  bool alike = false;          ///< It only failed with the same exit code.
};

/// Counts the steps in the window that a step repeats, or nearly repeats.
void compare_with_window(const std::vector<Step>& steps, const Step& step,
                         const RepetitionWeights& weights, Likeness& like) {
  const auto window = std::min(static_cast<std::size_t>(weights.window), Repetition::compared_max);
  for (std::size_t back = 1; back <= std::min(steps.size(), window); ++back) {
    const Step& other = steps[steps.size() - back];
    if (!other.same_result(step)) continue;
    if (other.call == step.call) {
      ++like.equal;
      like.echo |= back == 1;
    } else if (other.tool == step.tool && step.informative && step.result != 0 &&
               !step.shingles.empty() && !other.shingles.empty() && !other_target(other, step) &&
               similarity(other.shingles, step.shingles) >= weights.similar_min) {
      ++like.similar;
      like.echo |= back == 1;
    }
  }
}

Likeness likeness_of(const std::vector<Step>& steps, const Step& step,
                     const RepetitionWeights& weights) {
  Likeness like;
  const Step* before = steps.empty() ? nullptr : &steps.back();
  like.same_call = before != nullptr && before->call == step.call;
  like.failed_again = before != nullptr && before->failed && step.failed;
  like.echo = like.same_call && like.failed_again;
  compare_with_window(steps, step, weights, like);
  // It follows something new; or does so again and again, and half of what lies between is new.
  const auto match = std::find_if(steps.rbegin(), steps.rend(), [&](const Step& other) {
    return other.call == step.call && other.same_result(step);
  });
  like.seen = match != steps.rend();
  like.between = like.seen ? match - steps.rbegin() : 0;
  // A pass over many things: it was new then, and since then nothing was repeated.
  const auto is_repeated = [](const Step& other) { return other.weight > 0; };
  like.revisit = like.seen ? like.between >= weights.pass_min && !match->again &&
                                 std::none_of(steps.rbegin(), match, is_repeated)
                           : std::none_of(steps.begin(), steps.end(), is_repeated);
  const auto new_ones = std::count_if(steps.rbegin(), steps.rbegin() + like.between,
                                      [](const Step& other) { return !other.again; });
  like.follows_new =
      like.between > 0 && (!before->again || (2 * new_ones >= like.between && like.equal > 1));
  like.alike = like.equal == 0 && like.similar == 0 && like.same_call && !like.failed_again &&
               step.exit_code != 0 && before->exit_code == step.exit_code;
  return like;
}

/// Returns the amount that a step adds to the score.
double score_of(const Likeness& like, const RepetitionWeights& weights) {
  if (like.equal > 0) {
    const double evidence = like.equal > 1 ? weights.repeated_more : weights.repeated_once;
    if (!like.follows_new) return evidence;
    return evidence * (like.equal > 1 ? weights.tested_often : weights.tested_again);
  }
  if (like.same_call && like.failed_again) return weights.repeated_once;
  if (like.similar > 0) return like.similar > 1 ? weights.nearly_more : weights.nearly_once;
  return like.alike ? weights.failed_alike : 0;
}

/// Keeps a step as the newest one; older ones give way, or lose the samples of their arguments.
void keep_step(std::vector<Step>& steps, Step step) {
  if (steps.size() == Repetition::steps_max) steps.erase(steps.begin());
  if (steps.size() >= Repetition::compared_max) {
    Step& old = steps[steps.size() - Repetition::compared_max];
    old.shingles = {};
    old.fields = {};
  }
  if (steps.size() == steps.capacity())
    steps.reserve(std::min(2 * steps.size() + 1, Repetition::steps_max));
  steps.push_back(std::move(step));
}

/// A finished call is work between turns. As the first one after a compaction it shows whether the
/// agent begins as before.
void follow_turns(TurnRepetition& turns, bool is_new, Seq seq) {
  turns.requests = turns.failures = {};
  if (!std::exchange(turns.begins, false)) return;
  if (is_new) turns.laps = {};
  turns.laps.extend(seq);
}

/// Counts a call that looked once more at what runs, and saw nothing new. Returns true unless too
/// many came too fast.
bool is_wait(Repetition& repetition, bool looks_again, Seq seq) {
  if (!looks_again) {
    repetition.looks = {};
    repetition.hurried = 0;
    return false;
  }
  repetition.looks.extend(seq);
  repetition.hurried = repetition.is_hurried ? repetition.hurried + 1 : 0;
  return repetition.hurried < hurried_max;
}

}  // namespace

void Repetition::fold_step(Step step, ToolUse use, bool malformed, const Policy& policy) {
  if (step.blind && !step.informative) return;  // neither what was asked nor what came is known
  const int visits = known_steps.visit(combined(step.call, step.result));
  const bool is_new = visits == 0;
  follow_turns(turns, is_new, step.seq);
  if (is_wait(*this, use == ToolUse::poll && !is_new, step.seq)) return;  // on purpose
  const Step* before = steps.empty() ? nullptr : &steps.back();
  const auto& weights = policy.weights;
  const auto like = likeness_of(steps, step, weights);
  // A second pass over many things, after all of them were seen, is work: it proves nothing. A
  // failure that comes again does not belong to such a pass.
  const bool failing = step.failed || step.exit_code != 0;
  const bool is_second_pass = visits == 1 && like.revisit && step.informative && !failing;
  const bool same_call = like.same_call;
  const bool failed_again = like.failed_again;
  echo = like.echo;
  evidence = score_of(like, weights);

  step.again = like.seen || evidence > 0;
  if (step.again && !is_second_pass && loop.count == 0) {
    const auto lap = like.seen ? like.between : 0;
    loop = {.count = static_cast<std::int32_t>(lap) + 1, .first = (steps.rbegin() + lap)->seq};
  }
  if (like.seen && !is_second_pass)
    step.weight = like.follows_new ? static_cast<float>(weights.tested_again) : 1.0F;
  if (use == ToolUse::paging) {
    evidence /= 2;
    step.weight /= 2;
  }
  if (like.alike) {
    score = std::max(score, std::min(score + evidence, failed_alike_max));
  } else {
    score = evidence > 0 ? score + evidence : std::max(std::min(score, 0.0), score - weights.decay);
  }

  if (step.again && (!is_second_pass || loop.count > 0)) {
    loop.extend(step.seq);
  } else if (score <= 0) {
    loop = {};
  }

  const auto follow = [&](Streak& streak, bool goes_on, bool begins) {
    if (goes_on) {
      if (streak.count == 0) streak.restart(before->seq);
      streak.extend(step.seq);
    } else if (begins) {
      streak.restart(step.seq);
    } else {
      streak = {};
    }
  };
  follow(same_result, same_call && before->same_result(step), true);
  follow(same_error, same_call && failed_again, step.failed);
  follow(thrash, failed_again && before->tool == step.tool && before->same_result(step),
         step.failed);
  const bool refused = malformed && step.failed;
  follow(unparsed, refused && unparsed.count > 0, refused);
  if (is_new) {
    barren = {};
  } else if (!is_second_pass) {
    barren.extend(step.seq);
  }
  fold_graded(step, visits, is_second_pass, weights);
  rounds.add(combined(step.call, step.result), step.seq, 2, Cycle::period_max);
  messages = {};
  before_answer = {};

  // Otherwise it would confirm the suspicion that it is.
  stepped = !like.alike && !is_second_pass;
  novel = is_new && evidence == 0;
  if (evidence > 0) alarm.recovered = 0;
  if (novel && !step.failed) {
    recover(1, policy);
    states.clear();
    graced = false;
  }

  keep_step(steps, std::move(step));
}

/// Something happened between two messages.
void Repetition::quieten() {
  messages.newest = 0;
  messages.same = {};
  messages.any = {};
  before_answer = messages;
  compactions = {};
}

void Repetition::fold_bare_state(Seq seq, const Policy& policy) {
  novel = false;
  state_seq = seq;
  quieten();
  recover(1, policy);
}

void Repetition::fold_state(const Marks& marks, Seq seq, const Policy& policy) {
  quieten();
  novel = known_states.add(marks.identity);
  stepped = marks.informative;
  // `{"tool": "bash"}` comes back in good work too.
  if (marks.informative) states.add(marks.identity, seq, 1, 4);
  if (!novel) return;
  state_seq = seq;
  begin_anew();
  score = -policy.weights.credit;
  recover(2, policy);
}

void Repetition::fold_message(std::string_view role, const Marks* marks, Seq seq,
                              const Policy& policy) {
  const auto speaker = speaker_of(role);
  if (speaker == Speaker::hook) return;
  novel = false;
  compactions = {};
  // Equal lines of a program's output are no repetition of a model.
  const bool is_printed = marks != nullptr && marks->printed;
  if (speaker != Speaker::agent || (is_printed && !is_model(role))) {
    quieten();
    return;
  }
  // A whole answer without repeated text ends the count.
  const bool has_repeats = messages.text_repeats.count != before_answer.text_repeats.count ||
                           (marks != nullptr && marks->text_repeats > 0);
  if (!has_repeats) {
    messages.text_repeats = {};
    if (alarm.pattern == Pattern::repeated_text) recover(1, policy);
  }
  before_answer = messages;
  const auto digest = marks != nullptr ? marks->identity : 0;
  if (digest != 0 && digest == messages.newest) {
    messages.same.extend(seq);
  } else {
    messages.same.restart(seq);
  }
  messages.newest = digest;
  messages.any.extend(seq);
  // The text of a program counts only where all of it is the same.
  if (is_printed || (marks != nullptr && !marks->informative && !is_model(role))) {
    messages.any = {};
  } else if (marks != nullptr) {
    fold_prose(*marks, seq, policy.weights);
  }
  for (int hit = 0; marks != nullptr && hit < marks->text_repeats; ++hit)
    messages.text_repeats.extend(seq);
}

void Repetition::fold_text_repetition(Seq seq) {
  novel = false;
  messages.text_repeats.extend(seq);
}

void Repetition::fold_compaction(Seq seq) {
  novel = false;
  turns.begins = true;
  compactions.extend(seq);
  if (std::exchange(graced, true)) return;
  forget_rounds();  // files are read again
}

void Repetition::fold_user_input(Seq seq) {
  state_seq = seq;
  begin_anew();
  score = 0;
  states.clear();
  alarm = {};
  novel = true;
}

void Repetition::forget_rounds() {
  steps.clear();
  score = std::min(score, 0.0);
  evidence = 0;
  same_result = same_error = thrash = unparsed = loop = rephrased = circling = {};
  rounds.clear();
}

void Repetition::begin_anew() {
  forget_rounds();
  compactions = barren = {};
  failure = {};
  prose = {};
  messages = before_answer = {};
  graced = false;
  // A prompt does not mend what makes each turn fail.
  turns = {.failures = turns.failures, .failure = turns.failure};
  looks = {};
}

void Repetition::recover(std::int32_t by, const Policy& policy) {
  if (alarm.pattern == Pattern::none) return;
  alarm.recovered += by;
  if (alarm.recovered < 2 * policy.recovery_changes) return;
  alarm = {};
  forget_rounds();  // the episode is over
  messages = before_answer = {};
  score = 0;
}

Finding Repetition::finding(const Policy& policy) const {
  const Seq newest = steps.empty() ? 0 : steps.back().seq;
  Finding found;
  // Named after the first in this order that is seen at all, as bad as the worst of them is.
  const auto look = [&](Pattern pattern, double count, Seq first, Seq last) {
    const auto next = judged(pattern, count, first, last, policy);
    if (next.level == Level::none) return;
    const auto level = std::max(found.level, next.level);
    if (found.pattern == Pattern::none) found = next;
    found.level = level;
  };
  const auto streak = [&](Pattern pattern, const Streak& of) {
    look(pattern, of.count, of.first, newest);
  };
  streak(Pattern::invalid_calls, unparsed);
  streak(Pattern::same_call, same_result);
  streak(Pattern::same_failing_call, same_error);
  if (const auto* cycle = rounds.longest())
    look(Pattern::cycle_of_calls, cycle->laps, cycle->first, newest);
  streak(Pattern::same_error, thrash);
  if (const auto* cycle = states.longest()) {
    look(Pattern::recurring_states, cycle->laps, cycle->first, states.recent.back().second);
  }
  if (!steps.empty()) {
    const auto begin =
        std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.again; });
    const Seq first = begin == steps.end() ? 0 : begin->seq;
    look(Pattern::repeated_calls, score, first, newest);
    double repeated = 0;
    int in_a_row = 0;
    for (const auto& step : steps) {
      repeated += step.weight;
      if (step.weight > static_cast<float>(policy.weights.tested_again)) ++in_a_row;
    }
    if (steps.back().again && repeated >= policy.repeated_of_20 && in_a_row >= 2 &&
        found.level != Level::stuck) {
      if (found.pattern == Pattern::none) {
        found = {
            .pattern = Pattern::repeated_calls, .count = repeated, .first = first, .last = newest};
      }
      found.level = Level::stuck;
    }
  }
  streak(Pattern::nothing_new, barren);
  const auto& barren_bounds = policy.patterns[static_cast<std::size_t>(Pattern::nothing_new)];
  if (found.pattern == Pattern::none && circling.count >= barren_bounds.suspect) {
    found = {.pattern = Pattern::nothing_new,
             .level = Level::suspect,
             .count = static_cast<double>(circling.count),
             .first = circling.first,
             .last = newest,
             .graded = true};
  }
  // Without calls and results it is not known whether they were equal.
  if (found.level == Level::stuck && !steps.empty() && steps.back().blind) {
    found.level = Level::suspect;
  }
  found.conclusive = steps.empty() || !steps.back().blind;
  streak(Pattern::repeated_text, messages.text_repeats);
  look(Pattern::same_message, messages.same.count, messages.same.first, 0);
  look(Pattern::messages_only, messages.any.count, messages.any.first, 0);
  look(Pattern::repeated_compactions, compactions.count, compactions.first, 0);
  const auto& turn = turns.longest();
  look(Pattern::repeated_turns, turn.count, turn.first, 0);
  streak(Pattern::rephrased_calls, rephrased);
  streak(Pattern::same_failure, failure.times);
  look(Pattern::restated_text, prose.restated.count, prose.restated.first, 0);
  found.graded = found.graded || is_graded(found.pattern);
  if (alarm.pattern != Pattern::none) {
    if (found.pattern != alarm.pattern) found.count = alarm.count;
    found.pattern = alarm.pattern;
    found.level = Level::stuck;
    found.first = alarm.first;
    found.last = std::max(found.last, alarm.last);
  }
  return found;
}

void Repetition::confirm(const Finding& found) {
  if (alarm.pattern != Pattern::none) return;
  alarm = {
      .pattern = found.pattern, .first = found.first, .last = found.last, .count = found.count};
}

}  // namespace watchdog
