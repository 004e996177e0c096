#include "privacy/content.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "privacy/redaction.h"
#include "privacy/redactor.h"
#include "support/scenario.h"

namespace watchdog {
namespace {

struct Secret {
  const char* text;
  const char* clean;
};
class Redaction : public testing::TestWithParam<Secret> {};
TEST_P(Redaction, takes_out_what_looks_like_a_secret) {
  EXPECT_EQ(redact(GetParam().text), GetParam().clean);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Redaction,
    testing::Values(
        Secret{"", ""}, Secret{"nothing here", "nothing here"},
        Secret{"key sk-abcdefghijklmnop1234 end", "key [redacted] end"},
        Secret{"ghp_0123456789abcdefghij0123", "[redacted]"},
        Secret{"AKIAIOSFODNN7EXAMPLE", "[redacted]"},
        Secret{"task-force and risk-averse", "task-force and risk-averse"},
        Secret{"Authorization: Bearer abcdef123456", "Authorization: Bearer [redacted]"},
        Secret{"postgres://bob:hunter2@db/x", "postgres://bob:[redacted]@db/x"},
        Secret{"http://localhost:8080/a@b", "http://localhost:8080/a@b"},
        Secret{R"({"password": "hunter2", "user": "bob"})",
               R"({"password": "[redacted]", "user": "bob"})"},
        Secret{R"({\"api_key\":\"abcd1234\"})", R"({\"api_key\":\"[redacted]\"})"},
        Secret{"DB_PASSWORD=hunter2 next", "DB_PASSWORD=[redacted] next"},
        Secret{"token: abcd1234", "token: [redacted]"},
        Secret{"\"token\": 5120", "\"token\": 5120"},
        Secret{"max_tokens: 5120", "max_tokens: 5120"},
        Secret{"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- x",
               "[redacted] x"},
        Secret{"-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
               "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----"},
        Secret{R"(line\nsk-abcdefghijklmnop1234)", R"(line\n[redacted])"},
        Secret{"see hooks.slack.com/services/T0000000/B0000/abcdefgh", "see [redacted]"},
        Secret{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghij", "[redacted]"}),
    [](const auto& chosen) { return "shape" + std::to_string(chosen.index); });

TEST(Redaction, hostile_bytes_do_no_harm) {
  std::mt19937 random(test::random_seed());
  const std::string_view pieces[] = {"password",
                                     "=",
                                     ":",
                                     "\"",
                                     "\\",
                                     "sk-",
                                     "abcdefghijklmnopqrst",
                                     "://",
                                     "@",
                                     "-----BEGIN ",
                                     "PRIVATE KEY-----",
                                     "eyJ",
                                     ".",
                                     " ",
                                     "\xff",
                                     "\xc3",
                                     "Bearer ",
                                     "token"};
  for (int i = 0; i < test::repetitions(50'000); ++i) {
    std::string text;
    for (auto n = random() % 12; n > 0; --n) text += pieces[random() % std::size(pieces)];
    ASSERT_LE(redact(text).size(), 11 * text.size()) << text;
  }
}

TEST(Redaction, identifiers_stay_apart_without_their_secrets) {
  const std::string key = std::string("sk-") + "abcdefghijklmnop";
  const auto one = redact_identifier("call-" + key + "1"),
             two = redact_identifier("call-" + key + "2");
  EXPECT_TRUE(one.starts_with("call-[redacted-")) << one;
  EXPECT_EQ(one.find("abcdef"), std::string::npos);
  EXPECT_NE(one, two);
  EXPECT_EQ(redact_identifier(one), one);
  EXPECT_EQ(redact_identifier("call-1"), "call-1");
}

TEST(Redaction, sessions_say_no_secrets_before_their_first_report) {
  const std::string key = std::string("ghp_") + "0123456789abcdefghij0123";
  SessionSpec spec{.parent = key,
                   .agent = "a " + key,
                   .task = "use " + key,
                   .labels = {{"team", key}, {"password", "hunter22"}, {key, "x"}},
                   .process = ProcessFacts{.boot_id = key, .host = key}};
  spec.policy.tools[key].identity = {key};
  redact(spec);
  EXPECT_EQ(spec.parent, key);  // the name of a session
  EXPECT_EQ(spec.task, "use [redacted]");
  auto text = spec.agent + spec.process->boot_id + spec.process->host;
  for (const auto& [name, value] : spec.labels) text += name + value;
  for (const auto& [name, rule] : spec.policy.tools) text += name + rule.identity.at(0);
  EXPECT_EQ(text.find("0123456789"), std::string::npos) << text;
  EXPECT_EQ(text.find("hunter22"), std::string::npos) << text;
  EXPECT_EQ(spec.labels.size(), 3U);
}

TEST(Redaction, takes_out_what_was_added_as_well) {
  add_redaction([](std::string_view text, std::size_t from) {
    const auto at = text.find("VAULT-", from);
    return at == std::string_view::npos ? Stretch{} : Stretch{at, at + 7};
  });
  EXPECT_EQ(redact("VAULT-1, VAULT-2 and password=hunter22"),
            "[redacted], [redacted] and password=[redacted]");
  Report report{.kind = ReportKind::heartbeat, .event_id = "VAULT-1"};
  report.detail = Heartbeats{.phase = "VAULT-2", .counters = {{"VAULT-3", 1.0}}};
  seal(report, ContentLevel::none);
  const auto& beats = std::get<Heartbeats>(report.detail);
  EXPECT_EQ((report.event_id + beats.phase + beats.counters[0].first).find("VAULT"),
            std::string::npos);
  const auto once = report.event_id;
  seal(report, ContentLevel::none);
  EXPECT_EQ(report.event_id, once);
}

TEST(Redaction, takes_secrets_out_of_a_text_in_pieces_as_out_of_the_whole) {
  std::mt19937 random(test::random_seed());
  const std::string key = std::string("sk-") + "abcdefghijklmnop";
  const std::string pem = std::string("-----BEGIN PRIVATE ") + "KEY-----\n" +
                          std::string(3'000, 'k') + "\n-----END PRIVATE KEY-----";
  const std::string pieces[] = {key,
                                "password=hunter22",
                                "https://bob:hunter22@example.org/",
                                pem,
                                "\n",
                                " ",
                                std::string(700, '.'),
                                std::string(5'000, 'a'),
                                "words and words ",
                                R"({"token": "abcd1234"})"};
  for (int i = 0; i < test::repetitions(300); ++i) {
    std::string text;
    while (text.size() < 100'000) text += pieces[random() % std::size(pieces)] + " ";
    Redactor redactor;
    std::string clean;
    for (std::size_t at = 0; at < text.size();) {
      const auto bytes = 1 + random() % (random() % 2 == 0 ? 100 : 30'000);
      clean += redactor.feed(std::string_view(text).substr(at, bytes));
      at += bytes;
    }
    clean += redactor.rest();
    ASSERT_EQ(clean, redact(text));
    ASSERT_EQ(clean.find("hunter22"), std::string::npos);
  }
}

/// The lines, redacted one by one. The redactor only passes the lines that `wanted` leaves out.
std::string redacted_line_by_line(const std::string& text, const auto& wanted) {
  LineRedactor redactor;
  std::string all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (wanted(line)) all += redactor.redacted(line) + "\n";
    redactor.pass(line);
  }
  return all;
}

TEST(Redaction, removes_secrets_from_lines_that_are_given_one_by_one) {
  std::mt19937 random(test::random_seed());
  const auto key_line = [&](std::size_t length) {
    std::string line;
    while (line.size() < length)
      line += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random() % 64];
    return line;
  };
  for (const std::string kind : {"RSA ", "OPENSSH ", "", "ENCRYPTED "}) {
    for (const std::string indent : {"", "  ", "+", "| ", "2026-01-01T00:00:00Z stdout F "}) {
      std::string text = indent + "-----BEGIN " + kind + "PRIVATE " + "KEY-----\n";
      std::vector<std::string> secrets;
      for (int i = 0; i < 40; ++i) {
        secrets.push_back(key_line(i == 39 ? 28 : 64));
        text += indent + secrets.back() + "\n";
        if (i == 20) text += "a line of somebody else\n";
      }
      text +=
          indent + "-----END " + kind + "PRIVATE " + "KEY-----\nafter it " + key_line(30) + "\n";
      const auto all = redacted_line_by_line(text, [](const auto&) { return true; });
      for (const auto& secret : secrets) EXPECT_EQ(all.find(secret.substr(0, 8)), all.npos) << all;
      EXPECT_NE(all.find("a line of somebody else\n"), all.npos) << all;
      EXPECT_EQ(all.find("[redacted]", all.find("after it")), all.npos) << all;
      // Also where the line that begins it is of no interest itself.
      const auto some =
          redacted_line_by_line(text, [](const auto& l) { return l.find("--") == l.npos; });
      for (const auto& secret : secrets)
        EXPECT_EQ(some.find(secret.substr(0, 8)), some.npos) << some;
    }
  }
  EXPECT_EQ(redacted_line_by_line("machine h\nlogin bob\npassword hunter2\nok\n",
                                  [](const auto& line) { return line != "machine h"; }),
            "login bob\npassword [redacted]\nok\n");
  EXPECT_EQ(redacted_line_by_line("- name: DB_PASSWORD\n  value: hunter2\n  x: y\n",
                                  [](const auto& line) { return line[0] == ' '; }),
            "  value: [redacted]\n  x: y\n");
  EXPECT_EQ(
      redacted_line_by_line("grep -----BEGIN PRIVATE " + std::string("KEY----- x\nno key here\n"),
                            [](const auto&) { return true; }),
      "grep -----BEGIN PRIVATE " + std::string("KEY----- x\nno key here\n"));
}

TEST(Redaction, holds_no_more_of_a_text_than_it_must) {
  Redactor redactor;
  std::size_t given = 0;
  for (int i = 0; i < 1'000; ++i) given += redactor.feed(std::string(1'000, 'a')).size();
  EXPECT_GT(given, 900'000U);
  Redactor hostile;  // a key that never ends
  given = hostile.feed(std::string("-----BEGIN PRIVATE ") + "KEY-----").size();
  for (int i = 0; i < 1'000; ++i) given += hostile.feed(std::string(1'000, 'a')).size();
  EXPECT_GT(given, 800'000U);
}

TEST(Content, level_decides_what_is_kept_and_the_digest_is_of_the_whole) {
  const std::string long_text(1'000, 'x');
  const auto sealed = [&](ContentLevel level) {
    Report report{.kind = ReportKind::message, .content = long_text};
    seal(report, level);
    return report;
  };
  EXPECT_EQ(sealed(ContentLevel::full).content.size(), 1'000U);
  EXPECT_EQ(sealed(ContentLevel::preview).content.size(), 200U);
  EXPECT_EQ(sealed(ContentLevel::digest).content, "");
  EXPECT_EQ(sealed(ContentLevel::none).digest, 0U);
  EXPECT_NE(sealed(ContentLevel::digest).digest, 0U);
  EXPECT_EQ(sealed(ContentLevel::preview).digest, sealed(ContentLevel::full).digest);
  EXPECT_EQ(sealed(ContentLevel::none).bytes, 1'000);
}

TEST(Content, preview_never_cuts_a_character_or_a_secret) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "ä";
  EXPECT_EQ(first_characters(text, 200).size(), 400U);
  Report report{.kind = ReportKind::message,
                .content = std::string(190, 'a') + " sk-0123456789abcdef0123"};
  seal(report, ContentLevel::preview);
  EXPECT_EQ(report.content.find("sk-"), std::string::npos);
}

}  // namespace
}  // namespace watchdog
