// Members of events that nothing reads are named: a misspelt one would be lost without a word.
#include <gtest/gtest.h>

#include "codec/json.h"

namespace watchdog {
namespace {

std::string about(const std::string& event) {
  const auto list = reports_from_json(event);
  return list && list->unknown_member ? list->unknown_member->message : std::string();
}

TEST(StrictEvents, a_member_that_is_not_read_is_named_with_the_nearest_one) {
  struct Row {
    const char* event;
    const char* named;
    const char* nearest;
  };
  for (const auto& row :
       {Row{R"({"kind":"wait","waiting_for":"quota","until":17})", "until", "until_ms"},
        Row{R"({"kind":"tool_call","name":"ls","arg":{}})", "arg", "args"},
        Row{R"({"kind":"state_change","type":"x","dta":{}})", "dta", "data"},
        Row{R"({"kind":"heartbeat","iterations":3})", "iterations", "iteration"},
        Row{R"({"kind":"budget","token":3})", "token", "tokens"},
        Row{R"({"kind":"end","outcome":"completed","reson":"done"})", "reson", "reason"}}) {
    const auto said = about(row.event);
    EXPECT_NE(said.find("\"" + std::string(row.named) + "\""), said.npos)
        << row.event << ": " << said;
    EXPECT_NE(said.find(row.nearest), said.npos) << row.event << ": " << said;
    EXPECT_FALSE(strict_report_from_json(row.event)) << row.event;
    EXPECT_TRUE(*report_from_json(row.event)) << "it is read all the same: " << row.event;
  }
}

TEST(StrictEvents, events_that_are_right_are_read_without_a_word) {
  for (
      const char* event :
      {R"({"kind":"wait","waiting_for":"quota","until_ms":17,"provider":"x"})",
       R"({"kind":"tool_call","name":"ls","args":{"a":1},"call_id":"c","turn_id":"t","deadline_ms":5})",
       R"({"kind":"state_change","type":"x","data":{"any":{"thing":1}},"ts_ms":1})",
       R"({"kind":"heartbeat","iteration":3,"phase":"model","source":"loop","counters":{"tokens":1}})",
       R"({"kind":"message","name":"assistant","text":"hi","args":null})",
       R"({"kind":"end","outcome":"failed","reason":"error","error":"no"})",
       R"({"kind":"user_input","text":null})"}) {
    EXPECT_EQ(about(event), "") << event;
    EXPECT_TRUE(strict_report_from_json(event)) << event;
  }
}

TEST(StrictEvents, members_that_the_store_adds_are_known) {
  Event event;
  event.seq = 7;
  event.origin = ReportOrigin::hooks;
  event.report = {.kind = ReportKind::tool_call, .name = "ls", .content = "{}", .call_id = "c"};
  event.report.bytes = 9;
  event.report.digest = 5;
  EXPECT_TRUE(strict_report_from_json(to_json(event))) << to_json(event);
  event.report = {};
  event.report.detail = Heartbeats{};
  EXPECT_TRUE(strict_report_from_json(to_json(event))) << to_json(event);
}

}  // namespace
}  // namespace watchdog
