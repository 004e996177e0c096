// Events of sessions become spans and log records of OpenTelemetry.
#include "export/span_maker.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "export/otlp_exporter.h"
#include "store/transition_reader.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// A maker, and sessions by their keys.
class Spans : public testing::Test {
 protected:
  std::map<SessionKey, SessionRow> rows_;
  SpanMaker maker_{[this](SessionKey key) -> std::optional<SessionRow> {
    const auto found = rows_.find(key);
    return found == rows_.end() ? std::nullopt : std::optional(found->second);
  }};
  Seq seq_ = 0;

  void session(SessionKey key, const std::string& id, const std::string& parent = {},
               const std::string& via = {}) {
    auto& row = rows_[key];
    row.key = key;
    row.id = id;
    row.spec.agent = id + "-agent";
    row.spec.parent = parent;
    if (!via.empty()) row.spec.labels["via"] = via;
  }
  Event event(SessionKey key, ReportKind kind, const std::string& name = {},
              const std::string& call = {}) {
    ++seq_;
    Event made{.seq = seq_, .session = key, .at = WallTime{Millis{1'000 * seq_}}};
    made.report.kind = kind;
    made.report.name = name;
    made.report.call_id = call;
    return made;
  }
  void add_event(SessionKey key, ReportKind kind, const std::string& name = {},
                 const std::string& call = {}) {
    maker_.add(event(key, kind, name, call));
  }
  void ends(SessionKey key, OutcomeKind kind) {
    auto end = event(key, ReportKind::end);
    end.report.detail = Outcome{.kind = kind, .reason = "why", .error = {}};
    maker_.add(end);
  }
  void changes(SessionKey key, HealthKind from, HealthKind to, const std::string& reason) {
    TransitionRow row{.id = seq_};
    row.transition.session = key;
    row.transition.seq = seq_;
    row.transition.at = WallTime{Millis{1'000 * seq_ + 1}};
    row.transition.from = from;
    row.transition.health.kind = to;
    row.transition.reason = reason;
    maker_.add(row);
  }
  std::vector<json> items_of(ExportSignal signal) {
    std::vector<json> all;
    for (const auto& item : maker_.drain_items())
      if (item.signal == signal) all.push_back(json::parse(item.json));
    return all;
  }
  static std::string attribute(const json& item, const std::string& name) {
    for (const auto& pair : item["attributes"])
      if (pair["key"] == name) return pair["value"]["stringValue"];
    return {};
  }
};

TEST_F(Spans, a_turn_is_a_trace_with_a_span_for_each_call) {
  session(1, "s");
  add_event(1, ReportKind::user_input);
  add_event(1, ReportKind::tool_call, "shell", "a");
  add_event(1, ReportKind::tool_call, "read", "b");
  add_event(1, ReportKind::error, "read", "b");
  add_event(1, ReportKind::tool_result, "shell", "a");
  add_event(1, ReportKind::idle);
  const auto spans = items_of(ExportSignal::traces);
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0]["name"], "execute_tool read");
  EXPECT_EQ(spans[0]["startTimeUnixNano"], "3000000000");
  EXPECT_EQ(spans[0]["endTimeUnixNano"], "4000000000");
  EXPECT_EQ(spans[0]["status"]["code"], 2);
  EXPECT_EQ(attribute(spans[0], "error.type"), "tool_error");
  EXPECT_EQ(spans[1]["status"]["code"], 0);
  EXPECT_EQ(attribute(spans[1], "gen_ai.tool.call.id"), "a");
  const auto& turn = spans[2];
  EXPECT_EQ(turn["name"], "invoke_agent s-agent");
  EXPECT_FALSE(turn.contains("parentSpanId"));
  for (const auto at : {0U, 1U}) {
    EXPECT_EQ(spans[at]["parentSpanId"], turn["spanId"]);
    EXPECT_EQ(spans[at]["traceId"], turn["traceId"]);
  }
  EXPECT_EQ(turn["traceId"].get<std::string>().size(), 32U);
  EXPECT_EQ(turn["spanId"].get<std::string>().size(), 16U);
  EXPECT_NE(spans[0]["spanId"], spans[1]["spanId"]);
  add_event(1, ReportKind::user_input);
  add_event(1, ReportKind::idle);
  EXPECT_NE(items_of(ExportSignal::traces).at(0)["traceId"], turn["traceId"]);
}

TEST_F(Spans, rest_and_asides_begin_no_turn) {
  session(1, "s");
  for (const auto kind : {ReportKind::idle, ReportKind::policy, ReportKind::budget,
                          ReportKind::cancel, ReportKind::exited})
    add_event(1, kind);
  ends(1, OutcomeKind::completed);
  EXPECT_TRUE(items_of(ExportSignal::traces).empty());
}

TEST_F(Spans, an_end_closes_what_is_open) {
  session(1, "s");
  add_event(1, ReportKind::tool_call, "shell");
  ends(1, OutcomeKind::failed);
  const auto spans = items_of(ExportSignal::traces);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(attribute(spans[0], "error.type"), "no_result");
  EXPECT_EQ(attribute(spans[1], "error.type"), "why");
  EXPECT_EQ(attribute(spans[1], "watchdog.outcome"), "failed");
}

TEST_F(Spans, a_request_that_the_proxy_saw_is_a_chat) {
  session(1, "s");
  auto beat = event(1, ReportKind::heartbeat);
  beat.report.detail = Heartbeats{.source = Source::relay};
  maker_.add(beat);
  maker_.add(beat);
  add_event(1, ReportKind::message, "assistant");
  add_event(1, ReportKind::idle);
  const auto spans = items_of(ExportSignal::traces);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(attribute(spans[0], "gen_ai.operation.name"), "chat");
  EXPECT_EQ(spans[0]["startTimeUnixNano"], "1000000000");
  EXPECT_EQ(spans[0]["endTimeUnixNano"], "2000000000");
}

TEST_F(Spans, a_session_below_another_is_in_its_trace) {
  session(1, "above");
  session(2, "below", "above");
  add_event(1, ReportKind::user_input);
  add_event(2, ReportKind::user_input);
  ends(2, OutcomeKind::completed);
  add_event(1, ReportKind::idle);
  const auto spans = items_of(ExportSignal::traces);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0]["traceId"], spans[1]["traceId"]);
  EXPECT_EQ(spans[0]["parentSpanId"], spans[1]["spanId"]);
}

TEST_F(Spans, a_change_of_health_is_an_event_and_a_log_record) {
  session(1, "s");
  add_event(1, ReportKind::user_input);
  changes(1, HealthKind::starting, HealthKind::looping,
          "Repeats sk-ant-api03-" + std::string(90, 'x') + "AA");
  add_event(1, ReportKind::idle);
  std::vector<json> logs;
  std::vector<json> spans;
  for (const auto& item : maker_.drain_items())
    (item.signal == ExportSignal::logs ? logs : spans).push_back(json::parse(item.json));
  ASSERT_EQ(logs.size(), 1U);
  EXPECT_EQ(logs[0]["severityText"], "WARN");
  EXPECT_EQ(attribute(logs[0], "watchdog.health"), "looping");
  EXPECT_EQ(logs[0]["traceId"], spans.at(0)["traceId"]);
  EXPECT_EQ(attribute(spans[0]["events"].at(0), "watchdog.health.before"), "starting");
  EXPECT_EQ(logs[0].dump().find("xxxx"), std::string::npos);
  EXPECT_EQ(spans[0].dump().find("xxxx"), std::string::npos);
}

TEST_F(Spans, sessions_of_telemetry_export_no_spans) {
  session(1, "s", {}, "otlp");
  add_event(1, ReportKind::tool_call, "shell");
  changes(1, HealthKind::starting, HealthKind::progressing, "it works");
  add_event(1, ReportKind::idle);
  const auto items = maker_.drain_items();
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0].signal, ExportSignal::logs);
}

TEST_F(Spans, late_and_unknown_events_are_left_out) {
  auto late = event(1, ReportKind::user_input);
  late.late = true;
  session(1, "s");
  maker_.add(late);
  add_event(7, ReportKind::user_input);
  add_event(observer_key, ReportKind::observer);
  ends(1, OutcomeKind::completed);
  ends(7, OutcomeKind::completed);
  EXPECT_TRUE(maker_.drain_items().empty());
}

TEST_F(Spans, many_calls_and_sessions_stay_within_bounds) {
  for (SessionKey key = 1; key <= 5'000; ++key) {
    session(key, "s" + std::to_string(key));
    add_event(key, ReportKind::user_input);
  }
  for (int call = 0; call < 1'000; ++call)
    add_event(5'000, ReportKind::tool_call, "shell", "c" + std::to_string(call));
  add_event(5'000, ReportKind::idle);
  EXPECT_EQ(items_of(ExportSignal::traces).size(), SpanMaker::calls_max + 1);
}

TEST(ExportHeaders, are_names_and_values) {
  EXPECT_EQ(*export_headers("# a comment\n\nX-Key:  a b \r\nAuthorization: Bearer c"),
            (ExportHeaders{{"X-Key", "a b"}, {"Authorization", "Bearer c"}}));
  for (const auto* wrong : {"no colon", ": no name", "bad name: x", "X\x01: y"})
    EXPECT_FALSE(export_headers(wrong).ok()) << wrong;
  std::string many;
  for (int line = 0; line < 17; ++line) many += "X: y\n";
  EXPECT_FALSE(export_headers(many).ok());
}

}  // namespace
}  // namespace watchdog::monitor
