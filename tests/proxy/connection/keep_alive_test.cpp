#include "proxy/connection/keep_alive.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "proxy/connection/answer_filter.h"
#include "proxy/connection/client_limits.h"
#include "support/scenario.h"

namespace watchdog::monitor {
namespace {

WaitingClient waiting(ModelApi api = ModelApi::openai_chat) {
  return {.api = api, .streams = true, .quiet = Millis{11'000}, .server = ServerState::reading};
}

TEST(KeepAlive, ComesOnlyWhileTheServerIsKnownToBeAtWork) {
  for (const auto name : Names<ServerState>::all) {
    auto client = waiting();
    client.server = *named<ServerState>(name);
    const bool at_work = name == "loading" || name == "queued" || name == "reading" ||
                         name == "writing" || name == "working";
    EXPECT_EQ(keep_alive({}, client).any(), at_work) << name;
    EXPECT_FALSE(keep_alive({.keep_alive = KeepAliveMode::off}, client).any());
  }
}

TEST(KeepAlive, ComesForAServerThatShowsNothingAsLongAsItsOwnerVouchesForIt) {
  const ProxySettings vouched{.assume_working = Millis{600'000}};
  for (const auto name : Names<ServerState>::all) {
    auto client = waiting();
    client.server = *named<ServerState>(name);
    client.silent = Millis{599'999};
    const bool contradicts =
        name == "over" || name == "hung" || name == "restarted" || name == "gone";
    EXPECT_EQ(keep_alive(vouched, client).any(), !contradicts) << name;
    client.silent = Millis{600'000};
    EXPECT_EQ(keep_alive(vouched, client).any(), keep_alive({}, client).any()) << name;
  }
}

TEST(KeepAlive, WaitsUntilAQuickErrorWouldHaveCome) {
  auto client = waiting();
  client.quiet = Millis{9'999};
  EXPECT_FALSE(keep_alive({}, client).any());
  client.quiet = Millis{10'000};
  EXPECT_TRUE(keep_alive({}, client).head);
  client.head_sent = true;
  EXPECT_FALSE(keep_alive({}, client).head);
}

TEST(KeepAlive, NeverComesWithinAnEventOrForWhatGeneratesNothing) {
  auto client = waiting();
  client.head_sent = true;
  client.between = false;
  EXPECT_FALSE(keep_alive({}, client).any());
  EXPECT_FALSE(keep_alive({}, waiting(ModelApi::openai_embeddings)).any());
  EXPECT_FALSE(keep_alive({}, waiting(ModelApi::other)).any());
  auto old = waiting();
  old.chunks = false;
  EXPECT_FALSE(keep_alive({}, old).any());
}

TEST(KeepAlive, IsOfTheKindThatTheApisClientsPassOver) {
  EXPECT_EQ(keep_alive({}, waiting()).bytes, ": still at work\n");
  EXPECT_EQ(keep_alive({}, waiting(ModelApi::anthropic_messages)).bytes,
            "event: ping\ndata: {\"type\": \"ping\"}\n\n");
  EXPECT_EQ(keep_alive({}, waiting(ModelApi::ollama_chat)).bytes, " ");
  EXPECT_EQ(keep_alive({}, waiting(ModelApi::gemini)).bytes, "\n") << "a comment ends its answer";
  const ProxySettings pieces{.keep_alive = KeepAliveMode::empty_delta};
  auto client = waiting();
  client.model = "\"m\"";
  const auto chat = keep_alive(pieces, client).bytes;
  ASSERT_TRUE(chat.starts_with("data: ") && chat.ends_with("\n\n"));
  const auto piece = nlohmann::json::parse(chat.substr(6));
  EXPECT_EQ(piece["model"], "m");
  EXPECT_TRUE(piece["choices"][0]["delta"].empty());
  client.api = ModelApi::ollama_generate;
  EXPECT_EQ(nlohmann::json::parse(keep_alive(pieces, client).bytes)["response"], "");
  // That API has no such piece.
  client.api = ModelApi::openai_responses;
  EXPECT_EQ(keep_alive(pieces, client).bytes, ": still at work\n");
}

TEST(KeepAlive, IsAnEventForClientsThatCountEvents) {
  for (const auto mode :
       {KeepAliveMode::comment, KeepAliveMode::empty_delta, KeepAliveMode::whitespace}) {
    for (const bool counts : {false, true}) {
      auto client = waiting(ModelApi::openai_responses);
      client.counts_events = counts;
      EXPECT_EQ(keep_alive({.keep_alive = mode}, client).bytes,
                counts
                    ? "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":0}\n\n"
                    : ": still at work\n");
      client.api = ModelApi::anthropic_messages;
      EXPECT_TRUE(keep_alive({.keep_alive = mode}, client).bytes.starts_with("event: ping"));
    }
  }
  EXPECT_TRUE(counts_events("codex_cli_rs/0.171.0 (Debian 12; x86_64)"));
  EXPECT_TRUE(counts_events("Codex Desktop/1.0"));
  EXPECT_FALSE(counts_events("OpenAI/JS 6.1.0"));
  EXPECT_FALSE(counts_events(""));
}

TEST(KeepAlive, AnAnswerInOnePieceGetsBlanksIfItsOwnerWantsThat) {
  auto client = waiting();
  client.streams = false;
  for (const auto mode : {KeepAliveMode::comment, KeepAliveMode::empty_delta})
    EXPECT_FALSE(keep_alive({.keep_alive = mode}, client).any());
  const ProxySettings blanks{.keep_alive = KeepAliveMode::whitespace};
  EXPECT_EQ(keep_alive(blanks, client).bytes, " ");
  EXPECT_TRUE(keep_alive(blanks, client).head);
  client.head_sent = true;
  client.between = false;  // of the answer something came
  EXPECT_FALSE(keep_alive(blanks, client).any());
  EXPECT_EQ(keep_alive(blanks, waiting()).bytes, ": still at work\n") << "of streams a comment";
}

std::string progress(int read, int total) {
  return R"(data: {"choices":[{"delta":{"role":"assistant","content":null}}],"prompt_progress":{"total":)" +
         std::to_string(total) + R"(,"cache":0,"processed":)" + std::to_string(read) +
         ",\"time_ms\":5}}\n\n";
}
const std::string words =
    "data: {\"choices\":[{\"delta\":{\"content\":\"about \\\"prompt_progress\\\":{\"}}]}\n\n";

TEST(AnswerFilter, HidesProgressThatTheClientDidNotAskFor) {
  AnswerFilter filter(AnswerFilter::Form::events, AnswerFilter::Progress::hidden);
  EXPECT_EQ(filter.pass(progress(0, 100) + progress(40, 100)),
            ": the prompt is read: 0 of 100 tokens\n: the prompt is read: 40 of 100 tokens\n");
  EXPECT_TRUE(filter.between());
  EXPECT_EQ(filter.prompt_read(), 40);
  EXPECT_EQ(filter.prompt_tokens(), 100);
  EXPECT_EQ(filter.pieces(), 0);
  EXPECT_EQ(filter.pass(words), words);
  EXPECT_EQ(filter.pieces(), 1);
  // The answer has begun: from now on all of it passes at once, in whatever pieces.
  EXPECT_EQ(filter.pass(words.substr(0, 9)), words.substr(0, 9));
  EXPECT_FALSE(filter.between());
}

TEST(AnswerFilter, DropsProgressIfNothingMayBeSent) {
  AnswerFilter filter(AnswerFilter::Form::events, AnswerFilter::Progress::dropped);
  EXPECT_EQ(filter.pass(progress(0, 100) + progress(40, 100)), "");
  EXPECT_EQ(filter.prompt_read(), 40);
  EXPECT_EQ(filter.pass(words), words);
}

/// Counts what strict clients take for events: each empty line ends one.
std::size_t empty_lines_in(std::string_view stream) {
  std::size_t empty = 0;
  for (std::size_t at = 0; at < stream.size(); ++at)
    empty += stream[at] == '\n' && (at == 0 || stream[at - 1] == '\n') ? 1 : 0;
  return empty;
}

TEST(KeepAlive, NothingThatIsInsertedBetweenEventsLooksLikeAnEvent) {
  for (const auto mode : {KeepAliveMode::comment, KeepAliveMode::empty_delta,
                          KeepAliveMode::whitespace, KeepAliveMode::off}) {
    for (const auto name : Names<ModelApi>::all) {
      const auto bytes = keep_alive({.keep_alive = mode}, waiting(*named<ModelApi>(name))).bytes;
      const bool is_event = bytes.starts_with("data:") || bytes.starts_with("event:");
      // Google's clients pass over blank lines, and not over comments.
      if (name == "generate content") continue;
      EXPECT_EQ(empty_lines_in(bytes), is_event ? 1U : 0U) << name << name_of(mode) << bytes;
      if (bytes.starts_with(':')) {
        // The events around many of them are what they were.
        std::string stream = "id: 1\ndata: {}\n\n";
        for (int n = 0; n < 151; ++n) stream += bytes;
        EXPECT_EQ(empty_lines_in(stream + "data: [DONE]\n\n"), 2U);
      }
    }
  }
}

TEST(AnswerFilter, ACommentIsPartOfNoEvent) {
  struct Row {
    const char* bytes;
    bool between;
  };
  const Row rows[] = {
      {"", true},
      {": ping\n", true},
      {": ping\r\n", true},
      {": pi", false},
      {": ping\n\n", true},
      {"data: {}\n", false},
      {"data: {}\n: ping\n", false},
      {"data: {}\n\n: ping\n", true},
      {"data: {}\n\n: ping\nid: 1\n", false},
      {"event: ping\n", false},
      {"data: {}\r\n\r\n", true},
      {"data: {}\r\n\r", false},
  };
  for (const auto& row : rows) {
    AnswerFilter whole(AnswerFilter::Form::events);
    static_cast<void>(whole.pass(row.bytes));
    EXPECT_EQ(whole.between(), row.between) << row.bytes;
    AnswerFilter split(AnswerFilter::Form::events);
    for (const char* at = row.bytes; *at != 0; ++at)
      static_cast<void>(split.pass(std::string(1, *at)));
    EXPECT_EQ(split.between(), row.between) << row.bytes;
  }
}

TEST(AnswerFilter, PassesProgressThatTheClientAskedFor) {
  AnswerFilter filter(AnswerFilter::Form::events, AnswerFilter::Progress::passed);
  EXPECT_EQ(filter.pass(progress(40, 100)), progress(40, 100));
  EXPECT_EQ(filter.prompt_read(), 40);
  EXPECT_EQ(filter.pieces(), 0);
}

TEST(AnswerFilter, CountsWhatIsAnAnswerAndNoPing) {
  AnswerFilter events(AnswerFilter::Form::events);
  const std::string pings = ": ping\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n:\r\n\r\n";
  EXPECT_EQ(events.pass(pings), pings);
  EXPECT_EQ(events.pieces(), 0);
  EXPECT_TRUE(events.between());
  static_cast<void>(events.pass("event: shipping\ndata: {}\n\ndata: {}"));
  EXPECT_EQ(events.pieces(), 1);
  EXPECT_FALSE(events.between());
  AnswerFilter lines(AnswerFilter::Form::lines);
  static_cast<void>(lines.pass("{}\n\n  \n{}\n{"));
  EXPECT_EQ(lines.pieces(), 2);
  EXPECT_FALSE(lines.between());
  AnswerFilter bytes;
  static_cast<void>(bytes.pass("{"));
  EXPECT_EQ(bytes.pieces(), 1);
}

TEST(AnswerFilter, ChangesNothingWhateverThePieces) {
  std::mt19937_64 random(test::random_seed());
  const std::vector<std::string> events{": comment\n\n",
                                        words,
                                        "data: [DONE]\n\n",
                                        "\n",
                                        "data: a\r\n\r\n",
                                        "event: x\ndata: y\ndata: z\n\n",
                                        "data: {\"prompt_progress\":7}\n\n",
                                        "garbage",
                                        std::string(20'000, 'x') + "\n\n"};
  for (int run = test::repetitions(500); run > 0; --run) {
    std::string stream;
    for (auto left = random() % 8; left > 0; --left) stream += events[random() % events.size()];
    const bool hides = random() % 2 == 0;
    AnswerFilter filter(AnswerFilter::Form::events,
                        hides ? AnswerFilter::Progress::hidden : AnswerFilter::Progress::none);
    std::string given;
    for (std::size_t at = 0; at < stream.size();) {
      const auto size = std::min<std::size_t>(1 + random() % 40, stream.size() - at);
      given += filter.pass(stream.substr(at, size));
      at += size;
    }
    given += filter.rest();
    ASSERT_EQ(given, stream);
    // With progress in front, all but that comes.
    AnswerFilter both(AnswerFilter::Form::events, AnswerFilter::Progress::hidden);
    given = both.pass(progress(1, 9).substr(0, 30));
    given += both.pass(progress(1, 9).substr(30) + stream);
    given += both.rest();
    ASSERT_EQ(given, ": the prompt is read: 1 of 9 tokens\n" + stream);
  }
}

}  // namespace
}  // namespace watchdog::monitor
