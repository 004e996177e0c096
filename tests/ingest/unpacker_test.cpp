#include "ingest/unpacker.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "api/compression.h"

namespace watchdog::monitor {
namespace {

using Fed = Unpacker::Fed;

std::string gzip(const std::string& text) {
  return compressed({.status = 200, .body = text}, {.accept_encoding = "gzip"}).body;
}

/// By the program `zstd`, without a check of more than its frame.
const std::string zstd_text = "Name an apple, and then name another apple, and an apple.";
constexpr unsigned char zstd_bytes[] = {
    0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x39, 0x4d, 0x01, 0x00, 0xf2, 0x01, 0x07, 0x0c, 0xc0,
    0x3d, 0x34, 0xc9, 0xd9, 0xc5, 0xd7, 0xff, 0x3e, 0xb8, 0x96, 0x13, 0xc1, 0x65, 0xad,
    0xf9, 0x2c, 0xeb, 0x53, 0xce, 0xa1, 0x6e, 0x77, 0x9e, 0xf3, 0xc2, 0x91, 0x03, 0x00,
    0x4e, 0x15, 0x00, 0x94, 0xd1, 0xed, 0x30, 0xc7, 0x87, 0x25, 0x48, 0x19};

std::string zstd() {
  return {std::begin(zstd_bytes), std::end(zstd_bytes)};
}

void expect_content(const char* coding, const std::string& packed, const std::string& content) {
  for (const std::size_t size : {1U, 13U, 1'000'000U}) {
    const auto unpacker = unpacker_for(coding);
    ASSERT_TRUE(unpacker);
    std::string text;
    EXPECT_FALSE(unpacker->is_whole());
    for (std::size_t at = 0; at < packed.size(); at += size) {
      EXPECT_EQ(unpacker->feed(packed.substr(at, size), text), Fed::good);
      if (at + size < packed.size() / 2) {
        EXPECT_FALSE(unpacker->is_whole());
      }
    }
    EXPECT_TRUE(unpacker->is_whole());
    EXPECT_EQ(text, content);
  }
}

TEST(Unpacker, a_body_is_unpacked_in_any_pieces) {
  const std::string text(1'000'000, 'a');
  for (const auto* coding : {"gzip", "GZIP", "x-gzip"}) {
    expect_content(coding, gzip(text), text);
    expect_content(coding, gzip("a") + gzip("b"), "ab");
  }
  const auto small = unpacker_for("gzip");
  std::string content;
  EXPECT_EQ(small->feed(gzip(text), content, 70'000), Fed::full);
  EXPECT_EQ(content.size(), 70'000U);
  EXPECT_EQ(small->feed("more", content), Fed::full) << "it stays so";
  EXPECT_EQ(unpacker_for("gzip")->feed("no gzip", content), Fed::broken);
  const auto cut = unpacker_for("gzip");
  EXPECT_EQ(cut->feed(gzip("a").substr(0, 12), content), Fed::good);
  EXPECT_FALSE(cut->is_whole());
}

TEST(Unpacker, zstd_is_read_where_the_program_has_it) {
  const auto unpacker = unpacker_for("zstd");
  EXPECT_EQ(unpacker == nullptr, zstd_unpacker() == nullptr);
  if (!unpacker) return;
  expect_content("zstd", zstd(), zstd_text);
  expect_content("ZSTD", zstd() + zstd(), zstd_text + zstd_text);
  std::string content;
  EXPECT_EQ(unpacker_for("zstd")->feed(zstd(), content, 10), Fed::full);
  EXPECT_EQ(content, zstd_text.substr(0, 10));
  EXPECT_EQ(unpacker_for("zstd")->feed("no zstd", content), Fed::broken);
}

TEST(Unpacker, another_coding_has_none) {
  for (const auto* coding : {"", "identity", "br", "compress", "gzip, gzip", "gzip,zstd"})
    EXPECT_FALSE(unpacker_for(coding)) << coding;
}

}  // namespace
}  // namespace watchdog::monitor
