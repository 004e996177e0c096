// What a client gets of an answer: the same in front of and below an early head of the proxy,
// whatever the server's head says of it.
#include "proxy/connection/answer_body.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "api/compression.h"
#include "ingest/unpacker.h"
#include "support/scenario.h"

namespace watchdog::monitor {
namespace {

const std::string events =
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n";
const std::string lines = "{\"message\":{\"content\":\"a\"},\"done\":false}\n{\"done\":true}\n";
const std::string document = R"({"object":"chat.completion","choices":[]})";

std::string gzip(const std::string& text) {
  return compressed({.status = 200, .body = text}, {.accept_encoding = "gzip"}).body;
}

/// The client's bytes of a body that comes in pieces, and its content as the proxy reads it.
struct Outcome {
  std::string given;
  std::string read;
  bool is_whole = true;
};

Outcome outcome_of(AnswerBody body, const std::string& bytes, std::size_t piece_max) {
  Outcome outcome;
  for (std::size_t at = 0; at < bytes.size(); at += piece_max) {
    auto piece = body.pass(bytes.substr(at, piece_max));
    outcome.given += piece.given;
    outcome.read += piece.read.value_or("");
    if (piece.is_broken) outcome.is_whole = false;
  }
  const auto rest = outcome.is_whole ? body.rest() : std::nullopt;
  outcome.is_whole = rest.has_value();
  outcome.given += rest.value_or("");
  return outcome;
}

AnswerBody::Client late(ModelApi api = ModelApi::openai_chat) {
  return {.api = api, .streams = true, .has_head = true};
}

TEST(AnswerBody, a_good_answer_passes_below_an_early_head_whatever_its_type) {
  for (const auto* type :
       {"text/event-stream", "Text/Event-Stream; charset=utf-8", "text/plain; charset=utf-8", "",
        "application/octet-stream", "text/html", "application/json"}) {
    for (const std::string start : {"", "\n", "\xEF\xBB\xBF", ": hi\n\n", "id: 1\n", "retry: 5\n",
                                    "event: message\n", "\r\n"}) {
      for (const std::size_t piece : {1U, 7U, 1'000U}) {
        for (const int status : {200, 203}) {
          const auto got = outcome_of(AnswerBody(late(), {.status = status, .type = type}),
                                      start + events, piece);
          EXPECT_EQ(got.given, start + events) << type << start;
          EXPECT_EQ(got.read, start + events);
        }
      }
    }
  }
  for (const auto* type : {"application/x-ndjson", "application/json", "text/plain", ""}) {
    AnswerBody body(late(ModelApi::ollama_chat), {.status = 200, .type = type});
    EXPECT_EQ(outcome_of(std::move(body), lines, 3).given, lines) << type;
  }
}

TEST(AnswerBody, an_event_passes_as_soon_as_it_is_known_for_one) {
  AnswerBody body(late(), {.status = 200, .type = "text/plain"});
  EXPECT_EQ(body.pass("da").given, "");
  EXPECT_FALSE(body.takes_insertions());
  EXPECT_EQ(body.pass("ta: {}\n\n").given, "data: {}\n\n");
  EXPECT_TRUE(body.takes_insertions());
  EXPECT_EQ(body.pass("data").given, "data");
  EXPECT_FALSE(body.takes_insertions());
}

TEST(AnswerBody, an_answer_in_one_piece_passes_as_it_is) {
  const auto large =
      R"({"object":"chat.completion","choices":[")" + std::string(100'000, 'x') + "\"]}";
  for (const auto& body : {document, large}) {
    for (const std::size_t piece : {1U, 1'000U}) {
      AnswerBody below(late(), {.status = 200, .type = "application/json"});
      EXPECT_EQ(outcome_of(std::move(below), body, piece).given, body);
    }
  }
}

TEST(AnswerBody, an_error_below_an_early_head_gets_the_apis_form) {
  struct Row {
    int status;
    std::string body;
    const char* given;  ///< A part of it.
  };
  const Row rows[] = {
      {500, R"({"error":{"message":"no room"}})", R"(data: {"error":{"message":"no room"}})"},
      {200, R"({"error":{"message":"no room"}})", R"(data: {"error":{"message":"no room"}})"},
      {500, "no room", R"(data: {"error":{"message":"no room","type":"server_error","code":500}})"},
      {200, "<html>sorry</html>", R"(data: {"error":{"message":"<html>sorry</html>")"},
      {200, "Internal error", R"(data: {"error":{"message":"Internal error")"},
      {200, "", "refused the request"},
      {200, "  \n", "data: {\"error\":"},
      {307, "", R"("code":307)"},
      {204, "", "refused the request"},
  };
  for (const auto& row : rows) {
    for (const std::size_t piece : {1U, 1'000U}) {
      AnswerBody body(late(), {.status = row.status, .type = "text/plain"});
      const auto given = outcome_of(std::move(body), row.body, piece).given;
      EXPECT_NE(given.find(row.given), std::string::npos) << row.status << row.body << given;
      EXPECT_TRUE(given.starts_with("data: {\"error\"") && given.ends_with("}\n\n")) << given;
    }
  }
}

TEST(AnswerBody, a_packed_answer_is_unpacked_below_an_early_head_only) {
  for (const auto* coding : {"gzip", "GZIP", "x-gzip", " gzip "}) {
    for (const auto* type : {"text/event-stream", "text/plain", ""}) {
      for (const std::size_t piece : {1U, 11U, 1'000U}) {
        const AnswerBody::Head head{.status = 200, .type = type, .coding = coding};
        const auto got = outcome_of(AnswerBody(late(), head), gzip(events), piece);
        EXPECT_EQ(got.given, events) << coding << type;
        EXPECT_EQ(got.read, events);
        const auto own = outcome_of(
            AnswerBody({.api = ModelApi::openai_chat, .streams = true}, head), gzip(events), piece);
        EXPECT_EQ(own.given, gzip(events)) << "the server's head names the coding";
        EXPECT_EQ(own.read, events);
      }
    }
  }
  const AnswerBody::Head head{.status = 500, .type = "application/json", .coding = "gzip"};
  const auto error = outcome_of(AnswerBody(late(), head), gzip(R"({"error":{"message":"m"}})"), 4);
  EXPECT_EQ(error.given, "data: {\"error\":{\"message\":\"m\"}}\n\n");
}

TEST(AnswerBody, an_answer_in_brotli_is_unpacked_where_the_program_can) {
  // An optional library, which scripts/test installs.
  if (!brotli_unpacker()) GTEST_SKIP() << "this program was built without brotli";
  const std::string packed(
      "\x8b\x04\x80"
      "data: {}\n\n\x03",
      14);
  const AnswerBody::Head head{.status = 200, .type = "text/event-stream", .coding = "br"};
  EXPECT_EQ(AnswerBody(late(), head).obstacle(), "");
  EXPECT_EQ(outcome_of(AnswerBody(late(), head), packed, 2).given, "data: {}\n\n");
  const auto own = outcome_of(AnswerBody({.streams = true}, head), packed, 2);
  EXPECT_EQ(own.given, packed);
  EXPECT_EQ(own.read, "data: {}\n\n");
}

TEST(AnswerBody, a_packed_answer_that_breaks_off_is_not_whole) {
  const AnswerBody::Head head{.status = 200, .type = "text/event-stream", .coding = "gzip"};
  const auto packed = gzip(events);
  for (std::size_t size = 1; size < packed.size(); ++size)
    EXPECT_FALSE(outcome_of(AnswerBody(late(), head), packed.substr(0, size), 5).is_whole);
  EXPECT_FALSE(outcome_of(AnswerBody(late(), head), "no gzip at all", 5).is_whole);
  // Below the server's own head the client judges it.
  const auto own = outcome_of(AnswerBody({.streams = true}, head), "no gzip at all", 5);
  EXPECT_TRUE(own.is_whole);
  EXPECT_EQ(own.given, "no gzip at all");
}

TEST(AnswerBody, a_coding_that_is_not_read_is_an_obstacle_below_an_early_head) {
  for (const auto* coding : {"lzma", "gzip, br", "compress"}) {
    const AnswerBody::Head head{.status = 200, .type = "text/event-stream", .coding = coding};
    EXPECT_FALSE(AnswerBody(late(), head).obstacle().empty()) << coding;
    AnswerBody own({.streams = true}, head);
    EXPECT_EQ(own.obstacle(), "");
    EXPECT_FALSE(own.is_read());
    EXPECT_EQ(outcome_of(std::move(own), "\x1b\x02", 1).given, "\x1b\x02");
  }
  for (const auto* coding : {"", "identity", "gzip"}) {
    const AnswerBody::Head head{.status = 200, .type = "text/event-stream", .coding = coding};
    EXPECT_EQ(AnswerBody(late(), head).obstacle(), "") << coding;
  }
}

TEST(AnswerBody, nothing_is_inserted_where_a_client_would_take_it_for_a_part_of_the_answer) {
  EXPECT_TRUE(AnswerBody().takes_insertions()) << "no head came";
  struct Row {
    AnswerBody::Client client;
    AnswerBody::Head head;
    std::string body;
    bool takes;
  };
  const AnswerBody::Client own{.api = ModelApi::openai_chat, .streams = true};
  const Row rows[] = {
      {own, {200, "text/event-stream", ""}, "", true},
      {own, {200, "TEXT/event-stream", ""}, "data: {}\n\n", true},
      {own, {200, "text/event-stream", ""}, "data: {}\n", false},
      {own, {200, "text/event-stream", "gzip"}, "", false},
      {own, {200, "text/event-stream", "br"}, "", false},
      {own, {200, "text/event-stream", "lzma"}, "", false},
      {own, {200, "text/event-stream", "identity"}, "", true},
      {own, {200, "application/json", ""}, "", false},
      {own, {200, "text/plain", ""}, "", false},
      {own, {200, "text/plain", ""}, "data: {}\n\n", true},
      {own, {500, "text/plain", ""}, "data: {}\n\n", false},
      {own, {500, "application/json", ""}, "", false},
      {own, {200, "application/x-ndjson", ""}, "{}\n", true},
      {own, {200, "application/x-ndjson", ""}, "{", false},
      {late(), {200, "text/plain", ""}, "", false},
      {late(), {200, "text/plain", ""}, "data: {}\n\n", true},
      {late(), {200, "text/event-stream", "gzip"}, gzip("data: {}\n\n"), true},
      {late(), {500, "text/event-stream", ""}, "", false},
  };
  for (const auto& row : rows) {
    AnswerBody body(row.client, row.head);
    static_cast<void>(body.pass(row.body));
    EXPECT_EQ(body.takes_insertions(), row.takes)
        << row.head.status << row.head.type << row.head.coding << row.body;
  }
}

TEST(AnswerBody, progress_that_the_client_did_not_ask_for_is_hidden_in_packed_answers_too) {
  const auto progress = R"(data: {"choices":[],"prompt_progress":{"total":9,"processed":4}})"
                        "\n\n" +
                        events;
  AnswerBody body(
      {.api = ModelApi::openai_chat, .streams = true, .progress = AnswerFilter::Progress::dropped},
      {.status = 200, .type = "text/event-stream", .coding = "gzip"});
  EXPECT_TRUE(body.unpacks());
  EXPECT_TRUE(body.changes());
  EXPECT_EQ(body.pass(gzip(progress)).given, events);
  EXPECT_EQ(body.filter().prompt_read(), 4);
}

TEST(AnswerBody, an_answer_that_is_not_a_stream_passes_as_it_comes) {
  std::mt19937_64 random(test::random_seed());
  for (int run = test::repetitions(200); run > 0; --run) {
    std::string bytes(random() % 100, ' ');
    std::ranges::generate(bytes, [&] { return static_cast<char>(random()); });
    const AnswerBody::Client client{.api = static_cast<ModelApi>(random() % 10),
                                    .streams = random() % 2 == 0};
    const int statuses[] = {200, 204, 307, 404, 500};
    AnswerBody body(client, {.status = statuses[random() % 5], .type = "application/json"});
    EXPECT_EQ(outcome_of(std::move(body), bytes, 1 + random() % 9).given, bytes);
  }
}

TEST(AnswerBody, the_client_gets_the_same_however_the_server_cuts_it) {
  std::mt19937_64 random(test::random_seed());
  const std::vector<std::string> parts{"data: {}\n\n",
                                       "{\"error\":{\"message\":\"m\"}}",
                                       "{",
                                       "}",
                                       "<html>",
                                       " ",
                                       "\r\n",
                                       ": comment\n",
                                       "id: 1\n",
                                       "dat",
                                       "\xEF\xBB\xBF",
                                       std::string(40'000, 'x')};
  for (int run = test::repetitions(500); run > 0; --run) {
    std::string bytes;
    for (auto left = random() % 6; left > 0; --left) bytes += parts[random() % parts.size()];
    const char* types[] = {"text/event-stream", "text/plain", "application/json", ""};
    const int statuses[] = {200, 200, 200, 500, 307};
    const bool is_packed = random() % 3 == 0;
    const AnswerBody::Client client{.api = static_cast<ModelApi>(random() % 10),
                                    .streams = random() % 4 != 0,
                                    .has_head = random() % 4 != 0};
    const AnswerBody::Head head{.status = statuses[random() % 5],
                                .type = types[random() % 4],
                                .coding = is_packed ? "gzip" : ""};
    const auto sent = is_packed ? gzip(bytes) : bytes;
    const auto whole = outcome_of(AnswerBody(client, head), sent, 1'000'000);
    const auto cut = outcome_of(AnswerBody(client, head), sent, 1 + random() % 50);
    ASSERT_EQ(cut.given, whole.given) << head.status << head.type << bytes.substr(0, 100);
    ASSERT_EQ(cut.read, bytes);
    ASSERT_TRUE(cut.is_whole);
  }
}

}  // namespace
}  // namespace watchdog::monitor
