// Guesses of tokens: which are counted, and who still gets in.
#include "api/guess_limits.h"

#include <gtest/gtest.h>

#include "api/access.h"
#include "support/manual_clock.h"

namespace watchdog::monitor {
namespace {

const std::string chosen = "correct-horse-battery";
const std::string random_one = "4d0c1f7be6a92835" + std::string("4d0c1f7be6a92835") +
                               std::string("4d0c1f7be6a928354d0c1f7be6a92835");
const std::string other_chosen = "another-one-that-a-person-chose";
const std::vector<Token> tokens{{"ann", Scopes::all(), chosen},
                                {"bob", Scopes::all(), random_one},
                                {"eve", {Scope::read}, other_chosen}};

/// The ways to show a credential. Each is a way to guess.
enum class Way { bearer, cookie, cookie_of_a_foreign_page, second_cookie, login };
constexpr Way ways[] = {Way::bearer, Way::cookie, Way::cookie_of_a_foreign_page, Way::second_cookie,
                        Way::login};

class Guessing {
 public:
  explicit Guessing(bool is_open) : access_(policy(is_open), 0, nullptr, clock_) {}

  /// True if the answer shows that the secret is that of `name`.
  bool shows(Way way, const std::string& address, const std::string& name,
             const std::string& secret) {
    if (way == Way::login) return access_.log_in(from(address), secret).token.has_value();
    auto asked = from(address);
    const auto cookie = login_cookie({name, {}, secret}, clock_.wall() + login_lasts);
    if (way == Way::bearer) {
      asked.authorization = "Bearer " + secret;
    } else if (way == Way::second_cookie) {  // beside the login of somebody who may come
      asked.cookie =
          cookie + "; " + login_cookie({"eve", {}, other_chosen}, clock_.wall() + login_lasts);
    } else {
      asked.cookie = cookie;
    }
    if (way == Way::cookie_of_a_foreign_page) {
      asked.origin = "http://evil.example";
      return access_.refuse(asked).has_value();
    }
    return access_.caller(asked).name == name;
  }
  [[nodiscard]] int status(const Request& request, std::optional<Scope> scope) {
    if (const auto refusal = access_.refuse(request)) return refusal->status;
    const auto refusal = access_.refuse(request, access_.caller(request), scope);
    return refusal ? refusal->status : 0;
  }
  static Request from(const std::string& address, const std::string& secret = "") {
    return {.method = Method::get,
            .target = "/",
            .host = "127.0.0.1:3000",
            .authorization = secret.empty() ? "" : "Bearer " + secret,
            .peer = address};
  }
  Access& access() { return access_; }
  test::ManualClock& clock() { return clock_; }

 private:
  static AccessPolicy policy(bool is_open) {
    AccessPolicy made{.tokens = tokens};
    if (is_open) made.without_token = {Scope::read, Scope::report};
    return made;
  }
  test::ManualClock clock_;
  Access access_;
};

TEST(Guesses, are_ten_at_once_and_ten_a_minute_whatever_shows_them) {
  for (const bool is_open : {false, true}) {
    for (const auto way : ways) {
      const auto story = std::to_string(static_cast<int>(way)) + (is_open ? " open" : "");
      Guessing guessing(is_open);
      int right = 0;
      const auto guess = [&](Way by, int number) {
        if (guessing.shows(by, "10.0.0.1", "ann", "a wrong token " + std::to_string(number)))
          ++right;
      };
      for (int i = 0; i < 8; ++i) guess(way, i);
      EXPECT_EQ(right, 0) << story;
      EXPECT_TRUE(guessing.shows(way, "10.0.0.1", "ann", chosen)) << "a right one, " << story;
      for (int i = 8; i < 10; ++i) guess(Way::bearer, i);
      for (const auto other : ways) {
        const auto both = story + " then " + std::to_string(static_cast<int>(other));
        EXPECT_FALSE(guessing.shows(other, "10.0.0.1", "ann", chosen)) << both;
        EXPECT_FALSE(guessing.shows(other, "10.0.0.1", "ann", "a wrong token 3")) << both;
        EXPECT_TRUE(guessing.shows(other, "10.0.0.1", "bob", random_one)) << both;
        EXPECT_TRUE(guessing.shows(other, "10.0.0.2", "ann", chosen)) << both;
      }
      guessing.clock().advance(std::chrono::seconds(6));
      guess(Way::bearer, 10);
      EXPECT_FALSE(guessing.shows(way, "10.0.0.1", "ann", chosen))
          << "one in six seconds " << story;
      guessing.clock().advance(std::chrono::seconds(12));  // for two cookies
      EXPECT_TRUE(guessing.shows(way, "10.0.0.1", "ann", chosen)) << story;
      EXPECT_EQ(right, 0) << story;
    }
  }
}

TEST(Guesses, are_as_many_as_a_request_has_cookies) {
  Guessing guessing(true);
  auto asked = Guessing::from("10.0.0.1");
  const auto expiry = guessing.clock().wall() + login_lasts;
  for (int i = 0; i < 11; ++i)
    asked.cookie += login_cookie({"ann", {}, "a wrong token " + std::to_string(i)}, expiry) + "; ";
  const auto many = asked.cookie;
  asked.cookie += login_cookie(tokens[0], expiry);
  EXPECT_FALSE(guessing.access().caller(asked).known) << "more than the limit are not compared";
  asked.cookie = login_cookie(tokens[0], expiry);
  EXPECT_EQ(guessing.access().caller(asked).name, "ann") << "nor counted";
  asked.cookie = many.substr(0, many.rfind("watchdog-"));
  EXPECT_FALSE(guessing.access().caller(asked).known);
  asked.cookie = login_cookie(tokens[0], expiry);
  EXPECT_FALSE(guessing.access().caller(asked).known) << "ten were ten guesses";
}

TEST(Guesses, are_not_the_same_wrong_one_again) {
  Guessing guessing(false);
  const auto expiry = guessing.clock().wall() + login_lasts;
  auto browser = Guessing::from("10.0.0.1");
  browser.cookie = login_cookie({"ann", {}, "the token of before"}, expiry);
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_EQ(
        guessing.status(Guessing::from("10.0.0.1", "an old token of an agent"), Scope::report),
        401);
    EXPECT_EQ(guessing.status(browser, Scope::read), 401);
  }
  EXPECT_EQ(guessing.status(Guessing::from("10.0.0.1", chosen), Scope::act), 0);
  EXPECT_TRUE(guessing.access().log_in(browser, chosen).token);
  // Not even beyond the limit; so a request that is looked at twice gets one answer.
  for (int i = 0; i < 10; ++i)
    (void)guessing.status(Guessing::from("10.0.0.1", "a wrong token " + std::to_string(i)),
                          Scope::act);
  EXPECT_EQ(guessing.status(Guessing::from("10.0.0.1", chosen), Scope::act), 429);
  EXPECT_EQ(guessing.status(Guessing::from("10.0.0.1", "an old token of an agent"), Scope::act),
            401);
}

TEST(Guesses, of_other_addresses_keep_nobody_out) {
  Guessing guessing(true);
  for (int i = 0; i < 3'000; ++i) {
    const auto address = "10.1." + std::to_string(i % 250) + "." + std::to_string(i / 250);
    (void)guessing.shows(ways[i % 5], address, "ann", "a wrong token " + std::to_string(i));
  }
  for (const auto way : ways) EXPECT_TRUE(guessing.shows(way, "10.0.0.1", "ann", chosen));
}

TEST(Guesses, beyond_the_limit_get_429_where_a_token_is_needed) {
  for (const bool is_open : {false, true}) {
    Guessing guessing(is_open);
    for (int i = 0; i < 10; ++i)
      (void)guessing.status(Guessing::from("10.0.0.1", "a wrong token " + std::to_string(i)),
                            std::nullopt);
    for (const auto& secret : {chosen, std::string("one more wrong token")}) {
      const auto asked = Guessing::from("10.0.0.1", secret);
      EXPECT_EQ(guessing.status(asked, Scope::act), 429);
      EXPECT_EQ(guessing.status(asked, Scope::report), is_open ? 0 : 429)
          << "what needs no token is open to it, too";
    }
    EXPECT_EQ(guessing.status(Guessing::from("10.0.0.1"), Scope::act), 401);
    EXPECT_EQ(guessing.status(Guessing::from("10.0.0.1", random_one), Scope::act), 0);
    const auto refused = guessing.access().log_in(Guessing::from("10.0.0.1"), chosen);
    EXPECT_EQ(refused.refusal.status, 429);
    EXPECT_NE(refused.refusal.extra_headers.find("Retry-After: 6\r\n"), std::string::npos);
    EXPECT_TRUE(refused.burst);
    EXPECT_FALSE(guessing.access().log_in(Guessing::from("10.0.0.1"), chosen).burst);
  }
}

TEST(Guesses, of_all_ports_are_counted_together) {
  test::ManualClock clock;
  const auto shared = std::make_shared<GuessLimits>();
  Access page({.tokens = tokens}, 0, shared, clock);
  Access proxy({.tokens = tokens}, 0, shared, clock);
  for (int i = 0; i < 10; ++i)
    (void)(i % 2 == 0 ? page : proxy)
        .caller(Guessing::from("10.0.0.1", "a wrong token " + std::to_string(i)));
  EXPECT_TRUE(page.caller(Guessing::from("10.0.0.1", chosen)).unchecked);
  EXPECT_TRUE(proxy.caller(Guessing::from("10.0.0.1", chosen)).unchecked);
}

TEST(GuessLimits, remember_many_addresses_and_no_more) {
  GuessLimits limits;
  const auto guess = [&](const std::string& address, int number, Millis now) {
    const auto text = std::to_string(number);
    return limits.judge(address, {text}, now, [](ComparedWith) { return std::size_t{1}; });
  };
  for (std::size_t n = 0; n + 1 < peers_max; ++n) (void)guess(std::to_string(n), 0, Millis{0});
  const Millis later{600'000};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(guess("busy", i, later), ComparedWith::all);
  (void)guess("one more", 0, later);
  EXPECT_EQ(guess("busy", 11, later), ComparedWith::random_only)
      << "those that rest were forgotten";
}

TEST(Secrets, that_nobody_can_guess_are_known_by_their_form) {
  for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(is_random(new_secret()));
  for (const auto& text :
       {std::string(), chosen, std::string(64, 'a'), random_one + "0", random_one.substr(1),
        "G" + random_one.substr(1),
        std::string("0123456701234567012345670123456701234567012345670123456701234567")})
    EXPECT_FALSE(is_random(text)) << text;
}

}  // namespace
}  // namespace watchdog::monitor
