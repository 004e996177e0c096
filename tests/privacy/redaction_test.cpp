// Secrets as people and programs write them, and harmless texts that look a little like them.

#include "privacy/redaction.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "privacy/content.h"
#include "privacy/secrets.h"
#include "support/scenario.h"
#include "support/secret_samples.h"

namespace watchdog {
namespace {

struct Written {
  const char* text;
  const char* clean;
};
class NamedSecrets : public testing::TestWithParam<Written> {};
TEST_P(NamedSecrets, lose_their_values_and_nothing_else) {
  EXPECT_EQ(redact(GetParam().text), GetParam().clean);
  EXPECT_EQ(redact(GetParam().clean), GetParam().clean);
}
INSTANTIATE_TEST_SUITE_P(
    Written, NamedSecrets,
    testing::Values(
        // A value without quotes extends to the next blank, quote or closing bracket.
        // Also a short one, and up to a blank only.
        Written{"password=ab1 next", "password=[redacted] next"},
        Written{"password: abc\n", "password: [redacted]\n"},
        Written{"DB_PASS=q DB_PASSWORD=7", "DB_PASS=[redacted] DB_PASSWORD=[redacted]"},
        Written{R"({"password": "a1", "pin": 2})", R"({"password": "[redacted]", "pin": 2})"},
        Written{"mysql -pab1 --password=ab1", "mysql -p[redacted] --password=[redacted]"},
        Written{"<password>ab1</password>", "<password>[redacted]</password>"},
        Written{"password=correct horse", "password=[redacted] horse"},
        Written{"password=ab!MzAK# next", "password=[redacted] next"},
        Written{"PGPASSWORD=Tr0ub4dor&3xyz psql", "PGPASSWORD=[redacted] psql"},
        Written{"connect(password=ab!c123)", "connect(password=[redacted])"},
        Written{"{password: ab!c123}", "{password: [redacted]}"},
        Written{"password=ab)c123]d4}e5 x", "password=[redacted] x"},
        Written{"a 'password=ab!c123' b", "a 'password=[redacted]' b"},
        Written{"\"x\": \"password=ab!c123\"", "\"x\": \"password=[redacted]\""},
        Written{R"({\"x\": \"password=ab!c123\"})", R"({\"x\": \"password=[redacted]\"})"},
        Written{"password=ab!c123\x1b[0m x", "password=[redacted]\x1b[0m x"},
        Written{R"("PASSWORD=ab!c123\nPATH=/bin\n")", R"("PASSWORD=[redacted]\nPATH=/bin\n")"},
        // `&` ends it in a query only.
        Written{"https://h/x?password=ab!c&user=bob", "https://h/x?password=[redacted]&user=bob"},
        Written{"a=b&client_secret=ab!c1&x=y", "a=b&client_secret=[redacted]&x=y"},
        Written{R"("u?a=1\u0026password=ab!c\u0026x=y")",
                R"("u?a=1\u0026password=[redacted]\u0026x=y")"},
        Written{"?a=1&amp;password=ab!c&amp;x=y", "?a=1&amp;password=[redacted]&amp;x=y"},
        // With quotes it extends to the closing one.
        Written{R"({"password": "ab\"cd\\\"ef\\", "user": "bob"})",
                R"({"password": "[redacted]", "user": "bob"})"},
        Written{R"({\"password\":\"ab\\\"cd\\\\\",\"user\":1})",
                R"({\"password\":\"[redacted]\",\"user\":1})"},
        Written{"{'password': b'hunter2', 'u': 1}", "{'password': b'[redacted]', 'u': 1}"},
        Written{"password=$'ab\\'cd' x", "password=$'[redacted]' x"},
        Written{"'password' => 'hunter2',", "'password' => '[redacted]',"},
        Written{"PASSWORD 'it''s hunter2' x", "PASSWORD '[redacted]' x"},
        Written{"password = \"\"\"hunter2\nmore\"\"\" x", "password = \"\"\"[redacted]\"\"\" x"},
        Written{"os.environ[\"DB_PASSWORD\"] = \"hunter2\"",
                "os.environ[\"DB_PASSWORD\"] = \"[redacted]\""},
        Written{"const password: string = \"hunter2\";",
                "const password: string = \"[redacted]\";"},
        Written{"password := \"hunter2\"", "password := \"[redacted]\""},
        Written{R"({"name":"DB_PASSWORD","value":"hunter2"})",
                R"({"name":"DB_PASSWORD","value":"[redacted]"})"},
        Written{"- name: DB_PASSWORD\n  value: hunter2\n",
                "- name: DB_PASSWORD\n  value: [redacted]\n"},
        Written{"password: |\n  hunter2\nuser: bob", "password: |\n  [redacted]\nuser: bob"},
        // Elements.
        Written{"<password>hunter2</password> x", "<password>[redacted]</password> x"},
        Written{"<db:adminPassword type=\"x\">hunter2</db:adminPassword>",
                "<db:adminPassword type=\"x\">[redacted]</db:adminPassword>"},
        Written{R"(\u003cpassword\u003ehunter2\u003c/password\u003e)",
                R"(\u003cpassword\u003e[redacted]\u003c/password\u003e)"},
        Written{"&lt;password&gt;hunter2&lt;/password&gt;",
                "&lt;password&gt;[redacted]&lt;/password&gt;"},
        // URLs.
        Written{"postgres://bob:p@ss/w0rd@db/x", "postgres://bob:[redacted]@db/x"},
        Written{"redis://:hunter2@db:6379/0", "redis://:[redacted]@db:6379/0"},
        Written{"https://0123456789abcdef@sentry.example/1", "https://[redacted]@sentry.example/1"},
        // Headers lose all of their values.
        Written{"Cookie: session=abc; theme=dark\nHost: x", "Cookie: [redacted]\nHost: x"},
        Written{"curl -H 'Set-Cookie: id=a; Path=/' x", "curl -H 'Set-Cookie: [redacted]' x"},
        Written{R"({"set-cookie": ["a=b; Path=/", "c=d"], "x": 1})",
                R"({"set-cookie": [[redacted]], "x": 1})"},
        Written{"Authorization: Token abcdef12345", "Authorization: Token [redacted]"},
        Written{"Authorization: Digest username=\"bob\", response=\"6629fae49393\"",
                "Authorization: Digest [redacted]"},
        Written{R"(["Authorization", "Token abcdef12345"])",
                R"(["Authorization", "Token [redacted]"])"},
        // Commands.
        Written{"mysql -u root -phunter2 db", "mysql -u root -p[redacted] db"},
        Written{R"(["mysqldump","-phunter2","db"])", R"(["mysqldump","-p[redacted]","db"])"},
        Written{"curl -u a:b https://x", "curl -u a:[redacted] https://x"},
        Written{R"(["curl", "-u", "bob:hunter2"])", R"(["curl", "-u", "bob:[redacted]"])"},
        Written{"curl --user 'bob:hunter2' x", "curl --user 'bob:[redacted]' x"},
        // Files.
        Written{"machine h\n  login bob\n  password hunter2\n",
                "machine h\n  login bob\n  password [redacted]\n"},
        Written{R"("machine h\n  login bob\n  password hunter2\n")",
                R"("machine h\n  login bob\n  password [redacted]\n")"},
        Written{"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g\nAAEC\n-----END PRIVATE "
                "KEY-----\nx",
                "[redacted]\nx"}),
    [](const auto& chosen) { return "shape" + std::to_string(chosen.index); });

class Harmless : public testing::TestWithParam<const char*> {};
TEST_P(Harmless, stays_as_it_is) {
  EXPECT_EQ(redact(GetParam()), GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    Written, Harmless,
    testing::Values(
        "password = getpass.getpass(prompt, stream)", "    secret = compute(user, password)",
        "password = ask(user,\n               title)", "token = await fetch_token(user, realm)",
        "secret = read(path, mode) + salt", "api_key = vault.read(mount, path)[field]",
        "password = getpass()", "password = os.environ[\"PASSWORD\"]", "token = tokens[i]",
        "self.token = token", "def f(password: str, token: str = None):", "password: string;",
        "connect(password=db_password, user=x)", "$password = $_POST['password'];",
        "password: <password>", "password=${DB_PASSWORD}", "--password \"$DB_PASSWORD\"",
        "password: no, secret: yes", "password=%s", "password: str", "password = pw;",
        "pass=12 fail=0", "pass: 3", "password=;", "password -> x", "password=$1",
        "if (password == p)", "passwords: 12", "PASSWORD=********",
        "Usage: login <user> <password> [options]", "--password-file x",
        "echo \"Password: \"; read x", R"({"prompt":"Enter password:","user":"bob"})",
        R"({"token":"Hello","logprob":-0.25})", "token: 1,024/4,096", "Token: IDENTIFIER",
        "if token == 'EOF':", "secret: !vault |", "PWD=/home/bob OLDPWD=/root",
        "a basic understanding of bearer authentication", "token: unexpected end of input",
        "http://localhost:8080/users/a@example.org", "https://example.org:443/x?y=a@b"),
    [](const auto& chosen) { return "text" + std::to_string(chosen.index); });

// Where a parameter may be, with `@` for its name and `*` for its value.
constexpr const char* places[] = {
    "https://h/cb?@=*",
    "https://h/cb?@=*&a=b",
    "https://h/cb?a=b&@=*",
    "https://h/cb?a=b&@=*&c=d",
    "https://h/cb?a=b;@=*;c=d",
    "https://h/cb?a=b&amp;@=*&amp;c=d",
    "https://h/cb?a=b&#38;@=*",
    "https://h/cb#@=*",
    "https://h/cb#a=b&@=*&c=d",
    "https://h/cb#/in?@=*&c=d",
    "POST /t\n\n@=*&grant_type=x",
    "grant_type=x&@=*",
    "\"https://h/cb?@=*\"",
    "'https://h/cb?a=b&@=*'",
    "(https://h/cb?a=b&@=*)",
    "[x](https://h/cb?@=*).",
    "<https://h/cb?@=*>",
    "see https://h/cb?@=*, then",
    R"({"url":"https://h/cb?a=b\u0026@=*\u0026c=d"})",
    R"({"url":"https:\/\/h\/cb?@=*"})",
    "https://h/go?to=https%3A%2F%2Fh%2Fcb%3F@%3D*%26c%3Dd&e=f",
    "GET /cb?@=* HTTP/1.1",
};

std::string placed(std::string_view place, std::string_view name, std::string_view value) {
  std::string text;
  for (const char c : place) {
    if (c == '@') {
      text += name;
    } else if (c == '*') {
      text += value;
    } else {
      text += c;
    }
  }
  return text;
}

TEST(Queries, lose_the_values_of_parameters_with_secret_names_wherever_they_are) {
  constexpr const char* names[] = {"access_token",
                                   "id_token",
                                   "refresh_token",
                                   "code",
                                   "sig",
                                   "signature",
                                   "X-Amz-Signature",
                                   "X-Amz-Credential",
                                   "token",
                                   "key",
                                   "X-Amz-Security-Token",
                                   "api_key",
                                   "apikey",
                                   "password",
                                   "client_secret",
                                   "SAMLResponse",
                                   "access%5Ftoken",
                                   "%61ccess_token",
                                   "data[token]",
                                   "auth%5Btoken%5D",
                                   "X-Goog-Signature",
                                   "oauth_token",
                                   "session_id",
                                   "ACCESS_TOKEN"};
  for (const auto* place : places) {
    for (const auto* name : names) {
      for (const auto* value :
           {"4f9aTq7Zx0Lm2", "abc123def", "eyJh0bGci-x_Y.Zz9=", "Zx0%2Fq9%2B7Lm"}) {
        const auto text = placed(place, name, value);
        const auto clean = redact(text);
        // A value's own sign `=` ends it where a URL is in a URL.
        EXPECT_EQ(clean.find(std::string_view(value).substr(0, 8)), std::string::npos)
            << text << "\n"
            << clean;
        EXPECT_EQ(redact(clean), clean) << text;
        for (const char* other : {"a=b", "c=d", "c%3Dd", "e=f"})
          EXPECT_EQ(clean.find(other) != clean.npos, text.find(other) != text.npos) << text << "\n"
                                                                                    << clean;
      }
    }
  }
}

TEST(Queries, keep_harmless_values) {
  for (const auto* place : places) {
    for (const auto& [name, value] :
         std::vector<std::pair<const char*, const char*>>{{"code", "200"},
                                                          {"code", "404"},
                                                          {"code", "US"},
                                                          {"code", "en-GB"},
                                                          {"key", "name"},
                                                          {"key", "user-id"},
                                                          {"key", "12"},
                                                          {"code", "python"},
                                                          {"q", "abc123def456"},
                                                          {"session", "new"}}) {
      const auto text = placed(place, name, value);
      EXPECT_EQ(redact(text), text);
    }
  }
  for (const auto* text : {"f(code=abc123, x=1)", "if (key == abc123) {}", "exit code=1a2b3c",
                           "https://h/x?token=<token>&code={code}&key=$KEY&sig=%s",
                           "url + \"?access_token=\" + token"})
    EXPECT_EQ(redact(text), text);
}

/// Printable, without what ends a value; a digit makes it no word.
std::string password_of(std::mt19937& random, std::string_view without) {
  std::string password;
  while (password.size() < 6 + random() % 20) {
    const char c = static_cast<char>('!' + random() % ('~' - '!' + 1));
    if (without.find(c) == std::string_view::npos) password += c;
  }
  return "q" + password + "7";
}

TEST(NamedSecrets, hide_every_character_of_any_password) {
  const auto seed = test::random_seed();
  std::mt19937 random(seed);
  using Write = std::function<std::string(const std::string&)>;
  struct Way {
    std::string_view without;  ///< Characters that end it there.
    Write write;
  };
  const auto within = [](std::string before, std::string after) -> Write {
    return [=](const std::string& password) { return before + password + after; };
  };
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  constexpr std::string_view bare = "\"'`\\)]}";
  const Way ways[] = {
      {bare, within("password=", " x")},
      {bare, within("export PGPASSWORD=", "\nls")},
      {bare, within("password: ", "\n")},
      {"\"'`\\)]}([", within("f(a, password=", ")")},
      {bare, within("mysql --password ", " x")},
      {"\"'`\\)]}&", within("https://h/x?a=b&password=", "&c=d")},
      {"", [&](const auto& it) { return "{\"password\": " + quoted(it) + ", \"a\": 1}"; }},
      {"", [&](const auto& it) { return quoted("{\"password\": " + quoted(it) + "}"); }},
      {"", [&](const auto& it) { return quoted(quoted("{\"password\": " + quoted(it) + "}")); }},
      {"'\\", within("{'password': b'", "'}")},
      {"'\\", within("'password' => '", "',")},
      {"<&", within("<password>", "</password>")},
      {"\"'`<>:", within("postgres://bob:", "@db/x")},
  };
  for (int i = 0; i < test::repetitions(20'000); ++i) {
    const auto& way = ways[random() % std::size(ways)];
    const auto password = password_of(random, way.without);
    const auto text = way.write(password);
    const auto clean = redact(text);
    // Exactly what a shorter password leaves.
    ASSERT_EQ(clean, redact(way.write("hunter2x"))) << text << " seed " << seed;
    ASSERT_EQ(redact(clean), clean) << text << " seed " << seed;
  }
}

TEST(NamedSecrets, hide_every_password_of_one_to_three_characters) {
  const auto seed = test::random_seed();
  std::mt19937 random(seed);
  constexpr std::string_view letters = "bcdfghjlmqrtwz";  // no words
  constexpr std::string_view others = "bcdfghjlmqrtwz0123456789!#+,-./@^~";
  const std::pair<std::string, std::string> ways[] = {
      {"password=", " x"},   {"--password ", " x"},        {"PASSWORD: ", "\n"},
      {"DB_PASS=", " x"},    {"client_secret=", " x"},     {"{\"pwd\":\"", "\"}"},
      {"passwd => '", "',"}, {"<password>", "</password>"}};
  for (int i = 0; i < test::repetitions(5'000); ++i) {
    std::string password{letters[random() % letters.size()]};
    if (random() % 2 == 0) password += others[random() % others.size()];
    if (random() % 2 == 0) password += "7";
    const auto& [before, after] = ways[random() % std::size(ways)];
    const auto text = before + password + after;
    ASSERT_EQ(redact(text), before + "[redacted]" + after) << text << " seed " << seed;
  }
}

TEST(Redaction, takes_out_secrets_of_over_a_hundred_shapes) {
  const auto samples = test::secret_samples();
  ASSERT_GE(samples.size(), 100U);
  const auto json = [](const std::string& text) { return nlohmann::json(text).dump(); };
  for (const auto& [text, core] : samples) {
    const std::string written[] = {text,
                                   "first " + text,
                                   text + "\nsecond",
                                   "first\n" + text + "\n",
                                   json("first\n" + text + "\nsecond"),
                                   json(json("first\n" + text + "\nsecond")),
                                   "\x1b[32m" + text + "\x1b[0m",
                                   json("\x1b[32m" + text + "\x1b[0m"),
                                   "| " + text + " |"};
    for (const auto& one : written) {
      const auto clean = redact(one);
      EXPECT_EQ(clean.find(core.substr(0, 6)), std::string::npos) << one << "\n" << clean;
      EXPECT_EQ(clean.find(core.substr(core.size() - 6)), std::string::npos) << one << "\n"
                                                                             << clean;
      EXPECT_EQ(redact(clean), clean);
      const auto named = redact_identifier(one);
      EXPECT_EQ(named.find(core.substr(0, 6)), std::string::npos) << one << "\n" << named;
      EXPECT_EQ(redact_identifier(named), named);
    }
  }
}

TEST(Redaction, takes_a_word_from_at_most_one_harmless_text_in_two_hundred) {
  const auto texts = test::harmless_texts(2'000);
  std::size_t changed = 0;
  std::string all;
  for (const auto& text : texts) {
    const auto clean = redact(text);
    if (clean == text) continue;
    ++changed;
    all += text + "\n-> " + clean + "\n";
  }
  EXPECT_LE(changed, texts.size() / 200) << all;
}

TEST(Redaction, takes_out_what_is_between_a_name_and_its_value) {
  const std::string token = std::string("gh") + "p_0123456789abcdefghijABCDEFGHIJ012345";
  EXPECT_EQ(redact("<password x='" + token + "'>hunter2</password>"),
            "<password x='[redacted]'>[redacted]</password>");
  EXPECT_EQ(redact("machine " + token + " login " + token + " password hunter2"),
            "machine [redacted] login [redacted] password [redacted]");
}

/// A token of this shape.
std::string token_of(const SecretShape& shape, std::mt19937& random) {
  std::string letters("0123456789");
  for (char c = 'A'; c <= (shape.alphabet.is_hex ? 'F' : 'Z'); ++c) letters += c;
  if (!shape.alphabet.is_caps)
    for (char c = 'a'; c <= (shape.alphabet.is_hex ? 'f' : 'z'); ++c) letters += c;
  const auto many = [&](std::size_t count) {
    std::string made;
    while (made.size() < count) made += letters[random() % letters.size()];
    return made;
  };
  return many(shape.before) + std::string(shape.text) + many(shape.after) + "7";
}

TEST(SecretShapes, have_a_source_and_are_found_wherever_a_token_may_begin) {
  const auto seed = test::random_seed();
  std::mt19937 random(seed);
  for (const auto& shape : shapes::all) {
    EXPECT_FALSE(shape.source.empty()) << shape.text;
    if (shape.kind != SecretKind::token && shape.kind != SecretKind::within) continue;
    for (int i = 0; i < 20; ++i) {
      const auto token = token_of(shape, random);
      if (!looks_random(std::string_view(token).substr(shape.text.size()))) continue;
      for (const std::string before :
           {"", " ", "\"", "=", "/", "\\n", "%3D", "\\u0026", "\x1b[1;31m"})
        EXPECT_EQ(redact(before + token + " x"), before + "[redacted] x") << seed;
    }
  }
}

}  // namespace
}  // namespace watchdog
