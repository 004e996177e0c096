// Tokens, and the logins that they sign.
#include "api/token.h"

#include <gtest/gtest.h>

#include <set>

namespace watchdog::monitor {
namespace {

const std::string a(32, 'a');
const std::string b(32, 'b');

TEST(Tokens, are_read_one_per_line) {
  const auto tokens = tokens_from("# who may\n\n  " + a + " \r\nviewer\tread " + b +
                                  "\nci report,act 0123456789abcdef\n");
  ASSERT_TRUE(tokens.ok()) << tokens.error().message;
  ASSERT_EQ(tokens->size(), 3U);
  EXPECT_EQ((*tokens)[0].name, "user");
  EXPECT_EQ((*tokens)[0].secret, a);
  EXPECT_EQ((*tokens)[0].scopes, Scopes::all());
  EXPECT_EQ((*tokens)[1].name, "viewer");
  EXPECT_EQ((*tokens)[1].scopes, (Scopes{Scope::read}));
  EXPECT_EQ((*tokens)[2].scopes, (Scopes{Scope::report, Scope::act}));
}

TEST(Tokens, that_are_wrong_are_refused_by_line_and_never_quoted) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "no token"},
           {"# nothing\n", "no token"},
           {a + "\nshort\n", "line 2"},
           {"x read short", "16"},
           {"x dance " + a, "read, report and act"},
           {"x , " + a, "read, report and act"},
           {"x y", "TOKEN, or"},
           {"x read " + a + " more", "TOKEN, or"},
           {"local read " + a, "name"},
           {"environment read " + a, "name"},
           {"a.b read " + a, "name"},
           {std::string(65, 'n') + " read " + a, "name"},
           {a + "\n" + b, "line 2"},
           {"x read " + a + "\ny read " + a, "line 2"},
           {"x read " + a + "\nx read " + b, "line 2"},
           {a.substr(1) + "\x7f", "visible"},
           {std::string(1'025, 'a'), "1024"}}) {
    const auto tokens = tokens_from(text);
    ASSERT_FALSE(tokens.ok()) << text;
    EXPECT_EQ(tokens.error().code, ErrorCode::invalid);
    EXPECT_NE(tokens.error().message.find(why), std::string::npos)
        << text << ": " << tokens.error().message;
    EXPECT_EQ(tokens.error().message.find("aaaa"), std::string::npos) << tokens.error().message;
  }
}

TEST(Tokens, new_ones_are_long_and_differ) {
  std::set<std::string> made;
  for (int i = 0; i < 100; ++i) {
    const auto secret = new_secret();
    EXPECT_EQ(secret.size(), 64U);
    EXPECT_TRUE(check_secret(secret).ok());
    made.insert(secret);
  }
  EXPECT_EQ(made.size(), 100U);
}

class Logins : public testing::Test {
 protected:
  const std::vector<Token> tokens{{"ann", Scopes::all(), a}, {"bob", {Scope::read}, b}};
  const WallTime now{Millis{1'700'000'000'000}};
  const WallTime expiry = now + std::chrono::hours(1);

  const Token* known(const std::string& cookies) { return known(cookies, now); }
  const Token* known(const std::string& cookies, WallTime at) {
    return login_in(tokens, cookies, at).token;
  }
};

TEST_F(Logins, secrets_are_found_whole_or_not_at_all) {
  EXPECT_EQ(find_token(tokens, a), tokens.data());
  EXPECT_EQ(find_token(tokens, b), &tokens[1]);
  for (const auto& wrong :
       {std::string(), a.substr(1), a + "a", a + std::string(1, '\0'), "ann" + a})
    EXPECT_EQ(find_token(tokens, wrong), nullptr) << wrong;
  EXPECT_EQ(find_token({}, a), nullptr);
}

TEST_F(Logins, are_known_until_they_expire_among_whatever_other_cookies) {
  const auto cookie = login_cookie(tokens[0], expiry);
  EXPECT_EQ(cookie.find(a), std::string::npos) << "the token itself is not in it";
  EXPECT_EQ(known(cookie), tokens.data());
  EXPECT_EQ(known("x=1; " + cookie + "; watchdog-00000000=ann.1.x"), tokens.data());
  EXPECT_EQ(known("watchdog-00000000=ann.99999999999.00; " + cookie), tokens.data())
      << "that of another monitor on this machine";
  EXPECT_EQ(known(cookie, expiry - std::chrono::seconds(1)), tokens.data());
  EXPECT_EQ(known(cookie, expiry), nullptr);
  EXPECT_EQ(login_in(tokens, cookie, now).cookie, cookie.substr(0, cookie.find('=')));
}

TEST_F(Logins, that_were_changed_in_any_place_are_not_known) {
  const auto cookie = login_cookie(tokens[0], expiry);
  // The name of the cookie itself says nothing.
  for (auto at = cookie.find('=') + 1; at < cookie.size(); ++at) {
    auto changed = cookie;
    changed[at] = changed[at] == '1' ? '2' : '1';
    EXPECT_EQ(known(changed), nullptr) << changed;
    EXPECT_EQ(known(cookie.substr(0, at)), nullptr) << at;
  }
  EXPECT_EQ(known(cookie + "0"), nullptr);
  auto renamed = cookie;
  renamed.replace(renamed.find("ann"), 3, "bob");
  EXPECT_EQ(known(renamed), nullptr) << "nobody becomes another";
  for (const char* nonsense :
       {"", ";", "=", "watchdog-", "watchdog-1=", "watchdog-1=ann", "watchdog-1=ann.",
        "watchdog-1=ann.99999999999.", "watchdog-1=ann.99999999999999999999999.00", "watchdog-1=..",
        "watchdog-1=ann.-1.00", ";;; ;=;=;"})
    EXPECT_EQ(known(nonsense), nullptr) << nonsense;
}

TEST_F(Logins, end_with_the_token_that_signed_them) {
  const auto cookie = login_cookie(tokens[0], expiry);
  EXPECT_EQ(login_in({tokens[1]}, cookie, now).token, nullptr) << "taken out";
  EXPECT_EQ(login_in({{"ann", Scopes::all(), b}}, cookie, now).token, nullptr) << "changed";
  EXPECT_EQ(login_in({{"eve", Scopes::all(), a}}, cookie, now).token, nullptr) << "renamed";
  const auto weaker = std::vector<Token>{{"ann", {Scope::read}, a}};
  EXPECT_EQ(login_in(weaker, cookie, now).token->scopes, (Scopes{Scope::read}))
      << "scopes are those of now";
}

}  // namespace
}  // namespace watchdog::monitor
