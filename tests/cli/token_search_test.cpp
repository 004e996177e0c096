#include "cli/token_search.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace watchdog::monitor {
namespace {

const std::string table_head =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n";

std::string socket_line(const char* local, const char* state, const char* uid) {
  return std::string("   0: ") + local + " 00000000:0000 " + state +
         " 00000000:00000000 00:00000000 00000000  " + uid + "        0 4711 1 0000 100 0\n";
}

using Users = std::vector<uid_t>;

Users listeners(const std::string& table, const char* address = "127.0.0.1",
                std::uint16_t port = 3'000) {
  return listeners_in(table, boost::asio::ip::make_address(address), port);
}

TEST(TokenSearch, a_port_belongs_to_who_listens_at_it) {
  const auto mine = socket_line("0100007F:0BB8", "0A", "1000");
  EXPECT_EQ(listeners(table_head + mine), Users{1000});
  EXPECT_EQ(listeners(table_head + mine, "127.0.0.1", 3'001), Users{});
  // Another address of loopback is another listener's.
  EXPECT_EQ(listeners(table_head + mine, "127.0.0.2"), Users{});
  EXPECT_EQ(listeners(table_head + mine, "::1"), Users{});
  const auto six = socket_line("00000000000000000000000001000000:0BB8", "0A", "0");
  EXPECT_EQ(listeners(table_head + six, "::1"), Users{0});
  EXPECT_EQ(listeners(table_head + six), Users{});
  // The form of an IPv4 address in IPv6.
  const auto mapped = socket_line("0000000000000000FFFF00000100007F:0BB8", "0A", "7");
  EXPECT_EQ(listeners(table_head + mapped), Users{7});
  EXPECT_EQ(listeners(table_head + mapped, "::ffff:127.0.0.1"), Users{7});
  // A connection is not a listener.
  const auto connected = socket_line("0100007F:0BB8", "01", "7");
  EXPECT_EQ(listeners(table_head + connected), Users{});
  // A process that listens at all addresses listens at this one, too.
  const auto all = socket_line("00000000:0BB8", "0A", "1001");
  const auto all_six = socket_line("00000000000000000000000000000000:0BB8", "0A", "1002");
  EXPECT_EQ(listeners(table_head + mine + table_head + all + all_six), (Users{1000, 1001, 1002}));
}

TEST(TokenSearch, a_table_that_nobody_understands_names_nobody) {
  for (const std::string table : {"", "\n\n", "0: 0100007F:0BB8", "a b c 0A e f g h", "\xff\xfe"})
    EXPECT_EQ(listeners(table), Users{}) << table;
  for (const auto* local : {"0100007F:FFFFF", "nowhere", "01:0BB8", ":0BB8", "0100007G:0BB8"})
    EXPECT_EQ(listeners(socket_line(local, "0A", "1")), Users{}) << local;
  EXPECT_EQ(listeners(socket_line("0100007F:0BB8", "0A", "-1")), Users{});
}

/// Listens at a free port of loopback for as long as it lives.
class Listener {
 public:
  Listener() {
    socket_.open(boost::asio::ip::tcp::v4());
    socket_.bind({boost::asio::ip::address_v4::loopback(), 0});
    socket_.listen();
  }
  [[nodiscard]] std::uint16_t port() const { return socket_.local_endpoint().port(); }

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor socket_{context_};
};

TEST(TokenSearch, a_token_goes_to_a_listener_of_this_user_and_to_no_port_that_nobody_has) {
  std::uint16_t port = 0;
  {
    const Listener mine;
    port = mine.port();
    EXPECT_EQ(listener_fault("127.0.0.1", port, std::nullopt), "");
  }
  EXPECT_NE(listener_fault("127.0.0.1", port, std::nullopt), "");
}

TEST(TokenSearch, a_refusal_names_a_file_or_none) {
  EXPECT_EQ(token_file_in({.status = 401, .body = R"({"error":{"tokenFile":"/a/b"}})"}), "/a/b");
  for (const char* body : {"", "[]", "{}", R"({"error":1})", R"({"error":{"tokenFile":7}})"})
    EXPECT_EQ(token_file_in({.status = 401, .body = body}), "") << body;
}

}  // namespace
}  // namespace watchdog::monitor
