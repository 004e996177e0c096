// Writes the object with large limits first and again with smaller ones until it fits. So names and
// lists get shorter, and the JSON stays valid. The smallest limits fit in every case. Calls and
// steps keep the newest members, counters and child processes their first ones. Two counters whose
// names are the same when cut are written once.
#include "judge/situation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "privacy/content.h"
#include "text/json_writer.h"

namespace watchdog {
namespace {

/// Size limits: characters of each name, members of each list.
struct SituationSize {
  std::size_t characters = 0;
  std::size_t members = 0;
};
/// The last one fits with the longest of everything: a character needs 6 bytes at most.
constexpr std::array<SituationSize, 4> extents{{{64, 32}, {24, 32}, {8, 16}, {2, 8}}};

class SituationWriter {
 public:
  SituationWriter(const Case& judged, Instant now, SituationSize extent)
      : history_(judged.history), policy_(*judged.policy), now_(now), extent_(extent) {}

  std::string write(const SituationContext& around) {
    out_.open_object();
    write_calls();
    out_.key("lastEvents").open_array();
    for (const auto seq : around.events) out_.value(seq);
    out_.close_array();
    write_repetition();
    write_pace();
    out_.field("silenceMs", silence_bound(history_, policy_).count());
    out_.field("loopHeartbeats", history_.loop_beats_since_change);
    out_.field("confirmations", confirmations(history_, policy_));
    write_opinions();
    write_counters();
    write_process(around.process);
    return out_.close_object().finish();
  }

 private:
  /// The last members of a list, as many as are to be written.
  template <class T>
  [[nodiscard]] std::span<const T> newest(const std::vector<T>& list) const {
    return std::span(list).last(std::min(list.size(), extent_.members));
  }
  template <class T>
  [[nodiscard]] std::span<const T> first(const std::vector<T>& list) const {
    return std::span(list).first(std::min(list.size(), extent_.members));
  }
  [[nodiscard]] std::string_view cut(std::string_view text) const {
    return first_characters(text, extent_.characters);
  }
  /// Null where there is none.
  void text(std::string_view name, std::string_view value) {
    out_.key(name);
    value.empty() ? out_.value(nullptr) : out_.value(cut(value));
  }
  /// Milliseconds since then.
  void age(std::string_view name, Instant since) {
    out_.field(name, std::max(now_ - since, Millis{0}).count());
  }

  void write_calls() {
    out_.key("inFlight").open_array();
    for (const auto& call : newest(*history_.open_calls)) {
      out_.open_object().field("name", cut(call.name));
      text("callId", call.call_id);
      out_.field("seq", call.seq);
      age("ageMs", call.since);
      out_.key("deadlineMs");
      const auto deadline = call.notes->deadline.count();
      deadline > 0 ? out_.value(deadline) : out_.value(nullptr);
      out_.close_object();
    }
    out_.close_array();
  }

  void write_repetition() {
    out_.key("repeated");
    const auto& repetition = *history_.repetition;
    const auto found = history_.repetition.has() ? repetition.finding(policy_) : Finding{};
    if (found.level == Level::none || !is_repetition(found.pattern)) {
      out_.value(nullptr);
      return;
    }
    // A kept alarm shows its original count.
    const bool kept = repetition.alarm.pattern != Pattern::none;
    out_.open_object().field("pattern", name_of(found.pattern));
    out_.field("count", kept ? repetition.alarm.count : found.count);
    out_.field("first", found.first).field("last", found.last).field("score", repetition.score);
    out_.key("steps").open_array();
    for (const auto& step : newest(repetition.steps)) {
      out_.open_object().field("seq", step.seq).field("again", step.again).close_object();
    }
    out_.close_array().close_object();
  }

  void write_pace() {
    out_.key("pace");
    const bool asked = history_.said_something && history_.lifecycle == Lifecycle::running;
    if (!asked) {
      out_.value(nullptr);
      return;
    }
    const auto pace = pace_now(history_, policy_);
    out_.open_object();
    text("activity", pace.activity);
    age("sinceMs", pace.since);
    out_.key("usualMs");
    pace.bounds.own ? out_.value(pace.bounds.own->count()) : out_.value(nullptr);
    out_.field("slowMs", pace.bounds.slow.count());
    out_.key("suspectMs");
    pace.suspect_at == never ? out_.value(nullptr) : out_.value(pace.bounds.suspect.count());
    out_.field("phi", history_.pace->phi(pace.kind, now_ - pace.since, policy_)).close_object();
  }

  void write_opinions() {
    out_.key("opinions");
    const auto& opinions = history_.notes->opinions;
    if (opinions.seq == 0) {
      out_.value(nullptr);
      return;
    }
    out_.open_object().field("newest", name_of(opinions.newest));
    out_.field("looping", opinions.looping).field("blocked", opinions.blocked);
    out_.field("self", opinions.self).field("seq", opinions.seq).close_object();
  }

  void write_counters() {
    out_.key("counters").open_object();
    std::vector<std::string_view> written;
    for (const auto& [name, value] : first(*history_.counters)) {
      const auto shown = cut(name);
      const bool again = std::find(written.begin(), written.end(), shown) != written.end();
      if (again || !std::isfinite(value)) continue;
      written.push_back(shown);
      out_.field(shown, value);
    }
    out_.close_object().key("quietSinceMs");
    if (history_.last_rise == Instant{}) {
      out_.value(nullptr);
    } else {
      out_.value(std::max(now_ - history_.last_rise, Millis{0}).count());
    }
  }

  void write_what_it_does(const ProcessSample& process) {
    out_.field("state", std::string_view(&process.state, 1));
    out_.field("cpuMs", process.cpu.count());
    text("wchan", process.wchan);
  }

  void write_process(const std::optional<ProcessTree>& tree) {
    out_.key("process");
    if (!tree) {
      out_.value(nullptr);
      return;
    }
    out_.open_object().field("pid", tree->root.pid);
    write_what_it_does(tree->root);
    out_.field("threads", tree->root.threads).key("children").open_array();
    for (const auto& child : first(tree->children)) {
      out_.open_object().field("pid", child.pid).field("parent", child.parent);
      text("command", child.command);
      write_what_it_does(child);
      out_.close_object();
    }
    out_.close_array().close_object();
  }

  const History& history_;
  const Policy& policy_;
  Instant now_;
  SituationSize extent_;
  JsonWriter out_;
};

}  // namespace

std::string situation_of(const Case& judged, Instant now, const SituationContext& around) {
  std::string text;
  for (const auto extent : extents) {
    text = SituationWriter(judged, now, extent).write(around);
    if (text.size() <= situation_bytes_max) break;
  }
  return text;
}

}  // namespace watchdog
