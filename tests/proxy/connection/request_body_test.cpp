#include "proxy/connection/request_body.h"

#include <gtest/gtest.h>

#include "api/compression.h"
#include "proxy/connection/json_members.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t limit = 1'000;

RequestBody read(const std::string& bytes, std::string_view coding = {}, bool is_whole = true) {
  return read_request_body(std::make_shared<const std::string>(bytes), coding, is_whole, limit);
}

std::string gzip(const std::string& text) {
  return compressed({.status = 200, .body = text}, {.accept_encoding = "gzip"}).body;
}

const std::string request = R"({"model":"m","stream":true,"max_tokens":7,"messages":[]})";

TEST(RequestBody, a_packed_body_says_what_an_unpacked_one_does) {
  for (const auto* coding : {"", "identity", "gzip", "GZip", "x-gzip"}) {
    const bool is_packed = std::string_view(coding).find_first_of("zZ") != std::string_view::npos;
    const auto body = read(is_packed ? gzip(request) : request, coding);
    ASSERT_TRUE(body.content) << coding;
    EXPECT_EQ(*body.content, request);
    EXPECT_EQ(body.model, "\"m\"");
    EXPECT_EQ(body.streams, true);
    EXPECT_EQ(body.parameters.max_tokens, 7);
    EXPECT_EQ(body.unread, "");
    EXPECT_FALSE(body.is_cut);
    EXPECT_EQ(body.takes_members, !is_packed) << "the bytes of a packed body stay the same";
  }
}

TEST(RequestBody, a_body_that_is_not_read_says_why) {
  struct Row {
    std::string bytes;
    const char* coding;
    const char* unread;
  };
  const auto packed = gzip(request);
  const Row rows[] = {
      {"\x28\xb5\x2f\xfd", "zstd", "compressed by zstd"},
      {"\x1b", "br", "compressed by br"},
      {"\x1b", "lzma", "compressed by lzma, which is not read here"},
      {request, "gzip", "cannot be unpacked"},
      {packed.substr(0, packed.size() - 9), "gzip", "cannot be unpacked"},
      {packed, "gzip, gzip", "compressed by gzip, gzip"},
  };
  for (const auto& row : rows) {
    const auto body = read(row.bytes, row.coding);
    EXPECT_FALSE(body.content) << row.coding;
    EXPECT_NE(body.unread.find(row.unread), std::string::npos) << body.unread;
    EXPECT_EQ(body.model, "");
    EXPECT_FALSE(body.takes_members);
  }
}

TEST(RequestBody, the_beginning_of_a_large_one_names_its_model) {
  const auto large = R"({"model":"m","stream":true,"messages":[")" + std::string(5'000, 'x');
  for (const bool is_packed : {false, true}) {
    // Packed it is all there, and its content is too large.
    const auto body = is_packed ? read(gzip(large + "\"]}"), "gzip") : read(large, "", false);
    ASSERT_TRUE(body.content);
    EXPECT_TRUE(body.is_cut);
    EXPECT_EQ(body.content->size(), limit);
    EXPECT_EQ(body.model, "\"m\"");
    EXPECT_EQ(body.streams, true);
    EXPECT_FALSE(body.takes_members);
    EXPECT_NE(body.unread.find("too large"), std::string::npos);
  }
  // Also one that stands behind what is kept.
  const auto last = R"({"messages":[")" + std::string(5'000, 'x') + R"("],"model":"m"})";
  EXPECT_EQ(read(last, "", false).model, "\"m\"");
  EXPECT_TRUE(names_model(last));
  EXPECT_FALSE(names_model(last.substr(0, 4'000)));
}

TEST(RequestBody, a_bomb_takes_no_more_memory_than_is_kept) {
  const auto body = read(gzip(std::string(64U << 20U, ' ')), "gzip");
  ASSERT_TRUE(body.content);
  EXPECT_EQ(body.content->size(), limit);
  EXPECT_TRUE(body.is_cut);
}

}  // namespace
}  // namespace watchdog::monitor
