#include "net/url.h"

#include <gtest/gtest.h>

namespace watchdog {
namespace {

TEST(Url, its_parts_are_found) {
  const auto url = url_from("HTTPS://Models.Example:8443/v1/");
  ASSERT_TRUE(url.ok());
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->host, "models.example");
  EXPECT_EQ(url->port, "8443");
  EXPECT_EQ(url->path, "/v1");
  EXPECT_EQ(url->text(), "https://models.example:8443/v1");
}

TEST(Url, a_missing_port_is_the_schemes_own) {
  EXPECT_EQ(url_from("http://a")->port, "80");
  EXPECT_EQ(url_from("https://a/")->port, "443");
  EXPECT_EQ(url_from("https://a:443")->authority(), "a");
  EXPECT_EQ(url_from("http://a:443")->authority(), "a:443");
}

TEST(Url, an_ipv6_address_is_in_brackets) {
  const auto url = url_from("http://[::1]:8080/v1");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->authority(), "[::1]:8080");
  EXPECT_EQ(url_from("http://[::1]")->port, "80");
}

TEST(Url, an_invalid_url_is_refused) {
  for (const char* text : {"",
                           "http:",
                           "http://",
                           "http:///v1",
                           "ftp://a",
                           "a:8080",
                           "http://a:0",
                           "http://a:65536",
                           "http://a:8x",
                           "http://a:",
                           "http://a b",
                           "http://a/x y",
                           "http://a/x?y",
                           "http://a#x",
                           "http://a/\r\nX: y",
                           "http://[::1",
                           "http://[::1]x",
                           "http://::1",
                           "http://[]",
                           "http://a\r\n"})
    EXPECT_FALSE(url_from(text).ok()) << text;
}

TEST(Url, credentials_are_refused_and_not_repeated) {
  const auto url = url_from("http://me:secret@a:8080/v1");
  ASSERT_FALSE(url.ok());
  EXPECT_EQ(url.error().message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace watchdog
