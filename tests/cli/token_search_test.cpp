#include "cli/token_search.h"

#include <gtest/gtest.h>

namespace watchdog::monitor {
namespace {

const std::string table_head =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n";

std::string socket_line(const char* local, const char* state, const char* uid) {
  return std::string("   0: ") + local + " 00000000:0000 " + state +
         " 00000000:00000000 00:00000000 00000000  " + uid + "        0 4711 1 0000 100 0\n";
}

TEST(TokenSearch, a_port_belongs_to_who_listens_at_it) {
  const auto mine = socket_line("0100007F:0BB8", "0A", "1000");
  EXPECT_EQ(listener_in(table_head + mine, 3'000), uid_t{1000});
  EXPECT_EQ(listener_in(table_head + mine, 3'001), std::nullopt);
  EXPECT_EQ(
      listener_in(table_head + socket_line("00000000000000000000000001000000:0BB8", "0A", "0"),
                  3'000),
      uid_t{0});
  // A connection is not a listener.
  const auto connected = socket_line("0100007F:0BB8", "01", "7");
  EXPECT_EQ(listener_in(table_head + connected, 3'000), std::nullopt);
  EXPECT_EQ(listener_in(table_head + connected + mine, 3'000), uid_t{1000});
  // Two users listen at one port by different addresses: it may be either who answers.
  const auto other = socket_line("00000000:0BB8", "0A", "1001");
  EXPECT_EQ(listener_in(table_head + mine + table_head + other, 3'000), std::nullopt);
  EXPECT_EQ(listener_in(table_head + mine + mine, 3'000), uid_t{1000});
}

TEST(TokenSearch, a_table_that_nobody_understands_names_nobody) {
  for (const std::string table : {"", "\n\n", "0: 0100007F:0BB8", "a b c 0A e f g h", "\xff\xfe"})
    EXPECT_EQ(listener_in(table, 3'000), std::nullopt) << table;
  EXPECT_EQ(listener_in(socket_line("0100007F:0BB8", "0A", "-1"), 3'000), std::nullopt);
  EXPECT_EQ(listener_in(socket_line("0100007F:FFFFF", "0A", "1"), 3'000), std::nullopt);
  EXPECT_EQ(listener_in(socket_line("nowhere", "0A", "1"), 3'000), std::nullopt);
}

TEST(TokenSearch, a_refusal_names_a_file_or_none) {
  EXPECT_EQ(token_file_in({.status = 401, .body = R"({"error":{"tokenFile":"/a/b"}})"}), "/a/b");
  for (const char* body : {"", "[]", "{}", R"({"error":1})", R"({"error":{"tokenFile":7}})"})
    EXPECT_EQ(token_file_in({.status = 401, .body = body}), "") << body;
}

}  // namespace
}  // namespace watchdog::monitor
