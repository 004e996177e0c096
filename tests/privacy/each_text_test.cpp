// Properties of every text of a report and of a session, also of a member that is added later.
#include "privacy/each_text.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codec/json.h"
#include "privacy/content.h"
#include "privacy/redaction.h"

namespace watchdog {
namespace {

using Texts = std::vector<std::string>;

template <class T>
Texts texts_of(const T& whole) {
  Texts all;
  each_text(whole, [&](const std::string& text) { all.push_back(text); });
  return all;
}

/// Puts a text of its own, which begins so, in the place of each one; keys of maps stay.
template <class T>
void fill(T& whole, const std::string& begin) {
  int number = 100;
  each_text(whole, [&]<class Text>(Text& text) {
    ++number;
    if constexpr (!std::is_const_v<Text>) text = begin + std::to_string(number);
  });
}

template <class T>
Report with(ReportKind kind, T detail) {
  Report report;
  report.kind = kind;
  report.detail = std::move(detail);
  return report;
}

/// One of each detail, of a kind that has it.
std::vector<Report> all_reports() {
  const std::string key = "sk-abcdefghijklmnopqrstuvw";
  PolicyPatch policy;
  policy.tools[key + "0"] = {.use = ToolUse::poll, .identity = {"x"}};
  return {with(ReportKind::heartbeat, Heartbeats{.counters = {{"x", 1.0}, {"y", 2.0}}}),
          with(ReportKind::start, ProcessFacts{}),
          with(ReportKind::end, Outcome{.kind = OutcomeKind::failed}),
          with(ReportKind::cancel, CancelRequest{}),
          with(ReportKind::policy, policy),
          with(ReportKind::observer, ObserverGap{}),
          with(ReportKind::gap, LostReports{}),
          with(ReportKind::opinion, Opinion{}),
          with(ReportKind::budget, BudgetFigures{}),
          with(ReportKind::limit, LimitPassed{}),
          with(ReportKind::turn, TurnFacts{}),
          with(ReportKind::tool_progress, ToolProgress{}),
          with(ReportKind::evidence, Evidence{}),
          with(ReportKind::tool_call, Marks{}),
          with(ReportKind::tool_result, Marks{})};
}

SessionSpec whole_session() {
  SessionSpec spec;
  spec.labels = {{"team", "x"}};
  spec.policy.tools["build"] = {.identity = {"x"}};
  spec.process = ProcessFacts{};
  return spec;
}

TEST(EachText, covers_every_kind_of_detail) {
  std::set<std::size_t> seen{0};
  for (const auto& report : all_reports()) seen.insert(report.detail.index());
  EXPECT_EQ(seen.size(), std::variant_size_v<Detail>);
}

TEST(EachText, has_no_secret_after_it_was_redacted) {
  for (auto report : all_reports()) {
    fill(report, "sk-abcdefghijklmnopqrstuvw");
    seal(report, ContentLevel::full);
    for (const auto& text : texts_of(report))
      EXPECT_EQ(text.find("sk-abcdef"), std::string::npos) << name_of(report.kind) << ": " << text;
  }
  auto spec = whole_session();
  fill(spec, "sk-abcdefghijklmnopqrstuvw");
  spec.labels.emplace("sk-abcdefghijklmnopqrstuvw", "x");
  spec.parent.clear();  // an id is a name
  redact(spec);
  for (const auto& text : texts_of(spec)) EXPECT_EQ(text.find("sk-abcdef"), std::string::npos);
}

TEST(EachText, counts_towards_the_memory_that_a_report_takes) {
  const auto grow = [](auto whole) {
    const auto count = texts_of(whole).size();
    for (std::size_t chosen = 0; chosen < count; ++chosen) {
      auto longer = whole;
      std::size_t at = 0;
      bool is_key = false;
      each_text(longer, [&]<class Text>(Text& text) {
        if (at++ != chosen) return;
        if constexpr (std::is_const_v<Text>) {
          is_key = true;
        } else {
          text.append(1'000, 'x');
        }
      });
      if (is_key) continue;
      EXPECT_EQ(text_bytes(longer), text_bytes(whole) + 1'000) << chosen;
    }
  };
  for (const auto& report : all_reports()) grow(report);
  grow(whole_session());
}

TEST(EachText, of_a_session_survives_export_and_import) {
  auto spec = whole_session();
  fill(spec, "word");
  spec.process.reset();  // the event of its start has it
  std::string id;
  const auto read = session_spec_from_json(to_json(spec), id);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(texts_of(*read), texts_of(spec));
}

TEST(EachText, of_a_report_is_in_its_export) {
  // Texts that a kind does not have; its reader ignores them.
  const auto is_foreign = [](const Report& report, const std::string& text) {
    if (text == report.name) return report.kind == ReportKind::heartbeat;  // it has a phase
    if (text == report.turn) return report.kind != ReportKind::tool_call;
    if (text == report.provider) return report.kind != ReportKind::wait;
    return text == report.call_id && report.kind == ReportKind::cancel;
  };
  for (auto report : all_reports()) {
    fill(report, "word");
    // Both are the limit; its reader sets them together.
    if (auto* limit = std::get_if<LimitPassed>(&report.detail)) limit->name = report.name;
    if (auto* process = std::get_if<ProcessFacts>(&report.detail)) process->pid = 1;
    const auto json = to_json(Event{.seq = 1, .report = report});
    for (const auto& text : texts_of(report)) {
      if (is_foreign(report, text)) continue;
      EXPECT_NE(json.find(text), std::string::npos) << text << " is missing: " << json;
    }
  }
}

}  // namespace
}  // namespace watchdog
