// Connections: begun, broken off in each phase, and used again.

#include <gtest/gtest.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <future>
#include <initializer_list>
#include <thread>

#include "net/http_client.h"
#include "support/model_server.h"

namespace watchdog {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using test::ModelServer;
using Exchange = ModelServer::Exchange;

const HttpSink ignore = [](const HttpHead&, std::string_view) { return true; };

HttpClient client_to(const std::string& url, HttpClient::Options options = {}) {
  return std::move(*HttpClient::to(*url_from(url), std::move(options)));
}

/// A port that somebody listens at, who does nothing by itself.
struct Listener {
  asio::io_context context;
  tcp::acceptor acceptor{context, {asio::ip::address_v4::loopback(), 0}};

  [[nodiscard]] std::string url(const std::string& scheme) const {
    return scheme + "://127.0.0.1:" + std::to_string(acceptor.local_endpoint().port());
  }
};

TEST(HttpClient, an_answer_comes_with_its_head) {
  const ModelServer server([](Exchange& exchange) {
    exchange.respond(418, "short and stout", "text/plain", "X-Kind: tea\r\nEmpty:\r\n");
  });
  std::string body;
  const auto head = client_to(server.base_url())
                        .ask({.target = "/pot", .headers = {{"X-Asked", "yes"}}},
                             [&](const HttpHead& of, std::string_view piece) {
                               EXPECT_EQ(of.status, 418);
                               body += piece;
                               return true;
                             });
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->status, 418);
  EXPECT_EQ(head->header("x-kind"), "tea");
  EXPECT_EQ(head->header("missing"), "");
  EXPECT_FALSE(head->from_internet);
  EXPECT_EQ(body, "short and stout");
  const auto asked = server.requests().at(0);
  EXPECT_EQ(asked.method, "GET");
  EXPECT_EQ(asked.target, "/pot");
  EXPECT_NE(asked.head.find("X-Asked: yes\r\n"), std::string::npos);
  EXPECT_NE(asked.head.find("Host: 127.0.0.1:"), std::string::npos);
}

TEST(HttpClient, a_large_body_is_sent_whole) {
  const ModelServer server([](Exchange& exchange) {
    exchange.respond(200, std::to_string(exchange.request().body.size()));
  });
  const std::string body(5'000'000, 'x');
  std::string reported;
  ASSERT_TRUE(client_to(server.base_url())
                  .ask({.method = "POST", .target = "/", .body = body},
                       [&](const HttpHead&, std::string_view piece) {
                         reported += piece;
                         return true;
                       })
                  .ok());
  EXPECT_EQ(reported, "5000000");
}

TEST(HttpClient, an_answer_that_comes_before_the_body_is_sent_is_read) {
  Listener listener;
  std::thread server([&] {
    tcp::socket socket = listener.acceptor.accept();
    std::array<char, 100> some{};
    socket.read_some(asio::buffer(some));
    const std::string_view refusal = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n";
    socket.send(asio::buffer(refusal));
    socket.shutdown(tcp::socket::shutdown_send);
    boost::system::error_code error;
    while (!error) socket.read_some(asio::buffer(some), error);
  });
  const std::string body(20'000'000, 'x');
  const auto head =
      client_to(listener.url("http")).ask({.method = "POST", .target = "/", .body = body}, ignore);
  server.join();
  ASSERT_TRUE(head.ok()) << head.error().message;
  EXPECT_EQ(head->status, 413);
}

TEST(HttpClient, connections_that_must_not_be_used_again_are_not) {
  const ModelServer server([](Exchange& exchange) {
    const auto& target = exchange.request().target;
    if (target == "/close") {
      exchange.respond(200, "a", "text/plain", "Connection: close\r\n");
    } else if (target == "/more") {
      exchange.respond(200, "a");
      exchange.write("what nobody asked for");
    } else {
      exchange.respond(200, "a");
    }
  });
  auto client = client_to(server.base_url());
  for (const char* target : {"/", "/close", "/", "/"})
    ASSERT_TRUE(client.ask({.target = target}, ignore).ok());
  const auto requests = server.requests();
  EXPECT_EQ(requests.at(0).connection, 1);
  EXPECT_EQ(requests.at(1).connection, 1);
  EXPECT_EQ(requests.at(2).connection, 2);
  EXPECT_EQ(requests.at(3).connection, 2);
}

TEST(HttpClient, no_more_idle_connections_are_kept_than_wanted) {
  const ModelServer server([](Exchange& exchange) { exchange.respond(200, "a"); });
  auto client = client_to(server.base_url(), {.idle_connections_max = 0});
  ASSERT_TRUE(client.ask({.target = "/"}, ignore).ok());
  ASSERT_TRUE(client.ask({.target = "/"}, ignore).ok());
  EXPECT_EQ(server.requests().at(1).connection, 2);
}

TEST(HttpClient, connecting_is_broken_off) {
  Listener listener;
  listener.acceptor.listen(0);  // room for one that nobody accepts
  std::vector<tcp::socket> crowd;
  for (int i = 0; i < 4; ++i) {
    crowd.emplace_back(listener.context)
        .async_connect(listener.acceptor.local_endpoint(), [](boost::system::error_code) {});
  }
  const auto head =
      client_to(listener.url("http")).ask({.target = "/", .at_most = Millis{50}}, ignore);
  ASSERT_FALSE(head.ok());
  EXPECT_EQ(head.error().trouble, HttpTrouble::late);
}

TEST(HttpClient, the_handshake_is_broken_off) {
  Listener listener;
  std::stop_source stop;
  std::thread server([&] {
    tcp::socket socket = listener.acceptor.accept();
    std::array<char, 1> first{};
    socket.read_some(asio::buffer(first));
    stop.request_stop();
    std::array<char, 1'000> rest{};
    boost::system::error_code error;
    while (!error) socket.read_some(asio::buffer(rest), error);
  });
  const auto head = client_to(listener.url("https")).ask({.target = "/"}, ignore, stop.get_token());
  server.join();
  ASSERT_FALSE(head.ok());
  EXPECT_EQ(head.error().trouble, HttpTrouble::cancelled);
}

TEST(HttpClient, a_server_that_hangs_up_during_the_handshake_is_lost_not_untrusted) {
  Listener listener;
  std::thread server([&] {
    tcp::socket socket = listener.acceptor.accept();
    std::array<char, 1'000> hello{};
    socket.read_some(asio::buffer(hello));
  });
  const auto head = client_to(listener.url("https")).ask({.target = "/"}, ignore);
  server.join();
  ASSERT_FALSE(head.ok());
  EXPECT_EQ(head.error().trouble, HttpTrouble::lost) << head.error().message;
}

TEST(HttpClient, sending_is_broken_off) {
  Listener listener;
  std::stop_source stop;
  std::promise<void> done;
  std::thread server([&] {
    tcp::socket socket = listener.acceptor.accept();
    std::array<char, 1> first{};
    socket.read_some(asio::buffer(first));
    stop.request_stop();
    done.get_future().wait();
  });
  const std::string body(50'000'000, 'x');
  const auto head =
      client_to(listener.url("http"))
          .ask({.method = "POST", .target = "/", .body = body}, ignore, stop.get_token());
  done.set_value();
  server.join();
  ASSERT_FALSE(head.ok());
  EXPECT_EQ(head.error().trouble, HttpTrouble::cancelled);
}

/// What a server sends until the client hangs up: a beginning, and the same again and again.
HttpFault fault_of_endless(const std::string& beginning, const std::string& again) {
  Listener listener;
  std::size_t sent = 0;
  std::thread server([&] {
    tcp::socket socket = listener.acceptor.accept();
    boost::system::error_code error;
    std::array<char, 4'096> request{};
    socket.read_some(asio::buffer(request), error);
    asio::write(socket, asio::buffer(beginning), error);
    while (!error && sent < 100'000'000) sent += asio::write(socket, asio::buffer(again), error);
  });
  auto head = [&] {
    auto client = client_to(listener.url("http"));
    return client.ask({.target = "/"}, ignore);
  }();
  server.join();
  EXPECT_LT(sent, 100'000'000U) << again.substr(0, 10);
  return head.ok() ? HttpFault{} : head.error();
}

TEST(HttpClient, framing_without_end_is_refused) {
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string x(10'000, 'x');
  for (const auto& [beginning, again] : std::initializer_list<std::pair<std::string, std::string>>{
           {head + "2;", "a=b;"},
           {head + "2\r\nab\r\n0;", "a=b;"},
           {head + "2\r\nab\r\n0\r\nX: ", x},
           {head + "2\r\nab\r\n0\r\n", "X: y\r\n"},
           {"HTTP/1.1 200 OK\r\nX: ", x},
           {"HTTP/1.1 200 OK\r\n", "X: y\r\n"},
           {"HTTP/1.1 ", "200 OK "},
           {"", "HTTP/1.1 102 Processing\r\n\r\n"}}) {
    const auto fault = fault_of_endless(beginning, again);
    EXPECT_EQ(fault.trouble, HttpTrouble::malformed) << beginning << again.substr(0, 10);
    EXPECT_FALSE(fault.message.empty()) << beginning << again.substr(0, 10);
  }
}

TEST(HttpClient, an_unknown_transfer_coding_is_refused) {
  for (const std::string coding : {"gzip, chunked", "chunked;q=1", "gzip", "chunked, chunked"}) {
    Listener listener;
    std::thread server([&] {
      tcp::socket socket = listener.acceptor.accept();
      boost::system::error_code error;
      std::array<char, 4'096> request{};
      socket.read_some(asio::buffer(request), error);
      asio::write(socket,
                  asio::buffer("HTTP/1.1 200 OK\r\nTransfer-Encoding: " + coding +
                               "\r\n\r\n2\r\nab\r\n0\r\n\r\n"),
                  error);
    });
    const auto head = client_to(listener.url("http")).ask({.target = "/"}, ignore);
    server.join();
    ASSERT_FALSE(head.ok()) << coding;
    EXPECT_EQ(head.error().trouble, HttpTrouble::malformed) << coding;
  }
}

TEST(HttpClient, a_name_without_an_address_is_reported) {
  const auto head = client_to("http://no-such-name.invalid")
                        .ask({.target = "/", .at_most = Millis{20'000}}, ignore);
  ASSERT_FALSE(head.ok());
  EXPECT_TRUE(head.error().trouble == HttpTrouble::host_not_found ||
              head.error().trouble == HttpTrouble::no_name_service)
      << "the latter where there is no network";
}

TEST(HttpClient, a_name_with_several_addresses_is_tried_at_each) {
  const ModelServer server([](Exchange& exchange) { exchange.respond(200, "a"); });
  EXPECT_TRUE(client_to(server.base_url("localhost")).ask({.target = "/"}, ignore).ok())
      << "which may be ::1 first, where nobody listens";
}

}  // namespace
}  // namespace watchdog
