/// \file
/// A proxy's side of things, played: what it sees goes into a recorder.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/sessions/session_recorder.h"

namespace watchdog::test {

using monitor::AnswerBegan;
using monitor::AnswerPiece;
using monitor::AnswerSkipped;
using monitor::ExchangeBegan;
using monitor::ExchangeEnded;
using monitor::ExchangeEvidence;
using monitor::ExchangeReached;
using monitor::Observation;
using monitor::SessionRecorder;
using nlohmann::json;
using How = ExchangeEnded::How;

inline json user(const std::string& text) {
  return {{"role", "user"}, {"content", text}};
}
inline json agent(const std::string& text) {
  return {{"role", "assistant"}, {"content", text}};
}
inline json asked_call(const std::string& id, const std::string& arguments = "{}",
                       const std::string& tool = "run") {
  return {{"id", id}, {"function", {{"name", tool}, {"arguments", arguments}}}};
}
inline json calls(const std::vector<json>& list) {
  return {{"role", "assistant"}, {"tool_calls", list}};
}
inline json result(const std::string& id, const std::string& text) {
  return {{"role", "tool"}, {"tool_call_id", id}, {"content", text}};
}

/// A report as a word or two.
inline std::string shown(const Report& report) {
  std::string word(name_of(report.kind));
  if (const auto* beats = std::get_if<Heartbeats>(&report.detail)) {
    word = std::string(name_of(beats->source));
    if (beats->iteration) word += " " + std::to_string(*beats->iteration);
    if (!beats->phase.empty()) word += " " + beats->phase;
    for (const auto& [name, count] : beats->counters)
      if (count > 0) word += " " + name + "=" + std::to_string(static_cast<int>(count));
    return word;
  }
  if (const auto* evidence = std::get_if<Evidence>(&report.detail)) {
    word += " " + std::string(name_of(evidence->state));
    if (evidence->done > 0) word += " " + std::to_string(evidence->done);
  }
  if (!report.name.empty()) word += " " + report.name;
  if (!report.call_id.empty()) word += " #" + report.call_id;
  if (!report.content.empty()) word += " '" + report.content.substr(0, 60) + "'";
  return word;
}

/// A proxy's side of things: feeds a recorder and keeps what it says.
class Relaying : public testing::Test {
 protected:
  bool is_gone = false;  ///< Whatever process is asked about.
  SessionRecorder recorder{{.is_gone = [this](const ProcessFacts&) { return is_gone; }}};
  WallTime now{Millis{1'700'000'000'000}};
  std::uint64_t exchanges = 0;
  std::vector<Batch> reported;
  std::string session = "s";
  std::map<std::string, std::string> extra;  ///< Headers.
  std::string server;                        ///< The URL of the model's.
  std::optional<ProcessFacts> process;       ///< The client's process.

  void hear(std::vector<Batch> batches) {
    for (auto& batch : batches) {
      EXPECT_EQ(batch.creation, Creation::attach);
      EXPECT_TRUE(check(batch.spec).ok());
      reported.push_back(std::move(batch));
    }
  }
  void see(std::uint64_t exchange, decltype(Observation::what) what) {
    hear(recorder.record({.exchange = exchange, .at = now, .what = std::move(what)}));
  }
  /// The reports since the last call.
  std::string news() {
    std::string all;
    for (const auto& batch : std::exchange(reported, {}))
      for (const auto& report : batch.reports)
        all += (all.empty() ? "" : "; ") + (batch.session == "s" ? "" : batch.session + ": ") +
               shown(report);
    return all;
  }

  std::uint64_t begin(const std::vector<json>& messages,
                      const char* target = "/v1/chat/completions") {
    ExchangeBegan began{
        .method = "POST", .target = target, .session = session, .peer = "::1", .server = server};
    for (const auto& [name, value] : extra) began.headers.emplace_back(name, value);
    began.body = std::make_shared<std::string>(
        json{{"model", "m"}, {"stream", true}, {"messages", messages}}.dump());
    began.process = process;
    see(++exchanges, std::move(began));
    return exchanges;
  }
  void head(std::uint64_t exchange, int status = 200, std::string coding = {}) {
    see(exchange, AnswerBegan{.status = status,
                              .content_type = "text/event-stream",
                              .content_encoding = std::move(coding)});
  }
  void delta(std::uint64_t exchange, const json& delta, const char* finish = nullptr) {
    json choice = {{"index", 0}, {"delta", delta}};
    if (finish != nullptr) choice["finish_reason"] = finish;
    see(exchange,
        AnswerPiece{
            "data: " + json{{"id", "c" + std::to_string(exchange)}, {"choices", {choice}}}.dump() +
            "\n\n"});
  }
  void end(std::uint64_t exchange, How how = How::answered, std::string message = {}) {
    see(exchange, ExchangeEnded{.how = how, .message = std::move(message)});
  }
  void answer_text(std::uint64_t exchange, const std::string& text) {
    head(exchange);
    delta(exchange, {{"content", text}}, "stop");
    end(exchange);
  }
  void answer_calls(std::uint64_t exchange, const std::vector<json>& list) {
    head(exchange);
    json numbered = list;
    for (std::size_t at = 0; at < numbered.size(); ++at) numbered[at]["index"] = at;
    delta(exchange, {{"tool_calls", numbered}}, "tool_calls");
    end(exchange);
  }
};

}  // namespace watchdog::test
