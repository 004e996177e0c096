// The model of the demo's example agent: a server that speaks the streaming protocol, at the speed
// of a large model on a small machine. A script decides its replies: it asks for a list of files,
// then for each file, then for one command, and then gives an answer.

#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/model_replies.h"
#include "support/model_server.h"
#include "usage.h"

namespace {

using nlohmann::json;
using watchdog::test::ModelServer;
using Exchange = ModelServer::Exchange;
using namespace std::chrono_literals;

constexpr auto word_time = 250ms;
constexpr auto prompt_piece_time = 400ms;
constexpr int batch_tokens = 2'048;

json chunk(json delta, json finish = nullptr) {
  return {{"object", "chat.completion.chunk"},
          {"model", "demo-model"},
          {"choices",
           {{{"index", 0}, {"delta", std::move(delta)}, {"finish_reason", std::move(finish)}}}}};
}

/// Reads the prompt in pieces, and says how far it is, as llama.cpp does.
bool read_prompt(Exchange& exchange, std::size_t bytes) {
  const auto total = static_cast<int>(bytes / 4);
  const int pieces = std::clamp(total / batch_tokens, 4, 40);
  for (int piece = 0; piece <= pieces; ++piece) {
    auto progress = chunk({{"role", "assistant"}, {"content", nullptr}});
    progress["prompt_progress"] = {{"total", total},
                                   {"cache", 0},
                                   {"processed", total * piece / pieces},
                                   {"time_ms", 400 * piece}};
    if (!exchange.event(progress.dump())) return false;
    std::this_thread::sleep_for(prompt_piece_time);
  }
  return true;
}

void say(Exchange& exchange, const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!exchange.event(chunk({{"content", word + " "}}).dump())) return;
    std::this_thread::sleep_for(word_time);
  }
  exchange.event(chunk(json::object(), "stop").dump());
}

void call(Exchange& exchange, const std::string& tool, const json& arguments, std::size_t number) {
  exchange.event(chunk({{"tool_calls",
                         {{{"index", 0},
                           {"id", "call_" + std::to_string(number)},
                           {"type", "function"},
                           {"function", {{"name", tool}, {"arguments", arguments.dump()}}}}}}})
                     .dump());
  std::this_thread::sleep_for(word_time);
  exchange.event(chunk(json::object(), "tool_calls").dump());
}

/// Files first listed, then read, then counted by a command that takes its time; then an answer.
void go_on(Exchange& exchange, const json& messages) {
  std::vector<std::string> results;
  for (const auto& message : messages) {
    if (message.value("role", "") == "tool") results.push_back(message.value("content", ""));
  }
  if (results.empty()) return call(exchange, "list_files", json::object(), 0);
  std::istringstream list(results.front());
  std::vector<std::string> names;
  for (std::string name; std::getline(list, name) && names.size() < 12;) {
    if (!name.ends_with("/")) names.push_back(name);
  }
  if (results.size() <= names.size()) {
    return call(exchange, "read_file", {{"path", names[results.size() - 1]}}, results.size());
  }
  if (results.size() == names.size() + 1) {
    return call(exchange, "shell", {{"command", "for f in *; do wc -w \"$f\"; sleep 1; done"}},
                results.size());
  }
  std::size_t bytes = 0;
  for (std::size_t at = 1; at + 1 < results.size(); ++at) bytes += results[at].size();
  say(exchange, "I have read " + std::to_string(names.size()) + " files with " +
                    std::to_string(bytes) + " bytes: every one of them could be opened.");
}

/// Asked about an agent: those in the demo that repeat themselves say so in their record.
void judge(Exchange& exchange, const json& messages) {
  const auto record = messages.back().value("content", "");
  const bool looping = record.find("attempt") != std::string::npos;
  const json answer =
      looping ? json{{"status", "B"}, {"reason", "The same patch fails again and again."}}
              : json{{"status", "A"}, {"reason", "It is slow, but nothing repeats."}};
  say(exchange, answer.dump());
}

void answer(Exchange& exchange) {
  if (!exchange.is_chat()) {
    watchdog::test::be_llama(exchange);
    return;
  }
  const auto request = json::parse(exchange.request().body, nullptr, false);
  if (!request.is_object() || !request["messages"].is_array() || request["messages"].empty()) {
    exchange.respond(400, R"({"error":{"message":"messages are missing"}})");
    return;
  }
  if (!exchange.begin_stream() || !read_prompt(exchange, exchange.request().body.size())) return;
  request.contains("response_format") ? judge(exchange, request["messages"])
                                      : go_on(exchange, request["messages"]);
  exchange.end_stream();
}

}  // namespace

int main(int argc, char** argv) {
  constexpr auto usage =
      "Usage: watchdog-demo-model\n"
      "A model server that plays a slow model. It prints its URL and runs until SIGTERM.\n"
      "`watchdog-monitor demo` starts it.\n";
  if (const auto done = answer_about("watchdog-demo-model", usage, argc, argv, 0)) return *done;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const ModelServer server(answer);
  std::cout << server.base_url() << std::endl;
  int signal_number = 0;
  sigwait(&ends, &signal_number);
  return 0;
}
