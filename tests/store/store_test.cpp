#include "store/store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <random>
#include <regex>
#include <set>
#include <thread>

#include "store/event_reader.h"
#include "store/lock.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/scenario.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using test::abort_of;
using test::all_events;
using test::beat;
using test::change;
using test::ending;
using test::ManualClock;
using test::say;
using test::TempDir;
using test::turn;
using test::with_id;

Store open(const std::filesystem::path& path, const Clock& clock = system_clock()) {
  auto store = Store::open({.database = path, .clock = &clock});
  EXPECT_TRUE(store.ok()) << (store ? "" : store.error().message);
  return std::move(*store);
}

void run_sql(const std::filesystem::path& path, const std::string& sql) {
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(connection);
  sqlite3_close(connection);
}

class StoreFile : public testing::Test {
 protected:
  TempDir dir;
  std::filesystem::path path = dir / "state/watchdog.db";
};

TEST_F(StoreFile, is_private_to_its_owner) {
  auto store = open(path);
  (void)say(store, "s", {change()});
  const auto mode = [](const std::filesystem::path& file) {
    struct stat info {};
    EXPECT_EQ(stat(file.c_str(), &info), 0) << file;
    return info.st_mode & 0777U;
  };
  EXPECT_EQ(mode(path.parent_path()), 0700U);
  EXPECT_EQ(mode(path), 0600U);
  EXPECT_EQ(mode(path.string() + "-wal"), 0600U);
  EXPECT_EQ(mode(path.string() + "-shm"), 0600U);
}

TEST_F(StoreFile, keeps_events_in_order_and_pages_them) {
  auto store = open(path);
  for (int i = 0; i < 700; ++i) {
    (void)say(store, i % 3 == 0 ? "a" : "b", {change("n" + std::to_string(i))});
  }
  for (const int page_size : {1, 7, 100, 1'000}) {
    const auto events = all_events(store.reader(), "a", page_size);
    ASSERT_EQ(events.size(), 234U);
    for (std::size_t i = 0; i < events.size(); ++i) {
      ASSERT_EQ(events[i].report.name, "n" + std::to_string(3 * i));
      ASSERT_EQ(events[i].prev, i == 0 ? 0 : events[i - 1].seq);
    }
  }
}

TEST_F(StoreFile, pages_one_kind) {
  auto store = open(path);
  (void)say(store, "a",
            {change(), beat(), change(), {.kind = ReportKind::message, .content = "hi"}});
  const auto key = store.reader().session("a")->key;
  EXPECT_EQ(EventReader(store.reader()).page(key, 0, 10, ReportKind::message)->events.size(), 1U);
  EXPECT_EQ(EventReader(store.reader()).page(key, 0, 10, ReportKind::state_change)->events.size(),
            2U);
  EXPECT_EQ(EventReader(store.reader()).page(key, 0, 1, ReportKind::state_change)->next.has_value(),
            true);
}

TEST_F(StoreFile, pages_backwards_are_the_same_events) {
  auto store = open(path);
  for (int i = 0; i < 700; ++i) {
    (void)say(store, i % 3 == 0 ? "a" : "b",
              {i % 7 == 0 ? Report{.kind = ReportKind::message, .content = "hi"} : change()});
  }
  auto& reader = store.reader();
  const auto key = reader.session("a")->key;
  for (const auto kind : {std::optional<ReportKind>{}, std::optional{ReportKind::message}}) {
    std::vector<Seq> forwards;
    const auto whole = EventReader(reader).page(key, 0, 1'000, kind);
    for (const auto& event : whole->events) forwards.push_back(event.seq);
    ASSERT_FALSE(forwards.empty());
    for (const int page_size : {1, 7, 128, 1'000}) {
      std::vector<Seq> backwards;
      std::optional<Seq> before = INT64_MAX;
      while (before) {
        const auto page = EventReader(reader).page_before(key, *before, page_size, kind);
        ASSERT_LE(page->events.size(), static_cast<std::size_t>(page_size));
        for (const auto& event : page->events) backwards.push_back(event.seq);
        before = page->next;
      }
      std::reverse(backwards.begin(), backwards.end());
      EXPECT_EQ(backwards, forwards) << page_size;
    }
    const auto middle = forwards[forwards.size() / 2];
    EXPECT_EQ(EventReader(reader).page_before(key, middle, 1, kind)->events.front().seq,
              forwards[forwards.size() / 2 - 1]);
  }
}

TEST_F(StoreFile, pages_end_with_their_bytes_as_well) {
  auto store = open(path);
  constexpr int count = 300;  // more than two blocks
  for (int i = 0; i < count; ++i) {
    const auto size = static_cast<std::size_t>(i % 17 == 0 ? 190 : i % 30);
    (void)say(store, "a", {{.kind = ReportKind::message, .content = std::string(size, 'x')}});
  }
  auto& reader = store.reader();
  const auto key = reader.session("a")->key;
  for (const std::size_t bytes_max : {1U, 100U, 5'000U}) {
    std::vector<Seq> forwards;
    std::vector<Seq> backwards;
    const auto add = [&](const EventPage& page, std::vector<Seq>& into) {
      std::size_t bytes = 0;
      for (const auto& event : page.events) {
        EXPECT_TRUE(into.empty() || bytes < bytes_max) << "the page was full before this one";
        bytes += event.report.content.size();
        into.push_back(event.seq);
      }
      ASSERT_FALSE(page.events.empty());
    };
    for (std::optional<Seq> after = 0; after;) {
      const auto page = EventReader(reader).page(key, *after, count, {}, bytes_max);
      add(*page, forwards);
      after = page->next;
    }
    for (std::optional<Seq> before = INT64_MAX; before;) {
      const auto page = EventReader(reader).page_before(key, *before, count, {}, bytes_max);
      if (page->events.empty()) break;  // the beginning
      add(*page, backwards);
      before = page->next;
    }
    EXPECT_EQ(forwards.size(), static_cast<std::size_t>(count)) << bytes_max;
    std::reverse(backwards.begin(), backwards.end());
    EXPECT_EQ(backwards, forwards) << bytes_max;
    std::size_t found = 0;
    for (Seq after = 0; found < count;) {
      const auto events = EventReader(reader).after(after, count, bytes_max);
      ASSERT_FALSE(events->empty());
      found += events->size();
      after = events->back().seq;
    }
  }
}

TEST_F(StoreFile, heartbeats_that_follow_each_other_are_one_row) {
  ManualClock clock;
  auto store = open(path, clock);
  auto receipt = say(store, "s", {beat(), beat(), beat(), change(), beat(), beat(Source::sidecar)});
  EXPECT_EQ(receipt->accepted, 6U);
  const auto events = all_events(store.reader(), "s");
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(std::get<Heartbeats>(events[0].report.detail).count, 3);
  EXPECT_EQ(std::get<Heartbeats>(events[3].report.detail).source, Source::sidecar);
}

TEST_F(StoreFile, ingesting_twice_is_ingesting_once) {
  auto store = open(path);
  EXPECT_EQ(say(store, "s", {with_id(change(), "1"), with_id(beat(), "2")})->accepted, 2U);
  const auto again = say(store, "s",
                         {with_id(change(), "1"), with_id(beat(), "2"), with_id(change(), "3"),
                          with_id(change(), "3")});
  EXPECT_EQ(again->accepted, 1U);
  EXPECT_EQ(again->duplicates, 3U);
  EXPECT_EQ(say(store, "other", {with_id(change(), "1")})->duplicates, 0U)
      << "ids belong to a session";
  EXPECT_EQ(all_events(store.reader(), "s").size(), 3U);
}

TEST_F(StoreFile, event_after_the_end_is_kept_and_late) {
  auto store = open(path);
  (void)say(store, "s", {change(), ending()});
  const auto receipt = say(store, "s", {change(), beat()});
  EXPECT_EQ(receipt->accepted, 2U);
  EXPECT_EQ(receipt->late, 2U);
  const auto events = all_events(store.reader(), "s");
  ASSERT_EQ(events.size(), 4U);
  EXPECT_FALSE(events[1].late);
  EXPECT_TRUE(events[2].late);
  EXPECT_EQ(store.reader().session("s")->lifecycle, Lifecycle::completed);
  const auto folded = store.reader().fold(*store.reader().session("s"));
  EXPECT_EQ(folded->history.state_changes, 1);
}

TEST_F(StoreFile, an_end_that_says_nothing_is_what_the_latest_reports_show) {
  using K = ReportKind;
  const auto said = [](K kind, std::string name = {}, std::string content = {}) {
    return Report{.kind = kind, .name = std::move(name), .content = std::move(content)};
  };
  const auto prompt = said(K::user_input, "", "go");
  const auto result = said(K::tool_result, "read", "text");
  const auto answer = said(K::message, "assistant", "Done.");
  const auto rest = said(K::idle);
  const auto refused = said(K::message, "server", "HTTP 401: invalid key");
  const auto left = said(K::message, "client", "it left");
  struct Row {
    std::vector<Report> reports;
    const char* outcome;
    const char* reason;
    const char* error;
  };
  const auto unanswered = "the session ended before its answer was complete";
  const Row rows[] = {
      {{}, "completed", "task_complete", ""},
      {{said(K::start)}, "completed", "task_complete", ""},
      {{prompt, answer, rest}, "completed", "task_complete", ""},
      {{prompt, result, rest, beat()}, "completed", "task_complete", ""},
      {{prompt, answer, rest, said(K::message, "hook", "x")}, "completed", "task_complete", ""},
      {{prompt, answer, rest, refused}, "completed", "task_complete", ""},
      {{prompt, rest, said(K::wait, "children")}, "completed", "task_complete", ""},
      {{prompt}, "incomplete", "no_answer", unanswered},
      {{prompt, result}, "incomplete", "no_answer", unanswered},
      {{prompt, refused, result}, "incomplete", "no_answer", unanswered},
      {{prompt, result, beat(), beat()}, "incomplete", "no_answer", unanswered},
      {{prompt, said(K::wait, "approval", "Bash")},
       "incomplete",
       "no_answer",
       "the session ended while it waited for approval: Bash"},
      {{prompt, said(K::wait, "input"), said(K::idle, "reminder")},
       "incomplete",
       "no_answer",
       "the session ended while it waited for input"},
      {{prompt, said(K::message, "error", "server_error"),
        said(K::wait, "input", "the turn failed"), said(K::idle, "reminder")},
       "failed",
       "model_server_error",
       "server_error"},
      {{prompt, answer, rest, said(K::idle, "reminder")}, "completed", "task_complete", ""},
      {{prompt, answer, rest, said(K::wait, "input", "Which?")}, "completed", "task_complete", ""},
      {{prompt, answer, said(K::idle, "relay"), said(K::wait, "input", "Which?")},
       "completed",
       "task_complete",
       ""},
      {{prompt, said(K::idle, "relay", "no request"), said(K::wait, "input", "Which?")},
       "incomplete",
       "no_answer",
       "the session ended while it waited for input: Which?"},
      {{prompt, said(K::idle, "interrupted")}, "cancelled", "cancelled", ""},
      {{prompt, refused}, "failed", "authentication", "HTTP 401: invalid key"},
      {{prompt, said(K::idle, "error", "HTTP 400: no")}, "failed", "error", "HTTP 400: no"},
      {{prompt, refused, rest}, "failed", "authentication", "HTTP 401: invalid key"},
      {{prompt, said(K::wait, "login", "log in again")},
       "failed",
       "authentication",
       "log in again"},
      {{prompt, said(K::wait, "quota", "until nine")}, "failed", "rate_limited", "until nine"},
      {{prompt, left, beat(), said(K::wait, "retry", "it left")},
       "incomplete",
       "no_answer",
       "it left"},
      {{prompt, left, said(K::wait, "retry", "it left"), said(K::idle, "relay", "no request")},
       "incomplete",
       "no_answer",
       "no request"},
      {{prompt, said(K::wait, "retry", "HTTP 429: later")},
       "failed",
       "rate_limited",
       "HTTP 429: later"},
      {{prompt, said(K::wait, "backend", "connection refused")},
       "failed",
       "connection_refused",
       "connection refused"},
  };
  auto store = open(path);
  // The monitor may find a process of the session at any moment. That decides nothing.
  const Report found_one{.kind = K::start, .name = std::string(found_process)};
  int number = 0;
  for (const auto& row : rows) {
    for (std::size_t at = 0; at <= row.reports.size() + 1; ++at) {
      const auto session = "s" + std::to_string(++number);
      auto reports = row.reports;
      if (at <= row.reports.size())
        reports.insert(reports.begin() + static_cast<std::ptrdiff_t>(at), found_one);
      auto& end = reports.emplace_back(Report{.kind = K::end});
      end.detail = Outcome{.reason = "gone", .stated = false, .by_answer = true};
      ASSERT_TRUE(say(store, session, reports).ok());
      const auto found = store.reader().session(session);
      const auto judged = store.reader().fold(*found);
      const auto place = "row " + std::to_string(&row - &rows[0]) + " at " + std::to_string(at);
      ASSERT_TRUE(judged->history.notes->outcome) << place;
      const auto& outcome = *judged->history.notes->outcome;
      EXPECT_EQ(name_of(outcome.kind), row.outcome) << place;
      EXPECT_EQ(outcome.reason, row.reason) << place;
      EXPECT_EQ(outcome.error, row.error) << place;
      EXPECT_EQ(found->outcome_reason, row.reason) << place;
    }
  }
}

TEST_F(StoreFile, start_after_the_end_opens_the_next_attempt) {
  auto store = open(path);
  (void)say(store, "s", {change(), ending(OutcomeKind::failed)});
  const auto receipt = say(store, "s", {{.kind = ReportKind::start}, change()});
  EXPECT_EQ(receipt->late, 0U);
  EXPECT_EQ(store.reader().session("s")->attempt, 2);
  EXPECT_EQ(store.reader().session("s")->lifecycle, Lifecycle::running);
}

TEST_F(StoreFile, creation_refuses_allows_attaches_or_demands) {
  auto store = open(path);
  EXPECT_EQ(say(store, "s", {change()}, Creation::refuse).error().code, ErrorCode::not_found);
  const SessionSpec spec{.agent = "a", .labels = {{"k", "v"}}};
  EXPECT_TRUE(say(store, "s", {}, Creation::demand, spec)->created);
  EXPECT_FALSE(say(store, "s", {}, Creation::demand, spec)->created);
  EXPECT_EQ(say(store, "s", {}, Creation::demand, {.agent = "b"}).error().code,
            ErrorCode::conflict);
  EXPECT_TRUE(say(store, "s", {}, Creation::attach, {.agent = "b"}).ok());
  EXPECT_EQ(store.reader().session("s")->spec.agent, "a");
  EXPECT_EQ(say(store, "no blanks", {change()}).error().code, ErrorCode::invalid);
}

TEST_F(StoreFile, refused_batch_leaves_the_others_untouched) {
  auto store = open(path);
  std::vector<Batch> batches{
      {.session = "a", .reports = {change()}},
      {.session = "gone", .creation = Creation::refuse, .reports = {change()}},
      {.session = "b", .reports = {change()}}};
  const auto receipts = store.append(batches);
  ASSERT_TRUE(receipts.ok());
  EXPECT_TRUE((*receipts)[0].ok());
  EXPECT_EQ((*receipts)[1].error().code, ErrorCode::not_found);
  EXPECT_TRUE((*receipts)[2].ok());
}

TEST_F(StoreFile, cancel_is_a_directive_until_the_end) {
  auto store = open(path);
  (void)say(store, "s", {change()});
  Report cancel{.kind = ReportKind::cancel};
  cancel.detail = CancelRequest{.by = "user", .reason = "enough"};
  EXPECT_EQ(say(store, "s", {cancel})->directive.cancel->reason, "enough");
  EXPECT_EQ(say(store, "s", {beat()})->directive.cancel->by, "user");
  EXPECT_EQ(store.reader().directive_of("s")->cancel->reason, "enough");
  EXPECT_TRUE(say(store, "s", {ending(OutcomeKind::cancelled)})->directive.cancel)
      << "who comes back late must hear it";
  EXPECT_FALSE(say(store, "s", {{.kind = ReportKind::start}, cancel, ending()})->directive.cancel);
}

/// Turn and call of each abort, the first with its reason.
TEST_F(StoreFile, end_after_a_cancel_is_cancelled_unless_the_agent_states_that_it_completed) {
  auto store = open(path);
  const Report cancel{.kind = ReportKind::cancel, .detail = CancelRequest{"ann", "enough"}};
  const struct {
    const char* session;
    Outcome said;
    OutcomeKind stored;
  } rows[] = {
      {"closed", {.kind = OutcomeKind::completed, .stated = false}, OutcomeKind::cancelled},
      {"failed", {.kind = OutcomeKind::failed, .error = "x"}, OutcomeKind::cancelled},
      {"incomplete", {.kind = OutcomeKind::incomplete}, OutcomeKind::cancelled},
      {"done", {.kind = OutcomeKind::completed}, OutcomeKind::completed},
  };
  for (const auto& row : rows) {
    const Report end{.kind = ReportKind::end, .detail = row.said};
    (void)say(store, row.session, {change(), cancel, end});
    const auto events = all_events(store.reader(), row.session);
    const auto& stored = std::get<Outcome>(events.back().report.detail);
    EXPECT_EQ(stored.kind, row.stored) << row.session;
    if (row.stored == OutcomeKind::cancelled) {
      EXPECT_EQ(stored.subject, "ann") << row.session;
      EXPECT_EQ(stored.error, "enough") << row.session;
    }
    (void)say(store, row.session, {{.kind = ReportKind::start}, end});
    const auto again = all_events(store.reader(), row.session);
    EXPECT_EQ(std::get<Outcome>(again.back().report.detail).kind, row.said.kind) << row.session;
  }
}

std::string aborts_in(const Directive& directive) {
  std::string text;
  for (const auto& abort : directive.aborts) {
    text += (text.empty() ? abort.reason + ": " : " ") + abort.turn + "/" + abort.call;
  }
  return text;
}

TEST_F(StoreFile, abort_of_a_turn_is_a_directive_until_the_turn_is_over) {
  auto store = open(path);
  const auto reported = [&](std::vector<Report> reports) {
    const auto receipt = say(store, "s", std::move(reports));
    EXPECT_EQ(aborts_in(*store.reader().directive_of("s")), aborts_in(receipt->directive));
    EXPECT_FALSE(receipt->directive.cancel) << "the session itself is not to stop";
    return aborts_in(receipt->directive);
  };
  EXPECT_EQ(reported({turn(turn_reports::turn_start, "t"), turn(turn_reports::turn_start, "u")}),
            "");
  EXPECT_EQ(reported({abort_of("t", {}, "first")}), "first: t/");
  EXPECT_EQ(reported({abort_of("t", {}, "second")}), "first: t/") << "asked again it is the same";
  EXPECT_EQ(reported({abort_of("u", "c"), abort_of("t", "d")}), "first: t/ u/c t/d");
  EXPECT_EQ(reported({{.kind = ReportKind::tool_result, .name = "f", .call_id = "x"}}),
            "first: t/ u/c t/d");
  EXPECT_EQ(reported({{.kind = ReportKind::tool_timeout, .name = "f", .call_id = "c"}}),
            "first: t/ t/d");
  { EXPECT_EQ(aborts_in(say(store, "s", {beat()})->directive), "first: t/ t/d"); }
  {
    auto other = open(path);
    EXPECT_EQ(aborts_in(say(other, "s", {beat()})->directive), "first: t/ t/d") << "it is kept";
  }
  EXPECT_EQ(reported({turn(turn_reports::turn_end, "t")}), "") << "and all calls of it";
}

TEST_F(StoreFile, aborts_end_with_the_attempt_and_with_its_process) {
  auto store = open(path);
  for (const auto& over : {ending(), Report{.kind = ReportKind::start}}) {
    EXPECT_EQ(say(store, "s",
                  {{.kind = ReportKind::start}, turn(turn_reports::turn_start, "t"), abort_of("t")})
                  ->directive.aborts.size(),
              1U);
    EXPECT_EQ(say(store, "s", {over})->directive.aborts.size(), 0U);
    EXPECT_EQ(store.reader().directive_of("s")->aborts.size(), 0U);
  }
  EXPECT_EQ(say(store, "s", {ending(), abort_of("t")})->directive.aborts.size(), 0U) << "late";
}

TEST_F(StoreFile, of_many_aborts_the_newest_are_kept) {
  auto store = open(path);
  for (std::size_t i = 0; i < 2 * Directive::aborts_max; ++i) {
    (void)say(store, "s", {abort_of("t" + std::to_string(i))});
  }
  const auto aborts = store.reader().directive_of("s")->aborts;
  ASSERT_EQ(aborts.size(), Directive::aborts_max);
  EXPECT_EQ(aborts.front().turn, "t16");
  EXPECT_EQ(aborts.back().turn, "t31");
}

TEST_F(StoreFile, sessions_that_began_a_turn_are_found_while_they_run) {
  auto store = open(path);
  for (const char* session : {"a", "b", "c"}) {
    (void)say(store, session, {turn(turn_reports::turn_start, "t")});
  }
  (void)say(store, "none", {change()});
  const auto found = [&](SessionKey below = 100) {
    std::string ids;
    const auto rows = store.reader().sessions_with_turns(below, 10);
    for (const auto& row : *rows) ids += row.id;
    return ids;
  };
  EXPECT_EQ(found(), "cba");
  EXPECT_EQ(found(3), "ba");
  (void)say(store, "b", {ending()});
  EXPECT_EQ(found(), "ca");
  (void)say(store, "b", {{.kind = ReportKind::start}});
  EXPECT_EQ(found(), "ca") << "its next attempt has begun none";
}

TEST_F(StoreFile, sequence_and_ticks_continue_in_a_new_process_and_after_a_reboot) {
  Seq last = 0;
  Instant tick{};
  for (const char* boot : {"first", "first", "second"}) {
    ManualClock clock(boot);  // each boot counts from the same point again
    auto store = open(path, clock);
    (void)say(store, "s", {change()});
    clock.advance(Millis{500});
    (void)say(store, "s", {change()});
    const auto events = all_events(store.reader(), "s");
    EXPECT_GT(events.back().seq, last);
    EXPECT_GE(events[events.size() - 2].tick, tick);
    EXPECT_GE(events.back().tick, events[events.size() - 2].tick);
    last = events.back().seq;
    tick = events.back().tick;
  }
}

TEST_F(StoreFile, lists_by_health_lifecycle_agent_label_parent_and_text) {
  auto store = open(path);
  (void)say(store, "a", {change()}, Creation::demand,
            {.agent = "planner", .task = "tidy 100% of it", .labels = {{"team", "x"}}});
  (void)say(store, "b", {change(), ending()}, Creation::demand, {.parent = "a", .agent = "coder"});
  (void)say(store, "c", {});
  const auto ids = [&](SessionFilter filter) {
    std::string text;
    const auto rows = store.reader().sessions(filter);
    for (const auto& row : *rows) text += row.id;
    return text;
  };
  EXPECT_EQ(ids({}), "cba");
  EXPECT_EQ(ids({.lifecycle = Lifecycle::completed}), "b");
  EXPECT_EQ(ids({.agent = "planner"}), "a");
  EXPECT_EQ(ids({.parent = "a"}), "b");
  EXPECT_EQ(ids({.ancestor = "c"}), "");
  EXPECT_EQ(ids({.label_key = "team", .label_value = "x"}), "a");
  EXPECT_EQ(ids({.text = "100%"}), "a");
  EXPECT_EQ(ids({.text = "1_0"}), "");
  EXPECT_EQ(ids({.healths = {HealthKind::stuck}}), "");
  EXPECT_EQ(ids({.limit = 2}), "cb");
  EXPECT_EQ(ids({.after = store.reader().session("b")->key}), "a");
}

TEST_F(StoreFile, lists_the_sessions_below_an_ancestor_also_where_parents_form_a_ring) {
  auto store = open(path);
  const auto begin = [&](const std::string& id, std::string parent) {
    (void)say(store, id, {change()}, Creation::demand, {.parent = std::move(parent)});
  };
  begin("a", "");
  begin("b", "a");
  begin("c", "b");
  begin("d", "b");
  begin("x", "y");
  begin("y", "x");
  for (int level = 0; level <= ancestor_levels_max; ++level)
    begin("level-" + std::to_string(level + 1), "level-" + std::to_string(level));
  const auto below = [&](std::string id) {
    std::set<std::string> ids;
    const auto rows = store.reader().sessions({.ancestor = std::move(id)});
    for (const auto& row : *rows) ids.insert(row.id);
    return ids;
  };
  using Ids = std::set<std::string>;
  EXPECT_EQ(below("a"), (Ids{"b", "c", "d"}));
  EXPECT_EQ(below("b"), (Ids{"c", "d"}));
  EXPECT_EQ(below("c"), Ids{});
  EXPECT_EQ(below("x"), (Ids{"x", "y"}));
  EXPECT_EQ(below("level-0").size(), ancestor_levels_max);
}

TEST_F(StoreFile, of_another_program_another_version_or_no_database_is_refused_by_name) {
  const auto error_of = [](const std::filesystem::path& file) {
    auto store = Store::open({.database = file});
    return store ? Error{ErrorCode::invalid, "it opened"} : store.error();
  };
  std::ofstream(dir / "text.db") << std::string(5'000, 'x');
  EXPECT_EQ(error_of(dir / "text.db").code, ErrorCode::corrupt);
  EXPECT_NE(error_of(dir / "text.db").message.find("text.db"), std::string::npos);

  run_sql(dir / "other.db", "CREATE TABLE t(x); PRAGMA application_id = 7");
  EXPECT_EQ(error_of(dir / "other.db").code, ErrorCode::invalid);

  { auto store = open(path); }
  run_sql(path, "PRAGMA user_version = 1005");
  { auto store = open(path); }  // a newer minor version is fine
  run_sql(path, "PRAGMA user_version = 2000");
  EXPECT_EQ(error_of(path).code, ErrorCode::conflict);
  EXPECT_NE(error_of(path).message.find("2.0"), std::string::npos) << error_of(path).message;
  EXPECT_EQ(StoreReader::open(path).error().code, ErrorCode::conflict);
  EXPECT_EQ(StoreReader::open(dir / "none.db").error().code, ErrorCode::not_found);
  EXPECT_EQ(error_of("/proc/none/watchdog.db").code, ErrorCode::unavailable);
}

TEST_F(StoreFile, damaged_in_the_middle_is_an_error_and_no_crash) {
  {
    auto store = open(path);
    std::vector<Report> reports(3'000, change("x", std::string(150, 'd')));
    ASSERT_TRUE(say(store, "s", std::move(reports)).ok());
  }
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    std::mt19937 random(test::random_seed());
    for (int page = 12; page < 150; ++page) {
      file.seekp(4096 * page);
      for (int i = 0; i < 512; ++i) file.put(static_cast<char>(random()));
    }
  }
  auto store = Store::open({.database = path});
  if (!store) return;  // noticed at once: as good
  const auto row = store->reader().session("s");
  if (!row) return;
  Seq after = 0;
  for (int pages = 0; pages < 100; ++pages) {
    const auto page = EventReader(store->reader()).page(row->key, after, 1'000);
    if (!page) {
      EXPECT_EQ(page.error().code, ErrorCode::corrupt) << page.error().message;
      return;
    }
    if (!page->next) break;
    after = *page->next;
  }
}

// A writer that is stopped within its turn keeps the whole file from reporting.
TEST_F(StoreFile, long_wait_for_the_turn_is_an_absence_before_anything_else) {
  ManualClock clock;
  auto store = open(path, clock);
  (void)say(store, "s", {change()});
  auto stopped = FileLock::open(path.string() + "-writer");
  ASSERT_TRUE(stopped.ok());
  stopped->lock();
  std::thread waiting([&] { (void)say(store, "s", {change()}); });
  const auto somebody_waits = [] {
    std::ifstream locks("/proc/locks");
    const std::string all((std::istreambuf_iterator<char>(locks)), {});
    return std::regex_search(
        all, std::regex("-> FLOCK +ADVISORY +WRITE +" + std::to_string(getpid()) + " "));
  };
  while (!somebody_waits()) std::this_thread::yield();
  clock.advance(Millis{60'000});
  stopped->unlock();
  waiting.join();
  const auto events = EventReader(store.reader()).after(0, 100);
  ASSERT_EQ(events->size(), 3U);
  const auto* gap = std::get_if<ObserverGap>(&(*events)[1].report.detail);
  ASSERT_NE(gap, nullptr);
  EXPECT_EQ(gap->gap, Millis{60'000});
}

TEST_F(StoreFile, locked_by_a_stranger_is_unavailable_and_recovers) {
  auto store = open(path);
  sqlite3* stranger = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &stranger), SQLITE_OK);
  sqlite3_exec(stranger, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
  const auto refused = say(store, "s", {change()});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_NE(refused.error().message.find("locked"), std::string::npos) << refused.error().message;
  sqlite3_close(stranger);
  EXPECT_TRUE(say(store, "s", {change()}).ok());
  EXPECT_EQ(all_events(store.reader(), "s").size(), 1U);
}

// The file may not grow any more, as on a full disk: nothing of a refused batch is kept, and what
// was acknowledged before is all there.
TEST_F(StoreFile, full_disk_refuses_and_loses_nothing) {
  const pid_t child = fork();
  if (child == 0) {
    auto store = open(path);
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{300'000, 300'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    int accepted = 0;
    for (int i = 0; i < 100; ++i) {
      if (say(store, "s", std::vector<Report>(50, change("x", std::string(150, 'd')))).ok())
        ++accepted;
    }
    _exit(accepted);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  const int accepted = WEXITSTATUS(status);
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 100) << "the limit never bit";
  auto store = open(path);
  EXPECT_EQ(all_events(store.reader(), "s", 1'000).size(), 50U * static_cast<unsigned>(accepted));
  EXPECT_TRUE(say(store, "s", {change()}).ok());
}

TEST(Store, refuses_network_filesystems_by_name) {
  EXPECT_EQ(network_filesystem(0x6969), "NFS");
  EXPECT_EQ(network_filesystem(0xFE534D42), "SMB");
  EXPECT_EQ(network_filesystem(0x786F4256), "a shared folder of VirtualBox");
  EXPECT_EQ(network_filesystem(0xBACBACBC), "a shared folder of VMware");
  EXPECT_FALSE(network_filesystem(0xEF53));  // ext4
}

TEST(Store, default_database_follows_the_environment) {
  setenv("WATCHDOG_DB", "/x/y.db", 1);
  EXPECT_EQ(default_database(), "/x/y.db");
  unsetenv("WATCHDOG_DB");
  setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(default_database(), "/state/watchdog/watchdog.db");
  unsetenv("XDG_STATE_HOME");
}

}  // namespace
}  // namespace watchdog
