// The store keeps an alert together with its cause, or keeps neither.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <random>

#include "judge/attention.h"
#include "observer/observer.h"
#include "store/alert_acts.h"
#include "store/retention.h"
#include "store/transition_reader.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/scenario.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::beat;
using test::change;
using test::ending;
using test::say;

class Alerting : public testing::Test {
 protected:
  test::TempDir dir;
  test::ManualClock clock;
  std::filesystem::path path = dir / "w.db";
  AlertRules rules{.channels = {"a", "b"}};
  std::optional<Store> store;
  std::unique_ptr<Observer> observer;

  void open() {
    auto opened = Store::open({.database = path, .clock = &clock});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store.emplace(std::move(*opened));
    watch();
  }
  void watch() {
    auto started = Observer::start(*store, {.alerts = rules});
    ASSERT_TRUE(started.ok()) << started.error().message;
    observer = std::move(*started);
  }
  void restart() {
    observer.reset();
    store.reset();
    open();
  }
  void pass(Millis time) {
    for (; time > 0ms; time -= 1s) {
      clock.advance(1s);
      ASSERT_TRUE(observer->look().ok());
    }
  }
  void look() { ASSERT_TRUE(observer->look().ok()); }
  void get_stuck(const std::string& session, SessionSpec spec = {}) {
    ASSERT_TRUE(say(*store, session, {change(), beat(), beat(), beat(), beat(), beat()},
                    Creation::attach, std::move(spec))
                    .ok());
    look();
  }
  void recover(const std::string& session) {
    ASSERT_TRUE(say(*store, session, {change()}).ok());
    look();
  }
  std::vector<Alert> alerts(AlertFilter filter = {}) {
    auto found = store->reader().alerts(filter);
    EXPECT_TRUE(found.ok());
    return *found;
  }
  /// The oldest first, each as `SESSION:WORD`, recoveries with a `-`, those that wait in brackets.
  std::string reported() {
    std::string text;
    auto all = alerts();
    for (auto alert = all.rbegin(); alert != all.rend(); ++alert) {
      if (!text.empty()) text += ' ';
      auto one = alert->session + (alert->kind == AlertKind::recovery ? ":-" : ":") + alert->word;
      text += alert->sent_with ? one : "(" + one + ")";
    }
    return text;
  }
  /// The ids of the message that is next.
  std::vector<std::int64_t> next(const std::string& channel, bool single = false) {
    const auto message = store->reader().next_message(channel, single);
    EXPECT_TRUE(message.ok());
    std::vector<std::int64_t> ids;
    for (const auto& alert : *message) ids.push_back(alert.id);
    return ids;
  }
  void sent(const std::string& channel, std::vector<std::int64_t> ids,
            DeliveryState state = DeliveryState::sent, std::string error = {}) {
    ASSERT_TRUE(AlertActs(*store)
                    .note({.channel = channel,
                           .alerts = std::move(ids),
                           .state = state,
                           .error = std::move(error)})
                    .ok());
  }
};

using Ids = std::vector<std::int64_t>;

TEST_F(Alerting, a_change_of_health_brings_its_alert_along) {
  open();
  get_stuck("s", {.parent = "p", .agent = "coder", .task = "repair it"});
  ASSERT_EQ(alerts().size(), 1U);
  const auto alert = alerts().front();
  EXPECT_EQ(alert.session, "s");
  EXPECT_EQ(alert.agent, "coder");
  EXPECT_EQ(alert.parent, "p");
  EXPECT_EQ(alert.task, "repair it");
  EXPECT_EQ(alert.word, "stuck");
  EXPECT_NE(alert.reason.find("without a state change"), std::string::npos);
  EXPECT_FALSE(alert.message.empty());
  ASSERT_EQ(alert.deliveries.size(), 2U);
  EXPECT_EQ(alert.deliveries[1].channel, "b");
  EXPECT_EQ(alert.deliveries[1].state, DeliveryState::pending);
  EXPECT_TRUE(AlertActs(*store).drain_new_messages());
  EXPECT_FALSE(AlertActs(*store).drain_new_messages());
  recover("s");
  EXPECT_EQ(reported(), "s:stuck (s:-progressing)") << "of one parent, within a minute";
  EXPECT_EQ(alerts()[0].episode, alerts()[1].episode);
}

TEST_F(Alerting, an_end_brings_its_alert_along) {
  open();
  Report failed{.kind = ReportKind::end};
  failed.detail = Outcome{.kind = OutcomeKind::failed, .reason = "tool_error", .error = "no disk"};
  ASSERT_TRUE(say(*store, "f", {change(), failed}).ok());
  ASSERT_TRUE(say(*store, "c", {change(), ending()}).ok());
  look();
  EXPECT_EQ(reported(), "f:failed");
  EXPECT_EQ(alerts()[0].reason, "Tool error");
  EXPECT_EQ(alerts()[0].detail, "no disk");
  restart();
  ASSERT_TRUE(say(*store, "f", {change()}).ok());  // late
  look();
  EXPECT_EQ(reported(), "f:failed") << "once";
  ASSERT_TRUE(say(*store, "f", {Report{.kind = ReportKind::start}}).ok());
  look();
  EXPECT_EQ(alerts()[0].kind, AlertKind::recovery);
}

TEST_F(Alerting, trouble_that_began_while_nobody_watched_is_notified_once) {
  open();
  observer.reset();
  ASSERT_TRUE(say(*store, "s", {change(), beat(), beat(), beat(), beat(), beat()}).ok());
  ASSERT_TRUE(say(*store, "e", {change(), ending(OutcomeKind::incomplete)}).ok());
  watch();
  EXPECT_EQ(reported(), "s:stuck e:incomplete");
  restart();
  restart();
  look();
  EXPECT_EQ(reported(), "s:stuck e:incomplete");
}

TEST_F(Alerting, nobody_is_notified_if_no_alert_rules_are_set) {
  auto opened = Store::open({.database = path, .clock = &clock});
  store.emplace(std::move(*opened));
  auto started = Observer::start(*store, {});
  observer = std::move(*started);
  get_stuck("s");
  EXPECT_EQ(reported(), "");
}

TEST_F(Alerting, a_commit_that_fails_leaves_neither_transition_nor_alert) {
  open();
  recover("s");
  {
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
    ASSERT_EQ(
        sqlite3_exec(other, "ALTER TABLE deliveries RENAME TO away", nullptr, nullptr, nullptr),
        SQLITE_OK);
    sqlite3_close(other);
  }
  ASSERT_TRUE(say(*store, "s", {beat(), beat(), beat(), beat(), beat()}).ok());
  EXPECT_FALSE(observer->look().ok());
  const auto row = store->reader().session("s");
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(TransitionReader(store->reader()).of(row->key, 0, 10)->size(), 1U);
  EXPECT_EQ(row->health, HealthKind::progressing);
  {
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
    ASSERT_EQ(
        sqlite3_exec(other, "ALTER TABLE away RENAME TO deliveries", nullptr, nullptr, nullptr),
        SQLITE_OK);
    sqlite3_close(other);
  }
  EXPECT_EQ(reported(), "");
  restart();
  EXPECT_EQ(reported(), "s:stuck");
  EXPECT_EQ(store->reader().session("s")->health, HealthKind::stuck);
}

TEST_F(Alerting, a_wait_for_a_person_is_notified_after_a_minute_even_if_it_followed_another_wait) {
  open();
  Report overload{.kind = ReportKind::wait, .name = "overload"};
  Report approval{.kind = ReportKind::wait, .name = "approval", .content = "May I deploy?"};
  ASSERT_TRUE(say(*store, "w", {change(), overload}).ok());
  look();
  pass(300s);
  EXPECT_EQ(reported(), "");
  ASSERT_TRUE(say(*store, "w", {approval}).ok());
  look();
  pass(3s);
  EXPECT_EQ(reported(), "");
  restart();
  pass(3s);
  EXPECT_EQ(reported(), "w:needs_input");
  EXPECT_EQ(alerts()[0].reason, "Waits for approval") << "messages hold no text of the session";
  EXPECT_EQ(alerts()[0].detail, "May I deploy?");
  ASSERT_TRUE(say(*store, "w", {change()}).ok());
  look();
  EXPECT_EQ(alerts().size(), 2U);
}

TEST_F(Alerting, time_alone_reports_what_holds_and_what_waits_for_long) {
  rules.hold = 30s;
  rules.blocked_for = 60s;
  open();
  get_stuck("s");
  Report wait{.kind = ReportKind::wait, .name = "a person"};
  ASSERT_TRUE(say(*store, "w", {change(), wait}).ok());
  look();
  pass(29s);
  EXPECT_EQ(reported(), "");
  const auto due = observer->look();
  ASSERT_TRUE(due.ok());
  EXPECT_EQ(*due, store->now() + 1s);
  restart();
  pass(1s);
  EXPECT_EQ(reported(), "s:stuck");
  pass(31s);
  EXPECT_EQ(reported(), "s:stuck w:blocked");
  EXPECT_EQ(alerts()[0].reason, "Waits for something that it named");
  EXPECT_EQ(alerts()[0].detail, "a person");
}

TEST_F(Alerting, a_message_is_delivered_to_each_channel_until_it_took_it) {
  open();
  get_stuck("s");
  get_stuck("t");
  EXPECT_EQ(next("a"), Ids{1});
  sent("a", {1}, DeliveryState::pending, "nobody answers");
  EXPECT_EQ(next("a"), Ids{1});
  EXPECT_EQ(alerts()[1].deliveries[0].attempts, 1);
  EXPECT_EQ(alerts()[1].deliveries[0].error, "nobody answers");
  sent("a", {1});
  EXPECT_EQ(next("a"), Ids{2});
  EXPECT_EQ(next("b"), Ids{1});
  sent("b", {1}, DeliveryState::dead, "not wanted");
  EXPECT_EQ(next("b"), Ids{2});
  restart();
  EXPECT_EQ(next("a"), Ids{2});
  EXPECT_EQ(next("none"), Ids{});
  EXPECT_EQ(alerts()[1].deliveries[0].error, "") << "of the newest attempt";
  EXPECT_EQ(alerts({.state = DeliveryState::dead}).size(), 1U);
  EXPECT_EQ(alerts({.session = "t"}).size(), 1U);
  EXPECT_EQ(alerts({.after = 2}).size(), 1U);
}

TEST_F(Alerting, many_go_together_and_wait_for_each_other) {
  open();
  for (int child = 0; child < 4; ++child) {
    ASSERT_TRUE(say(*store, "c" + std::to_string(child),
                    {change(), beat(), beat(), beat(), beat(), beat()}, Creation::attach,
                    {.parent = "p"})
                    .ok());
  }
  look();
  EXPECT_EQ(next("a"), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(next("a", true), Ids{1});
  sent("a", {1, 2, 3, 4});
  get_stuck("c9", {.parent = "p"});
  get_stuck("x");
  EXPECT_EQ(reported(), "c0:stuck c1:stuck c2:stuck c3:stuck (c9:stuck) x:stuck");
  EXPECT_EQ(next("a"), Ids{6});
  sent("a", {6});
  restart();
  pass(59s);
  EXPECT_EQ(next("a"), Ids{});
  pass(2s);
  EXPECT_EQ(next("a"), Ids{5});
}

TEST_F(Alerting, an_acknowledged_alert_is_not_notified_again) {
  open();
  get_stuck("s");
  sent("a", {1});
  EXPECT_EQ(AlertActs(*store).acknowledge(2, "ann").error().code, ErrorCode::not_found);
  const auto known = AlertActs(*store).acknowledge(1, "ann");
  ASSERT_TRUE(known.ok()) << known.error().message;
  EXPECT_EQ(known->acknowledged_by, "ann");
  EXPECT_EQ(known->deliveries[0].state, DeliveryState::sent);
  EXPECT_EQ(known->deliveries[1].state, DeliveryState::held);
  EXPECT_EQ(AlertActs(*store).acknowledge(1, "bob")->acknowledged_by, "ann")
      << "the first one counts";
  sent("b", {1}, DeliveryState::pending, "it was under way");
  EXPECT_EQ(next("b"), Ids{});
  restart();
  pass(5s);
  ASSERT_TRUE(say(*store, "s",
                  {Report{.kind = ReportKind::end, .detail = Outcome{.kind = OutcomeKind::failed}}})
                  .ok());
  look();
  EXPECT_EQ(reported(), "s:stuck");
}

TEST_F(Alerting, an_end_that_somebody_acknowledged_needs_nobody) {
  open();
  const auto fail = [&] {
    ASSERT_TRUE(say(*store, "s",
                    {change(), Report{.kind = ReportKind::end,
                                      .detail = Outcome{.kind = OutcomeKind::failed}}})
                    .ok());
    look();
  };
  const auto attention = [&] {
    const auto row = store->reader().session("s");
    const auto judged = store->reader().fold(*row, nullptr, nullptr);
    const auto standing = standing_of(*judged, clock.wall());
    EXPECT_EQ(name_of(standing.state), "failed");
    EXPECT_EQ(row->acknowledged, standing.attention == Attention::resting);
    return std::string(name_of(standing.attention));
  };
  fail();
  EXPECT_EQ(attention(), "needs_you");
  ASSERT_TRUE(AlertActs(*store).acknowledge(alerts().front().id, "ann").ok());
  EXPECT_EQ(attention(), "resting");
  restart();
  pass(5s);
  EXPECT_EQ(attention(), "resting");
  ASSERT_TRUE(say(*store, "s", {Report{.kind = ReportKind::start}}).ok());
  look();
  pass(rules.flap_window + 5s);
  fail();
  EXPECT_EQ(attention(), "needs_you") << "it is another end";
}

TEST_F(Alerting, a_snoozed_alert_is_notified_again_if_nothing_improved) {
  open();
  get_stuck("s");
  get_stuck("t");
  const auto until = clock.wall() + 60s;
  ASSERT_EQ(AlertActs(*store).snooze(1, 60s)->snoozed_until, until);
  ASSERT_TRUE(AlertActs(*store).snooze(2, 60s).ok());
  look();
  recover("t");
  EXPECT_EQ(AlertActs(*store).snooze(3, 60s).error().code, ErrorCode::conflict);
  restart();
  pass(59s);
  EXPECT_EQ(reported(), "s:stuck t:stuck t:-progressing");
  pass(2s);
  EXPECT_EQ(reported(), "s:stuck t:stuck t:-progressing s:stuck");
}

TEST_F(Alerting, alerts_go_with_their_session_and_with_time) {
  open();
  get_stuck("s");
  get_stuck("t");
  ASSERT_TRUE(say(*store, "t", {ending()}).ok());
  look();
  ASSERT_TRUE(observer->checkpoint().ok());
  clock.advance(1h);
  look();
  Retention retention{.ended_for = 1'800s, .folded_through = observer->folded()};
  for (int piece = 0; piece < 20; ++piece) ASSERT_TRUE(RetentionActs(*store).trim(retention).ok());
  EXPECT_EQ(reported(), "") << "those of s are too old, those of t went with it";
  EXPECT_EQ(next("a"), Ids{});
  recover("s");
  EXPECT_EQ(reported(), "s:-progressing") << "what was told is still known";
  EXPECT_GT(alerts()[0].id, 3) << "no id is used again";
}

TEST_F(Alerting, a_new_channel_gets_the_troubles_that_are_open) {
  rules.channels = {};
  open();
  for (const auto* session : {"open", "over", "known"}) get_stuck(session);
  recover("over");
  const auto known = alerts().back();
  ASSERT_EQ(known.session, "open") << "the newest comes first";
  std::int64_t id = 0;
  for (const auto& alert : alerts())
    if (alert.session == "known") id = alert.id;
  ASSERT_TRUE(AlertActs(*store).acknowledge(id, "ada").ok());
  pass(120s);
  EXPECT_EQ(next("a"), Ids{});
  rules.channels = {"a"};
  restart();
  pass(2s);
  EXPECT_EQ(next("a"), Ids{known.id});
  sent("a", {known.id});
  restart();
  pass(2s);
  EXPECT_EQ(next("a"), Ids{}) << "once, however often it starts";
  rules.channels = {"a", "b"};
  restart();
  pass(2s);
  EXPECT_EQ(next("b"), Ids{known.id});
  clock.advance(25h);
  rules.channels = {"a", "b", "c"};
  restart();
  pass(2s);
  EXPECT_EQ(next("c"), Ids{}) << "a day later it is no news";
}

TEST_F(Alerting, restarts_do_not_change_the_notifications) {
  std::mt19937 random(test::random_seed());
  rules.hold = 3s;
  rules.flap_changes = 4;
  rules.flap_window = 20s;
  rules.group_window = 5s;
  const int rounds = test::repetitions(40);
  for (int round = 0; round < rounds; ++round) {
    const auto script = random();
    std::array<std::string, 2> results;
    for (const bool restarting : {false, true}) {
      path = dir / (std::to_string(round) + (restarting ? "r.db" : "s.db"));
      open();
      std::mt19937 steps(script);
      for (int step = 0; step < 40; ++step) {
        const auto session = "s" + std::to_string(steps() % 3);
        switch (steps() % 5) {
          case 0:
          case 1:
            get_stuck(session);
            break;
          case 2:
            recover(session);
            break;
          default:
            pass(std::chrono::seconds(steps() % 8));
        }
        if (restarting && random() % 4 == 0) restart();
      }
      pass(30s);
      results[restarting ? 1 : 0] = reported();
      observer.reset();
      store.reset();
    }
    ASSERT_EQ(results[0], results[1]) << "script " << script;
    ASSERT_NE(results[0], "");
  }
}

}  // namespace
}  // namespace watchdog
