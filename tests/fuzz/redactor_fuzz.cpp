// The redactor ends for every text, and keeps the result within bounds. A text in pieces gives the
// same result. The result has no token of a published shape that was put into the text. The time
// for each byte of a repeated text is bounded: by the square it would be many times as long.

#include <ctime>
#include <string_view>

#include "fuzz/fuzz.h"
#include "privacy/content.h"
#include "privacy/redaction.h"
#include "privacy/redactor.h"

using namespace watchdog;

std::vector<std::string> fuzz_seeds() {
  return {"password=ab!MzAK#x next",
          R"({\"api_key\":\"ab\\\"cd12\",\"x\":1})",
          "postgres://bob:p@ss/w0rd@db/x https://0123456789abcdef@h/",
          "<password>hunter2</password>",
          "Cookie: a=b; c=d\r\nAuthorization: Digest username=\"bob\", response=\"0123456789\"\n",
          "mysql -u root -phunter2 db | curl -u a:b http://x\n[\"curl\",\"-u\",\"a:b\"]",
          "machine h\n login bob\n password hunter2\n",
          "-----BEGIN RSA PRIVATE "
          "KEY-----\nMIIEabcdefghijklmnopqrstuvwxyz0123\n-----END RSA PRIVATE "
          "KEY-----\n",
          "- name: DB_PASSWORD\n  value: |\n   hunter2\n",
          "eyJhbGciOiJI.eyJzdWIi.abc",
          "123456789:AA0123456789012345678901234567890 MTIzNDU2Nzg5MDEyMzQ1Njc4.Gabcde."
          "abcdefghijklmnopqrstuvwxyz0123456789AB",
          "abc8Q~abcdefghijklmnopqrstuvwxyz0123456789 \\u0026sig=\\n%3D\\x1b[32m",
          "password: ${X} <x> **** \"\"\" ''' ``` $(x) {{x}}",
          "identified by 'x' Private-Lines: 2\nabcd"};
}

/// The time of this thread alone, so other programs do not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// Most searches that fail do so where the text is repeated.
void try_time_of(std::string_view part) {
  constexpr std::size_t bytes = 400'000;
  constexpr double seconds_per_byte = 15e-6;  // with a sanitizer, some ten times what is usual
  std::string text;
  while (text.size() < bytes) text += part;
  const auto begin = cpu_seconds();
  (void)redact(text);
  FUZZ_REQUIRE(cpu_seconds() - begin < seconds_per_byte * static_cast<double>(text.size()));
}

void try_input(std::string_view text) {
  // One in some hundred inputs: it takes long.
  static unsigned inputs = 0;
  if (!text.empty() && text.size() < 4'000 && inputs++ % 256 < 2) try_time_of(text);
  const auto clean = redact(text);
  FUZZ_REQUIRE(clean.size() <= 11 * text.size());
  const auto named = redact_identifier(text);
  FUZZ_REQUIRE(named.size() <= 27 * text.size());

  Redactor redactor;
  std::string pieces;
  for (std::size_t at = 0; at < text.size(); at += 1 + text.size() % 13)
    pieces += redactor.feed(text.substr(at, 1 + text.size() % 13));
  FUZZ_REQUIRE(pieces + redactor.rest() == clean);

  LineRedactor lines;
  for (std::size_t at = 0; at <= text.size();) {
    const auto line = text.substr(at, text.find('\n', at) - at);
    FUZZ_REQUIRE(lines.redacted(line).size() <= 11 * (line.size() + 1));
    lines.pass(line);
    at += line.size() + 1;
  }

  const std::string token = std::string("gh") + "p_0123456789abcdefghijABCDEFGHIJ012345";
  const auto middle = text.size() / 2;
  const auto with = redact(std::string(text.substr(0, middle)) + " " + token + " " +
                           std::string(text.substr(middle)));
  FUZZ_REQUIRE(with.find(token.substr(8)) == std::string::npos);
}
