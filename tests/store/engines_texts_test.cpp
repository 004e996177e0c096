// The store keeps reports as they were sent, also if its first try fails. Lists stay readable with
// any characters in the texts and with damaged rows.
#include <sys/resource.h>

#include <csignal>
#include <random>
#include <set>
#include <thread>

#include "observer/observer.h"
#include "privacy/each_text.h"
#include "store/engines.h"
#include "store/event_reader.h"
#include "store/sqlite.h"
#include "support/reports.h"
#include "support/scenario.h"

namespace watchdog {
namespace {

using test::all_events;
using test::change;
using test::ending;
using test::OnEngine;
using test::Postgres;
using test::say;

class EngineTexts : public OnEngine {
 protected:
  /// Runs SQL beside the store, as a person might.
  void run(const std::string& sql) const {
    if (!is_file()) {
      (void)Postgres::shared().run("SET search_path TO watchdog; " + sql);
      return;
    }
    Database database(place(), OpenMode::read_write_create);
    database.exec(sql.c_str());
  }
};
INSTANTIATE_TEST_SUITE_P(Store, EngineTexts, testing::Values("file", "postgresql"),
                         test::engine_name);

/// Characters of all kinds, some of them not allowed in UTF-8.
std::string odd_text(std::mt19937& random) {
  std::string text = "needle";
  for (auto left = 1 + random() % 8; left > 0; --left) {
    switch (random() % 6) {
      case 0:
        text += static_cast<char>(random() % 32);
        break;
      case 1:
        text += '\0';
        break;
      case 2:
        text += static_cast<char>(random() % 256);
        break;
      case 3:
        text += "\\u0000";
        break;
      case 4:
        text += "\xED\xA0\x80";  // half of a surrogate pair
        break;
      default: {
        const auto code = random() % 0x110000;
        text += static_cast<char>(0xF0U | code >> 18U);
        text += static_cast<char>(0x80U | (code >> 12U & 0x3FU));
        text += static_cast<char>(0x80U | (code >> 6U & 0x3FU));
        text += static_cast<char>(0x80U | (code & 0x3FU));
      }
    }
  }
  return text;
}

template <class Value>
void fill(Value& value, std::mt19937& random) {
  each_text(value, [&](auto& text) {
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(text)>>)
      text = odd_text(random);
  });
}

TEST_P(EngineTexts, leave_every_list_readable_whatever_characters_they_have) {
  const auto seed = test::random_seed();
  std::mt19937 random(seed);
  auto store = open();
  const auto rounds = test::repetitions(60, 3);
  for (int i = 0; i < rounds; ++i) {
    SessionSpec spec{.labels = {{odd_text(random), odd_text(random)}}};
    spec.agent = odd_text(random);
    spec.task = odd_text(random);
    spec.title = odd_text(random);
    std::vector<Report> reports;
    for (const auto kind : {ReportKind::message, ReportKind::tool_call, ReportKind::tool_result,
                            ReportKind::state_change, ReportKind::error, ReportKind::user_input}) {
      Report report{.kind = kind};
      fill(report, random);
      report.event_id += std::to_string(reports.size());  // another one in each
      reports.push_back(std::move(report));
    }
    auto end = ending(OutcomeKind::failed);
    fill(end, random);
    end.event_id += "end";
    reports.push_back(std::move(end));
    const auto kept =
        say(store, "s" + std::to_string(i), std::move(reports), Creation::allow, spec);
    ASSERT_TRUE(kept.ok()) << kept.error().message << " seed " << seed;
    ASSERT_EQ(kept->accepted, 7U);
  }
  auto judge = std::move(*Observer::start(store, {}));
  ASSERT_TRUE(judge->look().ok());
  auto reader = read();
  for (const auto* text : {"", "needle", "\\u0000", "s1"}) {
    const auto found = reader.sessions({.text = text, .limit = 1'000});
    ASSERT_TRUE(found.ok()) << found.error().message << " seed " << seed;
    if (std::string_view(text).empty() || std::string_view(text) == "needle") {
      EXPECT_EQ(found->size(), static_cast<std::size_t>(rounds)) << text;
    }
    for (const auto& row : *found) {
      EXPECT_EQ(row.error.find('\0'), std::string::npos);
      EXPECT_TRUE(row.error.starts_with("needle")) << row.error;
    }
  }
  for (int i = 0; i < rounds; ++i) {
    EXPECT_EQ(all_events(reader, "s" + std::to_string(i)).size(), 7U);
    EXPECT_TRUE(reader.fold(*reader.session("s" + std::to_string(i)), nullptr, nullptr).ok());
  }
}

TEST_P(EngineTexts, of_a_damaged_row_cost_that_row_only) {
  auto store = open();
  for (const auto* id : {"a", "b", "c", "d"})
    (void)say(store, id, {change(), ending(OutcomeKind::failed)}, Creation::allow,
              {.task = std::string("task of ") + id});
  {
    auto judge = std::move(*Observer::start(store, {}));
    ASSERT_TRUE(judge->look().ok());
    ASSERT_TRUE(judge->checkpoint().ok());
  }
  run("UPDATE snapshots SET text = '{broken' WHERE session = (SELECT id FROM sessions WHERE name = "
      "'a')");
  run("UPDATE sessions SET spec = '{broken' WHERE name = 'b'");
  // As older programs wrote it.
  run("UPDATE sessions SET spec = '{\"task\":\"nul \\u0000\"}' WHERE name = 'c'");
  auto reader = read();
  for (const auto* text : {"", "task"}) {
    const auto found = reader.sessions({.text = text});
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_GE(found->size(), *text == '\0' ? 4U : 2U);
    for (const auto& row : *found) {
      const bool is_damaged = row.id == "a" || row.id == "b";
      EXPECT_EQ(row.error.find("cannot be read") != std::string::npos, is_damaged) << row.error;
    }
  }
  for (const auto* id : {"a", "b", "c", "d"}) EXPECT_TRUE(reader.session(id).ok());
  EXPECT_TRUE(Observer::start(store, {}).ok()) << "it starts again";
}

/// Calls whose arguments and results differ behind what is kept, and short ones with a password.
std::vector<Report> busy_reports() {
  std::vector<Report> all;
  for (int i = 0; i < 12; ++i) {
    const auto tail = std::string(300, 'x') + std::to_string(i);
    const auto id = "c" + std::to_string(i);
    all.push_back({.kind = ReportKind::tool_call,
                   .name = "read",
                   .content = "{\"path\":\"" + tail + "\"}",
                   .call_id = id,
                   .event_id = "AKIAIOSFODNN7EXAMPL" + std::string(1, static_cast<char>('A' + i))});
    all.push_back(
        {.kind = ReportKind::tool_result, .name = "read", .content = tail, .call_id = id});
    all.push_back({.kind = ReportKind::tool_call,
                   .name = "shell",
                   .content = "mysql -phunter" + std::to_string(i) + " db",
                   .call_id = id + "s"});
  }
  return all;
}

std::vector<std::string> marks_in(StoreReader& reader, const std::string& session) {
  std::vector<std::string> all;
  for (const auto& event : all_events(reader, session)) {
    const auto* marks = std::get_if<Marks>(&event.report.detail);
    all.push_back(event.report.content + (marks != nullptr ? encoded(*marks) : "none"));
  }
  return all;
}

TEST_P(EngineTexts, are_stored_the_same_if_the_first_try_fails) {
  auto store = open();
  ASSERT_TRUE(say(store, "smooth", busy_reports()).ok());
  Report cancel{.kind = ReportKind::cancel};
  cancel.detail = CancelRequest{.by = "user", .reason = "enough"};
  ASSERT_TRUE(say(store, "hit", {cancel}).ok());
  Batch batch{.session = "hit", .reports = busy_reports()};
  batch.reports.push_back(ending(OutcomeKind::failed));
  Result<std::vector<Result<Receipt>>> kept = Error{ErrorCode::unavailable, "not tried"};
  if (is_file()) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    auto* const old = signal(SIGXFSZ, SIG_IGN);
    const rlimit none{1, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
    const auto failed = store.append({&batch, 1});
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, old);
    ASSERT_FALSE(failed.ok());
    kept = store.append({&batch, 1});
  } else {
    std::jthread holder([] {
      (void)Postgres::shared().run(
          "BEGIN; LOCK TABLE watchdog.events IN EXCLUSIVE MODE; SELECT pg_sleep(1); COMMIT");
    });
    std::jthread killer([](const std::stop_token& stop) {
      // Once: the second try must go through. Each question is a connection, so this does not spin.
      while (!stop.stop_requested() &&
             Postgres::shared().run(
                 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = "
                 "'Lock' AND pid <> pg_backend_pid()") != "t") {
      }
    });
    while (Postgres::shared().run("SELECT count(*) FROM pg_locks WHERE mode = 'ExclusiveLock' AND "
                                  "relation = 'watchdog.events'::regclass") != "1") {
    }
    kept = store.append({&batch, 1});
    killer.request_stop();
  }
  ASSERT_TRUE(kept.ok()) << kept.error().message;
  EXPECT_EQ(kept->front()->accepted, batch.reports.size());
  EXPECT_EQ(kept->front()->cut, 24U);
  auto reader = read();
  auto hit = marks_in(reader, "hit");
  ASSERT_EQ(hit.size(), busy_reports().size() + 2);
  hit.erase(hit.begin());
  hit.pop_back();
  EXPECT_EQ(hit, marks_in(reader, "smooth"));
  EXPECT_EQ(std::set<std::string>(hit.begin(), hit.end()).size(), hit.size()) << "all differ";
  EXPECT_EQ(reader.session("hit")->lifecycle, Lifecycle::cancelled);
  EXPECT_FALSE(reader.directive_of("hit")->cancel) << "it was heard";
  // An id that looks like a key is redacted, and still found.
  EXPECT_EQ(say(store, "hit", {busy_reports().front()})->duplicates, 1U);
}

TEST_P(EngineTexts, with_other_secrets_are_other_calls) {
  auto store = open();
  std::vector<Report> reports;
  for (int i = 0; i < 12; ++i) {
    const auto id = "c" + std::to_string(i);
    reports.push_back({.kind = ReportKind::tool_call,
                       .name = "shell",
                       .content = "{\"command\":\"mysql -p'guess" + std::to_string(i) + "x' db\"}",
                       .call_id = id});
    reports.push_back(
        {.kind = ReportKind::tool_result, .name = "shell", .content = "denied", .call_id = id});
  }
  ASSERT_TRUE(say(store, "guesses", reports).ok());
  for (auto& report : reports)
    if (report.kind == ReportKind::tool_call) report.content = reports.front().content;
  ASSERT_TRUE(say(store, "same", reports).ok());
  auto reader = read();
  for (const auto& event : all_events(reader, "guesses"))
    EXPECT_EQ(event.report.content.find("guess"), std::string::npos) << event.report.content;
  const auto health = [&](const char* id) {
    const auto judged = reader.fold(*reader.session(id), nullptr, nullptr);
    return judged->health.kind;
  };
  EXPECT_NE(health("guesses"), HealthKind::looping);
  EXPECT_EQ(health("same"), HealthKind::looping);
}

}  // namespace
}  // namespace watchdog
