/// \file
/// A whole model server on loopback: every API, simulated inference, faults on demand.
///
/// Beside what the real ones answer: `POST /_scenario` with JSON changes what it is like, `GET
/// /_scenario` shows its virtual time, `GET /_log` every request so far and what became of it,
/// `DELETE /_log` forgets them.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/backend_scenario.h"
#include "support/dialect.h"
#include "support/live_server.h"
#include "support/model_server.h"
#include "support/ollama_child.h"

namespace watchdog::test {

/// Thread-safe.
class ModelBackend {
 public:
  struct Options {
    std::string scenario = "{}";
    double time_scale = 1;  ///< Virtual seconds a real one.
    double burn = 0.1;      ///< Real cores for each that it would use.
    std::uint16_t port = 0;
    bool is_child = false;  ///< Of Ollama: ends the program where a server would end.
  };
  explicit ModelBackend(const Options& options);
  ~ModelBackend();
  ModelBackend(const ModelBackend&) = delete;
  ModelBackend& operator=(const ModelBackend&) = delete;

  /// Without `/v1`.
  [[nodiscard]] std::string url() const;
  /// Returns what is wrong with it; empty: nothing.
  std::string change(const std::string& scenario);

 private:
  using Exchange = ModelServer::Exchange;
  struct Logged {
    std::int64_t at_ms = 0;  // virtual
    ServedRequest request;
    std::string state;  // open, answered, cancelled, lost
  };
  using LoggedAt = std::shared_ptr<Logged>;
  using Pieces = std::function<std::vector<Piece>()>;

  void serve(Exchange& exchange);
  void serve_control(Exchange& exchange, const std::string& path);
  void serve_feed(Exchange& exchange);
  [[nodiscard]] std::string send_answer(Exchange& exchange, const std::string& path,
                                        Question question);
  [[nodiscard]] std::string answer(Exchange& exchange, const Spoken& spoken);
  [[nodiscard]] std::string write_answer(Exchange& exchange, Dialect& dialect,
                                         const ScriptedAnswer& answer, const Pieces& next);
  [[nodiscard]] std::uint16_t child_port();
  [[nodiscard]] std::int64_t cached(const ScriptedAnswer& answer);
  [[nodiscard]] BackendScenario scenario();
  [[nodiscard]] std::string log();

  Options options_;
  std::mutex mutex_;
  BackendScenario scenario_;
  std::string scenario_text_ = "{}";  // the scenario as JSON, for a child
  ServerView metrics_before_;
  std::deque<LoggedAt> log_;
  std::deque<std::string> prompts_;  // the newest
  OllamaChild child_;
  std::unique_ptr<LiveServer> live_;
  std::unique_ptr<ModelServer> server_;  // its threads use all of this
};

}  // namespace watchdog::test
