// By which ways a session was heard: the fold of origins, and what a snapshot keeps of it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "codec/facts.h"
#include "codec/json.h"
#include "codec/progress.h"
#include "judge/changed_at.h"
#include "store/retention.h"
#include "support/scenario.h"
#include "watchdog/history.h"

namespace watchdog {
namespace {

using nlohmann::json;

constexpr WallTime first_moment{Millis{1'790'000'000'000}};

/// Events of one session; each comes a second after the one before it.
class Heard {
 public:
  Heard& by(ReportOrigin origin, Report report = {.kind = ReportKind::message}) {
    now_ += Millis{1'000};
    Event event{.seq = ++seq_,
                .session = 1,
                .tick = Instant{Millis{1'000'000}} + now_,
                .at = first_moment + now_,
                .late = late_,
                .origin = origin};
    event.report = std::move(report);
    apply(history, event, {});
    return *this;
  }
  Heard& beats(ReportOrigin origin, Heartbeats row) {
    row.first = row.last = Instant{Millis{1'000'000}} + now_ + Millis{1'000};
    Report report;
    report.detail = std::move(row);
    return by(origin, std::move(report));
  }
  Heard& late(bool late) {
    late_ = late;
    return *this;
  }
  /// As `origin reports first-last`, in seconds.
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const auto& [origin, reports, first, last, told] : history.sources) {
      all += (all.empty() ? "" : ", ") + std::string(name_of(origin)) + " " +
             std::to_string(reports) + " " +
             std::to_string((first - first_moment).count() / 1'000) + "-" +
             std::to_string((last - first_moment).count() / 1'000);
    }
    return all;
  }

  History history;

 private:
  Seq seq_ = 0;
  Millis now_{};
  bool late_ = false;
};

Report start() {
  Report report{.kind = ReportKind::start};
  report.detail = ProcessFacts{};
  return report;
}
Report ended() {
  Report report{.kind = ReportKind::end};
  report.detail = Outcome{};
  return report;
}

TEST(Sources, are_counted_each_with_its_first_and_newest_time) {
  Heard heard;
  heard.by(ReportOrigin::hooks).by(ReportOrigin::proxy).by(ReportOrigin::hooks);
  heard.by(ReportOrigin::unknown).by(ReportOrigin::proxy).by(ReportOrigin::hooks);
  EXPECT_EQ(heard.text(), "hooks 3 1-6, proxy 2 2-5, unknown 1 4-4");
}

TEST(Sources, stay_over_the_attempts_of_a_session) {
  Heard heard;
  heard.by(ReportOrigin::hooks).by(ReportOrigin::agent, ended());
  heard.by(ReportOrigin::run, start());
  EXPECT_EQ(heard.history.attempt, 2);
  EXPECT_EQ(heard.text(), "hooks 1 1-1, agent 1 2-2, run 1 3-3");
}

TEST(Sources, of_late_reports_and_of_the_observer_are_not_counted) {
  Heard heard;
  heard.by(ReportOrigin::hooks).late(true).by(ReportOrigin::otlp).by(ReportOrigin::hooks);
  Event away{.seq = 9, .origin = ReportOrigin::monitor};
  away.report.kind = ReportKind::observer;
  away.report.detail = ObserverGap{Millis{5'000}};
  apply(heard.history, away, {});
  EXPECT_EQ(heard.text(), "hooks 1 1-1");
}

// Retention merges rows of heartbeats: the merged row has the time of its newest part.
TEST(Sources, of_a_row_of_heartbeats_are_those_of_its_parts) {
  Heard one_by_one;
  for (int i = 0; i < 5; ++i) one_by_one.beats(ReportOrigin::agent, {});
  EXPECT_EQ(one_by_one.text(), "agent 5 1-5");

  History merged;
  Heartbeats row{.count = 5};
  row.first_stored = Instant{Millis{1'001'000}};
  Event event{.seq = 5,
              .session = 1,
              .tick = Instant{Millis{1'005'000}},
              .at = first_moment + Millis{5'000},
              .origin = ReportOrigin::agent};
  event.report.detail = row;
  apply(merged, event, {});
  ASSERT_EQ(merged.sources.size(), 1U);
  EXPECT_EQ(merged.sources[0].reports, 5);
  EXPECT_EQ(merged.sources[0].first, first_moment + Millis{1'000});
  EXPECT_EQ(merged.sources[0].last, first_moment + Millis{5'000});
}

TEST(Sources, note_what_each_has_told) {
  const auto told = [](const Heard& heard) {
    std::string all;
    for (const auto& source : heard.history.sources) {
      all += std::string(all.empty() ? "" : "; ") + std::string(name_of(source.origin));
      for (std::size_t at = 0; at < std::size(Names<Told>::all); ++at)
        if ((source.told >> at & 1U) != 0) all += " " + std::string(Names<Told>::all[at]);
    }
    return all;
  };
  const Report call{.kind = ReportKind::tool_call, .name = "ls"};
  Report used{.kind = ReportKind::budget};
  Heard heard;
  heard.by(ReportOrigin::otlp, call).by(ReportOrigin::otlp, used);
  heard.beats(ReportOrigin::agent, {.counters = {{"tokens", 0}, {"bytes", 9}}});
  EXPECT_EQ(told(heard), "otlp; agent") << "a call that is over, and no tokens yet";
  used.detail = BudgetFigures{.tokens = 5};
  heard.by(ReportOrigin::otlp, used).by(ReportOrigin::hooks, call);
  heard.beats(ReportOrigin::proxy, {.counters = {{"tokens", 7}}});
  heard.by(ReportOrigin::proxy, {.kind = ReportKind::evidence});
  heard.by(ReportOrigin::hooks, {.kind = ReportKind::wait, .name = "quota"});
  heard.by(ReportOrigin::hooks, {.kind = ReportKind::wait, .name = "approval"});
  heard.by(ReportOrigin::agent, ended());
  EXPECT_EQ(told(heard), "otlp tokens; agent end; hooks calls questions; proxy tokens server");
}

TEST(Sources, are_as_many_as_origins_at_most_and_survive_a_snapshot) {
  std::mt19937 random(test::random_seed());
  constexpr auto origins = std::size(Names<ReportOrigin>::all);
  for (int round = 0; round < test::repetitions(500); ++round) {
    Heard heard;
    std::int64_t count = 0;
    for (auto left = random() % 60; left > 0; --left, ++count)
      heard.by(static_cast<ReportOrigin>(random() % origins));
    ASSERT_LE(heard.history.sources.size(), origins);
    std::int64_t reports = 0;
    for (const auto& source : heard.history.sources) reports += source.reports;
    ASSERT_EQ(reports, count);
    Case judged;
    judged.session = 1;
    judged.history = heard.history;
    judged.health.valid_until = never;
    Case restored;
    restored.session = 1;
    ASSERT_TRUE(read_snapshot(restored, snapshot_of(judged)).ok());
    ASSERT_EQ(snapshot_of(restored), snapshot_of(judged));
    ASSERT_EQ(restored.history.sources.size(), heard.history.sources.size());
  }
}

TEST(Sources, of_a_foreign_snapshot_are_read_only_where_they_are_known) {
  Case judged;
  judged.history = Heard().by(ReportOrigin::hooks).history;
  judged.health.valid_until = never;
  const auto whole = json::parse(snapshot_of(judged));
  const auto reads = [&](json sources) {
    auto snapshot = whole;
    snapshot["history"]["sources"] = std::move(sources);
    Case restored;
    return read_snapshot(restored, snapshot.dump()).ok();
  };
  auto older = whole;
  older["history"].erase("sources");
  Case restored;
  ASSERT_TRUE(read_snapshot(restored, older.dump()).ok()) << "an older program wrote it";
  EXPECT_TRUE(restored.history.sources.empty());
  EXPECT_TRUE(reads(whole["history"]["sources"]));
  EXPECT_FALSE(reads(json::array({{77, 1, 1, 1}}))) << "a newer program's origin: fold the events";
  EXPECT_FALSE(reads(json::array({{2, 1}})));
  json many = json::array();
  for (int i = 0; i < 10; ++i) many.push_back({2, 1, 1, 1});
  EXPECT_FALSE(reads(many)) << "more than there are origins";
}

TEST(Sources, are_in_the_progress_document_and_on_the_event) {
  Heard heard;
  heard.by(ReportOrigin::hooks).by(ReportOrigin::otlp);
  Case judged;
  judged.history = heard.history;
  const auto document = json::parse(
      progress_document("s", judged, description_of({}), judged.history.tick, judged.history.at));
  EXPECT_EQ(
      document["sources"].dump(),
      R"([{"firstAt":1790000001000,"lastAt":1790000001000,"reports":1,"source":"hooks","told":[]},)"
      R"({"firstAt":1790000002000,"lastAt":1790000002000,"reports":1,"source":"otlp","told":[]}])");
  Event event{.seq = 1, .origin = ReportOrigin::transcript};
  EXPECT_EQ(json::parse(to_json(event))["origin"], "transcript");
  event.origin = ReportOrigin::unknown;
  EXPECT_FALSE(json::parse(to_json(event)).contains("origin"));
  const auto read = report_from_json(R"({"kind":"idle","origin":"hooks"})");
  EXPECT_TRUE(read && *read) << "the member is passed over, and claims nothing";
}

TEST(Sources, no_change_is_younger_than_the_newest_report_says) {
  const auto after = test::replay("S hhhhh");
  const auto& history = after.judged.history;
  const auto wall = history.at + Millis{7'200'000};
  EXPECT_EQ(changed_at(history, after.now, wall), history.at) << "it came two hours late";
  const auto soon = newest_report(history) + Millis{1};
  EXPECT_EQ(changed_at(history, after.now, soon), soon - (after.now - history.last_change));
}

}  // namespace
}  // namespace watchdog
