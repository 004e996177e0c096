/// \file
/// The parts of a history as JSON arrays: each type names its members once, in `each_part`, and
/// both writing and reading go through that.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "codec/fields.h"
#include "text/json_writer.h"
#include "watchdog/history.h"

namespace watchdog {

// clang-format off
template <class V> void each_part(CallMark& x, V&& v) { v(x.call, x.tool, x.round, x.use, x.malformed, x.blind, x.twin); }
template <class V> void each_part(OpenCall& x, V&& v) { v(x.name, x.call_id, x.seq, x.since, x.iteration, x.mark, x.passed, x.notes); }
template <class V> void each_part(CallNotes& x, V&& v) { v(x.deadline, x.turn, x.accepted, x.said); v.later(x.waited); v.later(x.seen); v.later(x.command); }
template <class V> void each_part(OpenTurn& x, V&& v) { v(x.id, x.parent, x.depth, x.since, x.at, x.calls, x.aborting); }
template <class V> void each_part(Marks::Field& x, V&& v) { v(x.name, x.value, x.atomic); }
template <class V> void each_part(Step& x, V&& v) {
  v(x.seq, x.call, x.result, x.exact, x.tool, x.failed, x.informative, x.blind, x.again, x.weight, x.shingles, x.fields);
  v.later(x.exit_code, x.worded);
}
template <class V> void each_part(Streak& x, V&& v) { v(x.count, x.first); }
template <class V> void each_part(Cycle& x, V&& v) { v(x.lap, x.at, x.missed, x.laps, x.first); }
template <class V> void each_part(Cycles& x, V&& v) { v(x.recent, x.by_period); }
template <class V> void each_part(Known& x, V&& v) { v(x.digests, x.at); }
template <class V> void each_part(Round& x, V&& v) { v(x.number, x.open, x.finished, x.sum, x.malformed, x.unreachable, x.use, x.calls); }
template <class V> void each_part(MessageRepetition& x, V&& v) { v(x.newest, x.same, x.any, x.text_repeats); }
template <class V> void each_part(ProseRepetition& x, V&& v) { v(x.words, x.at, x.restated, x.before); }
template <class V> void each_part(SameFailure& x, V&& v) { v(x.call, x.result, x.since, x.times); }
template <class V> void each_part(TurnRepetition& x, V&& v) { v(x.stops, x.requests, x.failures, x.failure, x.laps, x.begins); }
template <class V> void each_part(Alarm& x, V&& v) { v(x.pattern, x.first, x.last, x.count, x.recovered); }
template <class V> void each_part(Repetition& x, V&& v) {
  v(x.steps, x.score, x.evidence, x.echo, x.same_result, x.same_error, x.thrash, x.unparsed, x.compactions, x.barren,
    x.rounds, x.states, x.stepped, x.messages, x.before_answer, x.known_steps, x.known_states, x.round, x.graced, x.novel,
    x.state_seq, x.alarm, x.tool);
  v.later(x.loop, x.circling, x.rephrased, x.failure, x.prose, x.turns, x.looks, x.hurried, x.finished_at);
}
template <class V> void each_part(Pace::Samples& x, V&& v) { v(x.kind, x.count, x.mean, x.deviations); }
template <class V> void each_part(Pace& x, V&& v) { v(x.samples); }
template <class V> void each_part(Opinions& x, V&& v) { v(x.newest, x.looping, x.blocked, x.self, x.seq); }
template <class V> void each_part(NewestGap& x, V&& v) { v(x.from, x.to, x.longest, x.count); }
template <class V> void each_part(Absence& x, V&& v) { v(x.back, x.gap); }
template <class V> void each_part(Evidence& x, V&& v) { v(x.state, x.done, x.total, x.left); }
template <class V> void each_part(ServerNote& x, V&& v) { v(x.request, x.evidence, x.why, x.seq, x.since); }
template <class V> void each_part(OpenAsk& x, V&& v) { v(x.id, x.call, x.open_call, x.seq, x.since, x.waits_for, x.why); }
template <class V> void each_part(RecentCall& x, V&& v) { v(x.name, x.failed); }
template <class V> void each_part(SourceNote& x, V&& v) { v(x.origin, x.reports, x.first, x.last); v.later(x.told); }
template <class V> void each_part(Suspicion& x, V&& v) { v(x.seq, x.further); }
template <class V> void each_part(PlanItems& x, V&& v) { v(x.open, x.all); }
template <class V> void each_part(LooseEnds& x, V&& v) { v(x.plan, x.tasks_over, x.promises, x.answer_end); }
// clang-format on

struct PartWriter {
  JsonWriter& out;

  template <class... Parts>
  void operator()(Parts&... parts) {
    (put(parts), ...);
  }
  /// Parts that snapshots of older programs end without.
  template <class... Parts>
  void later(Parts&... parts) {
    (put(parts), ...);
  }

  template <class T>
  void put(T& part) {
    if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, bool> ||
                  std::is_floating_point_v<T>) {
      out.value(part);
    } else if constexpr (std::is_same_v<T, PackedText>) {
      out.value(std::string_view(part));
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      out.value(static_cast<std::int64_t>(part));
    } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      out.value(static_cast<std::int64_t>(part));
    } else if constexpr (std::is_same_v<T, Instant> || std::is_same_v<T, WallTime>) {
      out.value(static_cast<std::int64_t>(part.time_since_epoch().count()));
    } else if constexpr (std::is_same_v<T, Millis>) {
      out.value(static_cast<std::int64_t>(part.count()));
    } else {
      out.open_array();
      put_members(part);
      out.close_array();
    }
  }

 private:
  template <class T>
  void put_members(std::vector<T>& part) {
    for (auto& item : part) put(item);
  }
  template <class T, std::size_t n>
  void put_members(std::array<T, n>& part) {
    for (auto& item : part) put(item);
  }
  template <class T>
  void put_members(Packed<T>& part) {
    for (auto& item : part) put(item);
  }
  void put_members(SourceNotes& part) {
    for (auto note : part) put(note);
  }
  void put_members(CallIteration& part) {
    if (part.number != CallIteration::none) put(part.number);
  }
  template <class A, class B>
  void put_members(std::pair<A, B>& part) {
    put(part.first);
    put(part.second);
  }
  template <class T>
  void put_members(Boxed<T>& part) {
    if (part.has()) each_part(part.edit(), *this);
  }
  template <class T>
  void put_members(std::optional<T>& part) {
    if (part) put(*part);
  }
  template <class T>
  void put_members(T& part) {
    each_part(part, *this);
  }
};

/// The range of a number in a history.
enum class Range : std::uint8_t {
  counted,  ///< It is counted on from there, and must not overflow: no session gets that far.
  any       ///< It is only compared, or bounded where it is counted: all that its type can hold.
};

/// Reads a number of a snapshot. Throws if it is out of range. A fold writes only numbers within
/// it: otherwise a session would lose its snapshot.
template <class Number>
Number number_in(const nlohmann::json& value, Range range = Range::counted) {
  if constexpr (std::is_floating_point_v<Number>) {
    constexpr double max = 9'007'199'254'740'992.0;  // 2^53
    const auto number = value.get<double>();
    if (!(number >= -max && number <= max)) throw std::out_of_range("a number is out of range");
    return static_cast<Number>(number);
  } else {
    if (!value.is_number_integer()) throw std::out_of_range("a number is not an integer");
    const auto number = value.get<std::int64_t>();
    if constexpr (!std::is_unsigned_v<Number>) {  // a digest is any number
      constexpr std::int64_t counted_max = std::int64_t{1} << (sizeof(Number) < 8 ? 30U : 53U);
      using Limits = std::numeric_limits<Number>;
      const auto min = range == Range::any ? std::int64_t{Limits::min()} : -counted_max;
      const auto max = range == Range::any ? std::int64_t{Limits::max()} : counted_max;
      if (number < min || number > max) throw std::out_of_range("a number is out of range");
    }
    return static_cast<Number>(number);
  }
}

/// Throws nlohmann's exceptions where the text is of another shape.
struct PartReader {
  const nlohmann::json& from;
  std::size_t at = 0;

  template <class... Parts>
  void operator()(Parts&... parts) {
    (read(from.at(at++), parts), ...);
  }
  /// Parts that snapshots of older programs end without: those stay as they are.
  template <class... Parts>
  void later(Parts&... parts) {
    ((at < from.size() ? read(from.at(at++), parts) : void()), ...);
  }

  template <class T>
  static void read(const nlohmann::json& value, T& part) {
    if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, bool>) {
      part = value.get<T>();
    } else if constexpr (std::is_same_v<T, PackedText>) {
      part = value.get_ref<const std::string&>();
    } else if constexpr (std::is_enum_v<T>) {
      const auto number = value.get<std::size_t>();
      if (number >= std::size(Names<T>::all)) throw std::out_of_range("no such enumerator");
      part = static_cast<T>(number);
    } else if constexpr (std::is_arithmetic_v<T>) {
      part = number_in<T>(value);
    } else if constexpr (std::is_same_v<T, Instant> || std::is_same_v<T, WallTime>) {
      part = T{Millis{number_in<std::int64_t>(value)}};
    } else if constexpr (std::is_same_v<T, Millis>) {
      part = Millis{number_in<std::int64_t>(value)};
    } else {
      read_members(value, part);
    }
  }

 private:
  template <class T>
  static void read_members(const nlohmann::json& value, std::vector<T>& part) {
    for (const auto& item : value) read(item, part.emplace_back());
  }
  template <class T, std::size_t n>
  static void read_members(const nlohmann::json& value, std::array<T, n>& part) {
    for (std::size_t i = 0; i < n; ++i) read(value.at(i), part[i]);
  }
  template <class T>
  static void read_members(const nlohmann::json& value, Packed<T>& part) {
    std::vector<T> items;
    read_members(value, items);
    part = items;
  }
  static void read_members(const nlohmann::json& value, SourceNotes& part) {
    std::vector<SourceNote> notes;
    read_members(value, notes);
    if (notes.size() > std::size(Names<ReportOrigin>::all))
      throw std::out_of_range("there are more sources than origins");
    part.set(notes);
  }
  static void read_members(const nlohmann::json& value, CallIteration& part) {
    if (!value.empty()) part.number = number_in<std::int64_t>(value.at(0), Range::any);
  }
  template <class A, class B>
  static void read_members(const nlohmann::json& value, std::pair<A, B>& part) {
    read(value.at(0), part.first);
    read(value.at(1), part.second);
  }
  template <class T>
  static void read_members(const nlohmann::json& value, Boxed<T>& part) {
    if (!value.empty()) read_members(value, part.edit());
  }
  template <class T>
  static void read_members(const nlohmann::json& value, std::optional<T>& part) {
    if (value.empty()) return;
    if constexpr (std::is_same_v<T, Millis>) {
      read(value.at(0), part.emplace());
    } else {
      part = number_in<T>(value.at(0), Range::any);  // an iteration: the agent's own number
    }
  }
  template <class T>
  static void read_members(const nlohmann::json& value, T& part) {
    each_part(part, PartReader{value});
  }
};

}  // namespace watchdog
