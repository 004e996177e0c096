// Counts signs that are too weak for a loop: messages that say little new, requests in other words,
// slow circles, and failures that work does not change. New things lower the counts.
// `is_graded` keeps a session with one of them from being confirmed by counting.
// REPETITION.md has the reasons.
#include <algorithm>

#include "watchdog/repetition.h"

namespace watchdog {
namespace {

/// A shorter sample (of some 20 words) says nothing about a message.
constexpr std::size_t prose_sample_min = 6;

}  // namespace

double ProseRepetition::add(const std::vector<std::uint32_t>& sample) {
  std::size_t known = 0;
  const auto known_before = words.size();
  std::vector<std::uint16_t> fresh;
  for (const auto digest : sample) {
    const auto part = static_cast<std::uint16_t>(digest);
    if (std::find(words.begin(), words.end(), part) == words.end()) {
      fresh.push_back(part);
    } else {
      ++known;
    }
  }
  if (known_before < words_max && words.capacity() < words_max &&
      known_before + fresh.size() > words.capacity())
    words.reserve(std::min(words_max, std::max(2 * words.capacity(), known_before + fresh.size())));
  for (const auto part : fresh) {
    if (words.size() < words_max) {
      words.push_back(part);
    } else {
      words[at++] = part;  // 256 is 0 again
    }
  }
  return sample.empty() ? 0 : static_cast<double>(known) / static_cast<double>(sample.size());
}

/// Signs that are too weak to count as a loop: paraphrased requests, slow circles, and failures
/// that no work between them changes.
void Repetition::fold_graded(const Step& step, int visits, bool is_second_pass,
                             const RepetitionWeights& weights) {
  if (visits == 0) {
    circling.shorten(weights.new_round_subtracts);
  } else if (visits > 1 && !is_second_pass) {
    circling.extend(step.seq);
  }

  if (step.worded && !step.shingles.empty()) {
    const auto begin = steps.size() - std::min(steps.size(), compared_max);
    bool same = false;
    bool alike = false;
    for (auto at = begin; at < steps.size(); ++at) {
      const Step& other = steps[at];
      same |= other.call == step.call;
      alike |= other.worded && other.tool == step.tool && other.call != step.call &&
               !other.shingles.empty() && !other_target(other, step) &&
               similarity(other.shingles, step.shingles) >= weights.rephrased_min;
    }
    if (alike) {
      rephrased.extend(step.seq);
    } else if (!same) {
      rephrased.shorten(1);
    }
  }

  const auto call = static_cast<std::uint32_t>(step.call >> 32U);
  const auto result = static_cast<std::uint32_t>(step.result >> 32U);
  const bool failing = (step.failed || step.exit_code != 0) && !step.blind;
  ++failure.since;
  if (failing && failure.call == call && failure.result == result) {
    failure.times.extend(step.seq);
    failure.since = 0;
  } else if (failure.call == call) {  // it passes, or fails in another way
    failure = {};
    if (failing) failure = {.call = call, .result = result, .times = {1, step.seq}};
  } else if (failing && (failure.times.count < 2 || failure.since > weights.failure_rounds)) {
    failure = {.call = call, .result = result, .times = {1, step.seq}};
  }
}

/// A message with new text is work, even if nothing is done besides.
void Repetition::fold_prose(const Marks& marks, Seq seq, const RepetitionWeights& weights) {
  prose.before = prose.restated;
  if (marks.shingles.size() < prose_sample_min) return;
  const auto known = prose.add(marks.shingles);
  if (known >= weights.restated_share) {
    prose.restated.extend(seq);
    return;
  }
  messages.any = {};
  if (known < weights.new_share) prose.restated.shorten(1);
}

}  // namespace watchdog
