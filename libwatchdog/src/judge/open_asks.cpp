#include "judge/open_asks.h"

#include <algorithm>

#include "facts/digest.h"
#include "privacy/content.h"

namespace watchdog {
namespace {

constexpr std::size_t subject_chars_max = 64;
constexpr std::size_t why_chars_max = 200;

std::uint64_t digest_unless_empty(std::string_view text) {
  return text.empty() ? 0 : digest_of(text);
}

void show(Notes& notes, const OpenAsk& ask) {
  notes.waiting_for = ask.waits_for;
  notes.wait_why = ask.why;
  notes.wait_call = ask.open_call;
  notes.wait_until.reset();
  notes.wait_provider.clear();
  notes.wait_seq = ask.seq;
  notes.wait_since = ask.since;
}

/// A notice repeats what an agent asks, without the name of the question. An answer to the question
/// must end the wait, so the question stays.
bool is_repeated(const Notes& notes, const Report& wait) {
  if (!wait.event_id.empty() || !wait.call_id.empty()) return false;
  if (first_characters(wait.content, why_chars_max) != notes.wait_why) return false;
  return notes.wait_seq != 0 && notes.waiting_for == wait.name &&
         std::ranges::any_of(*notes.asks,
                             [&](const OpenAsk& ask) { return ask.seq == notes.wait_seq; });
}

}  // namespace

void begin_wait(Notes& notes, const Event& wait, Seq open_call) {
  if (is_repeated(notes, wait.report)) return;
  notes.waiting_for = first_characters(wait.report.name, subject_chars_max);
  notes.wait_why = first_characters(wait.report.content, why_chars_max);
  notes.wait_call = open_call;
  notes.wait_until = wait.report.until;
  notes.wait_provider = first_characters(wait.report.provider, subject_chars_max);
  notes.wait_seq = wait.seq;
  notes.wait_since = wait.tick;
  OpenAsk ask{.id = digest_unless_empty(wait.report.event_id),
              .call = digest_unless_empty(wait.report.call_id),
              .open_call = notes.wait_call,
              .seq = notes.wait_seq,
              .since = notes.wait_since,
              .waits_for = notes.waiting_for,
              .why = notes.wait_why};
  if (ask.id == 0 && ask.call == 0) return;
  auto& asks = notes.asks.edit();
  if (asks.size() == open_asks_max) asks.erase(asks.begin());
  asks.push_back(std::move(ask));
}

bool waits_for_call(const History& history) {
  const auto call = history.notes->wait_call;
  return history.lifecycle == Lifecycle::waiting && call != 0 &&
         std::any_of(history.open_calls->begin(), history.open_calls->end(),
                     [&](const OpenCall& open) { return open.seq == call; });
}

Seq call_waited_for(const History& history, const Report& wait) {
  if (wait.call_id.empty()) {
    const bool again = waits_for_call(history) && history.notes->waiting_for == wait.name;
    return again ? history.notes->wait_call : 0;
  }
  const auto id = first_characters(wait.call_id, subject_chars_max);
  const auto& calls = *history.open_calls;
  const auto found = std::find_if(calls.begin(), calls.end(),
                                  [&](const OpenCall& call) { return call.call_id == id; });
  return found == calls.end() ? 0 : found->seq;
}

bool answer_ask(Notes& notes, std::string_view id) {
  if (notes.asks->empty()) return true;
  const auto digest = digest_of(id);
  auto& asks = notes.asks.edit();
  const auto is_shown = [&](const OpenAsk& ask) { return ask.seq == notes.wait_seq; };
  const bool showed_ask = std::ranges::any_of(asks, is_shown);
  std::erase_if(asks, [&](const OpenAsk& ask) { return ask.id == digest || ask.call == digest; });
  if (!showed_ask || std::ranges::any_of(asks, is_shown))
    return false;  // it waits for something else
  if (asks.empty()) return true;
  show(notes, asks.back());
  return false;
}

}  // namespace watchdog
