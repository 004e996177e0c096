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

const std::string apples = "Name an apple, and then name another apple, and an apple.";
/// By the program `zstd`, without a check of more than its frame.
constexpr unsigned char zstd_bytes[] = {
    0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x39, 0x4d, 0x01, 0x00, 0xf2, 0x01, 0x07, 0x0c, 0xc0,
    0x3d, 0x34, 0xc9, 0xd9, 0xc5, 0xd7, 0xff, 0x3e, 0xb8, 0x96, 0x13, 0xc1, 0x65, 0xad,
    0xf9, 0x2c, 0xeb, 0x53, 0xce, 0xa1, 0x6e, 0x77, 0x9e, 0xf3, 0xc2, 0x91, 0x03, 0x00,
    0x4e, 0x15, 0x00, 0x94, 0xd1, 0xed, 0x30, 0xc7, 0x87, 0x25, 0x48, 0x19};

/// By Node's `brotliCompressSync`.
constexpr unsigned char brotli_bytes[] = {
    0x1b, 0x38, 0x00, 0x00, 0x1c, 0x89, 0x71, 0x8c, 0xca, 0x86, 0x85, 0x7e, 0x19,
    0xe6, 0xd4, 0xd6, 0x20, 0x2e, 0x6e, 0x70, 0x1a, 0xa4, 0x8c, 0x0d, 0x0e, 0x38,
    0xe4, 0xc0, 0xed, 0xf0, 0x96, 0x42, 0xc0, 0x56, 0x5b, 0xda, 0x76, 0xfa, 0xb2,
    0x08, 0x9f, 0x93, 0x48, 0x6a, 0x2f, 0xee, 0x03, 0x80, 0x2b};
/// Likewise, of 300,000 times `a`.
constexpr unsigned char brotli_many_bytes[] = {0x5b, 0xdf, 0x93, 0x84, 0x5f, 0x22, 0x2c,
                                               0x1e, 0x0b, 0x04, 0x32, 0x17, 0x09, 0x00};

template <std::size_t size>
std::string text_of(const unsigned char (&bytes)[size]) {
  return {std::begin(bytes), std::end(bytes)};
}

std::string zstd() {
  return text_of(zstd_bytes);
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
  expect_content("zstd", zstd(), apples);
  expect_content("ZSTD", zstd() + zstd(), apples + apples);
  std::string content;
  EXPECT_EQ(unpacker_for("zstd")->feed(zstd(), content, 10), Fed::full);
  EXPECT_EQ(content, apples.substr(0, 10));
  EXPECT_EQ(unpacker_for("zstd")->feed("no zstd", content), Fed::broken);
}

TEST(Unpacker, brotli_is_read_where_the_program_has_it) {
  const auto unpacker = unpacker_for("br");
  EXPECT_EQ(unpacker == nullptr, brotli_unpacker() == nullptr);
  if (!unpacker) return;
  expect_content("br", text_of(brotli_bytes), apples);
  expect_content("BR", text_of(brotli_many_bytes), std::string(300'000, 'a'));
  std::string content;
  EXPECT_EQ(unpacker_for("br")->feed(text_of(brotli_many_bytes), content, 70'000), Fed::full);
  EXPECT_EQ(content, std::string(70'000, 'a'));
  EXPECT_EQ(unpacker_for("br")->feed("no brotli at all", content), Fed::broken);
  content.clear();
  EXPECT_EQ(unpacker_for("br")->feed(text_of(brotli_bytes) + "more", content), Fed::broken);
  EXPECT_EQ(content, apples);
  const auto cut = unpacker_for("br");
  EXPECT_EQ(cut->feed(text_of(brotli_bytes).substr(0, 40), content), Fed::good);
  EXPECT_FALSE(cut->is_whole());
}

TEST(Unpacker, another_coding_has_none) {
  for (const auto* coding : {"", "identity", "compress", "gzip, gzip", "gzip,zstd"})
    EXPECT_FALSE(unpacker_for(coding)) << coding;
}

}  // namespace
}  // namespace watchdog::monitor
