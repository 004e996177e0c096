#include "watchdog/content.h"

#include <gtest/gtest.h>

#include <random>

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
    testing::Values(Secret{"", ""}, Secret{"nothing here", "nothing here"},
                    Secret{"key sk-abcdefghijklmnop1234 end", "key [redacted] end"},
                    Secret{"ghp_0123456789abcdefghij0123", "[redacted]"},
                    Secret{"AKIAIOSFODNN7EXAMPLE", "[redacted]"},
                    Secret{"task-force and risk-averse", "task-force and risk-averse"},
                    Secret{"Authorization: Bearer abcdef123456",
                           "Authorization: Bearer [redacted]"},
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
