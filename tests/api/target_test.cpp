#include "api/target.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace watchdog::monitor {
namespace {

// Plain paths are read without the library, so each is compared with itself and an empty query,
// which the library reads.
TEST(Target, plain_paths_have_the_segments_that_the_library_finds) {
  for (const std::string path :
       {"/", "/a", "/a/", "/a/b.c/d-e_f", "/.", "/..", "/a/../b", "/A/0"}) {
    const auto plain = Target::parse(path);
    const auto read = Target::parse(path + "?");
    ASSERT_TRUE(plain && read) << path;
    EXPECT_EQ(plain->segments, read->segments) << path;
  }
}

TEST(Target, other_paths_are_left_to_the_library) {
  EXPECT_EQ(Target::parse("/a%2Fb//c")->segments, (std::vector<std::string>{"a/b", "c"}));
  for (const char* text : {"", "a", "a/b", "http://a/b", "/a b", "/%zz"})
    EXPECT_FALSE(Target::parse(text)) << text;
}

}  // namespace
}  // namespace watchdog::monitor
