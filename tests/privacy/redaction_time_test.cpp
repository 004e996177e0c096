// The redactor reads texts that anybody may have written, on threads that others wait for. Its time
// must grow with the text and not with its square, whatever the text repeats.

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "privacy/content.h"
#include "privacy/redaction.h"
#include "privacy/redactor.h"
#include "privacy/secret_shapes.h"
#include "support/scenario.h"
#include "text/nearest.h"

namespace watchdog {
namespace {

constexpr std::size_t mb = 1'000'000;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

template <class Work>
double seconds_of(const Work& work) {
  const auto begin = cpu_seconds();
  work();
  return cpu_seconds() - begin;
}

std::string repeated(std::string_view part, std::size_t bytes) {
  std::string text;
  text.reserve(bytes + part.size());
  while (text.size() < bytes) text += part;
  return text;
}

/// A text in which the scanner looks for this shape. The flags need their commands.
std::string mark_of(const SecretShape& shape) {
  std::string mark(shape.text);
  std::erase(mark, '|');
  std::ranges::replace(mark, '?', '_');
  return shape.command.empty() ? mark : std::string(shape.command) + mark;
}

/// Values whose end is far away, and which are no secrets or must not be looked for twice.
const std::vector<std::string>& endings() {
  static const std::vector<std::string> all{
      "",         "=./1",       "=[redacted-", "=\\\\\\\\", "=\\nab",       ": x ",
      ": a=",     ": ['a ",     "=\"\"\"a ",   "=\"a\\",    "=\\\"a",       "='",
      ">x",       " x=1 ",      ": |\n",       "= \t",      " '[redacted-", " abc:",
      "-----zz ", "0000000000", "/",           "a.",        " a login b ",  "://a:${",
  };
  return all;
}

/// All repeated parts: each mark with some of the ends, each way to begin a key, random mixtures.
std::vector<std::string> shapes_of_text(std::mt19937& random) {
  std::vector<std::string> parts{
      "token=./1",
      "authorization: x ",
      "cookie: a ",
      "cookie: ['a ",
      "-----BEGIN PRIVATE KEY-----zz ",
      "-----BEGIN PRIVATE KEY-----",
      "-----END PRIVATE KEY-----",
      "-----BEGIN PRIVATE KEY----- MIIEabcdefghijklmnopqrstuvwxyz0123 ",
      "MDA-",
      "MTA_.",
      "\\",
      "password=\\\\",
      "password=\\u0026",
      "authorization: \\\\",
      "authorization: ='",
      "curl -b a",
      "curl -u 'a -b 'a",
      "-docker -p",
      "docker login -p",
      " -p",
      "identified by '[redacted-",
      "machine ",
      "machine a machine b\\n",
      ".mac",
      "/def",
      "_machine",
      ".default",
      "<password x='",
      "<password>",
      "://",
      "://a:",
      "://a:b@",
      "eyJ.",
      "eyJaaaaaaaaaa.",
      "[redacted-",
      "[redacted]",
      "private-lines: 1",
      "bearer a",
      "Q~",
      "12345678:AA",
      "&lt;",
      "\\u003e",
      "?code=",
      ",code=a",
      "code=a&",
      ";key=a",
      "#token=[redacted-",
      "%3Fcode%3D",
      "&%63ode=a",
  };
  std::vector<std::string> marks;
  for (const auto& shape : shapes::all) marks.push_back(mark_of(shape));
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const bool is_named = shapes::all[i].kind < SecretKind::token;
    for (std::size_t end = 0; end < endings().size(); ++end)
      if (is_named ? (i + end) % 3 == 0 : end == i % endings().size())
        parts.push_back(marks[i] + endings()[end]);
  }
  std::string rising;  // each quote has one backslash more than the one before
  for (std::size_t i = 0; i < 300; ++i) rising += "token=" + std::string(i, '\\') + "\"a";
  parts.push_back(rising);
  for (int i = 0; i < 60; ++i) {
    std::string mixed;
    for (auto left = 2 + random() % 30; left > 0; --left)
      mixed += marks[random() % marks.size()] + endings()[random() % endings().size()];
    parts.push_back(mixed);
  }
  return parts;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
constexpr std::size_t scale = 40;  // all is slower there
#else
constexpr std::size_t scale = 1;
#endif

/// A text of 50 KB takes a few ms, and by the square it would take a second.
constexpr double seconds_per_mb_max = 4.0;

TEST(RedactionTime, is_bounded_for_each_byte_of_every_shape) {
  const auto seed = test::random_seed();
  std::mt19937 random(seed);
  const auto bytes = mb / 20 / scale;
  for (const auto& part : shapes_of_text(random)) {
    const auto text = repeated(part, bytes);
    EXPECT_LT(seconds_of([&] { (void)redact(text); }), seconds_per_mb_max / 20)
        << part << " seed " << seed;
  }
}

TEST(RedactionTime, grows_with_the_text) {
  const auto seed = test::random_seed();
  std::mt19937 random(seed);
  auto parts = shapes_of_text(random);
  // The slowest ones say the most.
  std::vector<std::pair<double, std::string>> slow;
  for (auto& part : parts) {
    const auto text = repeated(part, mb / 50 / scale);
    slow.emplace_back(seconds_of([&] { (void)redact(text); }), std::move(part));
  }
  std::ranges::sort(slow, std::greater{});
  slow.resize(4);
  std::string mixture;
  for (const auto& [seconds, part] : slow) mixture += part;
  slow.emplace_back(0, mixture);
  for (const auto& [seconds, part] : slow) {
    double before = 0;
    for (const std::size_t bytes : {mb, 4 * mb}) {
      const auto text = repeated(part, bytes / scale);
      const auto now = seconds_of([&] { (void)redact(text); });
      // Four times, and room for a busy machine; by the square it would be 16 times.
      EXPECT_TRUE(before == 0 || now < 9 * before + 0.05)
          << part << ": " << before << " s, then " << now << " s, seed " << seed;
      before = now;
    }
  }
}

TEST(RedactionTime, of_small_pieces_is_that_of_the_whole) {
  const auto text = "password=" + std::string(mb / 5 / scale, 'x');
  const auto seconds = seconds_of([&] {
    Redactor redactor;
    for (std::size_t at = 0; at < text.size(); at += 7)
      (void)redactor.feed(std::string_view(text).substr(at, 7));
    (void)redactor.rest();
  });
  EXPECT_LT(seconds, seconds_per_mb_max / 5);
}

TEST(RedactionTime, does_not_depend_on_what_is_not_kept) {
  const auto text = repeated("token=./1 authorization: x ", 4 * mb / scale);
  Report report;
  report.kind = ReportKind::end;
  report.name = report.call_id = report.turn = text;
  report.content = text;
  report.detail =
      Outcome{.kind = OutcomeKind::failed, .reason = text, .error = text, .subject = text};
  SessionSpec spec;
  spec.task = spec.title = spec.agent = text;
  spec.labels["a"] = text;
  spec.labels[text] = "b";
  EXPECT_LT(seconds_of([&] {
              seal(report, ContentLevel::preview);
              redact(spec);
              (void)unknown_word("argument", text, {"one", "two"});
            }),
            0.5);
}

}  // namespace
}  // namespace watchdog
