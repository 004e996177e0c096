// Secrets of over a hundred shapes come in by every route, and are found nowhere afterwards.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/token_file.h"
#include "http/client.h"
#include "support/model_replies.h"
#include "support/model_server.h"
#include "support/process.h"
#include "support/secret_samples.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "watchdog/artifact_store.h"
#include "watchdog/settings.h"
#include "watchdog/tracker.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::ModelServer;
using test::TempDir;

using Secret = test::SecretSample;

std::vector<Secret> planted() {
  auto secrets = test::secret_samples();
  secrets.push_back({"CUST-20260024", "20260024"});  // the deployment's own
  return secrets;
}

/// A request for a chat in whose every part the text is.
std::string chat_with(const std::string& text, const std::string& id, bool streams) {
  const json call = {
      {"id", "call-" + id},
      {"type", "function"},
      {"function", {{"name", "shell"}, {"arguments", json{{"command", text}}.dump()}}}};
  return json{
      {"model", "m"},
      {"stream", streams},
      {"messages",
       {{{"role", "system"}, {"content", "Be good. " + text}},
        {{"role", "user"}, {"content", "Do it with " + text}},
        {{"role", "assistant"}, {"content", "I use " + text}, {"tool_calls", {call}}},
        {{"role", "tool"}, {"tool_call_id", "call-" + id}, {"content", "It said " + text}}}}}
      .dump();
}

/// A model that repeats the newest message, as text and in a call.
void repeat(ModelServer::Exchange& exchange) {
  const auto asked = json::parse(exchange.request().body, nullptr, false);
  if (!exchange.is_chat() || !asked.is_object()) return test::be_unknown(exchange);
  const auto said = asked["messages"].back()["content"].get<std::string>();
  const auto arguments = json{{"command", said}}.dump();
  const json call = {{"index", 0},
                     {"id", "answer-" + std::to_string(exchange.request().body.size())},
                     {"type", "function"},
                     {"function", {{"name", "shell"}, {"arguments", arguments}}}};
  if (!asked.value("stream", false)) {
    exchange.respond(
        200,
        json{{"choices",
              {{{"index", 0},
                {"finish_reason", "tool_calls"},
                {"message", {{"role", "assistant"}, {"content", said}, {"tool_calls", {call}}}}}}}}
            .dump());
    return;
  }
  const auto piece = [&](const json& delta) {
    exchange.event(json{{"choices", {{{"index", 0}, {"delta", delta}}}}}.dump());
  };
  exchange.begin_stream();
  for (std::size_t at = 0; at < said.size(); at += 7) piece({{"content", said.substr(at, 7)}});
  auto begun = call;
  begun["function"]["arguments"] = "";
  piece({{"tool_calls", {begun}}});
  for (std::size_t at = 0; at < arguments.size(); at += 7)
    piece(
        {{"tool_calls", {{{"index", 0}, {"function", {{"arguments", arguments.substr(at, 7)}}}}}}});
  exchange.event(R"({"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]})");
  exchange.end_stream();
}

/// The hooks of coding agents, with the text in each field that can have one.
std::vector<json> hooks_with(const std::string& text, const std::string& id) {
  const json input = {{"command", text}};
  std::vector<json> hooks{
      {{"hook_event_name", "SessionStart"}, {"source", text}},
      {{"hook_event_name", "UserPromptSubmit"}, {"prompt", "do " + text}},
      {{"hook_event_name", "PreToolUse"},
       {"tool_name", "Bash"},
       {"tool_use_id", "t"},
       {"tool_input", input}},
      {{"hook_event_name", "PostToolUse"},
       {"tool_name", "Bash"},
       {"tool_use_id", "t"},
       {"tool_input", input},
       {"tool_response", {{"stdout", text}}}},
      {{"hook_event_name", "PreToolUse"},
       {"tool_name", text},
       {"tool_use_id", text},
       {"tool_input", input}},
      {{"hook_event_name", "PostToolUseFailure"},
       {"tool_name", text},
       {"tool_use_id", text},
       {"error", text}},
      {{"hook_event_name", "Notification"}, {"message", "needs " + text}},
      {{"hook_event_name", "Stop"}, {"last_assistant_message", "done with " + text}},
  };
  for (auto& hook : hooks) hook["session_id"] = "hook-" + id;
  return hooks;
}

/// Every kind of report that agents send, with the text wherever one can be.
std::vector<json> reports_with(const std::string& text, const std::string& id) {
  const auto in = [&](const char* name) { return std::string(name) + " " + text; };
  const json data = {{"note", text}, {"deep", {{"list", {text, "line\n" + text}}}}};
  return {
      {{"kind", "start"}, {"pid", 1}, {"start_ticks", 1}, {"boot_id", text}, {"host", text}},
      {{"kind", "heartbeat"}, {"phase", text}, {"counters", {{text.substr(0, 64), 1}}}},
      {{"kind", "state_change"},
       {"type", text},
       {"data", data},
       {"event_id", "s" + id + ":" + text}},
      {{"kind", "turn"},
       {"name", "turn_start"},
       {"call_id", "turn " + text},
       {"parent_id", text},
       {"parent_turn_id", text}},
      {{"kind", "tool_call"},
       {"name", text},
       {"args", data},
       {"call_id", "c:" + text},
       {"turn_id", "turn " + text},
       {"args_hash", text}},
      {{"kind", "tool_progress"}, {"name", text}, {"call_id", "c:" + text}, {"text", in("half")}},
      {{"kind", "tool_result"},
       {"name", text},
       {"text", in("out")},
       {"call_id", "c:" + text},
       {"result_hash", text}},
      {{"kind", "tool_call"}, {"name", "shell"}, {"args", text}, {"call_id", "d"}},
      {{"kind", "error"}, {"name", "shell"}, {"text", in("failed")}, {"call_id", "d"}},
      {{"kind", "tool_call"}, {"name", "shell"}, {"args", text}, {"call_id", "e"}},
      {{"kind", "tool_timeout"}, {"name", "shell"}, {"text", in("late")}, {"call_id", "e"}},
      {{"kind", "message"}, {"name", text}, {"text", std::string(150, '.') + " " + text}},
      {{"kind", "message"}, {"name", "assistant"}, {"text", json(data).dump()}},
      {{"kind", "user_input"}, {"name", text}, {"text", in("do")}},
      {{"kind", "compaction"}, {"name", text}, {"text", in("short")}},
      {{"kind", "opinion"}, {"status", "A"}, {"text", in("well")}},
      {{"kind", "chant"}, {"name", text}, {"text", text}},
      {{"kind", "retry"}, {"name", text}, {"text", text}},
      {{"kind", "budget"}, {"name", text}, {"text", text}},
      {{"kind", "limit"}, {"limit", text}, {"text", text}},
      {{"kind", "turn"}, {"name", "turn_abort"}, {"call_id", "turn " + text}, {"reason", text}},
      {{"kind", "wait"}, {"waiting_for", text}, {"text", in("until")}, {"provider", text}},
      {{"kind", "idle"}, {"name", text}, {"text", text}},
      {{"kind", "heartbeat"}, {"phase", text}, {"event_id", "h" + id + ":" + text}},
  };
}

class Privacy : public testing::Test {
 protected:
  TempDir dir;
  std::filesystem::path path = dir / "state" / "w.db";
  std::vector<Secret> secrets = planted();
  ModelServer model{[](ModelServer::Exchange& exchange) {
    if (!exchange.is_chat()) return test::be_unknown(exchange);
    exchange.respond(200, R"({"choices":[{"finish_reason":"stop","index":0,"message":{"role":)"
                          R"("assistant","content":"{\"status\":\"B\",\"reason\":\"loop\"}"}}]})");
  }};
  ModelServer upstream{repeat};
  ModelServer hook{
      [](ModelServer::Exchange& exchange) { exchange.respond(200, "ok", "text/plain"); }};
  /// The texts that came from the monitor, by where they were.
  std::map<std::string, std::string> seen;

  /// No secret is in the text.
  void expect_clean(const std::string& where, const std::string& text) const {
    for (const auto& secret : secrets) {
      // A long one that is cut leaves no long piece either.
      for (const auto& core : {secret.core, secret.core.substr(0, 9)}) {
        const auto at = text.find(core);
        EXPECT_EQ(at, std::string::npos)
            << secret.core << " is in " << where << ": "
            << (at == std::string::npos ? ""
                                        : text.substr(at - std::min<std::size_t>(at, 60), 150));
        if (at != std::string::npos) break;
      }
    }
  }
};

/// The monitor with its log in a file.
struct Watched {
  Watched(const std::filesystem::path& database, const std::filesystem::path& log,
          const std::string& model, const std::string& upstream,
          const std::filesystem::path& config)
      : process({"/bin/sh",
                 "-c",
                 "exec \"$0\" \"$@\" 2>" + log.string(),
                 WATCHDOG_MONITOR,
                 "serve",
                 "--db",
                 database.string(),
                 "--port",
                 "0",
                 "--log-format",
                 "json",
                 "--llm-base-url",
                 model,
                 "--config",
                 config.string(),
                 "--upstream",
                 upstream,
                 "--proxy-port",
                 "0",
                 "--no-probe"},
                {.environment = {"WATCHDOG_PRIVACY_PATTERNS=CUST-[0-9]{8}",
                                 "WATCHDOG_CHECKS_BASE_URL=" + model,
                                 "WATCHDOG_INTERNAL_TIMES=alerts.messages_max=1000"}}) {
    const auto first = process.line();
    url = first.substr(first.find("http"));
    auto line = process.line();
    while (line.find("their model") == std::string::npos && !line.empty()) line = process.line();
    const auto at = line.find("http://");
    proxy_url = line.substr(at, line.find("/v1", at) - at);
  }
  test::Process process;
  std::string url;
  std::string proxy_url;
};

TEST_F(Privacy, planted_secrets_are_in_no_file_log_answer_page_or_check) {
  ASSERT_GE(secrets.size(), 100U);
  const auto log = dir / "log";
  {
    std::ofstream(dir / "watchdog.toml")
        << "[alerts.channels.log]\ntype = 'log'\ncontent = 'preview'\n"
        << "[alerts.channels.team]\ntype = 'webhook'\nurl = '" << hook.base_url()
        << "'\ncontent = 'preview'\n";
    Watched monitor(path, log, model.base_url(), upstream.base_url(), dir / "watchdog.toml");
    const auto tokens = read_token_file(path.string() + "-token");
    ASSERT_TRUE(tokens.ok());
    auto client = MonitorClient::to(monitor.url, {.token = acting_secret(*tokens)});
    ASSERT_TRUE(client.ok());
    auto agent = MonitorClient::to(monitor.proxy_url, {});
    ASSERT_TRUE(agent.ok()) << monitor.proxy_url;
    std::string last;
    const auto ask = [&](Method method, const std::string& target, const std::string& body = {}) {
      const auto response = client->ask(method, target, body);
      EXPECT_TRUE(response.ok()) << target;
      if (!response) return 0;
      last = response->body;
      seen["answer to " + target + " " + std::to_string(seen.size())] = last;
      return response->status;
    };
    for (std::size_t at = 0; at < secrets.size(); ++at) {
      const auto& text = secrets[at].text;
      const auto id = "s" + std::to_string(at);
      const json spec = {{"sessionId", id},
                         {"agent", text},
                         {"task", "do it with " + text},
                         {"labels", {{"key", text}, {text, "value"}}},
                         {"content", at % 2 == 0 ? "full" : "preview"},
                         {"policy", {{"tools", {{text, {{"identity", {text.substr(0, 64)}}}}}}}}};
      ASSERT_EQ(ask(Method::post, "/api/autonomous/sessions", spec.dump()), 201) << text;
      ASSERT_EQ(ask(Method::post, "/api/autonomous/sessions", spec.dump()), 200) << text;
      // Once more under its own name, with something else: the refusal repeats it.
      json other = spec;
      other["task"] = text + "!";
      ASSERT_EQ(ask(Method::post, "/api/autonomous/sessions", other.dump()), 409);
      const auto base = "/api/autonomous/sessions/" + id;
      for (const auto& report : reports_with(text, id)) {
        ASSERT_EQ(ask(Method::post, base + "/events", report.dump()), 200) << report << last;
      }
      ask(Method::post, base + "/events", R"([{"kind":)" + json(text).dump() + "}]");
      ask(Method::post, base + "/events",
          json{{"kind", "turn"}, {"name", text}, {"call_id", "x"}}.dump());
      ASSERT_EQ(ask(Method::patch, base,
                    json{{"policy", {{"tools", {{text, {{"use", "poll"}}}}}}}}.dump()),
                200)
          << text << last;
      for (const auto& reported : hooks_with(text, id))
        ASSERT_EQ(ask(Method::post, "/api/hooks/claude-code", reported.dump()), 200)
            << reported << last;
      for (const bool streams : {false, true}) {
        const auto answer =
            agent->ask(Method::post, "/v1/chat/completions", chat_with(text, id, streams));
        ASSERT_TRUE(answer.ok()) << text;
        ASSERT_EQ(answer->status, 200) << text;
      }
      // It goes in circles, and somebody asks about it.
      for (int beat = 0; at % 4 == 0 && beat < 6; ++beat) {
        ask(Method::post, base + "/events",
            json{{"kind", "heartbeat"}, {"source", "loop"}, {"iteration", beat}, {"phase", text}}
                .dump());
      }
      if (at % 4 == 0)
        ask(Method::post, "/api/autonomous/check-status", json{{"sessionId", id}}.dump());
      ASSERT_EQ(ask(Method::post, base + "/cancel", json{{"by", text}, {"reason", text}}.dump()),
                200);
      ask(Method::post, "/api/turns/nothing/abort", json{{"by", text}, {"reason", text}}.dump());
    }
    // Wrapped commands print the secrets. A secret has one line or several.
    const TempDir outside;
    for (const bool to_file : {false, true}) {
      for (std::size_t from = 0; from < secrets.size(); from += 60) {
        const auto output = outside / "output";
        std::ofstream lines(output);
        for (auto at = from; at < std::min(secrets.size(), from + 60); ++at)
          lines << "a line with " << secrets[at].text << "\n";
        lines.close();
        const auto ran =
            test::run({WATCHDOG_MONITOR, "run", to_file ? "--db" : "--server",
                       to_file ? path.string() : monitor.url, "--state-change-on", ".", "--task",
                       "print " + secrets[from].text, "--", "cat", output.string()},
                      {.environment = {"WATCHDOG_PRIVACY_PATTERNS=CUST-[0-9]{8}"}});
        ASSERT_EQ(ran.code, 0) << ran.output;
      }
    }
    // The library writes to the same file; its process has the same patterns.
    ASSERT_TRUE(add_redactions({.patterns = {"CUST-[0-9]{8}"}}).ok());
    for (std::size_t at = 0; at < secrets.size(); ++at) {
      const auto& text = secrets[at].text;
      ProgressTracker tracker({.session = "l" + std::to_string(at),
                               .spec = {.agent = text, .task = text, .labels = {{text, text}}},
                               .database = path});
      tracker.heartbeat({.phase = text});
      tracker.state_change(text, json{{"note", text}}.dump());
      tracker.tool_call(text, text, text);
      tracker.tool_result(text, text, text);
      tracker.message("assistant", "I use " + text);
      ASSERT_TRUE(tracker.fail("because of " + text).ok());
      auto artifacts = ArtifactStore::open(path.parent_path() / "artifacts", "run");
      ASSERT_TRUE(artifacts.ok());
      std::string output;
      for (int line = 0; line < 3'000; ++line)
        output += "line " + std::to_string(line) + " of the output\n" +
                  (line == 1'500 ? text + "\n" : "");
      (void)presented(output, {}, &*artifacts);
    }
    // Every check was answered before anything is looked at.
    for (std::size_t at = 0; at < secrets.size(); ++at) {
      const auto base = "/api/autonomous/sessions/s" + std::to_string(at);
      for (bool answered = false; !answered;) {
        const auto events = client->ask(Method::get, base + "/events?kind=opinion&limit=1000");
        ASSERT_TRUE(events.ok());
        const auto list = json::parse(events->body)["events"];
        int asked = 0, done = 0;
        for (const auto& event : list) {
          const auto name = event.value("event_id", "");
          (name.starts_with("?") ? asked : done) += name.empty() ? 0 : 1;
        }
        answered = asked == done;
      }
      ask(Method::get, base + "/events?limit=1000");
      ask(Method::get, base + "/transitions?limit=1000");
      ask(Method::get, "/api/autonomous/progress/s" + std::to_string(at));
      ask(Method::get, "/api/autonomous/progress/l" + std::to_string(at));
    }
    // The test waits until the monitor has sent every alert.
    while (last.find("\"pending\"") != std::string::npos ||
           last.find("\"sent\"") == std::string::npos) {
      ASSERT_EQ(ask(Method::get, "/api/alerts?limit=1000"), 200);
    }
    for (const char* target : {"/", "/metrics", "/api/autonomous/progress?limit=1000",
                               "/api/autonomous/sessions?limit=10000", "/sessions/s1",
                               "/api/turns/active?limit=1000", "/readyz"})
      ask(Method::get, target);
    EXPECT_GE(model.chats().size(), 10U);
    monitor.process.signal(SIGTERM);
    EXPECT_EQ(monitor.process.wait(), 0);
    seen["standard output"] = monitor.process.rest();
  }
  for (const auto& chat : model.chats()) expect_clean("a question to the model", chat);
  EXPECT_GE(hook.requests().size(), 10U);
  for (const auto& request : hook.requests()) {
    expect_clean("a webhook", request.head);
    expect_clean("a webhook", request.body);
  }
  for (const auto& [where, text] : seen) expect_clean(where, text);
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.path())) {
    if (!entry.is_regular_file()) continue;
    expect_clean(entry.path(), test::content_of(entry.path()));
    ++files;
  }
  EXPECT_GT(files, 3);
  // They were there: what stands for them is.
  EXPECT_NE(test::content_of(path).find("[redacted]"), std::string::npos);
  EXPECT_NE(test::content_of(path).find("[redacted-"), std::string::npos);
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(json::parse(line, nullptr, false).is_object()) << line;
}

}  // namespace
}  // namespace watchdog::monitor
