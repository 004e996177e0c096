#include "proxy/sessions/attribution.h"

#include <gtest/gtest.h>

#include "facts/ids.h"
#include "ingest/trace_parent.h"
#include "proxy/sessions/trace_sessions.h"

namespace watchdog::monitor {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

ExchangeBegan asked(Headers headers, std::string path_session = {}) {
  return {.method = "POST",
          .target = "/v1/chat/completions",
          .session = std::move(path_session),
          .peer = "127.0.0.1:40000",
          .headers = std::move(headers),
          .key_digest = 7,
          .body = nullptr};
}
ModelRequest reading(const std::string& body) {
  return *model_request_from("POST", "/v1/chat/completions", body);
}
Attribution attributed(Headers headers, const std::string& body = "{}") {
  const auto request = reading(body);
  return attribution_of(asked(std::move(headers)), &request);
}

TEST(Attribution, a_process_that_was_started_for_a_session_belongs_to_it) {
  const auto session_of = [](Headers headers, std::string path = {}) {
    auto began = asked(std::move(headers), std::move(path));
    began.process_session = "outer";
    return attribution_of(began, nullptr);
  };
  EXPECT_EQ(session_of({}).session, "outer");
  EXPECT_EQ(session_of({}).by, AttributedBy::process);
  EXPECT_EQ(session_of({{"x-claude-code-session-id", "5d"}}).session, "outer");
  EXPECT_EQ(session_of({{"x-watchdog-session", "named"}}).session, "named");
  EXPECT_EQ(session_of({}, "by-path").session, "by-path");
  const auto agent =
      session_of({{"x-claude-code-session-id", "5d"}, {"x-claude-code-agent-id", "a1"}});
  EXPECT_EQ(agent.session, "outer:a1");
  EXPECT_EQ(agent.parent, "outer");
  const auto thread =
      session_of({{"session-id", "5e"}, {"thread-id", "5f"}, {"x-codex-parent-thread-id", "5e"}});
  EXPECT_EQ(thread.session, "outer:5f");
  EXPECT_EQ(thread.parent, "outer") << "its parent is the first thread";
}

TEST(Attribution, each_client_is_known_by_its_own_headers) {
  struct Row {
    Headers headers;
    std::string body;
    std::string session;
    std::string parent;
    std::string agent;
    AttributedBy by;
  };
  using By = AttributedBy;
  const Row rows[] = {
      {{{"X-Watchdog-Session", "mine"},
        {"X-Watchdog-Parent-Session", "above"},
        {"X-Session-Id", "other"},
        {"User-Agent", "AsyncOpenAI/Python 1.99.1"}},
       R"({"user":"u"})",
       "mine",
       "above",
       "openai-python",
       By::header},
      {{{"X-Claude-Code-Session-Id", "5d-1"}, {"User-Agent", "claude-cli/2.0.1 (external, cli)"}},
       R"({"metadata":{"user_id":"user_1_session_9"}})",
       "5d-1",
       "",
       "claude-code",
       By::native},
      {{{"x-claude-code-session-id", "5d"}, {"x-claude-code-agent-id", "a1"}},
       "{}",
       "5d:a1",
       "5d",
       "claude-code",
       By::native},
      {{{"x-claude-code-session-id", "5d"},
        {"x-claude-code-agent-id", "a2"},
        {"x-claude-code-parent-agent-id", "a1"}},
       "{}",
       "5d:a2",
       "5d:a1",
       "claude-code",
       By::native},
      {{{"session-id", "019a"}, {"user-agent", "codex_cli_rs/0.50.0 (Debian)"}},
       R"({"prompt_cache_key":"019b"})",
       "019a",
       "",
       "codex",
       By::native},
      {{{"session_id", "019a"}}, "{}", "019a", "", "codex", By::native},
      {{{"session-id", "019a"}, {"thread-id", "019a"}, {"user-agent", "codex_exec/0.171.0"}},
       "{}",
       "019a",
       "",
       "codex",
       By::native},
      {{{"session-id", "019a"}, {"thread-id", "019b"}, {"x-codex-parent-thread-id", "019a"}},
       "{}",
       "019a:019b",
       "019a",
       "codex",
       By::native},
      {{{"session-id", "019a"}, {"thread-id", "019c"}, {"x-codex-parent-thread-id", "019b"}},
       "{}",
       "019a:019c",
       "019a:019b",
       "codex",
       By::native},
      {{{"x-session-id", "ses_1"},
        {"x-parent-session-id", "ses_0"},
        {"user-agent", "opencode/1.0 ai-sdk/5"}},
       "{}",
       "ses_1",
       "ses_0",
       "opencode",
       By::native},
      {{{"x-session-affinity", "ses_1"}}, "{}", "ses_1", "", "", By::native},
      {{{"X-OpenWebUI-Chat-Id", "c-1"}}, "{}", "c-1", "", "open-webui", By::native},
      {{{"x-litellm-session-id", "l-1"}}, "{}", "l-1", "", "", By::native},
      {{{"Helicone-Session-Id", "h-1"}}, "{}", "h-1", "", "", By::native},
      {{{"X-Conversation-Id", "v-1"}}, "{}", "v-1", "", "", By::native},
      {{{"X-Dynamo-Session-ID", "d-1"}, {"X-Dynamo-Parent-Session-ID", "d-0"}},
       "{}",
       "d-1",
       "d-0",
       "",
       By::native},
      {{{"x-someagent-session-id", "s-1"}, {"X-SomeAgent-Parent-Session-Id", "s-0"}},
       "{}",
       "s-1",
       "s-0",
       "",
       By::native},
      {{{"User-Agent", "Anthropic/JS 0.60.0"}},
       R"({"metadata":{"user_id":"user_1_account_2_session_9f-8"}})",
       "9f-8",
       "",
       "anthropic-node",
       By::body},
      {{}, R"({"prompt_cache_key":"k","user":"u"})", "k", "", "", By::body},
      {{}, R"({"metadata":{"session_id":"s"},"prompt_cache_key":"k"})", "s", "", "", By::body},
      {{}, R"({"conversation":{"id":"conv_1"}})", "conv_1", "", "", By::body},
      {{}, R"({"user":"u"})", "u", "", "", By::body},
  };
  for (const auto& row : rows) {
    const auto found = attributed(row.headers, row.body);
    EXPECT_EQ(found.session, row.session);
    EXPECT_EQ(found.parent, row.parent) << row.session;
    EXPECT_EQ(found.agent, row.agent) << row.session;
    EXPECT_EQ(name_of(found.by), name_of(row.by)) << row.session;
    EXPECT_FALSE(found.final);
  }
}

TEST(Attribution, the_path_is_surer_than_anything_but_our_own_header) {
  const auto request = reading(R"({"user":"u"})");
  auto began = asked({{"x-session-id", "s"}}, "from-path");
  EXPECT_EQ(attribution_of(began, &request).session, "from-path");
  EXPECT_EQ(attribution_of(began, nullptr).by, AttributedBy::path);
  began.headers.emplace_back("x-watchdog-session", "own");
  EXPECT_EQ(attribution_of(began, &request).session, "own");
}

TEST(Attribution, a_request_that_continues_an_answer_belongs_to_the_session_of_that_answer) {
  const auto request = reading(R"({"previous_response_id":"resp_1","user":"u"})");
  const auto owner = [](std::string_view answer) {
    return answer == "resp_1" ? std::string("s") : std::string();
  };
  const auto found = attribution_of(asked({}), &request, owner);
  EXPECT_EQ(found.session, "s");
  EXPECT_EQ(found.by, AttributedBy::chain);
  const auto other = reading(R"({"previous_response_id":"resp_2","user":"u"})");
  EXPECT_EQ(attribution_of(asked({}), &other, owner).session, "u");
}

constexpr const char* trace_parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr const char* later_parent = "00-5bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(Attribution, telemetry_of_the_same_trace_names_the_session_of_a_request_without_a_name) {
  const auto telemetry = std::make_shared<OtlpMemory>();
  telemetry->note_trace("4bf92f3577b34da6a3ce929d0e0e4736", "told");
  TraceSessions sessions(telemetry);
  const TraceOwner tracer = [&](const std::string& trace, const std::string& guess) {
    return sessions.session_of(trace, guess);
  };
  const auto found = [&](std::vector<std::pair<std::string, std::string>> headers,
                         std::string body) {
    const auto request = reading(std::move(body));
    return attribution_of(asked(std::move(headers)), &request, {}, tracer);
  };
  const auto* user = R"({"messages":[{"role":"user","content":"U"}]})";
  const auto* other = R"({"messages":[{"role":"user","content":"V"}]})";
  EXPECT_EQ(found({{"traceparent", later_parent}}, user).by, AttributedBy::opening)
      << "nothing is known of this trace, nor of this conversation";
  EXPECT_EQ(found({{"Traceparent", trace_parent}}, user).session, "told");
  EXPECT_EQ(found({{"traceparent", trace_parent}}, R"({"user":"u"})").by, AttributedBy::trace);
  EXPECT_EQ(found({{"traceparent", later_parent}}, user).session, "told")
      << "the conversation is known by now";
  EXPECT_EQ(found({{"traceparent", later_parent}}, other).by, AttributedBy::opening);
  EXPECT_EQ(found({{"x-session-id", "own"}, {"traceparent", trace_parent}}, user).session, "own");
  EXPECT_EQ(found({{"x-watchdog-session", "ours"}, {"traceparent", trace_parent}}, user).session,
            "ours");
}

TEST(Attribution, only_a_valid_traceparent_has_a_trace) {
  EXPECT_EQ(trace_in(trace_parent), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(trace_in("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"),
            "4bf92f3577b34da6a3ce929d0e0e4736");
  for (const auto* wrong : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
                            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
                            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})
    EXPECT_EQ(trace_in(wrong), "") << wrong;
}

TEST(Attribution, copilot_cli_is_known_by_a_header_beside_its_librarys_name) {
  EXPECT_EQ(attributed({{"User-Agent", "OpenAI/JS 5.20.1"}, {"x-initiator", "user"}}).agent,
            "copilot-cli");
  EXPECT_EQ(attributed({{"User-Agent", "OpenAI/JS 5.20.1"}}).agent, "openai-node");
  EXPECT_EQ(attributed({{"User-Agent", "opencode/1.18.33"}, {"x-initiator", "user"}}).agent,
            "opencode");
}

TEST(Attribution, copilot_cli_says_for_what_it_asks) {
  const auto asking = [](const char* why) {
    return attributed({{"User-Agent", "OpenAI/JS 5.20.1"}, {"X-Interaction-Type", why}});
  };
  const auto own = asking("conversation-user");
  EXPECT_FALSE(own.helper || own.compacts);
  const auto summary = asking("conversation-compaction");
  EXPECT_TRUE(summary.helper && summary.compacts);
  EXPECT_EQ(summary.session, own.session) << "it has no x-initiator, and is of the same session";
  const auto subagent = asking("conversation-subagent");
  EXPECT_TRUE(subagent.helper && !subagent.compacts);
  const auto other = attributed(
      {{"User-Agent", "opencode/1.18.33"}, {"X-Interaction-Type", "conversation-subagent"}});
  EXPECT_FALSE(other.helper) << "only Copilot CLI means that by it";
}

TEST(Attribution, without_any_name_the_opening_and_where_it_comes_from_report) {
  const auto session = [](const char* user, const char* agent, std::string peer,
                          std::uint64_t key) {
    const auto request =
        reading(std::string(R"({"messages":[{"role":"user","content":")") + user + "\"}]}");
    auto began = asked({{"User-Agent", agent}});
    began.peer = std::move(peer);
    began.key_digest = key;
    const auto found = attribution_of(began, &request);
    EXPECT_EQ(found.by, AttributedBy::opening);
    EXPECT_TRUE(is_session_id(found.session)) << found.session;
    return found.session;
  };
  const auto one = session("Hi", "OpenAI/Python 1.2", "10.0.0.1:4000", 1);
  EXPECT_EQ(one, session("Hi", "OpenAI/Python 1.2", "10.0.0.1:4001", 1)) << "another connection";
  EXPECT_TRUE(one.starts_with("openai-python-")) << one;
  EXPECT_NE(one, session("Ho", "OpenAI/Python 1.2", "10.0.0.1:4000", 1));
  EXPECT_NE(one, session("Hi", "OpenAI/Python 1.3", "10.0.0.1:4000", 1));
  EXPECT_NE(one, session("Hi", "OpenAI/Python 1.2", "10.0.0.2:4000", 1));
  EXPECT_NE(one, session("Hi", "OpenAI/Python 1.2", "10.0.0.1:4000", 2));
  EXPECT_EQ(session("Hi", "", "[::1]:1", 1), session("Hi", "", "[::1]:2", 1));
  EXPECT_NE(session("Hi", "", "::1", 1), session("Hi", "", "::2", 1));
  // In another process, tomorrow: ids are stored.
  EXPECT_EQ(session("Hi", "", "::1", 1), session("Hi", "", "::1", 1));
}

TEST(Attribution, hostile_names_become_valid_ids_that_differ) {
  const std::string secret = "sk-proj-abcdefghijklmnopqrstuvwxyz012345";
  for (const std::string& name :
       {std::string("a b"), std::string(500, 'x'), std::string("<script>alert(1)</script>"),
        std::string("\xFF\x00\x01", 3), std::string("../../etc/passwd"), std::string("ä"), secret,
        "Bearer " + secret, std::string("s\r\nX-Evil: 1")}) {
    const auto found =
        attributed({{"x-watchdog-session", name}, {"x-watchdog-parent-session", name}});
    EXPECT_TRUE(is_session_id(found.session)) << name;
    EXPECT_TRUE(found.parent.empty()) << "nobody is their own parent";
    EXPECT_EQ(found.session.find("abcdefghij"), std::string::npos) << found.session;
    EXPECT_NE(found.session, attributed({{"x-watchdog-session", name + "'"}}).session);
  }
  EXPECT_TRUE(attributed({{"x-watchdog-session", "two words"}}).session.starts_with("two-words-"));
  const auto agent = attributed({{"User-Agent", secret + "/\x01\n<b>" + std::string(900, 'z')}});
  EXPECT_EQ(agent.client.find("abcdefghij"), std::string::npos) << agent.client;
  EXPECT_EQ(agent.agent.find("abcdefghij"), std::string::npos) << agent.agent;
  EXPECT_LE(agent.client.size(), 80U);
  EXPECT_TRUE(is_session_id(agent.session)) << agent.session;
  EXPECT_TRUE(is_session_id(attributed({{"User-Agent", "\xFF\xFE weird!"}}).session));
}

TEST(Attribution, the_last_request_says_so) {
  EXPECT_TRUE(attributed({{"x-dynamo-session-id", "d"}, {"X-Dynamo-Session-Final", "True"}}).final);
  EXPECT_FALSE(
      attributed({{"x-dynamo-session-id", "d"}, {"X-Dynamo-Session-Final", "false"}}).final);
}

TEST(Attribution, large_requests_are_as_many_conversations_as_small_ones) {
  const auto session_of = [](const std::string& beginning, std::uint64_t connection) {
    auto began = asked({{"User-Agent", "OpenAI/JS 6.1"}});
    began.body = std::make_shared<const std::string>(beginning);
    began.body_is_cut = true;
    began.connection = connection;
    const auto request = model_request_of(began);
    return attribution_of(began, &*request).session;
  };
  const std::string begin = R"({"model":"m","messages":[{"role":"user","content":)";
  const auto one = session_of(begin + R"("Name an apple"},{"role":"user","content":"data:)", 1);
  EXPECT_EQ(session_of(begin + R"("Name an apple"},{"role":"assistant")", 2), one)
      << "the next round of the same conversation";
  EXPECT_NE(session_of(begin + R"("Name a leaf"},{"role":"user","content":"data:)", 1), one);
  EXPECT_EQ(attributed({{"User-Agent", "OpenAI/JS 6.1"}}, begin + R"("Name an apple"}]})").session,
            one)
      << "its small rounds";
  // Nothing is known of how they begin: each client is one.
  const std::string blind = R"({"model":"m","tools":[)";
  EXPECT_NE(session_of(blind, 1), session_of(blind, 2));
  EXPECT_EQ(session_of(blind, 1), session_of(blind, 1));
  EXPECT_NE(session_of("garbage", 1), session_of("garbage", 2));
}

}  // namespace
}  // namespace watchdog::monitor
