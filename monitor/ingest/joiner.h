/// \file
/// Joins reports of several sources about one session.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/store.h"

namespace watchdog::monitor {

/// Hooks, the proxy, OpenTelemetry and the agent itself may report the same call, result, prompt,
/// answer or end of an answer. The joiner gives both reports the same event id, so the store keeps
/// the first one, with both names of a call. The order does not matter. It remembers the newest
/// reports of the newest sessions; of others it reads calls, results and prompts from the store.
/// Older ones stay separate.
///
/// Hooks name a turn, a subagent or a call, and these may end, or begin, more than once. So an id
/// that hooks used is only that of the same event if nothing else happened since. Otherwise the
/// report is a new event and gets another id. Use from one thread at a time.
class Joiner {
 public:
  static constexpr std::size_t sessions_max = 1'024;
  static constexpr std::size_t calls_max = 64;  ///< Of a session.
  static constexpr std::size_t prompts_max = 4;
  static constexpr std::size_t named_max = 64;
  static constexpr std::size_t renamed_max = 128;
  static constexpr int recalled_max = 64;
  static constexpr int other_uses_max = 16;

  /// Returns the newest events of a session, the oldest first; empty: there are none.
  using Earlier = std::function<std::vector<Event>(const std::string& session)>;
  /// Reads the newest `recalled_max` events of the store, which must outlive the result.
  [[nodiscard]] static Earlier earlier_in(Store& store);

  /// `earlier`: what was stored before the joiner began, or before it forgot the session. Sources
  /// that report one thing may do so before and after that.
  explicit Joiner(Earlier earlier = {}) : earlier_(std::move(earlier)) {}

  /// Sets the event ids of `batch`. A session with one source stays as it is, except hooks,
  /// OpenTelemetry and transcripts, which are mostly one of two. The use of a budget is a total: it
  /// is taken from the first source that has it, and left out of others' batches. Another one
  /// follows it after `other_uses_max` of their reports without one of its own.
  void join(Batch& batch);

 private:
  /// The sources of a report, and its event id.
  struct Reported {
    unsigned by = 0;  ///< A bit each.
    std::string event_id;
  };
  struct Call {
    std::string id;  ///< Of the first report. Empty: hooks of some agents have none.
    std::string other_id;
    std::string tool;  ///< As the first called it.
    std::string other_tool;
    std::uint64_t arguments = 0;
    int times = 1;  ///< The number of calls with this id so far.
    Reported reported;
    Reported answered;
  };
  struct Prompt {
    Reported reported;
    std::string text;
  };
  /// A start, prompt, answer or end that hooks named by its turn or subagent.
  struct Named {
    std::uint64_t id = 0;  ///< Digest of the id that they gave.
    int times = 1;
    std::uint64_t news = 0;  ///< The session's when it was reported last.
    std::string event_id{};  ///< Of the last time.
  };
  struct SessionReports {
    unsigned by = 0;              ///< All sources so far.
    bool is_recalled = false;     ///< Its events in the store were read.
    std::vector<Call> calls;      ///< The newest at the end.
    std::vector<Prompt> prompts;  ///< The newest at the end.
    Reported answer;
    std::uint64_t answer_digest = 0;
    unsigned used_by = 0;      ///< The source of the session's use of its budget.
    int other_uses = 0;        ///< Reports of its use by others since its own newest.
    Reported idle;             ///< Until something begins.
    Reported compaction;       ///< Likewise.
    Reported over;             ///< The session's end, likewise.
    std::deque<Named> named;   ///< The newest at the end.
    std::uint64_t news = 0;    ///< The number of events so far that repeat none before.
    std::uint64_t newest = 0;  ///< Digest of the id of the newest one, without its number.
    /// Event ids that were replaced, by digest, and their replacements: the newest ones. A report
    /// that comes again gets the same replacement.
    std::deque<std::pair<std::uint64_t, std::string>> renamed;
    std::list<std::string>::iterator place;
  };

  SessionReports& joined_of(const std::string& session);
  static void recall(SessionReports& joined, const Event& event);
  static void join_use(SessionReports& joined, Batch& batch, unsigned by);
  static void join_one(SessionReports& joined, Report& report, unsigned by);
  static void name_time(SessionReports& joined, Report& report, bool may_be_new);
  static void note(SessionReports& joined, const Report& report, std::uint64_t own);
  /// Gives the report the id of an earlier one, or a new id.
  static void name(Reported& reported, Report& report, unsigned by);
  static void join_once(Reported& reported, Report& report, unsigned by);
  static Call& added(SessionReports& joined);
  static void join_call(SessionReports& joined, Report& report, unsigned by);
  static void join_result(SessionReports& joined, Report& report, unsigned by);
  static void join_prompt(SessionReports& joined, Report& report, unsigned by);
  static void join_answer(SessionReports& joined, Report& report, unsigned by);

  Earlier earlier_;
  std::unordered_map<std::string, SessionReports> joined_;
  std::list<std::string> by_use_;  ///< The latest first.
};

}  // namespace watchdog::monitor
