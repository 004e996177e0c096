// The test server over its sockets: each API whole and as a stream, faults, and Ollama's process.

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "net/http_client.h"
#include "support/backend.h"
#include "support/process.h"
#include "watchdog/model_client.h"

namespace watchdog::test {
namespace {

using nlohmann::json;

/// A whole answer; status 0: there was none, or not all of it.
struct Answered {
  int status = 0;
  std::string type;
  std::string body;
};

Answered asked(const std::string& url, const std::string& target, const std::string& body = {},
               const HttpSink& also = {}) {
  auto client = HttpClient::to(*url_from(url), {});
  Answered answered;
  const auto head =
      client->ask({.method = body.empty() ? "GET" : "POST", .target = target, .body = body},
                  [&](const HttpHead& begun, std::string_view piece) {
                    answered.body += piece;
                    return !also || also(begun, piece);
                  });
  if (!head) return answered;
  answered.status = head->status;
  answered.type = head->header("content-type");
  return answered;
}

/// Everything that JSON of a stream says in members of these names, put together.
std::string said(const json& value) {
  std::string all;
  if (value.is_array())
    for (const auto& part : value) all += said(part);
  if (!value.is_object()) return all;
  for (const auto& [name, part] : value.items()) {
    const bool is_text =
        name == "content" || name == "text" || name == "delta" || name == "response";
    all += is_text && part.is_string() ? part.get<std::string>() : said(part);
  }
  return all;
}

struct Api {
  const char* path;
  const char* prompt;  ///< Before and after the text.
  const char* end;     ///< Of the stream.
};
const Api apis[] = {
    {"/v1/chat/completions", R"("messages":[{"role":"user","content":"@"}])", "data: [DONE]\n\n"},
    {"/v1/completions", R"("prompt":"@")", "data: [DONE]\n\n"},
    {"/v1/responses", R"("input":"@")", "}\n\n"},
    {"/v1/messages", R"("max_tokens":99,"messages":[{"role":"user","content":"@"}])",
     "data: {\"type\":\"message_stop\"}\n\n"},
    {"/api/chat", R"("messages":[{"role":"user","content":"@"}])", "}\n"},
    {"/api/generate", R"("prompt":"@")", "}\n"},
    {"/completion", R"("prompt":"@")", "}\n\n"},
};

std::string request(const Api& api, const std::string& text, bool stream) {
  std::string prompt = api.prompt;
  prompt.replace(prompt.find('@'), 1, text);
  return "{" + prompt + R"(,"stream":)" + (stream ? "true" : "false") + "}";
}

TEST(ModelBackend, each_api_says_the_same_whole_and_as_a_stream) {
  const ModelBackend backend({.time_scale = 1'000});
  for (const Api& api : apis) {
    const auto whole = asked(backend.url(), api.path, request(api, "SAY one two three", false));
    EXPECT_EQ(whole.status, 200) << api.path;
    EXPECT_NE(said(json::parse(whole.body)).find("one two three"), std::string::npos) << whole.body;

    const auto stream = asked(backend.url(), api.path, request(api, "SAY one two three", true));
    EXPECT_TRUE(stream.body.ends_with(api.end)) << stream.body;
    std::string text;
    for (std::size_t at = 0; at < stream.body.size();) {
      const auto end = stream.body.find('\n', at);
      const auto line = stream.body.substr(at, end - at);
      at = end + 1;
      const auto object = line.find('{');
      if (object == std::string::npos) continue;
      text += said(json::parse(line.substr(object)));
    }
    EXPECT_NE(text.find("one two three"), std::string::npos) << stream.body;
  }
}

TEST(ModelBackend, the_librarys_client_understands_it) {
  ModelBackend backend({.scenario = R"({"reasoning_tokens":3})", .time_scale = 1'000});
  auto client = ModelClient::to({.base_url = backend.url() + "/v1"});
  const auto answer = client->chat(
      {.messages = {
           {.role = "user", .content = "Please:\nSAY I look.\nCALL shell {\"cmd\": \"ls -l\"}"}}});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->text, "I look.");
  ASSERT_EQ(answer->tool_calls.size(), 1U);
  EXPECT_EQ(answer->tool_calls[0].name, "shell");
  EXPECT_EQ(json::parse(answer->tool_calls[0].arguments)["cmd"], "ls -l");
  EXPECT_FALSE(answer->reasoning.empty());
}

TEST(ModelBackend, a_client_that_leaves_cancels_its_request) {
  const ModelBackend backend(
      {.scenario = R"({"answer_tokens":100000,"decode":1})", .time_scale = 100});
  (void)asked(backend.url(), "/v1/chat/completions", request(apis[0], "tell me all", true),
              [](const HttpHead&, std::string_view) { return false; });
  std::string state;
  while (state != "cancelled") {
    state = json::parse(asked(backend.url(), "/_log").body)[0]["state"];
    ASSERT_NE(state, "answered");
  }
  while (json::parse(asked(backend.url(), "/slots").body)[0]["is_processing"] == true) {
  }
}

TEST(ModelBackend, a_restart_breaks_connections_and_refuses_new_ones_for_a_while) {
  ModelBackend backend(
      {.scenario = R"({"decode":1,"answer_tokens":1000,"metrics":true})", .time_scale = 100});
  ASSERT_EQ(backend.change(R"({"fault":{"kind":"restart","at_s":20,"lasts_s":100}})"), "");
  const auto cut =
      asked(backend.url(), "/v1/chat/completions", request(apis[0], "tell me all", true));
  EXPECT_EQ(cut.status, 0);
  EXPECT_NE(cut.body.find("data: "), std::string::npos);
  int refused = 0;
  while (asked(backend.url(), "/health").status != 200) ++refused;
  EXPECT_GT(refused, 0);
  EXPECT_NE(asked(backend.url(), "/metrics").body.find("n_decode_total 0"), std::string::npos);
  EXPECT_NE(backend.change(R"({"prefil":1})"), "") << "what is misspelt is refused";
}

/// The first child of a process, as /proc shows; 0: it has none.
int child_of(int pid) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream stat(entry.path() / "stat");
    std::string text;
    std::getline(stat, text);
    const auto name_end = text.rfind(") ");
    if (name_end == std::string::npos) continue;
    if (std::atoi(text.c_str() + name_end + 4) == pid) return std::atoi(text.c_str());
  }
  return 0;
}

TEST(ModelBackend, below_ollama_a_process_of_its_own_computes) {
  Process ollama({WATCHDOG_MODEL_BACKEND, "--kind", "ollama", "--time-scale", "100", "--loading_s",
                  "20", "--answer_tokens", "3"});
  const std::string url = ollama.line();
  EXPECT_EQ(json::parse(asked(url, "/api/ps").body)["models"].size(), 0U);
  EXPECT_EQ(child_of(ollama.pid()), 0);
  const auto answer = asked(url, "/api/chat", request(apis[4], "Well?", true));
  EXPECT_EQ(answer.type, "application/x-ndjson");
  EXPECT_EQ(json::parse(asked(url, "/api/ps").body)["models"].size(), 1U);

  const int child = child_of(ollama.pid());
  ASSERT_GT(child, 0);
  std::ifstream file("/proc/" + std::to_string(child) + "/cmdline");
  const std::string command((std::istreambuf_iterator<char>(file)), {});
  ASSERT_NE(command.find("llama-server"), std::string::npos);
  const auto port = command.find("--port");
  const std::string child_url = "http://127.0.0.1:" + std::string(command.c_str() + port + 7);
  EXPECT_EQ(json::parse(asked(child_url, "/slots").body)[0]["next_token"][0]["n_decoded"], 3);
  EXPECT_EQ(asked(child_url, "/metrics").status, 501);

  ollama.signal(SIGKILL);
  EXPECT_EQ(ollama.wait(), 128 + SIGKILL);
  while (asked(child_url, "/health").status != 0) {
  }
}

}  // namespace
}  // namespace watchdog::test
