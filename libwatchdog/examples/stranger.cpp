// An agent that knows nothing of watchdogs: all that it has is the address of a model. In the demo
// that is the proxy's, and everything the page shows of it comes from what passes through there.
//
//   OPENAI_BASE_URL=http://127.0.0.1:3001/v1 watchdog-stranger [DIRECTORY]

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "usage.h"
#include "watchdog/model_client.h"
#include "watchdog/terminal_text.h"

namespace {

using namespace watchdog;
namespace fs = std::filesystem;

constexpr const char* tools = R"([
  {"type":"function","function":{"name":"list_files","description":"The names of the files, one per line.",
   "parameters":{"type":"object","properties":{}}}},
  {"type":"function","function":{"name":"read_file","description":"Reads a file.",
   "parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}])";

/// About fifty thousand tokens, as today's agents send them with each request.
std::string long_instructions() {
  constexpr int rules = 2'600;
  std::string text = "Do what the user asks for, and keep to these rules.\n";
  for (int rule = 1; rule <= rules; ++rule)
    text += "Rule " + std::to_string(rule) +
            ": think before you act, and say what you have found out.\n";
  return text;
}

std::string result_of(const ToolRequest& call, const fs::path& directory) {
  if (call.name == "list_files") {
    std::string names;
    for (const auto& entry : fs::directory_iterator(directory))
      names += entry.path().filename().string() + (entry.is_directory() ? "/\n" : "\n");
    return names;
  }
  if (call.name != "read_file") return "there is no tool " + call.name;
  const auto arguments = nlohmann::json::parse(call.arguments, nullptr, false);
  const auto path = arguments.is_object() ? arguments.value("path", "") : "";
  // Its name alone: nothing outside of the directory is anybody's business.
  std::ifstream file(directory / fs::path(path).filename());
  std::ostringstream text;
  text << file.rdbuf();
  return file ? text.str() : "there is no file " + path;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr auto usage =
      "Usage: watchdog-stranger [DIRECTORY]\n"
      "An agent that knows nothing of watchdogs: it asks the model at $OPENAI_BASE_URL about the\n"
      "files of a directory. `watchdog-monitor demo` starts it.\n";
  if (const auto done = answer_about("watchdog-stranger", usage, argc, argv, 1)) return *done;
  const char* server = std::getenv("OPENAI_BASE_URL");  // NOLINT(concurrency-mt-unsafe): one thread
  auto model = ModelClient::to({.base_url = server != nullptr ? server : ""});
  if (!model) {
    std::cerr << "OPENAI_BASE_URL: " << terminal_text(model.error().message) << '\n';
    return 2;
  }
  const fs::path directory = argc > 1 ? argv[1] : ".";
  std::vector<ChatMessage> messages{{.role = "system", .content = long_instructions()},
                                    {.role = "user", .content = "What is in these files?"}};
  while (true) {
    auto answer = model->chat({.messages = messages, .tools = tools});
    if (!answer) {
      std::cerr << terminal_text(answer.error().message) << '\n';
      return 1;
    }
    messages.push_back(
        {.role = "assistant", .content = answer->text, .tool_calls = answer->tool_calls});
    if (answer->tool_calls.empty()) break;
    for (const auto& call : answer->tool_calls) {
      messages.push_back(
          {.role = "tool", .content = result_of(call, directory), .tool_call_id = call.id});
    }
  }
  std::cout << terminal_text(messages.back().content) << '\n';
  return 0;
}
