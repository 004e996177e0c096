/// \file
/// Short ways to ask a model's server that a test plays.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/model_replies.h"
#include "support/model_server.h"
#include "watchdog/model_client.h"

namespace watchdog::test {

using Exchange = ModelServer::Exchange;

inline ModelClient client_to(const ModelServer& server, ModelClient::Options options = {}) {
  options.base_url = server.base_url();
  auto client = ModelClient::to(std::move(options));
  EXPECT_TRUE(client.ok());
  return std::move(*client);
}

inline ChatRequest question(std::string text = "Well?") {
  return {.messages = {{.role = "user", .content = std::move(text)}}};
}

/// A server that is `be` where no question is asked, and answers questions its own way.
inline ModelServer::Handler answering(std::function<void(Exchange&)> answer,
                                      std::function<void(Exchange&)> be = be_unknown) {
  return [answer = std::move(answer), be = std::move(be)](Exchange& exchange) {
    exchange.is_chat() ? answer(exchange) : be(exchange);
  };
}

/// Asks a server that answers by `answer`, and returns the result.
inline Result<ChatAnswer, Failure> ask(std::function<void(Exchange&)> answer,
                                       ModelClient::Options options = {}) {
  const ModelServer server(answering(std::move(answer)));
  return client_to(server, std::move(options)).chat(question());
}

}  // namespace watchdog::test
