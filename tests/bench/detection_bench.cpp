/// \file
/// What distinguishing loops from work costs: for each call, for each byte, and in memory.
#include <malloc.h>

#include <new>
#include <nlohmann/json.hpp>
#include <random>

#include "bench.h"
#include "codec/json.h"
#include "judge/text_loop.h"
#include "privacy/content.h"
#include "watchdog/health.h"
#include "watchdog/repetition.h"

namespace watchdog::bench {
namespace {

/// The bytes that are allocated now, with the word that malloc adds to each block.
std::int64_t bytes_allocated = 0;

void count(void* block, int sign) {
  bytes_allocated += sign * static_cast<std::int64_t>(malloc_usable_size(block) + sizeof(void*));
}

}  // namespace
}  // namespace watchdog::bench

// NOLINTBEGIN(cppcoreguidelines-no-malloc,misc-new-delete-overloads): they count what malloc does
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) watchdog::bench::give_up("out of memory");
  watchdog::bench::count(block, 1);
  return block;
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  watchdog::bench::count(block, -1);
  std::free(block);
}
void operator delete(void* block, std::size_t /*size*/) noexcept {
  operator delete(block);
}
// NOLINTEND(cppcoreguidelines-no-malloc,misc-new-delete-overloads)

namespace watchdog::bench {
namespace {

constexpr int pairs = 15;
constexpr std::size_t kilobyte = 1'000;

/// Texts that are the same in each run.
class Writer {
 public:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  std::string word() {
    std::string text;
    for (auto length = 2 + below(8); length > 0; --length) {
      text += static_cast<char>('a' + below(26));
    }
    return text;
  }
  std::string prose(std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) {
      text += known_[below(known_.size())];
      text += below(12) == 0 ? ".\n" : " ";
    }
    text.resize(bytes);
    return text;
  }
  /// A call as coding agents make them: a path, some choices, and a text of several lines.
  std::string arguments(std::size_t bytes) {
    nlohmann::json object{{"path", "src/" + word() + "/" + word() + ".cpp"},
                          {"line", below(2'000)},
                          {"replace_all", below(2) == 0},
                          {"options", {{"timeout", 30.5}, {"flags", {word(), word(), word()}}}},
                          {"text", ""}};
    const auto rest = object.dump().size();
    object["text"] = prose(bytes > rest ? bytes - rest : 0);
    return object.dump();
  }

 private:
  std::mt19937 random_{1};
  std::vector<std::string> known_ = [&] {
    std::vector<std::string> words(2'000);
    std::generate(words.begin(), words.end(), [&] { return word(); });
    return words;
  }();
};

/// As `Store::append` treats it.
Event event_of(Report report) {
  mark(report);
  seal(report, ContentLevel::preview);
  return {.session = 1, .report = std::move(report)};
}

/// A session that goes on.
struct Session {
  void fold(Event& event) {
    event.seq = ++seq;
    event.tick = now += Millis{500};
    std::vector<Transition> changes;
    judged.fold(event, changes);
  }

  Case judged;
  Seq seq = 0;
  Instant now{Millis{1'000'000}};
};

/// Calls of 1 KB with their results: new ones, repeated ones, and ones with other arguments and a
/// result seen before.
std::vector<Event> calls_of_all_sorts(Writer& writer, int calls) {
  struct Call {
    std::string tool;
    std::string arguments;
    std::string result;
  };
  std::vector<Event> events;
  std::vector<Call> made;
  for (int i = 0; i < calls; ++i) {
    Call call{writer.word(), writer.arguments(kilobyte), writer.prose(kilobyte)};
    const auto sort = made.empty() ? 0 : writer.below(3);
    if (sort != 0) {
      const Call& before =
          made[made.size() - 1 - writer.below(std::min<std::size_t>(8, made.size()))];
      if (sort == 1) {
        call = before;
      } else {
        auto other = nlohmann::json::parse(before.arguments);
        other["text"] = other["text"].get<std::string>() + " " + writer.word();
        call = {before.tool, other.dump(), before.result};
      }
    }
    events.push_back(
        event_of({.kind = ReportKind::tool_call, .name = call.tool, .content = call.arguments}));
    events.push_back(
        event_of({.kind = ReportKind::tool_result, .name = call.tool, .content = call.result}));
    made.push_back(std::move(call));
  }
  return events;
}

void parse(const std::string& json) {
  if (nlohmann::json::parse(json).is_null()) give_up("nothing to parse");
}

void fold_call(Table& table) {
  Writer writer;
  auto events = calls_of_all_sorts(writer, 1'000);
  const auto arguments = writer.arguments(kilobyte);
  Session session;
  const auto found = by_turns(
      pairs,
      [&] {
        return 1e6 / static_cast<double>(events.size()) * cpu_of([&] {
                 for (auto& event : events) session.fold(event);
               });
      },
      [&] {
        constexpr int times = 1'000;
        return 1e6 / times * cpu_of([&] {
                 for (int i = 0; i < times; ++i) parse(arguments);
               });
      });
  table.add("fold_call", "us", found.measured, at_most(2));
  table.add("fold_call_beside_parse", "us", found);
}

/// Nanoseconds a byte to mark a report, beside parsing `json`, which says the same.
void mark_report(Table& table, const std::string& name, Report report, const std::string& json,
                 std::optional<Limit> limit) {
  const int times = static_cast<int>(2'000'000 / json.size());
  const auto per_byte = 1e9 / (times * static_cast<double>(json.size()));
  const auto found = by_turns(
      pairs,
      [&] {
        return per_byte * cpu_of([&] {
                 for (int i = 0; i < times; ++i) {
                   report.detail = {};
                   mark(report);
                 }
               });
      },
      [&] {
        return per_byte * cpu_of([&] {
                 for (int i = 0; i < times; ++i) parse(json);
               });
      });
  table.add(name, "ns/B", found, limit);
}

void marks(Table& table) {
  Writer writer;
  for (const std::size_t bytes : {kilobyte, kilobyte * kilobyte}) {
    const bool small = bytes == kilobyte;
    const std::string size = small ? "_1kb" : "_1mb";
    const auto limit = at_most(small ? 2 : 2.5);
    const auto arguments = writer.arguments(bytes);
    const auto text = writer.prose(bytes);
    const auto quoted = nlohmann::json(text).dump();
    mark_report(table, "mark_call" + size, {.kind = ReportKind::tool_call, .content = arguments},
                arguments, limit);
    mark_report(table, "mark_result" + size, {.kind = ReportKind::tool_result, .content = text},
                quoted, limit);
    mark_report(table, "mark_state" + size,
                {.kind = ReportKind::state_change, .content = arguments}, arguments, limit);
    mark_report(table, "mark_message" + size, {.kind = ReportKind::message, .content = text},
                quoted, limit);
  }
}

void text_loop(Table& table) {
  constexpr std::size_t piece = 4;
  Writer writer;
  const auto text = writer.prose(kilobyte * kilobyte);
  const auto quoted = nlohmann::json(text).dump();
  const double per_byte = 1e9 / static_cast<double>(text.size());
  TextLoop loop;
  const auto found = by_turns(
      pairs,
      [&] {
        return per_byte * cpu_of([&] {
                 for (std::size_t at = 0; at < text.size(); at += piece) {
                   loop.feed(std::string_view(text).substr(at, piece));
                 }
               });
      },
      [&] { return per_byte * cpu_of([&] { parse(quoted); }); });
  table.add("text_loop", "ns/B", found, at_most(2.5));
}

/// A session whose reports leave as much behind as they can: each call is of another tool, 31 are
/// open and stay so, with states, messages and waits between.
class Hoarder {
 public:
  /// Names and ids have `name_bytes` bytes, and arguments have 1 KB. With `many_members`, the
  /// arguments have as many members as are compared.
  Hoarder(std::size_t name_bytes, bool many_members) : name_bytes_(name_bytes) {
    Writer writer;
    for (int i = 0; i < 100; ++i) {
      calls_.push_back(
          event_of({.kind = ReportKind::tool_call,
                    .content = many_members ? members(writer) : writer.arguments(kilobyte)}));
      results_.push_back(
          event_of({.kind = ReportKind::tool_result, .content = writer.prose(kilobyte)}));
    }
  }

  void begin() {
    Report beat;
    beat.detail = Heartbeats{.phase = "act", .source = Source::loop};
    Event beats = event_of(std::move(beat));
    for (int i = 0; i < 100; ++i) fold(beats);
    fold(step_);
  }

  void call() {
    const auto number = made_++;
    auto& call = calls_[number % calls_.size()];
    auto& result = results_[number % results_.size()];
    auto name = std::to_string(number);
    name.resize(name_bytes_, '-');
    call.report.name = call.report.call_id = name;
    result.report.name = result.report.call_id = name;
    fold(call);
    if (number == 0 || number >= open_calls_max) fold(result);
    if (number % 50 == 1) {
      state_.report.detail = Marks{.identity = number, .informative = true};
      fold(state_);
      fold(message_);
      fold(wait_);
    }
    largest_ = std::max(largest_, bytes_);
  }

  [[nodiscard]] double bytes() const { return static_cast<double>(bytes_); }
  [[nodiscard]] double largest() const { return static_cast<double>(largest_); }

 private:
  static std::string members(Writer& writer) {
    nlohmann::json object;
    while (object.size() < Marks::fields_max) object[writer.word()] = writer.prose(52);
    return object.dump();
  }

  void fold(Event& event) {
    const auto before = bytes_allocated;
    session_.fold(event);
    bytes_ += bytes_allocated - before;
  }

  std::size_t name_bytes_;
  Session session_;
  std::vector<Event> calls_;
  std::vector<Event> results_;
  Event step_ = event_of({.kind = ReportKind::state_change, .name = "step"});
  Event state_ = event_of({.kind = ReportKind::state_change, .name = std::string(64, 's')});
  Event message_ = event_of({.kind = ReportKind::message, .content = "I shall try again."});
  Event wait_ = event_of({.kind = ReportKind::wait, .name = std::string(64, 'w')});
  std::size_t made_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t largest_ = 0;
};

void session_memory(Table& table) {
  const auto limit = at_most(16 * 1'024);
  Hoarder hoarder(32, false);  // ids of providers have 30 bytes, names of tools seldom more
  hoarder.begin();
  table.add("session_memory_without_calls", "B", hoarder.bytes(), at_most(0));
  int made = 0;
  for (const int calls : {1, 1'000, 1'000'000}) {
    for (; made < calls; ++made) hoarder.call();
    table.add("session_memory_" + std::to_string(calls), "B", hoarder.bytes(), limit);
  }
  table.add("session_memory_largest", "B", hoarder.largest(), limit);

  Hoarder worst(64, true);  // longer names are cut
  for (int i = 0; i < 10'000; ++i) worst.call();
  table.add("session_memory_worst", "B", worst.largest(), at_most(20 * 1'024));
}

/// Whether the last of a million events cost more than the first ones.
void million_events(Table& table) {
  constexpr int measured = 100'000;
  Writer writer;
  auto events = calls_of_all_sorts(writer, 1'000);
  std::vector<double> ratios;
  std::vector<double> first;
  std::vector<double> last;
  for (int run = 0; run < 5; ++run) {
    Session session;
    const auto fold = [&](int count) {
      return 1e6 / count * cpu_of([&] {
               for (int i = 0; i < count; ++i) {
                 session.fold(events[static_cast<std::size_t>(i) % events.size()]);
               }
             });
    };
    fold(measured);
    first.push_back(fold(measured));
    fold(1'000'000 - 3 * measured);
    last.push_back(fold(measured));
    ratios.push_back(last.back() / first.back());
  }
  table.add("million_events_last_beside_first", "us", {median(last), median(first), median(ratios)},
            at_most(1.2));
}

}  // namespace
}  // namespace watchdog::bench

int main(int argc, char** argv) {
  watchdog::bench::Table table(argc, argv);
  watchdog::bench::fold_call(table);
  watchdog::bench::million_events(table);
  watchdog::bench::session_memory(table);
  watchdog::bench::marks(table);
  watchdog::bench::text_loop(table);
  return table.exit_code();
}
