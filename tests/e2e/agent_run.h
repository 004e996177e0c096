/// \file
/// The example agent on a file of its own, and the words of its model's server.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/model_replies.h"
#include "support/model_server.h"
#include "support/server.h"
#include "support/temp_dir.h"

namespace watchdog::monitor {

using nlohmann::json;
using test::ModelServer;
using test::Process;
using test::Server;
using Exchange = ModelServer::Exchange;

class AgentRun : public testing::Test {
 protected:
  test::TempDir dir;
  std::filesystem::path path = dir / "w.db";

  AgentRun() { std::ofstream(dir / "note.txt") << "slow is not stuck"; }

  /// The options of the agent's process. The settings of the user who runs the tests do not apply.
  [[nodiscard]] Process::Options with(const std::string& model,
                                      std::vector<std::string> more = {}) const {
    more.insert(more.end(),
                {"XDG_CONFIG_HOME=" + (dir / "none").string(),
                 "WATCHDOG_CONFIG=", "WATCHDOG_DB=" + path.string(), "WATCHDOG_SESSION=agent",
                 "OPENAI_BASE_URL=" + model, "OPENAI_API_KEY=sk-never-shown-0123456789"});
    return {.environment = std::move(more)};
  }
  [[nodiscard]] std::vector<std::string> agent() const {
    return {WATCHDOG_EXAMPLE_AGENT, "What is in here?", dir.path().string()};
  }
  /// Its progress document once its end was read from the file.
  static json ended(Server& server) {
    return until(server, "/api/autonomous/progress/agent",
                 [](const json& document) { return document["outcome"].is_object(); });
  }
  static json outcome(Server& server) { return ended(server)["outcome"]; }

  /// Asks until it holds; only the test's own limit ends it otherwise.
  template <class Holds>
  static json until(Server& server, const std::string& target, Holds holds) {
    while (true) {
      const auto response = server.get(target);
      auto body = json::parse(response.body, nullptr, false);
      if (response.status == 200 && holds(body)) return body;
      std::this_thread::yield();
    }
  }
};

/// Not the model's own words, but those of the server's protocol.
inline ModelServer::Handler answering(std::function<void(Exchange&)> answer) {
  return [answer = std::move(answer)](Exchange& exchange) {
    exchange.is_chat() ? answer(exchange) : test::be_unknown(exchange);
  };
}

inline std::string tool_call(const std::string& name, const std::string& arguments,
                             int number = 1) {
  return test::delta(json{{"tool_calls",
                           {{{"index", number - 1},
                             {"id", "call_" + std::to_string(number)},
                             {"type", "function"},
                             {"function", {{"name", name}, {"arguments", arguments}}}}}}}
                         .dump());
}

}  // namespace watchdog::monitor
