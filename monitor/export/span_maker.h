/// \file
/// Sessions as OpenTelemetry: spans and log records, in OTLP's JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/store_reader.h"
#include "store/transition_reader.h"

namespace watchdog::monitor {

/// The kinds of telemetry that are exported, by the last part of their path.
enum class ExportSignal : std::uint8_t { traces, logs };

/// One span or log record. A plain value.
struct ExportItem {
  ExportSignal signal = ExportSignal::traces;
  std::string json;
};

using RowLookUp = std::function<std::optional<SessionRow>(SessionKey key)>;

/// Makes a trace of each turn of a session, after the GenAI conventions. Below its `invoke_agent`
/// span are a span for each call of a tool (`execute_tool`), and one for each request to the model
/// that the proxy saw (`chat`). A change of health is an event of the `invoke_agent` span, and a
/// log record. A session below another one is in its trace. Ids follow from sessions and event
/// numbers, so the same events give the same spans. Contents are not exported. Sessions that only
/// OpenTelemetry reported have no spans, because their agent exports its own. Use from one thread
/// at a time.
class SpanMaker {
 public:
  static constexpr std::size_t sessions_max = 4'096;
  static constexpr std::size_t calls_max = 256;    ///< Open ones of a session.
  static constexpr std::size_t changes_max = 128;  ///< Of health, of a span.

  /// `look_up` is asked for a session when it is first seen.
  explicit SpanMaker(RowLookUp look_up) : look_up_(std::move(look_up)) {}

  void add(const Event& event);
  void add(const TransitionRow& row);
  /// Returns what is complete since the last call, in order.
  [[nodiscard]] std::vector<ExportItem> drain_items();

 private:
  struct Call {
    std::string id;
    std::string name;
    Seq seq = 0;
    WallTime begin{};
  };
  struct Change {
    WallTime at{};
    HealthKind from = HealthKind::unknown;
    HealthKind to = HealthKind::unknown;
    std::string reason;
  };
  /// A session. `span` and `begin` are those of the open turn.
  struct Work {
    std::string id;
    std::string parent;
    std::string agent;
    std::string model;
    bool has_own_spans = false;
    std::string trace;  ///< Hex, like the next two; empty: no turn is open.
    std::string span;
    std::string above;  ///< The span of the parent; empty: none.
    WallTime begin{};
    std::vector<Call> calls;
    std::optional<Call> chat;
    std::vector<Change> changes;
  };
  struct Span;

  Work* work_of(SessionKey key);
  void begin(Work& work, const Event& event);
  void end(Work& work, const Event& event);
  void end_call(Work& work, const Event& event);
  void end_chat(Work& work, WallTime at);
  void add(const Work& work, const Span& span);

  RowLookUp look_up_;
  std::unordered_map<SessionKey, Work> works_;
  std::unordered_map<std::string, SessionKey> by_id_;
  std::vector<ExportItem> items_;
};

/// Returns a request with the items, which are all of one signal.
[[nodiscard]] std::string export_request(ExportSignal signal, const std::vector<std::string>& items,
                                         const std::string& version);

}  // namespace watchdog::monitor
