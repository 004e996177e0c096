#include <algorithm>

#include "text/figures.h"
#include "watchdog/health.h"
#include "watchdog/history.h"

namespace watchdog {
namespace {

/// Of several requests the greatest counts.
int standing(ServerState state) noexcept {
  switch (state) {
    case ServerState::writing:
      return 5;
    case ServerState::reading:
      return 4;
    case ServerState::loading:
    case ServerState::queued:
      return 3;
    case ServerState::working:
      return 2;
    case ServerState::hung:
      return 1;
    default:
      return 0;
  }
}

std::string roughly(Millis time) {
  const auto seconds = (time.count() + 999) / 1'000;
  if (seconds < 100) return std::to_string(seconds) + " s";
  if (seconds < 7'200) return std::to_string((seconds + 30) / 60) + " min";
  return std::to_string((seconds + 1'800) / 3'600) + " h";
}

std::string tokens_of(const Evidence& evidence) {
  std::string text;
  if (evidence.total > 0) {
    text = ": " + grouped(evidence.done) + " of " + grouped(evidence.total) + " tokens";
  } else if (evidence.done > 0) {
    text = ": " + counted_as(evidence.done, "token") + " so far";
  }
  if (evidence.left) {
    text += (text.empty() ? ": about " : ", about ") + roughly(*evidence.left) + " left";
  }
  return text;
}

}  // namespace

Evidence bounded(const Evidence& evidence) noexcept {
  constexpr std::int64_t tokens_max = 1'000'000'000'000;
  constexpr Millis week{604'800'000};
  auto kept = evidence;
  kept.done = std::clamp<std::int64_t>(kept.done, 0, tokens_max);
  kept.total = std::clamp<std::int64_t>(kept.total, 0, tokens_max);
  if (kept.left) kept.left = std::clamp(*kept.left, Millis{0}, week);
  return kept;
}

const ServerNote* server_note(const History& history) noexcept {
  const auto& requests = *history.notes->server;
  const auto best = std::max_element(requests.begin(), requests.end(), [](auto& a, auto& b) {
    return standing(a.evidence.state) < standing(b.evidence.state);
  });
  return best == requests.end() ? nullptr : &*best;
}

std::string server_in_words(const ServerNote& note) {
  const auto why = note.why.empty() ? std::string() : ": " + note.why;
  switch (note.evidence.state) {
    case ServerState::loading:
      return "is loading the model";
    case ServerState::queued:
      return "has queued the request" + why;
    case ServerState::reading:
      return "reads the prompt" + tokens_of(note.evidence);
    case ServerState::writing:
      return "writes the answer" + tokens_of(note.evidence);
    case ServerState::working:
      return "is busy; its progress is not known" + why;
    case ServerState::quiet:
      return "shows no activity" + why;
    case ServerState::hung:
      return "hangs" + why;
    case ServerState::restarted:
      return "was restarted" + why;
    case ServerState::gone:
      return "is gone" + why;
    case ServerState::unknown:
    case ServerState::over:
      break;
  }
  return "";
}

std::string server_in_brief(const Evidence& evidence) {
  if (evidence.state == ServerState::unknown || evidence.state == ServerState::over) return "";
  std::string text(name_of(evidence.state));
  if (evidence.done > 0 || evidence.total > 0) text += " " + grouped(evidence.done);
  if (evidence.total > 0) text += " / " + grouped(evidence.total);
  if (evidence.left) text += ", ~" + roughly(*evidence.left);
  return text;
}

}  // namespace watchdog
