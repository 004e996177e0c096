// The rights of each caller: a request goes in, a decision comes out.
#include "api/access_policy.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "api/access.h"
#include "support/manual_clock.h"

namespace watchdog::monitor {
namespace {

const std::string all_secret(32, 'a');
const std::string read_secret(32, 'r');
const WallTime now{Millis{1'700'000'000'000}};

AccessPolicy on_loopback() {
  return {.tokens = {{"ann", Scopes::all(), all_secret}, {"bob", {Scope::read}, read_secret}},
          .without_token = {Scope::read, Scope::report},
          .hosts = {"127.0.0.1"}};
}
AccessPolicy exposed() {
  auto policy = on_loopback();
  policy.without_token = {};
  policy.any_host = true;
  policy.secure = true;
  return policy;
}
Request request(Method method = Method::get) {
  return {.method = method, .target = "/", .host = "127.0.0.1:3000"};
}
Request shown(const std::string& authorization, Method method = Method::get) {
  auto made = request(method);
  made.authorization = authorization;
  return made;
}
Request logged_in(Method method) {
  auto made = request(method);
  made.cookie = login_cookie({"ann", Scopes::all(), all_secret}, now + login_lasts);
  return made;
}
/// The status of the refusal; 0: the request may go on.
int answer(const AccessPolicy& policy, const Request& request, std::optional<Scope> scope) {
  const auto caller = policy.caller(request, now);
  if (const auto refusal = policy.refuse_foreign(request, caller)) return refusal->status;
  const auto refusal = policy.refuse(caller, scope);
  return refusal ? refusal->status : 0;
}

TEST(AccessPolicy, lets_each_caller_do_what_its_scopes_say) {
  struct Row {
    Request request;
    int on_loopback[4];  // nothing, read, report, act
    int exposed[4];
  };
  for (const auto& row :
       std::vector<Row>{{request(), {0, 0, 0, 401}, {0, 401, 401, 401}},
                        {shown("Bearer " + all_secret), {0, 0, 0, 0}, {0, 0, 0, 0}},
                        {shown("bearer " + all_secret), {0, 0, 0, 0}, {0, 0, 0, 0}},
                        {shown("Bearer " + read_secret), {0, 0, 403, 403}, {0, 0, 403, 403}},
                        {shown("Bearer " + all_secret + "a"), {0, 0, 0, 401}, {0, 401, 401, 401}},
                        {shown("Bearer "), {0, 0, 0, 401}, {0, 401, 401, 401}},
                        {shown(all_secret), {0, 0, 0, 401}, {0, 401, 401, 401}},
                        {shown("Basic " + all_secret), {0, 0, 0, 401}, {0, 401, 401, 401}},
                        {logged_in(Method::get), {0, 0, 0, 0}, {0, 0, 0, 0}}}) {
    int at = 0;
    for (const auto scope : {std::optional<Scope>{}, std::optional(Scope::read),
                             std::optional(Scope::report), std::optional(Scope::act)}) {
      EXPECT_EQ(answer(on_loopback(), row.request, scope), row.on_loopback[at])
          << row.request.authorization << " " << at;
      EXPECT_EQ(answer(exposed(), row.request, scope), row.exposed[at])
          << row.request.authorization << " " << at;
      ++at;
    }
  }
}

TEST(AccessPolicy, knows_callers_by_the_names_of_their_tokens) {
  EXPECT_EQ(on_loopback().caller(request(), now).name, "local");
  EXPECT_EQ(on_loopback().caller(shown("Bearer " + read_secret), now).name, "bob");
  EXPECT_EQ(on_loopback().caller(logged_in(Method::get), now).name, "ann");
  auto late = on_loopback().caller(logged_in(Method::get), now + login_lasts);
  EXPECT_EQ(late.name, "local") << "a login expires";
  EXPECT_FALSE(late.wrong_token) << "which is no guess";
}

TEST(AccessPolicy, does_not_answer_to_strange_names_where_anything_is_open) {
  auto named = on_loopback();
  named.hosts.emplace_back("Watch.example");
  named.hosts.emplace_back("other.example:8443");
  for (const auto& [host, status] :
       std::vector<std::pair<std::string, int>>{{"", 400},
                                                {"localhost", 0},
                                                {"other.example", 0},
                                                {"LOCALHOST:3000", 0},
                                                {"127.0.0.1", 0},
                                                {"[::1]:80", 0},
                                                {"watch.example:8443", 0},
                                                {"evil.example", 403},
                                                {"evil.example:3000", 403},
                                                {"watch.example.evil.example", 403},
                                                {"localhost.evil.example", 403},
                                                {"127.0.0.1.evil.example", 403},
                                                {"[::1", 400},
                                                {"[", 400},
                                                {"127.0.0.2", 403},
                                                {"@localhost", 400}}) {
    auto asked = request();
    asked.host = host;
    EXPECT_EQ(answer(named, asked, Scope::read), status) << host;
    asked.authorization = "Bearer " + all_secret;
    EXPECT_EQ(answer(named, asked, Scope::act), status) << host << ", whoever asks";
  }
  auto asked = request();
  asked.host = "watch.example";
  EXPECT_EQ(answer(on_loopback(), asked, Scope::read), 403);
  EXPECT_EQ(answer(exposed(), asked, Scope::read), 401)
      << "where a token is needed, names are free";
}

TEST(AccessPolicy, takes_changes_from_its_own_pages_and_from_programs_only) {
  struct Row {
    const char* origin;
    const char* fetch_site;
    int read, change;                        // by a program, or without a login
    int read_with_login, change_with_login;  // by a browser that is logged in
  };
  for (const auto& row :
       std::vector<Row>{{"", "", 0, 0, 0, 403},
                        {"http://127.0.0.1:3000", "", 0, 0, 0, 0},
                        {"https://127.0.0.1:3000", "same-origin", 0, 403, 403, 403},
                        {"", "same-origin", 0, 0, 0, 0},
                        {"", "same-site", 0, 0, 0, 403},
                        {"", "none", 0, 0, 0, 403},
                        {"", "cross-site", 0, 403, 0, 403},
                        {"null", "", 0, 403, 403, 403},
                        {"http://evil.example", "", 0, 403, 403, 403},
                        {"http://127.0.0.1:3001", "same-site", 0, 403, 403, 403},
                        {"http://127.0.0.1:3000.evil.example", "", 0, 403, 403, 403},
                        {"ftp://127.0.0.1:3000", "", 0, 403, 403, 403}}) {
    for (const auto method :
         {Method::get, Method::head, Method::post, Method::patch, Method::other}) {
      const bool reads = method == Method::get || method == Method::head;
      auto plain = request(method);
      auto login = logged_in(method);
      for (auto* each : {&plain, &login}) {
        each->origin = row.origin;
        each->fetch_site = row.fetch_site;
      }
      EXPECT_EQ(answer(on_loopback(), plain, Scope::report), reads ? row.read : row.change)
          << row.origin << " " << row.fetch_site;
      EXPECT_EQ(answer(on_loopback(), login, Scope::report),
                reads ? row.read_with_login : row.change_with_login)
          << row.origin << " " << row.fetch_site;
      login.authorization = "Basic c29tZTpwcm94eQ==";
      EXPECT_EQ(answer(on_loopback(), login, Scope::report),
                reads ? row.read_with_login : row.change_with_login)
          << "the browser says that by itself as well";
      login.authorization = "Bearer " + all_secret;
      EXPECT_EQ(answer(on_loopback(), login, Scope::act), reads ? row.read : row.change)
          << "a token that is shown is no browser's doing";
    }
  }
}

TEST(AccessPolicy, logs_in_with_a_cookie_for_this_server_and_no_script) {
  const auto line = on_loopback().log_in(on_loopback().tokens[0], now);
  for (const char* part :
       {"Set-Cookie: watchdog-", "; Path=/", "; Max-Age=604800", "; HttpOnly", "; SameSite=Strict"})
    EXPECT_NE(line.find(part), std::string::npos) << line;
  EXPECT_EQ(line.find("Secure"), std::string::npos) << "plain HTTP on loopback";
  EXPECT_EQ(line.find("Domain"), std::string::npos);
  EXPECT_NE(exposed().log_in(exposed().tokens[0], now).find("; Secure\r\n"), std::string::npos);
  EXPECT_NE(on_loopback().log_out(logged_in(Method::post), now).find("=; Path=/; Max-Age=0"),
            std::string::npos);
  EXPECT_EQ(on_loopback().log_out(request(Method::post), now), "");
}

/// From another machine.
Request from(const std::string& peer, const std::string& secret = "") {
  auto made = secret.empty() ? request() : shown("Bearer " + secret);
  made.peer = peer;
  return made;
}

TEST(AccessPolicy, takes_only_a_name_or_an_address_with_a_port_for_a_host) {
  const auto status = [](const AccessPolicy& policy, const std::string& host) {
    auto asked = request();
    asked.host = host;
    const auto refusal = policy.refuse_foreign(asked, {});
    return refusal ? refusal->status : 0;
  };
  for (const char* host : {"127.0.0.1", "127.0.0.1:3000", "localhost", "LOCALHOST:1", "[::1]",
                           "[::1]:65535", "localhost:"}) {
    EXPECT_EQ(status(on_loopback(), host), 0) << host;
    EXPECT_EQ(status(exposed(), host), 0) << host;
  }
  EXPECT_EQ(status(exposed(), "my_host-1.example:80"), 0);
  std::vector<std::string> wrong{"127.0.0.1:3000@evil",
                                 "127.0.0.1:3000:evil",
                                 "127.0.0.1:http",
                                 "127.0.0.1:123456",
                                 "user@127.0.0.1",
                                 "127.0.0.1/evil",
                                 "127.0.0.1,evil",
                                 "[::1",
                                 "[::1]evil",
                                 "[::1]3000",
                                 "[]",
                                 ":3000",
                                 "[evil]",
                                 "http://127.0.0.1"};
  // None of these may be in a host, wherever it stands.
  for (const char c : std::string_view("@/?#\\,;%&'\"<>(){}|^`~!$*+= \t")) {
    for (const std::size_t at : {0U, 4U, 9U, 10U, 14U})
      wrong.push_back(std::string("127.0.0.1:3000").insert(at, 1, c));
  }
  for (const auto& host : wrong) {
    EXPECT_EQ(status(on_loopback(), host), 400) << host;
    EXPECT_EQ(status(exposed(), host), 400) << host;
  }
}

TEST(Access, limits_the_number_of_refused_acts_in_the_trail) {
  test::ManualClock clock;
  Access access(exposed(), 0, nullptr, clock);
  const auto admitted = [&](const std::string& peer, int count) {
    int sum = 0;
    for (int i = 0; i < count; ++i) sum += access.admits_refused_act(from(peer)) ? 1 : 0;
    return sum;
  };
  EXPECT_EQ(admitted("10.0.0.1", 100), 10);
  EXPECT_EQ(admitted("10.0.0.2", 1), 1) << "others are in the trail";
  clock.advance(std::chrono::minutes(1));
  EXPECT_EQ(admitted("10.0.0.1", 100), 1);
  int all = 0;
  for (int i = 0; i < 200; ++i) all += admitted("10.1." + std::to_string(i) + ".1", 1);
  EXPECT_LE(all, 60) << "many addresses together do not fill the disk";
  EXPECT_GE(all, 40);
}

TEST(Access, lets_what_was_opened_last_as_long_as_what_was_shown) {
  for (const auto& policy : {on_loopback(), exposed()}) {
    test::ManualClock clock;
    Access access(policy, 0, nullptr, clock);
    auto by_cookie = request();
    by_cookie.cookie = login_cookie({"ann", Scopes::all(), all_secret}, clock.wall() + login_lasts);
    const auto ann = access.lasting(shown("Bearer " + all_secret), Scope::read);
    const auto bob = access.lasting(shown("Bearer " + read_secret), Scope::read);
    const auto login = access.lasting(by_cookie, Scope::read);
    const auto nobody = access.lasting(request(), Scope::read);
    const auto all = [&] { return std::array{ann(), bob(), login(), nobody()}; };
    const bool open = !policy.without_token.empty();
    EXPECT_EQ(all(), (std::array{true, true, true, open}));
    access.renew({{"ann", Scopes::all(), all_secret}});
    EXPECT_EQ(all(), (std::array{true, false, true, open})) << "withdrawn";
    access.renew({{"bob", {Scope::report}, read_secret}, {"ann", Scopes::all(), all_secret}});
    EXPECT_EQ(all(), (std::array{true, false, true, open})) << "for something else";
    access.renew({{"bob", {Scope::read}, read_secret}, {"ann", Scopes::all(), all_secret}});
    clock.advance(login_lasts - std::chrono::seconds(1));
    EXPECT_EQ(all(), (std::array{true, true, true, open}));
    clock.advance(std::chrono::seconds(1));
    EXPECT_EQ(all(), (std::array{true, true, false, open})) << "expired";
    access.renew({{"ann", Scopes::all(), std::string(32, 'n')}});
    EXPECT_EQ(all(), (std::array{false, false, false, open})) << "another secret";
  }
}

TEST(Access, limits_the_requests_of_each_other_machine) {
  test::ManualClock clock;
  Access access(on_loopback(), 5, nullptr, clock);
  const auto many = [&](const std::string& peer) {
    int passed = 0;
    for (int i = 0; i < 50; ++i) passed += access.refuse(from(peer)) ? 0 : 1;
    return passed;
  };
  EXPECT_EQ(many("10.0.0.1"), 10);
  EXPECT_EQ(many("10.0.0.1"), 0);
  EXPECT_EQ(many("10.0.0.2"), 10);
  for (const char* here : {"127.0.0.1", "::1", "::ffff:127.0.0.1", ""}) EXPECT_EQ(many(here), 50);
  const auto refusal = access.refuse(from("10.0.0.1"));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 429);
  EXPECT_NE(refusal->extra_headers.find("Retry-After: 1\r\n"), std::string::npos);
  clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(many("10.0.0.1"), 5);
  EXPECT_EQ(many("2001:db8:1:2::1"), 10);
  EXPECT_EQ(many("2001:db8:1:2:ffff::1"), 0) << "the same network";
  EXPECT_EQ(many("2001:db8:1:3::1"), 10);
  EXPECT_EQ(many("2001:db8::1"), 10);
  EXPECT_EQ(many("2001:db8::2"), 0);
}

TEST(Access, believes_the_nearest_proxy_about_who_asks_if_there_is_one) {
  auto policy = exposed();
  const auto peer = [&](const std::string& forwarded_for) {
    auto asked = from("127.0.0.1");
    asked.forwarded_for = forwarded_for;
    return policy.peer(asked);
  };
  EXPECT_EQ(peer("10.0.0.1"), "127.0.0.1") << "there is none";
  policy.behind_proxy = true;
  for (const auto& [header, address] :
       std::vector<std::pair<std::string, std::string>>{{"", "127.0.0.1"},
                                                        {"10.0.0.1", "10.0.0.1"},
                                                        {"6.6.6.6, 10.0.0.1", "10.0.0.1"},
                                                        {"6.6.6.6,2001:db8::1", "2001:db8::1"},
                                                        {"10.0.0.1,", "127.0.0.1"},
                                                        {"unknown", "127.0.0.1"},
                                                        {"<b>", "127.0.0.1"},
                                                        {std::string(46, '1'), "127.0.0.1"}})
    EXPECT_EQ(peer(header), address) << header;
}

}  // namespace
}  // namespace watchdog::monitor
